//! What the supervisor sees of a run: counters added up into a [`Snapshot`].

use std::collections::VecDeque;
use std::time::Instant;

use crate::algorithms::exploration;
use crate::config::Config;
use crate::config::schema::Exploration;
use crate::roles::learner;
use crate::segment::Segment;
use crate::segment::counters::Counter;
use crate::segment::metrics::Report;
use crate::segment::processes::{Role, SlotState};
use crate::sync::Ordering;
use crate::telemetry::{ActorTime, Evaluation, LearnerTime, Snapshot};

/// Training episodes that the mean return is taken over.
const EPISODES: usize = 100;

/// Memory between two snapshots.
pub(super) struct Observer {
    started: Instant,
    positions: Vec<u64>,
    returns: VecDeque<f64>,
    last: Snapshot,
}

impl Observer {
    /// Observe a segment with `processes` slots, from `started` on.
    pub(super) fn new(started: Instant, processes: usize) -> Self {
        Self { started, positions: vec![0; processes], returns: VecDeque::with_capacity(EPISODES), last: Snapshot::default() }
    }

    /// Take in an evaluation.
    pub(super) fn evaluated(&mut self, evaluation: &Evaluation) {
        let statistics = evaluation.statistics();
        self.last.eval_return_mean = statistics.return_mean;
        self.last.eval_return_std = statistics.return_std;
        self.last.eval_episodes = Some(statistics.episodes);
        self.last.eval_version = Some(evaluation.version);
        if evaluation.is_best {
            self.last.best_eval_return = statistics.return_mean;
            self.last.best_eval_ci95_low = statistics.ci95_low;
        }
    }

    /// Seconds since the start.
    pub(super) fn wall_s(&self) -> f64 {
        self.started.elapsed().as_secs_f64()
    }

    /// The run now.
    pub(super) fn snapshot(&mut self, segment: &Segment, config: &Config, restarts: u64) -> Snapshot {
        self.drain_rings(segment);
        let control = segment.control();
        let total = |counter| segment.processes().iter().map(|slot| slot.counters().get(counter)).sum::<u64>();
        let inserted = control.inserted().load(Ordering::Relaxed);
        let env_steps = control.env_steps().load(Ordering::Relaxed);
        let wall_s = self.wall_s();
        let lagged = total(Counter::Inserted);
        let mut now = Snapshot {
            wall_s,
            env_steps,
            stop_env_steps: config.run.stop_env_steps,
            episodes: total(Counter::Episodes),
            updates: control.updates().load(Ordering::Relaxed),
            inserted,
            sampled: control.sampled().load(Ordering::Relaxed),
            stale_priorities: total(Counter::StalePriorities),
            replay_size: inserted.min(config.replay.capacity as u64),
            replay_capacity: config.replay.capacity as u64,
            train_return_mean: (!self.returns.is_empty()).then(|| self.returns.iter().sum::<f64>() / self.returns.len() as f64),
            stop_eval_return: config.run.stop_eval_return,
            epsilon: anneals_epsilon(config).then(|| exploration::epsilon(&config.algorithm, 0, 1, env_steps)),
            beta: config.replay.prioritized.then(|| f64::from(learner::beta(config, env_steps))),
            parameter_version: segment.parameter_board().version(),
            policy_lag_mean: if lagged == 0 { 0.0 } else { total(Counter::PolicyLagSum) as f64 / lagged as f64 },
            policy_lag_max: segment.processes().iter().map(|slot| slot.counters().get(Counter::PolicyLagMax)).max().unwrap_or(0),
            actor_time: ActorTime {
                environment_s: seconds(total(Counter::EnvironmentNs)),
                inference_s: seconds(total(Counter::InferenceNs)),
                insert_s: seconds(total(Counter::InsertNs)),
                limiter_wait_s: seconds(self.waiting(segment, false)),
            },
            learner_time: LearnerTime {
                replay_s: seconds(total(Counter::ReplayNs)),
                compute_s: seconds(total(Counter::ComputeNs)),
                exchange_s: seconds(total(Counter::ExchangeNs)),
                publish_s: seconds(total(Counter::PublishNs)),
                limiter_wait_s: seconds(self.waiting(segment, true)),
            },
            restarts,
            ..self.last.clone()
        };
        self.count_processes(segment, &mut now);
        let elapsed = wall_s - self.last.wall_s;
        if elapsed > 0.0 {
            now.env_steps_per_s = now.env_steps.saturating_sub(self.last.env_steps) as f64 / elapsed;
            now.updates_per_s = now.updates.saturating_sub(self.last.updates) as f64 / elapsed;
        }
        self.last = now.clone();
        now
    }

    fn waiting(&self, segment: &Segment, learners: bool) -> u64 {
        let chosen = segment.processes().iter().filter(|slot| matches!(slot.role(), Some((Role::Learner, _))) == learners);
        chosen.map(|slot| slot.counters().get(Counter::LimiterWaitNs)).sum()
    }

    fn count_processes(&self, segment: &Segment, now: &mut Snapshot) {
        (now.actors, now.attached, now.learners) = (0, 0, 0);
        for slot in segment.processes().iter().filter(|slot| slot.state() == SlotState::Live) {
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
        for (slot, position) in self.positions.iter_mut().enumerate() {
            let (returns, last) = (&mut self.returns, &mut self.last);
            (*position, _) = segment.metric_ring(slot).drain(*position, |report| match report {
                Report::Episode { episode_return, .. } => {
                    if returns.len() == EPISODES {
                        returns.pop_front();
                    }
                    returns.push_back(episode_return);
                }
                Report::Update { loss, q_mean, gradient_norm, policy_loss, entropy_temperature } => {
                    last.loss = Some(loss);
                    last.q_mean = Some(q_mean);
                    last.gradient_norm = Some(gradient_norm);
                    last.policy_loss = policy_loss.or(last.policy_loss);
                    last.entropy_temperature = entropy_temperature;
                }
            });
        }
    }
}

/// Whether there is one exploration rate to tell of.
fn anneals_epsilon(config: &Config) -> bool {
    config.algorithm.name == "dqn" && config.algorithm.exploration == Exploration::Global
}

#[expect(clippy::cast_precision_loss, reason = "for people")]
fn seconds(nanoseconds: u64) -> f64 {
    nanoseconds as f64 / 1e9
}
