//! A suite that any algorithm with transitions can be put through: does it keep the rules that [`Learning`] states?
//!
//! Learners whose algorithm breaks one go wrong quietly: several learn otherwise than one, or drift apart, and a
//! replacement goes on from something else than the dead learner had.

use std::ops::Range;

use rand::{RngExt, SeedableRng};
use thiserror::Error;

use super::{Algorithm, AlgorithmError, Learning, Random, uniform};
use crate::environments::{ActionSpace, EnvironmentSpec};
use crate::experience::transition::{self, ACTION, DISCOUNT, FLAGS, NEXT_OBSERVATION, OBSERVATION, REWARD, flags};
use crate::metrics::Share;
use crate::replay::{Batch, Element};

/// Updates before and after a state is saved. Odd, so that counts are not where they began.
const UPDATES: u64 = 7;
const LEARNING_RATE: f32 = 1e-3;
/// Environment steps of the run at the first update, as each of two learners reads them.
const ENV_STEPS: [u64; 2] = [10_000, 20_000];
/// How far a value of a gradient may be from the sum over the parts of its batch, as a part of the largest value: sums
/// in another order differ in the last bits.
const TOLERANCE: f32 = 1e-3;
/// Norm of that sum beside that of the whole gradient, if both were computed with other random numbers: it is about 1,
/// and for means instead of sums about 2.
const RATIOS_OF_NORMS: Range<f32> = 0.67..1.5;

/// A rule that an algorithm has broken.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum BrokenRule {
    /// The learner cannot be built.
    #[error(transparent)]
    Algorithm(#[from] AlgorithmError),
    /// A value of the gradient is not finite, or was never written.
    #[error("value {index} of the gradient is {value}: `gradient` has to write every value, whatever was there before")]
    NotWritten {
        /// Which value.
        index: usize,
        /// What it is; NaN if it was not written.
        value: f32,
    },
    /// The errors are not those of the batch.
    #[error("`errors` has {found} values after a batch of {rows} rows: it has one for each row, or none")]
    Errors {
        /// How many there are.
        found: usize,
        /// Rows of the batch.
        rows: usize,
    },
    /// Two learners with a part of a batch each do not find what one finds with the whole.
    #[error(
        "{what} is {whole} for a batch, and {sum} for the sum of the gradients of its parts: `gradient` has to return the sum over its \
         rows, each by itself, and `apply` divides by total.samples"
    )]
    NoSum {
        /// What was compared.
        what: String,
        /// Of the batch.
        whole: f32,
        /// Of the sum over its parts.
        sum: f32,
    },
    /// The norm of a finite gradient is not finite, so no step was made.
    #[error(
        "`apply` returns the norm {norm} for a finite gradient: the share has to say its samples and largest weight, as `Share::of` does"
    )]
    NotFinite {
        /// The norm.
        norm: f32,
    },
    /// Learners of one run are no longer the same.
    #[error(
        "after {updates} updates value {index} of the state is {first} in one of two learners and {second} in the other: `apply` may use \
         what it is given and what `save` writes, and nothing that `schedule`, `prepare` or `gradient` saw"
    )]
    LearnersDiffer {
        /// Updates that both made.
        updates: u64,
        /// Which value.
        index: usize,
        /// In the first learner.
        first: f32,
        /// In the second.
        second: f32,
    },
    /// A learner does not go on from a saved state as the one that saved it.
    #[error(
        "{updates} updates after `restore` value {index} of the state is {found} instead of {expected}: `save` has to write everything \
         that `apply` changes and that later updates depend on"
    )]
    NotRestored {
        /// Updates since.
        updates: u64,
        /// Which value.
        index: usize,
        /// What it is.
        found: f32,
        /// What it is in the learner that saved the state.
        expected: f32,
    },
}

/// Put the learners of `algorithm` through every rule, and name the first that is broken. They learn from `batch`,
/// which should have some dozens of rows, all different: [`random_transitions`] makes one.
///
/// Of a gradient that depends on random numbers the norm of the whole is compared, so a part of it that is small beside
/// another is not checked; nor is what happens less often than every few updates.
///
/// # Errors
/// The rule that was broken, and where; or the learner cannot be built.
pub fn check_algorithm(algorithm: &dyn Algorithm, batch: &Batch) -> Result<(), BrokenRule> {
    gradients_add_up(algorithm, batch)?;
    learners_stay_the_same(algorithm, batch)?;
    a_restored_learner_goes_on(algorithm, batch)
}

/// A batch of `rows` made-up transitions of `environment`, with importance weights, for [`check_algorithm`].
pub fn random_transitions(environment: &EnvironmentSpec, rows: usize) -> Batch {
    let mut random = Random::seed_from_u64(1);
    let mut batch = Batch::new(&transition::schema(environment), rows);
    for field in [OBSERVATION, NEXT_OBSERVATION] {
        let column = batch.column_mut(field);
        match column.element() {
            Element::U8 => column.bytes_mut().fill_with(|| random.random()),
            _ => column.as_f32_mut().fill_with(|| random.random_range(-1.0..1.0)),
        }
    }
    let actions = batch.column_mut(ACTION);
    match environment.action {
        ActionSpace::Discrete { n } => actions.as_i32_mut().fill_with(|| random.random_range(0..n) as i32),
        ActionSpace::Box { .. } => uniform(&mut random, actions.as_f32_mut()),
    }
    batch.column_mut(REWARD).as_f32_mut().fill_with(|| random.random_range(-1.0..1.0));
    batch.column_mut(DISCOUNT).as_f32_mut().fill(0.97);
    for (row, ends) in batch.column_mut(FLAGS).as_i32_mut().iter_mut().enumerate() {
        *ends = flags(row % 5 == 0, row % 7 == 0);
    }
    batch.weights.fill_with(|| random.random_range(0.1..1.0));
    batch.largest_weight = largest(&batch.weights);
    batch
}

/// A learner with its part of a batch.
struct Learner {
    learning: Box<dyn Learning>,
    batch: Batch,
    random: Random,
    learned: usize,
    state: usize,
}

impl Learner {
    /// A learner with these `rows` of `batch`, which begins with parameters and draws random numbers by these seeds.
    fn new(algorithm: &dyn Algorithm, batch: &Batch, rows: Range<usize>, seed: u64, seed_of_draws: u64) -> Result<Self, BrokenRule> {
        let learning = algorithm.learning(seed)?;
        let mut part = Batch::new(&algorithm.schema(), 0);
        part.copy_rows(batch, rows);
        part.largest_weight = largest(&part.weights);
        let sizes = algorithm.sizes();
        Ok(Self { learning, batch: part, random: Random::seed_from_u64(seed_of_draws), learned: sizes.learned, state: sizes.state })
    }

    /// The gradient of its batch, once the run has taken so many steps.
    fn gradient(&mut self, env_steps: u64) -> Result<(Vec<f32>, Share), BrokenRule> {
        let mut gradient = vec![f32::NAN; self.learned];
        // As if it had been drawn once more: a batch is prepared once, with what the learner knows then.
        let mut batch = self.batch.clone();
        self.learning.prepare(&mut batch);
        self.learning.schedule(env_steps);
        let mut share = self.learning.gradient(&batch, &mut self.random, &mut gradient);
        share.env_steps = env_steps;
        if let Some(index) = gradient.iter().position(|value| !value.is_finite()) {
            return Err(BrokenRule::NotWritten { index, value: gradient[index] });
        }
        let (found, rows) = (self.learning.errors().len(), self.batch.rows());
        if found == 0 || found == rows { Ok((gradient, share)) } else { Err(BrokenRule::Errors { found, rows }) }
    }

    fn apply(&mut self, mut gradient: Vec<f32>, mut total: Share) -> Result<(), BrokenRule> {
        let norm = self.learning.apply(&mut gradient, &mut total, LEARNING_RATE);
        if norm.is_finite() { Ok(()) } else { Err(BrokenRule::NotFinite { norm }) }
    }

    /// An update by itself.
    fn update(&mut self) -> Result<(), BrokenRule> {
        let (gradient, share) = self.gradient(ENV_STEPS[0])?;
        self.apply(gradient, share)
    }

    fn state(&self) -> Vec<f32> {
        let mut state = vec![0.0; self.state];
        self.learning.save(&mut state);
        state
    }
}

/// Learners get a part of a batch each, and the sum of their gradients is that of the batch.
fn gradients_add_up(algorithm: &dyn Algorithm, batch: &Batch) -> Result<(), BrokenRule> {
    let mut draws = false;
    let mut of = |rows: Range<usize>| {
        let mut learner = Learner::new(algorithm, batch, rows, 1, 1)?;
        let before = learner.random.clone();
        let (gradient, _) = learner.gradient(ENV_STEPS[0])?;
        draws |= learner.random != before;
        Ok::<_, BrokenRule>(gradient)
    };
    let (rows, first) = (batch.rows(), batch.rows() / 3);
    let (whole, mut sum) = (of(0..rows)?, of(0..first)?);
    add(&mut sum, &of(first..rows)?);
    if draws {
        let [whole, sum] = [&whole, &sum].map(|gradient| gradient.iter().map(|value| value * value).sum::<f32>().sqrt());
        let is_right = whole == sum || RATIOS_OF_NORMS.contains(&(sum / whole));
        return if is_right { Ok(()) } else { Err(BrokenRule::NoSum { what: "the norm of the gradient".into(), whole, sum }) };
    }
    let most = TOLERANCE * whole.iter().fold(0.0, |most: f32, value| most.max(value.abs()));
    match whole.iter().zip(&sum).position(|(whole, sum)| (whole - sum).abs() > most) {
        Some(index) => Err(BrokenRule::NoSum { what: format!("value {index} of the gradient"), whole: whole[index], sum: sum[index] }),
        None => Ok(()),
    }
}

/// Learners that saw other rows, and read the steps of the run at another moment, take the same step.
fn learners_stay_the_same(algorithm: &dyn Algorithm, batch: &Batch) -> Result<(), BrokenRule> {
    // Of unequal size: who divides by the rows of one learner takes another step in each.
    let (rows, first) = (batch.rows(), batch.rows() / 3);
    let mut learners = [Learner::new(algorithm, batch, 0..first, 1, 1)?, Learner::new(algorithm, batch, first..rows, 1, 2)?];
    for updates in 1..=UPDATES {
        let (mut sum, mut total) = learners[0].gradient(ENV_STEPS[0] + updates)?;
        let (other, share) = learners[1].gradient(ENV_STEPS[1] + updates)?;
        add(&mut sum, &other);
        total.merge(&share);
        for learner in &mut learners {
            learner.apply(sum.clone(), total)?;
        }
        let [first, second] = [learners[0].state(), learners[1].state()];
        if let Some(index) = difference(&first, &second) {
            return Err(BrokenRule::LearnersDiffer { updates, index, first: first[index], second: second[index] });
        }
    }
    Ok(())
}

/// A learner that begins with a saved state does what the one does that saved it.
fn a_restored_learner_goes_on(algorithm: &dyn Algorithm, batch: &Batch) -> Result<(), BrokenRule> {
    let mut first = Learner::new(algorithm, batch, 0..batch.rows(), 1, 1)?;
    for _ in 0..UPDATES {
        first.update()?;
    }
    let mut second = Learner::new(algorithm, batch, 0..batch.rows(), 2, 1)?;
    second.learning.restore(&first.state());
    second.random = first.random.clone();
    for updates in 1..=UPDATES {
        first.update()?;
        second.update()?;
        let (expected, found) = (first.state(), second.state());
        if let Some(index) = difference(&expected, &found) {
            return Err(BrokenRule::NotRestored { updates, index, found: found[index], expected: expected[index] });
        }
    }
    Ok(())
}

fn add(sum: &mut [f32], other: &[f32]) {
    sum.iter_mut().zip(other).for_each(|(sum, value)| *sum += value);
}

fn largest(weights: &[f32]) -> f32 {
    weights.iter().copied().fold(0.0, f32::max)
}

/// The first value that is not the same, bit for bit.
fn difference(first: &[f32], second: &[f32]) -> Option<usize> {
    first.iter().zip(second).position(|(first, second)| first.to_bits() != second.to_bits())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algorithms::{Policy, Sizes, registry};
    use crate::config::Config;
    use crate::environments::spec;
    use crate::experience::Experience;
    use crate::metrics::Metric;
    use crate::networks::NetworkSpec;

    const ROWS: usize = 64;

    fn library(name: &str, environment: &str) -> (Box<dyn Algorithm>, Batch) {
        let mut config = Config::for_environment(environment);
        config.algorithm.name = name.into();
        config.network.hidden = vec![16, 16];
        let environment = spec(environment).unwrap();
        (registry::build(&config, &environment).unwrap(), random_transitions(&environment, ROWS))
    }

    #[test]
    fn the_algorithms_of_the_library_keep_the_rules() {
        for (name, environment) in
            [("dqn", "CartPole-v1"), ("dqn", "Catch-v0"), ("ddpg", "Pendulum-v1"), ("td3", "Pendulum-v1"), ("sac", "Pendulum-v1")]
        {
            let (algorithm, batch) = library(name, environment);
            check_algorithm(&*algorithm, &batch).unwrap_or_else(|broken| panic!("{name} on {environment}: {broken}"));
        }
    }

    /// What is wrong with an algorithm.
    #[derive(Debug, Clone, Copy, PartialEq)]
    enum Fault {
        Mean,
        Gap,
        Errors,
        Schedule,
        Rows,
        Divisor,
        Samples,
        Count,
    }

    /// An algorithm of the library with a fault.
    struct Faulty {
        inner: Box<dyn Algorithm>,
        fault: Fault,
    }

    impl Algorithm for Faulty {
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
            self.inner.sizes()
        }

        fn exploration(&self, environment: usize, of: usize, env_steps: u64) -> f32 {
            self.inner.exploration(environment, of, env_steps)
        }

        fn policy(&self) -> Result<Box<dyn Policy>, AlgorithmError> {
            self.inner.policy()
        }

        fn learning(&self, seed: u64) -> Result<Box<dyn Learning>, AlgorithmError> {
            Ok(Box::new(FaultyLearning {
                inner: self.inner.learning(seed)?,
                fault: self.fault,
                env_steps: 0,
                rows: 0,
                reward: 0.0,
                updates: 0,
            }))
        }
    }

    struct FaultyLearning {
        inner: Box<dyn Learning>,
        fault: Fault,
        env_steps: u64,
        rows: usize,
        reward: f32,
        updates: u32,
    }

    impl Learning for FaultyLearning {
        fn published(&mut self) -> &[f32] {
            self.inner.published()
        }

        fn schedule(&mut self, env_steps: u64) {
            self.env_steps = env_steps;
        }

        fn gradient(&mut self, batch: &Batch, random: &mut Random, gradient: &mut [f32]) -> Share {
            let before = gradient[0];
            let mut share = self.inner.gradient(batch, random, gradient);
            self.rows = batch.rows();
            self.reward = batch.column(REWARD).as_f32()[0];
            match self.fault {
                Fault::Mean => gradient.iter_mut().for_each(|value| *value /= batch.rows() as f32),
                Fault::Gap => gradient[0] = before,
                Fault::Samples => share.samples = 0.0,
                _ => {}
            }
            share
        }

        fn errors(&self) -> &[f32] {
            &self.inner.errors()[usize::from(self.fault == Fault::Errors)..]
        }

        fn apply(&mut self, gradient: &mut [f32], total: &mut Share, learning_rate: f32) -> f32 {
            self.updates += 1;
            let factor = match self.fault {
                Fault::Schedule => 1.0 / self.env_steps as f32,
                Fault::Rows => 2.0 + self.reward,
                Fault::Divisor => 64.0 / self.rows as f32,
                Fault::Count => (self.updates % 2) as f32,
                _ => 1.0,
            };
            self.inner.apply(gradient, total, factor * learning_rate)
        }

        fn save(&self, state: &mut [f32]) {
            self.inner.save(state);
        }

        fn restore(&mut self, state: &[f32]) {
            self.inner.restore(state);
        }
    }

    #[test]
    fn every_broken_rule_is_found_and_named() {
        for (name, environment, fault, told) in [
            ("dqn", "CartPole-v1", Fault::Mean, "sum over its rows"),
            ("sac", "Pendulum-v1", Fault::Mean, "the norm of the gradient"),
            ("dqn", "CartPole-v1", Fault::Gap, "value 0 of the gradient is NaN"),
            ("dqn", "CartPole-v1", Fault::Errors, "`errors` has 63 values after a batch of 64 rows"),
            ("dqn", "CartPole-v1", Fault::Schedule, "nothing that `schedule`"),
            ("dqn", "CartPole-v1", Fault::Rows, "nothing that `schedule`"),
            ("dqn", "CartPole-v1", Fault::Divisor, "nothing that `schedule`"),
            ("dqn", "CartPole-v1", Fault::Samples, "`apply` returns the norm"),
            ("sac", "Pendulum-v1", Fault::Count, "`save` has to write everything"),
        ] {
            let (inner, batch) = library(name, environment);
            let broken = check_algorithm(&Faulty { inner, fault }, &batch).expect_err("a rule is broken").to_string();
            assert!(broken.contains(told), "{fault:?}: {broken}");
        }
    }
}
