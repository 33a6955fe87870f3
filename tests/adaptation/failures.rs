//! A setting that cannot be started, does not fit, crashes or never comes into force is barred, taken back and reported; and nothing
//! breaks the tuner.

use proptest::prelude::*;
use shoal::adaptation::{Incident, Ranges, Reason, Setting, Status, Tuner, Verdict, Window};

use super::run::Run;
use super::shapes::{self, Shape, Start};

fn shape() -> Shape {
    shapes::all()[0]
}

fn searching(seed: u64) -> Run {
    Run::new(shape().machine, shape().rules(), shape().start(Start::Lowest), seed)
}

/// A run that has just begun to try a setting; its home; and that setting.
fn trying(seed: u64) -> (Run, Setting, Setting) {
    let mut run = searching(seed);
    run.until_away();
    let (home, tried) = (run.tuner.home(), run.in_force);
    (run, home, tried)
}

fn process_failed() -> Option<Incident> {
    Some(Incident::ProcessFailed("no process left".into()))
}

/// The last probe was abandoned, home is restored at once, and what was tried is not tried again.
fn assert_barred(run: &mut Run, home: Setting, tried: Setting) {
    let probe = run.probes.last().expect("the probe is recorded");
    assert_eq!((probe.verdict, probe.from, probe.to), (Verdict::Abandoned, home, tried));
    assert_eq!((run.in_force, run.tuner.home()), (home, home), "home is not restored");
    let changes = run.changes.len();
    run.windows(2_000);
    assert!(run.changes[changes..].iter().all(|(_, change)| change.setting != tried), "{tried:?} is tried again");
}

#[test]
fn a_setting_whose_processes_cannot_be_started_is_taken_back_with_the_reason() {
    for windows_before in 0..7 {
        let (mut run, home, tried) = trying(0);
        run.windows(windows_before);
        run.window_with(process_failed());
        let (_, change) = run.changes.last().expect("home is restored");
        assert_eq!(change.reason, Reason::ProcessFailed("no process left".into()));
        assert!(change.reason.to_string().contains("no process left"));
        assert_barred(&mut run, home, tried);
    }
}

#[test]
fn a_setting_that_was_accepted_and_then_cannot_be_started_again_is_taken_back_too() {
    for windows_before in 0..6 {
        let mut run = searching(0);
        assert!(run.until(1_000, |run| run.accepted().count() == 1));
        let (home, adopted) = (run.probes[0].from, run.probes[0].to);
        assert_eq!(run.in_force, adopted);
        run.windows(windows_before);
        run.window_with(process_failed());
        assert_barred(&mut run, home, adopted);
    }
}

#[test]
fn a_setting_accepted_just_before_nothing_more_is_tried_and_then_not_startable_is_taken_back_too() {
    for windows_before in 1..4 {
        let mut run = searching(0);
        assert!(run.until(1_000, |run| run.accepted().count() == 1));
        let (home, adopted) = (run.probes[0].from, run.probes[0].to);
        run.progress_per_window = 1.0;
        run.windows(windows_before);
        assert_eq!(run.in_force, adopted);
        run.window_with(process_failed());
        assert_eq!((run.in_force, run.tuner.home()), (home, home), "home is not restored");
        let changes = run.changes.len();
        run.windows(100);
        assert_eq!(run.changes.len(), changes, "something is tried late in the run");
    }
}

#[test]
fn a_setting_that_was_accepted_and_then_crashes_again_and_again_is_taken_back_too() {
    let mut run = searching(0);
    assert!(run.until(1_000, |run| run.accepted().count() == 1));
    let (home, adopted) = (run.probes[0].from, run.probes[0].to);
    let mut disturbances = 0;
    while run.in_force == adopted {
        run.windows(3);
        run.window_with(Some(Incident::Disturbed));
        disturbances += 1;
        assert!(disturbances < 10, "it is kept, however often it crashes");
    }
    assert_barred(&mut run, home, adopted);
}

#[test]
fn windows_at_home_in_which_nothing_is_learned_count_once_the_run_has_learned() {
    let mut run = searching(0);
    run.windows(3);
    let idle = Window { env_steps_per_s: 10.0, learned_per_s: 0.0, cores_used: 0.5, learners_wait: 0.9, actors_wait: 0.0 };
    (0..20).for_each(|_| run.window_of(idle, None));
    assert!(!run.changes.is_empty(), "who waits is known, and nothing is tried");
}

#[test]
fn a_process_that_cannot_be_started_at_home_changes_nothing() {
    let mut run = searching(0);
    for _ in 0..100 {
        run.window_with(process_failed());
    }
    assert!(run.changes.is_empty() && run.probes.is_empty());
}

#[test]
fn a_setting_that_leaves_too_little_memory_is_taken_back_with_the_reason() {
    let mut run = searching(0);
    run.memory_used = |setting| if setting.environments >= 16 { 0.9 } else { 0.5 };
    assert!(run.until_locked(5_000));
    assert!(run.tuner.home().environments < 16);
    let too_large: Vec<_> = run.probes.iter().filter(|probe| probe.to.environments >= 16).collect();
    assert!(!too_large.is_empty());
    assert!(too_large.iter().all(|probe| probe.verdict == Verdict::Abandoned && probe.reason == Reason::Memory { used: 0.9, limit: 0.85 }));
}

#[test]
fn nothing_is_tried_while_memory_is_short() {
    let mut run = searching(0);
    run.memory_used = |_| 0.9;
    run.windows(500);
    assert!(run.changes.is_empty() && !run.tuner.is_locked());
    assert_eq!(run.tuner.held_back(), Some(&Reason::Memory { used: 0.9, limit: 0.85 }), "whoever waits for it is told");
    run.memory_used = |_| 0.5;
    run.windows(20);
    assert!(!run.changes.is_empty() && run.tuner.held_back().is_none());
}

#[test]
fn a_probe_ends_when_the_run_loses_cores() {
    let (mut run, home, tried) = trying(0);
    run.window();
    run.machine.cores = 1;
    run.window();
    assert_eq!(run.changes.last().map(|(_, change)| change.reason.clone()), Some(Reason::Cores { before: 2, now: 1 }));
    assert_eq!(run.probes.last().map(|probe| probe.reason.to_string()).as_deref(), Some("the run may use 1 core instead of 2"));
    assert_barred(&mut run, home, tried);
}

#[test]
fn windows_of_a_probe_that_was_disturbed_are_taken_again() {
    let nothing = Window { env_steps_per_s: 0.0, learned_per_s: 0.0, cores_used: 0.0, learners_wait: 0.0, actors_wait: 0.0 };
    for windows_before in 0..16 {
        let (mut undisturbed, ..) = trying(0);
        assert!(undisturbed.until(100, |run| !run.probes.is_empty()));
        let (mut run, ..) = trying(0);
        run.windows(windows_before);
        if !run.probes.is_empty() {
            continue;
        }
        run.window_of(nothing, Some(Incident::Disturbed));
        assert!(run.until(100, |run| !run.probes.is_empty()));
        let (probe, expected) = (&run.probes[0], &undisturbed.probes[0]);
        assert_eq!((probe.verdict, probe.to), (Verdict::Accepted, expected.to), "disturbed after {windows_before} windows");
        let windows = |summary: Option<shoal::adaptation::Summary>| summary.map(|summary| summary.windows);
        assert_eq!([probe.before, probe.tried, probe.after].map(windows), [expected.before, expected.tried, expected.after].map(windows));
        assert!(run.wall_s > undisturbed.wall_s);
    }
}

#[test]
fn a_setting_that_is_disturbed_again_and_again_is_given_up() {
    let (mut run, home, tried) = trying(0);
    while run.probes.is_empty() {
        run.windows(3);
        run.window_with(Some(Incident::Disturbed));
    }
    assert_eq!(run.probes[0].reason, Reason::Disturbed { times: 4 });
    assert_barred(&mut run, home, tried);
}

#[test]
fn a_setting_that_never_comes_into_force_is_given_up() {
    let (mut run, home, tried) = trying(0);
    for _ in 0..30 {
        run.in_force = home;
        run.window();
    }
    assert_eq!(run.probes.last().map(|probe| probe.reason.clone()), Some(Reason::NothingMeasured { windows: 30 }));
    assert_barred(&mut run, home, tried);
}

#[test]
fn nothing_is_tried_before_the_run_learns() {
    let mut run = searching(0);
    let filling = Window { env_steps_per_s: 1_000.0, learned_per_s: 0.0, cores_used: 0.5, learners_wait: 1.0, actors_wait: 0.0 };
    (0..500).for_each(|_| run.window_of(filling, None));
    assert!(run.changes.is_empty());
}

#[test]
fn whenever_a_run_ends_each_setting_that_it_began_to_try_is_recorded() {
    let mut run = searching(0);
    let mut cut_short = 0;
    for _ in 0..200 {
        run.window();
        let begun = run.changes.iter().filter(|(_, change)| change.reason == Reason::Trying { round: 1 }).count();
        let unfinished = run.tuner.unfinished(run.wall_s);
        assert_eq!(begun, run.probes.len() + usize::from(unfinished.is_some()));
        if let Some(probe) = unfinished {
            cut_short += 1;
            assert_eq!((probe.wall_s, probe.from, probe.verdict), (run.wall_s, run.tuner.home(), Verdict::Abandoned));
            assert_eq!(probe.reason.to_string(), "the run ended");
        }
    }
    assert!(cut_short > 0 && !run.probes.is_empty(), "windows in a probe: {cut_short}, probes: {:?}", run.probes);
}

#[test]
fn a_finished_probe_is_a_line_of_json_with_what_was_measured_and_why() {
    let mut run = searching(0);
    assert!(run.until(1_000, |run| run.probes.len() == 3));
    for probe in &run.probes {
        let line = serde_json::to_value(probe).expect("a probe can be written");
        assert_eq!(line["from"]["actors"], probe.from.actors);
        assert_eq!(line["knobs"][0], probe.knobs[0].key());
        assert_eq!(line["objective"], "trained_per_second");
        assert_eq!(line["verdict"], if probe.verdict == Verdict::Accepted { "accepted" } else { "rejected" });
        assert_eq!(line["reason"], probe.reason.to_string());
        for leg in ["before", "tried", "after"] {
            assert!(line[leg]["median"].is_f64() && line[leg]["deviation"].is_f64() && line[leg]["windows"].is_u64(), "{line}");
        }
    }
}

fn any_rate() -> impl Strategy<Value = f64> {
    prop_oneof![6 => 1.0..1e6, 1 => Just(0.0), 1 => Just(f64::NAN), 1 => Just(f64::INFINITY)]
}

fn any_incident() -> impl Strategy<Value = Option<Incident>> {
    prop_oneof![12 => Just(None), 1 => Just(Some(Incident::Disturbed)), 1 => Just(process_failed())]
}

prop_compose! {
    fn any_snapshot()(
        env_steps_per_s in any_rate(), learned_per_s in any_rate(),
        cores_used in 0.0..1.0, learners_wait in 0.0..1.0, actors_wait in 0.0..1.0,
        usable_cores in prop_oneof![30 => Just(4usize), 1 => 1usize..8], memory_used in prop_oneof![20 => Just(0.5), 1 => 0.0..1.0],
        incident in any_incident(), is_late in prop::bool::weighted(0.05),
    ) -> (Status, bool) {
        let window = Window { env_steps_per_s, learned_per_s, cores_used, learners_wait, actors_wait };
        let in_force = Setting { actors: 1, environments: 1, batch_size: 1 };
        (Status { wall_s: 0.0, progress: 0.0, window, in_force, usable_cores, memory_used, incident }, is_late)
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn whatever_happens_a_change_is_one_and_within_the_ranges_and_leads_away_from_home_only_to_try(
        snapshots in prop::collection::vec(any_snapshot(), 1..400), rate_limited: bool,
    ) {
        let mut shape = shape();
        if !rate_limited {
            shape.machine.samples_per_insert = None;
        }
        let ranges: Ranges = shape.ranges();
        let mut in_force = shape.start(Start::Auto);
        let mut tuner = Tuner::new(shape.rules(), in_force);
        let (mut wall_s, mut wanted) = (0.0, in_force);
        for (mut status, is_late) in snapshots {
            wall_s += 1.0;
            // A driver that is late has the setting of before in force for one window more.
            in_force = if is_late { in_force } else { wanted };
            (status.wall_s, status.in_force) = (wall_s, in_force);
            if let Some(change) = tuner.step(&status).change {
                prop_assert_ne!(change.setting, wanted);
                prop_assert_eq!(ranges.clamped(change.setting), change.setting);
                let is_candidate = matches!(change.reason, Reason::Trying { .. });
                prop_assert_eq!(change.setting != tuner.home(), is_candidate);
                wanted = change.setting;
            }
        }
    }
}
