//! Saved policies can be played again, and what cannot be played is named.

use std::ffi::OsStr;
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Stdio;

use assert_cmd::Command;
use nix::sys::signal::{SigSet, Signal};
use serde_json::Value;
use shoal::checkpoint::{PolicyWeights, RunCheckpoint, WeightsMetadata};
use shoal::networks::{Head, NetworkSpec};

use crate::support::programs::{self, Supervised, said, start, start_preset, told, under};

fn evaluate(arguments: &[&str]) -> (bool, String, String) {
    evaluate_in(Path::new("."), arguments)
}

fn evaluate_in(folder: &Path, arguments: &[&str]) -> (bool, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_evaluate")).args(arguments).current_dir(folder).output().unwrap();
    let [out, error] = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap());
    (output.status.success(), out, error)
}

#[test]
fn weights_are_played_as_their_run_evaluated_them_even_if_their_file_is_named() {
    let overrides = ["evaluator.greedy=false", "run.stop_env_steps=4000", "run.stop_eval_return=none", "checkpoint.interval_s=none"];
    let mut run = start_preset("catch_appo", &overrides);
    run.succeed();
    let file = run.run_folder().join("weights/last.safetensors");
    for (path, which) in [(run.run_folder(), &["--weights", "last"][..]), (file.clone(), &[])] {
        let (success, out, error) = evaluate(&[&[path.to_str().unwrap(), "--episodes", "3"][..], which].concat());
        assert!(success && out.contains(", actions drawn, seed 1"), "{out}{error}");
    }
    std::fs::create_dir_all(run.run_folder().join("checkpoints/000001-step4000")).unwrap();
    std::fs::copy(&file, run.run_folder().join("checkpoints/000001-step4000/best.safetensors")).unwrap();
    for (folder, path) in
        [("weights", "last.safetensors"), (".", "weights/last.safetensors"), ("checkpoints", "000001-step4000/best.safetensors")]
    {
        let (success, out, error) = evaluate_in(&run.run_folder().join(folder), &[path, "--episodes", "3"]);
        assert!(success && out.contains(", actions drawn, seed 1"), "{folder}: {out}{error}");
    }
    // A file away from its run does not tell how the run evaluated it.
    let elsewhere = run.folder.path().join("alone.safetensors");
    std::fs::copy(file, &elsewhere).unwrap();
    let (success, out, error) = evaluate(&[elsewhere.to_str().unwrap(), "--episodes", "3"]);
    assert!(success && out.contains(", greedy, seed 1") && out.contains("\ninterval "), "{out}{error}");
    let (success, out, error) = evaluate(&[elsewhere.to_str().unwrap(), "--episodes", "1"]);
    assert!(success && out.contains("\nreturn  ") && !out.contains("unknown") && !out.contains("\ninterval "), "{out}{error}");
    // A folder in which no run could begin, since its name is not UTF-8.
    let nameless = run.folder.path().join(OsStr::from_bytes(b"run\xe9"));
    std::fs::rename(run.run_folder().canonicalize().unwrap(), &nameless).unwrap();
    let (success, out, error) = evaluate_in(&nameless, &[".", "--json", "--weights", "last", "--episodes", "1"]);
    assert!(success && out.contains("/weights/last.safetensors\""), "{out}{error}");
}

#[test]
fn code_that_weights_alone_name_does_not_run() {
    let folder = tempfile::tempdir().unwrap();
    let task = folder.path().join("task.py");
    std::fs::write(&task, "open('touched', 'w').close()\n").unwrap();
    let spec = NetworkSpec::perceptron(4, &[8], Head::Linear { outputs: 2 });
    for id in [format!("python:{}:Task", task.display()), "python:task:Task".into(), "gymnasium:task:Task-v0".into()] {
        let metadata = WeightsMetadata { algorithm: "dqn".into(), environment: id.clone(), ..WeightsMetadata::default() };
        let weights = PolicyWeights::new(spec.clone(), &vec![0.5; spec.parameter_count()], metadata);
        weights.save(&folder.path().join("some.safetensors")).unwrap();
        let (success, out, error) = evaluate_in(folder.path(), &["some.safetensors"]);
        assert!(!success && out.is_empty() && error.contains("does not lie in its run's folder"), "{id}: {out}{error}");
        assert!(error.contains(&format!("`--environment {id}`")) && !folder.path().join("touched").exists(), "{error}");
    }
    // Another environment may be named, and a folder has its own.
    let (success, out, error) = evaluate_in(folder.path(), &["some.safetensors", "--environment", "CartPole-v1", "--episodes", "2"]);
    assert!(success && out.contains("dqn on CartPole-v1"), "{out}{error}");
    let (success, _, error) = evaluate_in(folder.path(), &[".", "--environment", "CartPole-v1"]);
    assert!(!success && error.contains("leave --environment out"), "{error}");
}

#[test]
fn episodes_that_were_cut_off_are_counted() {
    // No episode of CartPole is over in five steps, however it is played.
    let mut run = start(&["run.stop_env_steps=1000", "evaluator.episode_limit_steps=5"]);
    run.succeed();
    let folder = run.run_folder();
    let arguments = [folder.to_str().unwrap(), "--episodes", "3"];
    let (success, out, error) = evaluate(&[&arguments[..], &["--json"]].concat());
    assert!(success, "{error}");
    let played: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(played["returns"], serde_json::json!([5.0, 5.0, 5.0]));
    assert_eq!([&played["cut_off"], &played["episode_limit_steps"]].map(Value::as_u64), [Some(3), Some(5)]);
    let (_, out, _) = evaluate(&arguments);
    assert!(out.contains("\ncut off     3 of them at step 5 (evaluator.episode_limit_steps)\n"), "{out}");
}

#[test]
fn no_episode_is_refused() {
    let (success, _, error) = evaluate(&["anywhere", "--episodes", "0"]);
    assert!(!success && error.contains("'0'") && error.contains("--episodes"), "{error}");
}

#[test]
fn a_path_that_is_not_there_is_told_what_makes_one() {
    let (success, _, error) = evaluate(&["anywhere"]);
    assert!(!success && error.contains("there is no `anywhere`") && error.contains("train"), "{error}");
}

#[test]
fn a_run_that_has_saved_no_weights_is_told_when_it_will() {
    let mut run = start(&["run.stop_env_steps=2000"]);
    run.succeed();
    let folder = run.run_folder();
    std::fs::remove_dir_all(folder.join("weights")).unwrap();
    let (success, _, error) = evaluate(&[folder.to_str().unwrap()]);
    assert!(!success && error.contains("has saved no weights yet") && error.contains("checkpoints cannot be played before"), "{error}");
}

#[test]
fn a_run_folder_and_its_weights_file_give_the_same_returns() {
    let mut run = start(&["run.stop_env_steps=2000", "network.dueling=true"]);
    run.succeed();
    let folder = run.run_folder();
    let file = folder.join("weights/last.safetensors");
    let play = |path: &Path, which: &[&str]| {
        let (success, out, error) = evaluate(&[&[path.to_str().unwrap(), "--episodes", "50", "--seed", "3", "--json"][..], which].concat());
        assert!(success, "{error}");
        serde_json::from_str::<Value>(&out).unwrap()
    };
    let (from_folder, from_file) = (play(&folder, &["--weights", "last"]), play(&file, &[]));
    assert_eq!(from_folder["returns"].as_array().unwrap().len(), 50);
    assert_eq!(from_folder["returns"], from_file["returns"]);
    assert_eq!([&from_folder, &from_file].map(|outcome| outcome["greedy"].as_bool()), [Some(true); 2]);
    let returns: Vec<f64> = from_folder["returns"].as_array().unwrap().iter().map(|value| value.as_f64().unwrap()).collect();
    let mean = returns.iter().sum::<f64>() / 50.0;
    assert!((from_folder["return_mean"].as_f64().unwrap() - mean).abs() < 1e-9);
    assert!(from_folder["ci95_low"].as_f64().unwrap() <= mean && mean <= from_folder["ci95_high"].as_f64().unwrap());
    let (success, out, _) = evaluate(&[folder.to_str().unwrap(), "--episodes", "5"]);
    assert!(success && out.contains("dqn on CartPole-v1") && out.contains("standard deviation"), "{out}");
}

#[test]
fn a_video_shows_the_first_episode_and_changes_no_return() {
    let mut run = start(&["run.stop_env_steps=1000", "evaluator.enabled=false"]);
    run.succeed();
    let folder = run.run_folder();
    let play = |episodes: &str, more: &[&str]| {
        let arguments = [&[folder.to_str().unwrap(), "--episodes", episodes, "--seed", "3", "--json"], more].concat();
        let (success, out, error) = evaluate(&arguments);
        assert!(success, "{error}");
        serde_json::from_str::<Value>(&out).unwrap()
    };
    let videos = tempfile::tempdir().unwrap();
    let path = videos.path().join("first.gif");
    let (plain, recorded) = (play("40", &[]), play("40", &["--video", path.to_str().unwrap(), "--video-speed", "50"]));
    assert_eq!(plain["returns"], recorded["returns"]);
    assert!(plain["video"].is_null());
    // CartPole gives a reward of one for each step, and the video begins with the reset.
    let pictures = recorded["video"]["pictures"].as_u64().unwrap();
    for played in [&play("1", &[]), &recorded] {
        assert_eq!(played["returns"][0].as_f64(), Some((pictures - 1) as f64), "{played}");
    }
    assert!(std::fs::read(&path).unwrap().starts_with(b"GIF89a"));

    let nowhere = videos.path().join("missing/first.gif");
    let (success, _, error) = evaluate(&[folder.to_str().unwrap(), "--video", nowhere.to_str().unwrap()]);
    assert!(!success && error.contains("cannot write the video") && error.contains("missing/first.gif"), "{error}");
    assert!(error.contains("there is no folder") && !error.contains(".video."), "{error}");
    let (success, _, error) = evaluate(&[folder.to_str().unwrap(), "--video", path.to_str().unwrap(), "--video-speed", "0"]);
    assert!(!success && error.contains("--video-speed"), "{error}");
    let other = videos.path().join("first.webm");
    let (success, _, error) = evaluate(&[folder.to_str().unwrap(), "--video", other.to_str().unwrap()]);
    assert!(!success && error.contains("first.webm") && error.contains(".mp4"), "{error}");
    let other = videos.path().join("first.mp4");
    let (success, _, error) = evaluate(&[folder.to_str().unwrap(), "--video", other.to_str().unwrap(), "--episodes", "1"]);
    assert_eq!(success, cfg!(feature = "mp4"), "{error}");
    assert!(if success { other.exists() } else { error.contains("--features mp4") }, "{error}");

    let names = || std::fs::read_dir(videos.path()).unwrap().map(|entry| entry.unwrap().file_name());
    let unfinished = || names().filter(|name| name.to_string_lossy().starts_with(".video.")).count();
    for signal in programs::stop_signals() {
        let mut endless = run.program("evaluate");
        endless.arg(&folder).args(["--episodes", "1000000000", "--video"]).arg(videos.path().join("endless.gif"));
        let mut playing = endless.spawn().unwrap();
        programs::wait_until("a video in the making", String::new, || unfinished() > 0);
        programs::kill(playing.id(), signal);
        assert_eq!(playing.wait().unwrap().code(), Some(128 + signal as i32));
        assert_eq!(unfinished(), 0, "{signal} leaves nothing of a video");
    }
}

#[test]
fn an_evaluation_that_was_started_by_a_program_that_blocks_signals_can_be_stopped() {
    let mut run = start(&["run.stop_env_steps=1000", "evaluator.enabled=false"]);
    run.succeed();
    let mut command = run.program("evaluate");
    command.arg(run.run_folder()).args(["--episodes", "1000000"]).stdout(Stdio::null());
    let blocked = SigSet::from(Signal::SIGTERM);
    blocked.thread_block().unwrap();
    let mut playing = command.spawn().unwrap();
    blocked.thread_unblock().unwrap();
    programs::kill(playing.id(), Signal::SIGTERM);
    let ended = programs::wait_for("the end of the evaluation", String::new, || playing.try_wait().unwrap());
    assert_eq!(ended.signal(), Some(Signal::SIGTERM as i32));
}

#[test]
fn the_returns_are_told_even_if_the_video_cannot_be_written() {
    let mut run = start(&["run.stop_env_steps=1000", "evaluator.enabled=false"]);
    run.succeed();
    let videos = tempfile::tempdir().unwrap();
    let path = videos.path().join("first.gif");
    let mut command = run.program("evaluate");
    command.arg(run.run_folder()).args(["--episodes", "3", "--json", "--video"]).arg(&path);
    let output = under("ulimit -f 0", &command).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(said(&output).contains("cannot write the video") && said(&output).contains("first.gif"), "{}", said(&output));
    let played: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(played["returns"].as_array().unwrap().len() == 3 && played["video"].is_null(), "{played}");
    assert_eq!(std::fs::read_dir(videos.path()).unwrap().count(), 0, "nothing is left of the video");
}

#[test]
fn the_returns_are_told_though_the_path_of_the_video_is_not_utf8() {
    let mut run = start(&["run.stop_env_steps=1000", "evaluator.enabled=false"]);
    run.succeed();
    let path = run.folder.path().join(OsStr::from_bytes(b"first\xe9.gif"));
    let mut command = run.program("evaluate");
    command.arg(run.run_folder()).args(["--episodes", "3", "--json", "--video"]).arg(&path);
    let played: Value = serde_json::from_str(&told(&command.output().unwrap())).unwrap();
    assert_eq!(played["returns"].as_array().unwrap().len(), 3);
    assert!(path.is_file() && played["video"]["path"].as_str().unwrap().ends_with(".gif"), "{played}");
}

#[test]
fn without_best_weights_the_last_ones_are_played_and_that_is_said() {
    let mut run = start(&["run.stop_env_steps=1000", "evaluator.enabled=false"]);
    run.succeed();
    let folder = run.run_folder();
    let (success, out, error) = evaluate(&[folder.to_str().unwrap(), "--episodes", "2"]);
    assert!(success && out.contains("last.safetensors") && out.contains("the last ones"), "{out}{error}");
    let (_, out, _) = evaluate(&[folder.to_str().unwrap(), "--episodes", "2", "--json"]);
    assert_eq!(serde_json::from_str::<Value>(&out).unwrap()["instead_of_best"], true);
    let (_, out, _) = evaluate(&[folder.to_str().unwrap(), "--episodes", "2", "--weights", "last"]);
    assert!(!out.contains("the last ones"), "they were asked for: {out}");
}

#[test]
fn the_last_weights_of_a_run_under_way_are_those_of_its_newest_checkpoint() {
    let mut run = start(&["checkpoint.interval_s=0.2", "checkpoint.keep_last=1000", "evaluator.interval_ms=10"]);
    run.wait_for_evaluations("the best weights", |lines| lines.iter().any(|line| line["is_best"] == true));
    let before = run.look_for("a checkpoint", |run| Some(run.checkpoints().len()).filter(|&count| count > 0));
    let folder = run.run_folder();
    let arguments = [folder.to_str().unwrap(), "--weights", "last", "--episodes", "3"];
    let play = |run: &Supervised| -> Value {
        let output = run.program("evaluate").args(arguments).arg("--json").output().unwrap();
        serde_json::from_str(&told(&output)).unwrap()
    };
    let played = play(&run);
    let number = played["checkpoint"].as_u64().unwrap() as usize;
    assert!(number >= before, "there were {before} before: {played}");
    let checkpoint = RunCheckpoint::open(&run.checkpoints()[number - 1]).unwrap();
    assert!(played["environment_steps"].as_u64() <= Some(checkpoint.manifest().env_steps), "{played}");
    assert!(played["weights"].as_str().unwrap().ends_with(checkpoint.path().file_name().unwrap().to_str().unwrap()), "{played}");
    let text = run.ask("evaluate", &arguments);
    assert!(text.contains("weights     those of checkpoint ") && text.contains(" environment steps, the newest that are saved"), "{text}");

    // The last weights are published when the run ends, and its last checkpoint is written after that.
    run.end_by(Signal::SIGINT);
    let saved = play(&run);
    std::fs::remove_file(folder.join("weights/last.safetensors")).unwrap();
    let taken = play(&run);
    assert!(saved["checkpoint"].is_null() && taken["checkpoint"].is_number(), "{saved} {taken}");
    assert!(["updates", "environment_steps", "returns"].iter().all(|key| saved[key] == taken[key]), "{saved} {taken}");
}

#[test]
fn the_last_weights_of_a_run_that_goes_on_are_not_those_of_its_earlier_end() {
    let mut run = start(&["checkpoint.interval_s=0.2", "evaluator.enabled=false"]);
    run.wait_for_updates(20);
    run.end_by(Signal::SIGINT);
    let play = |run: &Supervised, which: &str| -> Value {
        let output =
            run.program("evaluate").arg(run.run_folder()).args(["--episodes", "1", "--json", "--weights", which]).output().unwrap();
        serde_json::from_str(&told(&output)).unwrap()
    };
    let ended = play(&run, "last");
    let last = run.run_folder().join("weights/last.safetensors");
    let of_first_end = std::fs::read(&last).unwrap();
    let is_newer = |played: &Value| played["updates"].as_u64() > ended["updates"].as_u64();
    run.resume(&[]);
    for which in ["last", "best"] {
        let played = run.look_for("newer weights", |run| Some(play(run, which)).filter(is_newer));
        assert!(played["checkpoint"].is_number() && played["instead_of_best"] == (which == "best"), "{played}");
    }
    run.end_by(Signal::SIGINT);
    let ended_again = play(&run, "last");
    assert!(ended_again["checkpoint"].is_null() && is_newer(&ended_again), "{ended_again}");
    let mut of_another_life = run.last_weights();
    // As an end leaves them that cannot save its own.
    std::fs::write(&last, of_first_end).unwrap();
    let taken = play(&run, "last");
    assert!(taken["checkpoint"].is_number() && taken["updates"] == ended_again["updates"], "{ended_again} {taken}");
    // And as one does that went on from an earlier checkpoint, so that the end before had come further.
    of_another_life.metadata.updates += 1_000_000;
    of_another_life.metadata.environment_steps += 1_000_000;
    of_another_life.save(&last).unwrap();
    let taken_again = play(&run, "last");
    assert!(["checkpoint", "updates"].iter().all(|key| taken_again[key] == taken[key]), "{taken} {taken_again}");
}

#[test]
fn a_checkpoint_that_is_removed_while_it_is_read_gives_way_to_the_one_after_it() {
    let mut run = start(&["run.stop_env_steps=1000", "evaluator.enabled=false", "checkpoint.interval_s=600"]);
    run.succeed();
    let folder = run.run_folder();
    std::fs::rename(folder.join("weights/last.safetensors"), folder.join("weights/best.safetensors")).unwrap();
    let [removed, next] = ["000001-step1", "000002-step2"].map(|name| folder.join("checkpoints").join(name));
    let whole = folder.join("whole");
    std::fs::rename(run.checkpoints().pop().unwrap(), &whole).unwrap();
    // Whoever reads it waits in a pipe.
    std::fs::create_dir(&removed).unwrap();
    let manifest = removed.join("manifest.json");
    nix::unistd::mkfifo(&manifest, nix::sys::stat::Mode::S_IRWXU).unwrap();
    let mut command = run.program("evaluate");
    command.arg(&folder).args(["--weights", "last", "--episodes", "1"]).stdout(Stdio::piped()).stderr(Stdio::piped());
    let playing = command.spawn().unwrap();
    let without_waiting = nix::fcntl::OFlag::O_NONBLOCK.bits();
    let open = || File::options().write(true).custom_flags(without_waiting).open(&manifest).ok();
    let pipe = programs::wait_for("somebody who reads the checkpoint", String::new, open);
    std::fs::rename(&whole, &next).unwrap();
    std::fs::remove_dir_all(&removed).unwrap();
    drop(pipe);
    let text = told(&playing.wait_with_output().unwrap());
    assert!(text.contains("weights     those of checkpoint ") && text.contains("000002-step2"), "{text}");
}

#[test]
fn asking_for_last_weights_that_are_not_saved_yet_says_when_they_will_be() {
    let mut run = start(&["run.stop_env_steps=1000", "evaluator.enabled=false"]);
    run.succeed();
    let weights = run.run_folder().join("weights");
    std::fs::rename(weights.join("last.safetensors"), weights.join("best.safetensors")).unwrap();
    let folder = run.run_folder();
    let (success, _, error) = evaluate(&[folder.to_str().unwrap(), "--weights", "last"]);
    assert!(!success && error.contains("has not saved its last weights yet") && error.contains("--weights best"), "{error}");
    assert!(!error.contains("shoal resume"), "without a checkpoint no run goes on: {error}");
    assert!(evaluate(&[folder.to_str().unwrap(), "--episodes", "1"]).0, "the best are there");
}

#[test]
fn weights_that_lie_apart_from_the_options_of_their_environment_are_told_where_those_are() {
    let mut run = start_preset(
        "catch_dqn",
        &["environment.frame_stack=3", "run.stop_env_steps=500", "run.stop_eval_return=none", "evaluator.enabled=false"],
    );
    run.succeed();
    let apart = tempfile::tempdir().unwrap();
    let copy = apart.path().join("weights.safetensors");
    std::fs::copy(run.run_folder().join("weights/last.safetensors"), &copy).unwrap();
    let (success, _, error) = evaluate(&[copy.to_str().unwrap(), "--episodes", "1"]);
    assert!(!success && error.contains("other options of the environment") && error.contains("the folder of its run"), "{error}");
}

#[test]
fn the_command_in_the_report_plays_the_run_from_where_it_was_started() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = programs::command(folder.path(), &[programs::SMALL, &["run.stop_env_steps=1000"]].concat());
    // Without cargo's variables, as a user starts it.
    command.current_dir(folder.path()).env_remove("CARGO_MANIFEST_DIR").env_remove("CARGO_PKG_NAME");
    let output = command.output().unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{text}");
    let play = text.lines().find_map(|line| line.strip_prefix("play it")).unwrap_or_else(|| panic!("{text}")).trim();
    assert!(play.contains("evaluate runs/"), "the path of the run is relative to where the user stands: {play}");
    let played =
        std::process::Command::new("sh").args(["-c", &format!("{play} --episodes 1")]).current_dir(folder.path()).output().unwrap();
    assert!(played.status.success(), "{play}: {}", String::from_utf8_lossy(&played.stderr));
    assert!(String::from_utf8_lossy(&played.stdout).contains("dqn on CartPole-v1"));
}

#[test]
fn a_program_that_is_built_anew_while_it_trains_still_tells_how_to_play_the_run() {
    let folder = tempfile::tempdir().unwrap();
    let [supervisor, player] = ["supervisor", "evaluate"].map(|name| folder.path().join(name));
    programs::install(&supervisor);
    programs::install(&player);
    let usual = programs::command(folder.path(), &[programs::SMALL, &["run.stop_env_steps=1000"]].concat());
    let mut command = std::process::Command::new(&supervisor);
    command.args(usual.get_args()).current_dir(folder.path()).env("XDG_RUNTIME_DIR", folder.path());
    // Without cargo's variables, as a user starts it.
    command.env_remove("CARGO_MANIFEST_DIR").stdout(Stdio::null()).stderr(Stdio::piped());
    let run = command.spawn().unwrap();
    std::fs::remove_file(&supervisor).unwrap();
    programs::install(&supervisor);
    let output = run.wait_with_output().unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{text}");
    let play = text.lines().find_map(|line| line.strip_prefix("play it")).unwrap_or_else(|| panic!("{text}")).trim();
    assert!(play.starts_with(&format!("{} runs/", player.display())), "{play}");
}

#[test]
fn a_run_that_failed_offers_nothing_to_play() {
    let mut run = start(&["machine.max_restarts=0"]);
    run.wait_for("an evaluation", |line| line["eval_return_mean"].is_number());
    let actor = run.wait_for_process("actor");
    programs::kill(actor, Signal::SIGKILL);
    assert_eq!(run.wait().code(), Some(1));
    assert!(run.run_folder().join("weights/last.safetensors").is_file());
    let output = run.output();
    assert!(output.contains("gave up: actor 0") && !output.contains("play it"), "{output}");
}

#[test]
fn a_choice_of_weights_is_refused_where_a_file_of_them_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("some.safetensors");
    std::fs::write(&file, b"not read").unwrap();
    for weights in ["best", "last"] {
        let (success, out, error) = evaluate(&[file.to_str().unwrap(), "--weights", weights]);
        assert!(!success && out.is_empty(), "{out}");
        assert!(error.contains("some.safetensors is a file") && error.contains("leave --weights out"), "{error}");
    }
}

#[test]
fn weights_from_a_pipe_are_refused_with_the_way_to_play_them() {
    let (reader, _) = std::io::pipe().unwrap();
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_evaluate")).arg("/dev/stdin").stdin(reader).output().unwrap();
    assert!(!output.status.success() && output.stdout.is_empty());
    assert!(said(&output).contains("/dev/stdin can be read once") && said(&output).contains("write them to a file"), "{}", said(&output));
}

#[test]
fn what_cannot_be_played_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let garbage = folder.path().join("garbage.safetensors");
    std::fs::write(&garbage, b"no weights").unwrap();
    for path in [folder.path(), &garbage, &folder.path().join("missing")] {
        let (success, out, error) = evaluate(&[path.to_str().unwrap()]);
        assert!(!success && out.is_empty(), "{out}");
        assert!(error.starts_with("error: ") && error.contains(folder.path().to_str().unwrap()), "{error}");
    }
}
