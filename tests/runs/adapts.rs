//! A run fits itself to the machine while it is under way: it starts actors, ends them, changes the number of environments and the batch,
//! keeps what is faster, writes down what it tried, and survives kills meanwhile.

use std::time::Duration;

use nix::sys::signal::Signal;
use serde_json::Value;
use shoal::machine::cores;
use shoal::segment::Segment;
use shoal::segment::counters::Counter;
use shoal::segment::membership::View;
use shoal::segment::processes::Role;
use shoal::sync::Ordering;

use crate::support::programs::{
    Supervised, Watchdog, confine, kill, learner, limit_files, living, number, said, start, start_preset, stop, told, too_few_files,
    try_kill,
};
use crate::support::skipped;

/// The run tries only what a test adds, at any time of the run.
const FIXED: &[&str] = &[
    "adaptation.enabled=true",
    "adaptation.freeze_after=1",
    "actor.count=1",
    "actor.environments=2",
    "adaptation.most_actors=1",
    "adaptation.fewest_environments=2",
    "adaptation.most_environments=2",
];

fn adapting(overrides: &[&str]) -> Supervised {
    start(&[FIXED, overrides].concat())
}

fn probes(run: &Supervised) -> Vec<Value> {
    run.lines("adaptation.jsonl")
}

/// The closing report's figures.
fn summary(run: &Supervised) -> Value {
    run.record()["finished"]["summary"].clone()
}

fn view(segment: &Segment) -> View {
    View::load(segment.control().membership())
}

/// Updates and samples so far.
fn progress(segment: &Segment) -> [u64; 2] {
    let control = segment.control();
    [control.updates(), control.sampled()].map(|word| word.load(Ordering::Relaxed))
}

/// Wait until learners have made `more` updates.
fn wait_for_updates(run: &mut Supervised, segment: &Segment, more: u64) {
    let wanted = progress(segment)[0] + more;
    run.wait_until("updates", || progress(segment)[0] >= wanted);
}

/// Transitions per update while a view doubles the configured batch twice.
fn batch_when_doubled_twice(run: &mut Supervised, segment: &Segment) -> f64 {
    batch_in_a_view(run, segment, |view| view.doublings == 2).1
}

/// A view for which `is_wanted` holds, and the transitions per update in it.
fn batch_in_a_view(run: &mut Supervised, segment: &Segment, is_wanted: impl Fn(View) -> bool) -> (View, f64) {
    let watchdog = Watchdog::new("a wanted view that lasts for 80 updates");
    // Measure until the view has stayed the same meanwhile: each time that a batch is tried, it lasts for more than a hundred updates.
    loop {
        watchdog.pause(Duration::ZERO, || run.log());
        run.wait_until("a wanted view", || is_wanted(view(segment)));
        wait_for_updates(run, segment, 10);
        let (seen, before) = (view(segment), progress(segment));
        wait_for_updates(run, segment, 70);
        let after = progress(segment);
        if view(segment) == seen && is_wanted(seen) {
            return (seen, (after[1] - before[1]) as f64 / (after[0] - before[0]) as f64);
        }
    }
}

#[test]
fn actors_whose_environments_sleep_become_more_and_the_report_and_a_run_that_goes_on_know_of_them() {
    let mut run = adapting(&["environment.step_delay_us=2000", "adaptation.most_actors=2", "checkpoint.interval_s=600"]);
    run.wait_for_log("faster with --set actor.count=2 --set actor.environments=2 --set learner.batch_size=32");
    run.wait_for("two actors", |metrics| metrics["actors"] == 2);
    run.end_by(Signal::SIGINT);

    let first = &probes(&run)[0];
    assert_eq!((&first["from"]["actors"], &first["to"]["actors"], &first["verdict"]), (&1.into(), &2.into(), &"accepted".into()));
    let gain = first["tried"]["median"].as_f64().unwrap() / first["before"]["median"].as_f64().unwrap();
    assert!(gain > 1.05, "a gain of {gain}: {first}");
    let found = summary(&run);
    assert_eq!(found["restarts"], 0, "who is sent away has not died");
    let fitted = found["fitted"].as_str().unwrap().split(';').next().unwrap();
    assert!(fitted.starts_with("--set actor.count="), "{fitted}");
    let mut again = run.program("supervisor");
    told(&again.arg(run.run_folder().join("config.toml")).args(fitted.split(' ')).arg("--check").output().unwrap());

    let plan = run.plan_to_resume();
    assert!(plan.contains("actors 0 to 1"), "what is checked is what would be done: {plan}");
    let of_machine = said(&run.command_to("resume", &["--check", "--set", "adaptation.most_actors=none"]).output().unwrap());
    assert!(plan.contains("fits itself actor.count 1 to 2, ") && !of_machine.contains("actor.count 1 to 2, "), "{of_machine}");
    assert!(of_machine.contains("fits itself actor.count 1 to "), "{of_machine}");
    run.resume(&[]);
    run.wait_for_log("goes on from checkpoint");
    let segment = run.segment();
    run.wait_until("two actors", || living(&segment, "actor").len() == 2);
    drop(segment);
    run.end_by(Signal::SIGINT);
    let fitted = summary(&run)["fitted"].as_str().unwrap().to_owned();
    assert!(fitted.contains("1 settings tried, 1 faster"), "what it had tried is not forgotten: {fitted}");

    run.resume(&["--set", "adaptation.freeze_after=0"]);
    run.look_for("two actors, though none is tried", |run| (run.processes("actor").len() == 2).then_some(()));
    let segment = run.segment();
    wait_for_updates(&mut run, &segment, 200);
    assert_eq!(living(&segment, "actor").len(), 2);
    drop(segment);
    run.end_by(Signal::SIGINT);
    let fitted = summary(&run)["fitted"].as_str().unwrap().to_owned();
    assert!(fitted.starts_with("--set actor.count=2 ") && fitted.contains("1 settings tried, 1 faster"), "{fitted}");

    // Half of the run is over.
    let limit = format!("run.stop_env_steps={}", 2 * number(&run.metrics().pop().unwrap(), "env_steps"));
    for (freeze_after, words) in
        [("0.9", "fits itself actor.count 1 to 2, "), ("0.2", "fits itself not: nothing is tried after 0.2 of the run")]
    {
        let changes = ["--check", "--set", &limit, "--set", &format!("adaptation.freeze_after={freeze_after}")];
        let plan = said(&run.command_to("resume", &changes).output().unwrap());
        assert!(plan.contains(words), "{freeze_after}: {plan}");
    }
}

#[test]
fn a_setting_that_is_tried_when_the_run_ends_is_a_line_too() {
    let mut run = adapting(&["environment.step_delay_us=2000", "adaptation.most_actors=2"]);
    run.wait_for("two actors", |metrics| metrics["actors"] == 2);
    run.end_by(Signal::SIGINT);
    let probes = probes(&run);
    assert_eq!(probes.len(), 1, "{probes:?}");
    let probe = &probes[0];
    assert_eq!((&probe["to"]["actors"], &probe["verdict"], &probe["reason"]), (&2.into(), &"abandoned".into(), &"the run ended".into()));
    let fitted = summary(&run)["fitted"].as_str().unwrap().to_owned();
    assert!(fitted.starts_with("--set actor.count=1 ") && fitted.contains("1 settings tried, 0 faster"), "{fitted}");
}

#[test]
fn after_its_part_of_the_steps_a_run_gives_up_what_it_tries_and_tries_nothing_else() {
    // Each actor takes at most 500 steps per second. The first probe begins after some 4,000 steps and would take 12,000. The rest of the
    // run is long enough for another probe to begin, and there is more to try.
    let ends = ["run.stop_env_steps=16500", "adaptation.freeze_after=0.6", "evaluator.enabled=false"];
    let ranges = ["environment.step_delay_us=2000", "adaptation.most_actors=4", "adaptation.most_environments=8"];
    let mut run = adapting(&[ends, ranges].concat());
    for steps in [4_000, 8_000, 12_000] {
        run.wait_for("steps of actors that sleep", |line| number(line, "env_steps") >= steps);
    }
    let status = run.wait();
    assert!(status.success(), "{}", run.output());

    let (probes, metrics) = (probes(&run), run.metrics());
    assert!(!probes.is_empty(), "nothing was tried before, either; the log:\n{}", run.log());
    let steps_at_end = |probe: &Value| {
        let moment = metrics.iter().rfind(|line| line["wall_s"].as_f64() <= probe["wall_s"].as_f64());
        number(moment.expect("metrics come before probes"), "env_steps")
    };
    // Whatever had begun would have ended as a line, at the end of the run at the latest.
    let late: Vec<&Value> = probes.iter().filter(|probe| steps_at_end(probe) >= 9_900).collect();
    let is_given_up = |probe: &&Value| probe["reason"] == "the run is past the steps in which settings are tried";
    assert!(late.len() <= 1 && late.iter().all(is_given_up), "{late:?}");
}

#[test]
fn actors_are_replaced_by_some_with_other_environments_without_a_loss_and_none_of_them_counts_as_dead() {
    // Learners wait for actors whose steps sleep, so that more environments are what is tried.
    let mut run = adapting(&["environment.step_delay_us=1000", "adaptation.most_environments=4", "algorithm.n_step=1"]);
    let (first, segment) = (run.wait_for_process("actor"), run.segment());
    run.wait_until("another actor", || living(&segment, "actor").iter().any(|&(_, pid)| pid != first));
    let probe = run.look_for("the end of a probe", |run| probes(run).into_iter().next());
    wait_for_updates(&mut run, &segment, 10);
    assert_eq!(probe["to"]["environments"], 4);
    drop(segment);
    run.end_by(Signal::SIGINT);
    assert!(!run.log().contains("asked to leave") && !run.log().contains("restarting"), "{}", run.log());
    assert_eq!(summary(&run)["restarts"], 0);
    let last = run.metrics().pop().expect("a run has metrics");
    assert_eq!(last["inserted"], last["env_steps"], "a step is a transition at once, and none that was staged is lost");
}

#[test]
fn learners_take_a_larger_batch_together_and_go_on_with_it_when_their_leader_is_killed() {
    let mut run = adapting(&["learner.count=2", "adaptation.largest_batch=128", "replay.samples_per_insert=none"]);
    run.wait_for_process("learner");
    let segment = run.segment();
    let batch = batch_when_doubled_twice(&mut run, &segment);
    assert!((120.0..136.0).contains(&batch), "{batch} transitions per update, of both learners");

    let leader = view(&segment).leader;
    let learners = living(&segment, "learner");
    let &(_, pid) = learners.iter().find(|(number, _)| Some(*number) == leader).expect("the leader lives");
    kill(pid, Signal::SIGKILL);
    run.wait_until("another leader", || view(&segment).leader != leader);
    run.wait_until("both learners", || view(&segment).members == 0b11);
    wait_for_updates(&mut run, &segment, 200);
    drop(segment);
    run.assert_tree_is_exact();
    run.end_by(Signal::SIGINT);
}

#[test]
fn an_actor_that_is_killed_while_it_is_tried_comes_back_and_the_search_comes_to_its_end() {
    let mut run = adapting(&["environment.step_delay_us=2000", "adaptation.most_actors=2"]);
    run.wait_for_process("actor");
    let segment = run.segment();
    let tried = |segment: &Segment| living(segment, "actor").into_iter().find(|&(number, _)| number == 1).map(|(_, pid)| pid);
    let victim = run.look_for("the actor that is tried, and its end", |_| {
        tried(&segment).filter(|pid| {
            // It may have ended with its probe.
            try_kill(*pid, Signal::SIGKILL)
        })
    });
    run.wait_until("its replacement", || tried(&segment).is_some_and(|pid| pid != victim));
    run.wait_for_log("faster with --set actor.count=2");
    drop(segment);
    run.assert_tree_is_exact();
    run.end_by(Signal::SIGINT);
    assert_eq!(summary(&run)["restarts"], 1);
}

/// End a run with a configured batch of 32 once four times as many were drawn in each update.
fn end_once_doubled_twice(run: &mut Supervised) {
    run.wait_for_process("learner");
    let segment = run.segment();
    let batch = batch_when_doubled_twice(run, &segment);
    assert!((120.0..136.0).contains(&batch), "{batch} transitions per update");
    let drawn = segment.processes().iter().map(|slot| slot.counters().get(Counter::Sampled)).max();
    assert!(drawn.is_some_and(|drawn| drawn > 0), "the learner has drawn nothing, say its own counters");
    drop(segment);
    run.end_by(Signal::SIGINT);
}

#[test]
fn a_learner_that_draws_ahead_takes_a_larger_batch_too() {
    let mut run = adapting(&["learner.prefetch=true", "adaptation.largest_batch=128", "replay.samples_per_insert=none"]);
    end_once_doubled_twice(&mut run);
}

#[test]
fn halves_take_a_larger_batch_each_and_go_on_with_it_whichever_is_killed_while_it_is_tried() {
    let halved = [
        "learner.split=actor_critic",
        "learner.batch_size=32",
        "adaptation.largest_batch=128",
        "network.hidden=[32]",
        "replay.samples_per_insert=none",
        "replay.min_size=200",
        "actor.random_steps=200",
        "evaluator.enabled=false",
        "run.stop_env_steps=1000000000",
        "run.stop_eval_return=none",
        "checkpoint.interval_s=none",
    ];
    let mut run = start_preset("pendulum_td3", &[FIXED, &halved].concat());
    run.wait_for_process("learner");
    let segment = run.segment();
    // What the critics' half draws counts as sampled.
    let batch = batch_when_doubled_twice(&mut run, &segment);
    assert!((120.0..136.0).contains(&batch), "{batch} transitions per update");
    for half in [0, 1] {
        // After the first death the batch is tried from the beginning, which leaves time for the second.
        stop_in_a_probe(&mut run, &segment);
        let killed = learner(&segment, half).pid();
        kill(killed, Signal::SIGKILL);
        run.signal(Signal::SIGCONT);
        run.wait_until("its replacement", || living(&segment, "learner").iter().any(|&(number, pid)| number == half && pid != killed));
    }
    // By now the larger batch may have been judged.
    let (seen, batch) = batch_in_a_view(&mut run, &segment, |view| view.members == 0b11);
    assert!((0.9..1.1).contains(&(batch / seen.batch_size(32) as f64)), "{batch} transitions per update in {seen:?}");
    let updates = || {
        let learners = segment.processes().iter().filter(|slot| slot.plays(Role::Learner));
        learners.map(|slot| slot.counters().get(Counter::Updates)).collect::<Vec<_>>()
    };
    let before = updates();
    assert_eq!(before.len(), 2);
    run.wait_until("both halves to learn on", || updates().iter().zip(&before).all(|(now, before)| *now > before + 20));
    drop(segment);
    run.end_by(Signal::SIGINT);
}

#[test]
fn updates_stay_in_step_with_inserts_while_a_larger_batch_is_tried_and_after() {
    let held = ["adaptation.hold=updates_per_step", "adaptation.largest_batch=128", "replay.samples_per_insert=32"];
    let mut run = adapting(&held);
    end_once_doubled_twice(&mut run);

    let last = run.lines("metrics.jsonl").pop().expect("a run has metrics");
    let [inserted, updates, sampled] = ["inserted", "updates", "sampled"].map(|key| last[key].as_f64().unwrap());
    // Each update counts as 32 samples, each transition after the first 200 calls for as many. A flush has up to 41 transitions: one may
    // leave the band, which is as wide, and one comes after the end.
    let surplus = 32.0 * (inserted - 200.0) - 32.0 * updates;
    assert!(surplus.abs() <= 3.5 * 32.0 * 41.0, "{surplus} samples beyond the updates: {last}");
    // In at least 80 updates the batch was larger by 96.
    assert!(sampled - 32.0 * updates >= 7_000.0, "counted by samples the surplus would be far off: {last}");
}

#[test]
fn neither_side_blocks_the_other_while_a_larger_batch_is_tried_and_after() {
    let mut run = adapting(&["adaptation.hold=samples_per_insert", "adaptation.largest_batch=128", "replay.samples_per_insert=2"]);
    run.wait_for_process("learner");
    let segment = run.segment();
    let batch = batch_when_doubled_twice(&mut run, &segment);
    assert!((120.0..136.0).contains(&batch), "{batch} transitions per update");
    // If the larger batch was found to be faster meanwhile, it stays.
    run.look_for("the batch of before, or a verdict", |run| (view(&segment).doublings == 0 || !probes(run).is_empty()).then_some(()));
    wait_for_updates(&mut run, &segment, 200);
    drop(segment);
    run.end_by(Signal::SIGINT);

    let last = run.metrics().pop().expect("a run has metrics");
    let [inserted, sampled] = ["inserted", "sampled"].map(|key| number(&last, key) as f64);
    // The bound of the test above, with a band of 128 samples, the largest batch.
    let surplus = 2.0 * (inserted - 200.0) - sampled;
    assert!(surplus.abs() <= 128.0 + 2.5 * 2.0 * 41.0, "{surplus} samples beyond those that were drawn: {last}");
}

/// Stop the supervisor while a batch of 128 is tried instead of 32, which takes it ten seconds or more.
fn stop_in_a_probe(run: &mut Supervised, segment: &Segment) {
    let watchdog = Watchdog::new("a larger batch on trial");
    loop {
        run.wait_until("a larger batch", || view(segment).doublings == 2);
        stop(run.pid());
        if view(segment).doublings == 2 && probes(run).is_empty() {
            return;
        }
        run.signal(Signal::SIGCONT);
        watchdog.pause(Duration::ZERO, || run.log());
    }
}

/// A run whose supervisor stands still in such a probe.
fn stopped_in_a_probe(overrides: &[&str]) -> Supervised {
    let mut run = adapting(&[&["adaptation.largest_batch=128", "replay.samples_per_insert=none"][..], overrides].concat());
    run.wait_for_process("learner");
    let segment = run.segment();
    stop_in_a_probe(&mut run, &segment);
    run
}

#[test]
fn a_batch_on_trial_when_the_run_loses_cores_is_taken_back_and_the_run_goes_on() {
    let usable = cores::usable_now();
    if usable < 2 {
        return skipped::because("with a single core there is none to lose");
    }
    let mut run = stopped_in_a_probe(&[]);
    confine(run.pid(), cores::affinity_mask()[0]);
    run.signal(Signal::SIGCONT);
    let probe = run.look_for("the end of the probe", |run| probes(run).into_iter().next());
    let reason = format!("the run may use 1 core instead of {usable}");
    assert_eq!((&probe["to"]["batch_size"], &probe["verdict"], &probe["reason"]), (&128.into(), &"abandoned".into(), &reason.into()));
    let segment = run.segment();
    run.wait_until("the batch of before", || view(&segment).doublings == 0);
    wait_for_updates(&mut run, &segment, 50);
    drop(segment);
    run.end_by(Signal::SIGINT);
    assert_eq!(summary(&run)["restarts"], 0);
}

#[test]
fn a_batch_on_trial_when_the_supervisor_is_killed_is_not_in_force_when_the_run_goes_on() {
    // Nothing is tried any more: the batch stays as the run begins with it.
    let changes = ["--set", "adaptation.freeze_after=0"];
    for sentinel in ["checkpoint", "keep"] {
        let mut run = stopped_in_a_probe(&["checkpoint.interval_s=600", &format!("machine.sentinel={sentinel}")]);
        if sentinel == "keep" {
            run.kill_and_wait_for_keeper();
            run.adopt(&changes);
            run.wait_for_log("goes on in the memory in which it was kept");
        } else {
            run.kill();
            run.resume(&changes);
            run.wait_for_log("goes on from checkpoint");
        }
        let segment = run.segment();
        wait_for_updates(&mut run, &segment, 10);
        let before = progress(&segment);
        wait_for_updates(&mut run, &segment, 200);
        let after = progress(&segment);
        let batch = (after[1] - before[1]) as f64 / (after[0] - before[0]) as f64;
        assert!((30.0..34.0).contains(&batch), "{batch} transitions per update");
        assert_eq!(view(&segment).doublings, 0);
        drop(segment);
        run.end_by(Signal::SIGINT);
        assert!(probes(&run).is_empty(), "nobody has judged it: {:?}", probes(&run));
        let fitted = summary(&run)["fitted"].as_str().unwrap().to_owned();
        let begun = "--set actor.count=1 --set actor.environments=2 --set learner.batch_size=32 ";
        assert!(fitted.starts_with(begun) && fitted.contains("0 settings tried, 0 faster"), "{fitted}");
    }
}

/// Crash the process of `role` that `victim` chooses, until the log says that this setting was given up.
fn crash_until_given_up(run: &mut Supervised, segment: &Segment, role: &str, setting: &str, victim: impl Fn(usize) -> bool) {
    let watchdog = Watchdog::new(format!("{setting} to be taken back"));
    while !run.log().contains(&format!("gave up trying {setting}")) {
        assert!(run.is_running(), "the run ended before {setting} was taken back; the log:\n{}", run.log());
        for (number, pid) in living(segment, role) {
            if victim(number) {
                // It may have ended meanwhile.
                try_kill(pid, Signal::SIGSEGV);
            }
        }
        watchdog.pause(Duration::from_micros(200), || run.log());
    }
}

#[test]
fn a_setting_whose_actor_crashes_again_and_again_is_taken_back_and_the_run_goes_on() {
    let mut run = adapting(&["environment.step_delay_us=2000", "adaptation.most_actors=2"]);
    run.wait_for_process("actor");
    let segment = run.segment();
    crash_until_given_up(&mut run, &segment, "actor", "--set actor.count=2", |number| number == 1);
    run.wait_until("the other to be gone", || living(&segment, "actor").len() == 1);
    wait_for_updates(&mut run, &segment, 50);
    drop(segment);
    run.end_by(Signal::SIGINT);
}

#[test]
fn a_batch_with_which_a_learner_crashes_again_and_again_is_taken_back_and_the_run_goes_on() {
    // The setting answers for these deaths: with so few allowed the run would be over before it is taken back.
    let mut run = adapting(&["adaptation.largest_batch=128", "replay.samples_per_insert=none", "machine.max_restarts=2"]);
    run.wait_for_process("learner");
    let segment = run.segment();
    let setting = "--set actor.count=1 --set actor.environments=2 --set learner.batch_size=128";
    crash_until_given_up(&mut run, &segment, "learner", setting, |_| view(&segment).doublings == 2);
    run.wait_until("the batch of before", || view(&segment).doublings == 0);
    wait_for_updates(&mut run, &segment, 50);
    let replaced: u64 = segment.processes().iter().map(|slot| slot.restarts()).sum();
    drop(segment);
    run.end_by(Signal::SIGINT);
    assert_eq!(summary(&run)["restarts"], replaced, "inspect counts as the report does");
}

#[test]
fn a_setting_for_whose_actor_the_system_has_no_room_is_taken_back_and_the_run_goes_on() {
    // Nothing is tried before seven windows are over. With a rate limiter the learner would wait for an actor that busy cores leave a few
    // steps per second, and windows would last up to ten seconds: the probe could come minutes later, or before the test had counted
    // enough updates to set the limit. Without one a window lasts a second, and the limit is set as soon as the run is complete.
    let changes =
        ["environment.step_delay_us=2000", "adaptation.most_actors=2", "evaluator.enabled=false", "replay.samples_per_insert=none"];
    // If the limit came too late all the same, nothing is proved. If it comes in time, a child still measures the cores, whose answer finds
    // a supervisor that can open nothing.
    let limited_in_time = || {
        let mut run = adapting(&changes);
        // The supervisor has started all that it begins with.
        run.wait_for("the first metrics", |_| true);
        stop(run.pid());
        let usual = limit_files(&run, too_few_files());
        let is_in_time = living(&run.segment(), "actor").iter().all(|&(number, _)| number == 0);
        run.signal(Signal::SIGCONT);
        is_in_time.then_some((run, usual))
    };
    let (mut run, usual) = (0..20).find_map(|_| limited_in_time()).expect("a limit is set before anything is tried");
    // Whatever became of what was tried first, so that a search that went another way fails at once, with what it did.
    let given_up = run.look_for("the end of a probe", |run| probes(run).pop());
    run.wait_for_log("gave up trying --set actor.count=2");
    limit_files(&run, usual);

    assert!(run.log().contains("actor 1 could not be started"), "{}", run.log());
    let ends = (&given_up["from"]["actors"], &given_up["to"]["actors"]);
    assert_eq!((ends, &given_up["verdict"]), ((&1.into(), &2.into()), &"abandoned".into()));
    assert!(given_up["reason"].as_str().unwrap().starts_with("a process failed: "), "{given_up}");
    // A process that is wanted would be started again after a second.
    let later_s = given_up["wall_s"].as_f64().unwrap() + 3.0;
    run.wait_for("three more seconds", |metrics| metrics["wall_s"].as_f64() > Some(later_s));
    let segment = run.segment();
    assert_eq!(living(&segment, "actor").len(), 1);
    wait_for_updates(&mut run, &segment, 50);
    drop(segment);
    run.end_by(Signal::SIGINT);
    let fitted = summary(&run)["fitted"].as_str().unwrap().to_owned();
    assert!(fitted.starts_with("--set actor.count=1 ") && fitted.contains("1 settings tried, 0 faster"), "{fitted}");
}
