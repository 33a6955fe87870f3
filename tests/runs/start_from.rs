//! A new run starts from what another has learned, and says what it cannot start from. Driven as real binaries.

use std::path::{Path, PathBuf};

use nix::sys::signal::Signal;
use shoal::algorithms::Statistics;
use shoal::catalogue::Catalogue;
use shoal::checkpoint::{PolicyWeights, RunCheckpoint};
use shoal::config::Config;
use shoal::environments::{ActionSpace, Dynamics, EnvironmentSpec, Generator, Native, ObservationSpace, registry};
use shoal::roles::supervisor::{Prepared, SupervisorError};
use shoal::segment::{Segment, SegmentSizes};
use shoal::sync::Ordering;

use crate::support::programs::{self, SMALL, Supervised, bits, checkpoints_in, number, preset, program, said, start, start_preset, told};

/// A synchronous run whose last weights are those of its only checkpoint.
const TO_A_CHECKPOINT: &[&str] = &["actor.count=0", "checkpoint.synchronous_interval_steps=1500", "run.stop_env_steps=1500"];
/// No update comes before a test has looked.
const BEFORE_THE_FIRST_UPDATE: &[&str] = &["replay.min_size=20000", "environment.step_delay_us=20000", "evaluator.enabled=false"];

fn ended(mut run: Supervised) -> Supervised {
    run.succeed();
    run
}

/// A run that has learned a little.
fn learned(overrides: &[&str]) -> Supervised {
    ended(start(&[TO_A_CHECKPOINT, overrides].concat()))
}

/// The change by which another starts from what `source` has learned.
fn from(source: &Supervised) -> String {
    format!("run.start_from={:?}", source.run_folder())
}

/// The newest checkpoint, by the path that is the same from anywhere.
fn newest(run: &Supervised) -> PathBuf {
    run.checkpoints().pop().unwrap().canonicalize().unwrap()
}

fn config_of(run: &Supervised) -> Config {
    Config::load(&run.run_folder().join("config.toml"), &[]).unwrap().config
}

/// What learners have on their boards.
fn states(segment: &Segment) -> Vec<Vec<u32>> {
    let read = |board: shoal::segment::float_board::FloatBoard<'_>| {
        let mut values = vec![0.0; board.len()];
        board.read(&mut values).map(|_| bits(&values)).unwrap_or_default()
    };
    segment.learner_boards().map(read).collect()
}

/// A segment as that of `run`, with what `checkpoint` gives to a run that begins.
fn begun_with(checkpoint: &Path, run: &Segment) -> Segment {
    let segment = Segment::create_private(run.layout().clone(), &run.description().unwrap()).unwrap();
    RunCheckpoint::open_to_begin(checkpoint).unwrap().learned().unwrap().put_into(&segment).unwrap();
    segment
}

/// What all learners of `run` keep once they have begun, and what `checkpoint` gives them, in a segment of its own.
fn begun(checkpoint: &Path, run: &mut Supervised) -> (Vec<Vec<u32>>, Segment) {
    run.wait_for_log("starts from");
    run.wait_for_process("learner");
    let segment = run.segment();
    // The second version is what whoever leads has made of the first.
    run.wait_until("learners that lead", || segment.learner_boards().all(|board| board.version() >= 2));
    assert_eq!(number(run.metrics().last().unwrap_or(&serde_json::json!({ "updates": 0 })), "updates"), 0);
    (states(&segment), begun_with(checkpoint, &segment))
}

/// Assert that all learners of `run`, once they have begun, keep what was learned before `checkpoint` was written.
fn assert_learners_begin_with(checkpoint: &Path, run: &mut Supervised) {
    let (kept, given) = begun(checkpoint, run);
    assert!(kept == states(&given), "other parameters, targets or moments");
}

#[test]
fn a_run_that_starts_from_one_that_plays_well_does_so_in_its_first_evaluation_and_learns_on() {
    let no_goal = "run.stop_eval_return=\"none\"";
    let changes = ["actor.count=0", "run.stop_env_steps=12000", "checkpoint.synchronous_interval_steps=12000", no_goal];
    let source = ended(start_preset("cartpole_dqn", &changes));
    let changes = [&from(&source), "actor.random_steps=0", "algorithm.epsilon_start=0.05", "run.stop_env_steps=1000000000", no_goal];
    let mut run = start_preset("cartpole_dqn", &changes);
    run.wait_for_evaluations("the first one", |evaluations| !evaluations.is_empty());
    let first = &run.evaluations()[0];
    assert!(number(first, "env_steps") < 12_000, "it counts its own steps: {first}");
    // Whoever has not learned keeps the pole up for some twenty steps.
    assert!(first["return_mean"].as_f64() > Some(100.0), "{first}");
    run.wait_for_updates(50);
    run.end_by(Signal::SIGTERM);
}

#[test]
fn the_first_parameters_are_those_of_the_checkpoint_bit_for_bit_and_counts_begin_anew() {
    let source = learned(&["checkpoint.replay=always"]);
    // Nothing of these is taken.
    std::fs::remove_file(newest(&source).join("replay.shoal")).unwrap();
    let few_steps = ["actor.count=0", "run.stop_env_steps=100", "checkpoint.synchronous_interval_steps=100"];
    let run = ended(start(&[&few_steps[..], &[&from(&source)]].concat()));
    assert!(bits(&run.last_weights().parameters) == bits(&source.last_weights().parameters), "other parameters");
    let last = run.metrics().pop().unwrap();
    assert!(number(&last, "env_steps") < 200 && number(&last, "updates") == 0 && number(&last, "replay_size") < 200, "{last}");
    assert!(run.log().contains(&format!("starts from {}: ", newest(&source).display())), "{}", run.log());
    assert_eq!(config_of(&run).run.start_from.as_deref(), newest(&source).to_str(), "`runs/latest` would lead to another soon");
    // A run that is over before its first update has these weights as well, and the run that it starts from need not have made any update
    // of its own.
    let mut run = start(&[BEFORE_THE_FIRST_UPDATE, &["run.stop_wall_s=0.001", &from(&run)]].concat());
    run.succeed();
    assert!(bits(&run.last_weights().parameters) == bits(&source.last_weights().parameters), "other parameters");
}

#[test]
fn several_learners_begin_with_what_one_has_learned() {
    let source = learned(&[]);
    let mut run = start(&[BEFORE_THE_FIRST_UPDATE, &["learner.count=2", "learner.batch_size=64", &from(&source)]].concat());
    assert_learners_begin_with(&newest(&source), &mut run);
    run.end_by(Signal::SIGTERM);
    let mut run = start(&["learner.count=2", "learner.batch_size=64", &from(&source)]);
    run.wait_for_updates(50);
    run.end_by(Signal::SIGTERM);
}

#[test]
fn halves_of_an_algorithm_begin_with_what_halves_have_learned() {
    let split = ["learner.split=actor_critic", "network.hidden=[16]", "learner.batch_size=32", "replay.samples_per_insert=32.0"];
    let source = ended(start_preset("pendulum_td3", &[&split[..], &["run.stop_env_steps=2000"]].concat()));
    let mut run = start_preset("pendulum_td3", &[&split[..], BEFORE_THE_FIRST_UPDATE, &[&from(&source)]].concat());
    let (kept, segment) = begun(&newest(&source), &mut run);
    let given = states(&segment);
    // A state begins with the parameters of the policy, which are published, and of the critics. A half has a copy of the other's, which
    // is as old as the last swap before the checkpoint, unless the other half has handed its own over meanwhile.
    let SegmentSizes { published_values: policy, learned_parameters: both, .. } = *segment.layout().sizes();
    for (half, copy) in [0..policy, policy..both].into_iter().enumerate() {
        let mut renewed = given[half].clone();
        renewed[copy.clone()].copy_from_slice(&given[1 - half][copy]);
        assert!(kept[half] == given[half] || kept[half] == renewed, "half {half} has other parameters, targets or moments");
    }
    run.end_by(Signal::SIGTERM);
    let mut whole = start_preset("pendulum_td3", &[&split[1..], &[&from(&source)]].concat());
    assert!(!whole.wait().success());
    assert!(whole.output().contains("was learned with learner.split=\"actor_critic\"; set the same here"), "one has both, in one state");
}

#[test]
fn what_normalises_goes_on_as_it_was_and_takes_in_what_the_new_run_sees() {
    let normalised = ["algorithm.normalise_observations=true", "algorithm.normalise_rewards=true", "run.stop_eval_return=\"none\""];
    let to_a_checkpoint = ["actor.count=0", "checkpoint.synchronous_interval_steps=3000", "run.stop_env_steps=3000"];
    let source = ended(start_preset("cartpole_ppo", &[&normalised[..], &to_a_checkpoint].concat()));
    let at_once =
        ended(start_preset("cartpole_ppo", &[&normalised[..], &["actor.count=0", "run.stop_env_steps=8", &from(&source)]].concat()));

    let mut run = start_preset("cartpole_ppo", &[&normalised[..], &[&from(&source), "run.stop_env_steps=1000000000"]].concat());
    run.wait_for_process("learner");
    let segment = run.segment_read_only();
    let begun = begun_with(&newest(&source), &segment);
    let seen = |segment: &Segment| {
        let board = segment.statistics_board(0).unwrap();
        let mut values = vec![0.0; board.len()];
        let (_, [observations, returns, ..]) = board.read(&mut values).unwrap();
        (values, [observations, returns])
    };
    let (values, counts) = seen(&begun);
    let mut statistics = Statistics::new(4);
    statistics.merge(&values, counts);
    let scaling = at_once.last_weights().metadata.input_scaling.unwrap();
    assert_eq!(scaling, statistics.input_scaling());
    assert!(counts[0] > 2_000 && scaling.inverse_deviations.iter().all(|&scale| scale != 1.0), "{counts:?}, {scaling:?}");
    assert!(statistics.reward_scale() < 0.5, "{}", statistics.reward_scale());
    run.wait_until("more that was seen", || {
        let (_, now) = seen(&segment);
        now[0] > counts[0] + 500 && now[1] > counts[1] + 500
    });
    run.end_by(Signal::SIGTERM);
    // Its one actor can have seen as much only if it did not begin with nothing.
    let (steps, (_, now)) = (segment.control().env_steps().load(Ordering::Relaxed), seen(&segment));
    assert!(now.iter().all(|&seen| seen > steps), "{now:?} after {steps} steps, and {counts:?} before them");
}

/// A refusal of a run in `folder`, where nothing is written for it.
fn refusal(folder: &Path, file: &Path, changes: &[&str]) -> String {
    let output = programs::command_of(file, folder, changes).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    assert!(!folder.join("runs").exists(), "nothing may be written for a run that cannot start");
    said(&output)
}

#[test]
fn what_does_not_fit_is_refused_at_the_key_by_what_differs_and_nothing_is_written() {
    let (source, folder) = (learned(&[]), tempfile::tempdir().unwrap());
    let fresh = ended(start(&["run.stop_env_steps=100", "checkpoint.interval_s=600"]));
    let without = ended(start(&["run.stop_env_steps=100"]));
    let path = |path: &Path| format!("run.start_from={:?}", path.display().to_string());
    let damaged = tempfile::tempdir().unwrap();
    ["run.json", "config.toml"].iter().for_each(|name| std::fs::write(damaged.path().join(name), "").unwrap());
    let run = path(&source.run_folder());
    for (changes, told) in [
        (&["run.start_from=nowhere"][..], "it cannot be found (entity not found); name the folder of a run, such as runs/latest"),
        (&["run.start_from=~/runs/latest"], "no shell has expanded this \"~\""),
        (&["run.start_from="], "must be the folder of a run or of a checkpoint, or \"none\""),
        (&[&path(folder.path())], "neither the folder of a run nor that of a checkpoint"),
        (&[&path(damaged.path())], "name one of the checkpoints in that folder"),
        (&[&path(&source.run_folder().join("weights/last.safetensors"))], "a file of weights holds a policy, and not all that learning"),
        (&[&path(&without.run_folder())], "no complete checkpoint: one is written each checkpoint.interval_s"),
        (&[&path(&fresh.run_folder())], "before the first update, and has learned nothing"),
        (&[&run, "network.hidden=[64, 64]"], "was learned with network.hidden=[32]; set the same here"),
        (&[&run, "network.dueling=true", "algorithm.normalise_rewards=true"], "algorithm.normalise_rewards=false, network.dueling=false"),
        (&[&run, "environment.id=Acrobot-v1"], "`observation` of f32 [4] in CartPole-v1, and Acrobot-v1 has `observation` of f32 [6]"),
    ] {
        for check in [&[][..], &["--check"]] {
            let mut command = programs::command(folder.path(), &[SMALL, changes].concat());
            let output = command.args(check).output().unwrap();
            let refused = said(&output);
            assert_eq!(output.status.code(), Some(1), "{refused}");
            assert!(refused.starts_with(&format!("error: --set {}: ", changes[0])) && refused.contains(told), "{refused}");
            assert!(!folder.path().join("runs").exists(), "nothing may be written for a run that cannot start");
        }
    }
    let ppo = preset().with_file_name("cartpole_ppo.toml");
    let refused = refusal(folder.path(), &ppo, &[&run]);
    assert!(refused.contains("was learned by \"dqn\", and algorithm.name is \"ppo\" here"), "{refused}");
    let refused = refusal(folder.path(), &ppo, &[&run, "network.initialisation=he"]);
    assert!(refused.contains("--set network.initialisation=he: ") && refused.contains("is taken from run.start_from"), "{refused}");
    let seeds = ["train", "CartPole-v1", "--seeds", "1-2", "--set", "run.start_from=nowhere"];
    let refused = said(&program("shoal", folder.path()).args(seeds).current_dir(folder.path()).output().unwrap());
    assert!(refused.contains("it cannot be found") && !folder.path().join("runs").exists(), "{refused}");
    let state = newest(&source).join("state.bin");
    let mut flipped = std::fs::read(&state).unwrap();
    flipped[100] ^= 4;
    std::fs::write(&state, flipped).unwrap();
    let refused = refusal(folder.path(), &preset(), &[&run]);
    assert!(refused.contains("`state.bin` is not as it was written") && refused.contains("name another checkpoint"), "{refused}");
}

#[test]
fn a_run_that_has_started_from_another_goes_on_without_it() {
    let mut run = learned(&[]);
    let source = run.run_folder().canonicalize().unwrap();
    let began_with = newest(&run).to_str().unwrap().to_owned();
    // As whoever types it names the newest run, which this one is soon.
    let same_command = [&from(&run), "run.resume=auto", "checkpoint.interval_s=0.3"];
    run.start_again(&same_command);
    run.wait_for_log("starts from");
    run.wait_for_log("checkpoint 000001");
    assert!(run.run_folder().canonicalize().unwrap() != source);
    run.kill();
    std::fs::remove_dir_all(source).unwrap();
    run.start_again(&same_command);
    run.wait_for_log("goes on from checkpoint");
    assert_eq!(config_of(&run).run.start_from.as_deref(), Some(&*began_with));
    run.end_by(Signal::SIGTERM);
    run.resume(&["--set", &from(&run)]);
    assert!(!run.wait().success());
    let refused = run.output();
    assert!(refused.contains("has begun, and run.start_from is what a run begins with; start a new run: `shoal train "), "{refused}");
    assert!(refused.contains("with run.resume=never, or another run.name"), "the same command goes on with this one: {refused}");
    run.resume(&["--check"]);
    run.succeed();
    let before = run.log().len();
    run.resume(&[]);
    run.wait_for_log_after(before, "goes on from checkpoint");
    run.end_by(Signal::SIGTERM);
    assert_eq!(config_of(&run).run.start_from.as_deref(), Some(&*began_with));
}

#[test]
fn several_seeds_start_from_the_same_checkpoint_wherever_the_path_was_typed() {
    let source = learned(&[]);
    let folder = source.folder.path();
    let mut command = program("shoal", folder);
    command.arg("train").arg(preset()).args(["--seeds", "1-2", "--set", "run.start_from=runs/latest"]).current_dir(folder);
    for change in [SMALL, &["actor.count=0", "run.stop_env_steps=100", "evaluator.enabled=false"]].concat() {
        command.args(["--set", change]);
    }
    told(&command.output().unwrap());
    let runs = std::fs::read_dir(folder.join("runs")).unwrap().map(|entry| entry.unwrap().path());
    let seeds = runs.into_iter().find(|path| path.to_str().unwrap().ends_with("-seeds")).unwrap();
    let folders = std::fs::read_dir(seeds).unwrap().map(|entry| entry.unwrap().path());
    let started: Vec<_> = folders.filter(|path| path.join("run.json").is_file() && !path.is_symlink()).collect();
    assert_eq!(started.len(), 2);
    for run in started {
        let policy = PolicyWeights::load(&run.join("weights/last.safetensors")).unwrap();
        assert!(bits(&policy.parameters) == bits(&source.last_weights().parameters), "{}", run.display());
    }
    assert_eq!(checkpoints_in(&source.folder.path().join("runs/latest")).len(), 0, "the newest run is one of them");
}

/// A task that shows four numbers, as CartPole does, and takes one of so many actions.
#[derive(Default)]
struct Plain<const ACTIONS: usize>;

impl<const ACTIONS: usize> Dynamics for Plain<ACTIONS> {
    type Action = usize;
    type Value = f32;

    fn spec() -> EnvironmentSpec {
        EnvironmentSpec {
            id: format!("Plain{ACTIONS}-v0"),
            observation: ObservationSpace::unbounded(4),
            action: ActionSpace::Discrete { n: ACTIONS },
            ..registry::spec("CartPole-v1").unwrap()
        }
    }

    fn reset(&mut self, _: &mut Generator, observation: &mut [f32]) {
        observation.fill(0.0);
    }

    fn step(&mut self, _: usize, _: &mut Generator, observation: &mut [f32]) -> (f64, bool) {
        observation.fill(1.0);
        (1.0, false)
    }
}

#[test]
fn another_environment_fits_if_its_observations_and_actions_do_whatever_the_rest_of_the_configuration_says() {
    let mut catalogue = Catalogue::default();
    catalogue.add_environment("Plain2-v0", || Ok(Native::new(Plain::<2>))).unwrap();
    catalogue.add_environment("Plain3-v0", || Ok(Native::new(Plain::<3>))).unwrap();
    let dqn = learned(&[]);
    let ppo = ended(start_preset("cartpole_ppo", &[TO_A_CHECKPOINT, &["run.stop_eval_return=\"none\""]].concat()));
    let small: Vec<&str> = SMALL.iter().copied().filter(|change| !change.starts_with("algorithm.")).collect();
    for (source, file, changes) in [
        (&dqn, "cartpole_dqn", &[&small[..], &["algorithm.n_step=2", "algorithm.gamma=0.5", "replay.capacity=3000"]].concat()),
        (&ppo, "cartpole_ppo", &vec!["fragments.length_steps=16", "run.stop_eval_return=\"none\""]),
    ] {
        let check = |environment: &str| -> Result<String, SupervisorError> {
            let runs = format!("run.folder={:?}", source.folder.path().display().to_string());
            let own = [format!("environment.id={environment}"), from(source), runs];
            let changes: Vec<String> = changes.iter().map(|&change| change.to_owned()).chain(own).collect();
            let loaded = Config::load(&preset().with_file_name(format!("{file}.toml")), &changes)?;
            let prepared = Prepared::new(loaded, &catalogue)?;
            let mut plan = prepared.plan(None)?;
            prepared.check(&mut plan, None)?;
            Ok(plan.to_string())
        };
        let plan = check("Plain2-v0").unwrap_or_else(|error| panic!("{file}: {error}"));
        assert!(plan.contains("starts from ") && plan.contains(" updates in CartPole-v1"), "{plan}");
        let refused = check("Plain3-v0").unwrap_err().to_string();
        assert!(refused.contains("published values, and this run has ") && refused.contains("another number of actions"), "{refused}");
        let refused = check("Acrobot-v1").unwrap_err().to_string();
        assert!(refused.contains(" in CartPole-v1, and Acrobot-v1 has "), "{refused}");
    }
}
