//! One transition, networks of one hidden unit, and numbers that can be worked out on paper: what each algorithm takes from it.
//! Unlike `algorithm_losses.rs` this needs no libtorch.

mod support {
    pub(crate) mod algorithms;
}

use rand::{RngExt, SeedableRng};
use rand_distr::StandardNormal;
use shoal::algorithms::{Algorithm, Learning, Random, Statistics, registry};
use shoal::config::Config;
use shoal::config::schema::Loss;
use shoal::environments::{ActionSpace, EnvironmentSpec, registry as environments};
use shoal::experience::fragment::{FRAMES, REWARDS};
use shoal::experience::transition::{ACTION, DISCOUNT, FLAGS, NEXT_OBSERVATION, OBSERVATION, REWARD, flags};
use shoal::metrics::Share;
use shoal::replay::Batch;
use support::algorithms::{build, environment, state};

const WEIGHT: f32 = 0.5;
const LARGEST_WEIGHT: f32 = 2.0;
/// Rounding error of a few operations in f32.
const TOLERANCE: f64 = 2e-6;

/// A learner of one transition.
struct Lesson {
    algorithm: Box<dyn Algorithm>,
    learning: Box<dyn Learning>,
    batch: Batch,
    random: Random,
    gradient: Vec<f32>,
}

/// Where the transition leads, and how it ends.
struct Step {
    observation: f32,
    action: Action,
    reward: f32,
    discount: f32,
    terminated: bool,
    truncated: bool,
    next_observation: f32,
}

enum Action {
    Index(i32),
    Value(f32),
}

/// A network's part of a saved state before any update: parameters, target parameters, moments and the number of steps.
fn network(online: &[f32], target: Option<&[f32]>) -> Vec<f32> {
    [online, target.unwrap_or_default(), &vec![0.0; 2 * online.len() + 2]].concat()
}

/// The outputs of a network of one hidden unit: the unit's weights and bias, the outputs' weights, the outputs' biases.
fn outputs(parameters: &[f32], input: &[f64]) -> Vec<f64> {
    let parameters: Vec<f64> = parameters.iter().map(|&value| f64::from(value)).collect();
    outputs_of(&parameters, input)
}

fn outputs_of(parameters: &[f64], input: &[f64]) -> Vec<f64> {
    let (weights, rest) = parameters.split_at(input.len());
    let unit = (weights.iter().zip(input).map(|(weight, value)| weight * value).sum::<f64>() + rest[0]).max(0.0);
    let (weights, biases) = rest[1..].split_at((rest.len() - 1) / 2);
    weights.iter().zip(biases).map(|(weight, bias)| weight * unit + bias).collect()
}

/// The slope of `loss` along every parameter.
fn slopes(parameters: &[f32], loss: impl Fn(&[f64]) -> f64) -> Vec<f64> {
    let parameters: Vec<f64> = parameters.iter().map(|&value| f64::from(value)).collect();
    let shifted = |index: usize, by: f64| {
        let mut shifted = parameters.clone();
        shifted[index] += by;
        loss(&shifted)
    };
    (0..parameters.len()).map(|index| (shifted(index, 1e-5) - shifted(index, -1e-5)) / 2e-5).collect()
}

impl Lesson {
    fn new(name: &str, parts: &[Vec<f32>], step: &Step, change: impl FnOnce(&mut Config)) -> Self {
        let action = match step.action {
            Action::Index(_) => ActionSpace::Discrete { n: 2 },
            Action::Value(_) => ActionSpace::Box { low: vec![-3.0], high: vec![3.0] },
        };
        let (_, algorithm) = build(name, &environment::<1>(action), |config| {
            config.network.hidden = vec![1];
            config.learner.max_gradient_norm = None;
            config.algorithm.target_tau = Some(0.5);
            config.algorithm.loss = Some(Loss::Mse);
            change(config);
        });
        let mut learning = algorithm.learning(1).unwrap();
        learning.restore(&parts.concat());
        let mut batch = Batch::new(&algorithm.schema(), 1);
        let fields = [(OBSERVATION, step.observation), (REWARD, step.reward), (DISCOUNT, step.discount)];
        for (field, value) in fields.into_iter().chain([(NEXT_OBSERVATION, step.next_observation)]) {
            batch.column_mut(field).as_f32_mut()[0] = value;
        }
        // Panics when the action is not of the algorithm's kind.
        match step.action {
            Action::Index(index) => batch.column_mut(ACTION).as_i32_mut()[0] = index,
            Action::Value(value) => batch.column_mut(ACTION).as_f32_mut()[0] = value,
        }
        batch.column_mut(FLAGS).as_i32_mut()[0] = flags(step.terminated, step.truncated);
        (batch.weights[0], batch.largest_weight) = (WEIGHT, LARGEST_WEIGHT);
        let gradient = vec![f32::NAN; algorithm.sizes().learned];
        Self { algorithm, learning, batch, random: Random::seed_from_u64(2), gradient }
    }

    fn find(&mut self) -> Share {
        self.learning.gradient(&self.batch, &mut self.random, &mut self.gradient)
    }

    /// Apply the gradient in `found`, and return everything that the learner keeps.
    fn apply(&mut self, mut found: Share) -> Vec<f32> {
        self.learning.apply(&mut self.gradient, &mut found, 0.1);
        state(&*self.algorithm, &*self.learning)
    }
}

/// A metric of the one transition.
fn said(found: &Share, name: &str) -> f32 {
    found.tally.get(name).unwrap_or_else(|| panic!("no {name}")) as f32
}

#[track_caller]
fn assert_near(found: &[f32], expected: &[f64]) {
    assert_eq!(found.len(), expected.len());
    for (found, expected) in found.iter().map(|&value| f64::from(value)).zip(expected) {
        assert!((found - expected).abs() <= TOLERANCE * expected.abs().max(1.0), "{found} is not {expected}");
    }
}

/// Q = (0.4, -0.2) h + (0.1, 0.3) with h = s + 0.5: in s = 2 it is (1.1, -0.2), in s' = 1 it is (0.7, 0).
const Q: [f32; 6] = [1.0, 0.5, 0.4, -0.2, 0.1, 0.3];
/// Q = (0.1, 0.9) h with h = s: in s' = 1 it is (0.1, 0.9).
const Q_TARGET: [f32; 6] = [1.0, 0.0, 0.1, 0.9, 0.0, 0.0];

fn deep_q(terminated: bool, truncated: bool, reward: f32, change: impl FnOnce(&mut Config)) -> Lesson {
    let step = Step { observation: 2.0, action: Action::Index(0), reward, discount: 0.81, terminated, truncated, next_observation: 1.0 };
    Lesson::new("dqn", &[network(&Q, Some(&Q_TARGET))], &step, change)
}

#[test]
fn dqn_takes_the_value_of_the_action_that_the_online_network_prefers() {
    // Action 0 is preferred, whose target value is 0.1: the error is 1.1 - (1 + 0.81 * 0.1) = 0.019.
    let mut lesson = deep_q(false, false, 1.0, |config| config.algorithm.target_interval_updates = Some(1));
    let found = lesson.find();
    assert_near(lesson.learning.errors(), &[0.019]);
    assert_near(&[said(&found, "q_mean"), said(&found, "loss")], &[1.1, 0.5 * 0.5 * 0.019 * 0.019]);
    // Weight times error times the slope of 0.4 h + 0.1 along h's weight, h's bias, and the weights and biases of both outputs.
    assert_near(&lesson.gradient, &[0.8, 0.4, 2.5, 0.0, 1.0, 0.0].map(|slope| 0.5 * 0.019 * slope));
    // Adam's first step has the length of the learning rate whatever the gradient's, and none where it is zero.
    let after = lesson.apply(found);
    let online = [0.9, 0.4, 0.3, -0.2, 0.0, 0.3];
    assert_near(&after[..6], &online);
    // The targets go half of the way.
    assert_near(&after[6..12], &[0.95, 0.2, 0.2, 0.35, 0.0, 0.15]);
    // The mean gradient is weighted relative to the largest weight: 0.5 * 0.019 * slope / 2, of which Adam keeps a tenth.
    assert_near(&after[12..18], &[0.8, 0.4, 2.5, 0.0, 1.0, 0.0].map(|slope| 0.1 * 0.5 * 0.019 * slope / 2.0));
    assert_eq!(after[24..], [0.0, 1.0]);
}

#[test]
fn dqn_without_double_takes_the_largest_target_value() {
    // 1.1 - (1 + 0.81 * 0.9) = -0.629.
    let mut lesson = deep_q(false, false, 1.0, |config| config.algorithm.double = false);
    lesson.find();
    assert_near(lesson.learning.errors(), &[0.629]);
    assert_near(&lesson.gradient, &[0.8, 0.4, 2.5, 0.0, 1.0, 0.0].map(|slope| -0.5 * 0.629 * slope));
}

#[test]
fn an_action_that_does_not_exist_is_taken_for_the_nearest_that_does() {
    for (action, error) in [(-1, 0.019), (7, 1.281)] {
        let mut lesson = deep_q(false, false, 1.0, |_| ());
        lesson.batch.column_mut(ACTION).as_i32_mut()[0] = action;
        lesson.find();
        assert_near(lesson.learning.errors(), &[error]);
    }
}

#[test]
fn nothing_follows_a_terminated_transition_and_a_truncated_one_goes_on() {
    for (terminated, truncated, error) in [(true, false, 0.1), (true, true, 0.1), (false, true, 0.019)] {
        let mut lesson = deep_q(terminated, truncated, 1.0, |_| ());
        lesson.find();
        assert_near(lesson.learning.errors(), &[error]);
    }
}

#[test]
fn the_huber_loss_has_a_slope_of_one_beyond_an_error_of_one() {
    // 1.1 - (-3) = 4.1: a loss of 4.1 - 0.5.
    let mut lesson = deep_q(true, false, -3.0, |config| config.algorithm.loss = None);
    let found = lesson.find();
    assert_near(lesson.learning.errors(), &[4.1]);
    assert_near(&[said(&found, "loss")], &[0.5 * 3.6]);
    assert_near(&lesson.gradient, &[0.8, 0.4, 2.5, 0.0, 1.0, 0.0].map(|slope| 0.5 * slope));
}

/// tanh(0.5 s): in s = 1 it is 0.46212.
const POLICY: [f32; 4] = [1.0, 0.0, 0.5, 0.0];
/// tanh(-0.5 s): in s' = 2 it is -0.76159.
const POLICY_TARGET: [f32; 4] = [1.0, 0.0, -0.5, 0.0];
/// 0.8 (s + 2 a + 0.5) - 0.1: in s = 1 with a = -0.25 it is 0.7.
const CRITIC: [f32; 5] = [1.0, 2.0, 0.5, 0.8, -0.1];
/// s + a + 0.2.
const CRITIC_TARGET: [f32; 5] = [1.0, 1.0, 0.0, 1.0, 0.2];
/// 0.5 (s - a + 2) + 0.3: in s = 1 with a = -0.25 it is 1.925.
const OTHER_CRITIC: [f32; 5] = [1.0, -1.0, 2.0, 0.5, 0.3];
/// 0.9 (s + a) + 0.1, which is less than the first one's where s + a is above -1.
const OTHER_CRITIC_TARGET: [f32; 5] = [1.0, 1.0, 0.0, 0.9, 0.1];

const CONTINUOUS: Step = Step {
    observation: 1.0,
    action: Action::Value(-0.25),
    reward: 0.5,
    discount: 0.9,
    terminated: false,
    truncated: true,
    next_observation: 2.0,
};

/// Half the squared distance of a critic's value of the transition's action from `target`, weighted.
fn weighted_loss(critic: &[f64], target: f64) -> f64 {
    f64::from(WEIGHT) * 0.5 * (outputs_of(critic, &[1.0, -0.25])[0] - target).powi(2)
}

#[test]
fn ddpg_regresses_to_the_target_policys_value_and_climbs_its_critic() {
    let parts = [network(&POLICY, Some(&POLICY_TARGET)), network(&CRITIC, Some(&CRITIC_TARGET))];
    let mut lesson = Lesson::new("ddpg", &parts, &CONTINUOUS, |_| ());
    let found = lesson.find();
    // 0.5 + 0.9 (2 - tanh(1) + 0.2) = 1.794565, so the error is -1.094565.
    let target = 0.5 + 0.9 * (2.2 - 1f64.tanh());
    assert_near(lesson.learning.errors(), &[target - 0.7]);
    assert_near(&[said(&found, "q_mean"), said(&found, "loss")], &[0.7, 0.25 * (target - 0.7).powi(2)]);
    // Along the policy's output, before the hyperbolic tangent, the loss -Q falls by 0.8 * 2 * (1 - tanh(0.5)^2) = 1.258317.
    let (action, slope) = (0.5f64.tanh(), -1.6 * (1.0 - 0.5f64.tanh().powi(2)));
    assert_near(&[said(&found, "policy_loss")], &[0.1 - 0.8 * (1.5 + 2.0 * action)]);
    assert_near(&lesson.gradient[..4], &[0.5, 0.5, 1.0, 1.0].map(|along| slope * along));
    // The critic's slopes are those of 0.8 (w s + v a + b) - 0.1 and of the outputs' weight, whose unit is 1.
    let error = 0.5 * (0.7 - target);
    assert_near(&lesson.gradient[4..], &[0.8, 0.8 * -0.25, 0.8, 1.0, 1.0].map(|along| error * along));
    // All of the policy's slopes are negative, so all of its parameters rise by the learning rate, and so do the critic's but one,
    // that of the negative action. Targets go half of the way.
    let after = lesson.apply(found);
    assert_near(&after[..8], &[1.1, 0.1, 0.6, 0.1, 1.05, 0.05, 0.05, 0.05]);
    assert_near(&after[18..28], &[1.1, 1.9, 0.6, 0.9, 0.0, 1.05, 1.45, 0.3, 0.95, 0.1]);
}

#[test]
fn td3_takes_the_smaller_target_and_moves_the_policy_with_every_other_update() {
    let parts = [
        network(&POLICY, Some(&POLICY_TARGET)),
        network(&CRITIC, Some(&CRITIC_TARGET)),
        network(&OTHER_CRITIC, Some(&OTHER_CRITIC_TARGET)),
    ];
    // Noise that is so wide is nearly always clipped, so the target policy's action is 0.1 higher or lower.
    let mut lesson = Lesson::new("td3", &parts, &CONTINUOUS, |config| {
        (config.algorithm.target_noise_std, config.algorithm.target_noise_clip) = (10.0, 0.1);
    });
    let noise: f32 = lesson.random.clone().sample(StandardNormal);
    assert!(noise.abs() > 0.01);
    let found = lesson.find();
    let target = 0.5 + 0.9 * (0.9 * (2.0 - 1f64.tanh() + 0.1 * f64::from(noise.signum())) + 0.1);
    let errors = [0.7 - target, 1.925 - target];
    assert_near(lesson.learning.errors(), &[0.5 * (errors[0].abs() + errors[1].abs())]);
    assert_near(&[said(&found, "q_mean")], &[0.5 * (0.7 + 1.925)]);
    assert_near(&[said(&found, "loss")], &[0.5 * 0.25 * (errors[0].powi(2) + errors[1].powi(2))]);
    assert_eq!((&lesson.gradient[..4], found.tally.get("policy_loss")), ([0.0; 4].as_slice(), None));
    assert_near(&lesson.gradient[4..9], &slopes(&CRITIC, |critic| weighted_loss(critic, target)));
    assert_near(&lesson.gradient[9..], &slopes(&OTHER_CRITIC, |critic| weighted_loss(critic, target)));

    // Critics move at once; the policy, and all targets, with the second update.
    let after = lesson.apply(found);
    assert_eq!((&after[..4], &after[4..8]), (POLICY.as_slice(), POLICY_TARGET.as_slice()));
    let (critic, critic_target) = (after[18..23].to_vec(), &after[23..28]);
    assert!(critic.iter().zip(CRITIC).all(|(after, before)| (after - before).abs() > 0.09), "{critic:?}");
    assert_eq!(critic_target, CRITIC_TARGET);
    let found = lesson.find();
    let action = |policy: &[f64]| outputs_of(policy, &[1.0])[0].tanh();
    let policy_loss = |policy: &[f64]| -outputs(&critic, &[1.0, action(policy)])[0];
    assert_near(&lesson.gradient[..4], &slopes(&POLICY, policy_loss));
    assert_near(&[said(&found, "policy_loss")], &[policy_loss(&POLICY.map(f64::from))]);
    let after = lesson.apply(found);
    assert_near(&after[..8], &[1.1, 0.1, 0.6, 0.1, 1.05, 0.05, 0.05, 0.05]);
    let halfway = |index: usize| 0.5 * f64::from(after[18 + index] + CRITIC_TARGET[index]);
    assert_near(&after[23..28], &[0, 1, 2, 3, 4].map(halfway));
}

#[test]
fn sac_adds_the_entropy_to_targets_and_to_what_its_policy_climbs() {
    /// Mean 0.5 h + 0.1 and logarithm of the deviation -h with h = s: (0.6, -1) in s = 1, (1.1, -2) in s' = 2.
    const GAUSSIAN: [f32; 6] = [1.0, 0.0, 0.5, -1.0, 0.1, 0.0];
    const ALPHA: f64 = 0.2;
    let temperature = vec![(ALPHA as f32).ln(), 0.0, 0.0, 0.0, 0.0];
    let critics = [network(&CRITIC, Some(&CRITIC_TARGET)), network(&OTHER_CRITIC, Some(&OTHER_CRITIC_TARGET))];
    let parts = [&[network(&GAUSSIAN, None)], critics.as_slice(), &[temperature]].concat();
    let mut lesson = Lesson::new("sac", &parts, &CONTINUOUS, |_| ());
    let mut random = lesson.random.clone();
    let [next_noise, noise] = [(); 2].map(|()| f64::from(random.sample::<f32, _>(StandardNormal)));
    // The action and the logarithm of its density: that of the normal distribution, corrected by the slope of the tangent.
    let draw = |policy: &[f64], observation: f64, noise: f64| {
        let outputs = outputs_of(policy, &[observation]);
        let action = (outputs[0] + outputs[1].exp() * noise).tanh();
        let normal = -0.5 * noise * noise - outputs[1] - 0.5 * (2.0 * std::f64::consts::PI).ln();
        (action, normal - (1.0 - action * action).ln())
    };
    let policy = GAUSSIAN.map(f64::from);
    let found = lesson.find();
    let (next_action, next_log_density) = draw(&policy, 2.0, next_noise);
    let target = 0.5 + 0.9 * (0.9 * (2.0 + next_action) + 0.1 - ALPHA * next_log_density);
    assert_near(lesson.learning.errors(), &[0.5 * ((0.7 - target).abs() + (1.925 - target).abs())]);
    assert_near(&lesson.gradient[6..11], &slopes(&CRITIC, |critic| weighted_loss(critic, target)));
    assert_near(&lesson.gradient[11..16], &slopes(&OTHER_CRITIC, |critic| weighted_loss(critic, target)));

    let policy_loss = |policy: &[f64]| {
        let (action, log_density) = draw(policy, 1.0, noise);
        let value = |critic: &[f32]| outputs(critic, &[1.0, action])[0];
        ALPHA * log_density - value(&CRITIC).min(value(&OTHER_CRITIC))
    };
    assert_near(&[said(&found, "policy_loss")], &[policy_loss(&policy)]);
    // One draw estimates the entropy; the deviation is that of the normal distribution.
    assert_near(&[said(&found, "entropy"), said(&found, "action_std")], &[-draw(&policy, 1.0, noise).1, (-1f64).exp()]);
    assert_near(&lesson.gradient[..6], &slopes(&GAUSSIAN, policy_loss));
    // One element of action: the entropy to hold is -1.
    let surplus = draw(&policy, 1.0, noise).1 - 1.0;
    assert_near(&lesson.gradient[16..], &[-surplus]);
    // The temperature rises, by the learning rate in its logarithm, when the entropy is below its target, and falls above it.
    let after = lesson.apply(found);
    let logarithm = after[after.len() - 5];
    assert_near(&[logarithm], &[ALPHA.ln() + 0.1 * surplus.signum()]);
}

#[test]
fn what_is_normalised_is_scaled_in_every_field_that_has_it_and_in_no_other() {
    const VALUES: [f64; 2] = [4.0, -8.0];
    // Less the mean of 3, divided by the deviation of 2.
    const SCALED_OBSERVATIONS: [f64; 2] = [0.5, -5.5];
    // Divided by the returns' deviation of 0.5, and limited to 10.
    const SCALED_REWARDS: [f64; 2] = [8.0, -10.0];
    for (name, of_observations, of_rewards) in [("dqn", &[OBSERVATION, NEXT_OBSERVATION][..], REWARD), ("appo", &[FRAMES][..], REWARDS)] {
        for (observations, rewards) in [(true, false), (false, true), (true, true)] {
            let (_, algorithm) = build(name, &environment::<1>(ActionSpace::Discrete { n: 2 }), |config| {
                (config.algorithm.normalise_observations, config.algorithm.normalise_rewards) = (observations, rewards);
            });
            let mut statistics = Statistics::new(1);
            statistics.merge(&[3.0, 4.0, 0.0, 0.25], [100; 2]);
            let mut learning = algorithm.learning(1).unwrap();
            learning.normalise_with(&statistics);
            let mut batch = Batch::new(&algorithm.schema(), 2);
            let fields = 0..algorithm.schema().fields().len();
            for field in fields.clone() {
                // Empty unless the field has floats, as all that is scaled has.
                let floats = batch.column_mut(field).as_f32_mut();
                floats.iter_mut().zip(VALUES.into_iter().cycle()).for_each(|(float, value)| *float = value as f32);
            }
            learning.prepare(&mut batch);
            for field in fields {
                let expected = if observations && of_observations.contains(&field) {
                    SCALED_OBSERVATIONS
                } else if rewards && field == of_rewards {
                    SCALED_REWARDS
                } else {
                    VALUES
                };
                let found = batch.column(field).as_f32();
                assert_near(found, &expected.into_iter().cycle().take(found.len()).collect::<Vec<_>>());
            }
        }
    }
}

#[test]
fn continuous_actions_need_bounds_that_they_can_be_scaled_to() {
    for name in ["ddpg", "td3", "sac", "ppo", "appo"] {
        let build_within = |low: f32, high: f32| {
            let action = ActionSpace::Box { low: vec![-1.0, low], high: vec![1.0, high] };
            let mut config = Config::for_environment("made-up");
            config.algorithm.name = name.into();
            registry::build(&config, &EnvironmentSpec { action, ..environments::spec("Pendulum-v1").unwrap() }).map(drop)
        };
        build_within(-3.0, 2.0).unwrap();
        build_within(0.5, 0.5).unwrap();
        // The distance of the last two is infinite in 32 bits.
        for (low, high) in [(f32::NEG_INFINITY, 0.0), (0.0, f32::INFINITY), (f32::MIN, f32::MAX), (0.5, 0.25)] {
            let refusal = build_within(low, high).unwrap_err();
            assert!(refusal.to_string().contains("does not bound element 1") && refusal.key() == "environment.id", "{name}: {refusal}");
        }
    }
}
