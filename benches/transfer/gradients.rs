//! Gradients: two learners, one of which has arrived and waits for the share of the other.

use std::hint::spin_loop;

use shoal::metrics::{Metric, Share};
use shoal::segment::gradients::GradientExchange;
use shoal::segment::membership::View;
use shoal::segment::{Segment, SegmentSizes};

use crate::boards::{segment, sizes};
use crate::measure::{Path, Receiver, Sender};

const METRICS: &[Metric] = &[Metric::mean("loss")];
const BOTH: View = View { epoch: 1, members: 0b11, leader: Some(0), doublings: 0 };
const WRITES: usize = 0;
const READS: usize = 1;

/// The exchange of two learners, for one measurement only: rounds are counted from the first.
pub(crate) struct Gradients {
    segment: Segment,
    parameters: usize,
}

impl Gradients {
    pub(crate) fn new(parameters: usize) -> Self {
        let segment = segment(SegmentSizes { learners: 2, learned_parameters: parameters, ..sizes() });
        Self { segment, parameters }
    }

    fn learner(&self, number: usize) -> Learner<'_> {
        Learner {
            exchange: self.segment.gradient_exchange(),
            number,
            round: 1,
            share: Share::new(METRICS),
            gradient: vec![1e-3; self.parameters],
            sum: vec![0.0; self.parameters],
        }
    }
}

impl Path for Gradients {
    fn sender(&self) -> Box<dyn Sender + '_> {
        Box::new(self.learner(WRITES))
    }

    fn receiver(&self) -> Box<dyn Receiver + '_> {
        let learner = self.learner(READS);
        learner.arrive();
        Box::new(learner)
    }
}

struct Learner<'a> {
    exchange: GradientExchange<'a>,
    number: usize,
    round: u64,
    share: Share,
    gradient: Vec<f32>,
    sum: Vec<f32>,
}

impl Learner<'_> {
    fn arrive(&self) {
        self.exchange.arrive(self.number, BOTH, self.round, &self.share, &self.gradient);
    }

    fn add_up(&mut self) {
        self.exchange.add_up(BOTH, self.round, &mut self.share, &mut self.sum);
        self.round += 1;
    }
}

impl Sender for Learner<'_> {
    fn send(&mut self, _number: u64) {
        self.arrive();
    }

    /// Take part in the round: the writer is a learner too, and must be no round ahead of the other.
    fn settle(&mut self, _number: u64) {
        while !self.exchange.all_arrived(BOTH, self.round) {
            spin_loop();
        }
        self.add_up();
    }
}

impl Receiver for Learner<'_> {
    fn look(&mut self) -> usize {
        let have_arrived = self.exchange.all_arrived(BOTH, self.round);
        if have_arrived {
            self.add_up();
        }
        usize::from(have_arrived)
    }

    fn settle(&mut self) {
        self.arrive();
    }
}
