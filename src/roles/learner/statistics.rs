//! What the next batches are normalised with.

use super::super::run::Run;
use super::Learner;
use crate::algorithms::{Half, Statistics};
use crate::segment::counters::Counter;
use crate::segment::float_board::NOTES;
use crate::segment::processes::Phase;

/// Updates between two looks at the actors' statistics.
const OBSERVE_INTERVAL_UPDATES: u64 = 16;

impl Learner<'_> {
    /// Now and then, and first of all under each view, settle with the other learners what the next batches are normalised with. The leader
    /// says it: parts of an update that were scaled differently would contradict each other.
    /// `false` when the view changed or the run ended meanwhile.
    ///
    /// Nobody misses what the leader says. It says the next only updates later, and no update is complete before all members have gone on
    /// from here. Of two halves that of the critics says it, and the other one takes what was said last: their updates are not the same.
    pub(super) fn settle_statistics(&mut self) -> bool {
        let (run, view) = (self.run, self.view);
        let is_time = self.settled_in != Some(view.epoch) || self.updates.is_multiple_of(OBSERVE_INTERVAL_UPDATES);
        let Some(board) = run.segment.settled_statistics().filter(|_| is_time) else { return true };
        let (mut values, settled) = (vec![0.0; board.len()], [self.updates, u64::from(view.epoch)]);
        // Once for an update, however often it is attempted: others may have heard it. Who begins alone has told nobody.
        let begins_alone = self.settled_in.is_none() && view.members.count_ones() == 1;
        let is_news = |found: Option<(u64, [u64; NOTES])>| found.is_none_or(|(_, [.., updates, epoch])| [updates, epoch] != settled);
        if self.leads() && self.learns(Half::Critics) && (begins_alone || is_news(board.read(&mut values))) {
            let [observations, returns] = seen_by_actors(run).publish(&mut values);
            board.publish(&[&values], [observations, returns, settled[0], settled[1]]);
        }
        for looks in 1.. {
            if let Some((_, [observations, returns, updates, epoch])) = board.read(&mut values)
                && ([updates, epoch] == settled || !self.learns(Half::Critics))
            {
                let mut statistics = Statistics::new(run.environment.observation.len());
                statistics.merge(&values, [observations, returns]);
                (self.statistics, self.settled_in) = (Some(statistics), Some(view.epoch));
                break;
            }
            if !self.look_again(looks, Phase::Exchange) {
                return false;
            }
        }
        self.count(Counter::ExchangeNs);
        true
    }
}

/// What all actors together have seen up to now.
pub(super) fn seen_by_actors(run: &Run<'_>) -> Statistics {
    let mut statistics = Statistics::new(run.environment.observation.len());
    for slot in 0..run.segment.layout().sizes().stagers {
        let Some(board) = run.segment.statistics_board(slot) else { continue };
        let mut values = vec![0.0; board.len()];
        if let Some((_, [observations, returns, ..])) = board.read(&mut values) {
            statistics.merge(&values, [observations, returns]);
        }
    }
    statistics
}
