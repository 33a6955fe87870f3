//! Repairs after dead processes beside living ones.

use loom::thread::spawn;
use shoal_models::replay::leaderless::sweep;
use shoal_models::replay::{Priority, rebuild_sums, repair, repair_beside};
use shoal_models::segment::counters::Counter;
use shoal_models::segment::processes::{Role, SlotState};
use shoal_models::segment::{Region, Segment};
use shoal_models::sync::Ordering;

use super::support::{
    CLEARING, GATE, IN_OPERATION, OWNER, REPAIRER, SLOT_WORDS, START_TIME, die, insert, occupy, rows, schema, segment, sizes, stage,
};

fn is_root_or_leaf(word: usize) -> bool {
    [0, 8].contains(&word)
}

/// A repair beside a process at work: no change of the tree falls into the repair, and nobody waits for ever.
pub fn repaired_beside_a_living() {
    let takes_part = |region, word: usize| match region {
        Region::Processes => word == IN_OPERATION,
        Region::Tree => is_root_or_leaf(word),
        _ => false,
    };
    let segment = segment(sizes(2, 4), &[GATE], takes_part);
    insert(&segment, 0, 10, Priority::ONE);
    stage(&segment, 1, 20, Priority::ONE);
    die(&segment, 1, true);
    let living = spawn({
        let segment = segment.clone();
        move || insert(&segment, 0, 11, Priority::ONE)
    });
    let done = repair(&segment, &schema(), segment.processes().slot(1));
    assert!(done.exact && done.rebuilt_tree && done.inserted == 1 && done.stuck.is_empty(), "{done:?}");
    living.join().unwrap();
    assert_eq!(rows(&segment), [10, 11, 20]);
}

/// A repair that does not wait for a guest, of a process that died after it had published a row and before it noted
/// that, while the guest overwrites the row: the newer row stays, whole.
pub fn repaired_beside_a_guest_that_overwrites() {
    let takes_part = |region, word: usize| match region {
        Region::Processes => word == IN_OPERATION,
        Region::Store => true,
        Region::Tree => is_root_or_leaf(word),
        _ => false,
    };
    let segment = segment(sizes(2, 3), &[GATE], takes_part);
    insert(&segment, 1, 20, Priority::ONE);
    insert(&segment, 0, 10, Priority::ONE);
    insert(&segment, 0, 12, Priority::ONE);
    let area = segment.layout().sizes().staging_area_words();
    segment.words(Region::Staging)[area].store(1, Ordering::Relaxed);
    die(&segment, 1, true);
    let guest = spawn({
        let segment = segment.clone();
        move || insert(&segment, 0, 11, Priority::ONE)
    });
    let done = repair_beside(&segment, &schema(), segment.processes().slot(1), &[0]);
    assert!(done.stuck.is_empty() && done.completed + done.inserted == 1, "{done:?}");
    guest.join().unwrap();
    assert_eq!(rebuild_sums(&segment), Ok(true));
    // Overwritten before the repair looked, the dead one's row is inserted once more: over the oldest.
    assert!([[10, 11, 12], [11, 12, 20]].contains(&rows(&segment).try_into().unwrap()), "{:?}", rows(&segment));
}

/// Two processes that find the same dead participant: its row is inserted once, and its place is freed once.
pub fn repaired_by_one_of_two() {
    let takes_part = |region, word: usize| match region {
        Region::Processes => [2 * SLOT_WORDS + OWNER, 2 * SLOT_WORDS + IN_OPERATION].contains(&word),
        Region::Staging => word == 64,
        _ => false,
    };
    let segment = segment(sizes(3, 4), &[GATE, REPAIRER, CLEARING], takes_part);
    stage(&segment, 2, 20, Priority::ONE);
    die(&segment, 2, false);
    let other = spawn({
        let segment = segment.clone();
        move || sweep(&segment, &schema())
    });
    let mut freed = sweep(&segment, &schema());
    freed.extend(other.join().unwrap());
    freed.extend(sweep(&segment, &schema()));
    assert_eq!((freed, rows(&segment)), (vec![2], vec![20]));
}

/// Nobody takes a living owner for dead because of what the owner before has left.
pub fn looked_at_while_a_place_changes_hands() {
    let takes_part = |region, word: usize| region == Region::Processes && [OWNER, START_TIME].contains(&word);
    let segment = segment(sizes(1, 2), &[], takes_part);
    // The first process of the machine has started at another time than this one.
    occupy(&segment, 0, 1);
    let next = spawn({
        let segment = segment.clone();
        move || occupy(&segment, 0, std::process::id())
    });
    assert_eq!(segment.processes().slot(0).dead_owner(), None);
    next.join().unwrap();
}

/// A promise that is taken up while it is withdrawn: it was kept, or it was withdrawn.
pub fn promised_and_withdrawn() {
    let segment = segment(sizes(1, 2), &[], |region, word| region == Region::Processes && word == OWNER);
    let slot = segment.processes().slot(0);
    slot.release();
    let generation = slot.reserve(Role::Participant, 0).expect("a free slot");
    let promised = slot.owner();
    let process = spawn({
        let segment = segment.clone();
        move || segment.processes().slot(0).occupy(std::process::id(), generation)
    });
    let is_withdrawn = slot.release_from(promised);
    assert_ne!(is_withdrawn, process.join().unwrap());
    assert_eq!(slot.state(), if is_withdrawn { SlotState::Free } else { SlotState::Live });
}

/// The next process in a place goes on with the counters where the one before stopped.
pub fn counted_on_by_the_next() {
    let counters = 24;
    let segment = segment(sizes(1, 2), &[], |region, word| region == Region::Processes && [OWNER, counters].contains(&word));
    let count = |segment: &Segment| segment.processes().slot(0).counters().add(Counter::EnvSteps, 1);
    let before = spawn({
        let segment = segment.clone();
        move || {
            count(&segment);
            segment.processes().slot(0).release();
        }
    });
    let has_place = segment.processes().slot(0).reserve(Role::Participant, 0).is_some();
    if has_place {
        count(&segment);
    }
    before.join().unwrap();
    assert_eq!(segment.processes().slot(0).counters().get(Counter::EnvSteps), 1 + u64::from(has_place));
}

/// Two processes that find the same place free: one gets it.
pub fn places_that_two_want() {
    let segment = segment(sizes(1, 2), &[], |region, word| region == Region::Processes && word == OWNER);
    segment.processes().slot(0).release();
    let other = spawn({
        let segment = segment.clone();
        move || segment.processes().slot(0).reserve(Role::Participant, 0)
    });
    let promised = [segment.processes().slot(0).reserve(Role::Participant, 0), other.join().unwrap()];
    assert_eq!(promised.iter().flatten().count(), 1, "{promised:?}");
}
