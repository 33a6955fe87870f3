//! Who answers for a run whose supervisor was killed.

use loom::sync::Arc;
use loom::thread::spawn;
use shoal_models::segment::keeping::Wanted;
use shoal_models::segment::{NamedProcess, Segment};
use shoal_models::sync::Ordering;

use super::support::{ADOPTER, ENV_STEPS, KEEPER, segment, sizes};

/// A segment in which three words are explored: those that name keeper and adopter, and one that stands for all others.
fn a_run() -> Arc<Segment> {
    segment(sizes(1, 2), &[ENV_STEPS, KEEPER, ADOPTER], |_, _| false)
}

fn adopter() -> NamedProcess {
    NamedProcess::from_word(7).expect("a name")
}

fn put(segment: &Segment, value: u64) {
    segment.control().env_steps().store(value, Ordering::Relaxed);
}

fn found(segment: &Segment) -> u64 {
    segment.control().env_steps().load(Ordering::Relaxed)
}

/// One of the two wishes wins, and a keeper that was let go finds the adopter's run.
pub fn adopted_while_it_is_wanted_on_the_disk() {
    let segment = a_run();
    put(&segment, 1);
    let keeper = segment.control().keeping().become_keeper();
    let adopts = spawn({
        let segment = segment.clone();
        move || {
            let keeping = segment.control().keeping();
            let is_adopted = keeping.adopt(adopter()).is_ok();
            if is_adopted {
                put(&segment, 2);
                keeping.let_keeper_go();
            }
            is_adopted
        }
    });
    let wants = spawn({
        let segment = segment.clone();
        move || _ = segment.control().keeping().write_to_disk()
    });
    let keeping = segment.control().keeping();
    let mut writes = false;
    for _ in 0..2 {
        let wanted = keeping.wanted();
        if keeping.keeper() != Some(keeper) {
            assert_eq!(found(&segment), 2, "it was let go before the run was whole");
            break;
        }
        writes |= wanted == Wanted::OnDisk;
    }
    wants.join().unwrap();
    assert!(!(adopts.join().unwrap() && writes), "two answer for it");
}

/// The adopter finds all that the keeper has left.
pub fn adopted_as_soon_as_it_is_kept() {
    let segment = a_run();
    let adopts = spawn({
        let segment = segment.clone();
        move || {
            let keeping = segment.control().keeping();
            if keeping.keeper().is_some() && keeping.adopt(adopter()).is_ok() {
                assert_eq!(found(&segment), 1);
            }
        }
    });
    put(&segment, 1);
    let _ = segment.control().keeping().become_keeper();
    adopts.join().unwrap();
}

/// The adopter finds what the keeper has put right.
pub fn adopted_as_soon_as_it_is_offered_again() {
    let segment = a_run();
    let keeping = segment.control().keeping();
    let _ = keeping.become_keeper();
    assert!(keeping.adopt(adopter()).is_ok());
    let adopts = spawn({
        let segment = segment.clone();
        move || {
            if segment.control().keeping().adopt(adopter()).is_ok() {
                assert_eq!(found(&segment), 1);
            }
        }
    });
    put(&segment, 1);
    keeping.offer_again();
    adopts.join().unwrap();
}
