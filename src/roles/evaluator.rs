//! The evaluator: plays the newest parameters with seeds of its own, and keeps the best. Training never waits
//! for it.
//!
//! An evaluation of few episodes, repeated hundreds of times, is lucky sooner or later: the highest of many means says more about
//! chance than about the weights. So a routine evaluation only proposes. What it proposes, because it reached the goal or did better
//! than the best weights, is played again at once: the same weights, other seeds, `evaluator.confirm_episodes`. What these fresh
//! episodes prove decides (`telemetry::proven_return`): the goal is reached when it is proven, and the best weights are those with the
//! highest lower end of the 95 % interval.

use std::path::Path;
use std::time::{Duration, Instant};

use ipc_channel::ipc::IpcSender;
use rand::SeedableRng;
use serde::{Deserialize, Serialize};

use super::run::{LEAVING_PATIENCE, RoleError, Run};
use super::signs_of_life::SignsOfLife;
use crate::algorithms::{ActionBatch, Algorithm, Policy, Random};
use crate::checkpoint::{self, PolicySaver, PolicySpaces, Unsaved, WeightsError, WeightsEvaluation, WeightsMetadata};
use crate::config::Config;
use crate::environments::{Purpose, VectorEnvironment, derive_seed};
use crate::networks;
use crate::segment::control::RunState;
use crate::segment::processes::{Phase, Role};
use crate::segment::system;
use crate::telemetry::{Attempts, Evaluation, EvaluationKind, ReturnStatistics, RunFolder};

/// How long an evaluator that leaves waits for room on the disk.
const LAST_SAVE_PATIENCE: Duration = Duration::from_secs(2);

/// What the evaluator tells the supervisor, over a channel of its own.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EvaluationReport {
    /// What it found. If it made the parameters the best so far, they have been saved. The supervisor adds the time of the run.
    pub evaluation: Evaluation,
    /// Why saving the parameters must wait, if it must.
    pub unsaved: Option<Unsaved>,
}

/// The best weights of a run, which go to `path`; `None` if there are none, or none that could be played. Weights that the disk does
/// not give, or that another version of the program reads, are an error: taken for none, they would be overwritten.
pub(super) fn best_weights(path: &Path) -> Result<Option<checkpoint::PolicyWeights>, WeightsError> {
    match checkpoint::PolicyWeights::load(path) {
        Ok(policy) => Ok(Some(policy)),
        Err(error @ (WeightsError::Read { .. } | WeightsError::Format { .. })) => Err(error),
        Err(_) => Ok(None),
    }
}

/// What is written of an evaluation beside the weights that were played; `None` without episodes.
pub fn for_weights(kind: EvaluationKind, statistics: &ReturnStatistics) -> Option<WeightsEvaluation> {
    Some(WeightsEvaluation {
        return_mean: statistics.return_mean?,
        return_ci95_low: statistics.ci95_low,
        episodes: statistics.episodes,
        confirmed: kind == EvaluationKind::Confirmation,
    })
}

/// The statistics of an evaluation, as far as weights tell them: [`for_weights`] the other way round.
pub(super) fn statistics_of(evaluation: WeightsEvaluation) -> ReturnStatistics {
    ReturnStatistics::of_interval(evaluation.episodes, evaluation.return_mean, evaluation.return_ci95_low)
}

/// Outcome of the episodes that were played, in the order in which they were dealt out to environments, however long they were: first
/// the first of each environment, then the second of each.
#[derive(Debug, Clone, PartialEq)]
pub struct Episodes {
    /// Undiscounted return of each episode.
    pub returns: Vec<f64>,
    /// Length of each episode, in steps.
    pub lengths: Vec<u64>,
    /// How many of them were cut off, and count as far as they came.
    pub cut_off: usize,
}

/// How much a policy of `algorithm` explores where it is evaluated or shown after `env_steps` of its run: as in the first environment of
/// training, unless it acts greedily.
pub fn exploration(config: &Config, algorithm: &dyn Algorithm, env_steps: u64) -> f32 {
    if config.evaluator.greedy { 0.0 } else { algorithm.exploration(0, 1, env_steps) }
}

/// Play `episodes` episodes, greedily with an `exploration` of 0, in `environments`, which are reset first. `go_on` is asked before
/// every step of all environments, and may end the play early with fewer episodes.
///
/// Episodes are dealt out to environments beforehand, so that long episodes count as often as short ones. An environment that has played
/// its share is neither reset nor stepped any more.
///
/// # Errors
/// An environment fails, or gives a number that is not finite.
pub fn play(
    environments: &mut VectorEnvironment,
    policy: &mut dyn Policy,
    episodes: usize,
    seed: u64,
    exploration: f32,
    go_on: impl Fn() -> bool,
) -> Result<Episodes, RoleError> {
    let count = environments.len();
    // Calling `go_on` also gives a sign of life. Its answer is not needed here: it is asked again before the next step.
    let sign_of_life = || {
        go_on();
    };
    environments.reset_each(seed, sign_of_life)?;
    for index in 0..count {
        environments.limit_episodes(index, episodes / count + usize::from(index < episodes % count));
    }
    let mut signs_of_life = SignsOfLife::new();
    let mut outputs = vec![0.0; count * policy.outputs()];
    let mut actions = ActionBatch::new(&environments.spec().action, count);
    // Inverted, because the synchronous trainer derives this seed and its learner's in the same way, and once the two are equal.
    let mut random = Random::seed_from_u64(!seed);
    // With the place of each, and how many each environment has played.
    let (mut played, mut played_in) = (Vec::new(), vec![0; count]);
    while played.len() < episodes && go_on() {
        policy.infer(environments.observations(), count, &mut outputs);
        for (index, outputs) in outputs.chunks_exact(policy.outputs()).enumerate() {
            policy.choose(outputs, exploration, &mut random, actions.row_mut(index));
        }
        let begun = Instant::now();
        signs_of_life.step(environments, actions.for_environments(), sign_of_life)?;
        signs_of_life.took(begun.elapsed());
        for &episode in environments.finished_episodes() {
            let nth = &mut played_in[episode.environment];
            played.push((*nth * count + episode.environment, episode));
            *nth += 1;
        }
    }
    played.sort_unstable_by_key(|&(place, _)| place);
    Ok(Episodes {
        returns: played.iter().map(|(_, episode)| episode.episode_return).collect(),
        lengths: played.iter().map(|(_, episode)| u64::from(episode.length_steps)).collect(),
        cut_off: played.iter().filter(|(_, episode)| episode.is_cut_off).count(),
    })
}

/// An evaluator between two evaluations.
pub struct Evaluator<'a> {
    run: &'a Run<'a>,
    /// Kept from evaluation to evaluation, since some environments take seconds to make.
    environments: VectorEnvironment,
    policy: Box<dyn Policy>,
    parameters: Vec<f32>,
    evaluated_version: u64,
    /// How often episodes were played: no two times have the same seeds.
    times_played: u32,
    /// The confirmation of the best parameters.
    best: Option<WeightsEvaluation>,
    /// Those parameters.
    best_parameters: Vec<f32>,
    attempts: Attempts,
    saver: PolicySaver,
}

impl<'a> Evaluator<'a> {
    /// Set up. The best policy goes to the `folder` of the run, wherever somebody moves that. A policy that is there already was left by
    /// the evaluator that this one replaces, and has to be beaten; `unconfirmed` evaluations of that one reached the goal and were not
    /// confirmed.
    ///
    /// # Errors
    /// The environments cannot be made, or have changed since the run was planned; the network of the policy cannot be built; there are
    /// best weights in `folder` and the system does not let them be read, or another version of the program has saved them.
    pub fn new(run: &'a Run<'a>, folder: RunFolder, unconfirmed: u64) -> Result<Self, RoleError> {
        let best_path = move || folder.current().best_weights();
        let evaluator = &run.config.evaluator;
        let best = best_weights(&best_path())?;
        Ok(Self {
            environments: run.environments(evaluator.episodes.min(evaluator.environments), Purpose::Evaluation)?,
            policy: run.algorithm.policy()?,
            parameters: vec![0.0; run.segment.parameter_board().len()],
            evaluated_version: 0,
            times_played: 0,
            best: best.as_ref().and_then(|best| best.metadata.evaluation),
            best_parameters: best.map(|best| best.published()).unwrap_or_default(),
            attempts: Attempts::after(unconfirmed),
            saver: PolicySaver::new(best_path),
            run,
        })
    }

    /// Evaluate the newest parameters, have fresh episodes confirm what is worth it, and report both. Returns whether the goal of the run
    /// is confirmed. `go_on` as in [`play`]; a confirmation is not cut short by the end of training.
    ///
    /// # Errors
    /// As [`play`]; the best weights cannot be saved and no wait mends it; or the supervisor does not take a report.
    pub fn evaluate(&mut self, reports: &IpcSender<EvaluationReport>, go_on: impl Fn() -> bool) -> Result<bool, RoleError> {
        let send = |report| reports.send(report).map_err(|error| RoleError::Report { reason: error.to_string() });
        self.saver.retry()?;
        let Some(routine) = self.evaluate_newest(go_on)? else { return Ok(false) };
        send(routine.clone())?;
        self.attempts.propose(routine.evaluation.statistics().return_mean, self.run.config.run.stop_eval_return);
        if !self.is_worth_confirming(&routine.evaluation) {
            return Ok(false);
        }
        let Some(confirmation) = self.confirm(routine.evaluation)? else { return Ok(false) };
        let confirmed = confirmation.evaluation.confirms_goal;
        send(confirmation)?;
        Ok(confirmed)
    }

    /// Play the newest parameters, unless they were evaluated already. `None` if they were, or if the evaluation was cut short.
    fn evaluate_newest(&mut self, go_on: impl Fn() -> bool) -> Result<Option<EvaluationReport>, RoleError> {
        let board = self.run.segment.parameter_board();
        if board.version() == self.evaluated_version {
            return Ok(None);
        }
        let Some((version, [updates, env_steps, ..])) = board.read(&mut self.parameters) else { return Ok(None) };
        self.run.process.enter(Phase::Evaluate);
        self.run.process.set_parameter_updates(updates);
        self.policy.set_parameters(&self.parameters);
        let played = self.play(self.run.config.evaluator.episodes, env_steps, go_on)?;
        let Some(Episodes { returns, lengths, cut_off }) = played else { return Ok(None) };
        self.evaluated_version = version;
        let kind = EvaluationKind::Routine;
        let evaluation = Evaluation { version, updates, env_steps, kind, returns, lengths, cut_off, ..Evaluation::default() };
        Ok(Some(EvaluationReport { evaluation, unsaved: None }))
    }

    /// Whether the parameters of a routine evaluation may solve the task or be the best. Few may, so that evaluations stay frequent.
    fn is_worth_confirming(&self, routine: &Evaluation) -> bool {
        let Some(mean) = routine.statistics().return_mean else { return false };
        let may_be_better = !self.are_the_best() && self.best.is_none_or(|best| mean > best.return_mean);
        self.attempts.number().is_some() || may_be_better
    }

    /// Whether the loaded parameters are the best ones already, as they may be when a resumed run begins. Confirming them again and again
    /// would keep the luckiest of their scores.
    fn are_the_best(&self) -> bool {
        self.best.is_some() && self.parameters == self.best_parameters
    }

    /// Play fresh episodes with the parameters of `routine`, which are still loaded, and keep the parameters if they solve the task or are
    /// the best.
    fn confirm(&mut self, routine: Evaluation) -> Result<Option<EvaluationReport>, RoleError> {
        let run = self.run;
        let played = self.play(run.config.evaluator.confirm_episodes, routine.env_steps, || !is_called_off(run))?;
        let Some(Episodes { returns, lengths, cut_off }) = played else { return Ok(None) };
        let kind = EvaluationKind::Confirmation;
        let mut confirmation = Evaluation { kind, returns, lengths, cut_off, ..routine };
        let mut unsaved = None;
        let statistics = confirmation.statistics();
        let goal = run.config.run.stop_eval_return;
        confirmation.confirms_goal = self.attempts.proves_goal(&statistics, goal);
        let best_would_confirm = self.best.is_some_and(|best| self.attempts.proves_goal(&statistics_of(best), goal));
        self.attempts.decide(confirmation.confirms_goal);
        let found = for_weights(kind, &statistics);
        let low = |evaluation: WeightsEvaluation| evaluation.return_ci95_low;
        let are_better = !self.are_the_best() && found.and_then(low) > self.best.and_then(low);
        // The best weights may have a higher lower end of the 95 % interval, and still not prove the goal with the
        // smaller error that a later attempt is granted: then what solved the task is kept instead.
        if are_better || confirmation.confirms_goal && !best_would_confirm {
            let metadata = WeightsMetadata {
                algorithm: run.algorithm.name().into(),
                environment: run.environment.id.clone(),
                parameter_version: confirmation.version,
                environment_steps: confirmation.env_steps,
                updates: confirmation.updates,
                spaces: PolicySpaces::of(run.environment),
                evaluation: found,
                ..WeightsMetadata::default()
            };
            unsaved = self.saver.save(checkpoint::PolicyWeights::new(run.algorithm.network().clone(), &self.parameters, metadata))?;
            self.best = found;
            self.best_parameters.clone_from(&self.parameters);
            confirmation.is_best = true;
        }
        Ok(Some(EvaluationReport { evaluation: confirmation, unsaved }))
    }

    /// How many attempts to confirm the goal have failed.
    pub fn unconfirmed(&self) -> u64 {
        self.attempts.failed()
    }

    /// Give weights that could not be saved a last chance, before the evaluator leaves. The supervisor finds out whether they were
    /// saved.
    ///
    /// # Errors
    /// The weights cannot be saved, and no wait mends it.
    pub fn leave(&mut self) -> Result<(), RoleError> {
        self.saver.insist(LAST_SAVE_PATIENCE)?;
        Ok(())
    }

    /// Play the loaded parameters, of a run after `env_steps`, with seeds that were not used before; `None` if that was cut short.
    fn play(&mut self, episodes: usize, env_steps: u64, go_on: impl Fn() -> bool) -> Result<Option<Episodes>, RoleError> {
        let run = self.run;
        // Asked before every step, it is a sign of life, too: an evaluation may last longer than a process may be silent.
        let go_on = || {
            run.process.enter(Phase::Evaluate);
            go_on()
        };
        let seed = derive_seed(run.seed(), self.times_played);
        self.times_played += 1;
        let exploration = exploration(run.config, run.algorithm, env_steps);
        // In the synchronous trainer the actor and the learner compute on this thread, too. Their products count; those of an
        // evaluation do not.
        run.count_products();
        let played = play(&mut self.environments, &mut *self.policy, episodes, seed, exploration, go_on)?;
        let _ = networks::take_products();
        Ok((played.returns.len() == episodes).then_some(played))
    }
}

/// Evaluate until the run ends, and the last parameters once more after that.
///
/// # Errors
/// As [`Evaluator::new`], [`Evaluator::evaluate`] and [`Evaluator::leave`].
pub fn run(run: &Run<'_>, folder: RunFolder, unconfirmed: u64, reports: &IpcSender<EvaluationReport>) -> Result<(), RoleError> {
    let mut evaluator = Evaluator::new(run, folder, unconfirmed)?;
    let interval = Duration::from_millis(run.config.evaluator.interval_ms);
    let mut next = Instant::now();
    let mut solved = false;
    while !run.is_over() {
        if !solved && Instant::now() >= next && run.segment.parameter_board().version() != evaluator.evaluated_version {
            next = Instant::now() + interval;
            solved = evaluator.evaluate(reports, || !run.is_over())?;
        } else {
            evaluator.saver.retry()?;
            run.process.enter(Phase::Idle);
            std::thread::sleep(Duration::from_millis(5).min(interval.max(Duration::from_millis(1))));
        }
    }
    if !solved {
        // The learners publish once more when they leave; what they reached deserves a score too.
        let patience = Instant::now() + LEAVING_PATIENCE;
        while learners_live(run) && Instant::now() < patience && !is_called_off(run) {
            std::thread::sleep(Duration::from_millis(2));
        }
        evaluator.evaluate(reports, || !is_called_off(run))?;
    }
    evaluator.leave()?;
    // Only its environments are still to be closed, which may take long: whoever waits for the evaluator need not wait for that.
    run.process.enter(Phase::Leaving);
    Ok(())
}

/// Whether nobody wants evaluations any more: the run was interrupted, or its replay is damaged. A run that ends by itself still
/// wants the last one.
fn is_called_off(run: &Run<'_>) -> bool {
    system::stop_requested() || run.control().run_state() == RunState::Poisoned
}

fn learners_live(run: &Run<'_>) -> bool {
    run.segment.processes().living().any(|slot| slot.plays(Role::Learner))
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::rc::Rc;
    use std::sync::Mutex;

    use rand::Rng;

    use super::*;
    use crate::algorithms::{ActionMut, registry as algorithms};
    use crate::catalogue::Catalogue;
    use crate::environments::{Action, Environment, EnvironmentError, EnvironmentSpec, Step, limited, registry};
    use crate::experience::Choice;
    use crate::networks::{Head, Network, NetworkSpec};
    use crate::segment::{Segment, SegmentSizes};
    use crate::values::{Values, ValuesMut};

    /// Keeps the first number that it draws.
    struct Drawing(Mutex<Option<u64>>);

    impl Policy for Drawing {
        fn network(&mut self) -> &mut dyn Network {
            unreachable!("it computes nothing")
        }

        fn outputs(&mut self) -> usize {
            1
        }

        fn infer(&mut self, _observations: Values<'_>, _rows: usize, _outputs: &mut [f32]) {}

        fn choose(&self, _outputs: &[f32], _exploration: f32, random: &mut Random, _action: ActionMut<'_>) -> Choice {
            self.0.lock().unwrap().get_or_insert_with(|| random.next_u64());
            Choice::default()
        }

        fn choose_randomly(&self, _outputs: &[f32], _random: &mut Random, _action: ActionMut<'_>) -> Choice {
            Choice::default()
        }
    }

    #[test]
    fn a_policy_that_explores_draws_from_no_stream_that_its_process_has_of_the_same_seed() {
        let mut environments = VectorEnvironment::new(vec![registry::make("CartPole-v1").unwrap()]).unwrap();
        let mut policy = Drawing(Mutex::new(None));
        let seed = derive_seed(7, 1);
        play(&mut environments, &mut policy, 1, seed, 1.0, || true).unwrap();
        let drawn = policy.0.into_inner().unwrap().expect("it has acted");
        assert_ne!(drawn, Random::seed_from_u64(seed).next_u64());
    }

    /// Has episodes of `length_steps`, and counts the steps and resets of all that it shares the counts with.
    struct Counting {
        spec: EnvironmentSpec,
        length_steps: u32,
        elapsed_steps: u32,
        steps: Rc<Cell<u32>>,
        resets: Rc<Cell<u32>>,
    }

    impl Environment for Counting {
        fn spec(&self) -> &EnvironmentSpec {
            &self.spec
        }

        fn reset(&mut self, _seed: Option<u64>, _observation: ValuesMut<'_>) -> Result<(), EnvironmentError> {
            self.elapsed_steps = 0;
            self.resets.set(self.resets.get() + 1);
            Ok(())
        }

        fn step(&mut self, _action: Action<'_>, _observation: ValuesMut<'_>) -> Result<Step, EnvironmentError> {
            self.elapsed_steps += 1;
            self.steps.set(self.steps.get() + 1);
            Ok(Step { reward: 1.0, terminated: self.elapsed_steps == self.length_steps, truncated: false })
        }
    }

    #[test]
    fn an_environment_that_has_played_its_share_is_neither_reset_nor_stepped_while_others_play() {
        let [steps, resets] = [(); 2].map(|()| Rc::new(Cell::new(0)));
        let of_length = |length_steps| -> Box<dyn Environment> {
            let spec = registry::spec("CartPole-v1").unwrap();
            Box::new(Counting { spec, length_steps, elapsed_steps: 0, steps: Rc::clone(&steps), resets: Rc::clone(&resets) })
        };
        let mut environments = VectorEnvironment::new([300, 20, 10].map(of_length).into()).unwrap();
        let mut policy = Drawing(Mutex::new(None));
        let played = play(&mut environments, &mut policy, 4, 7, 0.0, || true).unwrap();
        assert_eq!(played.lengths, [300, 20, 10, 300], "the first episode of each, and the second of the first");
        assert_eq!((steps.get(), resets.get()), (2 * 300 + 20 + 10, 4));
        // Fewer episodes than environments, of which those that have played take part again.
        let played = play(&mut environments, &mut policy, 2, 7, 0.0, || true).unwrap();
        assert_eq!(played.lengths, [300, 20]);
        assert_eq!((steps.get(), resets.get()), (3 * 300 + 2 * 20 + 10, 4 + 3));
    }

    #[test]
    fn episodes_that_would_have_gone_on_count_as_cut_off_and_those_that_end_in_that_step_do_not() {
        let [steps, resets] = [(); 2].map(|()| Rc::new(Cell::new(0)));
        let of_length = |length_steps| {
            let spec = registry::spec("CartPole-v1").unwrap();
            limited(Box::new(Counting { spec, length_steps, elapsed_steps: 0, steps: Rc::clone(&steps), resets: Rc::clone(&resets) }), 20)
        };
        let mut environments = VectorEnvironment::new([300, 20].map(of_length).into()).unwrap();
        let played = play(&mut environments, &mut Drawing(Mutex::new(None)), 4, 7, 0.0, || true).unwrap();
        assert_eq!((played.lengths, played.cut_off), (vec![20; 4], 2));
    }

    #[test]
    fn best_weights_of_another_format_are_not_taken_for_none_and_damaged_ones_are() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("best.safetensors");
        let spec = NetworkSpec::perceptron(4, &[4], Head::Linear { outputs: 2 });
        let parameters = vec![0.5; spec.parameter_count()];
        let metadata = WeightsMetadata { algorithm: "dqn".into(), environment: "CartPole-v1".into(), ..WeightsMetadata::default() };
        checkpoint::PolicyWeights::new(spec, &parameters, metadata).save(&path).unwrap();
        let mut weights = std::fs::read(&path).unwrap();
        let format = br#"\"format\":"#;
        let number = weights.windows(format.len()).position(|window| window == format).unwrap() + format.len();
        weights[number] = b'0';
        std::fs::write(&path, &weights).unwrap();
        assert!(matches!(best_weights(&path), Err(WeightsError::Format { found: 0, .. })));
        std::fs::write(&path, &weights[..100]).unwrap();
        assert!(matches!(best_weights(&path), Ok(None)));
    }

    #[test]
    fn the_best_weights_of_a_folder_that_was_moved_have_to_be_beaten_and_those_that_beat_them_are_saved_where_it_is_then() {
        let mut config = Config::for_environment("CartPole-v1");
        config.network.hidden = vec![4];
        let environment = registry::spec("CartPole-v1").unwrap();
        let algorithm = algorithms::build(&config, &environment).unwrap();
        let published_values = algorithm.sizes().published;
        let segment = Segment::of_sizes(SegmentSizes { published_values, ..SegmentSizes::of_rows(algorithm.schema().words(), 64) });
        let process = segment.processes().slot(0);
        assert!(process.reserve(Role::Evaluator, 0).is_some_and(|generation| process.occupy(std::process::id(), generation)));
        let run = Run {
            segment: &segment,
            config: &config,
            algorithm: &*algorithm,
            environment: &environment,
            catalogue: &Catalogue::default(),
            process,
            role: Role::Evaluator,
            number: 0,
            incarnation: process.generation(),
            supervisor_alive: &|| true,
        };
        let found = |return_mean| WeightsEvaluation { return_mean, return_ci95_low: Some(return_mean), episodes: 100, confirmed: true };
        let policy = |return_mean| {
            let (algorithm, environment) = ("dqn".into(), "CartPole-v1".into());
            let metadata = WeightsMetadata { algorithm, environment, evaluation: Some(found(return_mean)), ..WeightsMetadata::default() };
            checkpoint::PolicyWeights::new(run.algorithm.network().clone(), &vec![0.5; published_values], metadata)
        };
        let root = tempfile::tempdir().unwrap();
        let folder = RunFolder::create(root.path(), "test", "").unwrap();
        policy(400.0).save(&folder.best_weights()).unwrap();
        let mut place = folder.path().to_path_buf();
        let mut move_to = |name: &str| {
            let moved = root.path().join(name);
            std::fs::rename(&place, &moved).unwrap();
            place = moved.clone();
            moved.join("weights/best.safetensors")
        };
        move_to("archive");
        let mut evaluator = Evaluator::new(&run, folder, 0).unwrap();
        assert_eq!(evaluator.best, Some(found(400.0)));
        let best = move_to("elsewhere");
        assert_eq!(evaluator.saver.save(policy(500.0)).unwrap(), None);
        assert_eq!(best_weights(&best).unwrap().unwrap().metadata.evaluation, Some(found(500.0)));
    }
}
