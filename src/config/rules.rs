//! The conditions between several keys, each with the sentence that documents it.

use super::automatic::largest_first_batch;
use super::key::Key;
use super::schema::{AfterSupervisor, Config, Engine, Exploration, FRAGMENT_ALGORITHMS, KeepReplay, OnFull, Split, TRANSITION_ALGORITHMS};
use crate::segment::membership::MOST_HALVINGS;

/// One condition between keys.
pub(crate) struct Rule {
    /// The keys concerned. An error points at the first of them that an override sets, else at the first that the
    /// file sets.
    pub(crate) keys: &'static [&'static str],
    /// The condition, for the reference.
    pub(crate) doc: &'static str,
    /// The algorithms for which the condition has to hold; empty for all. Algorithms that a program adds count as
    /// learning from transitions.
    pub(crate) algorithms: &'static [&'static str],
    /// What is wrong and what to do, if the condition does not hold.
    pub(crate) violation: fn(&Config) -> Option<String>,
}

impl Rule {
    /// Whether the condition has to hold for `algorithm`.
    pub(crate) fn concerns(&self, algorithm: &str) -> bool {
        let is_own = !Key::any_names(algorithm);
        self.algorithms.is_empty() || self.algorithms.contains(&algorithm) || is_own && self.algorithms == TRANSITION_ALGORITHMS
    }
}

/// Every condition between keys.
pub(crate) const RULES: &[Rule] = &[
    Rule {
        keys: &["replay.min_size", "replay.capacity"],
        doc: "`replay.min_size` is at most `replay.capacity`, or sampling would never begin.",
        algorithms: &TRANSITION_ALGORITHMS,
        violation: |config| {
            let (min_size, capacity) = (config.replay.min_size, config.replay.capacity);
            (min_size > capacity).then(|| {
                format!(
                    "replay.min_size {min_size} exceeds replay.capacity {capacity}, so sampling would never begin; lower \
                     replay.min_size or raise replay.capacity"
                )
            })
        },
    },
    Rule {
        keys: &["replay.initial_priority", "algorithm.normalise_rewards", "replay.prioritized"],
        doc: "With `algorithm.normalise_rewards` and `replay.prioritized`, `replay.initial_priority` is `\"max\"`. Actors have unscaled \
              rewards but values of scaled ones, so their temporal-difference errors would mean nothing.",
        algorithms: &TRANSITION_ALGORITHMS,
        violation: |config| {
            (config.estimates_priorities() && config.algorithm.normalise_rewards).then(|| {
                "with algorithm.normalise_rewards an actor has unscaled rewards but values of scaled ones, so its temporal-difference \
                 errors mean nothing; use replay.initial_priority = \"max\", or set algorithm.normalise_rewards to false"
                    .into()
            })
        },
    },
    Rule {
        keys: &["adaptation.largest_batch", "learner.batch_size", "replay.min_size"],
        doc: "`learner.batch_size` is at most `replay.min_size`, and so is `adaptation.largest_batch`, so that the first batch need not \
              repeat transitions.",
        algorithms: &TRANSITION_ALGORITHMS,
        violation: |config| {
            let (batch_size, min_size) = (config.largest_batch(), config.replay.min_size);
            let key = if batch_size > config.learner.batch_size { "adaptation.largest_batch" } else { "learner.batch_size" };
            (batch_size > min_size).then(|| {
                format!(
                    "{key} {batch_size} exceeds replay.min_size {min_size}, so the first batches would repeat transitions; lower {key}, or \
                     raise replay.min_size to at least {batch_size} (a run that goes on keeps its own)"
                )
            })
        },
    },
    Rule {
        keys: &["learner.batch_size", "learner.count"],
        doc: "`learner.batch_size` is a multiple of `learner.count`: every learner draws the same share.",
        algorithms: &TRANSITION_ALGORITHMS,
        violation: |config| {
            let (batch_size, count) = (config.learner.batch_size, config.learner.count);
            (!batch_size.is_multiple_of(count)).then(|| {
                let remedy = match multiple_near(config, count) {
                    0 => "lower learner.count".to_owned(),
                    near => format!("use {near}"),
                };
                format!("a learner.batch_size of {batch_size} cannot be shared equally by {count} learners (learner.count); {remedy}")
            })
        },
    },
    Rule {
        keys: &["replay.beta_start", "replay.beta_end", "replay.prioritized"],
        doc: "With `replay.prioritized`, `replay.beta_start` is at most `replay.beta_end`.",
        algorithms: &TRANSITION_ALGORITHMS,
        violation: |config| {
            let (start, end) = (config.replay.beta_start, config.replay.beta_end);
            (config.replay.prioritized && start > end).then(|| {
                format!(
                    "replay.beta_start {start} exceeds replay.beta_end {end}, but beta only grows; lower replay.beta_start or raise \
                     replay.beta_end"
                )
            })
        },
    },
    Rule {
        keys: &[
            "replay.error_band",
            "replay.samples_per_insert",
            "actor.flush_transitions",
            "actor.environments",
            "algorithm.n_step",
            "learner.batch_size",
            "adaptation.most_environments",
            "adaptation.largest_batch",
        ],
        doc: "`replay.error_band` is at least `learner.batch_size`, and at least `replay.samples_per_insert` times the largest flush, \
              which is `actor.flush_transitions - 1 + actor.environments * algorithm.n_step` transitions. A single batch or flush would \
              overstep a narrower band.",
        algorithms: &TRANSITION_ALGORITHMS,
        violation: |config| {
            let (band, ratio, least) = (config.replay.error_band?, config.replay.samples_per_insert?, config.least_error_band()?);
            let (batch_size, flush) = (config.largest_batch(), config.largest_flush_transitions());
            (band < least).then(|| {
                let ends = [("adaptation.largest_batch", batch_size as f64), ("adaptation.most_environments", ratio * flush as f64)];
                let beyond: Vec<&str> = ends.into_iter().filter(|&(_, samples)| samples > band).map(|(key, _)| key).collect();
                // To lower the upper ends of the ranges helps only if the band has room for the batch and the flush
                // with which the run begins.
                let mut at_first = config.clone();
                at_first.adaptation.enabled = false;
                let begins_within = at_first.least_error_band().is_some_and(|least| least <= band);
                let lower = if begins_within { format!(", or lower {}", beyond.join(" and ")) } else { String::new() };
                format!(
                    "a replay.error_band of {band} samples is too narrow for batches of {batch_size} and flushes of up to {flush} \
                     transitions: one alone would leave it; use at least {least}, or \"none\"{lower}"
                )
            })
        },
    },
    Rule {
        keys: &[
            "replay.capacity",
            "adaptation.most_actors",
            "adaptation.most_environments",
            "actor.count",
            "actor.environments",
            "actor.flush_transitions",
            "actor.attach_slots",
            "algorithm.n_step",
        ],
        doc: "`replay.capacity` is at least the largest flush times `actor.count + actor.attach_slots` (once, where `actor.count` is 0), \
              so that no two flushes in flight share a slot.",
        algorithms: &TRANSITION_ALGORITHMS,
        violation: |config| {
            let (capacity, flight) = (config.replay.capacity, config.most_transitions_in_flight());
            let actor = &config.actor;
            let (actors, environments) = (config.most_actors(), config.most_environments());
            let actors_key = if actors > actor.count.max(1) { "adaptation.most_actors" } else { "actor.count" };
            let environments_key = if environments > actor.environments { "adaptation.most_environments" } else { "actor.environments" };
            (capacity < flight).then(|| {
                format!(
                    "a replay.capacity of {capacity} is less than the {flight} transitions that can be written at once, up to {} by each \
                     of {actors_key} {actors} and actor.attach_slots {}, for actor.flush_transitions {}, {environments_key} {environments} \
                     and algorithm.n_step {}; raise replay.capacity or lower one of these",
                    config.largest_flush_transitions(),
                    config.places_to_attach(),
                    actor.flush_transitions,
                    config.algorithm.n_step,
                )
            })
        },
    },
    Rule {
        keys: &["learner.count", "actor.count"],
        doc: "With `actor.count = 0` everything runs in one process, so `learner.count` is 1.",
        algorithms: &[],
        violation: |config| {
            let count = config.learner.count;
            (config.actor.count == 0 && count > 1).then(|| {
                format!(
                    "a learner.count of {count} contradicts actor.count 0, which runs everything in one process; set learner.count to \
                     1 or actor.count to at least 1"
                )
            })
        },
    },
    Rule {
        keys: &["learner.split", "learner.count"],
        doc: "With a `learner.split` there are two learners, one for each half, so `learner.count` is 1.",
        algorithms: &[],
        violation: |config| {
            let count = config.learner.count;
            (config.learner.split != Split::None && count > 1).then(|| {
                format!(
                    "a learner.count of {count} contradicts learner.split \"actor_critic\", whose two halves are a learner each; set \
                     learner.count to 1 or learner.split to \"none\""
                )
            })
        },
    },
    Rule {
        keys: &["learner.split", "actor.count"],
        doc: "With `actor.count = 0` everything runs in one process, so `learner.split` is `\"none\"`.",
        algorithms: &[],
        violation: |config| {
            (config.learner.split != Split::None && config.actor.count == 0).then(|| {
                "learner.split \"actor_critic\" contradicts actor.count 0, which runs everything in one process; set learner.split to \
                 \"none\" or actor.count to at least 1"
                    .to_owned()
            })
        },
    },
    Rule {
        keys: &["learner.device", "learner.count", "learner.split"],
        doc: "`learner.device` names one device, or one for each learner: `learner.count`, or the two halves of a `learner.split`.",
        algorithms: &[],
        violation: |config| {
            let (devices, learners) = (config.learner.devices().len(), config.learner.processes());
            (devices > 1 && devices != learners).then(|| {
                format!(
                    "learner.device names {devices} devices for {learners} {}; name one for all of them, or one for each",
                    if learners == 1 { "learner" } else { "learners" }
                )
            })
        },
    },
    Rule {
        keys: &["network.engine", "learner.device"],
        doc: "`network.engine = \"cpu\"` computes on the CPU, so `learner.device` is `\"cpu\"`.",
        algorithms: &[],
        violation: |config| {
            let device = &config.learner.device;
            (config.network.engine == Engine::Cpu && config.learner.uses_gpu()).then(|| {
                format!(
                    "network.engine \"cpu\" cannot compute on learner.device \"{device}\"; set network.engine to \"torch\" or \
                     learner.device to \"cpu\""
                )
            })
        },
    },
    Rule {
        keys: &["checkpoint.synchronous_interval_steps", "checkpoint.replay", "actor.count"],
        doc: "With `actor.count = 0`, `checkpoint.synchronous_interval_steps` needs a `checkpoint.replay` other than `\"never\"`.",
        algorithms: &[],
        violation: |config| {
            let steps = config.checkpoint.synchronous_interval_steps.filter(|_| config.actor.count == 0)?;
            (config.checkpoint.replay == KeepReplay::Never).then(|| {
                format!(
                    "checkpoints every {steps} steps of a synchronous run are there to go on from bit for bit, which takes the replay; set \
                     checkpoint.replay to \"until_completed\""
                )
            })
        },
    },
    Rule {
        keys: &["run.stop_eval_return", "evaluator.enabled"],
        doc: "`run.stop_eval_return` needs `evaluator.enabled`.",
        algorithms: &[],
        violation: |config| {
            let target = config.run.stop_eval_return?;
            (!config.evaluator.enabled).then(|| {
                format!(
                    "a run.stop_eval_return of {target} is never reached while evaluator.enabled is false, because nobody measures \
                     the return; set evaluator.enabled to true or run.stop_eval_return to \"none\""
                )
            })
        },
    },
    Rule {
        keys: &["algorithm.epsilon_end", "algorithm.exploration"],
        doc: "`algorithm.exploration = \"ape_x\"` needs an `algorithm.epsilon_end` above 0: it is the base of every rate.",
        algorithms: &[],
        violation: |config| {
            let algorithm = &config.algorithm;
            let never_explores = algorithm.exploration == Exploration::ApeX && algorithm.epsilon_end == 0.0;
            never_explores.then(|| {
                "an algorithm.epsilon_end of 0 makes every rate of algorithm.exploration \"ape_x\" 0, so no environment would explore; use \
                 0.4, as Ape-X does"
                    .to_owned()
            })
        },
    },
    Rule {
        keys: &["learner.batch_size", "fragments.length_steps", "learner.count"],
        doc: "`learner.batch_size` is a multiple of `fragments.length_steps` times `learner.count`: every learner takes the same number of \
              whole fragments.",
        algorithms: &FRAGMENT_ALGORITHMS,
        violation: |config| {
            let (batch_size, length, count) = (config.learner.batch_size, config.fragments.length_steps, config.learner.count);
            (!batch_size.is_multiple_of(length * count)).then(|| {
                let remedy = match multiple_near(config, length * count) {
                    0 => "lower fragments.length_steps or learner.count".to_owned(),
                    near => format!("use {near}"),
                };
                format!(
                    "a learner.batch_size of {batch_size} steps is no whole number of fragments of {length} steps \
                     (fragments.length_steps) for each of {count} learners (learner.count); {remedy}"
                )
            })
        },
    },
    Rule {
        keys: &["fragments.capacity", "learner.batch_size", "actor.count", "actor.environments", "actor.attach_slots"],
        doc: "`fragments.capacity` is at least one batch and what all actors can complete at once, so that neither side waits for ever.",
        algorithms: &["appo"],
        violation: |config| {
            let (capacity, least) = (config.fragments.capacity?, config.least_fragments());
            let remedy = if least <= Key::most_of("fragments.capacity") { format!("at least {least}, or ") } else { String::new() };
            (capacity < least).then(|| {
                format!(
                    "a fragments.capacity of {capacity} is less than the {least} fragments of one batch and of what the actors complete \
                     at once; use {remedy}\"none\""
                )
            })
        },
    },
    Rule {
        keys: &["fragments.replay_share", "learner.batch_size", "fragments.length_steps", "learner.count"],
        doc: "`fragments.replay_share` is 0, or large enough that each learner's part of a batch has at least one replayed fragment, \
              beside at least one new one.",
        algorithms: &["appo"],
        violation: |config| {
            let (share, part) = (config.fragments.replay_share, config.fragments_per_batch() / config.learner.count);
            let of_two_each = 2 * config.fragments.length_steps * config.learner.count;
            let remedy = match of_two_each <= Key::most_of("learner.batch_size") {
                true => format!("raise learner.batch_size to {of_two_each}"),
                false => "lower fragments.length_steps or learner.count".to_owned(),
            };
            (share > 0.0 && config.replayed_fragments() == 0).then(|| match part {
                0 | 1 => format!(
                    "with a fragments.replay_share of {share} and a single fragment for each learner nothing could be replayed; {remedy}, \
                     or set fragments.replay_share to 0"
                ),
                part => format!(
                    "a fragments.replay_share of {share} of {part} fragments for each learner is none; use at least {:.6}, or 0",
                    1.0 / part as f64
                ),
            })
        },
    },
    Rule {
        keys: &["fragments.replay_share", "fragments.on_full"],
        doc: "With `fragments.on_full = \"drop_oldest\"`, `fragments.replay_share` is 0: actors that do not wait overwrite fragments that \
              were taken, so that few are left to replay.",
        algorithms: &["appo"],
        violation: |config| {
            let share = config.fragments.replay_share;
            (share > 0.0 && config.fragments.on_full == OnFull::DropOldest).then(|| {
                format!(
                    "with fragments.on_full \"drop_oldest\" actors overwrite what was taken first, so that little is left for a \
                     fragments.replay_share of {share}; use \"wait\", or set fragments.replay_share to 0"
                )
            })
        },
    },
    Rule {
        keys: &["fragments.retained", "fragments.replay_share"],
        doc: "`fragments.retained` needs a `fragments.replay_share` above 0: without one, no fragment is replayed.",
        algorithms: &["appo"],
        violation: |config| {
            let idle = config.fragments.retained.filter(|_| config.fragments.replay_share == 0.0);
            idle.map(|retained| {
                format!("a fragments.retained of {retained} keeps what nobody replays; set fragments.replay_share above 0, or leave it out")
            })
        },
    },
    Rule {
        keys: &["fragments.max_policy_lag_updates", "learner.publish_interval_updates"],
        doc: "`fragments.max_policy_lag_updates` is at least `learner.publish_interval_updates - 1`, or all fragments would be too old \
              before the next parameters are published.",
        algorithms: &["appo"],
        violation: |config| {
            let (lag, interval) = (config.fragments.max_policy_lag_updates, config.learner.publish_interval_updates);
            let most = Key::most_of("fragments.max_policy_lag_updates") as u64;
            let remedy = match interval - 1 {
                least if least <= most => format!("use at least {least}"),
                _ => format!("lower learner.publish_interval_updates to at most {}", most + 1),
            };
            (lag.saturating_add(1) < interval).then(|| {
                format!(
                    "with a fragments.max_policy_lag_updates of {lag} all fragments would be too old before the next parameters are \
                     published, every {interval} updates (learner.publish_interval_updates); {remedy}"
                )
            })
        },
    },
    Rule {
        keys: &["algorithm.kl_target", "algorithm.target_interval_updates"],
        doc: "`algorithm.kl_target` needs an `algorithm.target_interval_updates` of at least 2: with 1 the target network is the \
              policy itself.",
        algorithms: &["appo"],
        violation: |config| {
            let target = config.algorithm.kl_target.filter(|_| config.algorithm.target_interval_updates == Some(1));
            target.map(|target| {
                format!(
                    "an algorithm.kl_target of {target} holds the policy near the target network, which is the policy itself where \
                     algorithm.target_interval_updates is 1; use at least 2 there, or set algorithm.kl_target to \"none\""
                )
            })
        },
    },
    Rule {
        keys: &["algorithm.minibatches", "learner.batch_size", "learner.count"],
        doc: "`algorithm.minibatches` is at most the number of steps that each learner has of a batch, `learner.batch_size / \
              learner.count`, so that each minibatch has at least one.",
        algorithms: &["ppo"],
        violation: |config| {
            let (parts, steps) = (config.algorithm.minibatches, config.learner.batch_size / config.learner.count);
            (parts > steps).then(|| {
                format!(
                    "{parts} algorithm.minibatches cannot be made of the {steps} steps that each learner has of a batch \
                     (learner.batch_size / learner.count); use at most {steps}"
                )
            })
        },
    },
    Rule {
        keys: &["learner.publish_interval_updates", "algorithm.epochs", "algorithm.minibatches"],
        doc: "`learner.publish_interval_updates` divides `algorithm.epochs * algorithm.minibatches`, so that what was learned from a batch \
              is published before the next batch is drawn.",
        algorithms: &["ppo"],
        violation: |config| {
            let (interval, updates) = (config.learner.publish_interval_updates, config.algorithm.epochs * config.algorithm.minibatches);
            (!(updates as u64).is_multiple_of(interval)).then(|| {
                format!(
                    "a learner.publish_interval_updates of {interval} does not divide the {updates} updates from a batch \
                     (algorithm.epochs times algorithm.minibatches), so that the last of them would be published late; use 1, or {updates}"
                )
            })
        },
    },
    Rule {
        keys: &["adaptation.enabled", "actor.count"],
        doc: "`adaptation.enabled` needs an `actor.count` of at least 1: a reproducible run must not depend on the machine.",
        algorithms: &[],
        violation: |config| {
            (config.adaptation.enabled && config.actor.count == 0).then(|| {
                "adaptation.enabled fits a run to the machine, and with actor.count 0 everything runs in one process, the same on every \
                 machine; set actor.count to at least 1"
                    .to_owned()
            })
        },
    },
    Rule {
        keys: &["adaptation.fewest_actors", "adaptation.most_actors", "actor.count"],
        doc: "With `adaptation.enabled`, `actor.count` is from `adaptation.fewest_actors` to `adaptation.most_actors`.",
        algorithms: &[],
        violation: |config| {
            let (table, value) = (&config.adaptation, config.actor.count);
            let most = table.most_actors.unwrap_or(usize::MAX);
            // The rule above complains of `actor.count = 0`. Here 0 counts as 1, so that the user is not told twice.
            outside(config, value.max(1), table.fewest_actors, most, ["actor.count", "adaptation.fewest_actors", "adaptation.most_actors"])
        },
    },
    Rule {
        keys: &["adaptation.fewest_environments", "adaptation.most_environments", "actor.environments"],
        doc: "With `adaptation.enabled`, `actor.environments` is from `adaptation.fewest_environments` to `adaptation.most_environments`.",
        algorithms: &[],
        violation: |config| {
            let (table, value) = (&config.adaptation, config.actor.environments);
            let most = table.most_environments.unwrap_or(usize::MAX);
            let keys = ["actor.environments", "adaptation.fewest_environments", "adaptation.most_environments"];
            outside(config, value, table.fewest_environments, most, keys)
        },
    },
    Rule {
        keys: &["adaptation.smallest_batch", "adaptation.largest_batch", "learner.batch_size", "learner.count"],
        doc: "With `adaptation.enabled`, `adaptation.largest_batch` is `learner.batch_size` doubled at most seven times; \
              `adaptation.smallest_batch` is `learner.batch_size` halved at most eight times, and a multiple of `learner.count`.",
        algorithms: &TRANSITION_ALGORITHMS,
        violation: |config| {
            let (batch_size, learners, table) = (config.learner.batch_size, config.learner.count, &config.adaptation);
            let smallest = table.smallest_batch.unwrap_or(batch_size);
            let doubled = |times: i8| batch_size << times;
            let halved = |times: i8| batch_size.is_multiple_of(1 << times).then_some(batch_size >> times);
            let largest_fits = table.largest_batch.is_none_or(|largest| (0..MOST_HALVINGS).any(|times| doubled(times) == largest));
            let smallest_fits = (0..=MOST_HALVINGS).any(|times| halved(times) == Some(smallest)) && smallest.is_multiple_of(learners);
            if !config.adaptation.enabled {
                None
            } else if !largest_fits {
                Some(format!(
                    "an adaptation.largest_batch of {} is not a learner.batch_size of {batch_size} that is doubled at most {} times; use \
                     {}, for instance",
                    table.largest_batch.unwrap_or_default(),
                    MOST_HALVINGS - 1,
                    (0..=2).rev().map(doubled).find(|&larger| larger <= largest_first_batch(config)).unwrap_or(batch_size)
                ))
            } else if !smallest_fits {
                Some(format!(
                    "an adaptation.smallest_batch of {smallest} is not a learner.batch_size of {batch_size} that is halved at most \
                     {MOST_HALVINGS} times and that {learners} learners (learner.count) can share equally; leave it out to try no smaller \
                     ones"
                ))
            } else {
                None
            }
        },
    },
    Rule {
        keys: &["adaptation.step_size", "adaptation.largest_batch", "learner.learning_rate"],
        doc: "With `adaptation.enabled`, the step size that `adaptation.step_size` gives for `adaptation.largest_batch` is at most 1.",
        algorithms: &TRANSITION_ALGORITHMS,
        violation: |config| {
            let learner = &config.learner;
            let doublings = (config.largest_batch() as f64 / learner.batch_size as f64).log2();
            let others = [learner.learning_rate_end, config.algorithm.policy_learning_rate];
            let learning_rate = others.into_iter().flatten().fold(config.learning_rate(), f64::max);
            let largest = learning_rate * config.adaptation.step_size.factor(doublings as i8);
            (config.adaptation.enabled && largest > 1.0).then(|| {
                format!(
                    "by adaptation.step_size a learning rate of {learning_rate:?} becomes {largest:?} with batches of {} transitions, \
                     which is above 1; lower the learning rate or adaptation.largest_batch, or set adaptation.step_size to none",
                    config.largest_batch()
                )
            })
        },
    },
    Rule {
        keys: &["machine.sentinel", "checkpoint.interval_s", "actor.count"],
        doc: "`machine.sentinel = \"keep\"` needs a number of seconds in `checkpoint.interval_s` and an `actor.count` of at least 1. When \
              their supervisor is killed, the synchronous trainer and the processes of a run without checkpoints are killed in the middle \
              of what they do.",
        algorithms: &[],
        violation: |config| {
            let is_left_whole = config.checkpoint.interval_s.is_some() && config.actor.count > 0;
            (config.machine.sentinel == AfterSupervisor::Kept && !is_left_whole).then(|| {
                "machine.sentinel = \"keep\" needs checkpoints and actors, without which processes do not end in good order when their \
                 supervisor is killed; set checkpoint.interval_s to a number of seconds and actor.count to at least 1, or \
                 machine.sentinel to \"checkpoint\""
                    .into()
            })
        },
    },
];

/// The multiple of `unit` to take for `learner.batch_size`: the next larger one, or the largest that the first batch
/// may be; 0 if there is none.
pub(crate) fn multiple_near(config: &Config, unit: usize) -> usize {
    let (next, most) = (config.learner.batch_size.next_multiple_of(unit), largest_first_batch(config));
    if next <= most { next } else { unit * (most / unit) }
}

/// What is wrong where adaptation begins outside of its range; the keys are those of the value and of its ends.
fn outside(config: &Config, value: usize, low: usize, high: usize, keys: [&str; 3]) -> Option<String> {
    let [key, low_key, high_key] = keys;
    if !config.adaptation.enabled || (low..=high).contains(&value) {
        return None;
    }
    if low > high {
        return Some(format!("{low_key} {low} is above {high_key} {high}; change them so that {key} {value} lies between"));
    }
    let (end, limit) = if value < low { (low_key, low) } else { (high_key, high) };
    let side = if value < low { "below" } else { "above" };
    Some(format!("adaptation begins with {key} {value}, which is {side} {end} {limit}; change one of the two"))
}
