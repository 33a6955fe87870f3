//! What a run has reached, for readers outside it: the newest returns that the supervisor knows.
//!
//! One writer, the supervisor, which never waits; readers write nothing. A sequence number that is odd while the record
//! changes tells a reader that what it copied is a mixture.

use serde::Serialize;

use crate::sync::{AtomicU64, Ordering, fence, spin_loop};

/// Words that the record takes: those between two words of the control region.
pub(super) const SCORE_WORDS: usize = 16;
const FIELDS: usize = 8;
/// Copies that a reader tries before it gives up: the writer changes the record a few times a second, in nanoseconds.
const ATTEMPTS: usize = 1_000;

/// The newest returns of a run; `None` is what is not known yet.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Scores {
    /// Training episodes, with exploration.
    pub training: Option<TrainingScore>,
    /// The newest evaluation.
    pub evaluation: Option<EvaluationScore>,
}

/// The mean return of the newest training episodes.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct TrainingScore {
    /// Mean undiscounted return.
    pub return_mean: f64,
    /// Episodes that the mean is taken over.
    pub episodes: u64,
}

/// One evaluation.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct EvaluationScore {
    /// Mean undiscounted return.
    pub return_mean: f64,
    /// Lower end of the mean's 95 % confidence interval; `None` below two episodes.
    pub ci95_low: Option<f64>,
    /// Upper end of that interval.
    pub ci95_high: Option<f64>,
    /// Episodes.
    pub episodes: u64,
    /// Environment steps that the parameters had seen.
    pub env_steps: u64,
    /// Version of the parameters.
    pub version: u64,
}

impl Scores {
    fn encode(&self) -> [u64; FIELDS] {
        let mut words = [0; FIELDS];
        if let Some(training) = self.training {
            words[..2].copy_from_slice(&[training.episodes, training.return_mean.to_bits()]);
        }
        if let Some(evaluation) = self.evaluation {
            let [low, high] = [evaluation.ci95_low, evaluation.ci95_high].map(|end| end.unwrap_or(f64::NAN));
            let [mean, low, high] = [evaluation.return_mean, low, high].map(f64::to_bits);
            words[2..].copy_from_slice(&[evaluation.episodes, mean, low, high, evaluation.env_steps, evaluation.version]);
        }
        words
    }

    /// Decode the words; a score without episodes is absent.
    fn decode([recent, training, episodes, mean, low, high, env_steps, version]: [u64; FIELDS]) -> Self {
        let [training, return_mean] = [training, mean].map(f64::from_bits);
        let [ci95_low, ci95_high] = [low, high].map(|end| Some(f64::from_bits(end)).filter(|end| !end.is_nan()));
        let evaluation = EvaluationScore { return_mean, ci95_low, ci95_high, episodes, env_steps, version };
        Self {
            training: (recent > 0).then_some(TrainingScore { return_mean: training, episodes: recent }),
            evaluation: (episodes > 0).then_some(evaluation),
        }
    }
}

/// The record of the newest scores in the segment.
#[derive(Clone, Copy)]
pub struct ScoreRecord<'a> {
    sequence: &'a AtomicU64,
    fields: &'a [AtomicU64],
}

impl<'a> ScoreRecord<'a> {
    pub(super) fn new(words: &'a [AtomicU64]) -> Self {
        Self { sequence: &words[0], fields: &words[1..=FIELDS] }
    }

    /// Replace the record. Only the supervisor does.
    pub fn publish(self, scores: &Scores) {
        let odd = self.sequence.load(Ordering::Relaxed) | 1;
        self.sequence.store(odd, Ordering::Relaxed);
        // Release fence: a reader that reads any of the new fields reads the odd number, or a later one, after them.
        fence(Ordering::Release);
        for (word, value) in self.fields.iter().zip(scores.encode()) {
            word.store(value, Ordering::Relaxed);
        }
        // Release: a reader that reads the even number reads the fields that belong to it.
        self.sequence.store(odd.wrapping_add(1), Ordering::Release);
    }

    /// A whole record; an empty one if none could be read, because the supervisor died while it wrote.
    pub fn read(self) -> Scores {
        let again = |_| {
            spin_loop();
            self.try_read()
        };
        self.try_read().or_else(|| (1..ATTEMPTS).find_map(again)).unwrap_or_default()
    }

    fn try_read(self) -> Option<Scores> {
        let before = self.sequence.load(Ordering::Acquire);
        let words = std::array::from_fn(|index| self.fields[index].load(Ordering::Relaxed));
        // Acquire fence: the number is read again only after all fields have been.
        fence(Ordering::Acquire);
        let unchanged = before.is_multiple_of(2) && self.sequence.load(Ordering::Relaxed) == before;
        unchanged.then(|| Scores::decode(words))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scores(number: u64) -> Scores {
        let value = number as f64;
        let (end, count) = (Some(value), number);
        let evaluation =
            EvaluationScore { return_mean: value, ci95_low: end, ci95_high: end, episodes: count, env_steps: count, version: count };
        Scores { training: Some(TrainingScore { return_mean: value, episodes: number }), evaluation: Some(evaluation) }
    }

    #[test]
    fn what_is_not_known_comes_back_as_not_known() {
        let words: Vec<AtomicU64> = (0..SCORE_WORDS).map(|_| AtomicU64::new(0)).collect();
        let record = ScoreRecord::new(&words);
        assert_eq!(record.read(), Scores::default(), "a fresh segment");
        let mut known = scores(3);
        record.publish(&known);
        assert_eq!(record.read(), known);
        known.evaluation = known.evaluation.map(|evaluation| EvaluationScore { ci95_low: None, ci95_high: None, ..evaluation });
        known.training = None;
        record.publish(&known);
        assert_eq!(record.read(), known);
    }

    #[test]
    fn readers_never_see_a_mixture() {
        let words: Vec<AtomicU64> = (0..SCORE_WORDS).map(|_| AtomicU64::new(0)).collect();
        let (record, last) = (ScoreRecord::new(&words), if cfg!(miri) { 12 } else { 20_000 });
        std::thread::scope(|scope| {
            scope.spawn(|| (1..=last).for_each(|number| record.publish(&scores(number))));
            scope.spawn(|| {
                let mut newest = 0;
                while newest < last {
                    let Some(found) = record.try_read() else { continue };
                    let number = found.evaluation.map_or(0, |evaluation| evaluation.version);
                    assert!(number >= newest, "{number} after {newest}");
                    assert_eq!(found, if number == 0 { Scores::default() } else { scores(number) });
                    newest = number;
                }
            });
        });
    }

    #[test]
    fn a_record_that_a_dead_supervisor_left_half_written_says_nothing() {
        let words: Vec<AtomicU64> = (0..SCORE_WORDS).map(|_| AtomicU64::new(0)).collect();
        let record = ScoreRecord::new(&words);
        record.publish(&scores(5));
        words[0].store(3, Ordering::Relaxed);
        assert_eq!(record.read(), Scores::default());
    }
}
