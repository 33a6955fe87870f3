//! Environments stepped together do what each of them does alone, and a batch is taken as a whole or not at all.

use std::time::{Duration, Instant};

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;
use shoal::environments::{
    Action, ActionSpace, Actions, Environment, EnvironmentError, EnvironmentSpec, FinishedEpisode, Outcome, Step, VectorEnvironment,
    delayed, derive_seed, make, names,
};
use shoal::values::ValuesMut;

fn vector(id: &str, count: usize) -> Result<VectorEnvironment, EnvironmentError> {
    VectorEnvironment::new((0..count).map(|_| make(id)).collect::<Result<_, _>>()?)
}

/// A batch of random actions, of the kind that the space takes.
enum Batch {
    Discrete(Vec<i32>),
    Continuous(Vec<f32>),
}

impl Batch {
    fn random(space: &ActionSpace, count: usize, random: &mut Pcg64) -> Self {
        match space {
            ActionSpace::Discrete { n } => Self::Discrete((0..count).map(|_| random.random_range(0..*n as i32)).collect()),
            ActionSpace::Box { low, .. } => Self::Continuous((0..count * low.len()).map(|_| random.random_range(-3.0..3.0)).collect()),
        }
    }

    fn all(&self) -> Actions<'_> {
        match self {
            Self::Discrete(indices) => Actions::Discrete(indices),
            Self::Continuous(values) => Actions::Continuous(values),
        }
    }

    fn one(&self, index: usize, count: usize) -> Action<'_> {
        match self {
            Self::Discrete(indices) => Action::Discrete(indices[index] as usize),
            Self::Continuous(values) => {
                let len = values.len() / count;
                Action::Continuous(&values[index * len..][..len])
            }
        }
    }
}

/// An environment stepped by hand, with its own bookkeeping.
struct Alone {
    environment: Box<dyn Environment>,
    episode_return: f64,
    length_steps: u32,
}

#[test]
fn a_vector_equals_its_environments_stepped_alone() -> Result<(), EnvironmentError> {
    const COUNT: usize = 5;
    // Two of those on libmujoco, which differ only in their tasks: one whose episodes terminate, and one whose episodes are cut off.
    let simulated = ["mujoco:Hopper-v5", "mujoco:HalfCheetah-v5"];
    for id in names().filter(|id| !id.starts_with("mujoco:") || simulated.contains(id)) {
        let mut together = vector(id, COUNT)?;
        let width = together.spec().observation.len();
        let mut random = Pcg64::seed_from_u64(0);
        let mut observation = together.spec().observation.zeros();
        let mut finished_episodes = 0;

        together.reset(9)?;
        let mut alone = Vec::new();
        for index in 0..COUNT {
            let mut environment = make(id)?;
            environment.reset(Some(derive_seed(9, index as u32)), observation.values_mut())?;
            assert_eq!(together.observations().row(index, width), observation.values());
            alone.push(Alone { environment, episode_return: 0.0, length_steps: 0 });
        }
        for _ in 0..2_100 {
            let batch = Batch::random(&together.spec().action, COUNT, &mut random);
            together.step(batch.all())?;
            let mut finished = Vec::new();
            for (index, alone) in alone.iter_mut().enumerate() {
                let step = alone.environment.step(batch.one(index, COUNT), observation.values_mut())?;
                assert_eq!(together.next_observations().row(index, width), observation.values());
                assert_eq!(together.rewards()[index], step.reward as f32);
                assert_eq!((together.terminated()[index], together.truncated()[index]), (step.terminated, step.truncated));
                alone.episode_return += step.reward;
                alone.length_steps += 1;
                if step.ended() {
                    let (episode_return, length_steps) = (alone.episode_return, alone.length_steps);
                    finished.push(FinishedEpisode { environment: index, episode_return, length_steps, is_cut_off: false });
                    (alone.episode_return, alone.length_steps) = (0.0, 0);
                    alone.environment.reset(None, observation.values_mut())?;
                }
                assert_eq!(together.observations().row(index, width), observation.values(), "what to act on next, `{id}`");
            }
            assert_eq!(together.finished_episodes(), finished);
            finished_episodes += finished.len();
        }
        assert!(finished_episodes >= 2 * COUNT, "`{id}` finished only {finished_episodes} episodes");
    }
    Ok(())
}

#[test]
fn an_environment_without_an_episode_to_play_stands_still_until_the_next_reset_and_changes_nothing_for_others()
-> Result<(), EnvironmentError> {
    let mut all = vector("CartPole-v1", 3)?;
    let mut some = vector("CartPole-v1", 3)?;
    let width = all.spec().observation.len();
    for round in 0..2 {
        all.reset(round)?;
        some.reset(round)?;
        assert_eq!(some.observations(), all.observations(), "a reset brings it back");
        some.limit_episodes(1, 0);
        let first: Vec<f32> = some.observations().row(1, width).as_f32().unwrap().to_vec();
        let mut stepped = 0;
        for step in 0..100 {
            all.step(Actions::Discrete(&[step % 2; 3]))?;
            some.step_each(Actions::Discrete(&[step % 2; 3]), || stepped += 1, || ())?;
            for index in [0, 2] {
                assert_eq!(some.observations().row(index, width), all.observations().row(index, width));
            }
            assert_eq!(some.observations().row(1, width).as_f32(), Some(&*first));
            assert!(some.finished_episodes().iter().all(|episode| episode.environment != 1));
        }
        assert_eq!(stepped, 2 * 100);
    }
    Ok(())
}

#[test]
fn an_environment_plays_as_many_episodes_as_it_may_and_is_not_reset_after_the_last() -> Result<(), EnvironmentError> {
    let mut environments = vector("CartPole-v1", 3)?;
    let width = environments.spec().observation.len();
    environments.reset(4)?;
    environments.limit_episodes(1, 2);
    let (mut played, mut resets) = ([0_usize; 3], 0_usize);
    let mut last = Vec::new();
    for _ in 0..100 {
        environments.step_each(Actions::Discrete(&[0; 3]), || (), || resets += 1)?;
        for episode in environments.finished_episodes() {
            played[episode.environment] += 1;
            if episode.environment == 1 {
                last = environments.next_observations().row(1, width).as_f32().unwrap().to_vec();
            }
        }
    }
    assert!(played[0] > 2 && played[1] == 2 && played[2] > 2, "{played:?}");
    assert_eq!(resets, played.iter().sum::<usize>() - 1);
    assert_eq!(environments.observations().row(1, width).as_f32(), Some(&*last), "what it last observed");
    Ok(())
}

#[test]
fn environments_of_one_vector_and_of_neighbouring_seeds_start_apart() -> Result<(), EnvironmentError> {
    let mut starts = Vec::new();
    for seed in 0..4 {
        let mut environments = vector("CartPole-v1", 16)?;
        environments.reset(seed)?;
        starts.extend(environments.observations().bytes().chunks_exact(16).map(<[u8]>::to_vec));
    }
    starts.sort();
    starts.dedup();
    assert_eq!(starts.len(), 4 * 16);
    Ok(())
}

#[test]
fn a_reset_forgets_the_episodes_before_it() -> Result<(), EnvironmentError> {
    let mut environments = vector("Pendulum-v1", 2)?;
    environments.reset(0)?;
    for _ in 0..150 {
        environments.step(Actions::Continuous(&[0.0, 0.0]))?;
    }
    environments.reset(0)?;
    for step in 1..=200 {
        environments.step(Actions::Continuous(&[0.0, 0.0]))?;
        let lengths: Vec<u32> = environments.finished_episodes().iter().map(|episode| episode.length_steps).collect();
        assert_eq!(lengths, if step == 200 { vec![200, 200] } else { vec![] });
    }
    environments.reset(1)?;
    assert!(environments.finished_episodes().is_empty());
    Ok(())
}

#[test]
fn a_bad_batch_steps_no_environment() -> Result<(), EnvironmentError> {
    let mut environments = vector("CartPole-v1", 3)?;
    let mut untouched = vector("CartPole-v1", 3)?;
    environments.reset(0)?;
    untouched.reset(0)?;

    let refused = |error: Result<(), EnvironmentError>| matches!(error, Err(EnvironmentError::InvalidAction { .. }));
    assert!(refused(environments.step(Actions::Discrete(&[0, 1, 2]))));
    assert!(refused(environments.step(Actions::Discrete(&[0, 1, -1]))));
    assert!(refused(environments.step(Actions::Continuous(&[0.0, 0.0, 0.0]))));
    assert!(matches!(environments.step(Actions::Discrete(&[0, 1])), Err(EnvironmentError::ActionCount { given: 2, expected: 3, .. })));

    environments.step(Actions::Discrete(&[0, 1, 0]))?;
    untouched.step(Actions::Discrete(&[0, 1, 0]))?;
    assert_eq!(environments.observations(), untouched.observations());

    let mut pendulums = vector("Pendulum-v1", 2)?;
    pendulums.reset(0)?;
    let before = pendulums.observations().bytes().to_vec();
    assert!(refused(pendulums.step(Actions::Continuous(&[0.0, f32::NAN]))));
    assert!(refused(pendulums.step(Actions::Discrete(&[0, 0]))));
    assert_eq!(pendulums.observations().bytes(), before);
    Ok(())
}

#[test]
fn a_vector_that_cannot_be_stepped_says_so() -> Result<(), EnvironmentError> {
    assert!(matches!(VectorEnvironment::new(Vec::new()), Err(EnvironmentError::EmptyVector)));
    let mixed = VectorEnvironment::new(vec![make("CartPole-v1")?, make("CartPole-v1")?, make("Acrobot-v1")?]);
    assert!(matches!(mixed, Err(EnvironmentError::MixedVector { index: 2, .. })));
    assert!(matches!(vector("CartPole-v1", 1)?.step(Actions::Discrete(&[0])), Err(EnvironmentError::NeedsReset { .. })));
    Ok(())
}

#[test]
fn environments_of_one_vector_may_differ_in_all_but_observations_and_actions() -> Result<(), EnvironmentError> {
    fn beside_one_with(change: impl FnOnce(&mut EnvironmentSpec)) -> Result<(), EnvironmentError> {
        let spec = make("Pendulum-v1")?.spec().clone();
        let mut changed = spec.clone();
        change(&mut changed);
        let of_spec = |spec| -> Box<dyn Environment> { Box::new(Faulty { spec, steps: 0, reward: 1.0, observed: 0.0, score: 1.0 }) };
        VectorEnvironment::new([spec, changed].map(of_spec).into()).map(drop)
    }
    beside_one_with(|spec| {
        spec.observation.high[2] = 5.0;
        (spec.time_limit_steps, spec.reward_threshold) = (Some(7), Some(3.0));
    })?;
    let other_bound = ActionSpace::Box { low: vec![-2.0], high: vec![3.0] };
    let refusal = beside_one_with(|spec| spec.action = other_bound).unwrap_err().to_string();
    for part in ["`Pendulum-v1`", "environment 1 has 3 observed values", "clipped to [-2.0] .. [3.0]", "clipped to [-2.0] .. [2.0]"] {
        assert!(refusal.contains(part), "{part}: {refusal}");
    }
    beside_one_with(|spec| spec.observation.shape = vec![1, 3]).unwrap_err();
    Ok(())
}

#[test]
fn a_delay_takes_at_least_its_time_and_changes_nothing_else() -> Result<(), EnvironmentError> {
    let mut plain = make("CartPole-v1")?;
    let mut slow = delayed(make("CartPole-v1")?, 2_000);
    let (mut observation, mut slow_observation) = ([0.0; 4], [0.0; 4]);
    plain.reset(Some(0), (&mut observation).into())?;
    slow.reset(Some(0), (&mut slow_observation).into())?;

    let start = Instant::now();
    for _ in 0..5 {
        let step = plain.step(Action::Discrete(1), (&mut observation).into())?;
        assert_eq!(slow.step(Action::Discrete(1), (&mut slow_observation).into())?, step);
        assert_eq!(slow_observation, observation);
    }
    // Only the lower bound is promised.
    assert!(start.elapsed() >= Duration::from_millis(10));
    Ok(())
}

/// An environment that gives NaN in one of its steps, or a reward that no 32-bit float holds, or NaN for a score after its first step.
struct Faulty {
    spec: EnvironmentSpec,
    steps: u32,
    reward: f64,
    observed: f32,
    score: f64,
}

fn show(observation: &mut ValuesMut<'_>, value: f32) {
    let ValuesMut::F32(observation) = observation else { panic!("floats are asked for") };
    observation.fill(value);
}

impl Environment for Faulty {
    fn spec(&self) -> &EnvironmentSpec {
        &self.spec
    }

    fn reset(&mut self, _seed: Option<u64>, mut observation: ValuesMut<'_>) -> Result<(), EnvironmentError> {
        show(&mut observation, 0.0);
        Ok(())
    }

    fn step(&mut self, _action: Action<'_>, mut observation: ValuesMut<'_>) -> Result<Step, EnvironmentError> {
        self.steps += 1;
        let is_faulty = self.steps == 3;
        show(&mut observation, if is_faulty { self.observed } else { 0.0 });
        Ok(Step { reward: if is_faulty { self.reward } else { 1.0 }, terminated: self.steps == 1, truncated: false })
    }

    fn outcome(&self) -> Outcome {
        Outcome::Finished { score: self.score, length_steps: 1 }
    }
}

#[test]
fn numbers_that_are_not_finite_are_refused_whoever_made_the_environment() {
    let spec = make("CartPole-v1").unwrap().spec().clone();
    let until_refused = |reward: f64, observed: f32, score: f64| {
        let faulty: Box<dyn Environment> = Box::new(Faulty { spec: spec.clone(), steps: 0, reward, observed, score });
        let mut vector = VectorEnvironment::new(vec![faulty]).unwrap();
        vector.reset(1).unwrap();
        (0..4).find_map(|_| vector.step(Actions::Discrete(&[0])).err()).map(|error| error.to_string())
    };
    assert_eq!(until_refused(1.0, 5.0, 1.0), None);
    for (reward, observed, score, said) in [
        (f64::NAN, 0.0, 1.0, "reward = NaN in step 2"),
        (1e300, 0.0, 1.0, "reward = 1e300"),
        (0.0, f32::INFINITY, 1.0, "observation[0] = inf in step 2"),
        (0.0, 0.0, f64::NAN, "`CartPole-v1` gave score = NaN in step 1"),
    ] {
        let refusal = until_refused(reward, observed, score).expect("a refusal");
        assert!(refusal.contains(said), "{refusal}");
    }
}
