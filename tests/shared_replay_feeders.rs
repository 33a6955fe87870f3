//! Processes that feed a shared replay without a supervisor: whoever waits for the rate limiter has its turn, whatever becomes of
//! those in front.
#![cfg(target_arch = "x86_64")]

mod support {
    pub(crate) mod counts;
    pub(crate) mod forked;
}

use std::collections::BTreeMap;

use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, waitpid};
use nix::unistd::Pid;
use shoal::segment::counters::Counter;
use shoal::segment::processes::{PlaceInLine, ProcessSlot, SlotState};
use shoal::segment::{Segment, system};
use shoal::standalone::{Options, Patience, ReplayHandle};
use shoal::sync::Ordering;
use support::forked::{self, Run, Sizes, kill_and_reap, wait_until};

const BAND: u64 = 100;
/// How often a feeder that waits may be asked whether to wait on, every two milliseconds, before it counts as stuck.
const MOST_LOOKS: u32 = 3_000;
/// What a feeder adds at once.
const ROWS: [usize; 3] = [1, 10, 60];

/// A replay that holds more than its rate limiter allows, and feeders that all wait to add more.
struct Fed {
    segment: Segment,
    held: ReplayHandle,
    feeders: BTreeMap<usize, Pid>,
    /// Holds the watchdog, and keeps other tests of this program from forking meanwhile.
    _run: Run,
}

impl Fed {
    fn new() -> Self {
        let run = Run::new(Sizes::default());
        let options = Options {
            capacity: 4_096,
            participants: 4,
            samples_per_insert: Some(1.0),
            error_band: BAND as f64,
            ..forked::shared::options()
        };
        let held = ReplayHandle::create(options, true, Some(1)).expect("a small replay");
        let segment = Segment::attach(held.name().expect("a shared replay")).expect("its segment");
        // More than any feeder adds, with nothing sampled yet: the band does not limit what is added at once.
        add(&held, 3 * BAND as usize, &mut || true);
        // One process draws, since feeders notice when no process does any more.
        let mut one = held.batch(1);
        held.sample(&mut one.as_rows(), None, Patience::new(None, &mut || true)).expect("more is there than the band allows");
        let mut fed = Self { segment, held, feeders: BTreeMap::new(), _run: run };
        for rows in ROWS {
            let name = fed.segment.name().to_owned();
            let before: Vec<usize> = fed.feeding().map(|(slot, _)| slot.index()).collect();
            let pid = system::fork_child(|| {
                let held = ReplayHandle::open(&name, None).expect("a replay that is there");
                while add(&held, rows, &mut || true) {}
                0
            });
            let pid = pid.expect("fork");
            let slot = || fed.feeding().find(|(slot, _)| !before.contains(&slot.index())).map(|(slot, _)| slot.index());
            wait_until(|| slot().is_some());
            let slot = slot().expect("its place");
            fed.feeders.insert(slot, pid);
        }
        fed
    }

    /// Those that are ready to add and wait.
    fn feeding(&self) -> impl Iterator<Item = (ProcessSlot<'_>, PlaceInLine)> {
        self.segment.processes().iter().filter_map(|slot| Some((slot, slot.place_in_line().filter(|place| place.is_ready)?)))
    }

    fn first(&self) -> usize {
        self.first_in_line().0
    }

    /// The process slot of the first in line, and its number.
    fn first_in_line(&self) -> (usize, u64) {
        let (slot, place) = self.feeding().min_by_key(|(_, place)| place.number).expect("somebody waits");
        (slot.index(), place.number)
    }

    fn added(&self, slot: usize) -> u64 {
        self.segment.processes().slot(slot).counters().get(Counter::Inserted)
    }

    /// Draw until the inserts call for `surplus` samples more.
    fn draw_until(&self, surplus: u64) {
        let control = self.segment.control();
        let wanted = control.inserted().load(Ordering::SeqCst) - 1 - surplus;
        control.sampled().store(wanted, Ordering::SeqCst);
        control.signal_progress();
    }

    /// Make room for one, and return who took it, once it waits again.
    fn serve_one(&self, waiting: usize) -> usize {
        wait_until(|| self.feeding().count() == waiting);
        let (first, number) = self.first_in_line();
        let before = self.segment.control().inserted().load(Ordering::SeqCst);
        self.draw_until(BAND);
        wait_until(|| self.segment.control().inserted().load(Ordering::SeqCst) > before);
        // Its rows are counted before it gives up its place: until then it stands in line with the old number.
        wait_until(|| self.feeding().all(|(_, place)| place.number != number) && self.feeding().count() == waiting);
        first
    }

    fn stop(&self, slot: usize) {
        kill(self.feeders[&slot], Signal::SIGSTOP).expect("stop");
        waitpid(self.feeders[&slot], Some(WaitPidFlag::WUNTRACED)).expect("waitpid");
    }

    fn end(&mut self, slot: usize) {
        kill_and_reap(self.feeders.remove(&slot).expect("a feeder"), slot);
    }
}

impl Drop for Fed {
    fn drop(&mut self) {
        for pid in self.feeders.values() {
            let _ = kill(*pid, Signal::SIGKILL);
            let _ = waitpid(*pid, None);
        }
    }
}

fn add(held: &ReplayHandle, rows: usize, go_on: &mut dyn FnMut() -> bool) -> bool {
    let column: Vec<u8> = (0..rows as i32).flat_map(i32::to_ne_bytes).collect();
    held.add(&[&column], rows, None, &[], Patience::new(None, go_on), &mut Vec::new()).is_ok()
}

#[test]
fn feeders_have_their_turns_in_order_however_much_they_add() {
    let fed = Fed::new();
    let before: BTreeMap<usize, u64> = fed.feeders.keys().map(|&slot| (slot, fed.added(slot))).collect();
    let served: Vec<usize> = (0..30).map(|_| fed.serve_one(3)).collect();
    for (&slot, &before) in &before {
        assert_eq!(served.iter().filter(|&&other| other == slot).count(), 10, "{served:?}");
        assert!(fed.added(slot) > before);
    }
}

#[test]
fn a_feeder_killed_in_line_is_found_by_those_behind_it_without_a_supervisor_and_without_samples() {
    let mut fed = Fed::new();
    let victim = fed.first();
    fed.end(victim);
    // There is room for one, and no process draws any more: those behind the dead feeder find that it is dead.
    fed.serve_one(2);
    assert_eq!(fed.segment.processes().slot(victim).state(), SlotState::Free);
}

#[test]
fn a_feeder_stopped_in_line_is_passed_over_once_the_surplus_is_drawn() {
    let fed = Fed::new();
    let stopped = fed.first();
    fed.stop(stopped);
    let before = fed.segment.control().inserted().load(Ordering::SeqCst);
    fed.draw_until(0);
    wait_until(|| fed.segment.control().inserted().load(Ordering::SeqCst) > before);
    let served: Vec<usize> = (0..20).map(|_| fed.serve_one(2)).collect();
    assert!(!served.contains(&stopped), "{served:?}");
    kill(fed.feeders[&stopped], Signal::SIGCONT).expect("go on");
    wait_until(|| fed.feeding().count() == 3);
    assert_eq!(fed.serve_one(3), stopped, "it came before all others");
}

#[test]
fn feeders_stopped_in_line_do_not_hold_up_for_ever_who_draws_and_adds_in_one_thread() {
    let fed = Fed::new();
    fed.feeders.keys().for_each(|&slot| fed.stop(slot));
    // The surplus is then within the band, and only the process that is about to wait could draw the rest.
    let mut batch = fed.held.batch(230);
    fed.held.sample(&mut batch.as_rows(), None, Patience::new(None, &mut || true)).expect("more is there than the band allows");
    let mut looks = 0;
    let added = add(&fed.held, 5, &mut || {
        looks += 1;
        looks < MOST_LOOKS
    });
    assert!(added, "it waits for those that are stopped");
    assert_eq!(fed.feeding().count(), 0, "they are passed over");
    fed.feeders.values().for_each(|&pid| kill(pid, Signal::SIGCONT).expect("go on"));
    wait_until(|| fed.feeding().count() == 3);
    fed.serve_one(3);
}
