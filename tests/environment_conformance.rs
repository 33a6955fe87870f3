//! Every environment of the registry keeps the rules, and every rule catches an environment that breaks it.

use std::cell::Cell;

use shoal::environments::conformance::{ConformanceError, check};
use shoal::environments::{
    Action, ActionSpace, Environment, EnvironmentError, EnvironmentSpec, ObservationSpace, Step, delayed, make, names,
};
use shoal::values::{Value, ValuesMut};

#[test]
fn every_registered_environment_conforms() -> Result<(), ConformanceError> {
    names().try_for_each(|name| check(|| make(name)))
}

#[test]
fn a_delayed_environment_conforms() -> Result<(), ConformanceError> {
    check(|| Ok(delayed(make("CartPole-v1")?, 1)))
}

/// A way to break the rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    BoundsTooFew,
    BoundsSwapped,
    ActionBoundsInfinite,
    ActionBoundsTooFarApart,
    TimeLimitZero,
    SpecChanges,
    StepsBeforeReset,
    WrongErrorBeforeReset,
    StepsAfterEnd,
    ForgetsLastValue,
    ObservationOutOfBounds,
    InfiniteObservation,
    InfiniteReward,
    RewardBeyondFloats,
    NoTimeLimit,
    TimeLimitTerminates,
    TimeLimitTerminatesToo,
    HiddenRandomness,
    OnlyFirstSeedCounts,
    IgnoresSeed,
    ResetRestartsGenerator,
    TakesInvalidActions,
    RefusesAfterStepping,
    RefusesActionsOutsideBounds,
    FailsToReset,
}

/// A registered environment with one fault.
struct Broken {
    inner: Box<dyn Environment>,
    spec: EnvironmentSpec,
    fault: Fault,
    instance: u64,
    first_seed: Option<u64>,
    last_seed: Option<u64>,
    started: bool,
    calls: u64,
}

impl Broken {
    fn new(id: &str, fault: Fault, instance: u64) -> Result<Self, EnvironmentError> {
        let inner = make(id)?;
        let mut spec = inner.spec().clone();
        match (fault, &mut spec.action) {
            (Fault::BoundsTooFew, _) => drop(spec.observation.low.pop()),
            (Fault::BoundsSwapped, _) => std::mem::swap(&mut spec.observation.low, &mut spec.observation.high),
            (Fault::ActionBoundsInfinite, ActionSpace::Box { high, .. }) => high[0] = f32::INFINITY,
            (Fault::ActionBoundsTooFarApart, ActionSpace::Box { low, high }) => (low[0], high[0]) = (-f32::MAX, f32::MAX),
            (Fault::InfiniteObservation, _) => spec.observation = ObservationSpace::unbounded(spec.observation.len()),
            (Fault::TimeLimitZero, _) => spec.time_limit_steps = Some(0),
            (Fault::SpecChanges, _) => spec.id = format!("{id}-{instance}"),
            _ => {}
        }
        Ok(Self { inner, spec, fault, instance, first_seed: None, last_seed: None, started: false, calls: 0 })
    }

    fn needs_reset(&self) -> EnvironmentError {
        EnvironmentError::NeedsReset { id: self.spec.id.clone(), when: "in a test" }
    }

    /// Spoil what a call wrote.
    fn spoil(&self, observation: &mut [f32]) {
        let last = observation.len() - 1;
        match self.fault {
            Fault::ForgetsLastValue => observation[last] = f32::NAN,
            Fault::ObservationOutOfBounds => observation[0] += 100.0,
            Fault::InfiniteObservation => observation[1] = f32::INFINITY,
            Fault::HiddenRandomness if self.calls > 50 => observation[0] *= 1.0 - 1e-3 * self.instance as f32,
            _ => {}
        }
    }

    /// The action that reaches the inner environment, if the fault changes it.
    fn repair(&self, action: Action<'_>) -> Option<Action<'static>> {
        if self.spec.action.accepts(action) {
            return None;
        }
        Some(match &self.spec.action {
            ActionSpace::Discrete { .. } => Action::Discrete(0),
            ActionSpace::Box { .. } => Action::Continuous(&[0.0]),
        })
    }
}

impl Environment for Broken {
    fn spec(&self) -> &EnvironmentSpec {
        &self.spec
    }

    fn reset(&mut self, seed: Option<u64>, mut observation: ValuesMut<'_>) -> Result<(), EnvironmentError> {
        self.calls += 1;
        self.first_seed = self.first_seed.or(seed);
        self.last_seed = seed.or(self.last_seed);
        let seed = match self.fault {
            Fault::FailsToReset => return Err(self.needs_reset()),
            Fault::IgnoresSeed => seed.map(|_| 0),
            Fault::OnlyFirstSeedCounts if self.started => None,
            Fault::ResetRestartsGenerator => self.last_seed,
            _ => seed,
        };
        self.started = true;
        self.inner.reset(seed, observation.reborrow())?;
        self.spoil(f32::of(observation));
        Ok(())
    }

    fn step(&mut self, action: Action<'_>, mut observation: ValuesMut<'_>) -> Result<Step, EnvironmentError> {
        self.calls += 1;
        if !self.started {
            match self.fault {
                Fault::StepsBeforeReset => return Ok(Step { reward: 0.0, terminated: false, truncated: false }),
                Fault::WrongErrorBeforeReset => return Err(self.spec.invalid_action(action)),
                _ => {}
            }
        }
        let repaired = self.repair(action);
        match (self.fault, action) {
            (Fault::RefusesAfterStepping, _) if let Some(repaired) = repaired => {
                self.inner.step(repaired, observation.reborrow())?;
                return Err(self.spec.invalid_action(action));
            }
            (Fault::RefusesActionsOutsideBounds, Action::Continuous(&[value])) if value.abs() > 2.5 => {
                return Err(self.spec.invalid_action(action));
            }
            _ => {}
        }
        let action = if self.fault == Fault::TakesInvalidActions { repaired.unwrap_or(action) } else { action };
        let result = self.inner.step(action, observation.reborrow());
        let mut step = match result {
            Err(EnvironmentError::NeedsReset { .. }) if self.fault == Fault::StepsAfterEnd && self.started => {
                self.inner.reset(None, observation.reborrow())?;
                self.inner.step(action, observation.reborrow())?
            }
            other => other?,
        };
        match self.fault {
            Fault::InfiniteReward => step.reward = f64::NEG_INFINITY,
            Fault::RewardBeyondFloats => step.reward = 1e39,
            Fault::NoTimeLimit if step.truncated => {
                self.inner.reset(None, observation.reborrow())?;
                step.truncated = false;
            }
            Fault::TimeLimitTerminates => (step.terminated, step.truncated) = (step.ended(), false),
            Fault::TimeLimitTerminatesToo => step.terminated = step.ended(),
            _ => {}
        }
        self.spoil(f32::of(observation));
        Ok(step)
    }
}

/// The error of the suite for `id` with `fault`.
fn broken_rule(id: &str, fault: Fault) -> ConformanceError {
    let instances = Cell::new(0);
    let make = || -> Result<Box<dyn Environment>, EnvironmentError> {
        instances.set(instances.get() + 1);
        Ok(Box::new(Broken::new(id, fault, instances.get())?))
    };
    match check(make) {
        Err(error) => error,
        Ok(()) => panic!("`{id}` with {fault:?} passed"),
    }
}

macro_rules! assert_breaks {
    ($id:literal, $fault:ident, $($rule:tt)+) => {{
        let error = broken_rule($id, Fault::$fault);
        assert!(matches!(error, ConformanceError::$($rule)+), "{error:?}");
    }};
}

#[test]
fn an_inconsistent_spec_is_caught() {
    assert_breaks!("CartPole-v1", BoundsTooFew, InconsistentSpec { .. });
    assert_breaks!("Pendulum-v1", BoundsSwapped, InconsistentSpec { .. });
    assert_breaks!("Pendulum-v1", ActionBoundsInfinite, InconsistentSpec { .. });
    assert_breaks!("Pendulum-v1", ActionBoundsTooFarApart, InconsistentSpec { .. });
    assert_breaks!("CartPole-v1", TimeLimitZero, InconsistentSpec { .. });
    assert_breaks!("CartPole-v1", SpecChanges, SpecChanges);
}

#[test]
fn steps_outside_an_episode_are_caught() {
    assert_breaks!("CartPole-v1", StepsBeforeReset, SteppedBeforeReset);
    assert_breaks!("CartPole-v1", WrongErrorBeforeReset, WrongRefusal { expected: "NeedsReset", .. });
    assert_breaks!("CartPole-v1", StepsAfterEnd, SteppedAfterEnd { .. });
    assert_breaks!("Pendulum-v1", StepsAfterEnd, SteppedAfterEnd { step: 200 });
}

#[test]
fn wrong_outputs_are_caught() {
    assert_breaks!("Acrobot-v1", ForgetsLastValue, ObservationNotWritten { index: 5, step: 0 });
    assert_breaks!("CartPole-v1", ObservationOutOfBounds, ObservationOutOfBounds { index: 0, step: 0, .. });
    assert_breaks!("CartPole-v1", InfiniteObservation, ObservationNotFinite { index: 1, step: 0, .. });
    assert_breaks!("Pendulum-v1", InfiniteReward, RewardNotFinite { step: 1, .. });
    assert_breaks!("Pendulum-v1", RewardBeyondFloats, RewardNotFinite { step: 1, .. });
}

#[test]
fn a_time_limit_that_is_missing_or_a_termination_is_caught() {
    assert_breaks!("Pendulum-v1", NoTimeLimit, TimeLimitDoesNotTruncate { step: 200, terminated: false });
    assert_breaks!("MountainCar-v0", TimeLimitTerminates, TimeLimitDoesNotTruncate { step: 200, terminated: true });
    assert_breaks!("MountainCar-v0", TimeLimitTerminatesToo, TimeLimitTerminates { limit_steps: 200, .. });
}

#[test]
fn randomness_that_the_seed_does_not_rule_is_caught() {
    assert_breaks!("CartPole-v1", HiddenRandomness, NotDeterministic { situation: "in another instance", .. });
    assert_breaks!("CartPole-v1", OnlyFirstSeedCounts, NotDeterministic { situation: "when the same instance was seeded again", .. });
    assert_breaks!("CartPole-v1", IgnoresSeed, SeedIgnored { .. });
    assert_breaks!("MountainCar-v0", ResetRestartsGenerator, ResetRestartsGenerator { .. });
}

#[test]
fn invalid_actions_that_are_taken_or_leave_a_trace_are_caught() {
    assert_breaks!("CartPole-v1", TakesInvalidActions, AcceptedInvalidAction { .. });
    assert_breaks!("Pendulum-v1", TakesInvalidActions, AcceptedInvalidAction { .. });
    assert_breaks!("Pendulum-v1", RefusesAfterStepping, RefusalChangesEpisode { .. });
}

#[test]
fn refusing_an_action_outside_the_bounds_is_caught() {
    assert_breaks!("Pendulum-v1", RefusesActionsOutsideBounds, RefusedActionOutsideBounds { .. });
}

#[test]
fn a_failing_environment_is_reported_with_what_was_attempted() {
    assert_breaks!("CartPole-v1", FailsToReset, Environment { during: "a reset", .. });
}

/// An environment that never writes the last byte of its observations.
struct ForgetsLastByte(Box<dyn Environment>);

impl Environment for ForgetsLastByte {
    fn spec(&self) -> &EnvironmentSpec {
        self.0.spec()
    }

    fn reset(&mut self, seed: Option<u64>, mut observation: ValuesMut<'_>) -> Result<(), EnvironmentError> {
        let before = u8::of(observation.reborrow()).last().copied();
        self.0.reset(seed, observation.reborrow())?;
        u8::of(observation).last_mut().zip(before).into_iter().for_each(|(last, before)| *last = before);
        Ok(())
    }

    fn step(&mut self, action: Action<'_>, observation: ValuesMut<'_>) -> Result<Step, EnvironmentError> {
        self.0.step(action, observation)
    }
}

#[test]
fn a_byte_that_is_not_written_is_caught() {
    let error = check(|| Ok(Box::new(ForgetsLastByte(make("Catch-v0")?)))).expect_err("its last byte was never written");
    assert!(matches!(error, ConformanceError::NotDeterministic { call: 0, .. }), "{error:?}");
}
