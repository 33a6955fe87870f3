//! A run goes on from a checkpoint, whatever ended it, and says what it cannot go on from. Driven as real binaries.

use std::path::Path;
use std::process::Command;

use nix::sys::signal::Signal;
use serde_json::Value;
use shoal::algorithms::registry;
use shoal::checkpoint::{RowsIn, RunCheckpoint};
use shoal::config::Config;
use shoal::environments;
use shoal::replay::{ReplayView, ZeroPriority};
use shoal::segment::Segment;
use shoal::segment::counters::Counter;
use shoal::segment::processes::Role;

use crate::support::programs::{self, Supervised, Watchdog, bits, checkpoints_in, number, program, said, start, start_preset, told, under};

fn steps_of(checkpoint: &Path) -> u64 {
    RunCheckpoint::open(checkpoint).unwrap().manifest().env_steps
}

/// What a run that `begin` starts ends with when nobody disturbs it, and when it is killed after a checkpoint and goes on.
fn undisturbed_and_killed(begin: impl Fn() -> Supervised) -> [(Vec<u32>, Vec<Value>, Value); 2] {
    [false, true].map(|is_killed| {
        let mut run = begin();
        if is_killed {
            let folder = run.run_folder();
            run.wait_until("a checkpoint", || !checkpoints_in(&folder).is_empty());
            run.kill();
            run.resume(&[]);
        }
        run.succeed();
        let kept = |line: &Value| ["env_steps", "version", "kind", "return_mean", "confirms_goal"].map(|key| line[key].clone());
        let mut evaluations: Vec<Value> = run.evaluations().iter().map(|line| kept(line).into_iter().collect()).collect();
        // The evaluations after the checkpoint were played twice.
        evaluations.sort_by_key(|line| (line[0].as_u64(), line.to_string()));
        evaluations.dedup();
        let mut last = run.metrics().pop().unwrap();
        let figures = ["env_steps", "updates", "episodes", "inserted", "sampled", "replay_size", "parameter_version"];
        last.as_object_mut().unwrap().retain(|key, _| figures.contains(&key.as_str()));
        (bits(&run.last_weights().parameters), evaluations, last)
    })
}

const SYNCHRONOUS: [&str; 3] = ["actor.count=0", "checkpoint.synchronous_interval_steps=1500", "evaluator.synchronous_interval_steps=2000"];

fn assert_same(begin: impl Fn() -> Supervised) {
    let [undisturbed, killed] = undisturbed_and_killed(begin);
    assert_eq!(undisturbed.2, killed.2);
    assert_eq!(undisturbed.1, killed.1);
    assert!(undisturbed.0 == killed.0, "other parameters");
}

#[test]
fn a_synchronous_run_that_was_killed_ends_as_one_that_was_not_bit_for_bit() {
    let changes = ["run.stop_env_steps=9000", "algorithm.n_step=3", "run.seed=5"];
    assert_same(|| start(&[&SYNCHRONOUS[..], &changes[..]].concat()));
}

#[test]
fn so_does_one_that_learns_from_frames() {
    let changes = [
        "run.stop_env_steps=5000",
        "run.stop_eval_return=\"none\"",
        "network.convolutions=[[4, 8, 4]]",
        "network.hidden=[16]",
        "evaluator.episodes=2",
        "evaluator.confirm_episodes=2",
        "replay.capacity=3000",
        "replay.min_size=500",
        "learner.batch_size=16",
        "replay.samples_per_insert=2.0",
    ];
    assert_same(|| start_preset("rally_dqn", &[&SYNCHRONOUS[..], &changes[..]].concat()));
}

#[test]
fn so_does_one_that_learns_from_fragments_and_normalises_what_it_sees() {
    let changes = ["run.stop_env_steps=12000", "run.stop_eval_return=\"none\"", "algorithm.normalise_observations=true"];
    assert_same(|| start_preset("cartpole_ppo", &[&SYNCHRONOUS[..], &changes[..]].concat()));
}

#[test]
fn so_does_one_that_learns_from_fragments_again_that_were_taken_before() {
    let changes = ["run.stop_env_steps=12000", "run.stop_eval_return=\"none\"", "fragments.replay_share=0.5"];
    assert_same(|| start_preset("cartpole_appo", &[&SYNCHRONOUS[..], &changes[..]].concat()));
}

#[test]
fn a_killed_run_goes_on_with_its_replay_its_weights_and_its_files() {
    let mut run = start(&["checkpoint.interval_s=0.3", "checkpoint.keep_last=1"]);
    run.wait_for_log("checkpoint 000003");
    run.kill();
    assert!(run.log().contains("has all that was there"), "{}", run.log());
    let before = std::fs::read_to_string(run.run_folder().join("metrics.jsonl")).unwrap();
    let [newest] = <[_; 1]>::try_from(run.checkpoints()).expect("one is kept");
    let steps = steps_of(&newest);
    run.resume(&["--set", "learner.learning_rate=0.0005", "--set", "checkpoint.interval_s=none"]);
    run.wait_for_log("goes on from checkpoint");
    let lines = before.lines().count();
    run.wait_for("the first metrics", |_| true);
    let file = run.run_folder().join("metrics.jsonl");
    run.wait_until("more lines", || std::fs::read_to_string(&file).unwrap().lines().count() > lines + 2);
    let after = run.metrics();
    let first = &after[lines];
    let last_before: Value = serde_json::from_str(before.lines().last().unwrap()).unwrap();
    assert!(number(first, "env_steps") >= steps, "{first}");
    for key in ["inserted", "replay_size"] {
        assert!(number(first, key) >= number(&last_before, key), "{first} after {last_before}");
    }
    assert!(number(first, "parameter_version") > 10, "the numbers of publications go on: {first}");
    assert!(first["wall_s"].as_f64() > Some(0.3) && first["wall_s"].as_f64() < last_before["wall_s"].as_f64().map(|s| s + 60.0));
    assert!(first["env_steps_per_s"].as_f64() < Some(1e6), "what was before is no speed: {first}");
    let config = std::fs::read_to_string(run.run_folder().join("config.toml")).unwrap();
    assert!(config.contains("learning_rate = 0.0005"), "{config}");
    assert!(std::fs::read_to_string(run.run_folder().join("metrics.jsonl")).unwrap().starts_with(&before));
    let record = run.record();
    assert_eq!((number(&record, "resumptions"), number(&record, "supervisor_pid")), (1, u64::from(run.pid())));
    let charts = run.folder.path().join("runs/tensorboard").join(run.run_folder().canonicalize().unwrap().file_name().unwrap());
    assert_eq!(std::fs::read_dir(charts).unwrap().count(), 2);
    run.end_by(Signal::SIGTERM);
}

#[test]
fn a_killed_supervisor_loses_nothing_that_was_there() {
    let mut run = start(&["checkpoint.interval_s=600", "actor.count=2"]);
    run.wait_for_updates(500);
    // Its memory stays mapped here when its name is gone.
    let segment = run.segment_read_only();
    run.kill();
    let [checkpoint] = <[_; 1]>::try_from(run.checkpoints()).expect("the sentinel has written one");
    let lock = std::fs::metadata(run.run_folder().join(".lock")).unwrap();
    assert_eq!(std::os::unix::fs::PermissionsExt::mode(&lock.permissions()) & 0o777, 0o600, "nobody else may hold up `resume`");
    let inspected = run.ask("inspect", &[run.run_folder().to_str().unwrap()]);
    assert!(inspected.contains(checkpoint.file_name().unwrap().to_str().unwrap()) && inspected.contains("resume"), "{inspected}");
    assert!(run.log().contains("has all that was there"), "{}", run.log());
    let checkpoint = RunCheckpoint::open(&checkpoint).unwrap();
    let config = Config::parse(&checkpoint.config_toml().unwrap(), "config.toml", &[]).unwrap().config;
    let schema = registry::build(&config, &environments::registry::spec("CartPole-v1").unwrap()).unwrap().schema();
    let restored = Segment::create_private(segment.layout().clone(), &segment.description().unwrap()).unwrap();
    checkpoint.restore(&restored, &schema, RowsIn::Checkpoint, |_, _, slot| Some(slot)).unwrap();
    let rows = |segment| {
        let (replay, mut rows) = (ReplayView::new(segment, schema.clone()), Vec::new());
        let taken: Result<(), ()> = replay.for_each_row(ZeroPriority::Unfinished, |record, words| {
            rows.push((record, words.to_vec()));
            Ok(())
        });
        taken.map(|()| (rows, replay.counts()))
    };
    assert_eq!(rows(&restored), rows(&segment));
    let [updates, env_steps] =
        [segment.control().updates(), segment.control().env_steps()].map(|word| word.load(shoal::sync::Ordering::Relaxed));
    assert_eq!((checkpoint.manifest().updates, checkpoint.manifest().env_steps), (updates, env_steps));
    let mut state = vec![0.0; restored.learner_boards().next().unwrap().len()];
    let (_, [_, published, ..]) = restored.learner_boards().next().unwrap().read(&mut state).unwrap();
    assert_eq!(published, updates, "learners have published what they had learned last");
    run.resume(&["--set", &format!("run.stop_env_steps={}", env_steps + 500)]);
    run.succeed();
}

#[test]
fn a_run_that_ended_may_go_on_for_longer() {
    let always = "checkpoint.replay=always";
    let mut run = start(&["run.stop_env_steps=3000", "checkpoint.interval_s=0.1", always]);
    run.succeed();
    let size = |run: &Supervised| number(&run.metrics().pop().unwrap(), "replay_size");
    let (before, steps) = (size(&run), number(&run.metrics().pop().unwrap(), "env_steps"));
    assert_eq!(steps_of(run.checkpoints().last().unwrap()), steps);
    run.resume(&[]);
    assert!(!run.wait().success());
    assert!(run.output().contains(&format!("has come to {steps} environment steps, and run.stop_env_steps is 3000")), "{}", run.output());
    let longer = format!("run.stop_env_steps={}", steps + 3000);
    run.resume(&["--set", &longer, "--set", "checkpoint.replay=until_completed"]);
    run.succeed();
    let after = size(&run);
    assert!(after >= (before + 2000).min(20_000), "with the replay: {after} after {before}, {steps} steps: {}", run.log());
    // What a completed run leaves is small.
    let [last] = <[_; 1]>::try_from(run.checkpoints()).expect("one is kept");
    assert!(!last.join("replay.shoal").exists());
}

#[test]
fn a_completed_run_may_go_on_with_an_empty_replay() {
    let mut run = start(&["run.stop_env_steps=3000", "checkpoint.interval_s=600"]);
    run.succeed();
    let steps = number(&run.metrics().pop().unwrap(), "env_steps");
    assert_eq!(run.checkpoints().iter().map(|path| steps_of(path)).collect::<Vec<_>>(), [steps]);
    run.resume(&["--set", &format!("run.stop_env_steps={}", steps + 3000)]);
    run.succeed();
    let last = run.metrics().pop().unwrap();
    assert!(number(&last, "env_steps") >= steps + 3000, "{last}");
    assert_eq!(run.checkpoints().len(), 1);
}

#[test]
fn without_its_replay_a_run_goes_on_with_an_empty_one() {
    let mut run = start(&["run.stop_env_steps=3000", "checkpoint.interval_s=600", "checkpoint.replay=never"]);
    run.succeed();
    assert!(!run.checkpoints()[0].join("replay.shoal").exists());
    let before = number(&run.metrics().pop().unwrap(), "env_steps");
    run.resume(&["--set", &format!("run.stop_env_steps={}", before + 2000)]);
    run.succeed();
    assert!(run.log().contains("with an empty replay"), "{}", run.log());
    let last = run.metrics().pop().unwrap();
    let since = number(&last, "env_steps") - before;
    assert!(since >= 2000 && (1..=since).contains(&number(&last, "replay_size")), "{before} steps before: {last}");
}

#[test]
fn a_run_that_has_its_name_from_a_file_with_a_long_one_goes_on_and_is_evaluated() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join(format!("{}.toml", "a_name_of_forty_characters_that_goes_on_".repeat(4)));
    std::fs::copy(programs::preset(), &file).unwrap();
    let overrides = [programs::SMALL, &["checkpoint.interval_s=0.3"]].concat();
    let mut run = Supervised::spawn(programs::command_of(&file, folder.path(), &overrides), folder);
    run.wait_for_log("checkpoint 000001");
    run.kill();
    run.resume(&[]);
    run.wait_for_log("goes on from checkpoint");
    run.end_by(Signal::SIGTERM);
    run.ask("evaluate", &[run.run_folder().to_str().unwrap(), "--weights", "last", "--episodes", "2"]);
    let name = run.run_folder().canonicalize().unwrap();
    assert!(name.file_name().unwrap().to_str().unwrap().contains("-seed1-"), "{}", name.display());
}

#[test]
fn what_a_learner_counted_stays_a_learners_where_a_run_goes_on_with_fewer() {
    let mut run = start(&["learner.count=2", "checkpoint.interval_s=600"]);
    run.wait_for_updates(300);
    run.end_by(Signal::SIGINT);
    run.resume(&["--set", "learner.count=1"]);
    run.wait_for_log("goes on from checkpoint");
    run.wait_for_process("learner");
    let segment = run.segment();
    let updates = |wanted: Role| {
        let slots = segment.processes().iter().filter(|slot| slot.plays(wanted));
        slots.map(|slot| slot.counters().get(Counter::Updates)).sum::<u64>()
    };
    assert_eq!(updates(Role::Actor), 0);
    assert!(updates(Role::Learner) > 600, "each counts the updates in which it took part");
    drop(segment);
    run.end_by(Signal::SIGINT);
}

#[test]
fn what_does_not_fit_is_refused_by_name_and_nothing_is_changed() {
    let mut run = start(&["run.stop_env_steps=2000", "checkpoint.interval_s=600"]);
    run.succeed();
    let before = std::fs::read(run.run_folder().join("run.json")).unwrap();
    for (change, named) in [
        ("network.hidden=[64]", "network.hidden"),
        ("replay.capacity=30000", "replay.capacity"),
        ("environment.id=Acrobot-v1", "environment.id"),
        ("algorithm.n_step=2", "algorithm.n_step"),
        ("algorithm.gamma=0.5", "algorithm.gamma"),
    ] {
        run.resume(&["--set", change]);
        assert!(!run.wait().success());
        let said = run.output();
        assert!(said.contains("cannot go on with another") && said.contains(named), "{said}");
    }
    run.resume(&["--set", "learner.learning_rat=1"]);
    assert!(!run.wait().success());
    assert!(run.output().contains("did you mean"), "a key is suggested");
    assert_eq!(std::fs::read(run.run_folder().join("run.json")).unwrap(), before);
}

#[test]
fn a_run_is_known_to_be_under_way_whatever_the_registry_says_and_whatever_its_folder_is_called() {
    let mut run = start(&["checkpoint.interval_s=0.1"]);
    run.wait_for_log("checkpoint 000001");
    let (elsewhere, runs) = (tempfile::tempdir().unwrap(), run.folder.path().join("runs"));
    let folder = run.run_folder().canonicalize().unwrap();
    std::fs::rename(&folder, runs.join("renamed")).unwrap();
    let refused = said(&program("supervisor", elsewhere.path()).arg("resume").arg(runs.join("renamed")).output().unwrap());
    std::fs::rename(runs.join("renamed"), &folder).unwrap();
    assert!(refused.contains("is under way"), "{refused}");
    run.end_by(Signal::SIGTERM);
}

#[test]
fn a_checkpoint_of_another_run_is_refused() {
    let [mut one, mut other] = [1, 2].map(|_| start(&["run.stop_env_steps=1000", "checkpoint.interval_s=600"]));
    one.succeed();
    other.succeed();
    one.resume(&["--from", other.checkpoints()[0].to_str().unwrap()]);
    assert!(!one.wait().success());
    let said = one.output();
    assert!(said.contains("is not one of the run in"), "{said}");
}

#[test]
fn a_checkpoint_may_be_named_as_inspect_lists_it() {
    let mut run = start(&["run.stop_env_steps=1000", "checkpoint.interval_s=600"]);
    run.succeed();
    let name = run.checkpoints()[0].file_name().unwrap().to_str().unwrap().to_owned();
    let plan = run.command_to("resume", &["--check", "--from", &name, "--set", "run.stop_env_steps=2000"]).output().unwrap();
    assert!(plan.status.success() && said(&plan).contains("goes on from checkpoint"), "{}", said(&plan));
}

#[test]
fn fragments_may_find_room_for_another_number_of_them() {
    let changes = ["checkpoint.interval_s=600", "run.stop_eval_return=\"none\"", "run.stop_env_steps=1000000000"];
    let mut run = start_preset("cartpole_ppo", &changes);
    run.wait_for_updates(20);
    run.end_by(Signal::SIGTERM);
    run.resume(&["--set", "actor.count=2", "--set", "checkpoint.interval_s=none"]);
    run.wait_for_log("with an empty replay");
    run.wait_for("both actors", |line| number(line, "actors") == 2);
    run.end_by(Signal::SIGTERM);
}

#[test]
fn a_run_under_way_and_one_without_checkpoints_are_refused() {
    let mut run = start(&[]);
    run.wait_for_updates(20);
    let refused = run.resume_elsewhere();
    assert!(refused.contains("is under way") && refused.contains(&run.pid().to_string()), "{refused}");
    run.end_by(Signal::SIGTERM);
    run.resume(&[]);
    assert!(!run.wait().success());
    let said = run.output();
    assert!(said.contains("has no complete checkpoint, since it was to write none: its checkpoint.interval_s is \"none\"; "), "{said}");
}

fn run_of(checkpoint: &Path) -> &Path {
    checkpoint.parent().unwrap().parent().unwrap()
}

#[test]
fn a_damaged_checkpoint_is_named_and_the_one_before_is_offered() {
    let mut run = start(&["checkpoint.interval_s=0.2", "checkpoint.keep_last=2"]);
    run.wait_for_log("checkpoint 000002");
    run.end_by(Signal::SIGTERM);
    let real = |path: std::path::PathBuf| path.canonicalize().unwrap();
    let [previous, newest] = <[_; 2]>::try_from(run.checkpoints()).expect("two are kept").map(real);
    for name in ["manifest.json", "state.bin", "replay.shoal", "config.toml"] {
        let path = newest.join(name);
        let whole = std::fs::read(&path).unwrap();
        let mut flipped = whole.clone();
        flipped[whole.len() / 2] ^= 4;
        for damaged in [&flipped[..], &whole[..whole.len() - 7], &[]] {
            std::fs::write(&path, damaged).unwrap();
            run.resume(&[]);
            assert!(!run.wait().success(), "{name} is damaged");
            let said = run.output();
            assert!(said.contains(newest.file_name().unwrap().to_str().unwrap()), "{name}: {said}");
            let offered = format!("`shoal resume {} --from {}`", run_of(&previous).display(), previous.display());
            assert!(said.contains(&offered), "{name}: {said}");
            run.resume(&["--check"]);
            assert!(!run.wait().success() && run.output().contains(&offered), "{name}: {}", run.output());
        }
        std::fs::write(&path, whole).unwrap();
    }
    std::fs::remove_file(newest.join("state.bin")).unwrap();
    let longer = format!("run.stop_env_steps={}", steps_of(&previous) + 500);
    run.resume(&["--from", previous.to_str().unwrap(), "--set", &longer]);
    run.succeed();
}

#[test]
fn the_command_that_the_report_offers_goes_on() {
    let mut run = start(&["run.stop_env_steps=2000", "checkpoint.interval_s=600"]);
    run.succeed();
    let steps = number(&run.metrics().pop().unwrap(), "env_steps");
    let offered = format!("--set run.stop_env_steps={}", 2 * steps);
    assert!(run.output().contains(&offered), "{}", run.output());
    run.resume(&offered.split(' ').collect::<Vec<_>>());
    run.succeed();
}

#[test]
fn a_supervisor_that_is_killed_again_and_again_never_loses_a_complete_checkpoint() {
    let mut run = start(&["checkpoint.interval_s=0.05"]);
    let (folder, mut steps) = (run.run_folder(), Vec::new());
    for kill in 0..12_u64 {
        let before = run.checkpoints().pop();
        run.wait_until("another checkpoint", || checkpoints_in(&folder).last() > before.as_ref());
        // Anywhere between two checkpoints, and in the middle of one.
        std::thread::sleep(std::time::Duration::from_millis(7 * kill));
        run.kill();
        let newest = steps_of(run.checkpoints().last().expect("a checkpoint"));
        steps.push(newest);
        let said = run.log().len();
        run.resume(&[]);
        run.wait_for_log_after(said, &format!(": {newest} environment steps"));
    }
    assert!(steps.is_sorted() && steps.first() < steps.last(), "{steps:?}");
    run.end_by(Signal::SIGTERM);
    assert!(run.log().contains("is complete"), "{}", run.log());
}

#[test]
fn a_stopped_process_does_not_keep_what_a_killed_supervisor_had() {
    let mut run = start(&["checkpoint.interval_s=600", "actor.count=2"]);
    run.wait_for_updates(100);
    let actor = run.processes("actor")[0];
    programs::kill(actor, Signal::SIGSTOP);
    run.kill();
    assert_eq!(run.checkpoints().len(), 1, "{}", run.log());
    run.resume(&["--set", "checkpoint.interval_s=none"]);
    run.wait_for_log("with the replay");
    run.end_by(Signal::SIGTERM);
}

#[test]
fn a_run_goes_on_in_its_own_folder_wherever_the_command_is_given() {
    let folder = tempfile::tempdir().unwrap();
    let changes = [programs::SMALL, &["checkpoint.interval_s=600", "run.folder=\"runs\""]].concat();
    let mut command = programs::command(folder.path(), &changes);
    command.current_dir(folder.path());
    let mut run = Supervised::spawn(command, folder);
    run.wait_for_updates(10);
    run.end_by(Signal::SIGTERM);
    let steps = steps_of(run.checkpoints().last().unwrap());
    let longer = format!("run.stop_env_steps={}", steps + 1_000);
    for option in [Some("--check"), None] {
        let mut command = run.program("supervisor");
        // Nobody, root neither, can make a folder there, and `runs` would be one.
        command.arg("resume").arg(run.run_folder().canonicalize().unwrap()).current_dir("/proc/self");
        told(&command.args(["--set", &longer]).args(option).output().unwrap());
    }
    assert_eq!(run.record()["finished"]["reason"], "step limit");
}

#[test]
fn a_checkpoint_that_does_not_get_on_is_said_with_its_writer_and_the_next_one_waits() {
    let mut run = start(&["checkpoint.interval_s=1"]);
    run.wait_for_updates(10);
    run.end_by(Signal::SIGTERM);
    // As long as somebody else has this lock, no checkpoint is written.
    let lock = std::fs::File::open(run.run_folder().join("checkpoints/.lock")).unwrap();
    lock.lock().unwrap();
    let before = run.checkpoints();
    let times_said = |log: &str| log.matches("is not complete").count();
    // Those before may have been slow, too.
    let earlier = times_said(&run.log());
    // Its first one: after one that was late, another is late no sooner than its writer gives the lock up.
    run.resume(&[]);
    let log_path = run.run_folder().join("run.log");
    run.wait_until("a word about it", || times_said(&std::fs::read_to_string(&log_path).unwrap()) > earlier);
    let log = run.log();
    let writer = log.rsplit("or process ").next().and_then(|rest| rest.split(',').next()).and_then(|pid| pid.parse().ok());
    assert!(writer.is_some_and(|pid: u32| pid != run.pid() && run.all_processes().contains(&pid)), "{log}");
    let updates = number(run.metrics().last().unwrap(), "updates");
    run.wait_for("updates beside it", |line| number(line, "updates") > updates + 100);
    assert_eq!((run.checkpoints(), times_said(&run.log())), (before.clone(), earlier + 1), "{}", run.log());
    drop(lock);
    let folder = run.run_folder();
    run.wait_until("the next one", || checkpoints_in(&folder).last() > before.last());
    run.end_by(Signal::SIGTERM);
}

#[test]
fn of_checkpoints_that_all_take_longer_than_their_interval_one_is_said_to_be_late_with_the_key_to_raise() {
    let mut run = start(&["checkpoint.interval_s=1e-6"]);
    run.wait_for_log("checkpoint 000001");
    let path = run.run_folder().join("checkpoints/.lock");
    for _ in 0..2 {
        // As long as somebody else has this lock, no checkpoint is written.
        let lock = std::fs::File::open(&path).unwrap();
        lock.lock().unwrap();
        run.wait_for_log("if they always take so long, raise checkpoint.interval_s");
        let updates = number(&run.wait_for_updates(0), "updates");
        run.wait_for("updates beside it", |line| number(line, "updates") > updates + 100);
        drop(lock);
        let (folder, before) = (run.run_folder(), run.checkpoints());
        run.wait_until("the next one", || checkpoints_in(&folder).last() > before.last());
    }
    assert_eq!(run.log().matches("is not complete").count(), 1, "{}", run.log());
    run.end_by(Signal::SIGTERM);
}

#[test]
fn another_stop_signal_gives_the_last_checkpoint_up_and_the_one_before_stays() {
    let mut run = start(&["checkpoint.interval_s=0.1"]);
    run.wait_for_log("checkpoint 000001");
    // As long as somebody else has this lock, no checkpoint is written.
    let lock = std::fs::File::open(run.run_folder().join("checkpoints/.lock")).unwrap();
    lock.lock().unwrap();
    let before = run.checkpoints();
    run.signal(Signal::SIGTERM);
    run.wait_until_left();
    // A signal that comes within a second, or before the run waits for its last checkpoint, only repeats the first one.
    let watchdog = Watchdog::new("the end of a run that is told so again and again");
    while run.is_running() {
        run.signal(Signal::SIGTERM);
        watchdog.pause(std::time::Duration::from_millis(20), || run.log());
    }
    let said = run.output();
    assert!(said.contains("given up after another stop signal"), "{said}");
    assert_eq!(run.checkpoints(), before);
    RunCheckpoint::open(before.last().unwrap()).unwrap();
}

#[test]
fn a_supervisor_that_crashes_loses_nothing_either() {
    let mut run = start(&["checkpoint.interval_s=600"]);
    run.wait_for_updates(100);
    run.signal(Signal::SIGABRT);
    assert!(!run.wait().success());
    run.wait_for_end_of_all();
    assert!(run.log().contains("has all that was there"), "{}", run.log());
    assert_eq!(run.checkpoints().len(), 1);
}

#[test]
fn a_run_of_which_everything_was_killed_at_once_goes_on_from_its_last_checkpoint() {
    let mut run = start(&["checkpoint.interval_s=0.2"]);
    run.wait_for_log("checkpoint 000002");
    let supervisor = run.pid();
    // The supervisor would replace killed processes, and reap those that end, so that their ids were free.
    programs::stop(supervisor);
    let others = run.all_processes().into_iter().filter(|&pid| pid != supervisor);
    others.for_each(|pid| programs::kill(pid, Signal::SIGKILL));
    run.kill();
    let newest = steps_of(run.checkpoints().last().unwrap());
    assert!(!run.log().contains("has all that was there"), "nobody was there to write it");
    run.resume(&["--set", "checkpoint.interval_s=none"]);
    run.wait_for_log(&format!("{newest} environment steps"));
    run.end_by(Signal::SIGTERM);
}

#[test]
fn a_change_that_a_run_went_on_with_stays_though_the_run_was_killed_before_its_next_checkpoint() {
    // Nobody writes a checkpoint for a synchronous run that was killed.
    let mut run = start(&["actor.count=0", "run.stop_env_steps=3000", "checkpoint.synchronous_interval_steps=1000"]);
    run.succeed();
    let checkpoints = run.checkpoints();
    let change = ["--set", "run.stop_env_steps=1000000000", "--set", "learner.learning_rate=0.005"];
    let none_for_long = ["--set", "checkpoint.synchronous_interval_steps=900000000"];
    run.resume(&[&change[..], &none_for_long].concat());
    run.wait_for("updates of the second life", |line| number(line, "env_steps") > 4000);
    run.kill();
    assert_eq!(run.checkpoints(), checkpoints);
    run.resume(&["--set", "run.stop_env_steps=6000"]);
    run.succeed();
    let config = Config::load(&run.run_folder().join("config.toml"), &[]).unwrap().config;
    assert_eq!((config.learner.learning_rate, config.run.stop_env_steps), (Some(0.005), 6000));
    assert!(number(&run.metrics().pop().unwrap(), "env_steps") >= 6000);
}

#[test]
fn a_run_that_cannot_go_on_here_stays_as_it_was() {
    let mut run = start(&["run.stop_env_steps=2000", "checkpoint.interval_s=600"]);
    run.succeed();
    let files = ["run.json", "config.toml", "run.log"].map(|name| run.run_folder().join(name));
    let read = || files.each_ref().map(|path| std::fs::read_to_string(path).unwrap());
    let before = read();
    let longer = || run.command_to("resume", &["--set", "run.stop_env_steps=900000000"]);
    let refusal_of = |command: &mut Command| {
        let output = command.output().unwrap();
        assert!(!output.status.success(), "{}", said(&output));
        assert_eq!(read(), before);
        said(&output)
    };
    let short = refusal_of(&mut under("ulimit -f 64", &longer()));
    assert!(short.contains("a run that goes on keeps its replay.capacity") && !short.contains("lower replay.capacity"), "{short}");
    let long = run.folder.path().join("x".repeat(110));
    std::fs::create_dir(&long).unwrap();
    let early = refusal_of(longer().env("XDG_RUNTIME_DIR", &long));
    assert!(early.contains("XDG_RUNTIME_DIR") && early.contains("the system allows 107"), "{early}");
    // These are opened when all else is there.
    let metrics = run.run_folder().join("metrics.jsonl");
    std::fs::remove_file(&metrics).unwrap();
    std::fs::create_dir(&metrics).unwrap();
    let late = refusal_of(&mut longer());
    assert!(late.contains("cannot append to") && late.contains("metrics.jsonl"), "{late}");
}

#[test]
fn a_configuration_that_a_power_cut_emptied_is_taken_from_the_checkpoint() {
    let mut run = start(&["run.stop_env_steps=2000", "checkpoint.interval_s=600", "learner.learning_rate=0.005"]);
    run.succeed();
    let path = run.run_folder().join("config.toml");
    std::fs::write(&path, "").unwrap();
    let steps = number(&run.metrics().pop().unwrap(), "env_steps");
    run.resume(&["--set", &format!("run.stop_env_steps={}", steps + 500)]);
    run.succeed();
    assert!(run.output().contains("config.toml is lost; going on with"), "{}", run.output());
    assert_eq!(Config::load(&path, &[]).unwrap().config.learner.learning_rate, Some(0.005));
}
