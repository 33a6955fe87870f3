//! What `docs/weights.md` says of weights files is enough to play them: its programs choose the actions that Shoal chooses.

mod support {
    pub(crate) mod skipped;
}

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use serde_json::Value;
use shoal::algorithms::{ActionMut, Random, registry};
use shoal::checkpoint::{PolicyWeights, WeightsMetadata};
use shoal::config::Config;
use shoal::environments::{self, ActionSpace, ObservationSpace};
use shoal::networks::InputScaling;
use shoal::values::{ValueType, Values};
use support::skipped;

/// Observations that every program is asked about.
const ROWS: usize = 64;

/// The programs of the page: the blocks of Python in it, by the library that they need beside NumPy.
fn programs() -> [(&'static str, String); 2] {
    let page = std::fs::read_to_string(root().join("docs/weights.md")).unwrap();
    let blocks: Vec<String> = page.split("```python\n").skip(1).map(|rest| rest.split("```").next().unwrap().to_owned()).collect();
    let [torch, numpy] = <[String; 2]>::try_from(blocks).expect("two programs");
    [("torch, safetensors", torch), ("numpy", numpy)]
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
#[derive(Clone)]
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
    let metadata = WeightsMetadata { algorithm: algorithm.into(), environment: environment.into(), ..WeightsMetadata::default() };
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

/// What `program` of the page chooses in every case.
fn chosen(python: &Path, program: &str, cases: &[Case]) -> Vec<Vec<Vec<f64>>> {
    let driver = "import sys\nprint(json.dumps([act(path, observations) for path, observations in json.load(sys.stdin)]))\n";
    let mut child = Command::new(python)
        .args(["-c", &format!("{program}\n{driver}")])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let questions: Vec<(&Path, &[Vec<f32>])> = cases.iter().map(|case| (case.path.as_path(), case.observations.as_slice())).collect();
    child.stdin.take().unwrap().write_all(&serde_json::to_vec(&questions).unwrap()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let answers: Vec<Vec<Value>> = serde_json::from_slice(&output.stdout).unwrap();
    // An index stands alone; an action of several elements is a list.
    let action = |one: Value| if one.is_array() { serde_json::from_value(one).unwrap() } else { vec![one.as_f64().unwrap()] };
    answers.into_iter().map(|actions| actions.into_iter().map(action).collect()).collect()
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
    let images = [(false, false), (true, false), (false, true)]
        .map(|(dueling, scaled)| case(folder.path(), "dqn", "CartPole-v1", dueling, scaled, true));
    let mut ran = 0;
    for (modules, program) in programs() {
        let Some(python) = python_with(modules) else {
            skipped::because(format_args!("the program for {modules}, which no Python here has"));
            continue;
        };
        // The program in NumPy says that it knows no convolutions.
        if modules.contains("torch") {
            cases.extend(images.iter().cloned());
        } else {
            cases.retain(|case| !case.name.contains("images"));
        }
        let answers = chosen(&python, &program, &cases);
        assert_eq!(answers.len(), cases.len());
        for (case, found) in cases.iter().zip(&answers) {
            assert_eq!(found.len(), ROWS, "{}", case.name);
            for (row, (found, expected)) in found.iter().zip(&case.actions).enumerate() {
                let close = found.len() == expected.len() && found.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-4);
                assert!(close, "{} by {modules}: row {row} is {found:?}, not {expected:?}", case.name);
            }
        }
        ran += 1;
    }
    // The Python of the checkout has NumPy.
    assert!(ran > 0 || !root().join(".venv").exists(), "no program of the page was run");
}
