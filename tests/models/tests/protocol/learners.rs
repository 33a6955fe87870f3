//! Learners that add up their gradients, and a view that changes meanwhile.

use loom::sync::Arc;
use loom::thread::{spawn, yield_now};
use shoal_models::metrics::Share;
use shoal_models::segment::float_board::FloatBoard;
use shoal_models::segment::gradients::GradientExchange;
use shoal_models::segment::membership::View;
use shoal_models::sync::AtomicU64;

use super::support::words;

const LEARNERS: usize = 2;
const PARAMETERS: usize = 4;
const FIRST: View = View { epoch: 1, members: 0b11, leader: Some(0), doublings: 0 };
const SECOND: View = View { epoch: 2, members: 0b11, leader: Some(0), doublings: 1 };

fn exchange(memory: &[AtomicU64]) -> GradientExchange<'_> {
    GradientExchange::new(memory, LEARNERS, PARAMETERS)
}

/// Words of which these are explored: the arrivals and, of learner 1, the number of samples and the gradients of odd
/// rounds.
fn memory() -> Arc<Vec<AtomicU64>> {
    let length = GradientExchange::words_needed(LEARNERS, PARAMETERS);
    let share = (length - 16 * LEARNERS) / (2 * LEARNERS);
    let of_learner_1 = 16 * LEARNERS + 3 * share;
    let gradient = of_learner_1 + share - 8;
    words(length, |word| [0, 16, of_learner_1, gradient, gradient + 1].contains(&word))
}

fn share(value: f32) -> Share {
    Share { samples: f64::from(value), ..Share::new(&[]) }
}

fn arrive(memory: &[AtomicU64], learner: usize, view: View, value: f32) {
    exchange(memory).arrive(learner, view, 1, &share(value), &[value; PARAMETERS]);
}

/// Add up as learner 0 does; `None` if it has found another view.
fn add_up(memory: &[AtomicU64], is_still_first: impl Fn() -> bool) -> Option<(f64, [f32; PARAMETERS])> {
    while !exchange(memory).all_arrived(FIRST, 1) {
        if !is_still_first() {
            return None;
        }
        yield_now();
    }
    let (mut sum, mut gradient) = (share(0.0), [0.0; PARAMETERS]);
    exchange(memory).add_up(FIRST, 1, &mut sum, &mut gradient);
    is_still_first().then_some((sum.samples, gradient))
}

/// A learner that finds that all have arrived adds up what they brought.
pub fn shares_of_a_round() {
    let memory = memory();
    arrive(&memory, 0, FIRST, 1.0);
    let other = spawn({
        let memory = memory.clone();
        move || arrive(&memory, 1, FIRST, 2.0)
    });
    assert_eq!(add_up(&memory, || true), Some((3.0, [3.0; PARAMETERS])));
    other.join().unwrap();
}

/// A laggard that adds up what a replacement is writing over under the next view finds that view afterwards.
pub fn shares_of_a_round_that_a_view_ended() {
    let memory = memory();
    let membership = Arc::new(AtomicU64::explored(0));
    FIRST.store(&membership);
    arrive(&memory, 0, FIRST, 1.0);
    arrive(&memory, 1, FIRST, 2.0);
    let supervisor = spawn({
        let membership = membership.clone();
        move || SECOND.store(&membership)
    });
    let replacement = spawn({
        let (memory, membership) = (memory.clone(), membership.clone());
        move || {
            if View::load(&membership) == SECOND {
                arrive(&memory, 1, SECOND, 100.0);
            }
        }
    });
    if let Some(sum) = add_up(&memory, || View::load(&membership) == FIRST) {
        assert_eq!(sum, (3.0, [3.0; PARAMETERS]));
    }
    supervisor.join().unwrap();
    replacement.join().unwrap();
}

/// A learner that leads after another's death publishes behind what that one has published.
pub fn led_by_the_next() {
    const VALUES: usize = 2;
    let board = words(FloatBoard::words_needed(VALUES), |word| word == 0);
    let membership = Arc::new(AtomicU64::explored(0));
    let dead = spawn({
        let board = board.clone();
        move || FloatBoard::new(&board, VALUES).publish(&[&[1.0; VALUES]], [0; 4])
    });
    let next = spawn({
        let (board, membership) = (board.clone(), membership.clone());
        move || {
            if View::load(&membership) == SECOND {
                assert_eq!(FloatBoard::new(&board, VALUES).publish(&[&[2.0; VALUES]], [0; 4]), 2);
            }
        }
    });
    // As the kernel says that a process is gone.
    dead.join().unwrap();
    SECOND.store(&membership);
    next.join().unwrap();
}
