//! Publications outside of the replay, by a process that is killed after any single machine instruction: readers get each whole or not at
//! all, and those of the process that takes the place of the dead one again.
//!
//! As in `replay_at_every_instruction`, a traced child takes one instruction at a time, and what a kill would leave is what the
//! segment holds at that moment.
#![cfg(target_arch = "x86_64")]

use shoal::metrics::{Metric, Share};
use shoal::segment::membership::View;
use shoal::segment::metrics::Report;
use shoal::segment::processes::{Role, SlotState};
use shoal::segment::scores::{EvaluationScore, Scores, TrainingScore};

use crate::support::forked::traced::{Traced, report, sweep};
use crate::support::forked::{Run, Sizes};

const PARAMETERS: usize = 32;
const METRICS: &[Metric] = &[Metric::sum("loss")];

fn run() -> Run {
    Run::new(Sizes { capacity: 16, network_parameters: PARAMETERS, processes: 4, staged_rows: 2, ..Sizes::default() })
}

/// Sweep `operation`, with `check` of each state; it says which of the outcomes it saw, and all of them must be seen.
fn sweep_all<const OUTCOMES: usize>(name: &str, run: &Run, operation: impl FnOnce(), mut check: impl FnMut() -> usize) {
    let mut seen = [0; OUTCOMES];
    let (instructions, states) = sweep(&run.segment, &Traced::start(|| operation), |_| seen[check()] += 1);
    assert!(instructions > 10 && seen.iter().all(|&times| times > 0), "{name}: {instructions} instructions, outcomes {seen:?}");
    report(&format!("{name}: {instructions} instructions, {states} different states, outcomes {seen:?}"));
}

#[test]
fn a_publication_is_the_one_before_or_the_new_one_and_the_next_writer_publishes_again() {
    let run = run();
    let board = run.segment.parameter_board();
    let values = |value: f32| vec![value; PARAMETERS];
    // All three buffers hold something: the one that is filled, the oldest.
    for version in 1..=3u16 {
        board.publish(&[&values(version.into())], [version.into(); 4]);
    }
    let read = || {
        let mut found = values(0.0);
        let (version, notes) = board.read(&mut found).expect("there has been a publication");
        assert!(found.iter().all(|&value| value == found[0]), "a mixture: {found:?}");
        assert_eq!(notes, [found[0] as u64; 4]);
        (version, found[0])
    };
    let new = values(4.0);
    sweep_all::<2>(
        "a publication",
        &run,
        || _ = board.publish(&[&new], [4; 4]),
        || {
            let (version, value) = read();
            assert!([(3, 3.0), (4, 4.0)].contains(&(version, value)), "version {version} with {value}");
            assert_eq!(board.publish(&[&values(5.0)], [5; 4]), version + 1);
            assert_eq!(read(), (version + 1, 5.0));
            usize::from(value == 4.0)
        },
    );
}

#[test]
fn a_report_is_read_whole_or_not_at_all_and_the_next_one_too() {
    let run = run();
    let ring = run.segment.metric_ring(0);
    let episode = |number: u64| Report::Episode { episode_return: number as f64, length: number };
    ring.push(episode(1));
    let read = || {
        let mut found = Vec::new();
        let (_, lost) = ring.drain(0, |report| found.push(report));
        assert_eq!(lost, 0);
        found
    };
    sweep_all::<2>(
        "a report",
        &run,
        || ring.push(episode(2)),
        || {
            let before = read();
            assert!(before == [episode(1)] || before == [episode(1), episode(2)], "{before:?}");
            ring.push(episode(3));
            assert_eq!(read(), [&before[..], &[episode(3)]].concat());
            before.len() - 1
        },
    );
}

#[test]
fn scores_are_the_old_ones_the_new_ones_or_none_and_the_next_are_whole() {
    let run = run();
    let record = run.segment.control().scores();
    let scores = |value: f64| {
        let training = TrainingScore { return_mean: value, episodes: 3 };
        let evaluation =
            EvaluationScore { return_mean: value, ci95_low: Some(value), ci95_high: Some(value), episodes: 3, env_steps: 5, version: 7 };
        Scores { training: Some(training), evaluation: Some(evaluation) }
    };
    record.publish(&scores(1.0));
    sweep_all::<3>(
        "scores",
        &run,
        || record.publish(&scores(2.0)),
        || {
            let known = [scores(1.0), Scores::default(), scores(2.0)];
            let found = record.read();
            let outcome = known.iter().position(|scores| *scores == found).unwrap_or_else(|| panic!("a mixture: {found:?}"));
            record.publish(&scores(3.0));
            assert_eq!(record.read(), scores(3.0));
            outcome
        },
    );
}

#[test]
fn a_share_of_a_gradient_counts_once_it_is_whole() {
    let run = run();
    let exchange = run.segment.gradient_exchange();
    let view = View { epoch: 3, members: 0b11, leader: Some(0), doublings: 0 };
    let share = |samples: f64| Share { samples, ..Share::new(METRICS) };
    exchange.arrive(1, view, 1, &share(5.0), &[10.0; PARAMETERS]);
    sweep_all::<2>(
        "a share",
        &run,
        || exchange.arrive(0, view, 1, &share(3.0), &[1.0; PARAMETERS]),
        || {
            let arrived = exchange.all_arrived(view, 1);
            if arrived {
                let (mut sum, mut gradient) = (Share::new(METRICS), [0.0; PARAMETERS]);
                exchange.add_up(view, 1, &mut sum, &mut gradient);
                assert_eq!((sum.samples, gradient), (8.0, [11.0; PARAMETERS]));
            }
            // Under the view without the dead learner the others neither wait for it nor take the share that it has left.
            let alone = View { epoch: 4, members: 0b10, leader: Some(1), doublings: 0 };
            assert!(!exchange.all_arrived(alone, 1));
            usize::from(arrived)
        },
    );
}

#[test]
fn a_slot_can_be_taken_back_from_whoever_died_on_its_way_in_or_out() {
    let run = run();
    let slot = run.slot(2);
    let mut seen = [0; 3];
    let traced = Traced::start(|| {
        || {
            let generation = slot.reserve(Role::Actor, 7).expect("it is free");
            assert!(slot.occupy(std::process::id(), generation));
            slot.release();
        }
    });
    let (instructions, states) = sweep(&run.segment, &traced, |instruction| {
        traced.bury(&run.segment);
        seen[match slot.state() {
            SlotState::Free => 0,
            SlotState::Reserved => 1,
            SlotState::Live => 2,
        }] += 1;
        assert_eq!(slot.dead_owner().is_some(), slot.state() != SlotState::Free, "after instruction {instruction}");
        if let Some(owner) = slot.dead_owner() {
            assert!(slot.release_from(owner));
        }
        let generation = slot.reserve(Role::Learner, 1).expect("it was given back");
        assert!(slot.occupy(std::process::id(), generation) && slot.dead_owner().is_none());
        assert_eq!(slot.role(), Some((Role::Learner, 1)));
    });
    assert!(instructions > 100 && seen.iter().all(|&times| times > 0), "{instructions} instructions, {seen:?}");
    report(&format!("a slot: {instructions} instructions, {states} different states, free, reserved and live {seen:?} times"));
}
