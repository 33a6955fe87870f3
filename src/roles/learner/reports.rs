//! What a learner tells the supervisor through its metric ring: what its updates were like, and how busy its GPU is.

use crate::machine::gpu::GpuUse;
use crate::machine::gpu_meter::GpuMeter;
use crate::metrics::{Metric, Tally};
use crate::segment::metrics::{MetricRing, Report};

/// Updates between two reports, at least.
const INTERVAL_UPDATES: u64 = 16;
/// Time between two of metrics, at least, so that those of small networks do not push each other out of the ring before somebody looks.
const INTERVAL_NS: u64 = 50_000_000;

/// The reports of one learner.
pub(super) struct Reports<'a> {
    ring: MetricRing<'a>,
    /// The metrics of the updates since the last report.
    unreported: Tally,
    /// When the newest report of metrics was pushed, on the monotonic clock.
    pushed_at_ns: u64,
    /// Where the learner computes on a GPU whose driver tells what it does.
    gpu: Option<GpuMeter>,
}

impl<'a> Reports<'a> {
    /// Nothing reported yet.
    pub(super) fn new(ring: MetricRing<'a>, metrics: &'static [Metric], gpu: Option<GpuMeter>) -> Self {
        Self { ring, unreported: Tally::new(metrics), pushed_at_ns: 0, gpu }
    }

    /// Take in the metrics of update number `update`, and report those of all updates since the last report when it is time.
    pub(super) fn add(&mut self, metrics: &Tally, update: u64, now_ns: u64) {
        self.unreported.merge(metrics);
        if update.is_multiple_of(INTERVAL_UPDATES) && now_ns.saturating_sub(self.pushed_at_ns) >= INTERVAL_NS {
            self.push(now_ns);
        }
    }

    /// Report the metrics of all updates since the last report.
    pub(super) fn push(&mut self, now_ns: u64) {
        self.pushed_at_ns = now_ns;
        self.ring.push_all(&self.unreported);
        self.unreported.clear();
    }

    /// Say now and then how much the GPU does, after update number `update`.
    pub(super) fn push_gpu_use(&mut self, update: u64) {
        // Those who look into the rings find it among the newest reports; who updates seldom does not make them wait.
        if (update.is_multiple_of(INTERVAL_UPDATES) || self.gpu.as_ref().is_some_and(GpuMeter::is_due))
            && let Some(GpuUse { index, busy_share, memory_bytes }) = self.gpu.as_mut().and_then(GpuMeter::look)
        {
            self.ring.push(Report::Gpu { index, busy_share, memory_bytes });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sync::AtomicU64;

    const METRICS: &[Metric] = &[Metric::sum("dropped"), Metric::mean("loss"), Metric::max("worst"), Metric::last("newest")];

    /// After which of so many updates, of `update_ns` each, there is a report; the learner leaves after the last. All reports together must
    /// tell of all updates.
    fn reported_after(updates: u64, update_ns: u64) -> Vec<u64> {
        let words: Vec<AtomicU64> = (0..MetricRing::words_needed(2 * METRICS.len())).map(|_| AtomicU64::new(0)).collect();
        let ring = MetricRing::over(&words);
        let mut reports = Reports::new(ring, METRICS, None);
        let [mut arrived, mut expected] = [Tally::new(METRICS); 2];
        let (mut position, mut after) = (0, Vec::new());
        let began_ns = 1_000_000_000_000;
        for update in 1..=updates {
            let mut found = Tally::new(METRICS);
            METRICS.iter().for_each(|&metric| found.add(metric, (update * 7 % 101) as f64));
            expected.merge(&found);
            let now_ns = began_ns + update * update_ns;
            reports.add(&found, update, now_ns);
            if update == updates {
                reports.push(now_ns);
            }
            let (next, lost) = ring.drain(position, |report| match report {
                Report::Metric { index, amount } => arrived.merge_at(index, amount),
                other => panic!("{other:?} was never pushed"),
            });
            assert_eq!(lost, 0);
            if next > position {
                after.push(update);
            }
            position = next;
        }
        assert_eq!(arrived, expected, "updates of {update_ns} ns");
        after
    }

    #[test]
    fn reports_are_16_updates_and_50_ms_apart_at_least_and_tell_of_every_update() {
        assert_eq!(reported_after(40, 10_000_000), [16, 32, 40]);
        assert_eq!(reported_after(40, INTERVAL_NS / INTERVAL_UPDATES), [16, 32, 40]);
        assert_eq!(reported_after(64, INTERVAL_NS / INTERVAL_UPDATES - 1), [16, 48, 64]);
        assert_eq!(reported_after(200, 1_000_000), [16, 80, 144, 200]);
    }
}
