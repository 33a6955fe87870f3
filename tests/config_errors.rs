//! The full text of what a user reads when a configuration is wrong: every problem at once, each where it was written.

use std::path::{Path, PathBuf};

use shoal::algorithms::registry::Algorithms;
use shoal::config::{Config, Key};
use shoal::environments::{self, EnvironmentError, EnvironmentRequest};
use shoal::presets::PRESETS;

/// The text of all errors of a file in `tests/data/config` with overrides.
fn errors_of(file: &str, overrides: &[&str]) -> String {
    let path = format!("tests/data/config/{file}");
    let overrides: Vec<String> = overrides.iter().map(|&text| text.to_owned()).collect();
    Config::load(Path::new(&path), &overrides).expect_err("the file is wrong").to_string()
}

/// Compares texts line by line, so that a difference is easy to see.
#[track_caller]
fn assert_same_lines(found: &str, expected: &str) {
    let expected = expected.trim();
    for (found, expected) in found.lines().zip(expected.lines()) {
        assert_eq!(found, expected);
    }
    assert_eq!(found, expected);
}

#[test]
fn unknown_names_are_met_with_the_nearest_known_ones() {
    assert_same_lines(
        &errors_of("unknown_names.toml", &[]),
        r#"
tests/data/config/unknown_names.toml:1:1: batch_size: unknown key; `batch_size` belongs to [learner]
tests/data/config/unknown_names.toml:2:1: lerner: unknown key; did you mean [learner]?
tests/data/config/unknown_names.toml:8:1: learner.batch_sise: unknown key; did you mean `batch_size`?
tests/data/config/unknown_names.toml:9:1: learner.momentum: unknown key; the keys of [learner] are `count`, `batch_size`, `learning_rate`, `learning_rate_end`, `adam_beta1`, `adam_beta2`, `adam_epsilon`, `max_gradient_norm`, `publish_interval_updates`, `prefetch`, `split`, `swap_interval_updates`, `device`
tests/data/config/unknown_names.toml:12:1: actor.batch_size: unknown key; `batch_size` belongs to [learner]
tests/data/config/unknown_names.toml:13:1: actor.n_steps: unknown key; here it is `algorithm.n_step` (dqn, ddpg, td3, sac) or `fragments.length_steps` (appo, ppo)
tests/data/config/unknown_names.toml:15:2: evaluation: unknown table; did you mean [evaluator]?
tests/data/config/unknown_names.toml:18:2: optimizer: unknown table; the tables are [run], [environment], [algorithm], [network], [auto_encoder], [actor], [learner], [replay], [fragments], [evaluator], [visualizer], [checkpoint], [adaptation], [machine], [own]
8 problems in the configuration
"#,
    );
}

#[test]
fn wrong_types_are_told_what_was_expected_and_how_to_write_it() {
    assert_same_lines(
        &errors_of("wrong_types.toml", &[]),
        r#"
tests/data/config/wrong_types.toml:1:1: replay: expected the table [replay], found an integer; write [replay] on a line of its own and its keys below
tests/data/config/wrong_types.toml:4:6: environment.id = 1: expected the name of an environment, such as "CartPole-v1", found an integer; write it in quotes: "1"
tests/data/config/wrong_types.toml:7:14: learner.batch_size = "64": expected an integer from 1 to 65536 (transitions), or "auto", found a string; write 64 without quotes
tests/data/config/wrong_types.toml:8:9: learner.count = "abc": expected an integer from 1 to 32 (processes), found a string
tests/data/config/wrong_types.toml:9:17: learner.learning_rate = true: expected a number above 0 and at most 1, or "none", found a boolean
tests/data/config/wrong_types.toml:10:10: learner.device = ["cpu"]: expected "cpu" or "cuda:N" with the number of a GPU, or several, as "cuda:0,cuda:1", found a list
tests/data/config/wrong_types.toml:13:10: network.hidden = 256: expected a list of 1 to 64 integers from 1 to 65536 (units), found an integer; write [256]
tests/data/config/wrong_types.toml:14:11: network.dueling = "yes": expected true or false, found a string
tests/data/config/wrong_types.toml:15:10: network.engine = { name = "cpu" }: expected "auto" or "cpu" or "torch", found a table
tests/data/config/wrong_types.toml:18:18: run.stop_env_steps = 1e6: expected an integer of at least 1 (environment steps), found a float; write 1000000
tests/data/config/wrong_types.toml:19:15: run.stop_wall_s = 2024-01-01: expected a number above 0 (seconds), or "none", found a date
tests/data/config/wrong_types.toml:20:8: run.seed = 1.5: expected an integer of at least 0, found a float
12 problems in the configuration
"#,
    );
}

#[test]
fn numbers_and_truth_as_other_languages_write_them_are_told_in_toml() {
    let told = errors_without_a_file(&["algorithm.gamma=.9", "learner.batch_size=64.", "algorithm.double=True", "actor.count=.5"]);
    assert!(told.contains("algorithm.gamma=.9: expected a number from 0 to 1, found a string; write 0.9\n"), "{told}");
    assert!(told.contains("learner.batch_size=64.: ") && told.contains("found a string; write 64\n"), "{told}");
    assert!(told.contains("algorithm.double=True: expected true or false, found a string; write true\n"), "{told}");
    let told_of_sac = errors_without_a_file(&["algorithm.name=sac", "algorithm.entropy_temperature=auto"]);
    assert!(told_of_sac.contains("found a string; write \"none\", which has Shoal find the number\n"), "{told_of_sac}");
    assert!(told.contains("actor.count=.5: ") && told.contains("found a string\n"), "no count is meant: {told}");
}

#[test]
fn values_out_of_range_are_told_the_range_its_unit_and_the_default() {
    assert_same_lines(
        &errors_of("out_of_range.toml", &[]),
        r#"
tests/data/config/out_of_range.toml:2:6: environment.id = "": must be the name of an environment, such as "CartPole-v1"; it has no default
tests/data/config/out_of_range.toml:5:8: run.seed = 99_999_999_999_999_999_999: expected an integer of at least 0, found a number beyond 64 bits
tests/data/config/out_of_range.toml:6:15: run.stop_wall_s = -1: must be a number above 0 (seconds), or "none"; the default is "none"
tests/data/config/out_of_range.toml:9:9: algorithm.gamma = 1.01: must be a number from 0 to 1; the default is 0.99
tests/data/config/out_of_range.toml:10:17: algorithm.epsilon_start = nan: must be a number from 0 to 1; the default is 1.0
tests/data/config/out_of_range.toml:11:14: algorithm.target_tau = 0.0: must be a number above 0 and at most 1, or "none"; the default is "none"
tests/data/config/out_of_range.toml:12:8: algorithm.loss = "hubre": must be "huber" or "mse", or "none"; did you mean "huber"?
tests/data/config/out_of_range.toml:13:15: algorithm.exploration = "boltzmann": must be "global" or "ape_x"; the default is "global"
tests/data/config/out_of_range.toml:16:10: network.hidden = []: must be a list of 1 to 64 integers from 1 to 65536 (units); the default is [256, 256]
tests/data/config/out_of_range.toml:19:9: learner.count = 0: must be an integer from 1 to 32 (processes); the default is 1
tests/data/config/out_of_range.toml:20:14: learner.batch_size = 1_000_000: must be an integer from 1 to 65536 (transitions), or "auto"; the default is 64
tests/data/config/out_of_range.toml:21:14: learner.adam_beta1 = 1.0: must be a number of at least 0 and below 1; the default is 0.9
tests/data/config/out_of_range.toml:22:10: learner.device = "gpu": must be "cpu" or "cuda:N" with the number of a GPU, or several, as "cuda:0,cuda:1"; the default is "cpu"
tests/data/config/out_of_range.toml:25:12: replay.capacity = 33_554_432: must be an integer from 64 to 16777216 (transitions); the default is 100000
tests/data/config/out_of_range.toml:26:10: replay.fanout = 12: must be an integer among 4, 8, 16, 32 and 64 (children); the default is 16
tests/data/config/out_of_range.toml:27:22: replay.samples_per_insert = 0: must be a number above 0 (samples per insert), or "none"; the default is 32.0
tests/data/config/out_of_range.toml:28:12: replay.min_size = -5: must be an integer from 1 to 16777216 (transitions); the default is 1000
17 problems in the configuration
"#,
    );
}

#[test]
fn the_default_that_is_told_is_that_of_the_algorithm_wherever_it_is_named() {
    for overrides in [["learner.batch_size=0", "algorithm.name=sac"], ["algorithm.name=sac", "learner.batch_size=0"]] {
        let told = errors_without_a_file(&overrides);
        assert!(told.contains("or \"auto\"; the default is 256\n"), "{told}");
    }
}

#[test]
fn keys_that_contradict_each_other_are_told_both_values_and_a_way_out() {
    assert_same_lines(
        &errors_of("contradictions.toml", &[]),
        r#"
tests/data/config/contradictions.toml:5:20: a run.stop_eval_return of 475 is never reached while evaluator.enabled is false, because nobody measures the return; set evaluator.enabled to true or run.stop_eval_return to "none"
tests/data/config/contradictions.toml:9:15: an algorithm.epsilon_end of 0 makes every rate of algorithm.exploration "ape_x" 0, so no environment would explore; use 0.4, as Ape-X does
tests/data/config/contradictions.toml:12:10: network.engine "cpu" cannot compute on learner.device "cuda:0"; set network.engine to "torch" or learner.device to "cpu"
tests/data/config/contradictions.toml:19:9: a learner.count of 3 contradicts actor.count 0, which runs everything in one process; set learner.count to 1 or actor.count to at least 1
tests/data/config/contradictions.toml:20:14: a learner.batch_size of 64 cannot be shared equally by 3 learners (learner.count); use 66
tests/data/config/contradictions.toml:24:12: a replay.capacity of 1000 is less than the 1063 transitions that can be written at once, up to 1063 by each of actor.count 1 and actor.attach_slots 0, for actor.flush_transitions 64, actor.environments 1000 and algorithm.n_step 1; raise replay.capacity or lower one of these
tests/data/config/contradictions.toml:25:12: replay.min_size 2000 exceeds replay.capacity 1000, so sampling would never begin; lower replay.min_size or raise replay.capacity
tests/data/config/contradictions.toml:26:14: replay.beta_start 0.9 exceeds replay.beta_end 0.5, but beta only grows; lower replay.beta_start or raise replay.beta_end
tests/data/config/contradictions.toml:28:14: a replay.error_band of 100 samples is too narrow for batches of 64 and flushes of up to 1063 transitions: one alone would leave it; use at least 34016, or "none"
9 problems in the configuration
"#,
    );
}

/// The text of all errors of `overrides` without a file.
fn errors_without_a_file(overrides: &[&str]) -> String {
    let overrides: Vec<String> = overrides.iter().map(|&text| text.to_owned()).collect();
    Config::of_argument("CartPole-v1", "CartPole-v1", &overrides).expect_err("the overrides contradict each other").to_string()
}

#[test]
fn a_batch_that_learners_cannot_share_is_told_one_size_that_they_can_or_what_to_lower() {
    let of_fragments = |more: &[&str]| errors_without_a_file(&[&["algorithm.name=ppo", "learner.batch_size=256"][..], more].concat());
    let shared = of_fragments(&["learner.count=3"]);
    assert!(shared.contains("for each of 3 learners (learner.count); use 288") && shared.contains("\n1 problem in"), "{shared}");
    let too_long = of_fragments(&["learner.count=32", "fragments.length_steps=4096"]);
    assert!(too_long.contains("(learner.count); lower fragments.length_steps or learner.count"), "{too_long}");
}

#[test]
fn a_band_too_narrow_for_a_range_is_an_error_of_the_range_which_may_be_lowered_if_it_has_room_for_the_beginning() {
    let error = |band: &str, overrides: &[&str]| {
        let file = format!(
            "environment.id = \"CartPole-v1\"\nactor.environments = 8\nactor.flush_transitions = 64\nlearner.batch_size = 64\n\
             replay.samples_per_insert = 16.0\nreplay.error_band = {band}\nreplay.min_size = 4096"
        );
        let overrides = [&["adaptation.enabled=true"][..], overrides].concat().into_iter().map(str::to_owned).collect::<Vec<_>>();
        Config::parse(&file, "run.toml", &overrides).expect_err("the band is too narrow").to_string()
    };
    let environments = error("2000.0", &["adaptation.most_environments=128"]);
    assert_same_lines(
        &environments,
        "--set adaptation.most_environments=128: a replay.error_band of 2000 samples is too narrow for batches of 64 and flushes of up to \
         191 transitions: one alone would leave it; use at least 3056, or \"none\", or lower adaptation.most_environments\n\
         1 problem in the configuration",
    );
    let batch = error("2000.0", &["adaptation.largest_batch=4096"]);
    assert!(
        batch.starts_with("--set adaptation.largest_batch=4096: ") && batch.contains(", or lower adaptation.largest_batch\n"),
        "{batch}"
    );
    let both = error("2000.0", &["adaptation.largest_batch=4096", "adaptation.most_environments=128"]);
    assert!(both.contains(", or lower adaptation.largest_batch and adaptation.most_environments\n"), "{both}");
    let at_first = error("1000.0", &["adaptation.most_environments=128"]);
    assert!(at_first.contains("use at least 3056, or \"none\"\n"), "{at_first}");
}

#[test]
fn too_little_room_for_fragments_is_refused_with_what_any_run_or_this_run_needs() {
    let few = ["algorithm.name=appo", "actor.environments=1", "actor.attach_slots=0", "fragments.capacity=40"];
    let any = errors_without_a_file(&few);
    assert!(any.contains("must be an integer from 64 to 1048576 (fragments)") && any.contains("\n1 problem in"), "{any}");
    let this = errors_without_a_file(&["algorithm.name=appo", "fragments.capacity=64"]);
    assert!(this.contains("a fragments.capacity of 64 is less than the 74 fragments") && this.contains("use at least 74"), "{this}");
    let both = ["algorithm.name=appo", "actor.count=2", "learner.batch_size=1", "fragments.capacity=80"];
    let both = errors_without_a_file(&both);
    assert!(both.contains("(learner.count); use 32") && both.contains("use at least 81"), "with a batch of 32: {both}");
}

#[test]
fn no_number_is_advised_that_its_key_does_not_take() {
    let appo = |more: &[&str]| errors_without_a_file(&[&["algorithm.name=appo"][..], more].concat());
    let replaying = |length: &str, batch: &str| appo(&["learner.count=16", "fragments.replay_share=0.5", length, batch]);
    let large = replaying("fragments.length_steps=2048", "learner.batch_size=32768");
    assert!(large.contains("nothing could be replayed; raise learner.batch_size to 65536, or set fragments.replay_share"), "{large}");
    let too_large = replaying("fragments.length_steps=4096", "learner.batch_size=65536");
    assert!(too_large.contains("nothing could be replayed; lower fragments.length_steps or learner.count, or set"), "{too_large}");
    let crowded = appo(&["actor.count=256", "actor.environments=4096", "actor.attach_slots=8", "fragments.capacity=64"]);
    assert!(crowded.contains("complete at once; use \"none\"") && !crowded.contains("at least"), "{crowded}");
    let rare = |interval: &str| appo(&[&format!("learner.publish_interval_updates={interval}")]);
    let (lag, none) = (rare("1000000001"), rare("1000000002"));
    assert!(lag.contains("(learner.publish_interval_updates); use at least 1000000000\n"), "{lag}");
    assert!(none.contains("(learner.publish_interval_updates); lower learner.publish_interval_updates to at most 1000000001\n"), "{none}");
    let of_transitions = |more: &[&str]| errors_without_a_file(&[&["replay.min_size=1000"][..], more].concat());
    let doubled = of_transitions(&["adaptation.enabled=true", "learner.batch_size=256", "adaptation.largest_batch=1000"]);
    assert!(doubled.contains("use 512, for instance\n"), "1024 is more than the smallest replay: {doubled}");
    let shared = |count| of_transitions(&["learner.batch_size=1000", &format!("learner.count={count}")]);
    assert!(shared(3).contains("(learner.count); use 999\n"), "1002 is more than the smallest replay: {}", shared(3));
    let few = errors_without_a_file(&["replay.min_size=2", "learner.batch_size=2", "learner.count=3"]);
    assert!(few.contains("(learner.count); lower learner.count\n"), "{few}");
}

#[test]
fn a_batch_above_the_smallest_replay_is_refused_with_both_remedies_and_the_one_for_a_resumed_run() {
    let told = errors_without_a_file(&["learner.batch_size=2000"]);
    let ways = "lower learner.batch_size, or raise replay.min_size to at least 2000 (a run that goes on keeps its own)";
    assert!(told.contains(ways), "{told}");
}

#[test]
fn what_a_run_that_fits_itself_may_come_to_is_told_by_the_keys_that_allow_it() {
    let adapting = ["adaptation.enabled=true", "actor.count=1"];
    let told = errors_without_a_file(&[adapting.as_slice(), &["actor.environments=64", "adaptation.most_actors=1024"]].concat());
    assert!(told.contains("--set adaptation.most_actors=1024") && told.contains("each of adaptation.most_actors 1024"), "{told}");
    let told = errors_without_a_file(&[adapting.as_slice(), &["algorithm.n_step=3", "adaptation.most_environments=4096"]].concat());
    assert!(told.contains("adaptation.most_environments 4096 and"), "{told}");
    let told = errors_without_a_file(&[adapting.as_slice(), &["learner.batch_size=64", "adaptation.largest_batch=1024"]].concat());
    let refusal = "--set adaptation.largest_batch=1024: adaptation.largest_batch 1024 exceeds replay.min_size";
    assert!(told.contains(refusal) && told.contains("lower adaptation.largest_batch"), "{told}");
    let told = errors_without_a_file(&[adapting.as_slice(), &["adaptation.fewest_actors=3", "adaptation.most_actors=2"]].concat());
    assert!(told.contains("adaptation.fewest_actors 3 is above adaptation.most_actors 2"), "{told}");
}

#[test]
fn keys_that_the_algorithm_does_not_know_are_told_which_ones_do() {
    assert_same_lines(
        &errors_of("without_effect.toml", &["algorithm.epsilon_end=0.1", "algorithm.entropy_temperature=0.2"]),
        r#"
tests/data/config/without_effect.toml:6:1: algorithm.double: it has no effect on sac, only on dqn; remove it, or change algorithm.name
tests/data/config/without_effect.toml:7:1: algorithm.policy_delay_updates: it has no effect on sac, only on td3; remove it, or change algorithm.name
tests/data/config/without_effect.toml:11:1: network.dueling: it has no effect on sac, only on dqn; remove it, or change algorithm.name
--set algorithm.epsilon_end=0.1: it has no effect on sac, only on dqn; remove it, or change algorithm.name
4 problems in the configuration
"#,
    );
}

#[test]
fn every_algorithm_that_a_key_names_is_in_the_registry() {
    let known: Vec<&str> = Algorithms::default().names().collect();
    for key in Key::all() {
        assert!(key.algorithms.iter().all(|name| known.contains(name)), "{}: {:?}", key.path(), key.algorithms);
    }
}

#[test]
fn a_python_is_chosen_for_environments_that_need_one_alone() {
    // All names and, with `...` behind them, all prefixes.
    let Err(EnvironmentError::Unknown { known, .. }) = environments::spec("Absent-v1") else { panic!("there is no such environment") };
    assert!(known.contains("CartPole-v1, ") && known.contains("python:..."), "{known}");
    for id in known.split(", ").map(|name| name.replace("...", "Task")) {
        for change in ["environment.python=/usr/bin/python3", "environment.python_path=tasks"] {
            let parsed = Config::parse(&format!("environment.id = {id:?}"), "python.toml", &[change.to_owned()]);
            assert_eq!(parsed.is_ok(), EnvironmentRequest::new(&id).needs_python(), "{id} {change}");
            if let Err(refusal) = parsed {
                assert!(refusal.to_string().contains("while environment.id names no environment in Python"), "{refusal}");
            }
        }
    }
}

/// What a run keeps in its folder starts the same run again, for every preset.
#[test]
fn the_resolved_configuration_of_every_preset_loads_as_itself_and_names_no_key_without_effect() {
    for path in presets() {
        let config = Config::load(&path, &[]).unwrap_or_else(|errors| panic!("{errors}")).config;
        let resolved = config.to_toml();
        let loaded = Config::parse(&resolved, "resolved.toml", &[]).unwrap_or_else(|errors| panic!("{errors}"));
        assert_eq!(loaded.config, config);
        assert_eq!(resolved.contains("epsilon_end"), config.algorithm.name == "dqn", "{resolved}");
    }
}

#[test]
fn broken_toml_is_reported_alone_with_its_places() {
    assert_same_lines(
        &errors_of("syntax.toml", &[]),
        r#"
tests/data/config/syntax.toml:1:13: not valid TOML: unclosed table, expected `]`
tests/data/config/syntax.toml:5:14: not valid TOML: string values must be quoted, expected literal string
tests/data/config/syntax.toml:7:1: not valid TOML: duplicate key
3 problems in the configuration
"#,
    );
}

#[test]
fn a_missing_key_is_reported_where_its_table_begins() {
    assert_same_lines(
        &errors_of("missing.toml", &[]),
        r#"
tests/data/config/missing.toml:1:2: environment.id: missing; set it to the name of an environment, such as "CartPole-v1"
1 problem in the configuration
"#,
    );
}

#[test]
fn problems_of_overrides_follow_those_of_the_file_in_their_order() {
    let overrides = [
        "learner.batch_sise=512",
        "learner.count",
        "batch_size=3",
        "lerner.count=3",
        "learner.count=many",
        "algorithm.loss=hubre",
        "network.hidden=[64,",
        r#"environment.keyword_argument={"length": 4}"#,
        "replay.min_size=200_000",
    ];
    assert_same_lines(
        &errors_of("overridden.toml", &overrides),
        r#"
tests/data/config/overridden.toml:5:14: learner.batch_size = 0: must be an integer from 1 to 65536 (transitions), or "auto"; the default is 64
--set learner.batch_sise=512: unknown key; did you mean `batch_size`?
--set learner.count: expected TABLE.KEY=VALUE, such as learner.batch_size=512
--set batch_size=3: unknown key; `batch_size` belongs to [learner]
--set lerner.count=3: unknown table; did you mean [learner]?
--set learner.count=many: expected an integer from 1 to 32 (processes), found a string
--set algorithm.loss=hubre: must be "huber" or "mse", or "none"; did you mean "huber"?
--set network.hidden=[64,: not valid TOML: unclosed array, expected `]`
--set environment.keyword_argument={"length": 4}: unknown key; did you mean `keyword_arguments`?
--set replay.min_size=200_000: replay.min_size 200000 exceeds replay.capacity 100000, so sampling would never begin; lower replay.min_size or raise replay.capacity
10 problems in the configuration
"#,
    );
}

#[test]
fn a_file_that_cannot_be_read_is_one_problem() {
    assert_same_lines(
        &errors_of("absent.toml", &[]),
        r#"
tests/data/config/absent.toml: cannot be read (No such file or directory (os error 2)); give the path of a TOML file
1 problem in the configuration
"#,
    );
}

fn presets() -> Vec<PathBuf> {
    let files = std::fs::read_dir("configs").unwrap().map(|entry| entry.unwrap().path());
    let presets: Vec<PathBuf> = files.filter(|path| path.extension().is_some_and(|extension| extension == "toml")).collect();
    // One needs a file beside it, and is not part of the program.
    assert_eq!(presets.len(), PRESETS.len() + 1, "{presets:?}");
    presets
}
