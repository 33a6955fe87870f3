//! The exchange in which the learners of a [`View`] add up their gradients.
//!
//! A *round* is one update: each member of the view writes its share into its own slot, says that it arrived, waits
//! until every member has arrived, and adds up the shares in order of their numbers. All members compute the same sum,
//! bit for bit, and apply the same update. There is one barrier per round: slots are double-buffered by the parity of
//! the round, and a member writes round `r + 2` only after everyone arrived in `r + 1`, hence finished reading `r`.
//!
//! A learner that finds a new view abandons its round. The leader then publishes its state on the learner board under
//! the new epoch, and the others load it before they write any share: nobody is left with half a round, and a
//! replaced learner starts from the leader's state. A learner that lags may add up slots that are being rewritten. It
//! throws that sum away: it looks at the view once more after the sum, and finds the view under which the slots are
//! being rewritten ([`GradientExchange::add_up`]).

use super::membership::View;
use super::shared_words::{load_f32, store_f32, words_for};
use crate::metrics::{Amount, MOST_METRICS, Share};
use crate::sync::{AtomicU64, Ordering, fence};

const ARRIVAL_WORDS: usize = 16;
/// Words before the amounts of the metrics: samples, the largest weight, and the environment steps.
const NOTES: usize = 3;
/// Whole cache lines, with room for the metrics of any algorithm.
const SHARE_HEADER_WORDS: usize = (NOTES + 2 * MOST_METRICS).next_multiple_of(8);
/// Numbers of all shares that are added up before the next ones are read: few enough to stay in the nearest cache.
const CHUNK: usize = 1024;

fn share_words(parameters: usize) -> usize {
    (SHARE_HEADER_WORDS + words_for(parameters)).next_multiple_of(8)
}

/// The gradient slots of all learners.
#[derive(Clone, Copy)]
pub struct GradientExchange<'a> {
    words: &'a [AtomicU64],
    learners: usize,
    parameters: usize,
}

impl<'a> GradientExchange<'a> {
    /// An exchange on `words`, which hold zeros at first.
    pub fn new(words: &'a [AtomicU64], learners: usize, parameters: usize) -> Self {
        assert!(words.len() >= Self::words_needed(learners, parameters));
        Self { words, learners, parameters }
    }

    /// Words that an exchange takes.
    pub fn words_needed(learners: usize, parameters: usize) -> usize {
        learners * (ARRIVAL_WORDS + 2 * share_words(parameters))
    }

    fn arrival(self, learner: usize) -> &'a AtomicU64 {
        &self.words[learner * ARRIVAL_WORDS]
    }

    fn share(self, learner: usize, round: u64) -> &'a [AtomicU64] {
        let length = share_words(self.parameters);
        let index = 2 * learner + usize::from(round % 2 == 1);
        &self.words[self.learners * ARRIVAL_WORDS + index * length..][..length]
    }

    /// Write this learner's share of round `round` of a view, which it has loaded, and say that it has arrived.
    pub fn arrive(self, learner: usize, view: View, round: u64, share: &Share, gradient: &[f32]) {
        let words = self.share(learner, round);
        // Release fence: this learner loaded the view before it stores the words below. It pairs with the fence in
        // `add_up`.
        fence(Ordering::Release);
        let amounts = share.tally.amounts().iter().flat_map(|amount| [amount.value, amount.count]);
        let notes = [share.samples, share.largest_weight, share.env_steps as f64];
        for (word, note) in words.iter().zip(notes.into_iter().chain(amounts)) {
            word.store(note.to_bits(), Ordering::Relaxed);
        }
        store_f32(&words[SHARE_HEADER_WORDS..], gradient);
        // Release: a learner that sees the arrival sees the share.
        self.arrival(learner).store(view.stamp(round), Ordering::Release);
    }

    /// Whether every member of the view has arrived in `round`.
    pub fn all_arrived(self, view: View, round: u64) -> bool {
        view.learners().all(|learner| self.has_arrived(learner, view, round))
    }

    /// Whether this member of the view has arrived in `round`.
    pub fn has_arrived(self, learner: usize, view: View, round: u64) -> bool {
        // Acquire: pairs with the Release of `arrive`. A member may be one round ahead already.
        let arrived = self.arrival(learner).load(Ordering::Acquire);
        arrived == view.stamp(round) || arrived == view.stamp(round + 1)
    }

    /// Add up the shares of all members, which have arrived in `round`. The sums replace `share` and `gradient`,
    /// which may be this learner's own. Every member adds in the same order, and so gets the same sum.
    ///
    /// The sum counts only if a look at the membership *after* it still finds `view`: under a later view, members may
    /// have begun to write other shares into these slots.
    pub fn add_up(self, view: View, round: u64, share: &mut Share, gradient: &mut [f32]) {
        *share = Share::new(share.tally.metrics());
        for learner in view.learners() {
            let words = self.share(learner, round);
            let note = |index: usize| f64::from_bits(words[index].load(Ordering::Relaxed));
            share.samples += note(0);
            share.largest_weight = share.largest_weight.max(note(1));
            share.env_steps = share.env_steps.max(note(2) as u64);
            for index in 0..share.tally.metrics().len() {
                let at = NOTES + 2 * index;
                share.tally.merge_at(index, Amount { value: note(at), count: note(at + 1) });
            }
        }
        let mut other = [0.0; CHUNK];
        for (index, sum) in gradient.chunks_mut(CHUNK).enumerate() {
            for (position, learner) in view.learners().enumerate() {
                let words = &self.share(learner, round)[SHARE_HEADER_WORDS + index * words_for(CHUNK)..];
                if position == 0 {
                    load_f32(words, sum);
                } else {
                    let other = &mut other[..sum.len()];
                    load_f32(words, other);
                    sum.iter_mut().zip(&*other).for_each(|(sum, value)| *sum += value);
                }
            }
        }
        // Acquire fence: pairs with the one in `arrive`. A learner that met a word of a share under a later view
        // finds that view, or a still later one, when it looks next: the writer had loaded the view before it stored
        // the word.
        fence(Ordering::Acquire);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::Metric;

    const METRICS: &[Metric] = &[Metric::mean("loss"), Metric::max("worst")];

    fn share(weight: f64) -> Share {
        let mut share = Share { samples: 8.0, largest_weight: weight, env_steps: (100.0 * weight) as u64, ..Share::new(METRICS) };
        share.tally.add_all(METRICS[0], 2.0, 8.0);
        share.tally.add(METRICS[1], weight);
        share
    }

    #[test]
    fn the_shares_of_the_members_are_added_up_once_all_have_arrived() {
        let words: Vec<AtomicU64> = (0..GradientExchange::words_needed(3, 5)).map(|_| AtomicU64::new(0)).collect();
        let exchange = GradientExchange::new(&words, 3, 5);
        let view = View { epoch: 4, members: 0b101, leader: Some(0), doublings: 0 };
        exchange.arrive(0, view, 1, &share(0.5), &[1.0; 5]);
        assert!(!exchange.all_arrived(view, 1));
        assert!(
            !exchange.all_arrived(View { epoch: 0, members: 0b10, leader: Some(1), doublings: 0 }, 0),
            "learner 1 never arrived anywhere"
        );
        exchange.arrive(2, View { epoch: 3, ..view }, 1, &share(9.0), &[9.0; 5]);
        assert!(!exchange.all_arrived(view, 1), "an arrival in an older view does not count");
        exchange.arrive(2, view, 1, &share(0.75), &[2.0; 5]);
        assert!(exchange.all_arrived(view, 1));
        let (mut total, mut sum) = (share(77.0), [9.0; 5]);
        exchange.add_up(view, 1, &mut total, &mut sum);
        assert_eq!(sum, [3.0; 5]);
        assert_eq!((total.samples, total.largest_weight, total.env_steps), (16.0, 0.75, 75));
        assert_eq!((total.tally.get("loss"), total.tally.get("worst")), (Some(0.25), Some(0.75)));
    }

    #[test]
    fn every_number_of_a_long_gradient_is_added_up() {
        let parameters = 2 * CHUNK + 3;
        let words: Vec<AtomicU64> = (0..GradientExchange::words_needed(2, parameters)).map(|_| AtomicU64::new(0)).collect();
        let exchange = GradientExchange::new(&words, 2, parameters);
        let view = View { epoch: 1, members: 0b11, leader: Some(0), doublings: 0 };
        let gradient = |factor: f32| (0..parameters).map(|index| index as f32 * factor).collect::<Vec<_>>();
        exchange.arrive(0, view, 1, &share(1.0), &gradient(1.0));
        exchange.arrive(1, view, 1, &share(1.0), &gradient(2.0));
        let mut sum = vec![9.0; parameters];
        exchange.add_up(view, 1, &mut share(1.0), &mut sum);
        assert_eq!(sum, gradient(3.0));
    }
}
