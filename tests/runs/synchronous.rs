//! The synchronous mode is reproducible bit for bit.

use nix::sys::signal::Signal;
use shoal::checkpoint::{PolicyWeights, RunCheckpoint};
use shoal::segment::control::{Control, RunState};
use shoal::sync::Ordering;

use crate::support::programs::{self, Supervised, bits, number, start, start_preset, wait_until};

fn train(overrides: &[&str]) -> (PolicyWeights, Vec<serde_json::Value>) {
    let fixed = ["actor.count=0", "run.stop_env_steps=4000", "evaluator.synchronous_interval_steps=1000"];
    let mut run = start(&[&fixed[..], overrides].concat());
    run.succeed();
    let evaluations = std::fs::read_to_string(run.run_folder().join("evaluations.jsonl")).unwrap();
    let evaluations = evaluations.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    (run.last_weights(), evaluations)
}

#[test]
fn the_same_seed_gives_the_same_parameters_bit_for_bit() {
    let (first, first_evaluations) = train(&["run.seed=7"]);
    let (second, second_evaluations) = train(&["run.seed=7"]);
    assert!(first.metadata.updates > 100, "{:?}", first.metadata);
    assert_eq!(first.metadata, second.metadata);
    assert_eq!(bits(&first.parameters), bits(&second.parameters));
    let means = |all: &[serde_json::Value]| all.iter().map(|line| line["return_mean"].clone()).collect::<Vec<_>>();
    assert!(first_evaluations.len() >= 4);
    assert_eq!(means(&first_evaluations), means(&second_evaluations));
    let (other, _) = train(&["run.seed=8"]);
    assert_ne!(bits(&first.parameters), bits(&other.parameters));
}

#[test]
fn uniform_replay_is_reproducible_too() {
    let overrides = ["replay.prioritized=false", "algorithm.n_step=3", "network.dueling=true"];
    assert_eq!(bits(&train(&overrides).0.parameters), bits(&train(&overrides).0.parameters));
}

#[test]
fn an_evaluation_may_take_longer_than_a_process_may_be_silent() {
    // Episodes of 200 steps, each of which takes 8 environments 20 ms: 4 s in all.
    let overrides = [
        "environment.id=MountainCar-v0",
        "environment.step_delay_us=2500",
        "actor.environments=1",
        "evaluator.episodes=8",
        "evaluator.confirm_episodes=8",
    ];
    let short = ["run.stop_env_steps=100", "replay.min_size=40", "actor.random_steps=0", "machine.hang_timeout_s=3.0"];
    let (_, evaluations) = train(&[&overrides[..], &short[..]].concat());
    assert_eq!(evaluations.iter().filter(|line| line["kind"] == "routine").count(), 1);
}

#[test]
fn a_signal_to_the_trainer_alone_is_no_step_limit() {
    let mut run = start(&["actor.count=0"]);
    run.wait_for_updates(10);
    programs::kill(run.wait_for_process("synchronous trainer"), Signal::SIGTERM);
    assert_eq!(run.wait().code(), Some(128 + Signal::SIGTERM as i32), "{}", run.output());
    assert_eq!(run.record()["finished"]["reason"], "terminated");
}

#[test]
fn the_first_death_of_the_trainer_ends_its_run_which_says_why() {
    let mut run = start(&["actor.count=0"]);
    run.wait_for_updates(10);
    programs::kill(run.wait_for_process("synchronous trainer"), Signal::SIGKILL);
    assert!(!run.wait().success());
    let reason = run.record()["finished"]["reason"].to_string();
    assert!(reason.contains("gave up: synchronous trainer 0 was killed by SIGKILL"), "{reason}");
    assert!(run.run_folder().join("weights/last.safetensors").exists(), "{}", run.log());
    run.assert_nothing_left();
}

/// Stop the supervisor, and wait until the trainer asks it for a checkpoint.
fn stop_until_one_is_wanted(run: &Supervised, control: Control<'_>) {
    programs::stop(run.pid());
    let is_wanted = || control.checkpoint_wanted().load(Ordering::Acquire) != 0;
    wait_until("the trainer to ask for a checkpoint", || run.log(), is_wanted);
}

/// The environment steps of each checkpoint, the oldest first.
fn steps_of_checkpoints(run: &Supervised) -> Vec<u64> {
    run.checkpoints().iter().map(|path| RunCheckpoint::open(path).unwrap().manifest().env_steps).collect()
}

fn assert_ends_with_a_checkpoint_of(run: &mut Supervised, env_steps: u64) {
    assert_eq!(run.wait().code(), Some(128 + Signal::SIGTERM as i32), "{}", run.output());
    let written = steps_of_checkpoints(run);
    assert!(written.contains(&env_steps), "{written:?}, and none of {env_steps}; the log:\n{}", run.log());
}

#[test]
fn a_checkpoint_that_the_trainer_has_asked_for_is_written_though_its_run_ends_in_that_moment() {
    let mut run = start(&["actor.count=0", "checkpoint.synchronous_interval_steps=2000"]);
    run.wait_for_process("synchronous trainer");
    let segment = run.segment_read_only();
    let control = segment.control();
    // The supervisor is told to end the run before it can see that a checkpoint is wanted.
    stop_until_one_is_wanted(&run, control);
    let env_steps = control.env_steps().load(Ordering::Relaxed);
    run.signal(Signal::SIGTERM);
    run.signal(Signal::SIGCONT);
    assert_ends_with_a_checkpoint_of(&mut run, env_steps);
}

#[test]
fn a_checkpoint_that_fails_while_the_trainer_leaves_is_written_once_it_has_left() {
    let mut run = start(&["actor.count=0", "checkpoint.synchronous_interval_steps=2000"]);
    let trainer = run.wait_for_process("synchronous trainer");
    let segment = run.segment_read_only();
    let control = segment.control();
    stop_until_one_is_wanted(&run, control);
    // As long as somebody else has this lock, no checkpoint is written.
    let folder = run.run_folder().join("checkpoints");
    std::fs::create_dir_all(&folder).unwrap();
    let lock = std::fs::File::create(folder.join(".lock")).unwrap();
    lock.lock().unwrap();
    let before = run.all_processes();
    run.signal(Signal::SIGCONT);
    let writer = run.look_for("who writes it", |run| run.all_processes().into_iter().find(|pid| !before.contains(pid)));
    let env_steps = control.env_steps().load(Ordering::Relaxed);
    programs::stop(trainer);
    run.signal(Signal::SIGTERM);
    run.wait_until("the end of training", || control.run_state() == RunState::Stopping);
    programs::kill(writer, Signal::SIGKILL);
    run.wait_for_log("ended without a word");
    drop(lock);
    // The trainer may have been killed by now.
    programs::try_kill(trainer, Signal::SIGCONT);
    assert_ends_with_a_checkpoint_of(&mut run, env_steps);
}

#[test]
fn checkpoints_wait_for_whole_fragments_so_that_every_step_is_learned_from() {
    // The eight environments complete fragments every 256 steps, which are a batch, and each batch is learned from 16 times.
    for (preset, drops) in [("cartpole_ppo", None), ("cartpole_appo", Some("fragments.on_full=drop_oldest"))] {
        for (interval, expected) in [(100, &[256, 512, 768, 1024, 1280][..]), (300, &[512, 768, 1024, 1280][..])] {
            let interval = format!("checkpoint.synchronous_interval_steps={interval}");
            let others = ["actor.count=0", "checkpoint.keep_last=10", "run.stop_env_steps=1280", "evaluator.enabled=false"];
            let changes: Vec<&str> = others.into_iter().chain(["run.stop_eval_return=none", interval.as_str()]).chain(drops).collect();
            let mut run = start_preset(preset, &changes);
            run.succeed();
            assert_eq!(steps_of_checkpoints(&run), expected, "{preset}, {interval}");
            let last = run.metrics().pop().unwrap();
            assert_eq!((number(&last, "inserted"), number(&last, "updates")), (40, 80), "{preset}: {last}");
        }
    }
}

#[test]
fn a_checkpoint_that_is_due_before_the_end_is_not_put_off_beyond_it() {
    let others = ["actor.count=0", "evaluator.enabled=false", "run.stop_eval_return=none", "run.stop_env_steps=1000"];
    for (interval, expected) in [(1000, &[1000][..]), (1001, &[][..])] {
        let interval = format!("checkpoint.synchronous_interval_steps={interval}");
        let mut run = start_preset("cartpole_ppo", &[&others[..], &[&interval]].concat());
        run.succeed();
        assert_eq!(steps_of_checkpoints(&run), expected, "{interval}");
    }
}

#[test]
fn the_first_checkpoint_of_every_so_many_steps_stays_beside_the_newest() {
    let mut run = start(&[
        "actor.count=0",
        "evaluator.enabled=false",
        "run.stop_env_steps=5000",
        "checkpoint.synchronous_interval_steps=1000",
        "checkpoint.keep_last=1",
        "checkpoint.keep_every_steps=3000",
    ]);
    run.succeed();
    assert_eq!(steps_of_checkpoints(&run), [1000, 3000, 5000]);
}

#[test]
fn what_is_learned_in_the_end_is_evaluated_once() {
    for checkpoints in [None, Some("checkpoint.synchronous_interval_steps=4000")] {
        let (policy, evaluations) = train(checkpoints.as_slice());
        let steps = |kind: &str| -> Vec<u64> {
            evaluations.iter().filter(|line| line["kind"] == kind).map(|line| number(line, "env_steps")).collect()
        };
        let routine = steps("routine");
        assert!(routine.len() == 4 && routine[3] == 4000, "{routine:?}, {checkpoints:?}");
        // The others are of what was published last before they were due.
        let are_newest = (1..4).zip(&routine).all(|(thousands, &steps)| (thousands * 1000 - 200..=thousands * 1000).contains(&steps));
        assert!(are_newest, "{routine:?}, {checkpoints:?}");
        assert!(policy.metadata.evaluation.is_some(), "the last weights say how good they are: {:?}", policy.metadata);
    }
}

#[test]
fn evaluations_change_nothing_of_what_is_learned() {
    let learned = |evaluations: &[&str]| {
        // Evaluations fall between publications, and nearly all actions are the policy's.
        let fixed = ["actor.count=0", "run.stop_env_steps=4000", "learner.publish_interval_updates=7", "algorithm.epsilon_start=0.05"];
        let mut run = start(&[&fixed[..], evaluations].concat());
        run.succeed();
        bits(&run.last_weights().parameters)
    };
    let without = learned(&["evaluator.enabled=false"]);
    for interval in [300, 1000] {
        let with = learned(&[&format!("evaluator.synchronous_interval_steps={interval}"), "evaluator.confirm_episodes=4"]);
        assert!(with == without, "other parameters with an evaluation every {interval} steps");
    }
}

#[test]
fn fragments_that_were_learned_from_are_in_a_checkpoint_only_if_they_may_be_replayed() {
    let fixed = ["actor.count=0", "checkpoint.synchronous_interval_steps=512", "run.stop_env_steps=600", "evaluator.enabled=false"];
    for (preset, replay_share, are_kept) in
        [("cartpole_ppo", None, false), ("cartpole_appo", None, false), ("cartpole_appo", Some("fragments.replay_share=0.5"), true)]
    {
        let changes: Vec<&str> = fixed.into_iter().chain(["run.stop_eval_return=none"]).chain(replay_share).collect();
        let mut run = start_preset(preset, &changes);
        run.succeed();
        let checkpoint = RunCheckpoint::open(&run.checkpoints()[0]).unwrap();
        let row_bytes = 8 * checkpoint.manifest().layout.row_words as u64;
        let bytes = std::fs::metadata(checkpoint.path().join("replay.shoal")).unwrap().len();
        assert_eq!(bytes > row_bytes, are_kept, "{bytes} bytes, {row_bytes} of a row: {preset}, {replay_share:?}");
    }
}

#[test]
fn the_last_updates_are_reported_though_there_are_few() {
    let mut run = start(&["actor.count=0", "run.stop_env_steps=300", "learner.learning_rate=2e-3", "learner.learning_rate_end=1e-3"]);
    run.succeed();
    let last = run.metrics().pop().unwrap();
    assert!((1..16).contains(&last["updates"].as_u64().unwrap()), "{last}");
    assert!(last["loss"].is_number() && last["gradient_norm"].is_number() && last["learning_rate"] == 1e-3, "{last}");
}

#[test]
fn what_one_process_did_is_counted_once() {
    // A second of steps: counted twice they would be more than the whole run.
    let mut run = start(&["actor.count=0", "environment.step_delay_us=500", "run.stop_env_steps=2000", "evaluator.enabled=false"]);
    run.succeed();
    let last = run.metrics().pop().unwrap();
    assert!(last["updates"].as_u64() > Some(0), "{last}");
    let seconds = |key: &str| last[key].as_f64().unwrap_or_else(|| panic!("no `{key}` in {last}"));
    let acting = ["environment", "inference", "insert", "limiter_wait"].map(|work| seconds(&format!("actor_{work}_s")));
    let learning = ["replay", "compute", "exchange", "publish", "limiter_wait"].map(|work| seconds(&format!("learner_{work}_s")));
    let (all_s, wall_s) = (acting.iter().chain(&learning).sum::<f64>(), seconds("wall_s"));
    assert!(all_s > 0.9 && all_s <= wall_s, "{all_s} s of {wall_s} s: {last}");
    assert!(acting[3].max(learning[4]) < wall_s / 10.0, "nobody waits: {last}");
}

#[test]
fn a_run_that_ends_before_its_first_update_leaves_the_weights_that_it_would_have_begun_with() {
    let (policy, _) = train(&["run.stop_env_steps=500", "replay.min_size=5000"]);
    assert_eq!(policy.metadata.updates, 0);
    assert!(policy.parameters.iter().any(|&value| value != 0.0));
}
