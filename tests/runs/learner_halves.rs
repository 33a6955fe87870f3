//! Two learners that share an algorithm by halves: together they learn what one learns, and either may be killed.

use nix::sys::signal::Signal;
use rand::SeedableRng;
use serde_json::Value;
use shoal::algorithms::{Half, Learning, Random, RunningStatistics, Statistics};
use shoal::config::Config;
use shoal::experience::transition::OBSERVATION;
use shoal::metrics::Share;
use shoal::replay::Batch;
use shoal::segment::Segment;
use shoal::segment::counters::Counter;
use shoal::segment::processes::{Phase, Role};

use crate::support::few_transitions::{ROWS, algorithm, batch, config, segment, state};
use crate::support::programs::{bits, kill, learner, living, start_preset, stop_outside_of_operations};

const UPDATES: u64 = 40;

/// Parameters of the policy and of the critics.
fn parameters(learning: &mut dyn Learning, config: &Config) -> [Vec<u32>; 2] {
    let policy = bits(learning.published());
    let mut critics = vec![0.0; algorithm(config).handed_over()];
    // A whole algorithm hands over the critics, as the half that learns them does.
    learning.halved().unwrap().hand_over(&mut critics);
    [policy, bits(&critics)]
}

/// The statistics that actors would publish of the observations in `batch`, if wanted.
fn statistics_of(batch: &Batch, is_wanted: bool) -> Option<Statistics> {
    let observations = batch.column(OBSERVATION).as_f32();
    let length = observations.len() / batch.rows();
    let mut running = RunningStatistics::new(length, 1, 0.99);
    let mut all = Statistics::new(length);
    running.observe(observations);
    let mut values = vec![0.0; 2 * length + 2];
    let counts = running.publish(&mut values);
    all.merge(&values, counts);
    is_wanted.then_some(all)
}

/// What is learned alone, and by halves that hand their parameters over after every `interval`-th update.
fn alone_and_halved(name: &str, change: impl Fn(&mut Config), interval: u64) -> [[Vec<u32>; 2]; 2] {
    let mut config = config(name, "Pendulum-v1");
    change(&mut config);
    let algorithm = algorithm(&config);
    let segment = segment(&*algorithm);
    let batch = batch(&segment, &*algorithm, 0..ROWS);
    let mut gradient = vec![0.0; algorithm.sizes().learned];
    // If observations are normalised, all learners have the same statistics.
    let seen = statistics_of(&batch, config.algorithm.normalise_observations);
    let prepared = |learning: &mut dyn Learning| {
        let mut batch = batch.clone();
        if let Some(seen) = &seen {
            learning.normalise_with(seen);
        }
        learning.prepare(&mut batch);
        batch
    };
    let mut update = |learning: &mut dyn Learning, random: &mut Random| {
        let batch = prepared(learning);
        let mut share = learning.gradient(&batch, random, &mut gradient);
        assert!(learning.apply(&mut gradient, &mut share, 1e-3).is_finite());
    };
    let (mut alone, mut random) = (algorithm.learning(3).unwrap(), Random::seed_from_u64(1));
    (0..UPDATES).for_each(|_| update(&mut *alone, &mut random));

    let mut halves = [Half::Critics, Half::Policy].map(|half| {
        let mut learning = algorithm.learning(3).unwrap();
        learning.halved().unwrap().learn_only(half);
        learning
    });
    // The halves draw noise in the order in which one learner does: first for the critics' targets, then for the policy.
    let mut random = Random::seed_from_u64(1);
    let mut values = vec![vec![0.0; algorithm.handed_over()]; 2];
    for updates in 0..=UPDATES {
        if updates.is_multiple_of(interval) {
            for (half, values) in halves.iter_mut().zip(&mut values) {
                half.halved().unwrap().hand_over(values);
            }
            for (half, values) in halves.iter_mut().zip(values.iter().rev()) {
                half.halved().unwrap().take_over(values, updates, updates);
            }
        }
        if updates < UPDATES {
            halves.iter_mut().for_each(|half| update(&mut **half, &mut random));
        }
    }
    let [critics, policy] = &mut halves;
    let together = [parameters(&mut **policy, &config)[0].clone(), parameters(&mut **critics, &config)[1].clone()];
    [parameters(&mut *alone, &config), together]
}

#[test]
fn halves_that_take_over_after_every_update_learn_what_one_learner_learns_bit_for_bit() {
    for name in ["ddpg", "td3", "sac"] {
        for target_interval in [1, 2] {
            let change = |config: &mut Config| config.algorithm.target_interval_updates = Some(target_interval);
            let [alone, halved] = alone_and_halved(name, change, 1);
            assert!(alone == halved, "{name}, target interval {target_interval}");
            let [alone, halved] = alone_and_halved(name, change, 8);
            assert!(alone[0] != halved[0] && alone[1] != halved[1], "{name}: halves that take over seldom cannot learn the same");
        }
    }
}

#[test]
fn halves_that_normalise_observations_learn_what_one_learner_learns_bit_for_bit() {
    let normalise = |is_wanted: bool| move |config: &mut Config| config.algorithm.normalise_observations = is_wanted;
    let [alone, halved] = alone_and_halved("sac", normalise(true), 1);
    assert!(alone == halved);
    assert!(alone[1] != alone_and_halved("sac", normalise(false), 1)[0][1], "what is normalised is learned otherwise");
}

#[test]
fn a_target_policy_moves_as_far_however_seldom_it_receives_the_policy() {
    // The policy does not move, so its target comes as near to it whether it receives it once or eight times.
    let still = |config: &mut Config| {
        config.algorithm.policy_learning_rate = Some(1e-30);
        config.algorithm.target_interval_updates = Some(1);
    };
    let [alone, halved] = alone_and_halved("td3", still, 8);
    let difference = |part: usize| {
        let values = |bits: &[u32]| bits.iter().map(|&bits| f32::from_bits(bits)).collect::<Vec<_>>();
        values(&alone[part]).iter().zip(values(&halved[part])).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max)
    };
    assert!(difference(0) < 1e-6 && difference(1) < 1e-6, "{} {}", difference(0), difference(1));
}

/// The part of its way to a policy that the target policy of a restored half of the critics goes while that half hears of the policy after
/// each of `heard` updates. The critics have made a hundred steps, `own_updates` of them in this run.
fn way_gone(own_updates: u64, heard: impl IntoIterator<Item = u64>) -> f32 {
    let mut config = config("td3", "Pendulum-v1");
    config.algorithm.target_interval_updates = Some(1);
    let algorithm = algorithm(&config);
    let [mut source, mut critics] = [3, 4].map(|seed| algorithm.learning(seed).unwrap());
    let mut gradient = vec![0.01; algorithm.sizes().learned];
    for _ in 0..100 {
        source.apply(&mut gradient, &mut Share::of(algorithm.metrics(), 1, 1.0), 1e-3);
    }
    critics.halved().unwrap().learn_only(Half::Critics);
    critics.restore(&state(&*algorithm, &*source));
    // The policy's part of a state: parameters, then those of the target.
    let first_of_target = critics.published().len();
    let target = |learning: &dyn Learning| state(&*algorithm, learning)[first_of_target];
    let begin = target(&*critics);
    let policy = vec![1.0; algorithm.handed_over()];
    for updates in heard {
        critics.halved().unwrap().take_over(&policy, updates, own_updates);
    }
    (target(&*critics) - begin) / (1.0 - begin)
}

#[test]
fn a_restored_target_policy_has_followed_as_many_updates_as_the_critics_have_made_in_the_run() {
    let way_of = |steps: i32| 1.0 - 0.995f32.powi(steps);
    // A policy whose half is further behind makes again what has been followed.
    assert_eq!(way_gone(100, (0..=96).step_by(8)), 0.0);
    // Other steps of the critics are of the run that this one began with.
    for (own_updates, heard, steps) in [(100, [96, 110], 10), (50, [60, 60], 10), (0, [60, 64], 64)] {
        let gone = way_gone(own_updates, heard);
        assert!((gone - way_of(steps)).abs() < 1e-5, "{own_updates} updates, {heard:?} of the policy: {gone}");
    }
}

const SPLIT: &[&str] = &[
    "learner.split=actor_critic",
    "network.hidden=[32, 32]",
    "learner.batch_size=32",
    "replay.samples_per_insert=32",
    "run.stop_eval_return=none",
    "evaluator.episodes=2",
];

fn updates_of(line: &Value) -> u64 {
    line["updates"].as_u64().unwrap_or(0)
}

/// Updates behind what each half has handed over last.
fn handed_over(segment: &Segment) -> Vec<u64> {
    let boards = segment.handing_over_boards();
    boards.map(|board| board.read(&mut vec![0.0; board.len()]).map_or(0, |(_, [updates, ..])| updates)).collect()
}

#[test]
fn a_run_goes_on_whichever_half_is_killed_and_neither_runs_away_from_the_other() {
    for (preset, change) in
        [("pendulum_sac", "algorithm.normalise_observations=true"), ("pendulum_td3", "learner.publish_interval_updates=2")]
    {
        let endless = ["run.stop_env_steps=1000000000", "learner.swap_interval_updates=4", change];
        let mut run = start_preset(preset, &[SPLIT, &endless].concat());
        let mut deaths = 0;
        for killed in [&[0][..], &[1], &[0, 1], &[1, 0]] {
            let goal = updates_of(&run.metrics().pop().unwrap_or_default()) + 300;
            run.wait_for("updates", |line| updates_of(line) >= goal);
            let segment = run.segment();
            run.wait_until("both halves", || living(&segment, "learner").len() == 2);
            let learners = living(&segment, "learner");
            for number in killed {
                let (_, pid) = learners.iter().find(|(found, _)| found == number).unwrap();
                kill(*pid, Signal::SIGKILL);
            }
            deaths += killed.len() as u64;
            run.wait_for("replacements", |line| line["restarts"].as_u64() >= Some(deaths));
        }
        assert!(!run.log().contains("which leads"), "neither leads the other:\n{}", run.log());
        let goal = updates_of(&run.metrics().pop().unwrap()) + 300;
        run.wait_for("updates after all", |line| updates_of(line) >= goal);
        let segment = run.segment();
        run.wait_until("both halves to be near each other", || {
            let [critics, policy] = handed_over(&segment)[..] else { panic!("two halves") };
            // The updates of two swaps, and of one that is under way.
            critics.abs_diff(policy) <= 12
        });
        run.end_by(Signal::SIGINT);
    }
}

/// Version of the state that a half has saved last, the updates behind it, and what it holds.
fn saved(segment: &Segment, half: usize) -> (u64, u64, Vec<u32>) {
    let board = segment.learner_boards().nth(half).unwrap();
    let mut values = vec![0.0; board.len()];
    let (version, [_, updates, ..]) = board.read(&mut values).unwrap();
    (version, updates, bits(&values))
}

#[test]
fn a_killed_half_goes_on_from_the_state_that_it_saved_last() {
    for preset in ["pendulum_ddpg", "pendulum_sac"] {
        let endless = ["run.stop_env_steps=1000000000", "learner.swap_interval_updates=4", "machine.hang_timeout_s=60"];
        let mut run = start_preset(preset, &[SPLIT, &endless].concat());
        run.wait_for("updates", |line| updates_of(line) >= 100);
        let segment = run.segment();
        for (killed, other) in [(0, 1), (1, 0)] {
            let goal = handed_over(&segment)[killed] + 150;
            run.wait_until("updates of both halves", || handed_over(&segment).iter().all(|&updates| updates >= goal));
            // From here on both hand over only at swaps; right after a death they also do so in between.
            // While the other half stands still, the replacement comes as far as the dead half did, so it saves nothing on the way.
            stop_outside_of_operations(learner(&segment, other));
            let most = handed_over(&segment)[other] + 8;
            run.wait_until("the half to be as far ahead as it may", || handed_over(&segment)[killed] == most);
            let (version, updates, state) = saved(&segment, killed);
            kill(learner(&segment, killed).pid(), Signal::SIGKILL);
            run.wait_until("the state that its replacement begins with", || saved(&segment, killed).0 > version);
            let (next, begun_with, values) = saved(&segment, killed);
            assert_eq!([next, begun_with], [version + 1, updates], "{preset}, half {killed}");
            assert!(updates > 100 && values == state, "{preset}, half {killed}: another state of {updates} updates");
            kill(learner(&segment, other).pid(), Signal::SIGCONT);
            run.wait_until("both to go on", || handed_over(&segment).iter().all(|&updates| updates > most));
        }
        run.end_by(Signal::SIGINT);
    }
}

#[test]
fn a_half_waits_for_the_other_within_two_swaps_however_long_that_stands_still() {
    for number in [0, 1] {
        let mut run = start_preset("pendulum_sac", &[SPLIT, &["run.stop_env_steps=1000000000", "machine.hang_timeout_s=60"]].concat());
        run.wait_for("updates", |line| updates_of(line) >= 100);
        let segment = run.segment();
        let (_, stopped) = living(&segment, "learner").into_iter().find(|(found, _)| *found == number).unwrap();
        kill(stopped, Signal::SIGSTOP);
        // The policy's half says that it waits for rows, if the critics' half was stopped while it waited for rows.
        let is_wait = |phase| phase == Phase::Exchange || number == 0 && phase == Phase::LimiterWait;
        let waits = || {
            let slots = segment.processes();
            let waiting =
                slots.iter().filter(|slot| slot.plays(Role::Learner) && slot.pid() != stopped && slot.phase().is_some_and(is_wait));
            waiting.count() == 1
        };
        run.wait_until("the other half to wait", waits);
        let a_while = std::time::Duration::from_millis(200);
        std::thread::sleep(a_while);
        let before = handed_over(&segment);
        std::thread::sleep(a_while);
        assert!(waits(), "it waits on");
        assert_eq!(handed_over(&segment), before, "both stand still");
        assert!(before[0].abs_diff(before[1]) <= 24, "{before:?}");
        kill(stopped, Signal::SIGCONT);
        run.wait_until("both to go on", || handed_over(&segment).iter().zip(&before).all(|(now, before)| now > before));
        run.end_by(Signal::SIGINT);
    }
}

#[test]
fn the_half_of_the_critics_alone_counts_as_sampled_what_it_draws() {
    let mut run = start_preset("pendulum_sac", &[SPLIT, &["run.stop_env_steps=1000000000", "replay.prioritized=true"]].concat());
    run.wait_for("updates", |line| updates_of(line) >= 100);
    let segment = run.segment();
    run.wait_until("updates of both halves", || handed_over(&segment).iter().all(|&updates| updates >= 100));
    let [critics, policy] = [0, 1].map(|half| learner(&segment, half).counters().get(Counter::Sampled));
    assert!(critics >= 100 * 32 && policy == 0, "{critics} by the critics' half, {policy} by the policy's");
    run.end_by(Signal::SIGINT);
}

#[test]
fn a_run_in_halves_says_what_both_learn_and_goes_on_from_a_checkpoint_with_both() {
    let mut run = start_preset(
        "pendulum_sac",
        &[SPLIT, &["run.stop_env_steps=3000", "checkpoint.interval_s=60", "checkpoint.replay=always"]].concat(),
    );
    run.succeed();
    let last = run.metrics().pop().unwrap();
    for metric in ["loss", "q_mean", "gradient_norm", "policy_loss", "entropy", "action_std", "entropy_temperature"] {
        assert!(last[metric].is_number(), "{metric} in {last}");
    }
    let (updates, sampled) = (updates_of(&last), last["sampled"].as_u64().unwrap());
    // The rate limiter does not count the batches of the policy's half.
    assert!(sampled <= (updates + 2) * 32 && updates > 1000, "{updates} updates, {sampled} samples");
    assert_eq!(last["learned"].as_u64(), Some(updates * 32), "both halves learn from as much, which counts once");
    let before = last["entropy_temperature"].as_f64().unwrap();
    run.resume(&["--set", "run.stop_env_steps=9000"]);
    run.succeed();
    let metrics = run.metrics();
    let first = metrics
        .iter()
        .find(|line| updates_of(line) > updates && line["entropy_temperature"].is_number())
        .unwrap_or_else(|| panic!("no metrics of both halves beyond {updates} updates in {:#?}\n{}", metrics.last(), run.log()));
    let after = first["entropy_temperature"].as_f64().unwrap();
    // The first line may come late on a busy machine. Each step of Adam changes the temperature's logarithm by about the learning rate.
    let steps = (updates_of(first) - updates) as f64 * 1e-3;
    assert!((after / before).ln().abs() < 2.0 * steps + 0.1, "the temperature went on from {before} with {after}, after {steps}");
    run.resume(&["--set", "learner.split=none", "--set", "run.stop_env_steps=12000"]);
    assert!(!run.wait().success());
    assert!(run.output().contains("learner.split"));
}

#[test]
fn a_split_run_whose_supervisor_was_killed_goes_on_with_both_halves() {
    let mut run = start_preset("pendulum_td3", &[SPLIT, &["run.stop_env_steps=1000000000", "checkpoint.interval_s=0.2"]].concat());
    run.wait_for("updates", |line| updates_of(line) >= 500);
    run.wait_for_log("checkpoint 000001");
    run.kill();
    // More updates than the first life can have made: it may have gone on after its last line.
    let goal = run.metrics().iter().map(updates_of).max().unwrap() + 500;
    run.resume(&["--set", "checkpoint.interval_s=none"]);
    run.wait_for_log("goes on from checkpoint");
    run.wait_for("more updates", |line| updates_of(line) >= goal);
    let segment = run.segment();
    // The checkpoint may have had as many updates already. Then the halves have yet to hand over what they begin with.
    run.wait_until("halves that have handed over", || handed_over(&segment).iter().all(|&updates| updates >= 500));
    run.end_by(Signal::SIGINT);
}
