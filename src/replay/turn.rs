//! Turns to insert: whoever has to wait for the rate limiter is served in the order of arrival.
//!
//! Without an order, whoever happens to look first goes on, and the same process may do so again and again. So a process
//! that has to wait takes a number, writes it into its own slot of the process table, and keeps it until what it inserts is
//! counted. The *surplus* (samples that the inserts call for beyond those drawn) says who may insert:
//!
//! ```text
//!  error band < surplus              nobody
//!           0 < surplus <= error band  the first in line; anybody while nobody stands in line
//!               surplus <= 0           anybody
//! ```
//!
//! No lock, and nothing to repair. A dead process's number goes with its slot. A first in line that does not move (stopped,
//! busy, or dead and not yet noticed) holds the others up until the samplers have used up the surplus: then everybody may go,
//! and whoever goes past the first in line marks its number as passed over. It counts no more until its owner moves, which
//! takes the mark away and is first again. The counts decide this, not a clock.

use std::time::Duration;

use super::limiter::RateLimiter;
use crate::segment::Segment;
use crate::segment::control::{Control, RunState};
use crate::segment::processes::{ProcessSlot, ProcessTable};
use crate::sync::Ordering;

/// Longest sleep between two looks: against lost wake-ups, and for who stands behind a process that does not move.
const PATIENCE: Duration = Duration::from_millis(2);

/// A process's turn to insert: awaited, then held until the inserted transitions are counted, and given up on drop.
pub struct Turn<'a> {
    limiter: RateLimiter,
    control: Control<'a>,
    processes: ProcessTable<'a>,
    /// Processes that insert have the first slots of the table.
    inserters: usize,
    process: ProcessSlot<'a>,
    /// Place in the line; 0 while there was no need to stand in it.
    number: u64,
    is_first: bool,
    has_come: bool,
}

impl<'a> Turn<'a> {
    pub(super) fn new(limiter: RateLimiter, segment: &'a Segment, process: ProcessSlot<'a>) -> Self {
        let inserters = segment.layout().parameters().stagers;
        let (control, processes) = (segment.control(), segment.processes());
        Self { limiter, control, processes, inserters, process, number: 0, is_first: false, has_come: false }
    }

    /// Whether it has come. If not, the process stands in line from here on.
    pub fn has_come(&mut self) -> bool {
        self.has_come = self.has_come || self.look();
        self.has_come
    }

    /// Wait until it has come. `false` when the run ends first. `idle` is called before every sleep and may end the waiting
    /// too, by returning `false`.
    pub fn wait(&mut self, mut idle: impl FnMut() -> bool) -> bool {
        let control = self.control;
        let ended = || matches!(control.run_state(), RunState::Stopping | RunState::Poisoned);
        while !self.has_come() {
            if ended() || !idle() {
                return false;
            }
            control.wait_for_turn(self.process.index(), self.is_first, PATIENCE, || self.has_come() || ended());
        }
        true
    }

    fn look(&mut self) -> bool {
        // Relaxed: two processes that look at once may both go on, whatever the ordering.
        let [inserted, sampled] = [self.control.inserted(), self.control.sampled()].map(|word| word.load(Ordering::Relaxed));
        let Some(surplus) = self.limiter.surplus(inserted, sampled) else { return true };
        if surplus <= 0.0 {
            if self.number != 0
                && let Some((first, number)) = self.first_before(self.number)
            {
                first.pass_over(number);
            }
            return true;
        }
        let own = if self.number == 0 { u64::MAX } else { self.number };
        self.is_first = self.first_before(own).is_none();
        if self.is_first && surplus <= self.limiter.error_band {
            return true;
        }
        self.stand_in_line();
        false
    }

    fn stand_in_line(&mut self) {
        if self.number == 0 {
            self.number = 1 + self.control.last_turn().fetch_add(1, Ordering::Relaxed);
            self.process.set_turn(self.number);
        } else if self.process.turn().is_none() {
            // Somebody has passed over this process, which moves again.
            self.process.set_turn(self.number);
        }
    }

    /// The first in line, if its number is smaller than `number`.
    fn first_before(&self, number: u64) -> Option<(ProcessSlot<'a>, u64)> {
        let waiting = self.processes.iter().take(self.inserters).filter_map(|slot| Some((slot, slot.turn()?)));
        waiting.filter(|&(_, other)| other < number).min_by_key(|&(_, other)| other)
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        if self.number == 0 {
            return;
        }
        self.process.set_turn(0);
        if let Some((next, _)) = self.first_before(u64::MAX) {
            self.control.call(next.index());
        }
    }
}
