//! What learners report about their updates and their GPUs, as far as the metric rings still hold it.

use serde::Serialize;

use super::printable::printable;
use crate::metrics::Amount;
use crate::segment::membership::View;
use crate::segment::metrics::Report;
use crate::segment::processes::Role;
use crate::segment::{MetricDescription, Segment};
use crate::telemetry::Gpus;

/// One metric of the algorithm.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MetricReport {
    /// Name.
    pub name: String,
    /// Value. A sum or a maximum is over the reports that the rings still hold.
    pub value: f64,
}

impl MetricReport {
    /// Every metric that was reported lately, in the order of `described`, and then the figures of GPUs.
    pub(super) fn all(segment: &Segment, described: &[MetricDescription]) -> Vec<Self> {
        let mut amounts = vec![Amount::default(); described.len()];
        let mut gpus = Gpus::default();
        let leader = View::load(segment.control().membership()).leader.map(|number| (Role::Learner, number));
        let mut slots: Vec<_> = segment.processes().iter().collect();
        // The leader's reports are the newest and come last. There may be others, of a learner that led before.
        slots.sort_by_key(|slot| leader.is_some() && slot.role() == leader);
        for slot in slots {
            segment.metric_ring(slot.index()).drain(0, |report| match report {
                Report::Metric { index, amount } => {
                    if let Some(metric) = described.get(index) {
                        amounts[index].report(amount, metric.accumulation);
                    }
                }
                Report::Gpu { index, busy_share, memory_bytes } => gpus.report(index, busy_share, memory_bytes),
                Report::Episode { .. } => {}
            });
        }
        let known = described.iter().zip(amounts).filter_map(|(metric, amount)| Some((metric, amount.known(metric.accumulation)?)));
        let of_gpus = gpus.total().into_iter().flat_map(|load| {
            [("gpu_busy_share", load.busy_share), ("gpu_memory_bytes", load.memory_bytes as f64)]
                .map(|(name, value)| Self { name: name.into(), value })
        });
        known.map(|(metric, value)| Self { name: printable(&metric.name), value }).chain(of_gpus).collect()
    }
}
