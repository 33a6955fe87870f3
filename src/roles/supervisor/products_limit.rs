//! How much the machine could compute at most: a child of its own measures it while the run begins, since whoever measures computes on a
//! core and the supervisor does not.

use std::time::Duration;

use super::helper::Helper;
use crate::config::Config;
use crate::machine::cores::usable_now;
use crate::networks::measure_products_per_s;
use crate::segment::Segment;
use crate::sync::Ordering;

/// Processor time that measuring takes, however long it is until the child gets it.
const MEASURING: Duration = Duration::from_millis(200);

/// The measurement, and what came of it.
pub(super) struct ProductsLimit {
    measuring: Option<Helper<Option<f64>>>,
    products_per_s_of_a_core: Option<f64>,
}

impl ProductsLimit {
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
        Some(Self { measuring: Some(measuring.ok()?), products_per_s_of_a_core: None })
    }

    /// Once it has ended: say in `segment` what the cores could compute that the run may use now. They may become more or fewer.
    pub(super) fn look(&mut self, segment: &Segment) {
        if let Some(measured) = self.measuring.take_if(|measuring| measuring.has_ended()) {
            self.products_per_s_of_a_core = measured.answer().flatten();
        }
        if let Some(products_per_s) = self.products_per_s_of_a_core {
            // Far below 2^63, and never negative.
            let limit_per_s = (products_per_s * usable_now() as f64) as u64;
            segment.control().products_limit_per_s().store(limit_per_s, Ordering::Relaxed);
        }
    }
}
