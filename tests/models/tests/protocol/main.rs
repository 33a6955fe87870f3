//! The protocol holds in every order, and would not if it were written more weakly.
//!
//! Each model is explored with the code as it is, and then once for every ordering and every read-modify-write that
//! it has met, with that one weakened: some model must fail then. `kept` names the orderings that no model misses,
//! and why the code has them all the same.

mod boards;
mod deaths;
mod keeping;
mod kept;
mod learners;
mod line;
mod rows;
mod support;
mod tree;

use std::collections::BTreeSet;
use std::fmt::Write;
use std::num::NonZeroUsize;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use shoal_models::explore::{Fault, explore};

/// The name of a model, the model, and how often its threads are interrupted at most.
type Model = (&'static str, fn(), usize);

const MODELS: &[Model] = &[
    ("a row is overwritten while it is read", rows::overwritten_while_it_is_read, 3),
    ("a slot is claimed by two writers", rows::claimed_by_two_writers, 2),
    ("slots are passed over by two writers", rows::passed_over_by_two_writers, 2),
    ("rows are counted once they are there", rows::counted_once_they_are_there, 2),
    ("rows are taken by two", rows::taken_by_two, 2),
    ("rows are taken while they are overwritten", rows::taken_while_they_are_overwritten, 2),
    ("a leaf is changed by three", tree::changed_by_three, 2),
    ("parameters are published while they are read", boards::parameters_that_are_published_while_they_are_read, 2),
    ("pictures are shown while they are read", boards::pictures_that_are_shown_while_they_are_read, 2),
    ("scores are published while they are read", boards::scores_that_are_published_while_they_are_read, 2),
    ("reports are taken while the ring goes round", boards::reports_that_are_taken_while_the_ring_goes_round, 3),
    ("somebody waits for progress", boards::progress_that_somebody_waits_for, 2),
    ("who waits for a turn comes after the first", line::served_in_order, 2),
    ("who waits for a turn comes to be the first", line::told_of_samples_once_it_is_first, 2),
    ("shares of a round are added up", learners::shares_of_a_round, 3),
    ("a view ends while shares are added up", learners::shares_of_a_round_that_a_view_ended, 3),
    ("another learner leads after a death", learners::led_by_the_next, 3),
    ("a dead process is repaired after beside a living one", deaths::repaired_beside_a_living, 2),
    ("a dead process is repaired after beside a guest that overwrites its row", deaths::repaired_beside_a_guest_that_overwrites, 2),
    ("two look after one dead participant", deaths::repaired_by_one_of_two, 2),
    ("a place is looked at while it changes hands", deaths::looked_at_while_a_place_changes_hands, 2),
    ("a promise is taken up while it is withdrawn", deaths::promised_and_withdrawn, 3),
    ("the next in a place counts on", deaths::counted_on_by_the_next, 3),
    ("two want one place", deaths::places_that_two_want, 3),
    ("a run is adopted while it is wanted on the disk", keeping::adopted_while_it_is_wanted_on_the_disk, 3),
    ("a run is adopted as soon as it is kept", keeping::adopted_as_soon_as_it_is_kept, 3),
    ("a run is adopted as soon as it is offered again", keeping::adopted_as_soon_as_it_is_offered_again, 3),
];

/// Models in which one thread waits for another: a fault may leave it waiting for ever.
const WAITING: [&str; 3] =
    ["somebody waits for progress", "who waits for a turn comes after the first", "who waits for a turn comes to be the first"];

/// What the checker says of orders that have no end. In a model without waiting, this means that it was too large for
/// the checker, and not that it has missed anything.
const ENDLESS: &str = "maximum number of branches";

/// What the checker says if it fails itself, and not the model.
const OF_THE_CHECKER: [&str; 2] = ["modification_order", "loom internal"];

/// What was explored.
#[derive(Default)]
struct Found {
    possible: BTreeSet<Fault>,
    missed: BTreeSet<Fault>,
    orders: usize,
    report: String,
}

/// Whether `model` misses what is broken, and in how many orders it was explored.
fn misses(&(name, model, interruptions): &Model, broken: &[Fault]) -> (bool, usize) {
    let explored = explore(model, interruptions, broken);
    let failure = explored.failure.unwrap_or_default();
    assert!(!OF_THE_CHECKER.iter().any(|of_it| failure.contains(of_it)), "the checker failed at {broken:?}: {failure}");
    (!failure.is_empty() && (WAITING.contains(&name) || !failure.contains(ENDLESS)), explored.executions)
}

/// The results of `work` for each of `items`, on all cores: explorations are independent of each other.
fn on_all_cores<T: Sync, R: Send>(items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let (next, done) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let work_on_some = || {
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(item) = items.get(index) else { break };
            let result = work(item);
            done.lock().expect("nobody panics with it").push((index, result));
        }
    };
    // A panic is raised again here, once all threads have ended.
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, NonZeroUsize::get) {
            scope.spawn(work_on_some);
        }
    });
    let mut done = done.into_inner().expect("nobody panics with it");
    done.sort_unstable_by_key(|&(index, _)| index);
    done.into_iter().map(|(_, result)| result).collect()
}

#[test]
fn every_model_holds_and_every_weaker_ordering_is_missed_by_one() {
    let mut found = Found::default();
    let as_they_are = on_all_cores(MODELS, |&(_, model, interruptions)| explore(model, interruptions, &[]));
    for (whole, (name, ..)) in as_they_are.iter().zip(MODELS) {
        assert_eq!(whole.failure, None, "\"{name}\" does not hold");
    }
    let whole = MODELS.iter().zip(&as_they_are);
    let broken: Vec<(&Model, Fault)> = whole.flat_map(|(model, whole)| whole.possible.iter().map(move |&fault| (model, fault))).collect();
    let mut outcomes = on_all_cores(&broken, |&(model, fault)| misses(model, &[fault])).into_iter();
    let mut of_models = Vec::new();
    for (model, whole) in MODELS.iter().zip(as_they_are) {
        let (name, mut missed) = (model.0, BTreeSet::new());
        for (&fault, (is_missed, orders)) in whole.possible.iter().zip(&mut outcomes) {
            found.orders += orders;
            missed.extend(is_missed.then_some(fault));
        }
        found.orders += whole.executions;
        writeln!(found.report, "{name}: {} orders, finds {} of {} faults", whole.executions, missed.len(), whole.possible.len()).unwrap();
        assert!(!missed.is_empty(), "whatever is broken, \"{name}\" holds: it says nothing");
        of_models.push((model, whole.possible.difference(&missed).copied().collect::<Vec<_>>()));
        found.possible.extend(whole.possible);
        found.missed.extend(missed);
    }
    let never_missed: Vec<Fault> = found.possible.difference(&found.missed).copied().collect();
    // If two orderings do the same, some model must miss both together.
    let twice: Vec<Fault> = never_missed.iter().copied().filter(|&fault| kept::is_twice(fault)).collect();
    let together = on_all_cores(&twice, |&fault| {
        let mut pairs = of_models
            .iter()
            .filter(|(_, held)| held.contains(&fault))
            .flat_map(|(model, held)| held.iter().filter(|&&other| other != fault).map(|&other| (*model, other)));
        let mut explored = 0;
        let other = pairs.find(|&(model, other)| {
            let (is_missed, orders) = misses(model, &[fault, other]);
            explored += orders;
            is_missed
        });
        (other.map(|(_, other)| other), explored)
    });
    found.orders += together.iter().map(|(_, explored)| explored).sum::<usize>();
    let said_twice: Vec<(Fault, Option<Fault>)> = twice.into_iter().zip(together).map(|(fault, (other, _))| (fault, other)).collect();
    println!("{}{} faults, {} found, {} orders in all", found.report, found.possible.len(), found.missed.len(), found.orders);
    for &fault in &never_missed {
        println!("never found: {fault} ({})", kept::reason(fault).unwrap_or("no reason is known"));
    }
    for (fault, other) in &said_twice {
        println!("{fault} is found together with: {}", other.map_or("nothing".to_owned(), |other| other.to_string()));
    }
    let unexplained: Vec<String> = never_missed.iter().filter(|&&fault| kept::reason(fault).is_none()).map(Fault::to_string).collect();
    assert_eq!(unexplained, [""; 0], "no model misses these, and `kept` has no reason for them");
    assert_eq!(kept::outdated(&never_missed), [""; 0], "`kept` has reasons for what is missed, or is there no more");
    let alone: Vec<String> = said_twice.iter().filter(|(_, other)| other.is_none()).map(|(fault, _)| fault.to_string()).collect();
    assert_eq!(alone, [""; 0], "`kept` says that another access orders the same, and no model misses both");
}
