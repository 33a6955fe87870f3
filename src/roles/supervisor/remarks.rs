//! What a plan says of a configuration that can run and is hardly meant so: more processes than pay, fragments that
//! wait, targets that hardly follow, keys of priorities that nobody draws by, a run that ends before it learns, or that
//! is to go on and writes nothing to go on from.

use indicatif::BinaryBytes;

use crate::config::schema::{AlgorithmConfig, Split, TRANSITION_ALGORITHMS};
use crate::config::{Config, LEAST_TRANSITIONS_PER_LEARNER, Loaded, Resume, Rows, TargetNetworks, multiple_near};
use crate::readable::{counted, grouped};

/// A target network that is further behind the learned one hardly follows it.
const SLOW_TARGET_UPDATES: f64 = 10_000.0;
/// A run of so many environment steps may take minutes that nobody wants to lose.
const LONG_RUN_STEPS: u64 = 50_000;
/// Batches with a smaller share of their steps differ from what a configuration says.
const LEAST_SHARE_OF_A_BATCH: f64 = 0.8;

/// Remarks on what `config` asks for, on this many cores; none where it is well chosen.
pub(super) fn remarks(config: &Config, cores: usize) -> Vec<String> {
    let environments = config.actor.count.max(1) * config.actor.environments;
    let of_all_runs = [
        fragments_that_wait(config, environments, "actor.environments or actor.count"),
        slow_target(config),
        no_update(config).or_else(|| unused_updates(config)),
        no_checkpoint(config),
    ];
    let of_processes = if config.is_synchronous() {
        [None, None, None]
    } else {
        [learners_in_turns(config, cores), small_shares(config), actors_in_turns(config, cores)]
    };
    of_all_runs.into_iter().chain(of_processes).flatten().collect()
}

/// More learners than cores take turns.
fn learners_in_turns(config: &Config, cores: usize) -> Option<String> {
    let learners = config.learner.processes();
    if learners <= cores {
        return None;
    }
    let on_cores = counted(cores, "core");
    if config.learner.split == Split::None {
        return Some(format!(
            "{learners} learners on {on_cores} wait for each other's turn; more than learner.count={cores} do not pay here"
        ));
    }
    (config.learner.device_of(0) == config.learner.device_of(1))
        .then(|| format!("the two halves of learner.split take turns on {on_cores}; one learner does as much there"))
}

/// Learners may have too little to compute to be faster together than one alone.
fn small_shares(config: &Config) -> Option<String> {
    let learners = config.learner.processes();
    let each = config.transitions_per_learner(learners);
    (config.learner.split == Split::None && learners > 1 && each < LEAST_TRANSITIONS_PER_LEARNER).then(|| {
        format!(
            "each of {learners} learners computes {each} transitions of an update; with less than {LEAST_TRANSITIONS_PER_LEARNER} \
             they hardly do more updates than one: set learner.count=1, or raise learner.batch_size to learn from more at once"
        )
    })
}

/// More actors than there are cores for take turns, unless their environments are known to sleep.
fn actors_in_turns(config: &Config, cores: usize) -> Option<String> {
    if config.environment.step_delay_us > 0 {
        return None;
    }
    let actors = config.actor.count;
    let learners = config.learner.processes();
    let on_cores = counted(cores, "core");
    if config.replay.samples_per_insert.is_some() {
        return (actors > cores)
            .then(|| format!("{actors} actors on {on_cores} pay only where environments sleep, such as a simulator elsewhere"));
    }
    (actors + learners > cores).then(|| {
        format!(
            "{} and {} compute all the time, on {on_cores}; with replay.samples_per_insert actors wait when learners cannot follow",
            counted(actors, "actor"),
            counted(learners, "learner")
        )
    })
}

/// Fragments wait for later batches if there are more environments than a batch has fragments. `keys` name the keys
/// that decide how many environments there are.
pub(super) fn fragments_that_wait(config: &Config, environments: usize, keys: &str) -> Option<String> {
    if config.rows() != Rows::Fragments || environments <= config.fragments_per_batch() {
        return None;
    }
    let fragments = config.fragments_per_batch();
    let batches = environments.div_ceil(fragments) - 1;
    let told = format!(
        "{environments} environments complete more than the {} of a batch, so that some are learned from {} later",
        counted(fragments, "fragment"),
        if batches == 1 { "a batch".to_owned() } else { format!("up to {batches} batches") },
    );
    let mut larger = config.clone();
    let batch_size = environments.next_multiple_of(config.learner.count) * config.fragments.length_steps;
    larger.learner.batch_size = batch_size;
    let mut remedy = format!("raise learner.batch_size to {batch_size}");
    if config.learns_in_parts() {
        // Parts keep about their size, so that each step has about as many updates as before.
        let parts = config.minibatches_near(config.algorithm.minibatches * batch_size / config.learner.batch_size);
        larger.algorithm.minibatches = parts;
        remedy += &format!(" and algorithm.minibatches to {parts}");
    }
    if let Some(least) = raise_capacity(&mut larger) {
        remedy += &format!(" and fragments.capacity to {least}");
    }
    // What would be refused, such as a batch beyond the largest, is not advised.
    let remedy = if larger.validate().is_ok() { format!("{remedy}, or lower {keys}") } else { format!("lower {keys}") };
    if !config.learns_from_old_policies() {
        return Some(format!("{told}; {remedy}"));
    }
    let behind = batches * config.fragments.uses;
    let most = config.fragments.max_policy_lag_updates;
    (behind as u64 > most)
        .then(|| format!("{told}, {behind} updates, and are dropped where fragments.max_policy_lag_updates is {most}; {remedy}"))
}

/// Raise `fragments.capacity` of `changed` to the least that it may be, which is returned, if it is set to less.
fn raise_capacity(changed: &mut Config) -> Option<usize> {
    let least = changed.least_fragments();
    let capacity = changed.fragments.capacity.as_mut().filter(|capacity| **capacity < least)?;
    *capacity = least;
    Some(least)
}

/// Fragments end with episodes at the time limit of the environment, so that batches of few steps may be what fragments
/// of a length that does not fit it come to. `batch_follows` says that the batch follows from the length of fragments.
pub(super) fn fragments_beyond_the_limit(config: &Config, time_limit_steps: Option<u32>, batch_follows: bool) -> Option<String> {
    let limit = time_limit_steps? as usize;
    let length = config.fragments.length_steps;
    if config.rows() != Rows::Fragments || limit == 0 {
        return None;
    }
    let of_an_episode = limit.div_ceil(length);
    let share = limit as f64 / (of_an_episode * length) as f64;
    (share < LEAST_SHARE_OF_A_BATCH).then(|| {
        let batch_size = config.learner.batch_size;
        let steps = (share * batch_size as f64).round() as u64;
        let fitting = limit.div_ceil(of_an_episode);
        let mut shorter = config.clone();
        shorter.fragments.length_steps = fitting;
        let mut remedy = format!("; use fragments.length_steps={fitting}");
        let near = multiple_near(config, fitting * config.learner.count);
        if near != batch_size && !batch_follows {
            shorter.learner.batch_size = near;
            remedy += &format!(" and learner.batch_size={near}");
        }
        if let Some(least) = raise_capacity(&mut shorter) {
            remedy += &format!(" and fragments.capacity={least}");
        }
        // What would be refused is not advised. A batch that follows is not known here.
        if !batch_follows && shorter.validate().is_err() {
            remedy.clear();
        }
        format!(
            "fragments.length_steps {} does not divide the time limit of {} steps, at which a fragment ends: where episodes come to it, \
             a batch has about {} of the {} steps of learner.batch_size, and there are more updates{remedy}",
            grouped(length as u64),
            grouped(limit as u64),
            grouped(steps),
            grouped(batch_size as u64),
        )
    })
}

/// An environment of which no time limit is known may have an episode that never ends, and whoever evaluates in it waits.
pub(super) fn no_time_limit(config: &Config) -> String {
    format!(
        "no time limit of the environment is known: an evaluation plays an episode that does not end by itself for the {} steps of \
         evaluator.episode_limit_steps; set that, or return gymnasium.wrappers.TimeLimit(environment, STEPS) from a function",
        grouped(u64::from(config.evaluator.episode_limit_steps))
    )
}

/// Target networks may be far behind the learned ones.
fn slow_target(config: &Config) -> Option<String> {
    let algorithm = config.algorithm.name.as_str();
    if !TRANSITION_ALGORITHMS.contains(&algorithm) {
        return None;
    }
    let TargetNetworks { tau, interval_updates: interval } = config.algorithm.target_networks(algorithm);
    let policy_delay_updates = AlgorithmConfig::default().policy_delay_updates;
    let as_usual = AlgorithmConfig { target_interval_updates: None, policy_delay_updates, ..config.algorithm.clone() };
    let usual = as_usual.target_networks(algorithm).interval_updates;
    let behind = interval as f64 / tau;
    (tau < 1.0 && behind > SLOW_TARGET_UPDATES).then(|| {
        let remedy = match usual as f64 / tau <= SLOW_TARGET_UPDATES {
            // TD3 has the delay of its policy as the interval where none is configured.
            true if config.algorithm.target_interval_updates.is_none() => format!("algorithm.policy_delay_updates={usual}"),
            true => format!("algorithm.target_interval_updates={usual}"),
            false => "algorithm.target_tau=0.005".to_owned(),
        };
        format!(
            "target networks that take over {tau} of the learned ones every {interval} updates are {behind:.0} updates behind; \
             {remedy} is usual"
        )
    })
}

/// A file that sets a key of priorities may take an algorithm to draw by them that does not do so by default.
pub(super) fn priorities_at_rest(loaded: &Loaded) -> Option<String> {
    let by_priority = "replay.prioritized=true";
    let (key, _) = loaded.idle_keys().find(|&(_, remedy)| remedy == by_priority)?;
    (!loaded.is_set("replay.prioritized")).then(|| {
        let algorithm = &loaded.config.algorithm.name;
        format!("{key} has no effect: {algorithm} draws transitions uniformly by default; leave it out, or set {by_priority}")
    })
}

/// The environment steps that a run takes before its first update, the keys that they follow from, and what may have it
/// come earlier.
fn first_update(config: &Config) -> (u64, &'static str, &'static str) {
    match config.rows() {
        Rows::Fragments => {
            // The environments of an actor complete their first fragments at the same time, however few of them a
            // batch has.
            let first = config.actor.environments * config.fragments.length_steps;
            let (needed, keys) =
                (config.learner.batch_size, "learner.batch_size").max((first, "actor.environments * fragments.length_steps"));
            (needed as u64, keys, " unless time limits end fragments early")
        }
        Rows::Transitions => (config.replay.min_size as u64, "replay.min_size", ""),
    }
}

/// A run may end before there is anything to learn from.
fn no_update(config: &Config) -> Option<String> {
    let (needed, keys, unless) = first_update(config);
    let steps = config.run.stop_env_steps;
    (steps < needed).then(|| {
        format!(
            "the run ends after {} environment steps, before its first update, which needs the {} of {keys}{unless}",
            grouped(steps),
            grouped(needed)
        )
    })
}

/// A run may end before anybody uses what it learns.
fn unused_updates(config: &Config) -> Option<String> {
    let algorithm = config.algorithm.name.as_str();
    if !TRANSITION_ALGORITHMS.contains(&algorithm) {
        return None;
    }
    let (steps, random_steps) = (config.run.stop_env_steps, config.actor.random_steps);
    if steps <= random_steps {
        let (steps, random_steps) = (grouped(steps), grouped(random_steps));
        return Some(format!(
            "actors act at random in all {steps} environment steps of the run; lower actor.random_steps from {random_steps}"
        ));
    }
    let learned_from = steps.saturating_sub(config.replay.min_size as u64) as f64;
    let updates = (learned_from * config.replay.samples_per_insert? / config.learner.batch_size as f64) as u64;
    let (learner, target) = (&config.learner, config.algorithm.target_networks(algorithm));
    let intervals = [
        ("learner.publish_interval_updates", learner.publish_interval_updates),
        ("learner.swap_interval_updates", if learner.split == Split::ActorCritic { learner.swap_interval_updates } else { 0 }),
        ("algorithm.target_interval_updates", if target.tau < 1.0 { 0 } else { target.interval_updates }),
    ];
    intervals.into_iter().find(|&(_, interval)| interval > updates).map(|(key, interval)| {
        let (updates, interval) = (grouped(updates), grouped(interval));
        format!("the run makes about {updates} updates, fewer than the {interval} of {key}, so that they are not passed on before its end")
    })
}

/// When a run that goes on with an empty replay learns again, and whether it ends before that: it has so many environment
/// steps `left`.
pub(super) fn next_update(config: &Config, left: u64) -> String {
    let (needed, keys, unless) = first_update(config);
    let ends_before = if left < needed { format!(", and the run ends after {}", grouped(left)) } else { String::new() };
    format!("the next update needs the {} more steps of {keys}{unless}{ends_before}", grouped(needed))
}

/// A run that is to go on by the same command may be configured to write no checkpoint, and a long one of a single process
/// writes none unless it is told to.
fn no_checkpoint(config: &Config) -> Option<String> {
    let key = config.key_without_checkpoints()?;
    let told = format!("with {key} \"none\" no checkpoint is written to go on from; set it to a number");
    match config.run.resume {
        Resume::Auto => Some(format!("run.resume is \"auto\", and {told}")),
        Resume::Never => (config.is_synchronous() && config.run.stop_env_steps >= LONG_RUN_STEPS).then_some(told),
    }
}

/// A disk that has `free` bytes for checkpoints of up to `bytes` each may hold fewer of them than it has to: those that are kept, of which
/// the oldest goes before another is written where there is no room beside it, but never the only one.
pub(super) fn few_checkpoints_fit(config: &Config, bytes: u64, free: u64) -> Option<String> {
    let needed = config.checkpoint.keep_last.max(2) as u64;
    let fit = free / bytes.max(1);
    (config.key_without_checkpoints().is_none() && fit < needed).then(|| {
        let written = if fit == 0 { "none is written".to_owned() } else { format!("later ones are written only if it holds {needed}") };
        format!(
            "checkpoints take up to {} each, and the disk of run.folder has room for {fit}: {written} (checkpoint.keep_last, \
             checkpoint.replay)",
            BinaryBytes(bytes)
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn about(change: impl FnOnce(&mut Config)) -> String {
        let mut config = Config::for_environment("CartPole-v1");
        config.learner.batch_size = 256;
        change(&mut config);
        remarks(&config, 2).join("\n")
    }

    #[test]
    fn what_pays_is_not_remarked_on() {
        assert_eq!(about(|_| {}), "");
        assert_eq!(about(|config| config.learner.count = 2), "");
        assert_eq!(about(|config| config.actor.count = 2), "");
        let one_process = about(|config| {
            (config.actor.count, config.learner.count) = (0, 2);
            config.checkpoint.synchronous_interval_steps = Some(10_000);
        });
        assert_eq!(one_process, "", "whatever the keys say of learners");
    }

    #[test]
    fn environments_that_complete_more_than_a_batch_of_ppo_are_named() {
        let ppo = |environments| {
            about(|config| {
                config.algorithm.name = "ppo".into();
                (config.fragments.length_steps, config.learner.batch_size) = (32, 256);
                (config.actor.count, config.actor.environments) = (2, environments);
            })
        };
        assert_eq!(ppo(4), "");
        let late = ppo(8);
        assert!(
            late.contains("16 environments")
                && late.contains("8 fragments")
                && late.contains("batch_size to 512 and algorithm.minibatches to 8, "),
            "{late}"
        );
        assert!(late.contains("from a batch later") && ppo(64).contains("up to 15 batches later"), "{}", ppo(64));
    }

    #[test]
    fn a_batch_that_takes_the_fragments_of_all_environments_is_one_that_all_learners_can_share() {
        let mut config = Config::for_environment("CartPole-v1");
        config.algorithm.name = "ppo".into();
        (config.fragments.length_steps, config.actor.environments) = (32, 8);
        (config.learner.count, config.learner.batch_size) = (3, 96);
        let late = remarks(&config, 4).join("\n");
        assert!(late.contains("raise learner.batch_size to 288 and algorithm.minibatches to 12, or lower"), "{late}");
        config.learner.batch_size = 288;
        config.validate().unwrap();
        assert!(!remarks(&config, 4).join("\n").contains("environments complete"));
    }

    #[test]
    fn a_batch_that_is_advised_for_fragments_that_wait_keeps_every_rule() {
        let advised = |algorithm: &str, change: fn(&mut Config)| {
            let mut config = Config::for_environment("CartPole-v1");
            config.algorithm.name = algorithm.into();
            change(&mut config);
            config.validate().unwrap();
            let told = remarks(&config, 64).join("\n");
            let (raise, _) = told.split_once("; raise ").and_then(|(_, remedy)| remedy.split_once(", or lower")).expect(&told);
            let overrides: Vec<String> = raise.split(" and ").map(|change| change.replace(" to ", "=")).collect();
            Config::parse(&config.to_toml(), "advised", &overrides).unwrap();
            raise.to_owned()
        };
        let by_epochs = advised("ppo", |config| (config.algorithm.epochs, config.actor.environments) = (5, 5));
        assert_eq!(by_epochs, "learner.batch_size to 160 and algorithm.minibatches to 12");
        let by_interval = advised("ppo", |config| (config.learner.publish_interval_updates, config.actor.environments) = (16, 5));
        assert_eq!(by_interval, by_epochs);
        let by_capacity = advised("appo", |config| {
            (config.fragments.capacity, config.fragments.uses, config.actor.environments) = (Some(450), 16, 48);
        });
        assert_eq!(by_capacity, "learner.batch_size to 1536 and fragments.capacity to 480");
    }

    #[test]
    fn environments_whose_fragments_appo_would_drop_are_named() {
        let appo = |actors| {
            about(|config| {
                config.algorithm.name = "appo".into();
                (config.fragments.length_steps, config.learner.batch_size, config.fragments.uses) = (32, 256, 16);
                (config.actor.count, config.actor.environments, config.fragments.max_policy_lag_updates) = (actors, 8, 100);
            })
        };
        assert_eq!(appo(2), "");
        let dropped = appo(16);
        assert!(dropped.contains("up to 15 batches later, 240 updates, and are dropped"), "{dropped}");
    }

    #[test]
    fn fragments_that_a_time_limit_cuts_short_are_named() {
        let of_batch = |length, batch_size, limit| {
            let mut config = Config::for_environment("Pendulum-v1");
            config.algorithm.name = "ppo".into();
            (config.fragments.length_steps, config.learner.batch_size) = (length, batch_size);
            fragments_beyond_the_limit(&config, limit, false).unwrap_or_default()
        };
        let ppo = |length, limit| of_batch(length, 4 * length, limit);
        let long = ppo(1_000, Some(200));
        assert!(long.contains("1,000 does not divide the time limit of 200 steps"), "{long}");
        assert!(long.contains("about 800 of the 4,000 steps") && long.ends_with("fragments.length_steps=200"), "{long}");
        let between = ppo(150, Some(200));
        assert!(between.contains("about 400 of the 600 steps") && between.ends_with("fragments.length_steps=100"), "{between}");
        let with_batch = of_batch(128, 2_048, Some(200));
        assert!(with_batch.ends_with("use fragments.length_steps=100 and learner.batch_size=2100"), "{with_batch}");
        for (length, limit) in [(200, Some(200)), (100, Some(200)), (32, Some(500)), (1_000, None)] {
            assert_eq!(ppo(length, limit), "", "{length} {limit:?}");
        }
        let mut appo = Config::for_environment("CartPole-v1");
        appo.algorithm.name = "appo".into();
        (appo.fragments.length_steps, appo.learner.batch_size, appo.fragments.capacity) = (320, 2_560, Some(80));
        appo.validate().unwrap();
        let with_capacity = fragments_beyond_the_limit(&appo, Some(500), false).unwrap();
        let advised = ["fragments.length_steps=250", "learner.batch_size=2750", "fragments.capacity=83"];
        assert!(with_capacity.ends_with(&format!("use {}", advised.join(" and "))), "{with_capacity}");
        Config::parse(&appo.to_toml(), "advised", &advised.map(str::to_owned)).unwrap();
        let transitions = fragments_beyond_the_limit(&Config::for_environment("Pendulum-v1"), Some(1), false);
        assert_eq!(transitions, None, "DQN has no fragments");
    }

    #[test]
    fn a_target_that_hardly_follows_and_a_run_that_never_learns_are_named() {
        let slow = about(|config| (config.algorithm.target_tau, config.algorithm.target_interval_updates) = (Some(0.005), Some(100)));
        assert!(slow.contains("0.005 of the learned ones every 100 updates are 20000 updates behind"), "{slow}");
        assert_eq!(about(|config| (config.algorithm.target_tau, config.algorithm.target_interval_updates) = (Some(1.0), Some(500))), "");
        let sac = about(|config| (config.algorithm.name, config.algorithm.target_interval_updates) = ("sac".into(), Some(100)));
        assert!(sac.contains("0.005 of the learned ones") && sac.ends_with("algorithm.target_interval_updates=1 is usual"), "{sac}");
        let tau = about(|config| (config.algorithm.name, config.algorithm.target_tau) = ("td3".into(), Some(0.0001)));
        assert!(tau.contains("20000 updates behind; algorithm.target_tau=0.005 is usual"), "{tau}");
        let delayed = |interval| {
            about(|config| {
                config.algorithm.name = "td3".into();
                (config.algorithm.policy_delay_updates, config.algorithm.target_interval_updates) = (60, interval);
            })
        };
        assert!(delayed(None).ends_with("12000 updates behind; algorithm.policy_delay_updates=2 is usual"), "{}", delayed(None));
        assert!(delayed(Some(100)).ends_with("algorithm.target_interval_updates=2 is usual"), "{}", delayed(Some(100)));
        let short = about(|config| config.run.stop_env_steps = 500);
        assert!(short.ends_with("500 environment steps, before its first update, which needs the 1,000 of replay.min_size"), "{short}");
    }

    #[test]
    fn a_run_that_ends_before_what_it_learns_is_used_is_named() {
        let random = about(|config| (config.replay.min_size, config.run.stop_env_steps) = (256, 1_000));
        assert_eq!(random, "actors act at random in all 1,000 environment steps of the run; lower actor.random_steps from 1,000");
        let with_intervals = |publish, target| {
            about(|config| {
                (config.replay.min_size, config.replay.samples_per_insert, config.run.stop_env_steps) = (1_000, Some(32.0), 9_000);
                (config.learner.publish_interval_updates, config.algorithm.target_interval_updates) = (publish, Some(target));
            })
        };
        assert_eq!(with_intervals(1_000, 1_000), "");
        let published = with_intervals(1_001, 100);
        assert!(published.contains("about 1,000 updates, fewer than the 1,001 of learner.publish_interval_updates, "), "{published}");
        assert!(with_intervals(4, 1_001).contains("the 1,001 of algorithm.target_interval_updates, "), "{}", with_intervals(4, 1_001));
    }

    #[test]
    fn a_run_that_ends_before_its_first_fragments_are_complete_is_named() {
        let ppo = |environments, steps| {
            about(|config| {
                (config.algorithm.name, config.run.stop_env_steps) = ("ppo".into(), steps);
                (config.fragments.length_steps, config.actor.environments) = (64, environments);
            })
        };
        assert_eq!(ppo(4, 256), "");
        let few = ppo(4, 255);
        let early = "before its first update, which needs the 256 of learner.batch_size unless time limits end fragments early";
        assert!(few.contains(early), "{few}");
        assert!(!ppo(16, 1_024).contains("first update"), "{}", ppo(16, 1_024));
        let many = ppo(16, 1_023);
        assert!(many.contains("which needs the 1,024 of actor.environments * fragments.length_steps"), "{many}");
    }

    #[test]
    fn keys_of_priorities_in_a_file_are_named_where_the_algorithm_draws_uniformly_and_nobody_says_so() {
        let told = |name: &str, more: &str| {
            let text = format!("environment.id = \"Pendulum-v1\"\nalgorithm.name = \"{name}\"\nreplay.alpha = 0.7\n{more}");
            priorities_at_rest(&Config::parse(&text, "task.toml", &[]).unwrap())
        };
        for name in ["ddpg", "td3", "sac"] {
            let at_rest = told(name, "").unwrap();
            assert!(at_rest.starts_with(&format!("replay.alpha has no effect: {name} draws")), "{at_rest}");
            assert_eq!([told(name, "replay.prioritized = false"), told(name, "replay.prioritized = true")], [None, None]);
        }
        assert_eq!([told("dqn", ""), told("mine", "")], [None, None]);
    }

    #[test]
    fn a_run_that_goes_on_with_an_empty_replay_is_told_how_much_it_needs_to_learn_again() {
        let mut config = Config::for_environment("CartPole-v1");
        assert_eq!(next_update(&config, 1_000), "the next update needs the 1,000 more steps of replay.min_size");
        assert_eq!(next_update(&config, 999), "the next update needs the 1,000 more steps of replay.min_size, and the run ends after 999");
        config.algorithm.name = "ppo".into();
        (config.fragments.length_steps, config.actor.environments, config.learner.batch_size) = (64, 4, 512);
        let batch = "the next update needs the 512 more steps of learner.batch_size unless time limits end fragments early";
        assert_eq!(next_update(&config, 512), batch);
    }

    #[test]
    fn a_run_that_is_to_go_on_and_writes_no_checkpoint_is_told_which_key_has_it_write_some() {
        let resumed = |actors, interval_s, interval_steps| {
            about(|config| {
                (config.run.resume, config.actor.count) = (Resume::Auto, actors);
                (config.checkpoint.interval_s, config.checkpoint.synchronous_interval_steps) = (interval_s, interval_steps);
            })
        };
        assert_eq!((resumed(1, Some(600.0), None), resumed(0, None, Some(1_000))), (String::new(), String::new()));
        let [alone, synchronous] = [resumed(1, None, Some(1_000)), resumed(0, Some(600.0), None)];
        assert!(alone.contains("with checkpoint.interval_s \"none\" no checkpoint is written"), "{alone}");
        assert!(synchronous.contains("with checkpoint.synchronous_interval_steps \"none\" no checkpoint"), "{synchronous}");
        assert_eq!(about(|config| config.checkpoint.interval_s = None), "", "nobody asked it to go on");
    }

    #[test]
    fn a_long_run_of_one_process_is_told_that_it_writes_no_checkpoint() {
        let of_steps = |steps| about(|config| (config.actor.count, config.run.stop_env_steps) = (0, steps));
        let long = "with checkpoint.synchronous_interval_steps \"none\" no checkpoint is written to go on from; set it to a number";
        assert_eq!((of_steps(LONG_RUN_STEPS), of_steps(LONG_RUN_STEPS - 1)), (long.to_owned(), String::new()));
    }

    #[test]
    fn a_disk_for_fewer_checkpoints_than_are_kept_and_for_fewer_than_two_is_named() {
        let mut config = Config::for_environment("CartPole-v1");
        config.checkpoint.keep_last = 3;
        assert_eq!(few_checkpoints_fit(&config, 1 << 20, 3 << 20), None, "the oldest goes before the fourth is written");
        let told = few_checkpoints_fit(&config, 1 << 20, (3 << 20) - 1).unwrap();
        assert!(told.contains("up to 1.00 MiB each, and the disk of run.folder has room for 2: ") && told.contains("holds 3 ("), "{told}");
        config.checkpoint.keep_last = 1;
        assert!(few_checkpoints_fit(&config, 1 << 20, 2 << 20).is_none() && few_checkpoints_fit(&config, 1 << 20, 1 << 20).is_some());
        assert!(few_checkpoints_fit(&config, 1 << 20, 100).unwrap().contains("has room for 0: none is written ("));
        config.checkpoint.interval_s = None;
        assert_eq!(few_checkpoints_fit(&config, 1 << 20, 0), None, "it writes none");
    }

    #[test]
    fn learners_beyond_the_cores_or_with_little_to_compute_are_named() {
        let many = about(|config| (config.learner.count, config.learner.batch_size) = (4, 1024));
        assert_eq!(many, "4 learners on 2 cores wait for each other's turn; more than learner.count=2 do not pay here");
        let small = about(|config| (config.learner.count, config.learner.batch_size) = (2, 64));
        assert!(small.contains("each of 2 learners computes 32 transitions") && small.contains("learner.count=1"), "{small}");
    }

    #[test]
    fn actors_beyond_the_cores_are_named_if_they_compute() {
        let free = about(|config| (config.actor.count, config.replay.samples_per_insert) = (2, None));
        assert!(free.contains("2 actors and 1 learner compute all the time, on 2 cores"), "{free}");
        let limited = about(|config| config.actor.count = 3);
        assert_eq!(limited, "3 actors on 2 cores pay only where environments sleep, such as a simulator elsewhere");
        let sleeping = about(|config| (config.actor.count, config.environment.step_delay_us) = (3, 1_000));
        assert_eq!(sleeping, "", "the configuration says that they sleep");
    }
}
