//! What a learner has from the others: the sum of all gradients, or what the other half of the algorithm has learned.

use super::{Learner, PAUSE, SPINS};
use crate::metrics::Share;
use crate::segment::counters::Counter;
use crate::segment::processes::{Phase, Role};

/// Looks at the other learners between two looks at what keeps them: mostly an exchange is over before the first.
const SPINS_BEFORE_SLEEP: u32 = 64 * SPINS;

impl Learner<'_> {
    /// Make this learner's share and gradient the sum of all learners'. `false` when the view changed or the run ended.
    pub(super) fn add_up(&mut self, share: &mut Share) -> bool {
        if self.view.members.count_ones() == 1 {
            return true;
        }
        self.run.process.enter(Phase::Exchange);
        let round = self.updates + 1;
        self.exchange.arrive(self.run.number, self.view, round, share, &self.gradient);
        let mut spins = 0;
        while !self.exchange.all_arrived(self.view, round) {
            spins += 1;
            if spins % SPINS == 0 {
                // Processes may outnumber cores, and then the one waited for needs this one's.
                std::thread::yield_now();
                self.run.process.enter(Phase::Exchange);
                if self.newest_view() != self.view || self.run.is_over() {
                    return false;
                }
                if spins % SPINS_BEFORE_SLEEP == 0 && !self.sleep_while_others_idle(round) {
                    return false;
                }
            }
            std::hint::spin_loop();
        }
        self.exchange.add_up(self.view, round, share, &mut self.gradient);
        // A view that changed meanwhile may have changed the shares too.
        let same_view = self.newest_view() == self.view;
        self.count(Counter::ExchangeNs);
        same_view
    }

    /// Sleep for as long as a member that has yet to arrive in `round` waits for rows or is only starting: somebody else may need the core.
    /// `false` when the view changed or the run ended meanwhile.
    fn sleep_while_others_idle(&mut self, round: u64) -> bool {
        let (exchange, view) = (self.exchange, self.view);
        // Who has arrived may say that it waits for rows because somebody else does.
        let is_awaited = |learner| view.contains(learner) && !exchange.has_arrived(learner, view, round);
        let mut goes_on = true;
        while goes_on && let Some((phase, counter)) = self.wait_beside(is_awaited) {
            goes_on = self.look_again(SPINS, phase);
            self.count(counter);
        }
        // It says that no longer: others would sleep while it makes the update.
        self.run.process.enter(Phase::Exchange);
        goes_on
    }

    /// In which phase and counter this learner waits for others that `are_awaited`, if one of these computes nothing: it waits for new
    /// rows, and so this one does, or it is only starting.
    fn wait_beside(&self, are_awaited: impl Fn(usize) -> bool) -> Option<(Phase, Counter)> {
        // What a learner that is gone was doing last says nothing.
        self.run.segment.processes().living().find_map(|slot| {
            let (role, number) = slot.role()?;
            match slot.phase()? {
                _ if role != Role::Learner || number == self.run.number || !are_awaited(number) => None,
                Phase::LimiterWait => Some((Phase::LimiterWait, Counter::LimiterWaitNs)),
                Phase::Starting => Some((Phase::Exchange, Counter::ExchangeNs)),
                _ => None,
            }
        })
    }

    /// Where two learners share the algorithm by halves: take over what the other half has learned, once this one is not too far ahead of
    /// it. What the other waits for this one waits for, too. `false` when the view changed or the run ended meanwhile.
    pub(super) fn hear_of_other_half(&mut self) -> bool {
        for looks in 1.. {
            let Some(other) = &mut self.other_half else { return true };
            if other.take_over(&mut *self.learning, self.updates) {
                break;
            }
            let (phase, counter) = self.wait_beside(|_| true).unwrap_or((Phase::Exchange, Counter::ExchangeNs));
            self.count(counter);
            if !self.look_again(looks, phase) {
                return false;
            }
        }
        self.count(Counter::ExchangeNs);
        true
    }

    /// A moment later, after so many looks at what others are to do, who are waited for in `phase`. They are seldom far behind. `false`
    /// when the view changed or the run ended meanwhile.
    pub(super) fn look_again(&self, looks: u32, phase: Phase) -> bool {
        self.run.process.enter(phase);
        if self.newest_view() != self.view || self.run.is_over() {
            return false;
        }
        if looks < SPINS {
            std::thread::yield_now()
        } else {
            std::thread::sleep(PAUSE)
        }
        true
    }
}
