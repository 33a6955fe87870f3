//! V-trace (Espeholt et al. 2018, "IMPALA", section 4.1): targets for values and advantages for a policy, from steps
//! that another policy took.

/// The weights of V-trace.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct VTrace {
    /// Largest weight of a temporal difference: rho bar.
    pub(super) max_importance_weight: f32,
    /// Largest weight that carries a difference to earlier steps: c bar.
    pub(super) max_trace_weight: f32,
    /// Weight of longer returns: lambda.
    pub(super) decay: f32,
}

/// One step of a trajectory.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct TracedStep {
    pub(super) reward: f32,
    /// Discount of what follows: 0 if the problem ended.
    pub(super) discount: f32,
    /// Value of the state in which the step starts.
    pub(super) value: f32,
    /// Probability of the action under the policy that is learned about, divided by that under the policy that acted.
    pub(super) importance_weight: f32,
}

/// What V-trace makes of a step.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Traced {
    /// Target of the value.
    pub(super) target: f32,
    /// How much better the action was than the policy's mean, weighted.
    pub(super) advantage: f32,
}

impl VTrace {
    /// Write targets and advantages of consecutive steps to `traced`; `bootstrap_value` is the value of the
    /// state after the last one.
    pub(super) fn trace(&self, steps: &[TracedStep], bootstrap_value: f32, traced: &mut [Traced]) {
        let (mut next_value, mut next_target) = (bootstrap_value, bootstrap_value);
        for (step, traced) in steps.iter().zip(traced).rev() {
            let weight = step.importance_weight.min(self.max_importance_weight);
            let carried = self.decay * step.importance_weight.min(self.max_trace_weight);
            let difference = weight * (step.reward + step.discount * next_value - step.value);
            let target = step.value + difference + step.discount * carried * (next_target - next_value);
            let advantage = weight * (step.reward + step.discount * next_target - step.value);
            *traced = Traced { target, advantage };
            (next_value, next_target) = (step.value, target);
        }
    }
}

#[cfg(test)]
mod tests {
    use rand::{RngExt, SeedableRng};

    use super::*;
    use crate::algorithms::Random;

    const ON_POLICY: VTrace = VTrace { max_importance_weight: 1.0, max_trace_weight: 1.0, decay: 1.0 };

    fn random_steps(random: &mut Random, on_policy: bool) -> Vec<TracedStep> {
        let step = |random: &mut Random| TracedStep {
            reward: random.random_range(-1.0..1.0),
            discount: if random.random_bool(0.2) { 0.0 } else { 0.9 },
            value: random.random_range(-2.0..2.0),
            importance_weight: if on_policy { 1.0 } else { random.random_range(0.1..3.0) },
        };
        (0..7).map(|_| step(random)).collect()
    }

    /// The definition, as a sum, in double precision (equation 1).
    fn reference(settings: VTrace, steps: &[TracedStep], bootstrap: f32) -> Vec<(f64, f64)> {
        let value = |at: usize| f64::from(steps.get(at).map_or(bootstrap, |step| step.value));
        let target = |start: usize| {
            let (mut sum, mut factor) = (value(start), 1.0);
            for (at, step) in steps.iter().enumerate().skip(start) {
                let [rho, c] =
                    [settings.max_importance_weight, settings.max_trace_weight].map(|most| f64::from(step.importance_weight.min(most)));
                sum += factor * rho * (f64::from(step.reward) + f64::from(step.discount) * value(at + 1) - value(at));
                factor *= f64::from(step.discount) * f64::from(settings.decay) * c;
            }
            sum
        };
        let advantage = |at: usize| {
            let next = if at + 1 == steps.len() { value(at + 1) } else { target(at + 1) };
            let weight = f64::from(steps[at].importance_weight.min(settings.max_importance_weight));
            weight * (f64::from(steps[at].reward) + f64::from(steps[at].discount) * next - value(at))
        };
        (0..steps.len()).map(|at| (target(at), advantage(at))).collect()
    }

    fn trace(settings: VTrace, steps: &[TracedStep], bootstrap: f32) -> Vec<Traced> {
        let mut traced = vec![Traced::default(); steps.len()];
        settings.trace(steps, bootstrap, &mut traced);
        traced
    }

    #[test]
    fn targets_and_advantages_are_those_of_the_definition() {
        let mut random = Random::seed_from_u64(3);
        let settings = VTrace { max_importance_weight: 1.4, max_trace_weight: 0.8, decay: 0.9 };
        for _ in 0..200 {
            let steps = random_steps(&mut random, false);
            for (traced, (target, advantage)) in trace(settings, &steps, 0.7).iter().zip(reference(settings, &steps, 0.7)) {
                assert!((f64::from(traced.target) - target).abs() < 1e-4 && (f64::from(traced.advantage) - advantage).abs() < 1e-4);
            }
        }
    }

    #[test]
    fn with_weights_of_one_a_target_less_the_value_is_generalized_advantage_estimation() {
        let mut random = Random::seed_from_u64(4);
        for decay in [0.0, 0.9, 1.0] {
            let (steps, bootstrap_value) = (random_steps(&mut random, true), 0.7);
            let traced = trace(VTrace { decay, ..ON_POLICY }, &steps, bootstrap_value);
            for first in 0..steps.len() {
                // The discounted sum of all temporal differences that follow (Schulman et al. 2016, equation 16).
                let (mut advantage, mut weight) = (0.0, 1.0);
                for (index, step) in steps.iter().enumerate().skip(first) {
                    let next_value = steps.get(index + 1).map_or(bootstrap_value, |step| step.value);
                    advantage += weight * (step.reward + step.discount * next_value - step.value);
                    weight *= decay * step.discount;
                }
                assert!((traced[first].target - steps[first].value - advantage).abs() < 1e-5);
            }
        }
    }

    #[test]
    fn with_weights_of_one_a_target_is_the_return_up_to_the_bootstrap_and_ends_where_the_problem_ended() {
        let mut random = Random::seed_from_u64(5);
        for _ in 0..50 {
            let steps = random_steps(&mut random, true);
            let mut following = 0.7;
            let returns = steps.iter().rev().map(|step| {
                following = step.reward + step.discount * following;
                following
            });
            let traced = trace(ON_POLICY, &steps, 0.7);
            for (traced, expected) in traced.iter().rev().zip(returns) {
                assert!((traced.target - expected).abs() < 1e-5);
            }
        }
        let step = TracedStep { reward: 1.0, discount: 0.0, value: 0.3, importance_weight: 1.0 };
        assert_eq!(trace(ON_POLICY, &[step], 100.0)[0].target, 1.0, "a termination removes the bootstrap");
        let cut = TracedStep { discount: 0.5, ..step };
        assert_eq!(trace(ON_POLICY, &[cut], 100.0)[0].target, 51.0, "a truncation keeps it");
    }
}
