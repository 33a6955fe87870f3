//! What held a run back, from where its processes spent their time, and which key of the configuration to change.

use std::fmt;

use serde::Serialize;

use super::units::{percent, short};
use super::{ActorTime, LearnerTime, Snapshot};

/// A side that waits for less of its time than this is busy.
const WAITING_FROM: f64 = 0.2;
/// When both sides wait, one is the bottleneck if the other waits this many times as much.
const CLEARLY_MORE: f64 = 2.0;
/// Free-running: below this many samples per insert transitions are overwritten that were never learned from.
const TOO_FEW_SAMPLES: f64 = 1.0;
/// Free-running: above this learners repeat old transitions for want of new ones (the default of `replay.samples_per_insert`).
const MANY_SAMPLES: f64 = 32.0;
/// Process time without which shares mean nothing.
const LEAST_TIME_S: f64 = 1.0;

/// What a run was given, as far as the advice depends on it.
#[derive(Debug, Clone, PartialEq)]
pub struct Context {
    /// `replay.samples_per_insert`; `None` lets both sides run free.
    pub samples_per_insert: Option<f64>,
    /// `actor.count`; zero runs everything in one process.
    pub actors: usize,
    /// `learner.count`.
    pub learners: usize,
    /// Cores that the run may use.
    pub cores: usize,
}

/// What limited the throughput.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Bottleneck {
    /// Learners were busy while actors waited for them.
    Learners,
    /// Actors were busy while learners waited for them.
    Actors,
    /// Each side kept waiting for the other.
    RateLimiter,
    /// Everything was busy: only more or faster cores, or less work, help.
    Cores,
    /// One process did everything in turn.
    OneProcess,
    /// The run was too short to tell.
    Unknown,
}

/// The bottleneck with its evidence; `Display` makes one sentence of it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Verdict {
    /// What it was.
    pub bottleneck: Bottleneck,
    /// The figures that show it.
    pub evidence: String,
    /// What to change, most promising first; each names a key of the configuration.
    pub advice: Vec<String>,
}

impl fmt::Display for Verdict {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self.bottleneck {
            Bottleneck::Learners => "learner-bound",
            Bottleneck::Actors => "actor-bound",
            Bottleneck::RateLimiter => "bound by the rate limiter",
            Bottleneck::Cores => "bound by the cores",
            Bottleneck::OneProcess => "bound by the single process",
            Bottleneck::Unknown => "no bottleneck to name",
        };
        write!(formatter, "{name}: {}", self.evidence)?;
        match self.advice.as_slice() {
            [] => Ok(()),
            [only] => write!(formatter, "; {only}"),
            [first @ .., last] => write!(formatter, "; {}, or {last}", first.join(", ")),
        }
    }
}

/// Judges the time from `started`, usually the first snapshot with an update, to `now`: what happened before, such as filling the replay,
/// says nothing about learning.
pub fn verdict_since(started: &Snapshot, now: &Snapshot, context: &Context) -> Verdict {
    let (a, b) = (&now.actor_time, &started.actor_time);
    let actor_time = ActorTime {
        environment_s: a.environment_s - b.environment_s,
        inference_s: a.inference_s - b.inference_s,
        insert_s: a.insert_s - b.insert_s,
        limiter_wait_s: a.limiter_wait_s - b.limiter_wait_s,
    };
    let (a, b) = (&now.learner_time, &started.learner_time);
    let learner_time = LearnerTime {
        replay_s: a.replay_s - b.replay_s,
        compute_s: a.compute_s - b.compute_s,
        exchange_s: a.exchange_s - b.exchange_s,
        publish_s: a.publish_s - b.publish_s,
        limiter_wait_s: a.limiter_wait_s - b.limiter_wait_s,
    };
    let inserted = now.inserted.saturating_sub(started.inserted);
    let sampled = now.sampled.saturating_sub(started.sampled);
    verdict(&Snapshot { actor_time, learner_time, inserted, sampled, ..now.clone() }, context)
}

/// Judges a run by the times and counters of one snapshot.
pub fn verdict(snapshot: &Snapshot, context: &Context) -> Verdict {
    let (actor, learner) = (&snapshot.actor_time, &snapshot.learner_time);
    if snapshot.updates == 0 || actor.total_s() + learner.total_s() < LEAST_TIME_S {
        let evidence = format!("{} updates in {:.1} s are too few to judge", snapshot.updates, snapshot.wall_s);
        return Verdict { bottleneck: Bottleneck::Unknown, evidence, advice: Vec::new() };
    }
    if context.actors == 0 {
        return one_process(actor, learner);
    }
    match context.samples_per_insert {
        Some(ratio) => limited(actor, learner, ratio, context),
        None => free_running(snapshot, context),
    }
}

fn limited(actor: &ActorTime, learner: &LearnerTime, ratio: f64, context: &Context) -> Verdict {
    let actors_wait = share(actor.limiter_wait_s, actor.total_s());
    let learners_wait = share(learner.limiter_wait_s, learner.total_s());
    let (actors_waited, learners_waited) = (percent(actors_wait), percent(learners_wait));
    if actors_wait >= WAITING_FROM && actors_wait >= CLEARLY_MORE * learners_wait {
        let mut advice = vec![format!("lower replay.samples_per_insert (now {})", short(ratio))];
        advice.extend(faster_learners(learner, context));
        let evidence = format!(
            "actors waited {actors_waited} of their time for the rate limiter, learners {learners_waited} ({})",
            learner_work(learner)
        );
        return Verdict { bottleneck: Bottleneck::Learners, evidence, advice };
    }
    if learners_wait >= WAITING_FROM && learners_wait >= CLEARLY_MORE * actors_wait {
        let mut advice = faster_actors(actor, context);
        advice.push(format!("raise replay.samples_per_insert (now {}) to learn more from each transition", short(ratio)));
        let evidence =
            format!("learners waited {learners_waited} of their time for new transitions, actors {actors_waited} ({})", actor_work(actor));
        return Verdict { bottleneck: Bottleneck::Actors, evidence, advice };
    }
    if actors_wait >= WAITING_FROM {
        let evidence = format!(
            "actors waited {actors_waited} and learners {learners_waited} of their time for each other at {} samples per insert",
            short(ratio)
        );
        let advice = vec![
            "widen replay.error_band, so that each side may run further ahead".into(),
            "lower actor.flush_transitions, so that inserts come in smaller portions".into(),
        ];
        return Verdict { bottleneck: Bottleneck::RateLimiter, evidence, advice };
    }
    all_busy(
        actor,
        learner,
        &format!("waiting took only {actors_waited} of the actors' time and {learners_waited} of the learners'"),
        context,
    )
}

fn free_running(snapshot: &Snapshot, context: &Context) -> Verdict {
    let (actor, learner) = (&snapshot.actor_time, &snapshot.learner_time);
    let ratio = share(snapshot.sampled as f64, snapshot.inserted as f64);
    let evidence = format!("running free, learners drew {} samples per inserted transition", short(ratio));
    if snapshot.inserted > 0 && ratio < TOO_FEW_SAMPLES {
        let mut advice = faster_learners(learner, context);
        advice.push(
            "set replay.samples_per_insert (for instance 8), so that actors wait instead of overwriting what nobody learned from".into(),
        );
        return Verdict { bottleneck: Bottleneck::Learners, evidence: format!("{evidence} ({})", learner_work(learner)), advice };
    }
    if snapshot.inserted == 0 || ratio > MANY_SAMPLES {
        let mut advice = faster_actors(actor, context);
        advice.push("set replay.samples_per_insert (for instance 32), so that learners do not repeat old transitions".into());
        return Verdict { bottleneck: Bottleneck::Actors, evidence: format!("{evidence} ({})", actor_work(actor)), advice };
    }
    all_busy(actor, learner, &evidence, context)
}

fn one_process(actor: &ActorTime, learner: &LearnerTime) -> Verdict {
    let total_s = actor.total_s() + learner.total_s();
    let evidence =
        format!("acting took {} and learning {} of its time", percent(actor.total_s() / total_s), percent(learner.total_s() / total_s));
    let advice = vec!["set actor.count to 1 or more to let them run side by side (not reproducible bit for bit any more)".into()];
    Verdict { bottleneck: Bottleneck::OneProcess, evidence, advice }
}

fn all_busy(actor: &ActorTime, learner: &LearnerTime, evidence: &str, context: &Context) -> Verdict {
    let mut advice = Vec::new();
    let processes = context.actors + context.learners;
    if processes > context.cores {
        advice.push(format!("lower actor.count (now {}): {processes} processes share {} cores", context.actors, context.cores));
    } else if let Some(free) = free_cores(context) {
        advice.push(format!("raise actor.count (now {}) and learner.count (now {}), {free}", context.actors, context.learners));
    }
    advice.push("shrink network.hidden".into());
    let evidence = format!("{evidence} ({}, {})", actor_work(actor), learner_work(learner));
    Verdict { bottleneck: Bottleneck::Cores, evidence, advice }
}

/// Ways to speed learning up, for the part of the learners' work that takes longest.
fn faster_learners(learner: &LearnerTime, context: &Context) -> Vec<String> {
    match longest(&learner_parts(learner)) {
        EXCHANGE => vec![format!("lower learner.count (now {}), whose gradients wait for each other", context.learners)],
        REPLAY => vec!["raise replay.fanout or lower learner.batch_size".into()],
        PUBLISH => vec!["raise learner.publish_interval_updates".into()],
        _ => {
            let more = free_cores(context).map(|free| format!("add learners (learner.count = {}, {free})", context.learners));
            std::iter::once("shrink network.hidden".into()).chain(more).collect()
        }
    }
}

/// Ways to speed acting up, for the part of the actors' work that takes longest.
fn faster_actors(actor: &ActorTime, context: &Context) -> Vec<String> {
    let more = free_cores(context).map(|free| format!("add actors (actor.count = {}, {free})", context.actors));
    let for_part: Option<String> = match longest(&actor_parts(actor)) {
        INFERENCE => Some("raise actor.environments, so that one inference serves more of them".into()),
        INSERT => Some("raise actor.flush_transitions".into()),
        _ if more.is_none() => Some(format!("use more cores, for all {} are taken, or a faster environment", context.cores)),
        _ => None,
    };
    more.into_iter().chain(for_part).collect()
}

fn free_cores(context: &Context) -> Option<String> {
    match context.cores.saturating_sub(context.actors + context.learners) {
        0 => None,
        1 => Some("1 core free".into()),
        free => Some(format!("{free} cores free")),
    }
}

const ENVIRONMENT: &str = "stepping environments";
const INFERENCE: &str = "inference";
const INSERT: &str = "inserting";
const REPLAY: &str = "replay";
const COMPUTE: &str = "gradients";
const EXCHANGE: &str = "gradient exchange";
const PUBLISH: &str = "publishing";

fn actor_parts(time: &ActorTime) -> [(&'static str, f64); 3] {
    [(ENVIRONMENT, time.environment_s), (INFERENCE, time.inference_s), (INSERT, time.insert_s)]
}

fn learner_parts(time: &LearnerTime) -> [(&'static str, f64); 4] {
    [(COMPUTE, time.compute_s), (REPLAY, time.replay_s), (EXCHANGE, time.exchange_s), (PUBLISH, time.publish_s)]
}

fn longest(parts: &[(&'static str, f64)]) -> &'static str {
    parts.iter().copied().max_by(|a, b| a.1.total_cmp(&b.1)).map_or("", |(name, _)| name)
}

fn actor_work(time: &ActorTime) -> String {
    work("actors", &actor_parts(time), time.total_s())
}

fn learner_work(time: &LearnerTime) -> String {
    work("learners", &learner_parts(time), time.total_s())
}

/// For instance `learners: 80 % gradients`.
fn work(role: &str, parts: &[(&'static str, f64)], total_s: f64) -> String {
    let name = longest(parts);
    let seconds = parts.iter().find(|part| part.0 == name).map_or(0.0, |part| part.1);
    format!("{role}: {} {name}", percent(share(seconds, total_s)))
}

fn share(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 0.0 }
}

#[cfg(test)]
#[path = "bottleneck_tests.rs"]
mod tests;
