//! Turns to insert: processes that have to wait for the rate limiter insert in the order of their arrival.
//!
//! Without an order, the process that happens to look first goes on, again and again. So a process that has to wait
//! writes a number into its own slot of the process table, one larger than all numbers that it finds there (Lamport's
//! bakery), and keeps it until what it inserts is counted. The *surplus*, the samples that the inserts call for
//! beyond those drawn, decides who inserts:
//!
//! ```text
//!  error band < surplus                nobody;
//!           0 < surplus <= error band  the first in line that is ready, or anybody while nobody in line is ready;
//!               surplus <= 0           everybody.
//! ```
//!
//! A process that has yet to make its transitions takes its number first, and begins to make them when its turn is near
//! ([`Turn::is_near`]): transitions that are made early get old in line. Until it is ready it holds up nobody.
//!
//! There is no lock and nothing to repair. A dead process's number goes with its slot. A first in line that does not
//! take its turn (stopped, or dead and not yet noticed) holds the others up until the samplers have used up the
//! surplus, or until a process behind it has seen it there 500 times: perhaps only processes behind it sample. The
//! process that finds this passes over it. It then holds up nobody until it moves again, and is first again. Counts
//! decide this, not a clock.

use super::limiter::{PAUSE, RateLimiter};
use super::sum_tree::SumTree;
use super::taking::fresh_rows;
use crate::segment::Segment;
use crate::segment::control::Control;
use crate::segment::processes::{PlaceInLine, ProcessSlot, ProcessTable};
use crate::sync::Ordering;

/// Looks at a first in line that may insert and does not, after which it is passed over. They mostly take about half
/// a second, so that a process that waits for a processor, or for a repair, keeps its turn. A process that loses its
/// turn all the same is first again at its next look.
const LOOKS: u32 = 500;

/// A process's turn to insert: awaited, then held until the inserted transitions are counted, and given up on drop.
pub struct Turn<'a> {
    limiter: RateLimiter,
    control: Control<'a>,
    /// The tree, if rows are taken once: the surplus is then the number of rows in it.
    taken_from: Option<SumTree<'a>>,
    processes: ProcessTable<'a>,
    /// Number of processes that may insert: they have the first slots of the table.
    stagers: usize,
    process: ProcessSlot<'a>,
    /// Number in line; 0 before one was needed.
    number: u64,
    /// Whether samples may bring the turn next, so that each batch is worth a look.
    wants_progress: bool,
    /// Slot and place of the process that was last seen first in line without inserting, although it may.
    first_seen: Option<(usize, PlaceInLine)>,
    /// How often in a row that process was seen there.
    looks: u32,
    /// Whether the turn has come: it stays until this is dropped.
    has_come: bool,
}

impl<'a> Turn<'a> {
    pub(super) fn new(limiter: RateLimiter, segment: &'a Segment, process: ProcessSlot<'a>) -> Self {
        Self {
            limiter,
            control: segment.control(),
            taken_from: limiter.takes_once.then(|| SumTree::of(segment).expect("rows that are taken once have a tree")),
            processes: segment.processes(),
            stagers: segment.layout().sizes().stagers,
            process,
            number: 0,
            wants_progress: false,
            first_seen: None,
            looks: 0,
            has_come: false,
        }
    }

    /// Whether the turn comes before `samples` more samples are drawn, if each process in front inserts `transitions`
    /// transitions, as many as this process will. The process is in line from here on, unless there is room for
    /// everybody.
    pub fn is_near(&mut self, samples: u64, transitions: u64) -> bool {
        let Some(surplus) = self.surplus().filter(|&surplus| surplus > 0.0) else { return true };
        self.stand_in_line(false);
        let insert = self.limiter.samples_for(transitions);
        // A learner that takes rows once takes none while there are fewer than it wants. So a process must not wait
        // for those in front before it has made its rows: they may stand still, and only a process that is ready
        // passes over them.
        let in_front = if self.taken_from.is_some() { 0 } else { self.in_front().count() };
        // Such a learner takes many rows at once, after which many are made: how many it took while the last rows
        // were made says nothing of the next ones.
        let samples = if self.taken_from.is_some() { 0 } else { samples };
        let distance = surplus - self.limiter.error_band + in_front as f64 * insert - samples as f64;
        self.wants_progress = distance <= insert;
        distance <= 0.0
    }

    /// Whether the turn has come, for a process that is ready to insert. If not, the process is in line from here on,
    /// and processes that came later wait for it.
    pub fn has_come(&mut self) -> bool {
        self.has_come = self.has_come || self.look();
        self.has_come
    }

    /// Wait until [`Self::is_near`]. `false` if the run ends first, or if `idle`, which is called before every sleep,
    /// returns `false`.
    pub fn wait_until_near(&mut self, samples: u64, transitions: u64, idle: impl FnMut() -> bool) -> bool {
        self.wait_until(|turn| turn.is_near(samples, transitions), idle)
    }

    /// Wait until [`Self::has_come`], as [`Self::wait_until_near`] does.
    pub fn wait(&mut self, idle: impl FnMut() -> bool) -> bool {
        self.wait_until(Self::has_come, idle)
    }

    fn wait_until(&mut self, ready: impl Fn(&mut Self) -> bool, mut idle: impl FnMut() -> bool) -> bool {
        let control = self.control;
        let ended = || control.run_state().is_over();
        while !ready(self) {
            if ended() || !idle() {
                return false;
            }
            let wanted_progress = self.wants_progress;
            // The last look before the sleep may find that samples bring the turn now, because a process has left the
            // line. Nobody would wake this process for samples: it has not announced yet that it wants that.
            control.wait_for_turn(self.process.index(), wanted_progress, PAUSE, || {
                ready(self) || ended() || self.wants_progress && !wanted_progress
            });
        }
        true
    }

    fn look(&mut self) -> bool {
        if self.number != 0 {
            self.stand_in_line(true);
        }
        let Some(surplus) = self.surplus() else { return true };
        if surplus <= 0.0 && self.number == 0 {
            return true;
        }
        let is_room_for_one = surplus <= self.limiter.error_band;
        let first = self.in_front().filter(|(_, place)| place.is_ready).min_by_key(|(slot, place)| (place.number, slot.index()));
        if let Some((slot, place)) = first
            && (surplus <= 0.0 || is_room_for_one && self.stands_still(slot, place))
        {
            slot.pass_over(place);
        }
        if surplus <= 0.0 || is_room_for_one && first.is_none() {
            return true;
        }
        self.stand_in_line(true);
        self.wants_progress = first.is_none();
        false
    }

    /// Whether the first in line, which may insert, has been seen for long without doing so.
    fn stands_still(&mut self, slot: ProcessSlot<'_>, place: PlaceInLine) -> bool {
        let first = Some((slot.index(), place));
        self.looks = if self.first_seen == first { self.looks + 1 } else { 1 };
        self.first_seen = first;
        self.looks >= LOOKS
    }

    fn surplus(&self) -> Option<f64> {
        if let Some(tree) = &self.taken_from {
            return Some(fresh_rows(tree) as f64);
        }
        // Relaxed: two processes that look at once may both go on, whatever the ordering.
        self.limiter.surplus(self.control.inserted().load(Ordering::Relaxed), self.control.counted_samples())
    }

    /// Take a number, or undo the change by which another process has passed over this one.
    fn stand_in_line(&mut self, is_ready: bool) {
        if self.number == 0 {
            self.number = 1 + self.line().map(|(_, place)| place.number).max().unwrap_or(0);
        }
        let place = PlaceInLine { number: self.number, is_ready };
        if self.process.place_in_line() != Some(place) {
            self.process.stand_in_line(place);
        }
    }

    /// The processes in line.
    fn line(&self) -> impl Iterator<Item = (ProcessSlot<'a>, PlaceInLine)> {
        self.processes.iter().take(self.stagers).filter_map(|slot| Some((slot, slot.place_in_line()?)))
    }

    /// Processes in front of this one: all in line while it has no number.
    fn in_front(&self) -> impl Iterator<Item = (ProcessSlot<'a>, PlaceInLine)> {
        let own = (if self.number == 0 { u64::MAX } else { self.number }, self.process.index());
        self.line().filter(move |(slot, place)| (place.number, slot.index()) < own)
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        if self.number == 0 {
            return;
        }
        self.process.leave_line();
        self.number = 0;
        if self.line().next().is_some() {
            self.control.call_line();
        }
    }
}
