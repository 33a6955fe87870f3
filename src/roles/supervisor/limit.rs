//! How much the machine could compute at most: a child of its own measures it while the run begins, since whoever measures computes on a core
//! and the supervisor does not.

use std::time::Duration;

use super::helper::Helper;
use crate::config::Config;
use crate::machine::cores::usable_now;
use crate::networks::measure_products_per_s;
use crate::segment::Segment;
use crate::sync::Ordering;

/// Processor time that measuring takes, however long it is until the child gets it.
const MEASURING: Duration = Duration::from_millis(200);

/// A measurement under way: of products per second on one core.
pub(super) struct Limit(Helper<Option<f64>>);

impl Limit {
    /// Begin to measure. `None` where that cannot be, and where learners do not compute on cores: a run does without.
    pub(super) fn begin(segment: &Segment, config: &Config) -> Option<Self> {
        if config.learner.uses_gpu() {
            return None;
        }
        let measuring = Helper::start(|| {
            // It looks at nothing of the segment, and nobody waits for it to leave.
            segment.retire();
            measure_products_per_s(MEASURING)
        });
        measuring.ok().map(Self)
    }

    /// Once it has ended: say in `segment` what the cores that the run may use could compute. Returns what is still under way.
    pub(super) fn look(self, segment: &Segment) -> Option<Self> {
        if !self.0.has_ended() {
            return Some(self);
        }
        if let Some(products_per_s) = self.0.answer().flatten() {
            // Far below 2^63, and never negative.
            let limit_per_s = (products_per_s * usable_now() as f64) as u64;
            segment.control().products_limit_per_s().store(limit_per_s, Ordering::Relaxed);
        }
        None
    }
}
