//! What happened between two snapshots, as shares of time.

use super::super::{ActorTime, LearnerTime, Snapshot};
use super::{Clock, Context, WAITING_FROM, share};
use crate::readable::percent;

pub(super) const ENVIRONMENT: &str = "stepping environments";
pub(super) const INFERENCE: &str = "inference";
pub(super) const INSERT: &str = "inserting";
const REPLAY: &str = "replay";
const COMPUTE: &str = "gradients";
const EXCHANGE: &str = "gradient exchange";
const PUBLISH: &str = "publishing";
/// A run that computed on less than this share of its cores, and waited for one, did not get them.
const ALL_CORES_FROM: f64 = 0.8;
/// Other programs that computed on fewer cores than this took none from the run: its processes were in each other's
/// way.
const OTHERS_FROM: f64 = 0.5;

/// The part of a run that is judged.
pub(super) struct Period {
    pub(super) elapsed_s: f64,
    pub(super) inserted: u64,
    pub(super) sampled: u64,
    /// Fragments from which nobody learned.
    pub(super) dropped: u64,
    pub(super) restarts: u64,
    pub(super) actor: ActorTime,
    pub(super) learner: LearnerTime,
    evaluator_processor_s: f64,
    /// Share of the time of the machine's cores that anybody computed: over all of the training or, if the moments were
    /// read from a file, as the later one has it.
    machine_busy_share: Option<f64>,
}

impl Period {
    /// The time from `before` to `now`, measured by `clock`.
    pub(super) fn between(before: &Snapshot, now: &Snapshot, clock: Clock) -> Self {
        let (a, b) = (&now.actor_time, &before.actor_time);
        let actor = ActorTime {
            environment_s: a.environment_s - b.environment_s,
            inference_s: a.inference_s - b.inference_s,
            insert_s: a.insert_s - b.insert_s,
            limiter_wait_s: a.limiter_wait_s - b.limiter_wait_s,
            processor_s: a.processor_s - b.processor_s,
            core_wait_s: a.core_wait_s - b.core_wait_s,
        };
        let (a, b) = (&now.learner_time, &before.learner_time);
        let learner = LearnerTime {
            replay_s: a.replay_s - b.replay_s,
            compute_s: a.compute_s - b.compute_s,
            exchange_s: a.exchange_s - b.exchange_s,
            publish_s: a.publish_s - b.publish_s,
            limiter_wait_s: a.limiter_wait_s - b.limiter_wait_s,
            processor_s: a.processor_s - b.processor_s,
            core_wait_s: a.core_wait_s - b.core_wait_s,
        };
        Self {
            elapsed_s: clock.seconds_between(before, now),
            inserted: now.inserted.saturating_sub(before.inserted),
            sampled: now.sampled.saturating_sub(before.sampled),
            dropped: now.dropped_fragments.saturating_sub(before.dropped_fragments),
            restarts: now.restarts.saturating_sub(before.restarts),
            actor,
            learner,
            evaluator_processor_s: now.evaluator_processor_s - before.evaluator_processor_s,
            // A moment that was read from a file has the share alone.
            machine_busy_share: now.effort_in_training.machine_time.busy_share().or(now.machine_busy_share),
        }
    }

    /// Cores that the run computed on, on average.
    pub(super) fn used_cores(&self) -> f64 {
        share(self.actor.processor_s + self.learner.processor_s + self.evaluator_processor_s, self.elapsed_s)
    }

    /// How many of `cores` the run had no need of, on average. A process that waits for a core could use one more.
    pub(super) fn spare_cores(&self, cores: f64) -> f64 {
        let wanted = share(self.actor.core_wait_s + self.learner.core_wait_s, self.elapsed_s);
        (cores - self.used_cores() - wanted).max(0.0)
    }

    /// Cores that neither the run nor another program used, on average: no more than were idle in the whole machine.
    pub(super) fn idle_cores(&self, context: &Context) -> f64 {
        let spare = self.spare_cores(context.cores);
        self.machine_busy_share.map_or(spare, |busy| spare.min(context.machine_cores as f64 * (1.0 - busy)))
    }

    /// Of the time in which actors and learners had work, the share in which they had no core.
    pub(super) fn core_wait_share(&self) -> f64 {
        let waited_s = self.actor.core_wait_s + self.learner.core_wait_s;
        share(waited_s, waited_s + self.actor.processor_s + self.learner.processor_s)
    }

    /// Whether other programs had cores that the run could have computed on.
    pub(super) fn is_crowded_out(&self, context: &Context) -> bool {
        let used = self.used_cores();
        let others_compute = self.machine_busy_share.is_none_or(|busy| busy * context.machine_cores as f64 - used >= OTHERS_FROM);
        self.core_wait_share() >= WAITING_FROM && used < ALL_CORES_FROM * context.cores && others_compute
    }

    /// Share of the actors' time, without waiting for the rate limiter, in which they needed no core: their
    /// environments slept.
    pub(super) fn actors_asleep(&self) -> f64 {
        share(self.slept_s(), self.actor.total_s() - self.actor.limiter_wait_s)
    }

    /// The same as a share of all the actors' time, of which people are told other shares in the same sentence.
    pub(super) fn actors_slept(&self) -> f64 {
        share(self.slept_s(), self.actor.total_s())
    }

    /// Seconds in which actors neither waited for anything nor needed a core.
    fn slept_s(&self) -> f64 {
        let time = &self.actor;
        (time.total_s() - time.limiter_wait_s - time.processor_s - time.core_wait_s).max(0.0)
    }

    /// Share of the learners' time that exchanging gradients took.
    pub(super) fn exchange(&self) -> f64 {
        share(self.learner.exchange_s, self.learner.total_s())
    }

    /// What takes the actors longest.
    pub(super) fn longest_of_acting(&self) -> &'static str {
        longest(&self.actor_parts()).0
    }

    /// For instance `actors: 80 % stepping environments, on a core 3 % of their time`, and how long they waited for a
    /// core if that was long.
    pub(super) fn actor_work(&self) -> String {
        let work = work("actors", &self.actor_parts(), self.actor.total_s());
        if self.actor.processor_s <= 0.0 {
            return work;
        }
        let of_time = |seconds: f64| percent(share(seconds, self.actor.total_s()).min(1.0));
        let waiting = match share(self.actor.core_wait_s, self.actor.total_s()) {
            much if much >= WAITING_FROM => format!(", waiting for one {}", of_time(self.actor.core_wait_s)),
            _ => String::new(),
        };
        format!("{work}, on a core {} of their time{waiting}", of_time(self.actor.processor_s))
    }

    /// For instance `learners: 80 % gradients`.
    pub(super) fn learner_work(&self) -> String {
        let time = &self.learner;
        let parts = [(COMPUTE, time.compute_s), (REPLAY, time.replay_s), (EXCHANGE, time.exchange_s), (PUBLISH, time.publish_s)];
        work("learners", &parts, time.total_s())
    }

    fn actor_parts(&self) -> [(&'static str, f64); 3] {
        let time = &self.actor;
        [(ENVIRONMENT, time.environment_s), (INFERENCE, time.inference_s), (INSERT, time.insert_s)]
    }
}

fn longest(parts: &[(&'static str, f64)]) -> (&'static str, f64) {
    parts.iter().copied().max_by(|a, b| a.1.total_cmp(&b.1)).unwrap_or_default()
}

fn work(role: &str, parts: &[(&'static str, f64)], total_s: f64) -> String {
    let (name, seconds) = longest(parts);
    format!("{role}: {} {name}", percent(share(seconds, total_s)))
}
