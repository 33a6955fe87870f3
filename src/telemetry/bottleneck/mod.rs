//! What held a run back, from where its processes spent their time, and which key of the configuration to change.
//!
//! Wall time says who waited for whom, and processor time says what kind of time that was. A process that steps
//! environments all the time may compute, may sleep while a simulator elsewhere works, or may wait for a core. More
//! processes help in the second case, whatever the number of cores, and harm in the third.

mod advice;
mod judged;
mod period;

use std::fmt;

use serde::{Deserialize, Serialize};

pub use advice::{Advice, KeyChange};
pub(crate) use judged::{Judged, as_training_ended};

use self::period::Period;
use super::{RunRecord, Snapshot, share};
use crate::config::schema::OnFull;
use crate::config::{Config, RowKind};
use crate::readable::{self, counted, percent, short};

/// A side that waits for less of its time than this is busy.
const WAITING_FROM: f64 = 0.2;
/// When both sides wait, one is the bottleneck if the other waits this many times as much.
const CLEARLY_MORE: f64 = 2.0;
/// Without a rate limiter, fewer samples per insert than this mean that transitions are overwritten before anybody
/// learns from them.
const TOO_FEW_SAMPLES: f64 = 1.0;
/// With less time of processes than this, shares of it mean nothing.
const LEAST_TIME_S: f64 = 1.0;
/// From this share on, fragments that were dropped are reported.
const DROPPED_FROM: f64 = 0.05;
/// Actors or learners that worked for less of the time than this, while processes were replaced, were mostly not there.
const PRESENT_FROM: f64 = 0.7;

/// What a run was given: the advice depends on it.
#[derive(Debug, Clone, PartialEq)]
pub struct Context {
    /// The resolved configuration.
    pub config: Config,
    /// Cores that the run may use: a control group may leave it a part of one.
    pub cores: f64,
    /// Cores of the machine, whoever may use them.
    pub machine_cores: usize,
    /// Whether the run fits itself to the machine, so that the number of actors in `config` may be only its latest.
    pub adapts: bool,
}

impl Context {
    /// The context of a run that begins as `config` says, on a machine with this many cores.
    pub fn new(config: Config, cores: usize) -> Self {
        Self { adapts: config.adaptation.enabled, config, cores: cores as f64, machine_cores: cores }
    }

    /// The context of a run that begins as `config` says, on the cores that its record has noted.
    pub fn of_run(config: Config, record: &RunRecord) -> Self {
        Self { cores: record.usable_cores, ..Self::new(config, record.machine_cores) }
    }
}

/// What limited the throughput.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Bottleneck {
    /// Learners were busy while actors waited for them.
    Learners,
    /// Actors were busy while learners waited for them.
    Actors,
    /// Each side kept waiting for the other: a rate limiter holds samples per insert.
    RateLimiter,
    /// Each side kept waiting for the other: learners for fragments, actors for learners to take them.
    Turns,
    /// Nobody waited for anybody: only more or faster cores, or less work, help.
    Cores,
    /// One process did everything in turn.
    OneProcess,
    /// Processes failed, and much of the time went by before their replacements worked.
    Failures,
    /// The run was too short to tell.
    Unknown,
}

/// The bottleneck with its evidence; `Display` makes one sentence of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Diagnosis {
    /// What it was.
    pub bottleneck: Bottleneck,
    /// The figures that show it.
    pub evidence: String,
    /// What to change, most promising first: one of them at a time.
    pub advice: Vec<Advice>,
}

impl fmt::Display for Diagnosis {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self.bottleneck {
            Bottleneck::Learners => "learner-bound",
            Bottleneck::Actors => "actor-bound",
            Bottleneck::RateLimiter => "bound by the rate limiter",
            Bottleneck::Turns => "acting and learning take turns",
            Bottleneck::Cores => "bound by the cores",
            Bottleneck::OneProcess => "bound by the single process",
            Bottleneck::Failures => "held back by failures",
            Bottleneck::Unknown => "no bottleneck to name",
        };
        write!(formatter, "{name}: {}", self.evidence)?;
        for (index, advice) in self.advice.iter().enumerate() {
            let or = if index == 0 { "" } else { "or " };
            write!(formatter, "; {or}{advice}")?;
        }
        Ok(())
    }
}

/// The clock by which the time between two moments is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Clock {
    /// Seconds since the run started.
    Wall,
    /// Seconds of training.
    Training,
}

impl Clock {
    fn seconds_at(self, moment: &Snapshot) -> f64 {
        match self {
            Self::Wall => moment.wall_s,
            Self::Training => moment.training_s,
        }
    }

    fn seconds_between(self, before: &Snapshot, now: &Snapshot) -> f64 {
        self.seconds_at(now) - self.seconds_at(before)
    }
}

/// Judges the time from `started` to `now`, measured by `clock`.
///
/// `first` is the first moment of this life of the run. `started` is the first moment from which learning went on
/// steadily: what happened before, such as filling the replay while learners wait, says nothing about learning. If the
/// run ended before that, `started` is `None` and all the time since `first` counts.
pub fn verdict_since(first: &Snapshot, started: Option<&Snapshot>, now: &Snapshot, clock: Clock, context: &Context) -> Diagnosis {
    let period = Period::between(started.unwrap_or(first), now, clock);
    if let Some(verdict) = failures(&period, context) {
        return verdict;
    }
    if started.is_none() || period.actor.total_s() + period.learner.total_s() < LEAST_TIME_S {
        let updates = now.updates.saturating_sub(first.updates);
        let took = readable::clock(clock.seconds_between(first, now));
        let evidence = format!("too short a time to judge, with {updates} updates in {took}");
        return Diagnosis { bottleneck: Bottleneck::Unknown, evidence, advice: Vec::new() };
    }
    let mut verdict = match samples_per_insert(&context.config) {
        _ if context.config.is_synchronous() => one_process(&period, context),
        Some(ratio) => limited(&period, ratio, context),
        None if context.config.row_kind() == RowKind::Fragments => overwriting(&period, context),
        None => free_running(&period, context),
    };
    if period.is_crowded_out(context) {
        let (used, waited) = (used_cores(&period, context), percent(period.core_wait_share()));
        let told = format!("; {used} and waited for one in {waited} of the time in which it had work: other programs take them");
        verdict.evidence.push_str(&told);
    }
    let dropped = share(period.dropped as f64, period.inserted as f64).min(1.0);
    // If actors overwrite instead of waiting, the evidence already names what was dropped.
    if context.config.fragments.on_full == OnFull::Wait && dropped >= DROPPED_FROM {
        let most = context.config.fragments.max_policy_lag_updates;
        let of_age =
            format!("; {} of the fragments were dropped as older than fragments.max_policy_lag_updates = {most}", percent(dropped));
        verdict.evidence.push_str(&of_age);
    }
    // Advice must change something, and must be a configuration that the algorithm and the other keys allow.
    let written = context.config.to_toml();
    let override_of = |setting: &KeyChange| format!("{}={}", setting.key, setting.to);
    let is_allowed = |advice: &Advice| Config::parse(&written, "", &advice.set.iter().map(override_of).collect::<Vec<_>>()).is_ok();
    verdict.advice.retain(|advice| advice.set.iter().any(|setting| setting.to != setting.now) && is_allowed(advice));
    verdict.advice.iter_mut().for_each(|advice| advice::warn_of_older_fragments(advice, &context.config));
    verdict
}

/// Samples per insert that the rate limiter holds; `None` without one. Fragments for which actors wait are each taken
/// once.
fn samples_per_insert(config: &Config) -> Option<f64> {
    match config.row_kind() {
        RowKind::Transitions => config.replay.samples_per_insert,
        RowKind::Fragments => (config.fragments.on_full == OnFull::Wait).then_some(1.0),
    }
}

/// The verdict on a run whose processes kept failing, which left too little time to see anything else.
fn failures(period: &Period, context: &Context) -> Option<Diagnosis> {
    if context.config.is_synchronous() {
        // The run ends with its only process.
        return None;
    }
    let presence = |worked_s: f64, count: usize| share(worked_s, period.elapsed_s * count.max(1) as f64);
    let actors = if context.adapts { 1.0 } else { presence(period.actor.total_s(), context.config.actor.count) };
    let learners = presence(period.learner.total_s(), context.config.learner.processes());
    if period.restarts == 0 || actors.min(learners) >= PRESENT_FROM {
        return None;
    }
    let (role, worked) = if actors < learners { ("actors", actors) } else { ("learners", learners) };
    let evidence = format!(
        "{} in the time judged, and {role} worked for only {} of that time; run.log says how processes failed",
        counted(period.restarts as usize, "death"),
        percent(worked)
    );
    Some(Diagnosis { bottleneck: Bottleneck::Failures, evidence, advice: Vec::new() })
}

fn limited(period: &Period, ratio: f64, context: &Context) -> Diagnosis {
    let actors_wait = share(period.actor.limiter_wait_s, period.actor.total_s());
    let learners_wait = share(period.learner.limiter_wait_s, period.learner.total_s());
    let (actors_waited, learners_waited) = (percent(actors_wait), percent(learners_wait));
    let (actors_wait_for, learners_wait_for) = match context.config.row_kind() {
        RowKind::Transitions => ("the rate limiter", "new transitions"),
        RowKind::Fragments => ("learners to take a batch", "new fragments"),
    };
    if actors_wait >= WAITING_FROM && actors_wait >= CLEARLY_MORE * learners_wait {
        let mut advice = advice::faster_learners(period, context);
        advice.push(advice::fewer_samples(ratio));
        advice.extend(advice::fewer_uses(&context.config));
        let evidence = format!(
            "actors waited {actors_waited} of their time for {actors_wait_for}, learners {learners_waited} ({})",
            period.learner_work()
        );
        return Diagnosis { bottleneck: Bottleneck::Learners, evidence, advice };
    }
    if learners_wait >= WAITING_FROM && learners_wait >= CLEARLY_MORE * actors_wait {
        let mut advice = advice::faster_actors(period, context);
        advice.push(advice::more_samples(ratio));
        let evidence = format!(
            "learners waited {learners_waited} of their time for {learners_wait_for}, actors {actors_waited} ({})",
            period.actor_work()
        );
        return Diagnosis { bottleneck: Bottleneck::Actors, evidence, advice };
    }
    if actors_wait >= WAITING_FROM {
        let waited = format!("actors waited {actors_waited} and learners {learners_waited} of their time for each other");
        if period.spare_cores(context.cores) < advice::IDLE_FROM {
            return all_busy(period, &format!("{waited}, since they have to take turns"), context);
        }
        return match context.config.row_kind() {
            RowKind::Transitions => {
                let evidence = format!("{waited} at {} samples per insert", short(ratio));
                Diagnosis { bottleneck: Bottleneck::RateLimiter, evidence, advice: advice::wider_band(context).into_iter().collect() }
            }
            RowKind::Fragments => {
                let advice = advice::more_waiting_fragments(&context.config).into_iter().collect();
                Diagnosis { bottleneck: Bottleneck::Turns, evidence: waited, advice }
            }
        };
    }
    let evidence = format!("waiting took only {actors_waited} of the actors' time and {learners_waited} of the learners'");
    all_busy(period, &evidence, context)
}

fn free_running(period: &Period, context: &Context) -> Diagnosis {
    let ratio = share(period.sampled as f64, period.inserted as f64);
    let evidence = format!("running free, learners drew {} samples per inserted transition", short(ratio));
    if period.inserted > 0 && ratio < TOO_FEW_SAMPLES {
        let mut advice = advice::faster_learners(period, context);
        advice.push(advice::limit_samples(8.0, "so that actors wait instead of overwriting what nobody learned from"));
        return Diagnosis { bottleneck: Bottleneck::Learners, evidence: format!("{evidence} ({})", period.learner_work()), advice };
    }
    // With more than by default, learners repeat old transitions for want of new ones.
    let usual = context.config.usual_samples_per_insert();
    if period.inserted == 0 || ratio > usual {
        let mut advice = advice::faster_actors(period, context);
        advice.push(advice::limit_samples(usual, "so that learners do not repeat old transitions"));
        return Diagnosis { bottleneck: Bottleneck::Actors, evidence: format!("{evidence} ({})", period.actor_work()), advice };
    }
    all_busy(period, &evidence, context)
}

/// The verdict on a run whose actors overwrite fragments that no learner has taken. Each fragment is taken once at
/// most, so samples per insert say nothing here.
fn overwriting(period: &Period, context: &Context) -> Diagnosis {
    let dropped = share(period.dropped as f64, period.inserted as f64).min(1.0);
    let learners_wait = share(period.learner.limiter_wait_s, period.learner.total_s());
    let evidence = format!(
        "running free, {} of the fragments were dropped, and learners waited {} of their time for new ones",
        percent(dropped),
        percent(learners_wait)
    );
    match (learners_wait >= WAITING_FROM, dropped >= WAITING_FROM) {
        (true, false) => {
            let advice = advice::faster_actors(period, context);
            Diagnosis { bottleneck: Bottleneck::Actors, evidence: format!("{evidence} ({})", period.actor_work()), advice }
        }
        (false, true) => {
            let mut advice = advice::faster_learners(period, context);
            advice.extend(advice::fewer_uses(&context.config));
            advice.push(advice::wait_for_learners());
            Diagnosis { bottleneck: Bottleneck::Learners, evidence: format!("{evidence} ({})", period.learner_work()), advice }
        }
        // If learners waited and fragments were dropped, actors bring many at once, or too old ones: more of neither
        // side helps.
        _ => all_busy(period, &evidence, context),
    }
}

fn one_process(period: &Period, context: &Context) -> Diagnosis {
    let (actor_s, learner_s) = (period.actor.total_s(), period.learner.total_s());
    let total_s = actor_s + learner_s;
    let evidence = format!("acting took {} and learning {} of its time", percent(actor_s / total_s), percent(learner_s / total_s));
    Diagnosis { bottleneck: Bottleneck::OneProcess, evidence, advice: vec![advice::several_processes(context)] }
}

fn all_busy(period: &Period, evidence: &str, context: &Context) -> Diagnosis {
    // Of a run that did not get its cores, the verdict says so whatever its bottleneck was.
    let used = if period.is_crowded_out(context) { String::new() } else { format!("; {}", used_cores(period, context)) };
    let evidence = format!("{evidence} ({}, {}{used})", period.actor_work(), period.learner_work());
    Diagnosis { bottleneck: Bottleneck::Cores, evidence, advice: advice::less_work(period, context) }
}

fn used_cores(period: &Period, context: &Context) -> String {
    format!("the run used {} of {} cores", short(period.used_cores()), short(context.cores))
}

#[cfg(test)]
mod tests;
