//! Weights files: they come back as they went, survive a crash, and nothing damaged is ever believed.

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use nix::sys::resource::{Resource, setrlimit};
use shoal::checkpoint::{PolicySpaces, PolicyWeights, WeightsError, WeightsEvaluation, WeightsMetadata};
use shoal::environments::{ActionArrays, ActionSpace};
use shoal::networks::{Head, InputScaling, InputSpec, NetworkSpec};
use shoal::values::ValueType;
use tempfile::TempDir;

fn spec() -> NetworkSpec {
    NetworkSpec::perceptron(4, &[32, 16], Head::Dueling { outputs: 2 })
}

fn metadata() -> WeightsMetadata {
    WeightsMetadata {
        algorithm: "dqn".into(),
        environment: "CartPole-v1".into(),
        parameter_version: 12,
        environment_steps: 34_000,
        updates: 56,
        spaces: None,
        evaluation: Some(WeightsEvaluation { return_mean: 487.25, return_ci95_low: Some(480.5), episodes: 100, confirmed: true }),
        input_scaling: None,
    }
}

fn policy(seed: u64) -> PolicyWeights {
    PolicyWeights { spec: spec(), parameters: spec().initialise(seed), metadata: metadata() }
}

fn folder() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let path = folder.path().join("weights.safetensors");
    (folder, path)
}

/// Names in the folder, to see what a save left behind.
fn names(folder: &TempDir) -> Vec<String> {
    let mut names: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn refusal(bytes: &[u8]) -> WeightsError {
    let (_folder, path) = folder();
    fs::write(&path, bytes).unwrap();
    let error = PolicyWeights::load(&path).expect_err("the file must be refused");
    let said = error.to_string();
    assert!(said.contains("weights.safetensors"), "the message does not name the file: {said}");
    assert!(!said.contains("checkpoint"), "a checkpoint is a folder, which would be refused as well: {said}");
    error
}

fn saved(policy: &PolicyWeights) -> Vec<u8> {
    let (_folder, path) = folder();
    policy.save(&path).unwrap();
    fs::read(path).unwrap()
}

/// Replaces text of the header by text of the same length.
fn with_header(bytes: &[u8], from: &str, to: &str) -> Vec<u8> {
    assert_eq!(from.len(), to.len());
    let position = bytes.windows(from.len()).position(|window| window == from.as_bytes()).expect("the header has the text");
    let mut changed = bytes.to_vec();
    changed[position..position + to.len()].copy_from_slice(to.as_bytes());
    changed
}

#[test]
fn a_policy_comes_back_bit_for_bit_and_leaves_one_file() {
    let (folder, path) = folder();
    for seed in [1, 2] {
        policy(seed).save(&path).unwrap();
        assert_eq!(PolicyWeights::load(&path).unwrap(), policy(seed));
    }
    assert_eq!(names(&folder), ["weights.safetensors"]);
}

#[test]
fn the_same_weights_give_the_same_bytes() {
    assert_eq!(saved(&policy(1)), saved(&policy(1)));
}

#[test]
fn any_safetensors_reader_finds_the_tensors_by_name_and_shape() {
    let bytes = saved(&policy(1));
    let file = safetensors::SafeTensors::deserialize(&bytes).unwrap();
    let value = file.tensor("policy.value.weight").unwrap();
    assert_eq!(value.shape(), [1, 16]);
    let tensors = spec().tensors();
    let range = tensors.iter().find(|tensor| tensor.name == "value.weight").unwrap().range();
    let expected: Vec<u8> = spec().initialise(1)[range].iter().flat_map(|value| value.to_le_bytes()).collect();
    assert_eq!(value.data(), expected);
    assert_eq!(file.tensor("policy.layers.0.weight").unwrap().shape(), [32, 4]);
    assert_eq!(file.len(), 8);
}

#[test]
fn a_file_without_a_policy_is_refused() {
    let bytes = saved(&policy(1));
    let mut entry = shoal_entry(&bytes);
    let network = entry["networks"]["policy"].take();
    entry["networks"] = serde_json::json!({"critic": network});
    let refused = refusal(&with_entry(&bytes, &entry));
    assert!(matches!(refused, WeightsError::NoPolicy { .. }), "{refused}");
}

#[test]
fn a_network_beside_the_policy_is_refused_by_its_name() {
    let bytes = saved(&policy(1));
    let mut entry = shoal_entry(&bytes);
    let network = entry["networks"]["policy"].clone();
    entry["networks"]["critic"] = network;
    let refused = refusal(&with_entry(&bytes, &entry));
    assert!(matches!(refused, WeightsError::Metadata { .. }) && refused.to_string().contains("`critic`"), "{refused}");
}

#[test]
fn a_policy_names_what_it_plays() {
    let (_folder, path) = folder();
    let nameless = PolicyWeights { metadata: WeightsMetadata { environment: String::new(), ..metadata() }, ..policy(1) };
    assert!(nameless.save(&path).unwrap_err().to_string().contains("environment"));
    let bytes = saved(&policy(1));
    let mut entry = shoal_entry(&bytes);
    entry["environment"] = "".into();
    assert!(matches!(refusal(&with_entry(&bytes, &entry)), WeightsError::Unnamed { field: "environment", .. }));
}

#[test]
fn every_truncation_and_every_appended_byte_is_refused() {
    let bytes = saved(&policy(1));
    for length in (0..bytes.len()).step_by(97).chain([bytes.len() - 1]) {
        assert!(matches!(refusal(&bytes[..length]), WeightsError::Damaged { .. }), "{length} bytes");
    }
    assert!(matches!(refusal(&[bytes.as_slice(), &[0]].concat()), WeightsError::Damaged { .. }));
}

#[test]
fn values_that_are_not_finite_are_refused_with_tensor_and_index() {
    for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        let mut bytes = saved(&policy(1));
        let end = bytes.len();
        bytes[end - 4..].copy_from_slice(&bad.to_le_bytes());
        match refusal(&bytes) {
            // Tensors lie in the order of their names.
            WeightsError::NotFinite { tensor, index, .. } => assert_eq!((tensor.as_str(), index), ("policy.value.weight", 15)),
            other => panic!("{other}"),
        }
    }
}

#[test]
fn a_damaged_header_is_refused_and_never_panics() {
    let bytes = saved(&policy(1));
    let header = 8 + u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
    let (_folder, path) = folder();
    for index in 0..header {
        for flip in [0x01, 0x80] {
            let mut damaged = bytes.clone();
            damaged[index] ^= flip;
            fs::write(&path, &damaged).unwrap();
            // A digit of a counter or a letter of a name may change unseen; tensors and shapes may not.
            if let Ok(loaded) = PolicyWeights::load(&path) {
                assert_eq!(loaded, PolicyWeights { metadata: loaded.metadata.clone(), ..policy(1) }, "byte {index}");
            }
        }
    }
}

#[test]
fn files_of_others_are_refused() {
    assert!(matches!(refusal(b"not a weights file at all"), WeightsError::Damaged { .. }));
    let foreign = safetensors::serialize(Vec::<(String, safetensors::tensor::TensorView<'_>)>::new(), None).unwrap();
    assert!(matches!(refusal(&foreign), WeightsError::Foreign { .. }));
}

#[test]
fn another_format_is_refused_with_the_one_that_is_read() {
    for (other, said) in [(2, r#"\"format\":2"#), (7, r#"\"format\":7"#)] {
        let refused = refusal(&with_header(&saved(&policy(1)), r#"\"format\":3"#, said));
        assert!(matches!(refused, WeightsError::Format { found, expected: 3, .. } if found == other), "{refused}");
    }
}

#[test]
fn tensors_that_do_not_fit_the_shape_are_refused() {
    let bytes = saved(&policy(1));
    let shape = refusal(&with_header(&bytes, r#"\"units\":16"#, r#"\"units\":17"#));
    assert!(matches!(&shape, WeightsError::Tensor { .. }) && shape.to_string().contains("use another file"), "{shape}");
    let kind = refusal(&with_header(&bytes, r#""dtype":"F32""#, r#""dtype":"I32""#));
    assert!(kind.to_string().contains("I32"), "{kind}");
    let missing = refusal(&with_header(&bytes, r#""policy.value.bias""#, r#""policy.value.bios""#));
    assert!(missing.to_string().contains("missing"), "{missing}");
    let empty = refusal(&with_header(&bytes, r#"\"units\":16"#, r#"\"units\": 0"#));
    assert!(matches!(&empty, WeightsError::Shape { .. }), "{empty}");
    let huge = refusal(&with_header(&bytes, r#"32}},\"relu\""#, "99999      }}"));
    assert!(matches!(&huge, WeightsError::Tensor { .. }), "{huge}");
}

#[test]
fn a_surplus_tensor_is_refused_by_its_name() {
    let one: [u8; 4] = 1f32.to_le_bytes();
    let bytes = saved(&policy(1));
    let file = safetensors::SafeTensors::deserialize(&bytes).unwrap();
    let mut tensors = file.tensors();
    tensors.push(("policy.extra".into(), safetensors::tensor::TensorView::new(safetensors::Dtype::F32, vec![1], &one).unwrap()));
    let (_, entries) = safetensors::SafeTensors::read_metadata(&bytes).unwrap();
    let refused = refusal(&safetensors::serialize(tensors, entries.metadata().clone()).unwrap());
    assert!(refused.to_string().contains("policy.extra"), "{refused}");
}

#[test]
fn a_file_that_the_system_does_not_give_is_refused_with_what_to_check() {
    let (folder, _) = folder();
    let refused = PolicyWeights::load(folder.path()).unwrap_err();
    assert!(matches!(&refused, WeightsError::Read { .. }) && refused.to_string().contains("check that"), "{refused}");
}

#[test]
fn a_file_beyond_the_limit_is_refused_before_it_is_read() {
    let (_folder, path) = folder();
    // Sparse: it takes no room.
    fs::File::create(&path).unwrap().set_len(shoal::checkpoint::weights::MAXIMUM_FILE_BYTES + 1).unwrap();
    let refused = PolicyWeights::load(&path).unwrap_err();
    assert!(matches!(refused, WeightsError::TooLarge { bytes: 4_294_967_297, limit: 4_294_967_296, .. }), "{refused}");
}

#[test]
fn a_save_that_is_refused_leaves_the_old_file_alone() {
    let (folder, path) = folder();
    policy(1).save(&path).unwrap();
    let mut bad = policy(2);
    bad.parameters[5] = f32::NAN;
    assert!(matches!(bad.save(&path).unwrap_err(), WeightsError::NotFinite { .. }));
    let mut short = policy(2);
    short.parameters.pop();
    assert!(matches!(short.save(&path).unwrap_err(), WeightsError::Encode { .. }));
    assert!(matches!(policy(2).save(&path.join("below")).unwrap_err(), WeightsError::Write { .. }));
    assert_eq!(PolicyWeights::load(&path).unwrap(), policy(1));
    assert_eq!(names(&folder), ["weights.safetensors"]);
}

/// Set for the process that dies in the middle of a save.
const DYING_SAVE: &str = "SHOAL_TEST_DYING_SAVE";

#[test]
fn a_process_that_dies_in_the_middle_of_a_save_leaves_the_old_file_alone() {
    if let Some(path) = std::env::var_os(DYING_SAVE) {
        // The kernel kills the process by SIGXFSZ when its file grows beyond this. It is to leave no core file.
        for (limited, most) in [(Resource::RLIMIT_FSIZE, 1_000), (Resource::RLIMIT_CORE, 0)] {
            setrlimit(limited, most, most).unwrap();
        }
        let _ = policy(2).save(Path::new(&path));
        unreachable!("the save needs more than 1,000 bytes");
    }
    let (folder, path) = folder();
    policy(1).save(&path).unwrap();
    let test = "a_process_that_dies_in_the_middle_of_a_save_leaves_the_old_file_alone";
    let status = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test])
        .env(DYING_SAVE, &path)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .unwrap();
    assert_eq!(status.signal(), Some(nix::sys::signal::Signal::SIGXFSZ as i32), "{status}");
    assert_eq!(PolicyWeights::load(&path).unwrap(), policy(1));
    // It did die in the middle: what it had written is there, under a name that nothing reads.
    let names = names(&folder);
    assert!(names.len() == 2 && names.iter().any(|name| name.ends_with(".partial")), "{names:?}");
    policy(3).save(&path).unwrap();
    assert_eq!(PolicyWeights::load(&path).unwrap(), policy(3));
}

fn scaled_policy() -> PolicyWeights {
    let scaling = InputScaling { means: vec![0.5, -3.0, 100.0, 0.0], inverse_deviations: vec![2.0, 0.25, 0.001, 1.0] };
    let metadata = WeightsMetadata { input_scaling: Some(scaling), ..metadata() };
    PolicyWeights { metadata, ..policy(4) }
}

#[test]
fn how_observations_are_scaled_is_in_tensors_and_said_in_the_metadata() {
    let (_folder, path) = folder();
    let policy = scaled_policy();
    policy.save(&path).unwrap();
    assert_eq!(PolicyWeights::load(&path).unwrap(), policy);
    let bytes = fs::read(&path).unwrap();
    let file = safetensors::SafeTensors::deserialize(&bytes).unwrap();
    let values = |name: &str| -> Vec<f32> {
        let tensor = file.tensor(name).unwrap();
        assert_eq!(tensor.shape(), [4]);
        tensor.data().as_chunks().0.iter().map(|&value| f32::from_le_bytes(value)).collect()
    };
    let scaling = policy.metadata.input_scaling.unwrap();
    assert_eq!((values("observation.mean"), values("observation.inverse_deviation")), (scaling.means, scaling.inverse_deviations));
    let said = r#"clip((observation - observation.mean) * observation.inverse_deviation, -10, 10)"#;
    assert!(shoal_entry(&bytes)["observation_scaling"].as_str().unwrap().contains(said), "{}", shoal_entry(&bytes));
    assert!(shoal_entry(&saved(&self::policy(1))).get("observation_scaling").is_none(), "nothing is scaled in there");
}

#[test]
fn what_a_policy_observes_and_does_comes_back_bit_for_bit() {
    let (_folder, path) = folder();
    let observation = InputSpec { element: ValueType::F32, shape: vec![2, 2] };
    let action = ActionSpace::Box { low: vec![-0.1, f32::MIN], high: vec![1.0 / 3.0, 16_777_216.0] };
    let spaces = PolicySpaces { observation, frames: 2, action, action_arrays: None };
    let policy = PolicyWeights { metadata: WeightsMetadata { spaces: Some(spaces), ..metadata() }, ..policy(1) };
    policy.save(&path).unwrap();
    assert_eq!(PolicyWeights::load(&path).unwrap(), policy);
    let said =
        serde_json::json!({ "observation": { "element": "f32", "shape": [2, 2] }, "frames": 2, "action": { "discrete": { "n": 2 } } });
    let mut entry = shoal_entry(&saved(&self::policy(1)));
    assert!(entry.get("spaces").is_none());
    entry["spaces"] = said;
    fs::write(&path, with_entry(&saved(&self::policy(1)), &entry)).unwrap();
    let spaces = PolicyWeights::load(&path).unwrap().metadata.spaces.unwrap();
    assert_eq!((&spaces.action, &spaces.action_arrays), (&ActionSpace::Discrete { n: 2 }, &None), "files may say nothing of arrays");
    let arrays = ActionArrays { counts: vec![1, 2], start: vec![0, -3], shape: vec![2, 1], dtype: "int8".into() };
    let spaces = PolicySpaces { action_arrays: Some(arrays), ..spaces };
    let policy = PolicyWeights { metadata: WeightsMetadata { spaces: Some(spaces), ..metadata() }, ..self::policy(1) };
    policy.save(&path).unwrap();
    assert_eq!(PolicyWeights::load(&path).unwrap(), policy);
}

/// The bytes with another entry `shoal` in the metadata.
fn with_entry(bytes: &[u8], entry: &serde_json::Value) -> Vec<u8> {
    let tensors = safetensors::SafeTensors::deserialize(bytes).unwrap();
    let entries = std::collections::HashMap::from([("shoal".to_owned(), entry.to_string())]);
    safetensors::serialize(tensors.tensors(), Some(entries)).unwrap()
}

#[test]
fn a_network_on_images_comes_back_with_the_names_of_pytorch() {
    let input = InputSpec { element: ValueType::U8, shape: vec![4, 42, 42] };
    let spec = NetworkSpec::of_input(input, &[[16, 4, 2], [32, 4, 2]], &[256], Head::Linear { outputs: 6 });
    let policy = PolicyWeights { parameters: spec.initialise(1), spec, metadata: metadata() };
    let (_folder, path) = folder();
    policy.save(&path).unwrap();
    assert_eq!(PolicyWeights::load(&path).unwrap(), policy);
    let bytes = fs::read(&path).unwrap();
    let file = safetensors::SafeTensors::deserialize(&bytes).unwrap();
    assert_eq!(file.tensor("policy.layers.1.weight").unwrap().shape(), [32, 16, 4, 4]);
    assert_eq!(file.tensor("policy.layers.2.weight").unwrap().shape(), [256, 32 * 9 * 9]);
    let wider = refusal(&with_header(&bytes, r#"[4,42,42]"#, r#"[4,42,46]"#));
    assert!(wider.to_string().contains("policy.layers.2.weight"), "{wider}");
}

#[test]
fn a_scaling_that_is_said_must_be_there_and_fit() {
    let policy = scaled_policy();
    let missing = refusal(&with_header(&saved(&policy), r#""observation.mean""#, r#""observation.mien""#));
    assert!(missing.to_string().contains("`observation.mean`") && missing.to_string().contains("missing"), "{missing}");
    let short = InputScaling::identity(3);
    let short = PolicyWeights { metadata: WeightsMetadata { input_scaling: Some(short), ..metadata() }, ..policy };
    assert!(matches!(refusal(&saved(&short)), WeightsError::Scaling { found: 3, expected: 4, .. }));
}

/// The entry `shoal` of the metadata.
fn shoal_entry(bytes: &[u8]) -> serde_json::Value {
    let (_, entries) = safetensors::SafeTensors::read_metadata(bytes).unwrap();
    serde_json::from_str(&entries.metadata().as_ref().unwrap()["shoal"]).unwrap()
}
