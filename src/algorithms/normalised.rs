//! An algorithm whose observations or rewards are normalised: a wrapper around any other.
//!
//! The replay keeps observations and rewards unscaled. Learners scale a batch when they have drawn it, with the newest
//! statistics of all actors. The scaling of observations is published (and saved) behind the policy's parameters, so
//! that actors and the evaluator scale as the policy was trained.

use super::{ActionMut, Algorithm, AlgorithmError, Halved, Learning, Normalisation, Policy, Random, Sizes, Statistics};
use crate::experience::{Choice, Experience};
use crate::metrics::{Metric, Share};
use crate::networks::{InputScaling, Network, NetworkSpec};
use crate::replay::Batch;
use crate::values::Values;

/// An algorithm with normalised inputs.
pub(super) struct Normalised {
    inner: Box<dyn Algorithm>,
    normalisation: Normalisation,
}

impl Normalised {
    pub(super) fn new(inner: Box<dyn Algorithm>, normalisation: Normalisation) -> Self {
        Self { inner, normalisation }
    }

    fn scaling_values(&self) -> usize {
        if self.normalisation.observations { 2 * self.normalisation.length } else { 0 }
    }
}

impl Algorithm for Normalised {
    fn name(&self) -> &'static str {
        self.inner.name()
    }

    fn experience(&self) -> &dyn Experience {
        self.inner.experience()
    }

    fn metrics(&self) -> &'static [Metric] {
        self.inner.metrics()
    }

    fn network(&self) -> &NetworkSpec {
        self.inner.network()
    }

    fn sizes(&self) -> Sizes {
        let inner = self.inner.sizes();
        Sizes { published: inner.published + self.scaling_values(), ..inner }
    }

    fn handed_over(&self) -> usize {
        self.inner.handed_over()
    }

    fn normalisation(&self) -> Normalisation {
        self.normalisation
    }

    fn exploration(&self, environment: usize, of: usize, env_steps: u64) -> f32 {
        self.inner.exploration(environment, of, env_steps)
    }

    fn policy(&self) -> Result<Box<dyn Policy>, AlgorithmError> {
        let policy = self.inner.policy()?;
        if !self.normalisation.observations {
            return Ok(policy);
        }
        Ok(Box::new(ScaledPolicy { inner: policy, scaling: InputScaling::identity(self.normalisation.length), scaled: Vec::new() }))
    }

    fn learning(&self, seed: u64) -> Result<Box<dyn Learning>, AlgorithmError> {
        Ok(Box::new(NormalisedLearning {
            observation_fields: self.inner.experience().observation_fields(),
            reward_fields: self.inner.experience().reward_fields(),
            inner: self.inner.learning(seed)?,
            normalisation: self.normalisation,
            scaling: InputScaling::identity(self.normalisation.length),
            reward_scale: 1.0,
            published: Vec::new(),
        }))
    }
}

/// A policy that scales what it observes.
struct ScaledPolicy {
    inner: Box<dyn Policy>,
    scaling: InputScaling,
    scaled: Vec<f32>,
}

impl Policy for ScaledPolicy {
    fn network(&mut self) -> &mut dyn Network {
        self.inner.network()
    }

    fn set_parameters(&mut self, published: &[f32]) {
        let (parameters, scaling) = published.split_at(published.len() - self.scaling.values());
        self.inner.set_parameters(parameters);
        self.scaling.set_values(scaling);
    }

    fn outputs(&mut self) -> usize {
        self.inner.outputs()
    }

    fn infer(&mut self, observations: Values<'_>, rows: usize, outputs: &mut [f32]) {
        self.scaled.clear();
        self.scaled.extend_from_slice(observations.as_f32().expect("normalised observations are floats"));
        self.scaling.apply(&mut self.scaled);
        self.inner.infer((&self.scaled).into(), rows, outputs);
    }

    fn choose(&self, outputs: &[f32], exploration: f32, random: &mut Random, action: ActionMut<'_>) -> Choice {
        self.inner.choose(outputs, exploration, random, action)
    }

    fn choose_randomly(&self, outputs: &[f32], random: &mut Random, action: ActionMut<'_>) -> Choice {
        self.inner.choose_randomly(outputs, random, action)
    }

    fn state_value(&self, outputs: &[f32]) -> f32 {
        self.inner.state_value(outputs)
    }
}

/// Largest reward after scaling, as in Stable-Baselines3's `VecNormalize`: a large reward that comes before the
/// statistics know any like it would outweigh all others. The sum of several steps' rewards has the same limit.
const LARGEST_REWARD: f32 = 10.0;

fn scaled(reward: f32, scale: f32) -> f32 {
    (reward * scale).clamp(-LARGEST_REWARD, LARGEST_REWARD)
}

/// Learning from scaled batches.
struct NormalisedLearning {
    inner: Box<dyn Learning>,
    observation_fields: &'static [usize],
    reward_fields: &'static [usize],
    normalisation: Normalisation,
    scaling: InputScaling,
    reward_scale: f32,
    published: Vec<f32>,
}

impl Learning for NormalisedLearning {
    fn published(&mut self) -> &[f32] {
        self.published.clear();
        self.published.extend_from_slice(self.inner.published());
        if self.normalisation.observations {
            self.scaling.append_to(&mut self.published);
        }
        &self.published
    }

    fn prepare(&mut self, batch: &mut Batch) {
        if self.normalisation.observations {
            for &field in self.observation_fields {
                self.scaling.apply(batch.column_mut(field).as_f32_mut());
            }
        }
        if self.normalisation.rewards {
            for &field in self.reward_fields {
                batch.column_mut(field).as_f32_mut().iter_mut().for_each(|reward| *reward = scaled(*reward, self.reward_scale));
            }
        }
        self.inner.prepare(batch);
    }

    fn schedule(&mut self, env_steps: u64) {
        self.inner.schedule(env_steps);
    }

    fn gradient(&mut self, batch: &Batch, random: &mut Random, gradient: &mut [f32]) -> Share {
        self.inner.gradient(batch, random, gradient)
    }

    fn errors(&self) -> &[f32] {
        self.inner.errors()
    }

    fn apply(&mut self, gradient: &mut [f32], total: &mut Share, learning_rate: f32) -> f32 {
        self.inner.apply(gradient, total, learning_rate)
    }

    fn save(&self, state: &mut [f32]) {
        self.inner.save(state);
    }

    fn restore(&mut self, state: &[f32]) {
        self.inner.restore(state);
    }

    fn normalise_with(&mut self, statistics: &Statistics) {
        self.scaling = statistics.input_scaling();
        self.reward_scale = statistics.reward_scale();
    }

    fn halved(&mut self) -> Option<&mut dyn Halved> {
        self.inner.halved()
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::rc::Rc;

    use super::*;
    use crate::replay::{Element, Field, Schema};

    /// Notes what it is asked.
    struct Noting(Rc<RefCell<Vec<String>>>);

    impl Noting {
        fn note(&self, what: &str) {
            self.0.borrow_mut().push(what.to_owned());
        }
    }

    impl Learning for Noting {
        fn published(&mut self) -> &[f32] {
            self.note("published");
            &[]
        }

        fn prepare(&mut self, _batch: &mut Batch) {
            self.note("prepare");
        }

        fn schedule(&mut self, env_steps: u64) {
            self.note(&format!("schedule {env_steps}"));
        }

        fn gradient(&mut self, _batch: &Batch, _random: &mut Random, _gradient: &mut [f32]) -> Share {
            self.note("gradient");
            Share::new(&[])
        }

        fn errors(&self) -> &[f32] {
            self.note("errors");
            &[]
        }

        fn apply(&mut self, _gradient: &mut [f32], _total: &mut Share, _learning_rate: f32) -> f32 {
            self.note("apply");
            0.0
        }

        fn save(&self, _state: &mut [f32]) {
            self.note("save");
        }

        fn restore(&mut self, _state: &[f32]) {
            self.note("restore");
        }

        fn normalise_with(&mut self, _statistics: &Statistics) {
            self.note("normalise_with");
        }

        fn halved(&mut self) -> Option<&mut dyn Halved> {
            self.note("halved");
            None
        }
    }

    #[test]
    fn whatever_is_asked_of_learning_that_is_wrapped_comes_to_it() {
        let noted = Rc::new(RefCell::new(Vec::new()));
        let normalised = NormalisedLearning {
            inner: Box::new(Noting(Rc::clone(&noted))),
            observation_fields: &[],
            reward_fields: &[],
            normalisation: Normalisation { observations: false, rewards: false, length: 1 },
            scaling: InputScaling::identity(1),
            reward_scale: 1.0,
            published: Vec::new(),
        };
        let blockwise = crate::algorithms::blockwise::Blockwise::new(Box::new(Noting(Rc::clone(&noted))));
        // The wrapper that normalises keeps the statistics to itself.
        let wrappers: [(Box<dyn Learning>, &[&str]); 2] = [(Box::new(normalised), &[]), (Box::new(blockwise), &["normalise_with"])];
        let mut batch = Batch::new(&Schema::new(vec![Field::new("number", Element::F32, 1)]), 1);
        for (mut wrapper, of_statistics) in wrappers {
            noted.borrow_mut().clear();
            wrapper.published();
            wrapper.prepare(&mut batch);
            wrapper.schedule(7);
            let mut share = wrapper.gradient(&batch, &mut rand::SeedableRng::seed_from_u64(1), &mut []);
            wrapper.errors();
            wrapper.apply(&mut [], &mut share, 0.1);
            wrapper.save(&mut []);
            wrapper.restore(&[]);
            assert!(wrapper.halved().is_none());
            wrapper.normalise_with(&Statistics::new(1));
            let mut noted = noted.borrow().clone();
            // A block's errors are asked for with its gradient.
            noted.dedup();
            let all = ["published", "prepare", "schedule 7", "gradient", "errors", "apply", "save", "restore", "halved"];
            assert_eq!(noted, [&all[..], of_statistics].concat());
        }
    }
}
