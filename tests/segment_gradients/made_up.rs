//! An algorithm for learners under test: its gradients are made up, and each learner checks the sum that it gets.

use shoal::algorithms::{Algorithm, AlgorithmError, Learning, Normalisation, Policy, Random, Sizes, Statistics};
use shoal::config::Config;
use shoal::experience::{Experience, Prioritized, Recorder, Seat, Source, SourceError, Storage};
use shoal::metrics::{Metric, Share};
use shoal::networks::{Head, NetworkSpec};
use shoal::replay::{Batch, RateLimiter, Schema};
use shoal::segment::Segment;
use shoal::sync::Ordering;

/// Updates between two states that a leader publishes; a multiple of the updates between two publications of its parameters.
pub(crate) const SNAPSHOT_INTERVAL_UPDATES: u64 = 100;

/// What learners settle on: the scales of CartPole's observations, and of rewards.
pub(crate) const NORMALISATION: Normalisation = Normalisation { observations: true, rewards: true, length: 4 };

const DIGESTS: Metric = Metric::sum("digests");
const MEMBERS: Metric = Metric::sum("members");
const UPDATES: Metric = Metric::mean("updates");
const METRICS: &[Metric] = &[DIGESTS, MEMBERS, UPDATES];

/// Where a learner stops itself, as by SIGSTOP, until SIGCONT.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stop {
    /// When it publishes its state.
    InState,
    /// When it publishes its parameters.
    InParameters,
}

/// What is asked of one learner.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MadeUp {
    /// Where to stop, once: at the first publication of this kind after as many updates.
    pub(crate) stop: Option<(Stop, u64)>,
    /// Updates that may be missing in a state that it goes on from.
    pub(crate) most_lost: u64,
    /// Rows that it waits for before its first batch.
    pub(crate) min_size: u64,
}

impl Default for MadeUp {
    fn default() -> Self {
        // A follower may have been one round behind the leader that died.
        Self { stop: None, most_lost: 1, min_size: 1 }
    }
}

impl MadeUp {
    /// The algorithm, as learner `number` sees it.
    pub(crate) fn algorithm(self, segment: &Segment, config: &Config, schema: Schema, number: usize, parameters: usize) -> MadeUpAlgorithm {
        let network = NetworkSpec::perceptron(1, &[], Head::Linear { outputs: 1 });
        let experience = Rows { config: config.clone(), schema, min_size: self.min_size };
        MadeUpAlgorithm { asked: self, segment: segment.name().to_owned(), experience, network, number, parameters }
    }
}

pub(crate) struct MadeUpAlgorithm {
    asked: MadeUp,
    segment: String,
    experience: Rows,
    network: NetworkSpec,
    number: usize,
    parameters: usize,
}

/// Rows of the test's own, from the prioritized table.
struct Rows {
    config: Config,
    schema: Schema,
    min_size: u64,
}

impl Experience for Rows {
    fn schema(&self) -> Schema {
        self.schema.clone()
    }

    fn observation_fields(&self) -> &'static [usize] {
        &[]
    }

    fn reward_fields(&self) -> &'static [usize] {
        &[]
    }

    fn storage(&self) -> Storage {
        Storage { capacity: 64, fanout: 16, flush_rows: 1, largest_flush_rows: 1 }
    }

    fn limiter(&self) -> RateLimiter {
        RateLimiter { min_size: self.min_size, samples_per_insert: None, takes_once: false, error_band: f64::INFINITY }
    }

    fn recorder(&self, _: usize) -> Box<dyn Recorder> {
        unreachable!("nobody acts")
    }

    fn source<'a>(&self, seat: Seat<'a, '_>) -> Result<Box<dyn Source + 'a>, SourceError> {
        Ok(Box::new(Prioritized::new(&self.config, &self.schema, self.limiter(), seat)?))
    }
}

impl Algorithm for MadeUpAlgorithm {
    fn name(&self) -> &'static str {
        "made up"
    }

    fn experience(&self) -> &dyn Experience {
        &self.experience
    }

    fn metrics(&self) -> &'static [Metric] {
        METRICS
    }

    fn network(&self) -> &NetworkSpec {
        &self.network
    }

    fn sizes(&self) -> Sizes {
        let state = 4 * self.parameters.next_multiple_of(2);
        Sizes { published: self.parameters, learned: self.parameters, state }
    }

    fn normalisation(&self) -> Normalisation {
        NORMALISATION
    }

    fn exploration(&self, _: usize, _: usize, _: u64) -> f32 {
        0.0
    }

    fn policy(&self) -> Result<Box<dyn Policy>, AlgorithmError> {
        unreachable!("nobody acts")
    }

    fn learning(&self, _: u64) -> Result<Box<dyn Learning>, AlgorithmError> {
        Ok(Box::new(MadeUpLearning {
            asked: self.asked.into(),
            segment: Segment::attach_read_only(&self.segment).expect("the segment of the run"),
            number: self.number,
            updates: 0,
            parameters: vec![0.0; self.parameters],
            scales: Vec::new(),
            errors: Vec::new(),
        }))
    }
}

struct MadeUpLearning {
    asked: std::cell::Cell<MadeUp>,
    segment: Segment,
    number: usize,
    updates: u64,
    parameters: Vec<f32>,
    /// What batches are normalised with.
    scales: Vec<f32>,
    errors: Vec<f32>,
}

impl MadeUpLearning {
    fn stop_if_asked(&self, here: Stop) {
        let asked = self.asked.get();
        if asked.stop.is_some_and(|(place, updates)| place == here && self.updates >= updates) {
            self.asked.set(MadeUp { stop: None, ..asked });
            nix::sys::signal::raise(nix::sys::signal::Signal::SIGSTOP).expect("stopping oneself");
        }
    }

    /// A number that differs for other parameters or scales, and whose multiples by the number of learners are exact.
    fn digest(&self) -> f64 {
        let mut hasher = crc32fast::Hasher::new();
        self.parameters.iter().chain(&self.scales).for_each(|value| hasher.update(&value.to_bits().to_le_bytes()));
        f64::from(hasher.finalize())
    }
}

impl Learning for MadeUpLearning {
    fn published(&mut self) -> &[f32] {
        self.stop_if_asked(Stop::InParameters);
        &self.parameters
    }

    fn gradient(&mut self, batch: &Batch, _: &mut Random, gradient: &mut [f32]) -> Share {
        self.errors.resize(batch.rows(), 1.0);
        made_up_gradient(self.number, self.updates + 1, gradient);
        let largest_weight = (self.updates + 1) as f64;
        let mut share = Share { samples: batch.rows() as f64, largest_weight, ..Share::new(METRICS) };
        share.tally.add(DIGESTS, self.digest());
        share.tally.add(MEMBERS, f64::from(1u32 << self.number));
        share.tally.add_all(UPDATES, self.updates as f64, 1.0);
        share
    }

    fn errors(&self) -> &[f32] {
        &self.errors
    }

    /// Check that the sum is that of one whole round of learners that hold the same parameters and scales as this one. A learner that steps
    /// at another rate than they do holds others in the next round.
    fn apply(&mut self, gradient: &mut [f32], total: &mut Share, learning_rate: f32) -> f32 {
        let mut sum = |metric| total.tally.amount_mut(metric).value;
        let (digests, named, updates) = (sum(DIGESTS), sum(MEMBERS) as u32, sum(UPDATES));
        let members: Vec<usize> = (0..32).filter(|&learner| named >> learner & 1 == 1).collect();
        assert!(members.contains(&self.number), "a sum of {members:?} for learner {}", self.number);
        let count = members.len() as f64;
        assert_eq!(total.samples, count * self.errors.len() as f64);
        assert_eq!(digests, count * self.digest(), "the parameters or the scales of {members:?} differ");
        assert_eq!((total.largest_weight, updates), ((self.updates + 1) as f64, count * self.updates as f64));
        let (mut sum, mut own) = (vec![0.0f32; gradient.len()], vec![0.0; gradient.len()]);
        for &member in &members {
            made_up_gradient(member, self.updates + 1, &mut own);
            sum.iter_mut().zip(&own).for_each(|(sum, value)| *sum += value);
        }
        assert!(sum.iter().zip(&*gradient).all(|(a, b)| a.to_bits() == b.to_bits()), "the sum of {members:?} in {}", self.updates + 1);
        self.parameters.iter_mut().zip(gradient).for_each(|(parameter, sum)| *parameter = *parameter / 2.0 + *sum * learning_rate);
        self.updates += 1;
        1.0
    }

    fn save(&self, state: &mut [f32]) {
        self.stop_if_asked(Stop::InState);
        state.fill(self.updates as f32);
        state[..self.parameters.len()].copy_from_slice(&self.parameters);
    }

    /// Check that the state is whole, and as new as it must be: nobody learns until this learner takes part.
    fn restore(&mut self, state: &[f32]) {
        let (parameters, rest) = state.split_at(self.parameters.len());
        assert!(rest.iter().all(|&value| value == rest[0]), "a mixture of states");
        self.parameters.copy_from_slice(parameters);
        self.updates = rest[0] as u64;
        let known = self.segment.control().updates().load(Ordering::Relaxed);
        let lost = known.saturating_sub(self.updates);
        assert!(lost <= self.asked.get().most_lost, "learner {} goes on from update {} of {known}", self.number, self.updates);
    }

    fn normalise_with(&mut self, statistics: &Statistics) {
        let scaling = statistics.input_scaling();
        self.scales = [scaling.means, scaling.inverse_deviations, vec![statistics.reward_scale()]].concat();
    }
}

/// The gradient of a learner in an update: of both signs and many magnitudes, so that the order of additions matters.
fn made_up_gradient(learner: usize, update: u64, values: &mut [f32]) {
    let mut word = update << 20 | learner as u64 | 1 << 63;
    for value in values {
        word = word.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let magnitude = ((word >> 33) & 0xff_ffff) as f32 / 1e6 + 1e-6;
        *value = if word >> 63 == 1 { magnitude } else { -magnitude } * (((word >> 20) & 0xff) + 1) as f32;
    }
}
