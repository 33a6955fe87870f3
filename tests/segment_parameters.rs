//! The parameter board between processes: a reader never sees a mixture, although writers are killed and replaced.

mod support {
    pub(crate) mod counts;
    pub(crate) mod forked;
}

use rand::RngExt;
use shoal::segment::control::RunState;
use shoal::segment::float_board::NOTES;
use shoal::segment::processes::Role;
use shoal::sync::{AtomicU64, Ordering};
use support::forked::{self, Family, Run, Sizes, random};

const VALUES: usize = 2_001;
const WRITER: usize = 0;
const READERS: std::ops::Range<usize> = 1..4;

/// The values of a version as a certain writer publishes it: all differ from those of any other version or writer.
fn values_of(version: u64, writer: u64) -> impl Iterator<Item = f32> {
    let first = (version * 61 + writer * 7_919) % (1 << 20);
    (0..VALUES).map(move |index| (first + index as u64) as f32)
}

/// Scratch word in which a process counts its publications or reads.
fn count(run: &Run, slot: usize) -> &AtomicU64 {
    run.scratch(slot)
}

fn publish(run: &Run, writer: u64) {
    let board = run.segment.parameter_board();
    let mut values = Vec::with_capacity(VALUES);
    loop {
        let version = board.version() + 1;
        values.clear();
        values.extend(values_of(version, writer));
        // In two parts, as a network has them.
        let (first, second) = values.split_at(1_000);
        let notes = std::array::from_fn(|index| writer << 8 | index as u64);
        assert_eq!(board.publish(&[first, second], notes), version);
        count(run, WRITER).fetch_add(1, Ordering::Relaxed);
    }
}

fn read(run: &Run, slot: usize) {
    let board = run.segment.parameter_board();
    let mut values = vec![0.0; VALUES];
    let mut last = 0;
    while run.segment.control().run_state() == RunState::Running {
        let Some((version, notes)) = board.read(&mut values) else { continue };
        assert!(version >= last, "version {version} after version {last}");
        let writer = notes[0] >> 8;
        let expected: [u64; NOTES] = std::array::from_fn(|index| writer << 8 | index as u64);
        assert_eq!(notes, expected, "notes of two publications");
        assert!(values.iter().copied().eq(values_of(version, writer)), "a mixture in version {version} of writer {writer}");
        last = version;
        count(run, slot).fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn readers_never_see_a_mixture_while_writers_are_killed_and_replaced() {
    let kills = forked::count_from_environment("SHOAL_TEST_KILLS", 300);
    let run = Run::new(Sizes { network_parameters: VALUES, ..Sizes::default() });
    run.segment.control().set_run_state(RunState::Running);
    let mut readers = Family::new(&run);
    for slot in READERS {
        readers.start(slot, Role::Actor, || read(&run, slot));
    }
    let mut writers = Family::new(&run);
    let mut random = random(5);
    for writer in 1..=kills {
        count(&run, WRITER).store(0, Ordering::Relaxed);
        let before = run.segment.parameter_board().version();
        writers.start(WRITER, Role::Learner, || publish(&run, writer));
        let goal = random.random_range(1..30);
        writers.wait_until(|| count(&run, WRITER).load(Ordering::Relaxed) >= goal);
        writers.kill(&[WRITER]);
        assert!(writers.repair(WRITER).stuck.is_empty());
        // Nothing that was published is lost, and the version never goes back.
        assert!(run.segment.parameter_board().version() >= before + goal);
    }
    readers.wait_until(|| READERS.into_iter().all(|slot| count(&run, slot).load(Ordering::Relaxed) > 1_000));
    run.segment.control().set_run_state(RunState::Stopping);
    readers.join();
}
