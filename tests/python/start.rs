//! Starting a run on an environment in Python: wherever the program is started, and with words that help where it cannot.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use shoal::environments::EnvironmentRequest;

use crate::support::programs::{self, SMALL, program, said, told};
use crate::support::python;

/// The supervisor, asked to train briefly with `overrides`.
fn supervisor(folder: &Path, overrides: &[&str]) -> Command {
    let mut command = programs::command(folder, SMALL);
    for change in ["environment.id=gymnasium:CartPole-v1", "evaluator.enabled=false", "run.stop_env_steps=400"].iter().chain(overrides) {
        command.args(["--set", change]);
    }
    command
}

fn refusal(overrides: &[&str]) -> String {
    let folder = tempfile::tempdir().unwrap();
    let output = supervisor(folder.path(), overrides).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    assert!(!folder.path().join("runs").exists(), "nothing may be written for a run that cannot start");
    said(&output)
}

#[test]
fn a_run_needs_nothing_from_the_environment_that_it_is_started_in() {
    for variables in [&[][..], &[("PATH", "/usr/bin:/bin")]] {
        let folder = tempfile::tempdir().unwrap();
        let output = supervisor(folder.path(), &[])
            .env_clear()
            .env("XDG_RUNTIME_DIR", folder.path())
            .envs(variables.iter().copied())
            .output()
            .unwrap();
        assert!(output.status.success() && said(&output).contains("step limit"), "{variables:?}: {}", said(&output));
    }
}

#[test]
fn programs_that_an_environment_starts_are_not_given_what_was_prepared_for_it() {
    let folder = tempfile::tempdir().unwrap();
    let task = "import os, subprocess, sys\nfrom shapes import Shown\n\nclass Task(Shown):\n    def __init__(self):\n        \
                assert 'PYTHONHOME' not in os.environ and 'SHOAL_PYTHON' not in os.environ, os.environ\n        \
                subprocess.run([sys.executable, '-c', 'import gymnasium'], check=True)\n";
    std::fs::write(folder.path().join("task.py"), task).unwrap();
    let python_path = format!("environment.python_path={}:{}", folder.path().display(), python::folder().display());
    told(&supervisor(folder.path(), &["environment.id=python:task:Task", &python_path]).output().unwrap());
}

#[test]
fn modules_are_found_beside_the_configuration_and_later_by_whoever_reads_the_run_folder() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::copy(python::folder().join("shapes.py"), folder.path().join("shapes.py")).unwrap();
    let config = folder.path().join("task.toml");
    std::fs::write(&config, "environment.id = \"python:shapes.py:make_limited\"\nenvironment.keyword_arguments = '{\"steps\": 9}'\n")
        .unwrap();
    let mut command = program("supervisor", folder.path());
    command.arg(&config).current_dir("/");
    for change in SMALL.iter().chain(&["run.stop_env_steps=400"]) {
        command.args(["--set", change]);
    }
    told(&command.args(["--set", &format!("run.folder={}", folder.path().join("runs").display())]).output().unwrap());

    let resolved = std::fs::read_to_string(folder.path().join("runs/latest/config.toml")).unwrap();
    assert!(resolved.contains(&format!("python_path = \"{}", folder.path().display())), "{resolved}");
    let mut evaluate = program("evaluate", folder.path());
    evaluate.args(["--episodes", "2", "--weights", "last"]).arg(folder.path().join("runs/latest"));
    told(&evaluate.current_dir("/").output().unwrap());
}

#[test]
fn folders_of_modules_that_are_typed_begin_where_the_command_is_given_and_are_found_again_from_elsewhere() {
    let folder = tempfile::tempdir().unwrap();
    let lib = folder.path().canonicalize().unwrap().join("lib");
    std::fs::create_dir(&lib).unwrap();
    std::fs::copy(python::folder().join("shapes.py"), lib.join("task.py")).unwrap();
    let task = ["environment.id=python:task:make_limited", "environment.python_path=lib", r#"environment.keyword_arguments={"steps": 9}"#];
    told(&supervisor(folder.path(), &task).current_dir(folder.path()).output().unwrap());
    let resolved = std::fs::read_to_string(folder.path().join("runs/latest/config.toml")).unwrap();
    assert!(resolved.contains(&format!("python_path = \"{}\"", lib.display())), "{resolved}");
    let mut evaluate = program("evaluate", folder.path());
    evaluate.args(["--episodes", "2", "--weights", "last"]).arg(folder.path().join("runs/latest"));
    told(&evaluate.current_dir("/").output().unwrap());
}

#[test]
fn a_folder_of_pythonpath_is_searched_however_it_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let lib = folder.path().join("lib");
    std::fs::create_dir(&lib).unwrap();
    std::fs::copy(python::folder().join("shapes.py"), lib.join("task.py")).unwrap();
    let task = ["environment.id=python:task:make_limited", r#"environment.keyword_arguments={"steps": 9}"#];
    for python_path in ["lib", "./lib/", "gone:lib/../lib"] {
        let mut command = supervisor(folder.path(), &task);
        told(&command.current_dir(folder.path()).env("PYTHONPATH", python_path).output().unwrap());
    }
}

#[test]
fn packages_that_a_start_up_file_of_python_puts_on_the_path_are_found_in_the_run_as_in_its_trial() {
    let folder = tempfile::tempdir().unwrap();
    let [start_up, added] = ["start_up", "added"].map(|name| folder.path().join(name));
    for made in [&start_up, &added] {
        std::fs::create_dir(made).unwrap();
    }
    let customization = format!("import sys\nsys.path.append('{}')\n", added.display());
    std::fs::write(start_up.join("sitecustomize.py"), customization).unwrap();
    std::fs::copy(python::folder().join("shapes.py"), added.join("task.py")).unwrap();
    // Weights of PyTorch, which are no list of folders.
    std::fs::write(added.join("weights.pth"), [0x80, 0xff]).unwrap();
    let task = ["environment.id=python:task:make_limited", r#"environment.keyword_arguments={"steps": 9}"#];
    told(&supervisor(folder.path(), &task).env("PYTHONPATH", &start_up).output().unwrap());
}

#[test]
fn a_package_that_a_line_of_a_pth_file_imports_is_found_also_if_pythonpath_names_the_folder_of_packages() {
    let folder = tempfile::tempdir().unwrap();
    let installed = shoal::machine::Python::find("").unwrap();
    let bare = folder.path().join("bare");
    assert!(installed.command().args(["-m", "venv", "--without-pip"]).arg(&bare).status().unwrap().success());
    let interpreter = bare.join("bin/python");
    let where_packages_are = "import sysconfig; print(sysconfig.get_path('purelib'))";
    let packages = told(&Command::new(&interpreter).args(["-c", where_packages_are]).output().unwrap());
    let packages = Path::new(packages.trim());
    // As an editable install does it: the line makes a module known without a folder on the path.
    std::fs::write(packages.join("editable.pth"), "import editable\n").unwrap();
    let others: Vec<_> = installed.package_folders.iter().map(|path| path.display().to_string()).collect();
    std::fs::write(packages.join("others.pth"), others.join("\n")).unwrap();
    std::fs::write(packages.join("editable.py"), "import sys\nsys.is_installed = True\n").unwrap();
    let task = "import sys\nfrom shapes import Shown\n\nclass Task(Shown):\n    assert sys.is_installed\n";
    std::fs::write(folder.path().join("task.py"), task).unwrap();
    let python = format!("environment.python={}", interpreter.display());
    let python_path = format!("environment.python_path={}:{}", folder.path().display(), python::folder().display());
    let mut command = supervisor(folder.path(), &["environment.id=python:task:Task", &python, &python_path]);
    told(&command.env("PYTHONPATH", packages).output().unwrap());
}

#[test]
fn a_folder_on_the_path_whose_name_is_no_utf_8_breaks_no_interpreter() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join(OsStr::from_bytes(b"caf\xe9"))).unwrap();
    let customization = format!("import os, sys\nsys.path.append(os.fsdecode(b'{}/caf\\xe9'))\n", folder.path().display());
    std::fs::write(folder.path().join("sitecustomize.py"), customization).unwrap();
    told(&supervisor(folder.path(), &[]).arg("--check").env("PYTHONPATH", folder.path()).output().unwrap());
}

#[test]
fn a_folder_whose_name_is_no_ascii_is_found_whatever_encoding_python_is_told_to_use() {
    let folder = tempfile::tempdir().unwrap();
    let lib = folder.path().join("größe");
    std::fs::create_dir(&lib).unwrap();
    std::fs::copy(python::folder().join("shapes.py"), lib.join("task.py")).unwrap();
    let python_path = format!("environment.python_path={}", lib.display());
    let mut command = supervisor(folder.path(), &["environment.id=python:task:Colours", &python_path]);
    told(&command.arg("--check").env("PYTHONIOENCODING", "latin-1").output().unwrap());
}

#[test]
fn without_a_locale_an_environment_reads_and_writes_utf_8_in_the_run_as_in_its_trial() {
    let folder = tempfile::tempdir().unwrap();
    let lib = folder.path().join("größe");
    std::fs::create_dir(&lib).unwrap();
    let task = "from shapes import Shown\n\nclass Task(Shown):\n    def reset(self, **given):\n        \
                print('größe', open(__file__).read())\n        return super().reset(**given)\n";
    std::fs::write(lib.join("task.py"), task).unwrap();
    let python_path = format!("environment.python_path={}:{}", lib.display(), python::folder().display());
    // Without any, with one that has ASCII alone, and with one that is not installed.
    for locale in [&[][..], &[("LC_ALL", "C")], &[("LANG", "xx_XX.UTF-8")]] {
        let mut command = supervisor(folder.path(), &["environment.id=python:task:Task", &python_path]);
        command.env_clear().env("XDG_RUNTIME_DIR", folder.path()).envs(locale.iter().copied());
        told(&command.output().unwrap());
    }
}

#[test]
fn several_seeds_find_modules_beside_the_configuration_that_was_named() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::copy(python::folder().join("shapes.py"), folder.path().join("task.py")).unwrap();
    let config = folder.path().join("task.toml");
    std::fs::write(&config, "environment.id = \"python:task:make_limited\"\nenvironment.keyword_arguments = '{\"steps\": 9}'\n").unwrap();
    let mut command = program("shoal", folder.path());
    command.arg("train").arg(&config).args(["--seeds", "1"]).current_dir("/");
    for change in SMALL.iter().chain(&["evaluator.enabled=false", "run.stop_env_steps=400"]) {
        command.args(["--set", change]);
    }
    told(&command.args(["--set", &format!("run.folder={}", folder.path().join("runs").display())]).output().unwrap());
}

#[test]
fn the_example_of_a_custom_environment_trains() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = program("supervisor", folder.path());
    command.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("configs/corridor_dqn.toml"));
    command.args(["--set", &format!("run.folder={}", folder.path().join("runs").display()), "--set", "run.stop_env_steps=2000"]);
    let output = command.current_dir(folder.path()).output().unwrap();
    assert!(output.status.success() && said(&output).contains("python:corridor:Corridor"), "{}", said(&output));
}

#[test]
fn what_is_wrong_with_an_environment_is_told_at_its_place_in_the_configuration() {
    let unknown = refusal(&["environment.id=gymnasium:CartPoel-v1"]);
    assert!(unknown.starts_with("error: --set environment.id=gymnasium:CartPoel-v1") && unknown.contains("CartPole-v1"), "{unknown}");
    let arguments = refusal(&["environment.keyword_arguments=[1]"]);
    assert!(arguments.contains("environment.keyword_arguments") && arguments.contains("JSON object"), "{arguments}");
}

#[test]
fn arguments_that_were_written_for_another_environment_are_remarked_on() {
    let folder = tempfile::tempdir().unwrap();
    let (config, task) = (folder.path().join("task.toml"), folder.path().join("task.py"));
    std::fs::write(&config, "environment.id = \"python:shapes:make_limited\"\nenvironment.keyword_arguments = '{\"steps\": 9}'\n").unwrap();
    std::fs::write(task, "from shapes import Shown\n\nclass Swallows(Shown):\n    def __init__(self, **given):\n        pass\n").unwrap();
    let check = |changes: &[&str]| {
        let mut command = program("supervisor", folder.path());
        let python_path = format!("environment.python_path={}:{}", folder.path().display(), python::folder().display());
        command.arg(&config).args(["--check", "--set", &python_path]);
        for change in changes {
            command.args(["--set", change]);
        }
        said(&command.output().unwrap())
    };
    let remark = "task.toml:2:33) were written for another environment; set environment.keyword_arguments too";
    let is_remarked_on = |told: &str| told.contains(remark);
    let refused = check(&["environment.id=python:shapes:Shown"]);
    assert!(refused.starts_with("error: --set environment.id=python:shapes:Shown") && refused.contains("TypeError"), "{refused}");
    assert!(is_remarked_on(&refused), "{refused}");
    let swallowed = check(&["environment.id=python:task:Swallows"]);
    assert!(!swallowed.starts_with("error: ") && is_remarked_on(&swallowed), "{swallowed}");
    for changes in [&["environment.id=python:shapes:Shown", "environment.keyword_arguments={}"][..], &[]] {
        assert!(!is_remarked_on(&check(changes)), "{}", check(changes));
    }
    std::fs::write(&config, "environment.id = \"python:shapes:make_limited\"\nenvironment.evaluation_arguments = '{\"steps\": 9}'\n")
        .unwrap();
    let refused = check(&["environment.id=python:shapes:Shown"]);
    let remark = "task.toml:2:36) were written for another environment; set environment.evaluation_arguments too";
    assert!(refused.contains("TypeError") && refused.contains(remark), "{refused}");
}

#[test]
fn an_environment_that_cannot_be_evaluated_in_is_told_at_the_arguments_for_that() {
    let python_path = format!("environment.python_path={}", python::folder().display());
    let rewarded = ["environment.id=python:shapes:Rewarded", &python_path, r#"environment.keyword_arguments={"reward": 7}"#];
    let native = ["environment.id=CartPole-v1"];
    for (task, arguments, told) in [
        (&rewarded[..], r#"{"numbers": 3}"#, "has 3 observed values"),
        (&rewarded[..], r#"{"price": 1}"#, "TypeError"),
        (&rewarded[..], "[1]", "no JSON object"),
        (&native[..], r#"{"gravity": 9.8}"#, "takes no keyword arguments"),
    ] {
        let arguments = format!("environment.evaluation_arguments={arguments}");
        let refused = refusal(&[task, &[&*arguments]].concat());
        assert!(refused.starts_with("error: --set environment.evaluation_arguments=") && refused.contains(told), "{refused}");
    }
}

/// The environment of `faulty.py` that fails as `how` says in its first step.
fn refusal_of_faulty(how: &str, flags: &[&str]) -> String {
    let folder = tempfile::tempdir().unwrap();
    let python_path = format!("environment.python_path={}", python::folder().display());
    let arguments = format!(r#"environment.keyword_arguments={{"how": "{how}", "after": 0}}"#);
    let mut command = supervisor(folder.path(), &["environment.id=python:faulty:Faulty", &python_path, &arguments]);
    let output = command.args(flags).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    assert!(!folder.path().join("runs").exists(), "nothing may be written for a run that cannot start");
    said(&output)
}

#[test]
fn an_environment_that_fails_at_once_ends_the_run_before_it_starts_with_one_short_error() {
    for flags in [&["--check"][..], &[]] {
        let raised = refusal_of_faulty("raise", flags);
        assert_eq!(raised.matches("the wheels came off").count(), 3, "summary, line of code and end of the traceback: {raised}");
        assert!(raised.contains("raised an exception in step 1 of an episode: ValueError: the wheels came off\n"), "{raised}");
        assert!(raised.contains("faulty.py\", line ") && !raised.contains("<shoal"), "{raised}");
        assert!(raised.lines().count() <= 12, "{raised}");
    }
    for (how, told) in [
        ("observe nan", "it gave observation[1] = nan in its first step"),
        ("reward infinity", "it gave reward = inf in its first step"),
        ("reward beyond floats", "it gave reward = 1e+39 in its first step: every observation and reward must be finite, as 32-bit floats"),
        ("observe less", "the observation has the shape (2,), and the observation space (3,)"),
        ("exit", "SystemExit: no longer"),
        ("exit at once", "ended its process while it was made, reset and stepped once (exit status: 7)"),
    ] {
        let refused = refusal_of_faulty(how, &[]);
        assert!(refused.contains(told) && refused.lines().count() <= 12, "{how}: {refused}");
    }
}

/// The plan of a run in the environment `id` with these keyword arguments, and these where the agent is evaluated.
fn plan(id: &str, keyword_arguments: &str, evaluation_arguments: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    let python_path = format!("environment.python_path={}", python::folder().display());
    let arguments = [("id", id), ("keyword_arguments", keyword_arguments), ("evaluation_arguments", evaluation_arguments)];
    let [id, keyword, evaluation] = arguments.map(|(key, value)| format!("environment.{key}={value}"));
    let output = supervisor(folder.path(), &[&id, &python_path, &keyword, &evaluation]).arg("--check").output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    said(&output)
}

#[test]
fn the_plan_says_where_an_evaluated_episode_may_never_end_unless_somebody_set_how_long_that_is_waited_for() {
    let python_path = format!("environment.python_path={}", python::folder().display());
    let is_told = |changes: &[&str]| {
        let folder = tempfile::tempdir().unwrap();
        let task = [&["evaluator.enabled=true", &*python_path][..], changes].concat();
        let output = supervisor(folder.path(), &task).arg("--check").output().unwrap();
        assert!(output.status.success(), "{}", said(&output));
        said(&output).contains("no time limit of the environment is known: ")
    };
    let endless = "environment.id=python:shapes:make_endless";
    let limited = ["environment.id=python:shapes:make_limited", r#"environment.keyword_arguments={"steps": 9}"#];
    assert!(is_told(&[endless]));
    for changes in [&limited[..], &[endless, "evaluator.episode_limit_steps=50"], &[endless, "evaluator.enabled=false"]] {
        assert!(!is_told(changes), "{changes:?}");
    }
}

#[test]
fn the_plan_names_an_observation_outside_of_its_space_once() {
    let plan = |how: &str, evaluated_how: &str| {
        let arguments = format!(r#"{{"how": "{how}", "after": 0}}"#);
        plan("python:faulty:Faulty", &arguments, &format!(r#"{{"how": "{evaluated_how}"}}"#))
    };
    let beyond = plan("observe beyond", "observe beyond");
    assert_eq!(beyond.matches("observation[").count(), 1, "{beyond}");
    assert!(beyond.contains("observation[1] = 5.0 in its first step, and its observation space allows -1.0 to 1.0 there"), "{beyond}");
    let evaluated = plan("behave", "observe beyond");
    assert!(evaluated.contains("with environment.evaluation_arguments, the environment gave observation[1] = 5.0"), "{evaluated}");
    let behaved = plan("behave", "behave");
    assert!(!behaved.contains("observation space"), "{behaved}");
}

#[test]
fn the_plan_names_what_is_not_in_its_space_and_is_flattened_to_what_stands_for_another_observation() {
    let plan = |space: &str, observation: &str| {
        plan("python:shapes:Observing", &format!(r#"{{"space": "{space}", "observation": "{observation}"}}"#), "{}")
    };
    for (space, observation, told) in [
        ("Discrete(4)", "-1", "gave -1 in its first reset, which is not one of Discrete(4): a run goes on and takes it for one that is"),
        ("Discrete(4, start=1)", "0", "gave 0 in its first reset, which is not one of Discrete(4, start=1)"),
        ("MultiDiscrete([3, 4])", "numpy.array([2, -1])", "gave array([ 2, -1]) in its first reset, which is not one of MultiDiscrete"),
        ("MultiDiscrete([3, 4])", "[3, 0]", "gave [3, 0] in its first reset, which is not one of MultiDiscrete"),
        ("Tuple([Discrete(3), MultiDiscrete([2, 2], start=[1, 1])])", "(0, [3, 1])", "gave [3, 1] in its first reset, which is not one of"),
        ("MultiBinary([2, 3])", "numpy.ones((3, 2))", "an array of the shape (3, 2) in its first reset, which is not one of MultiBinary("),
        (
            "Dict(a=Box(0, 1, (2, 3)))",
            "dict(a=numpy.zeros((3, 2)))",
            "an array of the shape (3, 2) in its first reset, which is not one of Box(",
        ),
        ("Tuple([Discrete(2), Discrete(3)])", "(1, numpy.int64(-3))", "which is not one of Discrete(3)"),
    ] {
        let plan = plan(space, observation);
        assert!(plan.matches("is not one of").count() == 1 && plan.contains(told), "{space}: {plan}");
    }
    for (space, observation) in [
        ("Discrete(4, start=-1)", "-1"),
        ("Dict(a=Box(0, 1, (1,)), b=MultiDiscrete([2, 2]))", "dict(a=0.5, b=[0, 1])"),
        ("MultiDiscrete([3, 4], start=[1, 1])", "[3, 4]"),
        ("MultiBinary([2, 3])", "numpy.ones((2, 3))"),
    ] {
        assert!(!plan(space, observation).contains("is not one of"), "{space}");
    }
}

#[test]
fn the_plan_names_wrappers_that_scale_by_what_each_has_seen_and_the_keys_to_use_instead() {
    let plan = |arguments: &str| plan("python:shapes:make_scaled", arguments, "{}");
    for (wrappers, named) in [
        (r#"["NormalizeObservation"]"#, "with NormalizeObservation each environment"),
        (r#"["NormalizeObservation"]"#, "use algorithm.normalise_observations=true instead"),
        (r#"["NormalizeReward"]"#, "use algorithm.normalise_rewards=true instead"),
        (
            r#"["NormalizeReward", "NormalizeObservation"]"#,
            "use algorithm.normalise_observations=true and algorithm.normalise_rewards=true instead",
        ),
    ] {
        let plan = plan(&format!(r#"{{"wrappers": {wrappers}}}"#));
        assert!(plan.contains(named), "{wrappers}: {plan}");
    }
    for quiet in [r#"{"wrappers": []}"#, r#"{"wrappers": ["NormalizeObservation"], "learns": false}"#] {
        assert!(!plan(quiet).contains("each environment scales"), "{quiet}: {}", plan(quiet));
    }
}

#[test]
fn the_plan_names_an_image_that_is_flattened_with_the_dictionary_in_which_it_lies() {
    let plan = |side: u32| plan("python:shapes:Seeing", &format!(r#"{{"side": {side}}}"#), "{}");
    let told = "observation['cameras'][0] is an image of 16x16x1 numbers, and is flattened to a row";
    assert!(plan(16).contains(told), "{}", plan(16));
    assert!(!plan(15).contains("is an image"), "{}", plan(15));
}

#[test]
fn an_environment_of_the_old_interface_is_told_what_reset_returns() {
    let python_path = format!("environment.python_path={}", python::folder().display());
    for id in ["environment.id=python:faulty:OldApi", "environment.id=python:shapes:OldReset"] {
        let refused = refusal(&[id, &python_path]);
        assert!(refused.contains("raised an exception in reset: TypeError: reset() must return (observation, info)"), "{refused}");
        assert_eq!(refused.lines().count(), 2, "{refused}");
    }
}

#[test]
fn an_exception_that_names_a_file_whose_name_is_no_utf_8_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let task = "from shapes import Shown\n\nclass Task(Shown):\n    def reset(self, **given):\n        \
                raise RuntimeError('cannot open ' + b'caf\\xe9.xml'.decode('utf-8', 'surrogateescape'))\n";
    std::fs::write(folder.path().join("task.py"), task).unwrap();
    let python_path = format!("environment.python_path={}:{}", folder.path().display(), python::folder().display());
    let refused = refusal(&["environment.id=python:task:Task", &python_path]);
    assert!(refused.contains(r"in reset: RuntimeError: cannot open caf\udce9.xml"), "{refused}");
}

#[test]
fn a_file_that_python_cannot_read_is_told_with_its_line() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("typo.py"), "class Typo:\n    def step(self:\n        pass\n").unwrap();
    let refused = refusal(&["environment.id=python:typo:Typo", &format!("environment.python_path={}", folder.path().display())]);
    for part in ["SyntaxError: ", "typo.py\", line 2", "def step(self:"] {
        assert!(refused.contains(part), "{part}: {refused}");
    }
}

#[test]
fn a_constructor_or_first_step_that_hangs_is_given_up_with_its_stack() {
    for (how, calls) in [
        ("hang in its constructor", &["in hang\n", "in __init__"][..]),
        ("hang", &["in hang\n", "in step"]),
        ("hang in native code", &["in step"]),
    ] {
        let request = python::request("python:faulty:Faulty", &format!(r#"{{"how": "{how}", "after": 0}}"#));
        let request = EnvironmentRequest { patience: Duration::from_secs(3), ..request };
        let hung = request.examine().unwrap_err().to_string();
        assert!(hung.contains("was not made, reset and stepped once within 3 s"), "{hung}");
        let (_, stack) = hung.split_once("innermost call first:\n").unwrap();
        assert!(calls.iter().all(|call| stack.contains(call)), "{hung}");
        assert!(stack.lines().all(|line| line.contains("faulty.py")), "calls of the environment alone: {hung}");
    }
}

#[test]
fn an_environment_that_takes_long_to_try_or_to_close_is_told_once_with_what_it_is_at() {
    for (arguments, doing, moment) in
        [(r#"{"pause_s": 4, "steps": 1}"#, "trying", "first step"), (r#"{"pause_s": 0, "steps": 1, "close_s": 4}"#, "closing", "close()")]
    {
        let plan = plan("python:pausing:Pausing", arguments, "{}");
        let told = format!(
            "{doing} the environment python:pausing:Pausing has taken 2 s, and its {moment} is not over; after 60 s it is given up\n"
        );
        assert!(plan.matches(&told).count() == 1 && plan.matches(" has taken 2 s").count() == 1, "{plan}");
    }
}

#[test]
fn an_environment_that_hangs_as_it_is_closed_is_given_up_and_nothing_is_written_to_its_files() {
    let folder = tempfile::tempdir().unwrap();
    let recording = folder.path().join("recording").display().to_string();
    let task = format!(
        "import time\nfrom shapes import Shown\n\nclass Task(Shown):\n    def close(self):\n        \
         with open({recording:?}, 'w'):\n            time.sleep(600)\n"
    );
    std::fs::write(folder.path().join("task.py"), task).unwrap();
    let request = EnvironmentRequest {
        search_folders: vec![folder.path().to_owned(), python::folder()],
        patience: Duration::from_secs(3),
        ..EnvironmentRequest::new("python:task:Task")
    };
    request.examine().unwrap();
    assert_eq!(std::fs::read_to_string(recording).unwrap(), "");
}

#[test]
fn what_an_environment_leaves_behind_holds_up_no_refusal_and_is_ended() {
    let request = python::request("python:faulty:Faulty", r#"{"how": "leave a helper behind"}"#);
    let request = EnvironmentRequest { patience: Duration::from_secs(60), ..request };
    let (sender, refusals) = std::sync::mpsc::channel();
    std::thread::spawn(move || sender.send(request.examine().unwrap_err().to_string()));
    let refused = refusals.recv_timeout(Duration::from_secs(120)).expect("the helper is not waited for");
    let (_, rest) = refused.split_once("its helper is process ").unwrap_or_else(|| panic!("{refused}"));
    let helper = Path::new("/proc").join(rest.split('.').next().unwrap()).join("stat");
    // The state Z is a dead process that nobody has reaped yet.
    let lives = || std::fs::read_to_string(&helper).is_ok_and(|stat| !stat.contains(") Z ") && !stat.contains(") X "));
    programs::wait_until("the end of the helper", || refused.clone(), || !lives());
}

#[test]
fn a_python_without_gymnasium_is_told_which_command_installs_it() {
    let folder = tempfile::tempdir().unwrap();
    let bare = folder.path().join("a bare one");
    let python = shoal::machine::Python::find("").unwrap();
    assert!(python.command().args(["-m", "venv", "--without-pip"]).arg(&bare).status().unwrap().success());
    let interpreter = bare.join("bin/python").display().to_string();
    let missing = refusal(&[&format!("environment.python={interpreter}")]);
    // Without pip, as uv makes them.
    assert!(missing.contains(&format!("install it:  uv pip install --python '{interpreter}' \"gymnasium[")), "{missing}");
}

#[test]
fn a_python_without_ctypes_is_told_of_it() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("sitecustomize.py"), "import sys\nsys.modules['ctypes'] = None\n").unwrap();
    std::fs::write(folder.path().join("task.py"), "import ctypes\n").unwrap();
    let python_path = format!("environment.python_path={}", folder.path().display());
    let mut command = supervisor(folder.path(), &["environment.id=python:task:Task", &python_path]);
    let output = command.env("PYTHONPATH", folder.path()).output().unwrap();
    let refused = said(&output);
    assert_eq!(output.status.code(), Some(1), "{refused}");
    assert!(refused.contains("ModuleNotFoundError: import of ctypes halted") && !refused.contains("shoal_bridge"), "{refused}");
}

#[test]
fn a_python_for_which_box2d_would_have_to_be_compiled_is_not_told_to_install_it() {
    let python = shoal::machine::Python::find("").unwrap();
    let advised = |version: &str, processor: &str| {
        let code = format!(
            "import os, sys, types; sys.version_info = {version}; os.uname = lambda: types.SimpleNamespace(machine='{processor}'); \
             exec(open(sys.argv[1]).read()); print(package_of('gymnasium'))"
        );
        let faults = concat!(env!("CARGO_MANIFEST_DIR"), "/src/environments/python/faults.py");
        told(&python.command().args(["-c", &code, faults]).output().unwrap())
    };
    let with = advised("(3, 13)", "x86_64");
    assert!(with.starts_with("gymnasium[classic-control,box2d,mujoco]=="), "{with}");
    for without in [advised("(3, 14)", "x86_64"), advised("(3, 13)", "aarch64")] {
        assert!(without.starts_with("gymnasium[classic-control,mujoco]=="), "{without}");
    }
}

#[test]
fn a_program_that_is_no_python_is_refused_without_the_script_that_it_was_given() {
    let refused = refusal(&["environment.python=/bin/ls"]);
    assert!(refused.contains("/bin/ls is no Python") && !refused.contains("import"), "{refused}");
}

#[test]
fn a_python_of_another_version_is_refused_and_both_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("python");
    let facts = r#"{"executable": "/other/python", "version": "3.8.2", "abi": "3.8", "prefix": "/other", "package_folders": []}"#;
    std::fs::write(&program, format!("#!/bin/sh\necho '{facts}'\n")).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o700)).unwrap();
    let other = refusal(&[&format!("environment.python={}", program.display())]);
    let linked = shoal::machine::LinkedPython::detect().unwrap().abi;
    assert!(other.contains(&format!("linked with Python {linked}")) && other.contains("/other/python is Python 3.8"), "{other}");
}
