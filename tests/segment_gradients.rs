//! Learners in processes of their own add up gradients: the same sum everywhere, bit for bit, and nobody waits for the
//! dead.

mod support;

use std::time::Duration;

use shoal::segment::control::RunState;
use shoal::segment::gradients::{Share, View};
use shoal::segment::processes::Role;
use shoal::sync::{AtomicU64, Ordering};
use support::{Family, Run, Sizes};

const PARAMETERS: usize = 1_003;
const ROUNDS: u64 = 2_000;

/// Scratch word for a learner's digest of a round's sum.
fn digest(run: &Run, learner: usize, epoch: u32, round: u64) -> &AtomicU64 {
    let index = (u64::from(epoch) * 3 + learner as u64) * (ROUNDS + 1) + round;
    run.scratch(usize::try_from(index).expect("a small index"))
}

/// The gradient of a learner in a round: of both signs and many magnitudes, so that the order of additions matters.
fn gradient(learner: usize, epoch: u32, round: u64, values: &mut [f32]) {
    let mut word = round << 20 | u64::from(epoch) << 8 | learner as u64 | 1 << 63;
    for value in values {
        word = word.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let magnitude = ((word >> 33) & 0xff_ffff) as f32 / 1e6;
        *value = if word >> 63 == 1 { magnitude } else { -magnitude } * ((word >> 20) & 0xff) as f32;
    }
}

fn digest_of(values: &[f32]) -> u64 {
    let mut hasher = crc32fast::Hasher::new();
    values.iter().for_each(|value| hasher.update(&value.to_bits().to_le_bytes()));
    1 << 32 | u64::from(hasher.finalize())
}

/// Take part until `ROUNDS` rounds of one view are done and the run stops; a new view starts its rounds at one.
fn learn(run: &Run, learner: usize) {
    let (control, exchange) = (run.segment.control(), run.segment.gradient_exchange());
    let (mut own, mut sum, mut scratch) = (vec![0.0; PARAMETERS], vec![0.0; PARAMETERS], vec![0.0; PARAMETERS]);
    let view_now = || View::load(control.membership());
    'views: loop {
        let view = view_now();
        for round in 1..=ROUNDS {
            gradient(learner, view.epoch, round, &mut own);
            let share =
                Share { transitions: 8.0, loss_sum: round as f64, q_sum: 1.0, largest_weight: learner as f64, policy_loss_sum: -1.0 };
            exchange.arrive(learner, view, round, share, &own);
            control.signal_progress();
            while !exchange.all_arrived(view, round) {
                if view_now() != view {
                    continue 'views;
                }
                control.wait_for_progress(Duration::from_millis(2), || exchange.all_arrived(view, round));
            }
            let total = exchange.add_up(view, round, &mut scratch, &mut sum);
            if view_now() != view {
                continue 'views;
            }
            let members = view.learners().count() as f64;
            let most = view.learners().max().unwrap_or(0) as f64;
            let expected = Share {
                transitions: 8.0 * members,
                loss_sum: round as f64 * members,
                q_sum: members,
                largest_weight: most,
                policy_loss_sum: -members,
            };
            assert_eq!(total, expected);
            digest(run, learner, view.epoch, round).store(digest_of(&sum), Ordering::Release);
        }
        while view_now() == view {
            if control.run_state() == RunState::Stopping {
                return;
            }
            std::thread::sleep(Duration::from_micros(100));
        }
    }
}

/// The digest that every member must come to, by the order of the members' numbers.
fn expected(view: View, round: u64) -> u64 {
    let (mut sum, mut own) = (vec![0.0f32; PARAMETERS], vec![0.0; PARAMETERS]);
    for learner in view.learners() {
        gradient(learner, view.epoch, round, &mut own);
        sum.iter_mut().zip(&own).for_each(|(sum, value)| *sum += value);
    }
    digest_of(&sum)
}

fn start(run: &Run, view: View) -> Family<'_> {
    run.segment.control().set_run_state(RunState::Running);
    view.store(run.segment.control().membership());
    let mut family = Family::new(run);
    for learner in view.learners() {
        family.start(learner, Role::Learner, || learn(run, learner));
    }
    family
}

fn await_and_check(run: &Run, family: &Family<'_>, view: View) {
    for learner in view.learners() {
        family.wait_until(|| digest(run, learner, view.epoch, ROUNDS).load(Ordering::Acquire) != 0);
    }
    for round in 1..=ROUNDS {
        let expected = expected(view, round);
        for learner in view.learners() {
            let found = digest(run, learner, view.epoch, round).load(Ordering::Acquire);
            assert_eq!(found, expected, "learner {learner} in round {round} of {view:?}");
        }
    }
}

fn sizes() -> Sizes {
    Sizes { network_parameters: PARAMETERS.max(20 * (ROUNDS as usize + 1)), ..Sizes::default() }
}

#[test]
fn two_and_three_learners_come_to_the_same_sum_bit_for_bit() {
    for members in [0b11, 0b111, 0b101] {
        let run = Run::new(sizes());
        let view = View { epoch: 1, members };
        let mut family = start(&run, view);
        await_and_check(&run, &family, view);
        run.segment.control().set_run_state(RunState::Stopping);
        family.join();
    }
}

#[test]
fn learners_go_on_without_a_dead_one_and_take_its_replacement_in() {
    let run = Run::new(sizes());
    let everyone = View { epoch: 1, members: 0b111 };
    let mut family = start(&run, everyone);
    let mut epoch = 1;
    for (victim, rounds) in [(1usize, 300u64), (0, 700), (2, 1_100)] {
        family.wait_until(|| digest(&run, victim, epoch, rounds).load(Ordering::Acquire) != 0);
        family.kill(&[victim]);
        assert!(family.repair(victim).stuck.is_empty());
        // Nobody gets past the round in which the dead one is missing until there is a new view.
        let rest = View { epoch: epoch + 1, members: 0b111 & !(1 << victim) };
        rest.store(run.segment.control().membership());
        run.segment.control().signal_progress();
        await_and_check(&run, &family, rest);
        let whole = View { epoch: epoch + 2, members: 0b111 };
        whole.store(run.segment.control().membership());
        family.start(victim, Role::Learner, || learn(&run, victim));
        epoch += 2;
    }
    await_and_check(&run, &family, View { epoch, members: 0b111 });
    run.segment.control().set_run_state(RunState::Stopping);
    family.join();
}
