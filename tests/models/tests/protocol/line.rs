//! The line of the processes that wait for their turn to insert. There is no timeout in a model: a process that is
//! not woken would wait for ever.

use loom::thread::spawn;
use shoal_models::replay::{RateLimiter, Turn};
use shoal_models::segment::{Region, Segment};
use shoal_models::sync::Ordering;

use super::support::{INSERTED, PLACE, PROGRESS, SAMPLED, SLOT_WORDS, WAITERS, segment, sizes};

/// Words of the process table that are places in the line.
fn is_place(region: Region, word: usize) -> bool {
    region == Region::Processes && word % SLOT_WORDS == PLACE
}

/// A turn of the process in slot `index`, if every row inserted calls for a sample and `error_band` rows may be ahead.
fn turn(segment: &Segment, index: usize, error_band: f64) -> Turn<'_> {
    let limiter = RateLimiter { min_size: 0, samples_per_insert: Some(1.0), takes_once: false, error_band };
    limiter.turn(segment, segment.processes().slot(index))
}

fn insert(segment: &Segment, rows: u64) {
    segment.control().inserted().fetch_add(rows, Ordering::Relaxed);
}

/// A process that comes later inserts after the first has, sees the rows of the first, and is woken when the first
/// leaves.
pub fn served_in_order() {
    let segment = segment(sizes(2, 3), &[INSERTED, PROGRESS, WAITERS], is_place);
    insert(&segment, 1);
    let mut first = turn(&segment, 0, 3.0);
    assert!(first.is_near(0, 1) && first.has_come(), "it stands in line and is ready");
    let later = spawn({
        let segment = segment.clone();
        move || {
            assert!(turn(&segment, 1, 3.0).wait(|| true));
            segment.control().inserted().load(Ordering::Relaxed)
        }
    });
    insert(&segment, 1);
    drop(first);
    assert_eq!(later.join().unwrap(), 2, "it went in before the first had");
}

/// A process behind one that gives up is the first then, and is woken by samples.
pub fn told_of_samples_once_it_is_first() {
    let segment = segment(sizes(2, 3), &[SAMPLED, PROGRESS, WAITERS], is_place);
    insert(&segment, 2);
    let mut first = turn(&segment, 0, 1.0);
    assert!(!first.has_come());
    let behind = spawn({
        let segment = segment.clone();
        move || assert!(turn(&segment, 1, 1.0).wait(|| true))
    });
    let sampler = spawn({
        let segment = segment.clone();
        move || {
            segment.control().sampled().fetch_add(1, Ordering::Relaxed);
            segment.control().signal_progress();
        }
    });
    drop(first);
    sampler.join().unwrap();
    behind.join().unwrap();
}
