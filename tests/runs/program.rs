//! `shoal`, the program with all commands, and what every program says when something else was probably meant.

use std::collections::BTreeSet;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use crate::support::programs::{WATCHDOG, program, said, told, wait_for};

/// A short run that learns next to nothing.
const SHORT: &[&str] = &[
    "network.hidden=[16]",
    "learner.batch_size=32",
    "replay.min_size=200",
    "replay.capacity=4000",
    "actor.random_steps=100",
    "run.stop_env_steps=2000",
    "evaluator.episodes=2",
    "evaluator.interval_ms=10",
];

/// `shoal` with `arguments`, in a folder of its own.
fn shoal(folder: &Path, arguments: &[&str]) -> Output {
    program("shoal", folder).args(arguments).current_dir(folder).output().unwrap()
}

/// The error of the supervisor for `arguments` that it refuses.
fn refusal(arguments: &[&str]) -> String {
    let folder = tempfile::tempdir().unwrap();
    let output = program("supervisor", folder.path()).args(arguments).current_dir(folder.path()).output().unwrap();
    assert!(!output.status.success(), "{}", said(&output));
    said(&output)
}

fn preset_file(name: &str) -> String {
    format!("{}/configs/{name}.toml", env!("CARGO_MANIFEST_DIR"))
}

fn with_changes<'a>(arguments: &[&'a str], changes: &[&'a str]) -> Vec<&'a str> {
    arguments.iter().copied().chain(changes.iter().flat_map(|change| ["--set", change])).collect()
}

/// The run folders below `root`.
fn run_folders(root: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(root).unwrap().map(|entry| entry.unwrap().path());
    entries.filter(|path| path.join("run.json").is_file() && !path.is_symlink()).collect()
}

/// What a command with `--seeds` in `folder` has made for all of them, if it has.
fn seeds_folder(folder: &Path) -> Option<PathBuf> {
    let mut entries = std::fs::read_dir(folder.join("runs")).ok()?.map(|entry| entry.unwrap().path());
    entries.find(|path| path.to_string_lossy().ends_with("-seeds"))
}

/// A command that trains until it is interrupted. A test that fails interrupts it too: killed, it would leave its runs behind.
struct Endless(Option<Child>);

impl Endless {
    fn start(command: &mut Command) -> Self {
        Self(Some(command.spawn().unwrap()))
    }

    /// Interrupt it, and wait for what it says.
    fn end(mut self) -> Output {
        let child = self.0.take().expect("it has not ended yet");
        interrupt(&child).unwrap();
        child.wait_with_output().unwrap()
    }
}

impl Drop for Endless {
    fn drop(&mut self) {
        let Some(mut child) = self.0.take() else { return };
        let _ = interrupt(&child);
        let deadline = Instant::now() + WATCHDOG;
        while matches!(child.try_wait(), Ok(None)) && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(20));
        }
        let _ = child.kill();
        let _ = child.wait();
    }
}

fn interrupt(child: &Child) -> nix::Result<()> {
    kill(Pid::from_raw(child.id().cast_signed()), Signal::SIGINT)
}

#[test]
fn a_key_typed_as_an_option_is_told_how_to_be_set() {
    let file = preset_file("cartpole_dqn");
    let hint = refusal(&[&file, "--learning_rate", "1e-3"]);
    assert!(hint.contains("--set learner.learning_rate=1e-3"), "{hint}");
    let hint = refusal(&[&file, "--learner.batch-size=512"]);
    assert!(hint.contains("--set learner.batch_size=512"), "{hint}");
    let hint = refusal(&[&file, "--chek"]);
    assert!(hint.contains("--check") && !hint.contains("--set"), "{hint}");
}

#[test]
fn a_change_that_a_shell_would_split_is_told_in_quotes() {
    let file = preset_file("cartpole_dqn");
    for typed in [&["network.hidden=[64, 64]"][..], &["--net_arch", "[64, 64]"], &["--hidden=[64, 64]"]] {
        let hint = refusal(&[&[file.as_str()][..], typed].concat());
        let advice = hint.lines().find_map(|line| Some(line.split_once("write: ")?.1)).unwrap_or_else(|| panic!("{hint}"));
        assert_eq!(shlex::split(advice).unwrap(), ["--set", "network.hidden=[64, 64]"], "{hint}");
    }
}

#[test]
fn a_command_that_changes_no_key_is_not_told_how_to() {
    let folder = tempfile::tempdir().unwrap();
    for arguments in [&["evaluate", "runs/latest", "evaluator.greedy=false"][..], &["inspect", "--count", "3"], &["evaluate", "--resume"]] {
        let refused = shoal(folder.path(), arguments);
        assert!(!refused.status.success() && !said(&refused).contains("write:"), "{}", said(&refused));
    }
    // A run that goes on keeps its name and its algorithm.
    let refused = said(&shoal(folder.path(), &["resume", "runs/latest", "--name", "x"]));
    assert!(!refused.contains("run.name") && !refused.contains("algorithm.name"), "{refused}");
    for (arguments, hint) in [
        (&["resume", "runs/latest", "evaluator.greedy=false"][..], "--set evaluator.greedy=false"),
        (&["--resume", "runs/latest"], "resume RUN"),
    ] {
        let refused = shoal(folder.path(), arguments);
        assert!(said(&refused).contains(&format!("write: {hint}")), "{}", said(&refused));
    }
}

#[test]
fn a_run_that_is_to_be_resumed_by_an_option_is_told_the_command() {
    for arguments in [&["--resume", "runs/latest"][..], &["configs/x.toml", "--resume"]] {
        let hint = refusal(arguments);
        assert!(hint.contains("write: resume RUN"), "{hint}");
    }
}

#[test]
fn several_seeds_are_told_the_command_that_has_them() {
    let resumed = tempfile::tempdir().unwrap();
    let of_resume = said(&shoal(resumed.path(), &["resume", "runs/latest", "--seeds", "1-3"]));
    for hint in [refusal(&[&preset_file("cartpole_dqn"), "--seeds", "1-5"]), of_resume] {
        assert!(hint.contains("write: shoal train CONFIG --seeds SEEDS") && !hint.contains("run.seed"), "{hint}");
    }
}

#[test]
fn an_environment_instead_of_a_file_is_told_its_preset() {
    let hint = refusal(&["CartPole-v1"]);
    assert_eq!(
        hint.trim(),
        "error: there is no file CartPole-v1; its preset is configs/cartpole_dqn.toml, and `shoal train CartPole-v1` finds it"
    );
    let hint = refusal(&["LunarLander-v3"]);
    assert!(hint.contains("configs/lunarlander_ppo.toml"), "{hint}");
    let hint = refusal(&[&preset_file("cartpole_dqn"), "--set", "environment.id=LunarLander-v3"]);
    assert!(hint.contains("write `gymnasium:LunarLander-v3`"), "{hint}");
}

#[test]
fn a_shell_completes_commands_and_options() {
    let folder = tempfile::tempdir().unwrap();
    let completed = |words: &str| {
        let script = format!(
            "source <(shoal completions bash); COMP_WORDS=({words}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); \
             _shoal shoal \"${{COMP_WORDS[COMP_CWORD]}}\" \"${{COMP_WORDS[COMP_CWORD-1]}}\"; echo \"${{COMPREPLY[@]}}\""
        );
        let programs = Path::new(env!("CARGO_BIN_EXE_shoal")).parent().unwrap().display().to_string();
        let path = std::env::var("PATH").map_or_else(|_| programs.clone(), |others| format!("{programs}:{others}"));
        told(&std::process::Command::new("bash").args(["-c", &script]).env("PATH", path).current_dir(folder.path()).output().unwrap())
    };
    assert_eq!(completed("shoal ev").trim(), "evaluate");
    assert_eq!(completed("shoal train --see").trim(), "--seed --seeds");
    assert!(completed("shoal evaluate --weights ''").contains("best last"));
}

#[test]
fn the_page_of_commands_has_every_command_with_its_options() {
    let folder = tempfile::tempdir().unwrap();
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/commands.md")).unwrap();
    let overview = told(&shoal(folder.path(), &["--help"]));
    let (_, listed) = overview.split_once("Commands:\n").unwrap_or_else(|| panic!("{overview}"));
    // The further lines of a description are indented more.
    let entries = listed.lines().take_while(|line| !line.is_empty()).filter_map(|line| line.strip_prefix("  "));
    let commands = entries.filter(|entry| !entry.starts_with(' ')).filter_map(|entry| entry.split(' ').next());
    for command in commands.filter(|command| *command != "help") {
        let section = page.split("\n## ").find(|section| section.lines().next() == Some(command));
        let section = section.unwrap_or_else(|| panic!("docs/commands.md has no section {command}"));
        let help = told(&shoal(folder.path(), &[command, "--help"]));
        let option = |line: &str| Some(line.split_once("--")?.1.split([' ', '`']).next()?.to_owned());
        let known = help.lines().filter(|line| line.trim_start().starts_with('-')).filter_map(option);
        let shown = section.lines().filter(|line| line.starts_with("| `--")).filter_map(option);
        assert_eq!(
            shown.collect::<BTreeSet<_>>(),
            known.filter(|option| option != "help").collect::<BTreeSet<_>>(),
            "the options of {command} in docs/commands.md, and those that it has"
        );
    }
}

#[test]
fn the_presets_are_listed_with_goal_score_and_time() {
    let folder = tempfile::tempdir().unwrap();
    let list = told(&shoal(folder.path(), &["presets"]));
    let line = list.lines().find(|line| line.starts_with("cartpole_dqn ")).unwrap_or_else(|| panic!("{list}"));
    assert!(line.contains("CartPole-v1") && line.contains("dqn") && line.contains("475"), "{line}");
    let json: Value = serde_json::from_str(&told(&shoal(folder.path(), &["presets", "--json"]))).unwrap();
    let listed = json["presets"].as_array().unwrap();
    assert_eq!(listed.len(), shoal::presets::PRESETS.len());
    assert!(listed.iter().all(|preset| preset["score"].is_string()));
}

#[test]
fn training_finds_a_preset_by_its_environment_and_carries_the_name_into_what_is_started_from_its_folder() {
    let folder = tempfile::tempdir().unwrap();
    let changes = [SHORT, &["evaluator.enabled=false", "replay.samples_per_insert=16.0"]].concat();
    let first = shoal(folder.path(), &with_changes(&["train", "Pendulum-v1", "--name", "first try"], &changes));
    assert!(first.status.success() && said(&first).contains("preset      pendulum_sac (the environment also has"), "{}", said(&first));
    let again = shoal(folder.path(), &["train", "runs/latest/config.toml"]);
    assert!(again.status.success(), "{}", said(&again));
    let folders = run_folders(&folder.path().join("runs"));
    assert_eq!(folders.len(), 2, "{folders:?}");
    assert!(folders.iter().all(|path| path.to_string_lossy().contains("-first_try-")), "{folders:?}");
    let resolved = folders.iter().map(|path| std::fs::read_to_string(path.join("config.toml")).unwrap()).collect::<Vec<_>>();
    assert_eq!(resolved[0], resolved[1], "a run of a resolved configuration resolves to itself");
    assert!(resolved[0].contains("initial_entropy_temperature") && !resolved[0].contains("epsilon_start"), "{}", resolved[0]);
}

#[test]
fn a_folder_that_is_called_as_a_preset_or_an_environment_hides_neither() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["cartpole_dqn", "CartPole-v1"] {
        std::fs::create_dir(folder.path().join(name)).unwrap();
        let checked = shoal(folder.path(), &["train", name, "--check"]);
        assert!(checked.status.success(), "{}", said(&checked));
    }
}

#[test]
fn a_file_of_a_presets_name_that_is_not_read_is_named() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("configs")).unwrap();
    let file = folder.path().join("configs/cartpole_dqn.toml");
    let preset = || shoal(folder.path(), &["train", "cartpole_dqn", "--check"]);
    std::fs::copy(preset_file("cartpole_dqn"), &file).unwrap();
    assert!(!said(&preset()).contains("is not read"), "{}", said(&preset()));
    std::fs::write(&file, "[environment]\nid = \"Acrobot-v1\"\n").unwrap();
    assert!(said(&preset()).contains("configs/cartpole_dqn.toml differs and is not read"), "{}", said(&preset()));
    let path = shoal(folder.path(), &["train", "configs/cartpole_dqn.toml", "--check"]);
    assert!(said(&path).contains("Acrobot-v1"), "{}", said(&path));
}

#[test]
fn a_home_that_no_shell_has_expanded_is_no_folder_for_runs() {
    let folder = tempfile::tempdir().unwrap();
    for (path, more) in
        [("~/runs", &["--check"][..]), ("~", &["--check"]), ("~somebody/runs", &["--check"]), ("~/runs", &["--seeds", "1-2"])]
    {
        let changed = format!("run.folder={path}");
        let refused = shoal(folder.path(), &[&["train", "cartpole_dqn", "--set", &changed][..], more].concat());
        assert!(!refused.status.success() && said(&refused).contains("run.folder = \"~"), "{}", said(&refused));
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "nothing is left");
}

#[test]
fn a_goal_that_was_written_for_another_environment_is_remarked_on() {
    let folder = tempfile::tempdir().unwrap();
    let check = |changes: &[&str]| said(&shoal(folder.path(), &with_changes(&["train", "cartpole_dqn", "--check"], changes)));
    let remark = check(&["environment.id=Acrobot-v1"]);
    assert!(remark.contains("the goal of 475 (configs/cartpole_dqn.toml:") && remark.contains("run.stop_eval_return"), "{remark}");
    for changes in [&["environment.id=Acrobot-v1", "run.stop_eval_return=-100"][..], &["environment.id=CartPole-v1"]] {
        assert!(!check(changes).contains("written for another environment"), "{}", check(changes));
    }
    let changes = [SHORT, &["environment.id=Acrobot-v1"]].concat();
    let seeds = said(&shoal(folder.path(), &with_changes(&["train", "cartpole_dqn", "--seeds", "1"], &changes)));
    assert!(seeds.contains("note        the goal of 475 (configs/cartpole_dqn.toml:"), "{seeds}");
}

#[test]
fn the_algorithm_that_is_asked_for_chooses_among_the_presets_of_an_environment() {
    let folder = tempfile::tempdir().unwrap();
    let output = shoal(folder.path(), &["train", "CartPole-v1", "--set", "algorithm.name=ppo", "--check"]);
    assert!(output.status.success() && said(&output).contains("cartpole_ppo"), "{}", said(&output));
}

#[test]
fn a_name_that_means_nothing_is_told_what_may_have_been_meant() {
    let folder = tempfile::tempdir().unwrap();
    let refusal = |asked: &str| {
        let output = shoal(folder.path(), &["train", asked]);
        assert!(!output.status.success(), "{}", said(&output));
        said(&output)
    };
    assert!(refusal("cartpol_ppo").contains("did you mean `cartpole_ppo`?"), "{}", refusal("cartpol_ppo"));
    assert!(refusal("Pendulum-v2").contains("did you mean `Pendulum-v1`?"), "{}", refusal("Pendulum-v2"));
    for class in ["my_task:MyTask", "tasks/my_task.py:MyTask"] {
        assert!(refusal(class).contains(&format!("did you mean `python:{class}`?")), "{}", refusal(class));
    }
    for slip in ["mujok:InvertedPendulum-v5", "atary:Zaxxon", "gymnasum:Zaxxon-v0"] {
        assert!(!refusal(slip).contains("python:"), "{}", refusal(slip));
    }
    assert!(refusal("zaxxon").contains("`shoal presets` lists them"), "{}", refusal("zaxxon"));
    let without = refusal("MountainCarContinuous-v0");
    assert!(without.contains("no preset for MountainCarContinuous-v0") && without.contains("--set algorithm.name=ppo"), "{without}");
    assert!(refusal("configs/absent.toml").contains("cannot be read"), "{}", refusal("configs/absent.toml"));
}

#[test]
fn what_is_wrong_with_an_environment_without_a_file_points_into_none() {
    let folder = tempfile::tempdir().unwrap();
    let output = shoal(folder.path(), &["train", "CartPole-v1", "--check", "--set", "algorithm.name=sac"]);
    // Two settings contradict each other; the error names the one that was typed.
    assert!(!output.status.success() && said(&output).starts_with("error: --set algorithm.name=sac: "), "{}", said(&output));
    let output = shoal(folder.path(), &["train", "mujoco:Absent-v1", "--check", "--set", "algorithm.name=ppo"]);
    assert!(!output.status.success() && said(&output).matches("mujoco:Absent-v1").count() == 1, "{}", said(&output));
    let output = shoal(folder.path(), &["train", "CartPole-v1", "--check", "--set", "algorithm.name=SAC"]);
    assert!(said(&output).contains("unknown algorithm `SAC` (did you mean `sac`?)"), "{}", said(&output));
}

#[test]
fn a_preset_of_another_algorithm_than_was_asked_for_is_told_what_to_train_instead() {
    let folder = tempfile::tempdir().unwrap();
    for (preset, instead) in
        [("cartpole_dqn", "shoal train cartpole_ppo\n"), ("acrobot_dqn", "shoal train Acrobot-v1 --set algorithm.name=ppo\n")]
    {
        let refused = shoal(folder.path(), &["train", preset, "--set", "algorithm.name=ppo"]);
        let said = said(&refused);
        assert!(!refused.status.success() && said.ends_with(instead) && said.lines().count() == 1, "{said}");
    }
}

#[test]
fn options_that_are_given_twice_or_contradict_several_seeds_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    for arguments in [
        &["--seed", "1", "--set", "run.seed=2"][..],
        &["--seeds", "1-2", "--set", "run.seed=3"],
        &["--name", "one", "--set", "run.name=other"],
        &["--jobs", "2", "--check"],
        &["--jobs", "2", "--seed", "1"],
    ] {
        let refused = shoal(folder.path(), &[&["train", "cartpole_dqn"][..], arguments].concat());
        assert!(!refused.status.success(), "{arguments:?}: {}", said(&refused));
    }
    assert!(!folder.path().join("runs").exists());
}

#[test]
fn a_time_to_measure_rates_over_is_refused_where_none_are_measured() {
    let folder = tempfile::tempdir().unwrap();
    for arguments in [&["--clean"][..], &[], &["runs/latest", "--live"], &["runs/latest", "--transition", "3"]] {
        let refused = shoal(folder.path(), &[&["inspect", "--interval-ms", "500"][..], arguments].concat());
        assert!(refused.status.code() == Some(2), "{arguments:?}: {}", said(&refused));
    }
}

#[test]
fn a_configuration_from_a_pipe_is_taken_where_the_program_reads_it_once() {
    let folder = tempfile::tempdir().unwrap();
    let train = |environment: &str, options: &[&str]| {
        let (reader, mut writer) = std::io::pipe().unwrap();
        writeln!(writer, "[environment]\nid = \"{environment}\"").unwrap();
        let mut piped = program("shoal", folder.path());
        piped.args(["train", "/dev/stdin"]).args(options).current_dir(folder.path()).stdin(reader);
        // Closing the pipe ends the text.
        drop(writer);
        piped.output().unwrap()
    };
    let checked = train("CartPole-v1", &["--check"]);
    assert!(checked.status.success() && said(&checked).contains("CartPole-v1"), "{}", said(&checked));
    let refused = train("gymnasium:CartPole-v1", &["--check"]);
    assert!(!refused.status.success() && said(&refused).contains("/dev/stdin can be read once"), "{}", said(&refused));
    told(&train("CartPole-v1", &with_changes(&["--seeds", "1-2"], SHORT)));
    // The program of each seed reads the configuration from a file. What the command refuses here comes after reading it.
    let refused = said(&train("gymnasium:CartPole-v1", &["--seeds", "1-2", "--set", "run.resume=auto"]));
    assert!(refused.contains("several seeds always begin anew") && !refused.contains("can be read once"), "{refused}");
}

#[test]
fn the_plan_of_several_seeds_is_checked_once() {
    let folder = tempfile::tempdir().unwrap();
    let checked = shoal(folder.path(), &["train", "cartpole_dqn", "--seeds", "7-9", "--jobs", "2", "--check"]);
    let plan = said(&checked);
    assert!(checked.status.success() && plan.contains("seeds       3, 2 at a time") && plan.contains("seed 7,"), "{plan}");
    assert!(plan.contains("machine.affinity is false"), "{plan}");
    assert!(!folder.path().join("runs").exists());
}

#[test]
fn a_run_that_is_over_is_told_where_it_would_go_on_and_what_it_cannot_change() {
    let folder = tempfile::tempdir().unwrap();
    let shoal = |arguments: &[&str]| said(&shoal(folder.path(), arguments));
    shoal(&with_changes(&["train", "CartPole-v1"], SHORT));
    let own = std::fs::read_link(folder.path().join("runs/latest")).unwrap();
    let plan = shoal(&["resume", "--check", "--set", "run.stop_env_steps=5000"]);
    assert!(plan.contains("goes on from checkpoint ") && plan.contains(&format!("runs/{}\n", own.display())), "{plan}");
    let anew = shoal(&with_changes(&["train", "CartPole-v1", "--check"], &[SHORT, &["run.resume=auto"]].concat()));
    assert!(anew.contains("no run called cartpole_dqn-seed1 waits to go on: a new one begins"), "{anew}");
    let ended = format!("{} has ended (step limit): a new run begins; `shoal inspect ", own.display());
    assert!(anew.contains(&ended) && anew.contains("if it left a checkpoint, how to go on with it"), "{anew}");
    let refused = shoal(&["resume", "--set", "algorithm.name=ppo"]);
    assert!(refused.contains("cannot go on with another algorithm.name: ") && refused.lines().count() == 1, "{refused}");
    let typed = shoal(&["train", "runs/latest"]);
    assert!(typed.contains("shoal resume runs/latest") && typed.contains("shoal train runs/latest/config.toml"), "{typed}");
    assert!(shoal(&["train", "."]).contains(". is a folder; name a file"), "{}", shoal(&["train", "."]));
}

#[test]
fn several_seeds_end_in_a_table_with_mean_and_interval_and_a_plot() {
    let folder = tempfile::tempdir().unwrap();
    let arguments = ["train", "CartPole-v1", "--seeds", "3,1-2", "--jobs", "2", "--name", "trio"];
    // Actors that sleep leave time for evaluations, also on a machine that does other things.
    let changes = [
        SHORT,
        &["run.stop_env_steps=8000", "replay.samples_per_insert=4.0", "environment.step_delay_us=200"],
        &["evaluator.confirm_episodes=2", "run.stop_eval_return=\"none\""],
    ];
    let changes = changes.concat();
    let output = shoal(folder.path(), &with_changes(&arguments, &changes));
    let table = told(&output);
    let firsts = table.lines().filter_map(|line| line.split_whitespace().next());
    // A seed may not have become better than it began, which a last line explains.
    let firsts: Vec<&str> = firsts.filter(|&first| first != "*").collect();
    assert_eq!(firsts, ["seed", "1", "2", "3", "mean", "95", "95"], "{table}");
    let group = seeds_folder(folder.path()).unwrap();
    let folders = run_folders(&group);
    assert_eq!(folders.len(), 3, "{folders:?}");
    let charts = group.join("tensorboard");
    let end = Path::new(group.file_name().unwrap()).join("tensorboard");
    let named = said(&output).lines().any(|line| line.starts_with("charts ") && line.ends_with(end.to_str().unwrap()));
    assert!(named && charts.read_dir().unwrap().count() == 3, "{}", said(&output));
    for seed in 1..=3 {
        let own = |path: &&PathBuf| std::fs::read_to_string(path.join("config.toml")).unwrap().contains(&format!("seed = {seed}\n"));
        let own = folders.iter().find(own).unwrap_or_else(|| panic!("no run has the seed {seed}"));
        assert!(own.file_name().unwrap().to_string_lossy().contains("trio"), "{own:?}");
        let log = std::fs::read_to_string(group.join(format!("seed-{seed}.log"))).unwrap();
        assert!(log.contains("stopped     step limit"), "{log}");
    }
    let kept: Value = serde_json::from_slice(&std::fs::read(group.join("seeds.json")).unwrap()).unwrap();
    let seeds = kept["seeds"].as_array().unwrap();
    assert!(seeds.iter().all(|seed| seed["env_steps"].as_u64() >= Some(2000) && seed["last_evaluation"].is_f64()), "{kept}");
    assert!(seeds.iter().all(|seed| seed["best_confirmed"].is_f64() == seed["best_env_steps"].is_u64()), "{kept}");
    let played = shoal(folder.path(), &["evaluate", "--episodes", "2", "--json"]);
    let played: Value = serde_json::from_str(&told(&played)).unwrap();
    let weights = Path::new(played["weights"].as_str().unwrap()).canonicalize().unwrap();
    assert!(weights.starts_with(group.canonicalize().unwrap()), "the newest run is one of theirs: {played}");
    let refused = shoal(folder.path(), &["inspect", group.to_str().unwrap()]);
    let newest = group.join("latest");
    assert!(!refused.status.success() && said(&refused).contains(newest.to_str().unwrap()), "{}", said(&refused));
    let plot = std::fs::read_to_string(group.join("curves.svg")).unwrap();
    assert!(plot.starts_with("<svg") && plot.contains("trio, 3 seeds") && plot.matches("<polyline").count() >= 4, "{plot}");
}

#[test]
fn all_seeds_have_the_configuration_that_the_command_was_given() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("mine.toml");
    std::fs::copy(preset_file("cartpole_dqn"), &file).unwrap();
    let mut command = program("shoal", folder.path());
    // So slow that the second has not begun when the file is overwritten.
    let changes = [SHORT, &["environment.step_delay_us=400"]].concat();
    command.args(with_changes(&["train", "mine.toml", "--seeds", "1-2"], &changes)).current_dir(folder.path());
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let group = wait_for("a folder for all seeds", String::new, || seeds_folder(folder.path()));
    std::fs::write(&file, "the next experiment").unwrap();
    told(&child.wait_with_output().unwrap());
    let [first, second]: [PathBuf; 2] = run_folders(&group).try_into().unwrap();
    let config = |run: &Path| {
        assert!(run.file_name().unwrap().to_string_lossy().contains("-mine-seed"), "{run:?}");
        let text = std::fs::read_to_string(run.join("config.toml")).unwrap();
        text.lines().filter(|line| !line.starts_with("seed = ")).map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(config(&first), config(&second));
    let again = shoal(folder.path(), &["train", group.join("config.toml").to_str().unwrap(), "--check"]);
    assert!(again.status.success(), "{}", said(&again));
}

#[test]
fn the_table_of_several_seeds_is_in_its_file_where_it_cannot_be_printed() {
    let folder = tempfile::tempdir().unwrap();
    // Takes as little as a terminal that was closed meanwhile.
    let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
    let mut command = program("shoal", folder.path());
    command.args(with_changes(&["train", "CartPole-v1", "--seeds", "1"], SHORT)).current_dir(folder.path()).stdout(full);
    let output = command.output().unwrap();
    assert!(!output.status.success() && said(&output).contains("seed 1 has ended"), "{}", said(&output));
    let table = std::fs::read(seeds_folder(folder.path()).unwrap().join("seeds.json")).unwrap();
    let table: Value = serde_json::from_slice(&table).unwrap();
    assert!(table["seeds"][0]["seed"] == 1 && table["seeds"][0]["succeeded"] == true, "{table}");
}

#[test]
fn the_table_of_several_seeds_is_printed_where_its_file_cannot_be_written() {
    let folder = tempfile::tempdir().unwrap();
    let changes = [SHORT, &["run.stop_env_steps=1000000000", "run.stop_eval_return=none"]].concat();
    let arguments = with_changes(&["train", "CartPole-v1", "--seeds", "1-2"], &changes);
    let mut command = program("shoal", folder.path());
    command.args(arguments).current_dir(folder.path()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let endless = Endless::start(&mut command);
    let begun = || {
        let group = seeds_folder(folder.path())?;
        let has_metrics = |path: &PathBuf| std::fs::metadata(path.join("metrics.jsonl")).is_ok_and(|file| file.len() > 0);
        run_folders(&group).iter().any(has_metrics).then_some(group)
    };
    let group = wait_for("a run", String::new, begun);
    // A folder of that name takes no file, as a full disk would not.
    std::fs::create_dir(group.join("seeds.json")).unwrap();
    let output = endless.end();
    let (table, said) = (String::from_utf8_lossy(&output.stdout), said(&output));
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(table.contains("interrupted"), "{table}");
    assert!(said.contains("seeds that did not begin: 2") && said.contains("cannot write ") && said.contains("seeds.json"), "{said}");
}

#[test]
fn a_signal_ends_the_seeds_that_run_starts_no_other_and_still_gives_a_table() {
    let folder = tempfile::tempdir().unwrap();
    let changes = [SHORT, &["run.stop_env_steps=1000000000", "run.stop_eval_return=none"]].concat();
    let arguments = with_changes(&["train", "CartPole-v1", "--seeds", "1-3", "--jobs", "2"], &changes);
    let mut command = program("shoal", folder.path());
    // Without cargo's variable, as a user starts it.
    command.args(arguments).current_dir(folder.path()).env_remove("CARGO_MANIFEST_DIR").stdout(Stdio::piped()).stderr(Stdio::piped());
    let endless = Endless::start(&mut command);
    let started = || {
        let group = seeds_folder(folder.path())?;
        let folders = run_folders(&group);
        let lines = |path: &PathBuf| std::fs::read_to_string(path.join("metrics.jsonl")).unwrap_or_default().lines().count();
        (folders.len() == 2 && folders.iter().all(|path| lines(path) > 0)).then_some(folders)
    };
    let folders = wait_for("two runs", String::new, started);
    for path in &folders {
        let record: Value = serde_json::from_slice(&std::fs::read(path.join("run.json")).unwrap()).unwrap();
        let supervisor = Pid::from_raw(record["supervisor_pid"].as_i64().unwrap().try_into().unwrap());
        assert_eq!(nix::unistd::getpgid(Some(supervisor)), Ok(supervisor), "a terminal's Ctrl+C would come to it twice");
    }
    let output = endless.end();
    assert_eq!(output.status.code(), Some(130));
    let table = String::from_utf8_lossy(&output.stdout);
    assert_eq!(table.matches("interrupted").count(), 2, "{table}");
    let said = said(&output);
    assert!(
        said.contains("seed 1 was interrupted") && said.contains("seeds that did not begin: 3") && !said.contains("has failed"),
        "{said}"
    );
    // By the program that was typed: another may lack the algorithm or the environment.
    let typed = env!("CARGO_BIN_EXE_shoal");
    assert_eq!(said.matches(&format!("goes on with: {typed} resume ")).count(), 2, "{said}");
    let (_, advised) = said.split_once(&format!("begin them with: {typed} ")).unwrap_or_else(|| panic!("{said}"));
    let advised = shlex::split(advised.lines().next().unwrap()).unwrap();
    let arguments: Vec<&str> = advised.iter().map(String::as_str).chain(["--check"]).collect();
    let plan = String::from_utf8(shoal(folder.path(), &arguments).stderr).unwrap();
    assert!(plan.contains("seeds       1, 2 at a time") && plan.contains("seed 3,"), "{plan}");
    for path in folders {
        let record: Value = serde_json::from_slice(&std::fs::read(path.join("run.json")).unwrap()).unwrap();
        assert_eq!(record["finished"]["reason"], "interrupted");
    }
}

#[test]
fn seeds_run_in_a_folder_of_any_name_that_a_configuration_can_hold() {
    use std::os::unix::ffi::OsStrExt;
    let folder = tempfile::tempdir().unwrap();
    let arguments = with_changes(&["train", "CartPole-v1", "--seeds", "1", "--name", "a\u{200d}b"], SHORT);
    // An ideographic space, which Rust's own spelling would escape as TOML does not.
    let odd = folder.path().join("run\u{3000}A");
    std::fs::create_dir(&odd).unwrap();
    told(&shoal(&odd, &arguments));
    let group = seeds_folder(&odd).unwrap();
    assert_eq!(run_folders(&group).len(), 1);
    let nameless = folder.path().join(std::ffi::OsStr::from_bytes(b"run\xe9"));
    std::fs::create_dir(&nameless).unwrap();
    let refused = shoal(&nameless, &arguments);
    let said = said(&refused);
    assert!(!refused.status.success() && said.contains("is not UTF-8"), "{said}");
}

#[test]
fn several_seeds_do_not_pretend_to_go_on_with_killed_ones() {
    let folder = tempfile::tempdir().unwrap();
    let refused = shoal(folder.path(), &with_changes(&["train", "CartPole-v1", "--seeds", "1-2"], &["run.resume=\"auto\""]));
    let said = said(&refused);
    assert!(!refused.status.success() && said.contains("run.resume") && said.contains("always begin anew"), "{said}");
    assert!(!folder.path().join("runs").exists());
}

#[test]
fn a_seed_that_fails_is_reported_with_its_log_and_fails_the_command() {
    let folder = tempfile::tempdir().unwrap();
    let output = shoal(folder.path(), &with_changes(&["train", "CartPole-v1", "--seeds", "1-2"], &["learner.device=cuda:250"]));
    assert_eq!(output.status.code(), Some(1));
    let table = String::from_utf8_lossy(&output.stdout);
    assert!(table.contains("failed, see seed-1.log") && table.contains("failed, see seed-2.log"), "{table}");
    let group = seeds_folder(folder.path()).unwrap();
    assert!(std::fs::read_to_string(group.join("seed-1.log")).unwrap().contains("learner.device"));
}
