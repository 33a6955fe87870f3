//! The evaluator: plays the newest parameters greedily with seeds of its own, and keeps the best. Training never waits
//! for it.

use std::time::{Duration, Instant};

use ipc_channel::ipc::IpcSender;
use serde::{Deserialize, Serialize};

use super::run::{RoleError, Run};
use crate::algorithms::{ActionBatch, Policy, Random};
use crate::checkpoint::{self, Keeper, Unsaved, WeightsMetadata};
use crate::environments::{VectorEnvironment, derive_seed};
use crate::segment::processes::{Phase, ProcessSlot, Role, SlotState};
use crate::segment::system;
use rand::SeedableRng;

/// Episodes stepped together.
pub const MOST_ENVIRONMENTS: usize = 32;
/// How long the evaluator waits for the learners' last parameters.
const LAST_PARAMETERS_PATIENCE: Duration = Duration::from_secs(2);
/// How long an evaluator that leaves waits for room on the disk.
const LAST_SAVE_PATIENCE: Duration = Duration::from_secs(2);

/// What the evaluator tells the supervisor, over a channel of its own.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EvaluationReport {
    /// Version of the parameters on the board.
    pub version: u64,
    /// Updates in them.
    pub updates: u64,
    /// Environment steps of the run when they were published.
    pub env_steps: u64,
    /// Return of each episode.
    pub returns: Vec<f64>,
    /// Length of each episode, in steps.
    pub lengths: Vec<u64>,
    /// Whether it is the best so far, and has been saved as such.
    pub is_best: bool,
    /// Why saving it must wait, if it must.
    pub unsaved: Option<Unsaved>,
}

impl EvaluationReport {
    /// Mean return.
    pub fn mean(&self) -> f64 {
        mean(&self.returns)
    }
}

#[expect(clippy::cast_precision_loss, reason = "counts of episodes are small")]
fn mean(returns: &[f64]) -> f64 {
    returns.iter().sum::<f64>() / returns.len().max(1) as f64
}

/// Outcome of `episodes` episodes.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Episodes {
    /// Undiscounted return of each.
    pub returns: Vec<f64>,
    /// Length of each, in steps.
    pub lengths: Vec<u64>,
}

/// Play `episodes` episodes greedily in `environments`, which are reset first; `go_on` is asked before every step and may
/// end it early with fewer episodes.
///
/// Episodes are dealt out to environments beforehand, so that long episodes count as often as short ones.
pub fn play(
    environments: &mut VectorEnvironment,
    policy: &mut dyn Policy,
    episodes: usize,
    seed: u64,
    mut go_on: impl FnMut() -> bool,
) -> Result<Episodes, RoleError> {
    let count = environments.len();
    environments.reset(seed)?;
    let mut left: Vec<usize> = (0..count).map(|index| episodes / count + usize::from(index < episodes % count)).collect();
    let mut outputs = vec![0.0; count * policy.outputs()];
    let mut actions = ActionBatch::new(&environments.spec().action, count);
    let mut random = Random::seed_from_u64(seed);
    let mut played = Episodes::default();
    while left.iter().any(|&left| left > 0) && go_on() {
        policy.infer(environments.observations(), count, &mut outputs);
        for (index, outputs) in outputs.chunks_exact(policy.outputs()).enumerate() {
            policy.choose(outputs, 0.0, &mut random, actions.row_mut(index));
        }
        environments.step(actions.for_environments())?;
        for episode in environments.finished_episodes() {
            if left[episode.environment] > 0 {
                left[episode.environment] -= 1;
                played.returns.push(episode.episode_return);
                played.lengths.push(u64::from(episode.length_steps));
            }
        }
    }
    Ok(played)
}

/// An evaluator between two evaluations.
pub struct Evaluator<'a> {
    run: &'a Run<'a>,
    /// The same for every evaluation: some take seconds to make.
    environments: VectorEnvironment,
    policy: Box<dyn Policy>,
    parameters: Vec<f32>,
    evaluated_version: u64,
    evaluations: u32,
    best: f64,
    keeper: Keeper,
}

impl<'a> Evaluator<'a> {
    /// Set up. The best policy goes to `best_path`; one that is there already (after a restart) has to be beaten.
    pub fn new(run: &'a Run<'a>, best_path: std::path::PathBuf, best: f64) -> Result<Self, RoleError> {
        Ok(Self {
            environments: run.environments(run.config.evaluator.episodes.min(MOST_ENVIRONMENTS))?,
            policy: run.algorithm.policy()?,
            parameters: vec![0.0; run.segment.parameter_board().len()],
            evaluated_version: 0,
            evaluations: 0,
            best,
            keeper: Keeper::new(best_path),
            run,
        })
    }

    /// Evaluate the newest parameters, if there are any that were not evaluated yet. `go_on` as in [`play`]: an
    /// evaluation that was cut short is not reported.
    pub fn evaluate(&mut self, go_on: impl FnMut() -> bool) -> Result<Option<EvaluationReport>, RoleError> {
        self.keeper.retry()?;
        let board = self.run.segment.parameter_board();
        if board.version() == self.evaluated_version {
            return Ok(None);
        }
        let Some((version, [updates, env_steps, ..])) = board.read(&mut self.parameters) else { return Ok(None) };
        self.run.process.enter(Phase::Evaluate);
        self.run.process.set_parameter_updates(updates);
        self.policy.set_parameters(&self.parameters);
        let episodes = self.run.config.evaluator.episodes;
        let seed = derive_seed(self.run.seed(), self.evaluations);
        let played = play(&mut self.environments, &mut *self.policy, episodes, seed, go_on)?;
        if played.returns.len() < episodes {
            return Ok(None);
        }
        self.evaluated_version = version;
        self.evaluations += 1;
        let mean = mean(&played.returns);
        let (is_best, mut unsaved) = (mean > self.best, None);
        if is_best {
            self.best = mean;
            let metadata = WeightsMetadata {
                algorithm: self.run.algorithm.name().into(),
                environment: self.run.environment.id.clone(),
                parameter_version: version,
                environment_steps: env_steps,
                updates,
                evaluation_return: Some(mean),
                ..WeightsMetadata::default()
            };
            unsaved = self.keeper.save(checkpoint::Policy::new(self.run.algorithm.network().clone(), &self.parameters, metadata))?;
        }
        Ok(Some(EvaluationReport { version, updates, env_steps, returns: played.returns, lengths: played.lengths, is_best, unsaved }))
    }

    /// Before it leaves: give what could not be saved a last chance. The supervisor finds out whether it was.
    pub fn leave(&mut self) -> Result<(), RoleError> {
        self.keeper.insist(LAST_SAVE_PATIENCE)?;
        Ok(())
    }
}

/// Evaluate until the run ends, and the last parameters once more after that.
pub fn run(run: &Run<'_>, best_path: std::path::PathBuf, best: f64, reports: &IpcSender<EvaluationReport>) -> Result<(), RoleError> {
    let mut evaluator = Evaluator::new(run, best_path, best)?;
    let interval = Duration::from_millis(run.config.evaluator.interval_ms);
    let mut next = Instant::now();
    let report = |evaluator: &mut Evaluator<'_>, go_on: &mut dyn FnMut() -> bool| -> Result<(), RoleError> {
        if let Some(report) = evaluator.evaluate(go_on)? {
            reports.send(report).map_err(|error| RoleError::Report { reason: error.to_string() })?;
        }
        Ok(())
    };
    while !run.is_over() {
        if Instant::now() >= next && run.segment.parameter_board().version() != evaluator.evaluated_version {
            next = Instant::now() + interval;
            report(&mut evaluator, &mut || {
                run.process.enter(Phase::Evaluate);
                !run.is_over()
            })?;
        } else {
            evaluator.keeper.retry()?;
            run.process.enter(Phase::Idle);
            std::thread::sleep(Duration::from_millis(5).min(interval.max(Duration::from_millis(1))));
        }
    }
    // The learners publish once more when they leave; what they reached deserves a score too.
    let patience = Instant::now() + LAST_PARAMETERS_PATIENCE;
    while learners_live(run) && Instant::now() < patience && !system::stop_requested() {
        std::thread::sleep(Duration::from_millis(2));
    }
    report(&mut evaluator, &mut || {
        run.process.enter(Phase::Evaluate);
        !system::stop_requested()
    })?;
    evaluator.leave()
}

fn learners_live(run: &Run<'_>) -> bool {
    let is_learner = |slot: &ProcessSlot<'_>| matches!(slot.role(), Some((Role::Learner, _)));
    run.segment.processes().iter().any(|slot| slot.state() == SlotState::Live && is_learner(&slot))
}
