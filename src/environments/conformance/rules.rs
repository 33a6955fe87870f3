//! The rules, one function each. The order in which they run lets each presume the ones before it.

use super::ConformanceError;
use super::probe::{Answer, Probe, ProbeAction, RandomActions};
use crate::environments::{ActionSpace, Environment, EnvironmentError, EnvironmentSpec, ObservationSpace};

/// Resets and steps of the rule that looks at every output.
const LONG_ROLLOUT_CALLS: usize = 6_000;
/// Resets and steps of a trajectory that is compared with another. Odd, so that it ends inside an episode of a usual time limit.
const TRAJECTORY_CALLS: usize = 1_037;
/// Steps after which an environment without a time limit is taken to have no end.
const ENDLESS_STEPS: u32 = 6_000;
/// Seeds of which at least two have to differ.
const SEEDS: u64 = 8;
/// Resets and steps that have to tell two seeds apart.
const SEED_CALLS: usize = 100;

/// Makes one more environment of the kind under test.
pub(super) type Make<'a> = dyn Fn() -> Result<Box<dyn Environment>, ConformanceError> + 'a;
type RuleResult = Result<(), ConformanceError>;

pub(super) fn spec_is_consistent(make: &Make<'_>) -> RuleResult {
    let spec = make()?.spec().clone();
    if let Some(reason) = contradiction(&spec) {
        return Err(ConformanceError::InconsistentSpec { reason });
    }
    if *make()?.spec() != spec {
        return Err(ConformanceError::SpecChanges);
    }
    Ok(())
}

fn contradiction(spec: &EnvironmentSpec) -> Option<String> {
    let ObservationSpace { shape, low, high, .. } = &spec.observation;
    if spec.observation.is_empty() {
        return Some(format!("the observation shape {shape:?} holds no values"));
    }
    if low.len() != spec.observation.len() || high.len() != spec.observation.len() {
        return Some(format!("the observation shape {shape:?} does not fit {} lower and {} upper bounds", low.len(), high.len()));
    }
    if let Some(index) = low.iter().zip(high).position(|(low, high)| low.is_nan() || high.is_nan() || low > high) {
        return Some(format!("bounds {index} of the observation are {} .. {}", low[index], high[index]));
    }
    match &spec.action {
        ActionSpace::Discrete { n: 0 } => return Some("there are no actions".to_owned()),
        ActionSpace::Discrete { .. } => {}
        ActionSpace::Box { low, high } => {
            if low.is_empty() || low.len() != high.len() {
                return Some(format!("the action has {} lower and {} upper bounds", low.len(), high.len()));
            }
            // As algorithms take them.
            if low.iter().zip(high).any(|(low, high)| !(0.0..=f32::MAX).contains(&(high - low))) {
                return Some(format!("the action bounds {low:?} .. {high:?} are not finite and ordered, with a finite difference"));
            }
        }
    }
    (spec.time_limit_steps == Some(0)).then(|| "the time limit is 0 steps".to_owned())
}

pub(super) fn step_before_reset_is_refused(make: &Make<'_>) -> RuleResult {
    let mut probe = Probe::new(make()?);
    let action = valid_action(&probe);
    match probe.attempt(&action) {
        Err(EnvironmentError::NeedsReset { .. }) => Ok(()),
        Err(source) => Err(wrong_refusal("a step before the first reset".to_owned(), "NeedsReset", source)),
        Ok(_) => Err(ConformanceError::SteppedBeforeReset),
    }
}

pub(super) fn outputs_and_time_limit_are_valid(make: &Make<'_>) -> RuleResult {
    let mut probe = Probe::new(make()?);
    let answers = probe.trajectory(0, LONG_ROLLOUT_CALLS)?;
    let Some(limit_steps) = probe.spec().time_limit_steps else { return Ok(()) };

    let mut length_steps = 0;
    let mut terminated_at_limit = Vec::new();
    for answer in answers {
        length_steps = if answer.step.is_some() { length_steps + 1 } else { 0 };
        if length_steps == limit_steps {
            terminated_at_limit.extend(answer.step.map(|step| step.terminated));
        }
    }
    // A single one may be a coincidence.
    if terminated_at_limit.len() >= 2 && terminated_at_limit.iter().all(|terminated| *terminated) {
        return Err(ConformanceError::TimeLimitTerminates { episodes: terminated_at_limit.len(), limit_steps });
    }
    Ok(())
}

pub(super) fn same_seed_gives_same_trajectory(make: &Make<'_>) -> RuleResult {
    let seed = 1;
    let mut probe = Probe::new(make()?);
    let reference = probe.trajectory(seed, TRAJECTORY_CALLS)?;
    // By now the instance is inside an episode, with its generator and its time limit partly used: a reset has to undo it all.
    let again = probe.trajectory(seed, TRAJECTORY_CALLS)?;
    let other = Probe::new(make()?).trajectory(seed, TRAJECTORY_CALLS)?;
    for (situation, trajectory) in [("in another instance", other), ("when the same instance was seeded again", again)] {
        if let Some(call) = first_difference(&reference, &trajectory) {
            return Err(ConformanceError::NotDeterministic { seed, situation, call });
        }
    }
    Ok(())
}

pub(super) fn different_seeds_differ(make: &Make<'_>) -> RuleResult {
    let mut probe = Probe::new(make()?);
    let reference = probe.trajectory(0, SEED_CALLS)?;
    for seed in 1..SEEDS {
        if probe.trajectory(seed, SEED_CALLS)? != reference {
            return Ok(());
        }
    }
    Err(ConformanceError::SeedIgnored { last: SEEDS - 1 })
}

pub(super) fn unseeded_reset_continues_the_generator(make: &Make<'_>) -> RuleResult {
    let seed = 2;
    let mut probe = Probe::new(make()?);
    let first = episode_start(&mut probe, Some(seed))?;
    // Some environments start several episodes alike by chance, but not all of them.
    for _ in 0..SEEDS {
        if episode_start(&mut probe, None)? != first {
            return Ok(());
        }
    }
    Err(ConformanceError::ResetRestartsGenerator { seed })
}

/// The first answers of an episode, up to its end.
fn episode_start(probe: &mut Probe, seed: Option<u64>) -> Result<Vec<Answer>, ConformanceError> {
    let mut actions = RandomActions::new(&probe.spec().action, 0);
    let mut answers = vec![probe.reset(seed)?];
    while answers.len() < SEED_CALLS && !ended(answers.last()) {
        answers.push(probe.step(&actions.next())?);
    }
    Ok(answers)
}

fn ended(answer: Option<&Answer>) -> bool {
    answer.and_then(|answer| answer.step).is_some_and(|step| step.ended())
}

pub(super) fn step_after_end_is_refused(make: &Make<'_>) -> RuleResult {
    let mut probe = Probe::new(make()?);
    let mut actions = RandomActions::new(&probe.spec().action, 0);
    probe.reset(Some(0))?;
    while probe.elapsed_steps() < probe.spec().time_limit_steps.unwrap_or(ENDLESS_STEPS) {
        if ended(Some(&probe.step(&actions.next())?)) {
            return match probe.attempt(&actions.next()) {
                Err(EnvironmentError::NeedsReset { .. }) => Ok(()),
                Err(source) => Err(wrong_refusal("a step after the end of an episode".to_owned(), "NeedsReset", source)),
                Ok(_) => Err(ConformanceError::SteppedAfterEnd { step: probe.elapsed_steps() }),
            };
        }
    }
    Ok(())
}

/// One refused action before each step, in turn; each step then has to be that of a run without them.
pub(super) fn invalid_actions_are_refused(make: &Make<'_>) -> RuleResult {
    let seed = 4;
    let reference = Probe::new(make()?).trajectory(seed, SEED_CALLS)?;

    let mut probe = Probe::new(make()?);
    let mut actions = RandomActions::new(&probe.spec().action, 0);
    let mut answer = probe.reset(Some(seed))?;
    let invalid = invalid_actions(&probe.spec().action);
    for ((call, expected), action) in reference.iter().enumerate().skip(1).zip(invalid.iter().cycle()) {
        // After the end of an episode the other refusal would be just as right.
        if !ended(Some(&answer)) {
            match probe.attempt(action) {
                Err(EnvironmentError::InvalidAction { .. }) => {}
                Err(source) => return Err(wrong_refusal(format!("the action {}", action.as_action()), "InvalidAction", source)),
                Ok(_) => return Err(ConformanceError::AcceptedInvalidAction { action: action.as_action().to_string() }),
            }
        }
        answer = probe.advance(&mut actions)?;
        if answer != *expected {
            return Err(ConformanceError::RefusalChangesEpisode { call });
        }
    }
    Ok(())
}

fn invalid_actions(space: &ActionSpace) -> Vec<ProbeAction> {
    match space {
        ActionSpace::Discrete { n } => {
            vec![ProbeAction::Discrete(*n), ProbeAction::Discrete(usize::MAX), ProbeAction::Continuous(vec![0.0])]
        }
        ActionSpace::Box { low, .. } => {
            let with_last = |value| ProbeAction::Continuous([&low[1..], &[value]].concat());
            vec![
                with_last(f32::NAN),
                with_last(f32::INFINITY),
                ProbeAction::Continuous(low[1..].to_vec()),
                ProbeAction::Continuous([low.as_slice(), &[0.0]].concat()),
                ProbeAction::Discrete(0),
            ]
        }
    }
}

pub(super) fn actions_outside_the_bounds_are_taken(make: &Make<'_>) -> RuleResult {
    let mut probe = Probe::new(make()?);
    let ActionSpace::Box { low, high } = probe.spec().action.clone() else { return Ok(()) };
    let outside = [low.iter().map(|bound| bound - 1.0).collect(), high.iter().map(|bound| bound + 1.0).collect()];
    for action in outside.map(ProbeAction::Continuous) {
        probe.reset(Some(0))?;
        match probe.step(&action) {
            Err(ConformanceError::Environment { source: source @ EnvironmentError::InvalidAction { .. }, .. }) => {
                return Err(ConformanceError::RefusedActionOutsideBounds { action: action.as_action().to_string(), source });
            }
            other => drop(other?),
        }
    }
    Ok(())
}

fn valid_action(probe: &Probe) -> ProbeAction {
    RandomActions::new(&probe.spec().action, 0).next()
}

fn wrong_refusal(situation: String, expected: &'static str, source: EnvironmentError) -> ConformanceError {
    ConformanceError::WrongRefusal { situation, expected, source }
}

fn first_difference(left: &[Answer], right: &[Answer]) -> Option<usize> {
    left.iter().zip(right).position(|(left, right)| left != right)
}
