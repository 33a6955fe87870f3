//! What `docs/weights.md` says of weights files is enough to play them: its programs choose the actions that Shoal chooses, and refuse
//! what they cannot play.

mod support {
    pub(crate) mod skipped;
}

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use serde_json::Value;
use shoal::algorithms::{ActionMut, Random, greedy, registry};
use shoal::checkpoint::{PolicySpaces, PolicyWeights, WeightsMetadata};
use shoal::config::Config;
use shoal::environments::{self, ActionSpace, ObservationSpace};
use shoal::networks::{Head, InputScaling, InputSpec, Layer, NamedHead, NetworkSpec, build_for_acting};
use shoal::values::{ValueType, Values};
use support::skipped;

/// Observations that every program is asked about.
const ROWS: usize = 64;

/// The programs of the page that can be run here, the blocks of Python in it: each with the modules that it needs, and a Python that has
/// them.
fn programs() -> Vec<(&'static str, String, PathBuf)> {
    let page = std::fs::read_to_string(root().join("docs/weights.md")).unwrap();
    let blocks: Vec<String> = page.split("```python\n").skip(1).map(|rest| rest.split("```").next().unwrap().to_owned()).collect();
    let [torch, numpy] = <[String; 2]>::try_from(blocks).expect("two programs");
    let mut programs = Vec::new();
    for (modules, program) in [("torch, safetensors", torch), ("numpy", numpy)] {
        match python_with(modules) {
            Some(python) => programs.push((modules, program, python)),
            None => skipped::because(format_args!("the program for {modules}, which no Python here has")),
        }
    }
    // The Python of the checkout has NumPy.
    assert!(!programs.is_empty() || !root().join(".venv").exists(), "no program of the page can be run");
    programs
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// A Python that has `modules`, if there is one: that of the checkout, or the user's.
fn python_with(modules: &str) -> Option<PathBuf> {
    let candidates = [root().join(".venv/bin/python"), "python3".into()];
    candidates.into_iter().find(|python| {
        let imported = Command::new(python).args(["-c", &format!("import {modules}")]).stderr(Stdio::null()).status();
        imported.is_ok_and(|status| status.success())
    })
}

/// A saved policy with what Shoal makes of it.
struct Case {
    name: String,
    path: PathBuf,
    observations: Vec<Vec<f32>>,
    actions: Vec<Vec<f64>>,
}

/// A policy with random parameters, and the actions that it chooses greedily.
fn case(folder: &Path, algorithm: &str, environment: &str, dueling: bool, scaled: bool, shows_images: bool) -> Case {
    let mut config = Config::for_environment(environment);
    config.algorithm.name = algorithm.into();
    config.algorithm.normalise_observations = scaled;
    config.network.hidden = vec![24, 16];
    config.network.dueling = dueling;
    // Files of both kinds: with the value's head, and without.
    config.network.separate_value = Some(algorithm == "ppo");
    let mut spec = environments::registry::spec(environment).unwrap();
    if shows_images {
        let shape = vec![2, 11, 9];
        spec.observation = ObservationSpace { shape, ..ObservationSpace::symmetric([60.0; 2 * 11 * 9]) };
        config.network.convolutions = vec![[5, 3, 2], [4, 2, 1]];
    }
    let built = registry::build(&config, &spec).unwrap();
    let mut random = Pcg64Mcg::seed_from_u64(7);
    let inputs = built.network().inputs();
    let mut published = built.network().initialise(3);
    if scaled {
        // Far from zero and one, as those of positions and velocities are: a program that forgets them chooses other actions.
        let means = (0..inputs).map(|_| random.random_range(-40.0..40.0)).collect();
        let inverse_deviations = (0..inputs).map(|_| random.random_range(0.02..20.0)).collect();
        InputScaling { means, inverse_deviations }.append_to(&mut published);
    }
    // Files that say what the policy does, and older ones.
    let spaces = (!scaled).then(|| PolicySpaces::of(&spec)).flatten();
    let metadata = WeightsMetadata { algorithm: algorithm.into(), environment: environment.into(), spaces, ..WeightsMetadata::default() };
    let said = |said: bool, word: &'static str| if said { word } else { "" };
    let name =
        format!("{algorithm}, {environment}{}{}{}", said(dueling, ", dueling"), said(scaled, ", scaled"), said(shows_images, ", images"));
    let path = folder.join(format!("{name}.safetensors"));
    PolicyWeights::new(built.network().clone(), &published, metadata).save(&path).unwrap();

    let is_bytes = spec.observation.element == ValueType::U8;
    let observed = |_| if is_bytes { f32::from(random.random::<u8>()) } else { random.random_range(-60.0..60.0) };
    let rows: Vec<f32> = (0..ROWS * inputs).map(observed).collect();
    let bytes: Vec<u8> = rows.iter().map(|&value| value as u8).collect();
    let mut policy = built.policy().unwrap();
    policy.set_parameters(&published);
    let mut outputs = vec![0.0; ROWS * policy.outputs()];
    policy.infer(if is_bytes { Values::U8(&bytes) } else { Values::F32(&rows) }, ROWS, &mut outputs);
    let mut nothing_random = Random::seed_from_u64(1);
    let actions = outputs.chunks_exact(policy.outputs()).map(|outputs| match &spec.action {
        ActionSpace::Discrete { .. } => {
            let mut index = 0;
            policy.choose(outputs, 0.0, &mut nothing_random, ActionMut::Discrete(&mut index));
            vec![f64::from(index)]
        }
        ActionSpace::Box { low, .. } => {
            let mut action = vec![0.0; low.len()];
            policy.choose(outputs, 0.0, &mut nothing_random, ActionMut::Continuous(&mut action));
            // Clipped, as the environment gets it.
            action.into_iter().map(|element| f64::from(element.clamp(-1.0, 1.0))).collect()
        }
    });
    let actions = actions.collect();
    Case { name, path, observations: rows.chunks_exact(inputs).map(<[f32]>::to_vec).collect(), actions }
}

/// The weights of an algorithm that a program adds, for CartPole's two actions, with a layer that no algorithm of this library has.
fn weights_of_another_algorithm(head: Head) -> PolicyWeights {
    let spec = environments::registry::spec("CartPole-v1").unwrap();
    let input = InputSpec { element: spec.observation.element, shape: spec.observation.shape.clone() };
    let layers = vec![Layer::Dense { units: 24 }, Layer::Tanh, Layer::Dense { units: 16 }, Layer::Relu];
    let network = NetworkSpec { input, layers, head };
    let published = network.initialise(3);
    let spaces = PolicySpaces::of(&spec);
    let metadata = WeightsMetadata { algorithm: "mine".into(), environment: spec.id, spaces, ..WeightsMetadata::default() };
    PolicyWeights::new(network, &published, metadata)
}

/// A policy of an algorithm that a program adds, and for each observation the action with the largest output.
fn case_of_another_algorithm(folder: &Path, head: Head) -> Case {
    let weights = weights_of_another_algorithm(head);
    let name = format!("mine, {:?}", weights.spec.head);
    let path = folder.join(format!("{name}.safetensors"));
    weights.save(&path).unwrap();
    let mut random = Pcg64Mcg::seed_from_u64(7);
    let inputs = weights.spec.inputs();
    let rows: Vec<f32> = (0..ROWS * inputs).map(|_| random.random_range(-3.0..3.0)).collect();
    let mut network = build_for_acting(weights.spec.clone()).unwrap();
    network.set_parameters(&weights.parameters);
    let mut outputs = vec![0.0; ROWS * weights.spec.outputs()];
    network.infer(Values::F32(&rows), ROWS, &mut outputs);
    let actions = outputs.chunks_exact(weights.spec.outputs()).map(|outputs| vec![greedy(outputs) as f64]).collect();
    let observations = rows.chunks_exact(inputs).map(<[f32]>::to_vec).collect();
    Case { name, path, observations, actions }
}

/// What `program` of the page answers for every file: its actions, or a text that says why it refuses it.
fn answers(python: &Path, program: &str, questions: &[(&Path, &[Vec<f32>])]) -> Vec<Value> {
    let driver = r"
import sys

def answer(path, observations):
    try:
        return act(path, observations)
    except ValueError as refusal:
        return str(refusal)

print(json.dumps([answer(path, observations) for path, observations in json.load(sys.stdin)]))
";
    let mut child = Command::new(python)
        .args(["-c", &format!("{program}\n{driver}")])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(&serde_json::to_vec(questions).unwrap()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The actions in an answer: an index stands alone, an action of several elements is a list.
fn actions(answer: &Value) -> Vec<Vec<f64>> {
    let actions = answer.as_array().unwrap_or_else(|| panic!("refused: {answer}"));
    let action = |one: &Value| if one.is_array() { serde_json::from_value(one.clone()).unwrap() } else { vec![one.as_f64().unwrap()] };
    actions.iter().map(action).collect()
}

#[test]
fn the_programs_of_the_page_choose_the_actions_that_shoal_chooses() {
    let folder = tempfile::tempdir().unwrap();
    let mut cases = Vec::new();
    for scaled in [false, true] {
        cases.extend([false, true].map(|dueling| case(folder.path(), "dqn", "CartPole-v1", dueling, scaled, false)));
        cases.extend(["ppo", "appo"].map(|name| case(folder.path(), name, "CartPole-v1", false, scaled, false)));
        cases.extend(["ddpg", "td3", "sac", "ppo", "appo"].map(|name| case(folder.path(), name, "Pendulum-v1", false, scaled, false)));
    }
    cases.extend(["dqn", "ppo", "appo"].map(|name| case(folder.path(), name, "Catch-v0", false, false, false)));
    let heads = [Head::Linear { outputs: 2 }, Head::Dueling { outputs: 2 }];
    cases.extend(heads.map(|head| case_of_another_algorithm(folder.path(), head)));
    let images = [(false, false), (true, false), (false, true)]
        .map(|(dueling, scaled)| case(folder.path(), "dqn", "CartPole-v1", dueling, scaled, true));
    for (modules, program, python) in programs() {
        // The program in NumPy says that it knows no convolutions.
        let played: Vec<&Case> = cases.iter().chain(images.iter().filter(|_| modules.contains("torch"))).collect();
        let questions: Vec<(&Path, &[Vec<f32>])> = played.iter().map(|case| (case.path.as_path(), case.observations.as_slice())).collect();
        let answers = answers(&python, &program, &questions);
        assert_eq!(answers.len(), played.len());
        for (case, answer) in played.into_iter().zip(&answers) {
            let found = actions(answer);
            assert_eq!(found.len(), ROWS, "{}", case.name);
            for (row, (found, expected)) in found.iter().zip(&case.actions).enumerate() {
                let close = found.len() == expected.len() && found.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-4);
                assert!(close, "{} by {modules}: row {row} is {found:?}, not {expected:?}", case.name);
            }
        }
    }
}

#[test]
fn the_programs_of_the_page_refuse_outputs_of_which_a_file_does_not_say_how_they_become_actions() {
    let folder = tempfile::tempdir().unwrap();
    let pendulum = environments::registry::spec("Pendulum-v1").unwrap();
    let two = || weights_of_another_algorithm(Head::Linear { outputs: 2 });
    let spaces = |spaces| PolicyWeights { metadata: WeightsMetadata { spaces, ..two().metadata }, ..two() };
    let heads = ["policy", "value"].map(|name| NamedHead { name: name.into(), outputs: 2 });
    let refused = [
        weights_of_another_algorithm(Head::Linear { outputs: 6 }),
        weights_of_another_algorithm(Head::Named(heads.into())),
        spaces(PolicySpaces::of(&pendulum)),
        spaces(None),
    ];
    let paths = refused.iter().enumerate().map(|(number, weights)| {
        let path = folder.path().join(format!("{number}.safetensors"));
        weights.save(&path).unwrap();
        path
    });
    let paths: Vec<PathBuf> = paths.collect();
    let with_convolutions = case(folder.path(), "dqn", "CartPole-v1", false, false, true);
    for (modules, program, python) in programs() {
        let row = [vec![0.0; 4]];
        let questions: Vec<(&Path, &[Vec<f32>])> = paths.iter().map(|path| (path.as_path(), &row[..])).collect();
        for (number, answer) in answers(&python, &program, &questions).iter().enumerate() {
            assert_eq!(answer, "nothing says how the outputs of mine become actions", "file {number} by {modules}");
        }
        if modules == "numpy" {
            let questions = [(with_convolutions.path.as_path(), with_convolutions.observations.as_slice())];
            let answer = answers(&python, &program, &questions).remove(0);
            assert!(answer.as_str().is_some_and(|refusal| refusal.contains("no layer {'convolution'")), "{answer}");
        }
    }
}
