//! The example crate with an algorithm and an environment of its own, compiled as a crate outside of this workspace: its program
//! trains by the ordinary supervisor, and attaches to its runs, inspects and evaluates them.

mod support {
    pub(crate) mod programs;
}

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use nix::sys::signal::Signal;
use serde_json::Value;
use support::programs::{Supervised, kill};
use tempfile::{TempDir, tempdir};

/// The longest that compiling the library once more may take, in seconds: a watchdog.
const COMPILING_S: &str = "1200";
/// The longest that a command of the program may take, in seconds: a watchdog.
const COMMAND_S: &str = "120";
/// The features of the example in a build that has what they need. The program then finds these libraries by itself, or no test passes.
const FEATURES: &str = if cfg!(all(feature = "python", feature = "mujoco")) { "python,mujoco" } else { "" };
/// A program with a thread that no forked process would have: each constructor of its environment starts one.
const THREADED: &str = r#"
#[path = "../environment.rs"]
mod environment;

use std::process::ExitCode;
use std::thread;
use std::time::Duration;

use environment::Corridor;
use shoal::prelude::Native;

fn start_thread() {
    thread::Builder::new().name("sleeper".into()).spawn(|| thread::sleep(Duration::from_secs(3600))).unwrap();
}

fn main() -> ExitCode {
    shoal::program::main(|catalogue| {
        catalogue.add_environment(environment::ID, || {
            start_thread();
            Ok(Native::new(Corridor::default()))
        })
    })
}
"#;
/// A run that does not end by itself, so that there is time to join it and look into it.
const WITHOUT_END: &[&str] = &["run.stop_env_steps=1000000000", "run.stop_eval_return=\"none\"", "run.metrics_interval_s=0.1"];

/// Folders of the build that the test belongs to: for the copy of the example, and for everything that is compiled.
fn folders() -> (PathBuf, PathBuf) {
    let temporary = Path::new(env!("CARGO_TARGET_TMPDIR"));
    (temporary.join("own_algorithm"), target_of(temporary).to_owned())
}

/// The target folder of cargo's folder `temporary` for tests. If settings name a processor, there is one for that in between.
fn target_of(temporary: &Path) -> &Path {
    let processor = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    temporary.ancestors().skip(1).find(|folder| !folder.ends_with(&processor)).expect("it lies in the folder of the build")
}

/// A copy of the example that names this library by its path. Always at the same place, so that what was compiled is found again.
fn copy() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let (folder, example) = (folders().0, root.join("examples/own_algorithm"));
    fs::create_dir_all(folder.join("src/bin")).unwrap();
    for file in ["corridor.toml", "build.rs", "src/main.rs", "src/algorithm.rs", "src/environment.rs"] {
        place(&folder.join(file), &fs::read_to_string(example.join(file)).unwrap());
    }
    place(&folder.join("src/bin/threaded.rs"), THREADED);
    let manifest = fs::read_to_string(example.join("Cargo.toml")).unwrap();
    let named = manifest.replace("path = \"../..\"", &format!("path = {:?}", root.display().to_string()));
    assert_ne!(named, manifest);
    place(&folder.join("Cargo.toml"), &named);
    lock(&folder, &fs::read_to_string(root.join("Cargo.lock")).unwrap());
    folder
}

/// Begin with the versions that everything else is tested with, which the text `locked` has. What cargo makes of it stays until there are
/// other versions.
fn lock(folder: &Path, locked: &str) {
    let begun = folder.join("Cargo.lock.begun");
    if fs::read_to_string(&begun).is_ok_and(|text| text == locked) {
        return;
    }
    place(&folder.join("Cargo.lock"), locked);
    place(&begun, locked);
}

/// Write in one step, and nothing where nothing changes: tests in other processes may do the same, and compile from it.
fn place(path: &Path, text: &str) {
    if fs::read_to_string(path).is_ok_and(|present| present == text) {
        return;
    }
    let unfinished = tempfile::NamedTempFile::new_in(path.parent().unwrap()).unwrap();
    fs::write(unfinished.path(), text).unwrap();
    unfinished.persist(path).unwrap();
}

/// Cargo on the copy, as its owner would call it: from elsewhere, so that no setting of this repository counts but where libraries are,
/// and offline. It shares the folder of this build, where most of what it needs has been compiled.
fn cargo(arguments: &[&str]) -> Output {
    let (manifest, elsewhere) = (copy().join("Cargo.toml"), tempdir().unwrap());
    let mut cargo = Command::new("timeout");
    cargo.args([COMPILING_S, env!("CARGO")]).args(arguments);
    cargo.args(["--offline", "--quiet", "--features", FEATURES, "--manifest-path"]).arg(manifest);
    cargo.arg("--config").arg(Path::new(env!("CARGO_MANIFEST_DIR")).join(".cargo/config.toml"));
    // The workspace compiles its dependencies in this way; with another setting all of them would be compiled again.
    cargo.env("CARGO_PROFILE_DEV_DEBUG", "false");
    let output = cargo.env("CARGO_TARGET_DIR", folders().1).current_dir(elsewhere.path()).output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    output
}

/// The example's program, compiled.
fn program() -> PathBuf {
    built("own_algorithm")
}

/// The program of this name in the copy of the example, compiled. Cargo says where it is.
fn built(name: &str) -> PathBuf {
    let messages = said(&cargo(&["build", "--bin", name, "--message-format=json-render-diagnostics"]));
    let executable = |line: &str| {
        let message: Value = serde_json::from_str(line).ok()?;
        message["executable"].as_str().filter(|_| message["target"]["name"] == name).map(PathBuf::from)
    };
    messages.lines().find_map(executable).expect("cargo has built a program")
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

/// A command of the program at `path`, as if from a shell in `folder`, which has its runs and its registry.
fn command(path: &Path, folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(path);
    command.args(arguments).current_dir(folder).env("XDG_RUNTIME_DIR", folder);
    // Cargo lets tests find the libraries that they are linked with.
    command.env_remove("LD_LIBRARY_PATH");
    // Cargo has set these for the test, not for the program.
    command.env_remove("CARGO_PKG_NAME").env_remove("CARGO_MANIFEST_DIR");
    command
}

/// Whether a command that ends by itself succeeded, and what it said.
fn run(path: &Path, folder: &Path, arguments: &[&str]) -> (bool, String) {
    let all: Vec<&str> = [COMMAND_S, path.to_str().unwrap()].iter().chain(arguments).copied().collect();
    let output = command(Path::new("timeout"), folder, &all).output().unwrap();
    (output.status.success(), said(&output))
}

/// A run of the corridor with these changes, in a folder of its own.
fn train(path: &Path, changes: &[&str]) -> Supervised {
    let folder = tempdir().unwrap();
    let mut arguments = vec!["train".to_owned(), folders().0.join("corridor.toml").display().to_string()];
    arguments.extend(["machine.affinity=false"].iter().chain(changes).flat_map(|change| ["--set".to_owned(), (*change).to_owned()]));
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let mut command = command(path, folder.path(), &arguments);
    command.stdout(Stdio::null()).stderr(Stdio::piped());
    Supervised::spawn(command, folder)
}

fn json(path: &Path, folder: &TempDir, arguments: &[&str]) -> Value {
    let (success, text) = run(path, folder.path(), arguments);
    assert!(success, "{arguments:?}: {text}");
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{arguments:?}: {error}: {text}"))
}

#[test]
fn a_crate_of_its_own_solves_its_own_environment_with_its_own_algorithm() {
    let program = program();
    // Training is so fast that an evaluation might come too late for the usual limit.
    let mut solved = train(&program, &["run.stop_env_steps=1000000000"]);
    let (status, output) = (solved.wait(), solved.output());
    assert!(status.success() && output.contains("solved"), "{output}");
    assert!(output.contains(&format!("{} evaluate runs/", program.display())), "how to play it: {output}");
    let confirmed = solved.evaluations().into_iter().filter(|line| line["kind"] == "confirmation");
    let best = confirmed.filter_map(|line| line["return_mean"].as_f64()).fold(f64::MIN, f64::max);
    assert!(best >= 0.95, "fresh episodes confirmed {best}: {:?}", solved.evaluations());
    let last = solved.metrics().pop().unwrap();
    assert!(last["largest_error"].as_f64().is_some_and(|error| error > 0.0) && last["loss"].is_number(), "{last}");
    assert!(last.get("policy_loss").is_none(), "what the algorithm does not declare: {last}");

    let played = json(&program, &solved.folder, &["evaluate", "runs/latest", "--episodes", "50", "--json"]);
    assert_eq!((&played["algorithm"], &played["environment"]), (&"expected_sarsa".into(), &"Corridor-v0".into()));
    // The shortest ways have 3 to 6 steps, and all but the last cost 0.01. Weights that have learned nothing find one exit at most. Weights
    // that a hundred fresh episodes confirmed may still fail from a place where an episode seldom begins.
    let returns: Vec<f64> = played["returns"].as_array().unwrap().iter().filter_map(serde_json::Value::as_f64).collect();
    let shortest = returns.iter().filter(|value| (0.95 - 1e-6..0.98 + 1e-6).contains(*value)).count();
    assert!(shortest >= 45 && played["return_max"].as_f64() < Some(0.98 + 1e-6), "{played}");
    let weights = solved.run_folder().join("weights/best.safetensors");
    let alone = json(&program, &solved.folder, &["evaluate", weights.to_str().unwrap(), "--episodes", "50", "--json"]);
    assert_eq!(alone["returns"], played["returns"], "a weights file alone is played alike");

    let report = json(&program, &solved.folder, &["inspect", "runs/latest", "--json"]);
    assert_eq!(report["metrics"]["largest_error"], last["largest_error"]);
    for stranger in [env!("CARGO_BIN_EXE_evaluate"), env!("CARGO_BIN_EXE_attach")] {
        let (success, text) = run(Path::new(stranger), solved.folder.path(), &["runs/latest"]);
        assert!(!success, "{text}");
        // Joining is refused first because the run is over.
        assert!(stranger.ends_with("attach") || text.contains("unknown environment `Corridor-v0`"), "{text}");
    }
    solved.assert_nothing_left();
}

#[test]
fn a_run_of_its_own_is_joined_and_looked_into_and_survives_a_killed_learner() {
    let program = program();
    let mut run_of_its_own = train(&program, WITHOUT_END);
    let updates = |line: &Value| line["updates"].as_u64().unwrap_or(0);
    run_of_its_own.wait_for_updates(100);
    let folder = run_of_its_own.folder.path().to_owned();

    let (success, text) = run(Path::new(env!("CARGO_BIN_EXE_attach")), &folder, &["runs/latest"]);
    assert!(!success && text.contains("unknown environment `Corridor-v0`") && text.contains("use that program"), "{text}");
    let mut attached: Child = command(&program, &folder, &["attach", "runs/latest", "--actors", "2"]).spawn().unwrap();
    run_of_its_own.wait_for("two attached actors", |line| line["attached"] == 2 && line["actors"] == 3);
    let pid = run_of_its_own.pid().to_string();
    let report = json(&program, &run_of_its_own.folder, &["inspect", &pid, "--json"]);
    let metrics = report["metrics"].as_array().unwrap();
    assert!(metrics.iter().any(|metric| metric["name"] == "largest_error" && metric["value"].is_number()), "{metrics:?}");

    kill(run_of_its_own.wait_for_process("learner"), Signal::SIGKILL);
    run_of_its_own.wait_for("a replacement", |line| line["restarts"] == 1);
    let before = updates(&run_of_its_own.metrics().pop().unwrap());
    run_of_its_own.wait_for("its updates", |line| updates(line) > before + 100);
    kill(attached.id(), Signal::SIGINT);
    assert!(attached.wait().unwrap().success());
    run_of_its_own.end_by(Signal::SIGTERM);
}

#[test]
fn its_algorithm_learns_from_bytes_in_an_environment_of_the_library() {
    let changes = ["environment.id=Catch-v0", "run.stop_env_steps=20000", "run.stop_eval_return=\"none\""];
    let mut run = train(&program(), &changes);
    run.succeed();
    let report = json(&program(), &run.folder, &["evaluate", "runs/latest", "--weights", "last", "--json"]);
    assert!(report["return_mean"].as_f64().is_some_and(|mean| mean > 0.0), "better than chance, which loses: {report}");
}

#[test]
fn what_is_wrong_with_its_names_and_keys_is_told_before_anything_starts() {
    let (program, folder) = (program(), tempdir().unwrap());
    let file = folders().0.join("corridor.toml").display().to_string();
    for (change, told) in [
        ("own.epsilom=0.2", "own.epsilom = 0.2: unknown key; did you mean `epsilon`?"),
        ("own.epsilon=1.5", "must be a number from 0 to 1; the default is 0.1"),
        ("own.epsilon=often", "expected a number from 0 to 1, found a string"),
        ("network.dueling=true", "it has no effect on expected_sarsa, only on dqn"),
        ("network.convolutions=[[8, 3, 1]]", "network.convolutions"),
        ("algorithm.name=expected_sasra", ", expected_sarsa\n"),
        ("algorithm.name=dqn", "dqn has no keys of its own; remove it"),
        ("environment.id=Coridor-v0", "did you mean `Corridor-v0`?"),
        ("environment.id=Pendulum-v1", "expected_sarsa needs discrete actions"),
    ] {
        let (success, text) = run(&program, folder.path(), &["train", &file, "--check", "--set", change]);
        assert!(!success && text.contains(told), "{change}: {text}");
    }
    let (success, text) = run(&program, folder.path(), &["train", &file, "--check", "--set", "own.epsilon=0.5"]);
    assert!(success && text.contains("expected_sarsa on Corridor-v0"), "{text}");
    assert!(!folder.path().join("runs").exists());
}

#[test]
fn threads_that_processes_of_a_run_would_not_have_are_named_before_anything_starts() {
    let (program, folder) = (built("threaded"), tempdir().unwrap());
    let train = ["train", "Corridor-v0", "--check", "--set", "algorithm.name=dqn"];
    let (success, text) = run(&program, folder.path(), &train);
    assert!(success && text.contains("threads beside its first (sleeper)") && text.contains("in the first `reset`"), "{text}");
}

#[test]
fn environments_that_need_a_library_are_there_with_its_feature_and_are_refused_by_its_name_without() {
    let (program, folder) = (program(), tempdir().unwrap());
    let file = folders().0.join("corridor.toml").display().to_string();
    for (id, feature, told) in [
        ("gymnasium:CartPole-v1", "python", "expected_sarsa on gymnasium:CartPole-v1"),
        // It is made, and has other actions.
        ("mujoco:Hopper-v5", "mujoco", "expected_sarsa needs discrete actions"),
    ] {
        let (_, text) = run(&program, folder.path(), &["train", &file, "--check", "--set", &format!("environment.id={id}")]);
        let told = if FEATURES.is_empty() { format!("the feature `{feature}`") } else { told.to_owned() };
        assert!(text.contains(&told), "{id}: {text}");
    }
}

/// Take `own.epsilon` out of the configuration of a checkpoint, as if the algorithm had not declared it yet.
fn forget_epsilon(checkpoint: &Path) {
    let [config, manifest, sum] = ["config.toml", "manifest.json", "manifest.crc32c"].map(|name| checkpoint.join(name));
    let text = fs::read_to_string(&config).unwrap();
    let without = text.replace("\n[own]\nepsilon = 0.1\n", "");
    assert_ne!(without, text);
    fs::write(&config, &without).unwrap();
    let mut content: Value = serde_json::from_slice(&fs::read(&manifest).unwrap()).unwrap();
    let entry = content["files"].as_array_mut().unwrap().iter_mut().find(|file| file["name"] == "config.toml").unwrap();
    (entry["bytes"], entry["crc32c"]) = (without.len().into(), crc32c::crc32c(without.as_bytes()).into());
    let content = content.to_string();
    fs::write(&manifest, &content).unwrap();
    fs::write(&sum, format!("{:08x}\n", crc32c::crc32c(content.as_bytes()))).unwrap();
}

#[test]
fn a_run_goes_on_when_its_algorithm_has_got_another_key_and_with_nothing_but_the_default_of_that() {
    let program = program();
    let mut begun = train(&program, &["own.epsilon=0.1", "run.stop_env_steps=2000", "run.stop_eval_return=none"]);
    begun.succeed();
    forget_epsilon(begun.checkpoints().last().unwrap());
    let resume = ["resume", "runs/latest", "--check", "--set", "run.stop_env_steps=4000"];
    let (success, text) = run(&program, begun.folder.path(), &resume);
    assert!(success && text.contains("goes on from checkpoint"), "{text}");
    let (success, text) = run(&program, begun.folder.path(), &[&resume[..], &["--set", "own.epsilon=0.3"]].concat());
    assert!(!success && text.contains("cannot go on with another own.epsilon"), "{text}");
}

#[test]
fn its_own_tests_pass() {
    cargo(&["test"]);
}

#[test]
fn it_shares_the_folder_of_this_build_also_where_settings_name_a_processor() {
    let processor = format!("/built/{}-unknown-linux-gnu/tmp", std::env::consts::ARCH);
    for temporary in ["/built/tmp", processor.as_str()] {
        assert_eq!(target_of(Path::new(temporary)), Path::new("/built"), "{temporary}");
    }
}

#[test]
fn it_has_the_versions_of_this_build_also_after_they_have_changed() {
    let folder = tempdir().unwrap();
    let file = folder.path().join("Cargo.lock");
    for (locked, built, expected) in [("one", "one of these", "one"), ("one", "one of these", "one of these"), ("two", "", "two")] {
        lock(folder.path(), locked);
        assert_eq!(fs::read_to_string(&file).unwrap(), expected);
        fs::write(&file, built).unwrap();
    }
}
