//! Keys that have no effect while another key has a certain value.
//!
//! A file may set such keys, so that one line switches a part of the run off and on again. A `--set` of such a key is
//! refused, because whoever types it expects an effect. It is accepted if a later `--set` switches the part off: then
//! that was meant. A `--set algorithm.name` is no such switch, even if the part is off by that algorithm's defaults.

use super::schema::{Config, Exploration, Split, Surrogate};

/// Keys that have no effect in some configurations, and why.
pub(crate) struct Idle {
    /// The keys.
    pub(crate) keys: &'static [&'static str],
    /// Whether the keys have no effect in this configuration.
    pub(crate) holds: fn(&Config) -> bool,
    /// The state of other keys in which these have no effect, as a clause.
    pub(crate) state: &'static str,
    /// What to set so that they have an effect.
    pub(crate) remedy: &'static str,
}

/// The first reason why the key with the path `key` has no effect in `config`; `None` if it has one.
pub(crate) fn reason(key: &str, config: &Config) -> Option<&'static Idle> {
    IDLE.iter().find(|idle| idle.keys.contains(&key) && (idle.holds)(config))
}

/// Every reason for which keys have no effect.
pub(crate) const IDLE: &[Idle] = &[
    Idle {
        keys: &["environment.python", "environment.python_path"],
        holds: |config| !IN_PYTHON.iter().any(|prefix| config.environment.id.starts_with(prefix)),
        state: "environment.id names no environment in Python",
        remedy: "environment.id to one that begins with atari:, gymnasium: or python:",
    },
    Idle {
        keys: &[
            "replay.fanout",
            "replay.alpha",
            "replay.beta_start",
            "replay.beta_end",
            "replay.beta_anneal_steps",
            "replay.priority_epsilon",
            "replay.initial_priority",
        ],
        holds: |config| !config.replay.prioritized,
        state: "replay.prioritized is false",
        remedy: "replay.prioritized=true",
    },
    Idle {
        keys: &["replay.error_band"],
        holds: |config| config.replay.samples_per_insert.is_none(),
        state: "replay.samples_per_insert is \"none\"",
        remedy: "replay.samples_per_insert to a number",
    },
    Idle {
        keys: &["algorithm.epsilon_start", "algorithm.epsilon_anneal_steps"],
        holds: |config| config.algorithm.exploration == Exploration::ApeX,
        state: "algorithm.exploration is \"ape_x\"",
        remedy: "algorithm.exploration=global",
    },
    Idle {
        keys: &["algorithm.epsilon_alpha"],
        holds: |config| config.algorithm.exploration == Exploration::Global,
        state: "algorithm.exploration is \"global\"",
        remedy: "algorithm.exploration=ape_x",
    },
    Idle {
        keys: &["algorithm.initial_entropy_temperature", "algorithm.target_entropy"],
        holds: |config| config.algorithm.entropy_temperature.is_some(),
        state: "algorithm.entropy_temperature is a number",
        remedy: "algorithm.entropy_temperature=none",
    },
    Idle {
        keys: &["algorithm.clip_ratio"],
        holds: |config| config.algorithm.surrogate == Surrogate::PolicyGradient,
        state: "algorithm.surrogate is \"policy_gradient\"",
        remedy: "algorithm.surrogate=clipped",
    },
    Idle {
        keys: &["auto_encoder.latent"],
        holds: |config| config.auto_encoder.coefficient == 0.0,
        state: "auto_encoder.coefficient is 0",
        remedy: "auto_encoder.coefficient to more",
    },
    Idle {
        keys: &["learner.swap_interval_updates"],
        holds: |config| config.learner.split == Split::None,
        state: "learner.split is \"none\"",
        remedy: "learner.split=actor_critic",
    },
    Idle {
        keys: &["evaluator.episodes", "evaluator.confirm_episodes", "evaluator.interval_ms", "evaluator.synchronous_interval_steps"],
        holds: |config| !config.evaluator.enabled,
        state: "evaluator.enabled is false",
        remedy: "evaluator.enabled=true",
    },
    Idle {
        keys: &["evaluator.synchronous_interval_steps", "checkpoint.synchronous_interval_steps"],
        holds: |config| config.actor.count > 0,
        state: "actor.count is not 0",
        remedy: "actor.count=0, or the interval in time",
    },
    Idle {
        keys: &["checkpoint.interval_s"],
        holds: |config| config.actor.count == 0,
        state: "actor.count is 0",
        remedy: "checkpoint.synchronous_interval_steps",
    },
    Idle {
        keys: &["evaluator.interval_ms"],
        holds: |config| config.actor.count == 0,
        state: "actor.count is 0",
        remedy: "evaluator.synchronous_interval_steps",
    },
    Idle {
        keys: &["actor.flush_interval_ms", "actor.attach_slots", "learner.prefetch", "machine.affinity"],
        holds: |config| config.actor.count == 0,
        state: "actor.count is 0",
        remedy: "actor.count to at least 1",
    },
    Idle {
        keys: &["visualizer.pictures_per_s", "visualizer.video_interval_s", "visualizer.video_format", "visualizer.keep_videos"],
        holds: |config| !config.visualizer.enabled,
        state: "visualizer.enabled is false",
        remedy: "visualizer.enabled=true",
    },
    Idle {
        keys: &["visualizer.video_format", "visualizer.keep_videos"],
        holds: |config| config.visualizer.video_interval_s.is_none(),
        state: "visualizer.video_interval_s is \"none\"",
        remedy: "visualizer.video_interval_s to a number",
    },
    Idle {
        keys: &[
            "adaptation.fewest_actors",
            "adaptation.most_actors",
            "adaptation.fewest_environments",
            "adaptation.most_environments",
            "adaptation.smallest_batch",
            "adaptation.largest_batch",
            "adaptation.hold",
            "adaptation.step_size",
            "adaptation.freeze_after",
        ],
        holds: |config| !config.adaptation.enabled,
        state: "adaptation.enabled is false",
        remedy: "adaptation.enabled=true",
    },
    Idle {
        keys: &["adaptation.step_size"],
        holds: |config| {
            let batch_size = config.learner.batch_size;
            let ends = [config.adaptation.smallest_batch, config.adaptation.largest_batch];
            ends.into_iter().flatten().all(|end| end == batch_size)
        },
        state: "adaptation.smallest_batch and adaptation.largest_batch name no batch but learner.batch_size",
        remedy: "adaptation.largest_batch to a larger batch",
    },
    Idle {
        keys: &["adaptation.hold"],
        holds: |config| config.replay.samples_per_insert.is_none(),
        state: "replay.samples_per_insert is \"none\"",
        remedy: "replay.samples_per_insert to a number",
    },
    Idle {
        keys: CHECKPOINT_KEYS,
        holds: |config| config.actor.count == 0 && config.checkpoint.synchronous_interval_steps.is_none(),
        state: "checkpoint.synchronous_interval_steps is \"none\" and actor.count is 0",
        remedy: "checkpoint.synchronous_interval_steps to a number",
    },
    Idle {
        keys: CHECKPOINT_KEYS,
        holds: |config| config.actor.count > 0 && config.checkpoint.interval_s.is_none(),
        state: "checkpoint.interval_s is \"none\" and actor.count is not 0",
        remedy: "checkpoint.interval_s to a number of seconds",
    },
    Idle {
        keys: &["machine.torch_threads"],
        holds: |config| !config.computes_with_libtorch(),
        state: "network.engine is not \"torch\" and learner.device names no GPU",
        remedy: "network.engine=torch, or learner.device to a GPU",
    },
];

/// What the names of environments in Python begin with. `tests/config_errors.rs` compares it with the registry.
const IN_PYTHON: [&str; 3] = ["atari:", "gymnasium:", "python:"];

const CHECKPOINT_KEYS: &[&str] = &["checkpoint.replay", "checkpoint.keep_last", "checkpoint.keep_best", "checkpoint.keep_every_steps"];

#[cfg(test)]
mod tests {
    use super::super::key::Key;
    use super::*;

    fn refused(changes: &[&str]) -> Option<String> {
        let changes: Vec<String> = changes.iter().map(|&change| change.to_owned()).collect();
        let file = "[environment]\nid = \"CartPole-v1\"\n[replay]\nprioritized = false\nalpha = 0.5\n";
        Config::parse(file, "preset.toml", &changes).err().map(|errors| errors.to_string())
    }

    fn is_accepted(file: &str, changes: &[&str]) -> bool {
        let changes: Vec<String> = changes.iter().map(|&change| change.to_owned()).collect();
        Config::parse(&format!("[environment]\nid = \"CartPole-v1\"\n{file}"), "preset.toml", &changes).is_ok()
    }

    #[test]
    fn every_idle_key_is_one() {
        let unknown: Vec<&str> = IDLE.iter().flat_map(|idle| idle.keys).copied().filter(|key| Key::find(key).is_none()).collect();
        assert_eq!(unknown, [""; 0]);
    }

    #[test]
    fn a_key_that_another_makes_idle_is_refused_where_it_is_changed_and_rests_in_a_file() {
        assert_eq!(refused(&[]), None, "a file may have it");
        assert_eq!(refused(&["replay.alpha=0.5"]), None, "as the file has it");
        assert_eq!(refused(&["replay.beta_end=1"]), None, "as it is without anybody");
        assert_eq!(refused(&["replay.alpha=0.7", "replay.prioritized=true"]), None);
        let told = refused(&["replay.alpha=0.7"]).unwrap();
        let expected =
            "--set replay.alpha=0.7: it has no effect while replay.prioritized is false; leave it out, or set replay.prioritized=true";
        assert!(told.contains(expected), "{told}");
    }

    #[test]
    fn every_reason_refuses_its_keys_and_its_remedy_accepts_them() {
        for (change, switch, told) in [
            ("replay.error_band=900", "replay.samples_per_insert=none", "replay.samples_per_insert is \"none\""),
            ("algorithm.epsilon_start=0.5", "algorithm.exploration=ape_x", "algorithm.exploration is \"ape_x\""),
            ("visualizer.keep_videos=3", "visualizer.pictures_per_s=10.0", "visualizer.enabled is false"),
            ("evaluator.interval_ms=5", "actor.count=0", "evaluator.synchronous_interval_steps"),
            ("evaluator.episodes=5", "evaluator.enabled=false", "evaluator.enabled is false"),
            ("checkpoint.keep_best=true", "checkpoint.interval_s=none", "checkpoint.interval_s is \"none\""),
            ("learner.prefetch=true", "actor.count=0", "actor.count is 0"),
            ("actor.attach_slots=2", "actor.count=0", "actor.count is 0"),
            ("machine.affinity=false", "actor.count=0", "actor.count is 0"),
            ("machine.torch_threads=2", "network.engine=cpu", "learner.device names no GPU"),
            ("adaptation.step_size=linear", "adaptation.enabled=true", "name no batch but learner.batch_size"),
        ] {
            let refusal = refused(&[switch, change]).unwrap_or_default();
            assert!(refusal.contains(told), "{switch} {change}: {refusal}");
        }
        assert_eq!(refused(&["evaluator.episodes=5", "evaluator.enabled=false"]), None, "who switches it off last expects no effect");
        assert!(refused(&["evaluator.synchronous_interval_steps=500", "actor.count=2"]).is_some(), "it had none before that either");
        for (change, switch) in [
            ("evaluator.synchronous_interval_steps=500", "actor.count=0"),
            ("adaptation.freeze_after=0.5", "adaptation.enabled=true"),
            ("algorithm.epsilon_alpha=3.0", "algorithm.exploration=ape_x"),
            ("visualizer.keep_videos=3", "visualizer.enabled=true"),
            ("machine.torch_threads=2", "network.engine=torch"),
            ("machine.torch_threads=2", "learner.device=cuda:0"),
        ] {
            assert!(refused(&[change]).is_some(), "{change}");
            assert_eq!(refused(&[change, switch]), None, "{change} {switch}");
        }
    }

    #[test]
    fn what_follows_the_batch_of_a_run_that_fits_itself_is_refused_where_no_batch_or_ratio_is_left_to_follow() {
        let changed =
            |change: &'static str, beside: &[&'static str]| is_accepted("[adaptation]\nenabled = true\n", &[beside, &[change]].concat());
        let step_size = "adaptation.step_size=sqrt";
        assert!(!changed(step_size, &["adaptation.largest_batch=64"]), "no other batch than the configured one");
        assert!(changed(step_size, &["adaptation.largest_batch=128"]) && changed(step_size, &["adaptation.smallest_batch=32"]));
        let hold = "adaptation.hold=updates_per_step";
        assert!(changed(hold, &[]), "the objective of the search follows it, whatever the batch");
        assert!(!changed(hold, &["replay.samples_per_insert=none"]));
    }

    #[test]
    fn whatever_of_several_keys_disables_it_may_be_a_later_override() {
        let keep = "checkpoint.keep_last=3";
        assert!(is_accepted("", &[keep, "actor.count=0"]) && !is_accepted("", &["actor.count=0", keep]));
        assert!(is_accepted("", &[keep, "actor.count=2", "checkpoint.interval_s=none"]));
        let by_steps = "[actor]\ncount = 0\n[checkpoint]\nsynchronous_interval_steps = 500\ninterval_s = \"none\"\n";
        assert!(is_accepted(by_steps, &[keep, "checkpoint.synchronous_interval_steps=none"]));
        assert!(is_accepted(by_steps, &[keep, "actor.count=2"]));
        let never = "[actor]\ncount = 0\n[checkpoint]\ninterval_s = \"none\"\n";
        assert!(!is_accepted(never, &[keep, "actor.count=2"]), "another reason has taken the place of one that was there");
        let (threads, on_gpu) = ("machine.torch_threads=2", "[learner]\ndevice = \"cuda:0\"\n");
        assert!(is_accepted(on_gpu, &[threads, "learner.device=cpu"]) && !is_accepted(on_gpu, &["learner.device=cpu", threads]));
        let both = ["visualizer.keep_videos=3", "visualizer.video_interval_s=none", "visualizer.enabled=false"];
        assert!(is_accepted("[visualizer]\nenabled = true\n", &both), "either would do");
    }

    #[test]
    fn an_override_had_the_effect_that_the_overrides_before_it_gave_it() {
        let keep = "visualizer.keep_videos=3";
        assert!(is_accepted("", &["visualizer.enabled=true", keep, "visualizer.enabled=false"]));
        assert!(!is_accepted("", &["visualizer.enabled=true", "visualizer.enabled=false", keep]));
        let by_steps = "evaluator.synchronous_interval_steps=500";
        assert!(is_accepted("", &["actor.count=0", by_steps, "actor.count=1"]));
        assert!(!is_accepted("", &[by_steps, "actor.count=0", "actor.count=1"]));
    }

    #[test]
    fn a_key_that_the_defaults_of_the_algorithm_make_idle_is_refused_before_and_after_its_name() {
        let (name, alpha) = ("algorithm.name=sac", "replay.alpha=0.7");
        assert!(!is_accepted("", &[name, alpha]) && !is_accepted("", &[alpha, name]), "SAC draws uniformly");
        assert!(is_accepted("", &[alpha, name, "replay.prioritized=true"]) && is_accepted("", &[alpha, "algorithm.name=dqn"]));
        assert!(is_accepted("", &[name, "replay.prioritized=true", alpha, "replay.prioritized=false"]));
    }

    #[test]
    fn a_key_that_rests_contradicts_no_other() {
        let by_steps = "[actor]\ncount = 2\n[checkpoint]\nsynchronous_interval_steps = 500\nreplay = \"never\"\n";
        assert!(is_accepted(by_steps, &[]) && !is_accepted(by_steps, &["actor.count=0"]));
        let by_error = "[replay]\ninitial_priority = \"td_error\"\n[algorithm]\nnormalise_rewards = true\n";
        assert!(is_accepted(by_error, &["replay.prioritized=false"]) && !is_accepted(by_error, &[]));
        let falling = "[replay]\nprioritized = false\nbeta_end = 0.3\n";
        assert!(is_accepted(falling, &[]) && !is_accepted(falling, &["replay.prioritized=true"]));
    }
}
