//! Metric rings: each process reports to the supervisor through a ring of its own and never waits.
//!
//! One producer, one consumer. A consumer that falls behind loses the oldest reports, and knows how many.

use crate::metrics::{Amount, Tally};
use crate::sync::{AtomicU64, Ordering, fence};

const RECORDS: usize = 384;
const RECORD_WORDS: usize = 4;
const HEADER_WORDS: usize = 8;

pub(super) const RING_WORDS: usize = MetricRing::words_needed(RECORDS);

/// One report.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Report {
    /// An actor's environment finished an episode.
    Episode {
        /// Undiscounted return.
        episode_return: f64,
        /// Steps.
        length: u64,
    },
    /// What has accumulated of a metric of the algorithm since its last report.
    Metric {
        /// Its place in the algorithm's declaration.
        index: usize,
        /// The amount.
        amount: Amount,
    },
    /// The state of the GPU that a learner computes on.
    Gpu {
        /// Number of the GPU.
        index: u32,
        /// Share of the last moment in which something was computed there.
        busy_share: f64,
        /// Bytes of its memory that are taken.
        memory_bytes: u64,
    },
}

impl Report {
    fn encode(self) -> [u64; RECORD_WORDS] {
        match self {
            Self::Episode { episode_return, length } => [1, episode_return.to_bits(), length, 0],
            Self::Metric { index, amount } => [2, index as u64, amount.value.to_bits(), amount.count.to_bits()],
            Self::Gpu { index, busy_share, memory_bytes } => [3, index.into(), busy_share.to_bits(), memory_bytes],
        }
    }

    fn decode([kind, first, second, third]: [u64; RECORD_WORDS]) -> Option<Self> {
        match kind {
            1 => Some(Self::Episode { episode_return: f64::from_bits(first), length: second }),
            2 => {
                let [value, count] = [second, third].map(f64::from_bits);
                Some(Self::Metric { index: usize::try_from(first).ok()?, amount: Amount { value, count } })
            }
            3 => Some(Self::Gpu { index: u32::try_from(first).ok()?, busy_share: f64::from_bits(second), memory_bytes: third }),
            _ => None,
        }
    }
}

/// The ring of one process.
#[derive(Clone, Copy)]
pub struct MetricRing<'a> {
    words: &'a [AtomicU64],
}

impl<'a> MetricRing<'a> {
    pub(super) fn of_process(words: &'a [AtomicU64], slot: usize) -> Self {
        Self::over(&words[slot * RING_WORDS..][..RING_WORDS])
    }

    /// A ring of as many records as fit into `words`.
    pub fn over(words: &'a [AtomicU64]) -> Self {
        Self { words }
    }

    /// The words that a ring of so many records needs.
    pub const fn words_needed(records: usize) -> usize {
        HEADER_WORDS + records * RECORD_WORDS
    }

    fn records(self) -> u64 {
        ((self.words.len() - HEADER_WORDS) / RECORD_WORDS) as u64
    }

    fn record(self, position: u64) -> &'a [AtomicU64] {
        let index = usize::try_from(position % self.records()).unwrap_or(0);
        &self.words[HEADER_WORDS + index * RECORD_WORDS..][..RECORD_WORDS]
    }

    /// Append a report. Only the owner of the ring does.
    pub fn push(self, report: Report) {
        let position = self.words[0].load(Ordering::Relaxed);
        // The Release fence keeps the record's stores behind the store of the position before, so that a consumer
        // that sees one of them also finds the position moved when it looks again.
        fence(Ordering::Release);
        for (word, value) in self.record(position).iter().zip(report.encode()) {
            word.store(value, Ordering::Relaxed);
        }
        // Release: a consumer that sees the new position sees the record.
        self.words[0].store(position + 1, Ordering::Release);
    }

    /// Append what has accumulated of each metric.
    pub fn push_all(self, tally: &Tally) {
        for (index, &amount) in tally.amounts().iter().enumerate().filter(|(_, amount)| amount.count > 0.0) {
            self.push(Report::Metric { index, amount });
        }
    }

    /// Hand every report since `position` to `take`; returns the new position and how many were lost.
    pub fn drain(self, position: u64, mut take: impl FnMut(Report)) -> (u64, u64) {
        let head = self.words[0].load(Ordering::Acquire);
        // One record less than the ring holds: the producer may be writing the next one.
        let first = position.max(head.saturating_sub(self.records() - 1));
        let mut lost = first - position.min(first);
        for at in first..head {
            let values = std::array::from_fn(|index| self.record(at)[index].load(Ordering::Relaxed));
            // Acquire fence: the position is read again only after the record.
            fence(Ordering::Acquire);
            if self.words[0].load(Ordering::Relaxed).wrapping_sub(at) >= self.records() {
                lost += 1;
            } else if let Some(report) = Report::decode(values) {
                take(report);
            }
        }
        (head, lost)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::Metric;

    #[test]
    fn a_slow_consumer_loses_the_oldest_and_counts_them() {
        let words: Vec<AtomicU64> = (0..RING_WORDS).map(|_| AtomicU64::new(0)).collect();
        let ring = MetricRing::of_process(&words, 0);
        for length in 0..1_000 {
            ring.push(Report::Episode { episode_return: length as f64, length });
        }
        let mut seen = Vec::new();
        let (position, lost) = ring.drain(0, |report| seen.push(report));
        assert_eq!(position, 1_000);
        assert_eq!(lost as usize + seen.len(), 1_000);
        assert_eq!(seen.last(), Some(&Report::Episode { episode_return: 999.0, length: 999 }));
        assert_eq!(ring.drain(position, |_| panic!("nothing new")), (1_000, 0));
    }

    #[test]
    fn metrics_arrive_with_their_amounts_and_what_is_not_known_does_not_travel() {
        const METRICS: &[Metric] = &[Metric::mean("loss"), Metric::last("rate"), Metric::max("worst")];
        let words: Vec<AtomicU64> = (0..RING_WORDS).map(|_| AtomicU64::new(0)).collect();
        let ring = MetricRing::of_process(&words, 0);
        let mut tally = Tally::new(METRICS);
        tally.add_all(METRICS[0], 6.0, 4.0);
        tally.add(METRICS[2], -1.5);
        ring.push_all(&tally);
        let mut arrived = Tally::new(METRICS);
        ring.drain(0, |report| {
            let Report::Metric { index, amount } = report else { panic!("{report:?} was never pushed") };
            arrived.report_at(index, amount);
        });
        assert_eq!(arrived, tally);
    }
}
