//! How much the machine could compute at most. Measuring it takes computing on a core, which the supervisor never
//! does: a child measures while the run begins.

use std::time::Duration;

use nix::unistd::Pid;

use super::helper::Helper;
use crate::config::Config;
use crate::machine::cores::time_now;
use crate::networks::measure_products_per_s;
use crate::segment::Segment;
use crate::sync::Ordering;

/// Processor time for the measurement. The child may have to wait for it.
const MEASURING: Duration = Duration::from_millis(200);

/// The measurement, and what came of it.
pub(super) struct ProductsPeak {
    measuring: Option<Helper<Option<f64>>>,
    products_per_s_of_a_core: Option<f64>,
}

impl ProductsPeak {
    /// Begin to measure. `None` if learners do not compute on cores, or no child can be started: a run does
    /// without.
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

    /// The process that measures, if the measurement has not ended.
    pub(super) fn process(&self) -> Option<Pid> {
        self.measuring.as_ref().map(Helper::pid)
    }

    /// Once the measurement has ended: write into `segment` what the cores that the run may use now could compute.
    /// The number of cores may change.
    pub(super) fn look(&mut self, segment: &Segment) {
        if let Some(measured) = self.measuring.take_if(|measuring| measuring.has_ended()) {
            self.products_per_s_of_a_core = measured.answer().flatten();
        }
        if let Some(products_per_s) = self.products_per_s_of_a_core {
            segment.control().products_peak_per_s().store(peak_per_s(products_per_s, time_now()), Ordering::Relaxed);
        }
    }
}

/// What so many `cores` could compute if each makes `products_per_s`: a control group may leave a run a part of one.
fn peak_per_s(products_per_s: f64, cores: f64) -> u64 {
    // Far below 2^63, and never negative.
    (products_per_s * cores) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_a_core_computes_a_part_of_what_a_core_does() {
        assert_eq!([1.5, 0.5].map(|cores| peak_per_s(1_000.0, cores)), [1_500, 500]);
    }
}
