//! What to change against a bottleneck: keys with values, in the form in which `--set` takes them.
//!
//! `tests/runs/bottleneck_advice.rs` follows each kind of advice with the real programs.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::period::{ENVIRONMENT, INFERENCE, INSERT, Period};
use super::{Context, WAITING_FROM, share};
use crate::config::{Config, Key, LEAST_TRANSITIONS_PER_LEARNER, RowKind};
use crate::readable::{percent, short};

/// Cores that must have been idle, on average, before one more process is worth it.
pub(super) const IDLE_FROM: f64 = 0.5;
/// Actors that sleep for more of their time than this leave room for others on the same core.
const ASLEEP_FROM: f64 = 0.5;
/// Learners that exchange gradients for more of their time than this are too many.
const EXCHANGE_FROM: f64 = 0.3;
/// Parts of a learner's work that take more of its time than this are worth lowering.
const MUCH_FROM: f64 = 0.2;
/// From this many transitions on, the fixed cost of a flush hardly counts.
const LARGE_PORTION: usize = 64;
/// Up to this batch, a pass through layers of some hundred units takes a GPU about as long as a pass with fewer rows.
/// Measured: docs/performance.md.
const LARGEST_BATCH_ON_GPU: usize = 4_096;
/// How many times as much of something to try.
const FACTOR: usize = 4;

/// Something to try: all its changes together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Advice {
    /// The keys to change.
    pub set: Vec<KeyChange>,
    /// Why, and what else it changes.
    pub why: String,
}

/// A key of the configuration with a new value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyChange {
    /// The key.
    pub key: String,
    /// Its value in this run.
    pub now: String,
    /// The value to try.
    pub to: String,
}

impl fmt::Display for Advice {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let settings: Vec<String> = self.set.iter().map(|KeyChange { key, now, to }| format!("set {key}={to} (now {now})")).collect();
        write!(formatter, "{}: {}", settings.join(" and "), self.why)
    }
}

fn advice(key: &'static str, now: impl fmt::Display, to: impl fmt::Display, why: impl Into<String>) -> Advice {
    Advice { set: vec![KeyChange { key: key.into(), now: now.to_string(), to: to.to_string() }], why: why.into() }
}

/// Advice to raise `key` to `wanted`, or as far as it may go, if that is more than `now`.
fn more(key: &'static str, now: usize, wanted: usize, why: impl Into<String>) -> Option<Advice> {
    let to = wanted.min(Key::most_of(key));
    (to > now).then(|| advice(key, now, to, why))
}

/// Ways to make learning faster.
pub(super) fn faster_learners(period: &Period, context: &Context) -> Vec<Advice> {
    let config = &context.config;
    let count = config.learner.count;
    let mut all = Vec::new();
    if count > 1 && period.exchange() >= EXCHANGE_FROM {
        all.push(fewer_learners(config, period));
    } else if let Some(to) = more_learners(config, period.idle_cores(context)) {
        let idle = short(period.idle_cores(context));
        let why = format!("{idle} cores were idle, and each learner then computes less of every batch");
        all.push(advice("learner.count", count, to, why));
    }
    let core_wait = share(period.learner.core_wait_s, period.learner.core_wait_s + period.learner.processor_s);
    if config.replay.samples_per_insert.is_none() && core_wait >= WAITING_FROM && config.actor.count > 1 {
        let why = format!("in {} of the time in which learners had work, they waited for a core that actors had", percent(core_wait));
        all.push(advice("actor.count", config.actor.count, config.actor.count / 2, why));
    }
    if share(period.learner.compute_s, period.learner.total_s()) >= MUCH_FROM {
        all.extend(larger_batch(config));
        all.extend(smaller_network(period, context));
    }
    all
}

/// A larger batch, for learners on GPUs: the cost of a pass there hardly depends on its size.
fn larger_batch(config: &Config) -> Option<Advice> {
    let now = config.learner.batch_size;
    let to = FACTOR * now;
    if !config.learner.uses_gpus_alone() || to > LARGEST_BATCH_ON_GPU {
        return None;
    }
    let why = "a GPU takes more at once in little more time, which changes what is learned; with today's batch a core may be faster";
    let mut larger = advice("learner.batch_size", now, to, why);
    if config.row_kind() == RowKind::Transitions && config.replay.min_size < to {
        larger.set.extend(advice("replay.min_size", config.replay.min_size, to, "").set);
    }
    // Where nobody has set the batch of PPO, its parts follow it, and would no longer once it is set.
    if config.learns_in_parts() {
        let parts = config.algorithm.minibatches;
        larger.set.extend(advice("algorithm.minibatches", parts, parts, "").set);
    }
    // Where nobody has set it, the ratio of DDPG, TD3 and SAC would follow the batch, and each step take as many updates as before.
    if config.has_critics()
        && let Some(ratio) = config.replay.samples_per_insert
    {
        larger.set.extend(advice("replay.samples_per_insert", ratio, ratio, "").set);
    }
    Some(larger)
}

fn fewer_learners(config: &Config, period: &Period) -> Advice {
    let now = config.learner.count;
    let to = (1..=now / 2).rev().find(|&count| can_share_batch(config, count)).unwrap_or(1);
    let why = format!("exchanging gradients and waiting for the slowest learner took {} of their time", percent(period.exchange()));
    advice("learner.count", now, to, why)
}

/// The next number of learners that can share the batch and that the idle cores can carry. `None` on a GPU, where the
/// parts of a batch take as long as the whole.
fn more_learners(config: &Config, idle_cores: f64) -> Option<usize> {
    if config.learner.uses_gpu() {
        return None;
    }
    let now = config.learner.count;
    let most = now + if idle_cores >= IDLE_FROM { rounded(idle_cores) } else { 0 };
    let is_worth_it = |count: usize| config.transitions_per_learner(count) >= LEAST_TRANSITIONS_PER_LEARNER;
    (now + 1..=most).find(|&count| can_share_batch(config, count) && is_worth_it(count))
}

/// Whether every one of `count` learners can have an equal share of the batch, of whole rows.
fn can_share_batch(config: &Config, count: usize) -> bool {
    let row = if config.row_kind() == RowKind::Fragments { config.fragments.length_steps } else { 1 };
    config.learner.batch_size.is_multiple_of(count * row)
}

/// Adds the price of advice for more environments than a batch has fragments: some fragments then wait, and the policy
/// that made them is older when they are learned from. A batch of PPO that nobody has configured grows instead; whether
/// it was configured is not known here.
pub(super) fn warn_of_older_fragments(advice: &mut Advice, config: &Config) {
    let actors = config.actor.count.max(1);
    let environments = config.actor.environments;
    let advised =
        |key: &str, now: usize| advice.set.iter().find(|change| change.key == key).and_then(|change| change.to.parse().ok()).unwrap_or(now);
    let wanted = advised("actor.count", actors) * advised("actor.environments", environments);
    if config.row_kind() == RowKind::Fragments && wanted > (actors * environments).max(config.fragments_per_batch()) {
        advice.why += if config.learns_in_parts() {
            ", which changes what is learned: the batch grows with the environments or, if it is configured, fragments are older when \
             they are learned from"
        } else {
            ", and fragments are older when they are learned from, which changes what is learned"
        };
    }
}

/// Ways to make acting faster.
pub(super) fn faster_actors(period: &Period, context: &Context) -> Vec<Advice> {
    let actor = &context.config.actor;
    let longest = period.longest_of_acting();
    let mut all = Vec::new();
    if longest == ENVIRONMENT && period.actors_asleep() >= ASLEEP_FROM {
        let why = format!("environments slept {} of the actors' time, which costs no core", percent(period.actors_slept()));
        all.extend(more("actor.count", actor.count, actor.count * FACTOR, why));
        return all;
    }
    if longest == INFERENCE {
        let why = "one inference then serves more environments";
        all.extend(more("actor.environments", actor.environments, actor.environments * FACTOR, why));
    }
    if longest == INSERT && actor.flush_transitions < LARGE_PORTION {
        let why = "transitions then go into the replay in larger portions";
        all.push(advice("actor.flush_transitions", actor.flush_transitions, LARGE_PORTION, why));
    }
    let idle = period.idle_cores(context);
    if idle >= IDLE_FROM {
        let why = format!("{} of {} cores were idle", short(idle), short(context.cores));
        all.extend(more("actor.count", actor.count, actor.count + rounded(idle), why));
    }
    all
}

/// Ways to need less time when no process waits for another.
pub(super) fn less_work(period: &Period, context: &Context) -> Vec<Advice> {
    let config = &context.config;
    let idle = period.idle_cores(context);
    let mut all = Vec::new();
    if let Some(learners) = more_learners(config, idle / 2.0) {
        let mut both = advice("learner.count", config.learner.count, learners, "cores were idle, and both sides can use them");
        both.set.extend(advice("actor.count", config.actor.count, config.actor.count * 2, "").set);
        all.push(both);
    }
    all.extend(smaller_network(period, context));
    all
}

/// Less to compute; `None` if other programs have the cores, since what is learned need not change for their sake.
fn smaller_network(period: &Period, context: &Context) -> Option<Advice> {
    if period.is_crowded_out(context) {
        return None;
    }
    let hidden = &context.config.network.hidden;
    let halved: Vec<usize> = hidden.iter().map(|&units| (units / 2).max(1)).collect();
    // Without spaces, so that users can paste it behind `--set`.
    let [now, to] = [hidden, &halved].map(|units| format!("{units:?}").replace(' ', ""));
    Some(advice("network.hidden", now, to, "a smaller network is faster and changes what is learned"))
}

/// Fewer samples per insert, for learners that are behind.
pub(super) fn fewer_samples(ratio: f64) -> Advice {
    let why = "more environment steps for the same updates; each transition is learned from less often, which changes what is learned";
    advice("replay.samples_per_insert", ratio, ratio / 2.0, why)
}

/// Fewer uses of each batch, for learners that are behind and use it several times.
pub(super) fn fewer_uses(config: &Config) -> Option<Advice> {
    let (key, now) = config.uses_of_fragments()?;
    let why = "each step is learned from less often, which changes what is learned";
    (now > 1).then(|| advice(key, now, now / 2, why))
}

/// More samples per insert, for learners that have time.
pub(super) fn more_samples(ratio: f64) -> Advice {
    let why = "more updates for the same environment steps; each transition is learned from more often, which changes what is learned";
    advice("replay.samples_per_insert", ratio, ratio * 2.0, why)
}

/// Samples per insert, for a run without a rate limiter.
pub(super) fn limit_samples(ratio: f64, why: &str) -> Advice {
    advice("replay.samples_per_insert", "\"none\"", ratio, format!("{why}, which changes what is learned"))
}

/// Actors that wait, for a run that overwrites fragments which nobody learned from.
pub(super) fn wait_for_learners() -> Advice {
    advice("fragments.on_full", "drop_oldest", "wait", "actors then wait instead of overwriting what nobody learned from")
}

/// A wider error band, so that each side may run further ahead of the other.
pub(super) fn wider_band(context: &Context) -> Option<Advice> {
    let now = context.config.effective_error_band()?;
    Some(advice("replay.error_band", now, now * FACTOR as f64, "each side may then run further ahead of the other"))
}

/// Room for more fragments that wait, so that actors may run further ahead of learners.
pub(super) fn more_waiting_fragments(config: &Config) -> Option<Advice> {
    let now = config.fragment_capacity();
    let why = "actors may then run further ahead, and fragments are older when they are learned from, which changes what is learned";
    // A capacity that nobody configured may be below all that the key takes.
    more("fragments.capacity", now, (now * FACTOR).max(config.least_fragments()), why)
}

/// Processes of their own for acting and learning.
pub(super) fn several_processes(context: &Context) -> Advice {
    let why = "acting and learning then go on side by side, no longer reproducible bit for bit";
    advice("actor.count", context.config.actor.count, 1, why)
}

/// Whole cores, at least one.
fn rounded(cores: f64) -> usize {
    (cores.round() as usize).max(1)
}
