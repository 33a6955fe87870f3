//! What a run that fits itself to the machine has found: the setting, read from `adaptation.jsonl`, and the
//! configuration that has this setting.

use serde::{Deserialize, Serialize};

use crate::adaptation::{Probe, Setting, Verdict};
use crate::config::automatic::SAMPLES_PER_INSERT;
use crate::config::schema::{AlgorithmConfig, LEAST_FRAGMENTS};
use crate::config::{Config, RowKind};

impl Config {
    /// The setting that it asks to begin with.
    pub(crate) fn setting(&self) -> Setting {
        Setting { actors: self.actor.count, environments: self.actor.environments, batch_size: self.learner.batch_size }
    }

    /// The same with the actors and environments of `setting`, as actors are started.
    pub(crate) fn with_actors_of(&self, setting: Setting) -> Self {
        let mut fitted = self.clone();
        (fitted.actor.count, fitted.actor.environments) = (setting.actors, setting.environments);
        fitted
    }
}

/// A line of `adaptation.jsonl`: a probe, the setting that its life of the run was configured to begin with, and which
/// life that was.
#[derive(Debug, Clone, Copy, Serialize)]
pub(crate) struct Line<'a> {
    #[serde(flatten)]
    pub(crate) probe: &'a Probe,
    pub(crate) configured: Setting,
    /// How often the run had gone on from a checkpoint, if that is known.
    pub(crate) resumptions: Option<u32>,
}

/// What is read back of a line of `adaptation.jsonl`.
#[derive(Debug, Clone, Copy, Deserialize)]
pub(crate) struct Tried {
    from: Setting,
    to: Setting,
    verdict: Verdict,
    configured: Setting,
}

/// What the probes of a run found from one start, in all lives of the run that had this start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Found {
    /// The best setting known.
    pub(crate) home: Setting,
    /// How many settings were tried, and how many of them were better.
    pub(crate) counts: [u64; 2],
}

impl Found {
    /// What `probes`, from the oldest to the newest, found from the start `configured`. `None` if there are none, or
    /// if the newest life of the run had another start.
    pub(crate) fn of_probes(configured: Setting, probes: impl IntoIterator<Item = Tried>) -> Option<Self> {
        let mut newest: Option<(Setting, Self)> = None;
        for probe in probes {
            let beginning = (probe.configured, Self { home: probe.from, counts: [0, 0] });
            let (began, found) = newest.get_or_insert(beginning);
            // A run that was resumed with other numbers begins anew from these.
            if probe.configured != *began || (probe.from != found.home && !found.is_given_up(probe.to, probe.verdict)) {
                (*began, *found) = beginning;
            }
            found.take_in(probe.from, probe.to, probe.verdict);
        }
        newest.filter(|&(began, _)| began == configured).map(|(_, found)| found)
    }

    /// Takes in that a probe of `to`, which began at `from`, has ended with this `verdict`.
    pub(crate) fn take_in(&mut self, from: Setting, to: Setting, verdict: Verdict) {
        let is_given_up = self.is_given_up(to, verdict);
        let [tried, better] = &mut self.counts;
        if is_given_up {
            // It was counted when it was accepted.
            self.home = from;
            *better = better.saturating_sub(1);
            return;
        }
        *tried += 1;
        if verdict == Verdict::Accepted {
            self.home = to;
            *better += 1;
        }
    }

    /// Whether `to` was the best so far and could not be kept: the run goes back to the one before it.
    fn is_given_up(&self, to: Setting, verdict: Verdict) -> bool {
        verdict == Verdict::Abandoned && to == self.home
    }
}

/// The configuration that repeats, without a search, a run of `config` that was fitted to `home`; and the `--set`
/// flags that it takes beside those for the numbers of `home`.
pub(crate) fn repeating(config: &Config, home: Setting) -> (Config, String) {
    let mut fitted = config.with_actors_of(home);
    let table = &config.adaptation;
    let configured = config.learner.batch_size;
    fitted.adaptation.enabled = false;
    fitted.learner.batch_size = home.batch_size;
    let mut flags = String::new();
    let mut set = |path: &str, value: &mut f64, times: f64| {
        *value *= times;
        flags += &format!(" --set {path}={value:?}");
    };
    let step_size = table.step_size.factor(doublings(configured, home.batch_size));
    if step_size != 1.0 {
        set("learner.learning_rate", fitted.learner.learning_rate.insert(config.learning_rate()), step_size);
        if let Some(end) = &mut fitted.learner.learning_rate_end {
            set("learner.learning_rate_end", end, step_size);
        }
        // The policy's step size keeps its ratio to the critics'.
        if let Some(policy) = &mut fitted.algorithm.policy_learning_rate {
            set("algorithm.policy_learning_rate", policy, step_size);
        }
    }
    // Without a search, an update counts for the rate limiter, where there is one, as the samples that it draws.
    let counts_as = |_| table.hold.samples_per_insert(1.0, configured, home.batch_size);
    let samples = config.replay.samples_per_insert.map_or(1.0, counts_as);
    if samples != 1.0 {
        per_sample(&mut fitted).for_each(|(path, value)| set(path, value, samples));
    } else if config.has_critics()
        && config.replay.samples_per_insert != Some(fitted.usual_samples_per_insert())
        && let Some(ratio) = &mut fitted.replay.samples_per_insert
    {
        // Where nobody sets it, it would follow the batch.
        set(SAMPLES_PER_INSERT, ratio, 1.0);
    }
    // If no band was configured, the one in force follows from the upper ends of the ranges. Without a search it would be
    // narrower, so it is written out.
    if config.row_kind() == RowKind::Transitions
        && config.replay.error_band.is_none()
        && let Some(band) = config.effective_error_band().map(|band| band * samples)
        && fitted.effective_error_band() != Some(band)
    {
        set("replay.error_band", fitted.replay.error_band.insert(band), 1.0);
    }
    // A capacity that was configured had room for what is completed at once at the upper ends. As many fragments wait.
    if config.learns_from_old_policies()
        && let (Some(capacity), Some(waiting)) = (config.fragments.capacity, config.most_waiting_fragments())
    {
        let repeated = (waiting + fitted.most_fragments_in_flight()).max(LEAST_FRAGMENTS);
        if repeated != capacity {
            fitted.fragments.capacity = Some(repeated);
            flags += &format!(" --set fragments.capacity={repeated}");
        }
    }
    // A batch of PPO that follows its environments has parts of its own number, and one that is set does not.
    let parts = config.algorithm.minibatches;
    if config.learns_in_parts() && parts != AlgorithmConfig::default().minibatches {
        flags += &format!(" --set algorithm.minibatches={parts}");
    }
    (fitted, flags)
}

/// The keys whose values are in samples and grow with what an update counts as, with these values.
fn per_sample(config: &mut Config) -> impl Iterator<Item = (&'static str, &mut f64)> {
    let replay = &mut config.replay;
    let numbers = [(SAMPLES_PER_INSERT, &mut replay.samples_per_insert), ("replay.error_band", &mut replay.error_band)];
    numbers.into_iter().filter_map(|(path, value)| Some((path, value.as_mut()?)))
}

/// How often the configured batch is doubled to have `batch_size` transitions; negative where it is halved.
// The cast keeps the number: a batch has at most 2^16 transitions, so it is doubled sixteen times at most.
pub(crate) fn doublings(configured: usize, batch_size: usize) -> i8 {
    (batch_size as f64 / configured as f64).log2().round() as i8
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::adaptation::Hold;
    use crate::config::schema::{OnFull, StepSize};

    /// The configuration of a run that fits itself, after `change`.
    pub(crate) fn config(change: impl FnOnce(&mut Config)) -> Config {
        let mut config = Config::for_environment("CartPole-v1");
        (config.adaptation.enabled, config.actor.count, config.actor.environments) = (true, 3, 8);
        change(&mut config);
        config
    }

    #[test]
    fn a_run_that_goes_on_begins_with_what_it_had_found_and_not_with_what_could_not_be_kept() {
        let config = config(|_| {});
        let setting = |actors| Setting { actors, ..config.setting() };
        let tried =
            |configured, from, to, verdict| Tried { from: setting(from), to: setting(to), verdict, configured: setting(configured) };
        let found = |probes: &[Tried]| Found::of_probes(config.setting(), probes.iter().copied()).map(|found| found.home);
        assert_eq!(found(&[]), None);
        let accepted = [tried(3, 3, 4, Verdict::Accepted), tried(3, 4, 8, Verdict::Rejected), tried(3, 4, 5, Verdict::Abandoned)];
        assert_eq!(found(&accepted), Some(setting(4)));
        assert_eq!(found(&[tried(3, 3, 4, Verdict::Accepted), tried(3, 3, 4, Verdict::Abandoned)]), Some(setting(3)));
        assert_eq!(found(&[tried(2, 2, 4, Verdict::Accepted)]), None, "somebody has set another start");
        let lives = [tried(2, 2, 4, Verdict::Accepted), tried(2, 4, 5, Verdict::Rejected), tried(3, 3, 6, Verdict::Accepted)];
        assert_eq!(found(&lives), Some(setting(6)), "the newest life began as this one");
        let changed_back = [tried(3, 3, 4, Verdict::Accepted), tried(2, 2, 6, Verdict::Accepted)];
        assert_eq!(found(&changed_back), None, "what was found from another start is none of this");
    }

    #[test]
    fn a_life_that_was_configured_to_begin_where_the_last_one_ended_is_a_new_beginning() {
        let setting = |actors| Setting { actors, environments: 8, batch_size: 64 };
        let tried =
            |configured, from, to, verdict| Tried { from: setting(from), to: setting(to), verdict, configured: setting(configured) };
        let probes = [
            tried(1, 1, 16, Verdict::Accepted),
            tried(1, 16, 17, Verdict::Rejected),
            tried(16, 16, 20, Verdict::Accepted),
            tried(16, 20, 25, Verdict::Rejected),
            tried(16, 20, 16, Verdict::Rejected),
        ];
        assert_eq!(Found::of_probes(setting(16), probes), Some(Found { home: setting(20), counts: [3, 1] }));
        assert_eq!(Found::of_probes(setting(1), probes), None);
        assert_eq!(Found::of_probes(setting(1), probes[..2].iter().copied()), Some(Found { home: setting(16), counts: [2, 1] }));
        let gone_on = [probes[0], tried(1, 16, 20, Verdict::Accepted), tried(1, 16, 20, Verdict::Abandoned)];
        assert_eq!(Found::of_probes(setting(1), gone_on), Some(Found { home: setting(16), counts: [2, 1] }), "it could not be kept");
        let of_the_last_home = [probes[0], tried(2, 2, 16, Verdict::Abandoned)];
        assert_eq!(Found::of_probes(setting(2), of_the_last_home), Some(Found { home: setting(2), counts: [1, 0] }), "it was tried");
    }

    #[test]
    fn what_repeats_a_run_has_its_updates_per_step_and_its_step_size() {
        let base = config(|config| {
            (config.adaptation.largest_batch, config.adaptation.hold) = (Some(256), Hold::UpdatesPerStep);
            (config.adaptation.step_size, config.learner.learning_rate) = (StepSize::Linear, Some(0.001));
            (config.replay.samples_per_insert, config.replay.error_band) = (Some(8.0), Some(4096.0));
        });
        let (fitted, flags) = repeating(&base, Setting { batch_size: 256, ..base.setting() });
        assert_eq!(flags, " --set learner.learning_rate=0.004 --set replay.samples_per_insert=32.0 --set replay.error_band=16384.0");
        assert!(!fitted.adaptation.enabled && fitted.validate().is_ok());
        assert_eq!(fitted.replay.samples_per_insert, Some(32.0));
        assert_eq!(repeating(&base, base.setting()).1, "", "nothing was found");
        let mut of_policy = config(|config| (config.adaptation.step_size, config.learner.learning_rate) = (StepSize::Linear, Some(0.001)));
        of_policy.algorithm.policy_learning_rate = Some(0.0001);
        let (_, flags) = repeating(&of_policy, Setting { batch_size: 128, ..of_policy.setting() });
        assert_eq!(flags, " --set learner.learning_rate=0.002 --set algorithm.policy_learning_rate=0.0002");
        let samples = config(|config| config.adaptation.largest_batch = Some(256));
        assert_eq!(repeating(&samples, Setting { batch_size: 256, ..samples.setting() }).1, "");
        let mut free = base;
        (free.adaptation.step_size, free.replay.samples_per_insert) = (StepSize::None, None);
        let flags = repeating(&free, Setting { batch_size: 256, ..free.setting() }).1;
        assert_eq!(flags, "", "a --set of an error band that has no effect is refused");
    }

    #[test]
    fn what_repeats_a_run_has_its_error_band() {
        let base = config(|config| {
            (config.adaptation.largest_batch, config.adaptation.hold) = (Some(4096), Hold::UpdatesPerStep);
            (config.replay.samples_per_insert, config.replay.min_size) = (Some(8.0), 4096);
        });
        assert_eq!(base.effective_error_band(), Some(4096.0), "the largest batch");
        let (fitted, flags) = repeating(&base, base.setting());
        assert_eq!(flags, " --set replay.error_band=4096.0");
        assert!(fitted.validate().is_ok() && fitted.effective_error_band() == base.effective_error_band());
        let (fitted, flags) = repeating(&base, Setting { batch_size: 128, ..base.setting() });
        assert_eq!(flags, " --set replay.samples_per_insert=16.0 --set replay.error_band=8192.0");
        assert!(fitted.validate().is_ok());
        let of_fragments = config(|config| {
            (config.algorithm.name, config.actor.environments) = ("ppo".into(), 16);
            config.adaptation.most_environments = Some(64);
        });
        assert_eq!(repeating(&of_fragments, of_fragments.setting()).1, "", "fragments wait for nobody's band");
    }

    #[test]
    fn what_repeats_a_run_lets_as_many_fragments_wait() {
        let repeated = |capacity, on_full| {
            let base = config(|config| {
                (config.algorithm.name, config.learner.batch_size) = ("appo".into(), 256);
                (config.adaptation.most_actors, config.adaptation.most_environments) = (Some(4), Some(32));
                (config.fragments.capacity, config.fragments.on_full) = (capacity, on_full);
            });
            let (fitted, flags) = repeating(&base, Setting { actors: 1, ..base.setting() });
            assert!(fitted.validate().is_ok() && fitted.most_waiting_fragments() == base.most_waiting_fragments());
            flags
        };
        // With those that may attach, 12 actors of 32 environments complete 384 fragments at once, and 9 of 8 complete 72.
        assert_eq!(repeated(Some(1_000), OnFull::Wait), " --set fragments.capacity=688");
        assert_eq!(repeated(None, OnFull::Wait), "", "two batches wait, however many actors there are");
        assert_eq!(repeated(Some(1_000), OnFull::DropOldest), "", "nobody waits, and the room stays");
    }

    /// Whether the flags that repeat a run of `text` which was fitted to `home` make the configuration that does so.
    fn is_repeated(text: &str, config: &Config, home: Setting) -> bool {
        let (fitted, more) = repeating(config, home);
        let flags = format!("{}{more} --set adaptation.enabled=false", home.flags());
        let overrides: Vec<String> = flags.split(' ').filter(|word| *word != "--set").map(str::to_owned).collect();
        Config::parse(text, "task.toml", &overrides).unwrap().config == fitted
    }

    #[test]
    fn what_repeats_a_run_of_ppo_divides_its_batch_as_it_was_divided() {
        let text = "environment.id = \"CartPole-v1\"\nalgorithm.name = \"ppo\"\nadaptation.enabled = true\n";
        let config = Config::parse(text, "task.toml", &[]).unwrap().config;
        assert_eq!((config.learner.batch_size, config.algorithm.minibatches), (256, 16));
        assert!(is_repeated(text, &config, Setting { environments: 4, ..config.setting() }));
    }

    #[test]
    fn what_repeats_a_run_whose_ratio_would_follow_the_batch_keeps_the_ratio() {
        let text =
            "environment.id = \"Pendulum-v1\"\nalgorithm.name = \"td3\"\nadaptation.enabled = true\nadaptation.largest_batch = 512\n";
        for hold in ["samples_per_insert", "updates_per_step"] {
            let text = format!("{text}adaptation.hold = \"{hold}\"\n");
            let config = Config::parse(&text, "task.toml", &[]).unwrap().config;
            assert_eq!((config.learner.batch_size, config.replay.samples_per_insert), (256, Some(256.0)));
            assert!(is_repeated(&text, &config, Setting { batch_size: 512, ..config.setting() }), "{hold}");
            assert!(is_repeated(&text, &config, config.setting()), "{hold}");
            // It goes on with another batch, and the ratio with which it began.
            let mut resumed = config;
            resumed.replay.samples_per_insert = Some(512.0);
            assert!(is_repeated(&text, &resumed, resumed.setting()), "{hold}");
        }
    }

    #[test]
    fn a_batch_is_the_configured_one_doubled_or_halved() {
        assert_eq!(
            [(64, 64), (96, 768), (256, 1), (1, 128)].map(|(configured, batch_size)| doublings(configured, batch_size)),
            [0, 3, -8, 7]
        );
    }
}
