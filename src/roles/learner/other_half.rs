//! What a learner of one half of an algorithm has to do with the learner of the other: each hands over its parameters every so
//! many updates, takes over the newest of the other's, and waits where it is too far ahead.
//!
//! Two boards of the segment, one for each half, with that half as its only writer. Nobody waits for a reader, and a half that
//! died leaves what it published last; its replacement begins with the state that it finds, at most a snapshot's interval
//! behind, and the other half waits for it within the bound.

use super::Run;
use crate::algorithms::{Half, Halved, Learning};
use crate::segment::float_board::FloatBoard;
use crate::segment::layout::HALVES;

/// Swaps by which one half may be ahead of what it has heard of the other.
const LEAD_SWAPS: u64 = 2;

/// The other half, as one of both sees it.
pub(super) struct OtherHalf<'a> {
    run: &'a Run<'a>,
    half: Half,
    own: FloatBoard<'a>,
    other: FloatBoard<'a>,
    values: Vec<f32>,
    /// Version and updates of what was taken over last.
    heard: Option<(u64, u64)>,
}

impl<'a> OtherHalf<'a> {
    /// As the learner of `run` sees it, whose `learning` is that of its half alone from now on; `None` in a run whose learners share the
    /// algorithm otherwise.
    pub(super) fn new(run: &'a Run<'a>, learning: &mut dyn Learning) -> Option<Self> {
        let half = Half::of(run.number);
        let [critics, policy] = <[_; HALVES]>::try_from(run.segment.handing_over_boards().collect::<Vec<_>>()).ok()?;
        let (own, other) = match half {
            Half::Critics => (critics, policy),
            Half::Policy => (policy, critics),
        };
        halved(learning).learn_only(half);
        Some(Self { run, half, values: vec![0.0; own.len()], own, other, heard: None })
    }

    /// Whether this half is learned here.
    pub(super) fn learns(&self, half: Half) -> bool {
        self.half == half
    }

    /// Hand over what `learning` knows after `updates`.
    pub(super) fn hand_over(&mut self, learning: &mut dyn Learning, updates: u64) {
        halved(learning).hand_over(&mut self.values);
        self.own.publish(&[&self.values], [updates, 0, 0, 0]);
    }

    /// Hand over what `learning` knows, if `updates` are those of a swap.
    pub(super) fn hand_over_at_swap(&mut self, learning: &mut dyn Learning, updates: u64) {
        if updates.is_multiple_of(self.run.config.learner.swap_interval_updates) {
            self.hand_over(learning, updates);
        }
    }

    /// Take over what the other half has handed over since the last time. Returns whether a half that has made `updates` may make
    /// another: it has heard of the other, and is not too far ahead of it.
    pub(super) fn take_over(&mut self, learning: &mut dyn Learning, updates: u64) -> bool {
        if self.heard.is_none_or(|(version, _)| version != self.other.version())
            && let Some((version, [others_updates, ..])) = self.other.read(&mut self.values)
        {
            halved(learning).take_over(&self.values, others_updates, updates);
            self.heard = Some((version, others_updates));
        }
        self.heard.is_some_and(|(_, others_updates)| updates < others_updates + LEAD_SWAPS * self.run.config.learner.swap_interval_updates)
    }
}

fn halved(learning: &mut dyn Learning) -> &mut dyn Halved {
    learning.halved().expect("a run is planned in halves only where the algorithm has some")
}
