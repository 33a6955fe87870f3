//! Runs that learn from pixels, and runs that learn from fragments of trajectories: they reach their goals, survive kills, and are joined
//! and looked into as all others.

use std::time::Duration;

use nix::sys::signal::Signal;
use serde_json::Value;

use crate::support::programs::{Supervised, Watchdog, bits, kill, number, start_preset};

/// Everything in one process: the same seed gives the same run, however busy the machine is.
const SYNCHRONOUS: &[&str] = &["actor.count=0", "evaluator.synchronous_interval_steps=2500"];
const ENDLESS: &[&str] = &["run.stop_env_steps=1000000000", "run.stop_eval_return=\"none\""];

fn solves(preset: &str, overrides: &[&str]) {
    is_solved(start_preset(preset, &[SYNCHRONOUS, overrides].concat()));
}

fn is_solved(mut run: Supervised) {
    run.succeed();
    assert!(run.output().contains("fresh episodes, confirmed with the same weights"), "{}", run.output());
    run.assert_nothing_left();
}

#[test]
fn catch_is_learned_from_its_pixels_by_dqn() {
    solves("catch_dqn", &[]);
}

#[test]
fn catch_is_learned_from_its_pixels_by_dqn_with_convolutions() {
    // Half as many frames per episode as a replay that is not full would need: some are shown again and again.
    solves("catch_dqn", &["environment.frame_stack=2", "network.convolutions=[[8, 3, 1]]", "network.hidden=[32]", "replay.capacity=4000"]);
}

#[test]
fn catch_and_cartpole_are_learned_from_fragments() {
    solves("catch_appo", &[]);
    solves("cartpole_ppo", &["run.stop_eval_return=400.0"]);
    solves("cartpole_appo", &["run.stop_eval_return=150.0"]);
}

#[test]
fn catch_is_learned_from_batches_of_fragments_that_are_put_together_ahead() {
    // Only a learner with a process of its own has a thread for that; the evaluator may come late on a busy machine.
    is_solved(start_preset("catch_appo", &["learner.prefetch=true", "run.stop_env_steps=1000000000"]));
}

/// Rally with a small auto-encoder.
const DRAWN: &[&str] = &[
    "algorithm.normalise_observations=false",
    "auto_encoder.coefficient=1",
    "auto_encoder.latent=32",
    "network.convolutions=[[8, 4, 2], [8, 4, 2]]",
    "network.hidden=[32]",
    "actor.environments=4",
    "fragments.length_steps=5",
    "learner.batch_size=20",
    "learner.learning_rate=2e-3",
];

#[test]
fn an_auto_encoder_learns_to_draw_what_a_policy_sees_and_acts_without_its_decoder() {
    let fixed = ["run.stop_env_steps=2000", "run.stop_eval_return=\"none\"", "evaluator.episodes=1"];
    let mut run = start_preset("rally_appo", &[SYNCHRONOUS, DRAWN, &fixed].concat());
    run.succeed();
    let losses: Vec<f64> = run.metrics().iter().filter_map(|line| line["reconstruction_loss"].as_f64()).collect();
    let (first, last) = (losses[0], *losses.last().unwrap());
    assert!(last < 0.8 * first, "{losses:?}");
    let policy = run.last_weights();
    let heads: Vec<String> = policy.spec.tensors().into_iter().map(|tensor| tensor.name).collect();
    assert!(heads.iter().any(|name| name == "latent.weight"), "{heads:?}");
    assert_eq!(policy.parameters.len(), policy.spec.parameter_count(), "there is more than what acts");
    // From the file alone, which does not tell the coefficients.
    let file = run.run_folder().join("weights/last.safetensors").display().to_string();
    let played = run.ask("evaluate", &[&file, "--episodes", "1"]);
    assert!(played.contains("Rally-v0"), "{played}");
    run.assert_nothing_left();
}

#[test]
fn synchronous_runs_from_fragments_are_reproduced_bit_for_bit() {
    let train = |preset: &str, seed: &str| {
        let fixed = ["run.stop_env_steps=6000", "run.stop_eval_return=\"none\"", seed];
        let mut run = start_preset(preset, &[SYNCHRONOUS, &fixed].concat());
        run.succeed();
        let policy = run.last_weights();
        assert!(policy.metadata.updates > 50, "{:?}", policy.metadata);
        let last = run.metrics().pop().unwrap();
        assert!(number(&last, "learned") > 20 * number(&last, "sampled"), "a fragment has many steps, each learned from often: {last}");
        bits(&policy.parameters)
    };
    for preset in ["catch_appo", "cartpole_ppo"] {
        let first = train(preset, "run.seed=5");
        assert_eq!(first, train(preset, "run.seed=5"));
        assert_ne!(first, train(preset, "run.seed=6"));
    }
}

fn survives_kills(preset: &str, overrides: &[&str], metrics: &[&str]) {
    let mut run = start_preset(preset, &[ENDLESS, &["actor.count=2", "learner.count=2"], overrides].concat());
    run.wait_for_updates(100);
    for (restarts, role) in (1..).zip(["actor", "learner", "actor", "learner"]) {
        kill(run.wait_for_process(role), Signal::SIGKILL);
        let before = number(&run.metrics().pop().unwrap(), "updates");
        run.wait_for("the run to go on", |line| number(line, "restarts") == restarts && number(line, "updates") > before + 100);
    }
    let last = run.metrics().pop().unwrap();
    // Hardly any fragment came too late, as those of an actor without a core do, and none was overwritten.
    assert!(20 * number(&last, "dropped_fragments") <= number(&last, "inserted"), "{last}");
    assert!(number(&last, "sampled") <= number(&last, "inserted"), "{last}");
    for metric in metrics {
        assert!(last[metric].is_number(), "{metric} is missing in {last}");
    }
    run.end_by(Signal::SIGTERM);
}

#[test]
fn actors_and_learners_of_a_run_from_fragments_may_be_killed() {
    let of_both = ["policy_loss", "value_loss", "explained_variance", "entropy", "kl", "clipped_share"];
    survives_kills("cartpole_appo", &[], &[&of_both[..], &["importance_weight"]].concat());
    survives_kills("cartpole_appo", &["learner.prefetch=true"], &of_both);
    survives_kills("cartpole_ppo", &[], &of_both);
    // Learners settle on statistics here.
    survives_kills("pendulum_ppo", &[], &[&of_both[..], &["action_std"]].concat());
}

#[test]
fn learners_of_an_auto_encoder_may_be_killed() {
    survives_kills("rally_appo", DRAWN, &["value_loss", "reconstruction_loss"]);
}

#[test]
fn two_learners_learn_where_everything_is_normalised() {
    // When each learner scaled its part of a batch by its own latest statistics, two of three seeds never left the smallest return.
    // `segment_gradients` proves that they scale alike. With the preset's single network and without a weight of the entropy, which do for
    // CartPole, a policy may become sure of itself here before it has been at the goal once.
    let acrobot = [
        "environment.id=Acrobot-v1",
        "algorithm.gamma=0.99",
        "algorithm.trace_decay=0.94",
        "algorithm.epochs=4",
        "algorithm.minibatches=64",
        "algorithm.normalise_observations=true",
        "algorithm.normalise_rewards=true",
        "algorithm.entropy_start=0.01",
        "network.separate_value=true",
        "actor.environments=16",
        "learner.batch_size=4096",
        "learner.learning_rate=3e-4",
        "fragments.length_steps=256",
        "run.stop_env_steps=1000000",
        "run.stop_eval_return=-100",
        "learner.count=2",
    ];
    for seed in ["run.seed=1", "run.seed=2"] {
        let mut run = start_preset("cartpole_ppo", &[&acrobot[..], &[seed]].concat());
        // Where other programs have the cores it may take longer than one wait. It gets on until it has ended.
        for steps in (0..1_000_000).step_by(100_000) {
            let watchdog = Watchdog::new(format!("{steps} steps or the end"));
            while run.is_running() && run.metrics().last().is_none_or(|line| number(line, "env_steps") < steps) {
                watchdog.pause(Duration::from_secs(1), || run.log());
            }
        }
        run.succeed();
        assert!(run.output().contains("fresh episodes, confirmed with the same weights"), "{}", run.output());
        run.assert_nothing_left();
    }
}

#[test]
fn fragments_are_not_taken_for_old_because_the_only_learner_was_killed() {
    // A killed learner's updates since its last state are gone: what acts then is behind the count of before.
    let mut run = start_preset("cartpole_appo", &[ENDLESS, &["fragments.max_policy_lag_updates=5"]].concat());
    run.wait_for_updates(100);
    for restarts in 1..=4 {
        kill(run.wait_for_process("learner"), Signal::SIGKILL);
        run.wait_for("the replacement", |line| number(line, "restarts") == restarts);
        let before = number(&run.metrics().pop().unwrap(), "updates");
        run.wait_for("the run to go on", |line| number(line, "updates") > before + 150);
    }
    run.end_by(Signal::SIGTERM);
}

#[test]
fn actors_that_do_not_wait_overwrite_fragments_and_those_are_counted() {
    // None is ever too old, which would count as well.
    let overwrites = ["fragments.on_full=\"drop_oldest\"", "fragments.uses=64", "fragments.max_policy_lag_updates=1000000000"];
    let mut run = start_preset("cartpole_appo", &[ENDLESS, &overwrites].concat());
    run.wait_for("dropped fragments", |line| number(line, "dropped_fragments") > 50 && number(line, "updates") > 100);
    run.end_by(Signal::SIGTERM);
}

#[test]
fn a_fragment_is_shown_step_by_step_with_its_newest_frame() {
    let bytes = ["algorithm.normalise_observations=false"];
    let small = ["network.convolutions=[[4, 6, 4]]", "network.hidden=[16]", "actor.environments=4", "learner.batch_size=400"];
    let mut run = start_preset("rally_appo", &[ENDLESS, &bytes, &small].concat());
    run.wait_for("the first fragments", |line| number(line, "updates") > 2);
    let shown = run.ask("inspect", &[&run.pid().to_string(), "--transition", "0"]);
    let (fields, steps) = shown.split_once("step  age  action").unwrap_or_else(|| panic!("{shown}"));
    assert!(fields.contains("52 x 1 x 42 x 42, the newest below"), "{shown}");
    let (steps, picture) = steps.split_once("\n\n").unwrap_or_else(|| panic!("{shown}"));
    assert_eq!(steps.lines().skip(1).count(), 50, "{shown}");
    // The paddles and the ball, two rows of pixels in a line; what is empty below them is left out.
    assert!((1..=21).contains(&picture.lines().count()), "{shown}");
    assert!(picture.contains('@') && !picture.contains('['), "{shown}");
    let values = run.ask("inspect", &[&run.pid().to_string(), "--transition", "0", "--json"]);
    let values: Value = serde_json::from_str(&values).unwrap();
    assert_eq!(values["fields"][0]["shape"], serde_json::json!([52, 1, 42, 42]));
    run.end_by(Signal::SIGTERM);
}

#[test]
fn a_share_of_each_batch_is_replayed_whoever_is_killed() {
    let replayed = ["fragments.replay_share=0.5", "fragments.max_policy_lag_updates=1000000", "learner.count=2"];
    let mut run = start_preset("cartpole_appo", &[ENDLESS, &replayed].concat());
    for restarts in 1..=2 {
        run.wait_for("replayed fragments", |line| {
            let (replayed, taken) = (number(line, "replayed_fragments"), number(line, "sampled"));
            // As many are replayed as are new, once the first batches are over.
            number(line, "restarts") == restarts - 1 && taken > 400 && 5 * replayed > 4 * taken && 5 * replayed < 6 * taken
        });
        kill(run.wait_for_process("learner"), Signal::SIGKILL);
        run.wait_for("the replacement", |line| number(line, "restarts") == restarts);
    }
    run.end_by(Signal::SIGTERM);
}

#[test]
fn a_run_with_frames_is_joined_looked_into_and_survives_kills() {
    let small = [
        "network.convolutions=[[4, 6, 4]]",
        "network.hidden=[16]",
        "replay.capacity=1500",
        "replay.min_size=200",
        "actor.random_steps=200",
    ];
    let mut run = start_preset("rally_dqn", &[ENDLESS, &small].concat());
    run.wait_for_updates(20);
    let pid = run.pid().to_string();
    let mut attached = run.program("attach").arg(&pid).spawn().unwrap();
    run.wait_for("an attached actor", |line| number(line, "attached") == 1);
    for (restarts, role) in (1..).zip(["actor", "learner", "actor"]) {
        kill(run.wait_for_process(role), Signal::SIGKILL);
        let before = number(&run.metrics().pop().unwrap(), "updates");
        run.wait_for("the run to go on", |line| number(line, "restarts") == restarts && number(line, "updates") > before + 20);
    }
    // Beyond a lap of the store and of the frames.
    run.wait_for("the ring of frames to come round", |line| number(line, "inserted") > 4_000);
    let shown = run.ask("inspect", &[&pid, "--json", "--transition", "7"]);
    let shown: Value = serde_json::from_str(&shown).unwrap();
    let field = |name: &str| {
        let fields = shown["transition"]["fields"].as_array().or(shown["fields"].as_array()).expect("fields");
        fields.iter().find(|field| field["name"] == name).unwrap_or_else(|| panic!("{name} in {shown}"))["values"]
            .as_array()
            .unwrap()
            .clone()
    };
    let (observation, next) = (field("observation"), field("next_observation"));
    let frame = 42 * 42;
    assert_eq!(observation.len() % frame, 0, "{}", observation.len());
    assert!(observation.len() > frame && observation.len() == next.len());
    assert!(observation.iter().all(|value| value.as_u64().is_some_and(|value| value == 0 || value == 255)), "pixels of the game");
    assert!(observation.iter().any(|value| value.as_u64() == Some(255)));
    kill(attached.id(), Signal::SIGINT);
    attached.wait().unwrap();
    run.end_by(Signal::SIGTERM);
}
