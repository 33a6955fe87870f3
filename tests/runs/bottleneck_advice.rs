//! Whoever follows the advice of a report gets what it promises: each kind of advice is taken from a real run and given to the next.
//!
//! The run with the advice and the run without it go on at the same time: whatever else the machine does slows both, and their rates are
//! compared with each other, never with a time.

use nix::sys::signal::Signal;
use serde_json::Value;

use crate::support::programs::{Supervised, kill, start};

/// Seconds of learning that are compared.
const SECONDS: f64 = 4.0;
/// How often runs are compared before the advice counts as bad.
const ATTEMPTS: usize = 3;

/// What a run did each second. If a process computes all the time, its rate is for each second of its processor time: within a few seconds
/// other programs do not leave equal shares of the cores.
struct Rates {
    env_steps: f64,
    updates: f64,
    env_steps_per_actor_second: f64,
    env_steps_per_learner_second: f64,
    updates_per_learner_second: f64,
    /// Updates for each second that all learners together spent on waiting for each other and adding up.
    updates_per_exchange_second: f64,
    /// Seconds that actors and learners together waited for the rate limiter.
    #[cfg(feature = "python")]
    waiting: f64,
}

/// Let runs that have been started learn for some seconds at the same time.
fn rates(mut runs: Vec<Supervised>, seconds: f64) -> Vec<(Rates, Value)> {
    let at = |line: &Value, key: &str| line[key].as_f64().unwrap();
    for run in &mut runs {
        run.wait_for_updates(0);
    }
    let first: Vec<Value> = runs.iter().map(|run| run.metrics().pop().unwrap()).collect();
    let mut last = first.clone();
    for ((run, first), last) in runs.iter_mut().zip(&first).zip(&mut last) {
        *last = run.wait_for("some seconds of learning", |line| at(line, "wall_s") >= at(first, "wall_s") + seconds);
    }
    let rates = first.iter().zip(&last).map(|(first, last)| {
        let per = |time: &str, key: &str| (at(last, key) - at(first, key)) / (at(last, time) - at(first, time));
        Rates {
            env_steps: per("wall_s", "env_steps"),
            updates: per("wall_s", "updates"),
            env_steps_per_actor_second: per("actor_processor_s", "env_steps"),
            env_steps_per_learner_second: per("learner_processor_s", "env_steps"),
            updates_per_learner_second: per("learner_processor_s", "updates"),
            updates_per_exchange_second: per("learner_exchange_s", "updates"),
            #[cfg(feature = "python")]
            waiting: per("wall_s", "actor_limiter_wait_s") + per("wall_s", "learner_limiter_wait_s"),
        }
    });
    let ended = runs.into_iter().zip(rates).map(|(mut run, rates)| {
        run.signal(Signal::SIGTERM);
        assert_eq!(run.wait().code(), Some(143), "{}", run.output());
        (rates, verdict_of(&run))
    });
    ended.collect()
}

fn start_with(settings: &[String]) -> Supervised {
    start(&settings.iter().map(String::as_str).collect::<Vec<_>>())
}

/// The report of a run with `settings`.
fn report(settings: &[String]) -> Value {
    let (_, verdict) = rates(vec![start_with(settings)], SECONDS / 2.0).remove(0);
    verdict
}

/// The verdict in the report of a run that has ended.
fn verdict_of(run: &Supervised) -> Value {
    run.record()["finished"]["summary"]["bottleneck"].clone()
}

/// The settings of the advice about `key` in a report.
fn advised(verdict: &Value, key: &str) -> Vec<String> {
    let advice = verdict["advice"].as_array().unwrap();
    let about_key = |advice: &&Value| advice["set"].as_array().unwrap().iter().any(|setting| setting["key"] == key);
    let found = advice.iter().find(about_key).unwrap_or_else(|| panic!("no advice about {key}: {verdict:#}"));
    let settings = found["set"].as_array().unwrap().iter();
    settings.map(|setting| format!("{}={}", setting["key"].as_str().unwrap(), setting["to"].as_str().unwrap())).collect()
}

/// What the advice about `key` promises: the `rate` of a run rises to more than `times` as much.
struct Promise {
    key: &'static str,
    times: f64,
    rate: fn(&Rates) -> f64,
}

fn promise(key: &'static str, times: f64, rate: fn(&Rates) -> f64) -> Promise {
    Promise { key, times, rate }
}

/// Assert that a run with `settings` names `bottleneck` and that its advice keeps `promises`.
fn follow(settings: &[&str], bottleneck: &str, promises: &[Promise]) {
    let settings: Vec<String> = settings.iter().map(|&setting| setting.to_owned()).collect();
    let verdict = report(&settings);
    assert_eq!(verdict["bottleneck"], bottleneck, "{verdict:#}");
    assert_kept(&settings, &verdict, promises);
}

/// Assert that runs with each piece of the advice in `verdict` do what it promises, compared with runs without it at the same time. If
/// other programs use the cores, the runs may get unequal shares of them in so short a time, so they try again.
fn assert_kept(settings: &[String], verdict: &Value, promises: &[Promise]) {
    let changed = promises.iter().map(|promise| [settings, advised(verdict, promise.key).as_slice()].concat());
    let all: Vec<Vec<String>> = std::iter::once(settings.to_vec()).chain(changed).collect();
    let mut gains = vec![Vec::new(); promises.len()];
    for _ in 0..ATTEMPTS {
        let found = rates(all.iter().map(|settings| start_with(settings)).collect(), SECONDS);
        for ((promise, gains), (after, _)) in promises.iter().zip(&mut gains).zip(&found[1..]) {
            gains.push((promise.rate)(after) / (promise.rate)(&found[0].0));
        }
        if promises.iter().zip(&gains).all(|(promise, gains)| gains.iter().any(|&gain: &f64| gain > promise.times)) {
            return;
        }
    }
    let told = promises.iter().zip(&gains).map(|(Promise { key, times, .. }, gains)| format!("{key}: {gains:?}, and not {times}"));
    panic!("with the advice runs do so many times as much: {}\n{verdict:#}", told.collect::<Vec<_>>().join("; "));
}

#[test]
fn more_actors_or_more_samples_per_insert_where_environments_sleep_and_learners_wait() {
    let settings =
        ["environment.step_delay_us=2000", "actor.environments=1", "replay.min_size=100", "actor.random_steps=0", "replay.error_band=256"];
    let promises = [promise("actor.count", 1.5, |run| run.env_steps), promise("replay.samples_per_insert", 1.4, |run| run.updates)];
    follow(&settings, "actors", &promises);
}

#[test]
fn more_environments_for_one_inference() {
    let settings = [
        "network.hidden=[256, 256]",
        "actor.environments=1",
        "replay.samples_per_insert=0.05",
        "replay.error_band=100",
        // A flush wakes the learner. On few cores the learner then takes the actor's, and that would count as inserting.
        "actor.flush_transitions=1024",
    ];
    follow(&settings, "actors", &[promise("actor.environments", 1.5, |run| run.env_steps_per_actor_second)]);
}

#[test]
fn larger_portions_for_the_replay() {
    let settings = [
        "network.hidden=[1]",
        "actor.flush_transitions=1",
        "actor.environments=1",
        "replay.samples_per_insert=0.05",
        "replay.error_band=100",
    ];
    follow(&settings, "actors", &[promise("actor.flush_transitions", 1.1, |run| run.env_steps_per_actor_second)]);
}

#[test]
fn fewer_samples_per_insert_or_a_smaller_network_where_actors_wait_and_learners_compute() {
    let settings = ["network.hidden=[256, 256]", "replay.samples_per_insert=64.0"].map(str::to_owned);
    let verdict = report(&settings);
    assert_eq!(verdict["bottleneck"], "learners", "{verdict:#}");
    let mut promises = vec![promise("replay.samples_per_insert", 1.5, |run| run.env_steps_per_learner_second)];
    // Where other programs take the cores, as other tests may, no smaller network is advised.
    if !verdict["evidence"].as_str().unwrap().contains("other programs take them") {
        promises.push(promise("network.hidden", 1.5, |run| run.updates_per_learner_second));
    }
    assert_kept(&settings, &verdict, &promises);
}

#[test]
fn fewer_learners_where_they_wait_for_each_other() {
    let settings = ["learner.count=4", "learner.batch_size=16", "network.hidden=[64, 64]", "replay.samples_per_insert=64.0"];
    follow(&settings, "learners", &[promise("learner.count", 1.3, |run| run.updates_per_exchange_second)]);
}

/// Every 100 steps the environment pauses for about as long as learning from them takes: neither side is slower, but both seldom have
/// something to do at once.
#[test]
#[cfg(feature = "python")]
fn a_wider_band_for_sides_that_wait_for_each_other() {
    let python_path = format!("environment.python_path={}", crate::support::python::folder().display());
    let mut pause_s = 0.1;
    let settings = |pause_s: f64| {
        let arguments = format!(r#"environment.keyword_arguments={{"pause_s": {pause_s}, "steps": 100}}"#);
        let others = [
            "environment.id=python:pausing:Pausing",
            "evaluator.enabled=false",
            "actor.environments=1",
            "actor.flush_transitions=1",
            "learner.batch_size=64",
            "network.hidden=[64, 64]",
            "replay.samples_per_insert=128.0",
            "replay.error_band=1280",
            "algorithm.n_step=1",
        ];
        others.map(str::to_owned).into_iter().chain([python_path.clone(), arguments]).collect::<Vec<_>>()
    };
    // How long learning takes depends on the machine and on what else it does.
    let balanced = (0..12).find_map(|_| {
        let settings = settings(pause_s);
        let verdict = report(&settings);
        pause_s *= match verdict["bottleneck"].as_str() {
            Some("rate_limiter") => return Some((settings, verdict)),
            Some("learners") => 1.4,
            _ => 0.7,
        };
        None
    });
    let (settings, verdict) = balanced.expect("no pause was as long as learning");
    // A step is the same work with any band, so less waiting means more steps.
    assert_kept(&settings, &verdict, &[promise("replay.error_band", 1.2, |run| 1.0 / run.waiting)]);
}

#[test]
fn a_process_that_is_killed_again_and_again_is_what_the_report_names() {
    let mut run = start(&[]);
    run.wait_for_updates(10);
    for _ in 0..4 {
        let seen = run.metrics().pop().unwrap()["restarts"].as_u64();
        kill(run.wait_for_process("actor"), Signal::SIGKILL);
        // Until the kernel has reported it, the process table still names the dead one.
        run.wait_for("the death to be seen", |line| line["restarts"].as_u64() > seen);
    }
    let last = run.metrics().pop().unwrap()["wall_s"].as_f64().unwrap();
    run.wait_for("some time without an actor", |line| line["wall_s"].as_f64().unwrap() > last + 3.0);
    run.signal(Signal::SIGTERM);
    assert_eq!(run.wait().code(), Some(143), "{}", run.output());
    let verdict = verdict_of(&run);
    assert_eq!((&verdict["bottleneck"], &verdict["advice"]), (&"failures".into(), &Value::Array(Vec::new())), "{verdict:#}");
}

/// How much of the cores actors leave to a learner depends on what else the machine does,
/// so that updates are counted by environment steps here.
#[test]
fn a_limit_for_actors_that_leave_learners_behind() {
    let settings = ["replay.samples_per_insert=\"none\"", "actor.count=4", "network.hidden=[64, 64]"];
    follow(&settings, "learners", &[promise("replay.samples_per_insert", 4.0, |run| run.updates / run.env_steps)]);
}

#[test]
fn several_processes_for_one_that_does_everything_in_turn() {
    let settings = [
        "actor.count=0",
        "environment.step_delay_us=200",
        "network.hidden=[64, 64]",
        "replay.samples_per_insert=64.0",
        "evaluator.enabled=false",
    ];
    follow(&settings, "one_process", &[promise("actor.count", 1.2, |run| run.env_steps)]);
}
