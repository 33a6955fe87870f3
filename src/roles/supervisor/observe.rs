//! What the supervisor sees of a run: counters added up into a [`Snapshot`].

use std::collections::VecDeque;
use std::time::Instant;

use super::core_times::CoreTimes;
use crate::algorithms::exploration;
use crate::config::{Config, RowKind};
use crate::experience::prioritized::beta;
use crate::machine::machine_time::MachineTime;
use crate::metrics::{Metric, Tally};
use crate::replay::{SumTree, fresh_rows};
use crate::roles::learner::learning_rate;
use crate::segment::Segment;
use crate::segment::control::RunState;
use crate::segment::counters::Counter;
use crate::segment::membership::View;
use crate::segment::metrics::Report;
use crate::segment::processes::Role;
use crate::segment::scores::{EvaluationScore, Scores, TrainingScore};
use crate::sync::Ordering;
use crate::telemetry::{
    ActorTime, Effort, EvaluatedWeights, Evaluation, Gpus, Inserted, InsertedByProcess, LearnerTime, Remembered, Snapshot,
};

/// Number of the newest training episodes that means are taken over.
const EPISODES: usize = 100;

/// What the supervisor remembers between two snapshots.
pub(super) struct Observer {
    started: Instant,
    /// Seconds and effort at the last look before the first step in this life of the run.
    training_began: Option<(f64, Effort)>,
    /// Seconds and environment steps at the first look after the first update in this life of the run.
    learning_began: Option<(f64, u64)>,
    /// Seconds of training in earlier lives of the run.
    earlier_training_s: f64,
    /// Environment steps in earlier lives of the run.
    earlier_steps: u64,
    /// Products that networks computed in earlier lives of the run.
    earlier_products: u64,
    positions: Vec<u64>,
    core_times: CoreTimes,
    machine_time_before: MachineTime,
    /// Return and length of the newest training episodes.
    episodes: VecDeque<(f64, u64)>,
    evaluation: Option<EvaluationScore>,
    metrics: Tally,
    gpus: Gpus,
    last: Snapshot,
}

impl Observer {
    /// Observe a segment with `processes` slots and an algorithm that declares `metrics`, from `started` on.
    pub(super) fn new(started: Instant, processes: usize, metrics: &'static [Metric]) -> Self {
        Self {
            started,
            training_began: None,
            learning_began: None,
            earlier_training_s: 0.0,
            earlier_steps: 0,
            earlier_products: 0,
            positions: vec![0; processes],
            episodes: VecDeque::with_capacity(EPISODES),
            evaluation: None,
            metrics: Tally::new(metrics),
            gpus: Gpus::default(),
            core_times: CoreTimes::new(),
            machine_time_before: MachineTime::now(),
            last: Snapshot::default(),
        }
    }

    /// Go on observing a run that had taken so many seconds of training when it was last observed.
    pub(super) fn resume(&mut self, training_s: f64, remembered: &Remembered, segment: &Segment) {
        let control = segment.control();
        let updates = control.updates().load(Ordering::Relaxed);
        self.last = Snapshot {
            wall_s: self.wall_s(),
            training_s,
            env_steps: control.env_steps().load(Ordering::Relaxed),
            updates,
            earlier_updates: updates,
            // Rates are since this moment, and what was learned from before is known already.
            learned: segment.processes().total(Counter::Learned),
            ..Snapshot::default()
        };
        (self.earlier_training_s, self.earlier_steps) = (training_s, self.last.env_steps);
        // The peak of the machine on which these were computed is not known any more.
        self.earlier_products = segment.processes().total(Counter::Products);
        if let Some(newest) = remembered.newest {
            self.take_in_newest(newest);
        }
        if let Some(best) = remembered.best {
            self.take_in_best(best);
        }
    }

    /// Take in an evaluation.
    pub(super) fn evaluated(&mut self, evaluation: &Evaluation) {
        self.take_in_newest(evaluation.into());
        if evaluation.is_best {
            self.take_in_best(evaluation.into());
        }
    }

    fn take_in_newest(&mut self, evaluated: EvaluatedWeights) {
        let EvaluatedWeights { statistics, env_steps, version, .. } = evaluated;
        self.evaluation = statistics.return_mean.map(|return_mean| EvaluationScore {
            return_mean,
            ci95_low: statistics.ci95_low,
            ci95_high: statistics.ci95_high,
            episodes: statistics.episodes,
            env_steps,
            version,
        });
        self.last.eval_return_mean = statistics.return_mean;
        self.last.eval_return_std = statistics.return_std;
        self.last.eval_episodes = Some(statistics.episodes);
        self.last.eval_version = Some(version);
    }

    fn take_in_best(&mut self, evaluated: EvaluatedWeights) {
        self.last.best_eval_return = evaluated.statistics.return_mean;
        self.last.best_eval_ci95_low = evaluated.statistics.ci95_low;
    }

    /// Have snapshots say whether nothing but an evaluation of the last weights is waited for.
    pub(super) fn only_evaluates(&mut self, only_evaluates: bool) {
        self.last.only_evaluates = only_evaluates;
    }

    /// What the cores did for the processes, as of the last snapshot.
    pub(super) fn core_times(&self) -> &CoreTimes {
        &self.core_times
    }

    /// Seconds of training, as of the last snapshot.
    pub(super) fn training_s(&self) -> f64 {
        self.last.training_s
    }

    /// Seconds since the start.
    pub(super) fn wall_s(&self) -> f64 {
        self.started.elapsed().as_secs_f64()
    }

    /// The run now.
    pub(super) fn snapshot(&mut self, segment: &Segment, config: &Config, restarts: u64) -> Snapshot {
        self.drain_rings(segment);
        self.core_times.read(segment);
        let control = segment.control();
        let wall_s = self.wall_s();
        let counted = self.counted(segment, config);
        let env_steps = counted.env_steps;
        let processor_s = self.core_times.processor_s();
        let effort = Effort {
            processor_s,
            machine_time: MachineTime::now() - self.machine_time_before,
            products: segment.processes().total(Counter::Products).saturating_sub(self.earlier_products),
        };
        let (training_s, effort_in_training) = self.in_training(control.run_state(), env_steps, wall_s, effort);
        let training = self.training_score();
        control.scores().publish(&Scores { training, evaluation: self.evaluation });
        let gpus = self.gpus.total();
        let learning_rate = learning_rate(config, env_steps, View::load(control.membership()).doublings);
        let mut now = Snapshot {
            wall_s,
            training_s,
            earlier_training_s: self.earlier_training_s,
            stop_env_steps: config.run.stop_env_steps,
            stop_wall_s: config.run.stop_wall_s,
            env_steps_per_s_of_learning: self.pace_of_learning(env_steps, counted.updates, wall_s),
            train_return_mean: training.map(|training| training.return_mean),
            train_length_mean: training.map(|training| self.steps() as f64 / training.episodes as f64),
            stop_eval_return: config.run.stop_eval_return,
            epsilon: config.anneals_epsilon().then(|| exploration::epsilon(&config.algorithm, 0, 1, env_steps)),
            beta: (config.replay.prioritized && config.row_kind() == RowKind::Transitions)
                .then(|| f64::from(beta(&config.replay, env_steps))),
            learning_rate,
            policy_learning_rate: config.algorithm.policy_learning_rate.map(|rate| rate * (learning_rate / config.learning_rate())),
            actor_time: self.actor_time(segment),
            learner_time: self.learner_time(segment),
            evaluator_processor_s: processor_s.evaluator,
            visualizer_processor_s: processor_s.visualizer,
            supervisor_processor_s: processor_s.supervisor,
            effort,
            effort_in_training,
            restarts,
            gpu_busy_share: gpus.map(|load| load.busy_share),
            gpu_memory_bytes: gpus.map(|load| load.memory_bytes),
            metrics: self.metrics.into(),
            ..counted
        };
        self.count_processes(segment, &mut now);
        self.last = now.with_rates_since(&self.last);
        self.last.clone()
    }

    /// The last snapshot with what the segment counts now.
    fn counted(&self, segment: &Segment, config: &Config) -> Snapshot {
        let control = segment.control();
        let total = |counter| segment.processes().total(counter);
        let inserted = control.inserted().load(Ordering::Relaxed);
        let capacity = segment.layout().sizes().capacity as u64;
        Snapshot {
            env_steps: control.env_steps().load(Ordering::Relaxed),
            episodes: total(Counter::Episodes),
            updates: control.updates().load(Ordering::Relaxed),
            inserted,
            sampled: control.sampled().load(Ordering::Relaxed),
            learned: total(Counter::Learned),
            stale_priorities: total(Counter::StalePriorities),
            saturated_priorities: total(Counter::SaturatedPriorities),
            dropped_fragments: if config.row_kind() == RowKind::Fragments { total(Counter::DroppedRows) + overwritten(segment) } else { 0 },
            replayed_fragments: total(Counter::ReplayedRows),
            replay_size: inserted.min(capacity),
            replay_capacity: capacity,
            parameter_version: segment.parameter_board().version(),
            policy_lag_mean: segment.processes().mean_policy_lag().unwrap_or(0.0),
            policy_lag_max: segment.processes().largest_policy_lag(),
            products_peak_per_s: control.products_peak_per_s().load(Ordering::Relaxed),
            inserted_by_process: inserted_by_process(segment),
            ..self.last.clone()
        }
    }

    /// Seconds and effort from the last look before the first step until now, or until the run was told to end.
    fn in_training(&mut self, state: RunState, env_steps: u64, wall_s: f64, effort: Effort) -> (f64, Effort) {
        if env_steps > self.earlier_steps && self.training_began.is_none() {
            self.training_began = Some((self.last.wall_s, self.last.effort));
        }
        match self.training_began {
            Some((began_s, before)) if state == RunState::Running => (self.earlier_training_s + wall_s - began_s, effort - before),
            _ => (self.last.training_s, self.last.effort_in_training),
        }
    }

    /// Environment steps per second since the first update in this life of the run.
    fn pace_of_learning(&mut self, env_steps: u64, updates: u64, wall_s: f64) -> f64 {
        if updates <= self.last.earlier_updates {
            return 0.0;
        }
        let (began_s, before) = *self.learning_began.get_or_insert((wall_s, env_steps));
        if wall_s > began_s { env_steps.saturating_sub(before) as f64 / (wall_s - began_s) } else { 0.0 }
    }

    fn training_score(&self) -> Option<TrainingScore> {
        let count = self.episodes.len();
        let total = self.episodes.iter().map(|episode| episode.0).sum::<f64>();
        (count > 0).then(|| TrainingScore { return_mean: total / count as f64, episodes: count as u64 })
    }

    /// Environment steps of the newest episodes.
    fn steps(&self) -> u64 {
        self.episodes.iter().map(|episode| episode.1).sum()
    }

    /// What actors spent their time on.
    fn actor_time(&self, segment: &Segment) -> ActorTime {
        let spent = |counter| seconds(segment.processes().total(counter));
        ActorTime {
            environment_s: spent(Counter::EnvironmentNs),
            inference_s: spent(Counter::InferenceNs),
            insert_s: spent(Counter::InsertNs),
            limiter_wait_s: seconds(waited(segment, |role| role != Some(Role::Learner))),
            processor_s: self.core_times.used.actors.running.as_secs_f64(),
            core_wait_s: self.core_times.used.actors.waiting.as_secs_f64(),
        }
    }

    /// What learners spent their time on.
    fn learner_time(&self, segment: &Segment) -> LearnerTime {
        let spent = |counter| seconds(segment.processes().total(counter));
        LearnerTime {
            replay_s: spent(Counter::ReplayNs),
            compute_s: spent(Counter::ComputeNs),
            exchange_s: spent(Counter::ExchangeNs),
            publish_s: spent(Counter::PublishNs),
            limiter_wait_s: seconds(waited(segment, |role| role == Some(Role::Learner))),
            processor_s: self.core_times.used.learners.running.as_secs_f64(),
            core_wait_s: self.core_times.used.learners.waiting.as_secs_f64(),
        }
    }

    fn count_processes(&self, segment: &Segment, now: &mut Snapshot) {
        (now.actors, now.attached, now.learners) = (0, 0, 0);
        for slot in segment.processes().living() {
            match slot.role() {
                Some((Role::Actor, _)) => now.actors += 1,
                Some((Role::AttachedActor, _)) => {
                    now.actors += 1;
                    now.attached += 1;
                }
                Some((Role::Learner, _)) => now.learners += 1,
                Some((Role::Synchronous, _)) => {
                    now.actors += 1;
                    now.learners += 1;
                }
                _ => {}
            }
        }
    }

    fn drain_rings(&mut self, segment: &Segment) {
        let mut ended = vec![Vec::new(); self.positions.len()];
        for (slot, (position, ended)) in self.positions.iter_mut().zip(&mut ended).enumerate() {
            let (metrics, gpus) = (&mut self.metrics, &mut self.gpus);
            (*position, _) = segment.metric_ring(slot).drain(*position, |report| match report {
                Report::Episode { episode_return, length } => ended.push((episode_return, length)),
                Report::Metric { index, amount } => metrics.report_at(index, amount),
                Report::Gpu { index, busy_share, memory_bytes } => gpus.report(index, busy_share, memory_bytes),
            });
        }
        self.episodes.extend(newest_last(&ended));
        self.episodes.drain(..self.episodes.len().saturating_sub(EPISODES));
    }
}

/// The reports of several processes since the last look, each given oldest first, merged into one order. The true
/// order between processes is not known. A report is placed by how many came after it from its own process, so that
/// the last few are from all processes.
fn newest_last<T: Copy>(reported: &[Vec<T>]) -> impl Iterator<Item = T> {
    let most = reported.iter().map(Vec::len).max().unwrap_or(0);
    let with_after = |after: usize| reported.iter().filter_map(move |of_one| of_one.iter().rev().nth(after).copied());
    (0..most).rev().flat_map(with_after)
}

/// The transitions that each process has inserted, of all that ever inserted any. A replacement counts on.
fn inserted_by_process(segment: &Segment) -> InsertedByProcess {
    let inserted = segment.processes().iter().filter_map(|slot| {
        let (role, number) = slot.role()?;
        let rows = slot.counters().get(Counter::Inserted);
        (rows > 0).then(|| Inserted { process: format!("{} {number}", role.name()), rows })
    });
    InsertedByProcess(inserted.collect())
}

/// Fragments that were overwritten before anybody took them: those that are neither taken nor there. The three
/// numbers change while they are read. A fragment that is being inserted is missed, and one that is being taken may
/// count for a moment. A death may leave the counts off by a few.
fn overwritten(segment: &Segment) -> u64 {
    let control = segment.control();
    // Acquire, and first: what it counts is then in the sum of the tree.
    let inserted = control.inserted().load(Ordering::Acquire);
    let fresh = fresh_rows(&SumTree::of(segment).expect("fragments have a tree"));
    inserted.saturating_sub(fresh).saturating_sub(control.sampled().load(Ordering::Relaxed))
}

/// Nanoseconds that processes have waited for the limiter, of those whose role `is_counted`.
fn waited(segment: &Segment, is_counted: impl Fn(Option<Role>) -> bool) -> u64 {
    let chosen = segment.processes().iter().filter(|slot| is_counted(slot.role().map(|(role, _)| role)));
    chosen.map(|slot| slot.counters().get(Counter::LimiterWaitNs)).sum()
}

fn seconds(nanoseconds: u64) -> f64 {
    nanoseconds as f64 / 1e9
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::schema::StepSize;
    use crate::segment::SegmentSizes;
    use crate::telemetry::ByKind;

    fn small_run() -> (Config, Segment, Observer) {
        let segment = Segment::of_sizes(SegmentSizes { processes: 4, ..SegmentSizes::of_rows(1, 64) });
        let observer = Observer::new(Instant::now(), segment.processes().len(), &[]);
        (Config::for_environment("CartPole-v1"), segment, observer)
    }

    #[test]
    fn what_is_computed_before_the_first_step_and_while_all_leave_is_in_no_mean_over_the_training() {
        let (config, segment, mut observer) = small_run();
        let (control, counters) = (segment.control(), segment.processes().slot(0).counters());
        let mut look = |state, env_steps, products| {
            control.set_run_state(state);
            control.env_steps().store(env_steps, Ordering::Relaxed);
            counters.add(Counter::Products, products);
            let now = observer.snapshot(&segment, &config, 0);
            (now.effort.products, now.effort_in_training.products)
        };
        assert_eq!(look(RunState::Running, 0, 1_000), (1_000, 0));
        assert_eq!(look(RunState::Running, 10, 500), (1_500, 500));
        assert_eq!(look(RunState::Running, 20, 300), (1_800, 800));
        assert_eq!(look(RunState::Stopping, 20, 4_000), (5_800, 800));
    }

    #[test]
    fn the_pace_of_learning_is_a_mean_since_the_first_update_in_this_life_of_the_run() {
        let (config, segment, mut observer) = small_run();
        let count = |env_steps: u64, updates: u64| {
            segment.control().env_steps().store(env_steps, Ordering::Relaxed);
            segment.control().updates().store(updates, Ordering::Relaxed);
        };
        count(1_000_000, 300);
        observer.resume(60.0, &Remembered::default(), &segment);
        let mut look = |env_steps, updates| {
            count(env_steps, updates);
            let now = observer.snapshot(&segment, &config, 0);
            (now.wall_s, now.env_steps_per_s_of_learning)
        };
        assert_eq!(look(1_005_000, 300).1, 0.0, "random first steps");
        let (began_s, pace) = look(1_006_000, 301);
        assert_eq!(pace, 0.0);
        look(1_006_070, 320);
        let (now_s, pace) = look(1_006_070, 340);
        assert_eq!(pace, 70.0 / (now_s - began_s), "also while only updates are made");
    }

    #[test]
    fn what_falls_or_grows_along_a_schedule_is_shown_as_of_the_steps_taken_so_far() {
        let (mut config, segment, mut observer) = small_run();
        (config.algorithm.epsilon_start, config.algorithm.epsilon_end, config.algorithm.epsilon_anneal_steps) = (0.75, 0.25, 100);
        (config.replay.beta_start, config.replay.beta_end, config.replay.beta_anneal_steps) = (0.25, 0.75, 200);
        let found = [0, 50, 300].map(|env_steps| {
            segment.control().env_steps().store(env_steps, Ordering::Relaxed);
            let now = observer.snapshot(&segment, &config, 0);
            now.epsilon.zip(now.beta)
        });
        assert_eq!(found, [(0.75, 0.25), (0.5, 0.375), (0.25, 0.75)].map(Some));
    }

    #[test]
    fn learning_rates_are_those_of_an_update_now_with_the_batch_that_learners_have() {
        let (mut config, segment, mut observer) = small_run();
        (config.learner.learning_rate, config.learner.learning_rate_end, config.run.stop_env_steps) = (Some(0.5), Some(0.25), 100);
        config.adaptation.step_size = StepSize::Linear;
        let mut look = |config: &Config, env_steps, doublings| {
            segment.control().env_steps().store(env_steps, Ordering::Relaxed);
            View { epoch: 1, members: 1, leader: Some(0), doublings }.store(segment.control().membership());
            let now = observer.snapshot(&segment, config, 0);
            (now.learning_rate, now.policy_learning_rate)
        };
        assert_eq!(look(&config, 0, 0), (0.5, None));
        config.algorithm.policy_learning_rate = Some(0.125);
        assert_eq!(look(&config, 0, 0), (0.5, Some(0.125)));
        assert_eq!(look(&config, 50, -1), (0.1875, Some(0.046_875)));
        assert_eq!(look(&config, 200, 1), (0.5, Some(0.125)), "half of it at the end, and the batch is doubled");
    }

    #[test]
    fn where_more_episodes_end_at_once_than_are_kept_the_newest_of_every_process_are() {
        let (config, segment, mut observer) = small_run();
        // Each of four processes has a quarter of the newest that are kept.
        for slot in 0..4 {
            for newer in (0..2 * EPISODES).rev() {
                let episode_return = if newer < EPISODES / 4 { slot as f64 } else { -1e6 };
                segment.metric_ring(slot).push(Report::Episode { episode_return, length: 1 });
            }
        }
        assert_eq!(observer.snapshot(&segment, &config, 0).train_return_mean, Some(1.5));
    }

    #[test]
    fn gpus_are_as_their_learners_reported_last_each_counted_once() {
        let (config, segment, mut observer) = small_run();
        let look = |observer: &mut Observer| {
            let now = observer.snapshot(&segment, &config, 0);
            now.gpu_busy_share.zip(now.gpu_memory_bytes)
        };
        assert_eq!(look(&mut observer), None);
        let ring = |slot| segment.metric_ring(slot);
        let report = |index, busy_share, memory_bytes| Report::Gpu { index, busy_share, memory_bytes };
        ring(0).push(report(1, 1.0, 77));
        ring(0).push(report(1, 0.5, 100));
        ring(1).push(report(1, 0.25, 200));
        assert_eq!(look(&mut observer), Some((0.25, 200)), "two learners on one");
        ring(0).push(report(0, 0.75, 300));
        assert_eq!(look(&mut observer), Some((0.5, 500)));
    }

    #[test]
    fn what_an_earlier_life_of_a_run_did_is_in_no_rate_of_the_next() {
        let (config, segment, mut observer) = small_run();
        let control = segment.control();
        for counter in [control.env_steps(), control.updates(), control.sampled()] {
            counter.store(1_000_000, Ordering::Relaxed);
        }
        for counter in [Counter::Products, Counter::Learned] {
            segment.processes().slot(0).counters().add(counter, 1_000_000);
        }
        observer.resume(60.0, &Remembered::default(), &segment);
        let first = observer.snapshot(&segment, &config, 0);
        assert!(first.wall_s > 0.0 && first.learned == 1_000_000);
        assert_eq!([first.env_steps_per_s, first.updates_per_s, first.learned_per_s, first.products_per_s], [0.0; 4]);
        // Ten seconds later, with a peak that was measured on this machine.
        let processor_s = ByKind { learners: 10.0, actors: 5.0, supervisor: 1.0, ..ByKind::default() };
        let effort_in_training = Effort { processor_s, products: 500, ..Effort::default() };
        let later = Snapshot { training_s: 70.0, products_peak_per_s: 100, effort_in_training, ..first };
        let means = later.with_rates_of_training();
        assert_eq!((means.products_per_s, means.peak_share, means.cores_used), (50.0, Some(0.5), 1.5));
        assert_eq!(means.cores_by_kind, ByKind { learners: 1.0, actors: 0.5, supervisor: 0.1, ..ByKind::default() });
    }
}
