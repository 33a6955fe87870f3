//! A saved policy, one network and what is needed to play it again, as a safetensors file, which Python's
//! `safetensors` reads too.
//!
//! A tensor is called `policy.{tensor}`, for instance `policy.layers.0.weight`. Where observations are scaled
//! before they enter the network, `observation.mean` and `observation.inverse_deviation` say how. The header's
//! metadata has one entry, `shoal`: a JSON document with the shape and where the parameters come from
//! ([`WeightsMetadata`]); with two, their order and so the bytes would be chance, and the same weights always give
//! the same bytes. `docs/weights.md` is for those who read these files without this program.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs::File;
use std::io::Read;
use std::path::Path;

use safetensors::{Dtype, SafeTensors, View};
use serde::de::Error as _;
use serde::{Deserialize, Serialize};

use super::atomic;
use super::policy_spaces::PolicySpaces;
use super::weights_error::WeightsError;
use crate::networks::{InputScaling, NetworkSpec};

/// Version of the layout of these files.
pub const FORMAT_VERSION: u32 = 3;

/// Largest file that is read, in bytes: 4 GiB.
pub const MAXIMUM_FILE_BYTES: u64 = 4 << 30;

pub(super) const METADATA_KEY: &str = "shoal";

/// Name of the network.
pub(super) const NETWORK: &str = "policy";

const MEAN: &str = "observation.mean";
const INVERSE_DEVIATION: &str = "observation.inverse_deviation";

/// What an evaluation needs: the network that acts, and in `metadata` the environment and the algorithm that knows
/// how to use it.
#[derive(Debug, Clone, PartialEq)]
pub struct PolicyWeights {
    /// Shape of the network.
    pub spec: NetworkSpec,
    /// Its parameters, in the order of [`NetworkSpec::tensors`].
    pub parameters: Vec<f32>,
    /// Environment, algorithm and progress of the run that it comes from.
    pub metadata: WeightsMetadata,
}

/// Where parameters come from.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct WeightsMetadata {
    /// Name of the algorithm that trained them, for instance `dqn`.
    pub algorithm: String,
    /// Name of the environment that they were trained in, for instance `CartPole-v1`.
    pub environment: String,
    /// Version on the parameter board, counted in publications.
    pub parameter_version: u64,
    /// Environment steps of the run when they were saved, over all actors.
    pub environment_steps: u64,
    /// Optimizer steps of the run when they were saved.
    pub updates: u64,
    /// What the policy observes and does. Files of older programs do not say it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spaces: Option<PolicySpaces>,
    /// The evaluation of these parameters, if there was one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub evaluation: Option<WeightsEvaluation>,
    /// How observations are scaled before the network sees them, if they are. In a file these are tensors.
    #[serde(skip)]
    pub input_scaling: Option<InputScaling>,
}

/// What an evaluation said of parameters.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct WeightsEvaluation {
    /// Mean return.
    pub return_mean: f64,
    /// Lower end of the 95 % confidence interval of the mean; `None` for one episode.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub return_ci95_low: Option<f64>,
    /// Number of episodes.
    pub episodes: u64,
    /// Whether the episodes were fresh: played after an evaluation had proposed the parameters, and no part of it.
    pub confirmed: bool,
}

/// The JSON document in the header.
#[derive(Serialize, Deserialize)]
struct Header {
    format: u32,
    /// By name: [`NETWORK`] alone.
    networks: BTreeMap<String, NetworkSpec>,
    /// For people who use the tensors by themselves: present if observations must be scaled, and how.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    observation_scaling: Option<String>,
    #[serde(flatten)]
    metadata: WeightsMetadata,
}

impl PolicyWeights {
    /// A policy from what learners publish: the parameters of its network and, where observations are scaled, how.
    ///
    /// # Panics
    /// When `published` is shorter than the network's parameters.
    pub fn new(spec: NetworkSpec, published: &[f32], mut metadata: WeightsMetadata) -> Self {
        let (parameters, scaling) = published.split_at(spec.parameter_count());
        metadata.input_scaling = (!scaling.is_empty()).then(|| InputScaling::from_values(scaling));
        Self { spec, parameters: parameters.to_vec(), metadata }
    }

    /// What learners published.
    pub fn published(&self) -> Vec<f32> {
        let mut published = self.parameters.clone();
        if let Some(scaling) = &self.metadata.input_scaling {
            scaling.append_to(&mut published);
        }
        published
    }

    /// Saves under `path`, replacing what is there in one step: at any time the file is the old one or the new one,
    /// complete.
    ///
    /// A process killed in the middle can leave a file that ends in `.partial` beside it, which nothing reads.
    ///
    /// # Errors
    /// When the environment or the algorithm has no name, parameters do not fit their shape or are not finite, or
    /// the file cannot be written; then the old file is untouched.
    pub fn save(&self, path: &Path) -> Result<(), WeightsError> {
        let refused = |message: String| WeightsError::Encode { path: path.into(), message };
        if let Some(field) = self.metadata.unnamed() {
            return Err(refused(format!("a policy needs the name of its {field}")));
        }
        self.spec.validate().map_err(|source| WeightsError::Shape { path: path.into(), source })?;
        let (found, expected) = (self.parameters.len(), self.spec.parameter_count());
        if found != expected {
            return Err(refused(format!("network `{NETWORK}` has {found} parameters, its shape asks for {expected}")));
        }
        let mut tensors = Vec::new();
        for tensor in self.spec.tensors() {
            let values = &self.parameters[tensor.range()];
            tensors.push((format!("{NETWORK}.{}", tensor.name), FloatView { shape: tensor.shape, values }));
        }
        let scaling = self.metadata.input_scaling.as_ref();
        for (name, values) in
            scaling.into_iter().flat_map(|scaling| [(MEAN, &scaling.means), (INVERSE_DEVIATION, &scaling.inverse_deviations)])
        {
            tensors.push((name.into(), FloatView { shape: vec![values.len()], values }));
        }
        tensors.iter().try_for_each(|(name, tensor)| check_finite(tensor.values, name, path))?;
        let returns = self.metadata.evaluation.iter().flat_map(|evaluation| [Some(evaluation.return_mean), evaluation.return_ci95_low]);
        if let Some(value) = returns.flatten().find(|value| !value.is_finite()) {
            return Err(refused(format!("a return of the evaluation is {value}, which JSON cannot hold")));
        }
        let networks = BTreeMap::from([(NETWORK.to_owned(), self.spec.clone())]);
        let observation_scaling = scaling.map(|_| {
            let limit = InputScaling::LIMIT;
            format!("networks expect clip((observation - {MEAN}) * {INVERSE_DEVIATION}, -{limit}, {limit})")
        });
        let header = Header { format: FORMAT_VERSION, networks, observation_scaling, metadata: self.metadata.clone() };
        let header = serde_json::to_string(&header).map_err(|error| refused(error.to_string()))?;
        let entries = HashMap::from([(METADATA_KEY.to_owned(), header)]);
        let bytes = safetensors::serialize(tensors, Some(entries)).map_err(|error| refused(error.to_string()))?;
        if bytes.len() as u64 > MAXIMUM_FILE_BYTES {
            return Err(WeightsError::TooLarge { path: path.into(), bytes: bytes.len() as u64, limit: MAXIMUM_FILE_BYTES });
        }
        atomic::replace(path, &bytes).map_err(|source| WeightsError::Write { path: path.into(), source })
    }

    /// Reads a file and checks all of it: every tensor that the shape asks for is there, nothing else is, and every
    /// value is finite.
    ///
    /// # Errors
    /// Whatever is wrong with the file, before any of it is used.
    pub fn load(path: &Path) -> Result<Self, WeightsError> {
        let bytes = read_limited(path)?;
        let damaged = |source| WeightsError::Damaged { path: path.into(), source };
        let (_, entries) = SafeTensors::read_metadata(&bytes).map_err(damaged)?;
        let header = entries.metadata().as_ref().and_then(|entries| entries.get(METADATA_KEY));
        let header = header.ok_or_else(|| WeightsError::Foreign { path: path.into() })?;
        let Header { mut networks, observation_scaling, mut metadata, .. } = parse_header(header, path)?;
        let file = SafeTensors::deserialize(&bytes).map_err(damaged)?;
        let spec = networks.remove(NETWORK).ok_or_else(|| WeightsError::NoPolicy { path: path.into() })?;
        if let Some(other) = networks.into_keys().next() {
            let source = serde_json::Error::unknown_field(&other, &[NETWORK]);
            return Err(WeightsError::Metadata { path: path.into(), source });
        }
        spec.validate().map_err(|source| WeightsError::Shape { path: path.into(), source })?;
        // Shapes that the file cannot hold are refused before anything of their size is allocated.
        let mut parameters = Vec::with_capacity(spec.parameter_count().min(bytes.len() / size_of::<f32>()));
        let mut known = BTreeSet::new();
        for tensor in spec.tensors() {
            let name = format!("{NETWORK}.{}", tensor.name);
            read_tensor(&file, &name, &tensor.shape, path, &mut parameters)?;
            known.insert(name);
        }
        if observation_scaling.is_some() {
            metadata.input_scaling = Some(read_scaling(&file, path)?);
            known.extend([MEAN, INVERSE_DEVIATION].map(str::to_owned));
        }
        if let Some(tensor) = file.names().into_iter().filter(|name| !known.contains(*name)).min() {
            let (found, expected) = ("present".into(), "no such tensor".into());
            return Err(WeightsError::Tensor { path: path.into(), tensor: tensor.into(), found, expected });
        }
        if let Some(field) = metadata.unnamed() {
            return Err(WeightsError::Unnamed { path: path.into(), field });
        }
        let scaling = metadata.input_scaling.iter();
        let lengths = scaling.flat_map(|scaling| [scaling.means.len(), scaling.inverse_deviations.len()]);
        match lengths.into_iter().find(|&length| length != spec.inputs()) {
            Some(found) => Err(WeightsError::Scaling { path: path.into(), found, expected: spec.inputs() }),
            None => Ok(Self { spec, parameters, metadata }),
        }
    }
}

impl WeightsMetadata {
    /// The evaluation of these parameters, if it was one of fresh episodes.
    pub fn confirmation(&self) -> Option<WeightsEvaluation> {
        self.evaluation.filter(|evaluation| evaluation.confirmed)
    }

    /// What it does not say and has to: what is played, or by whose policy.
    fn unnamed(&self) -> Option<&'static str> {
        [("environment", &self.environment), ("algorithm", &self.algorithm)]
            .into_iter()
            .find_map(|(field, name)| name.is_empty().then_some(field))
    }
}

fn parse_header(header: &str, path: &Path) -> Result<Header, WeightsError> {
    /// Read first, because another format may have other fields.
    #[derive(Deserialize)]
    struct Format {
        format: u32,
    }
    let unreadable = |source| WeightsError::Metadata { path: path.into(), source };
    let Format { format } = serde_json::from_str(header).map_err(unreadable)?;
    if format != FORMAT_VERSION {
        return Err(WeightsError::Format { path: path.into(), found: format, expected: FORMAT_VERSION });
    }
    serde_json::from_str(header).map_err(unreadable)
}

/// Append the values of a tensor that must have this shape.
fn read_tensor(file: &SafeTensors<'_>, name: &str, shape: &[usize], path: &Path, values: &mut Vec<f32>) -> Result<(), WeightsError> {
    let wrong = |found: String| {
        let expected = format!("{:?} {shape:?}", Dtype::F32);
        WeightsError::Tensor { path: path.into(), tensor: name.into(), found, expected }
    };
    let view = file.tensor(name).map_err(|_| wrong("missing".into()))?;
    if view.dtype() != Dtype::F32 || view.shape() != shape {
        return Err(wrong(format!("{:?} {:?}", view.dtype(), view.shape())));
    }
    let start = values.len();
    values.extend(view.data().as_chunks().0.iter().map(|&value| f32::from_le_bytes(value)));
    check_finite(&values[start..], name, path)
}

/// The scaling of observations, of whatever length: who uses it knows how many there are.
fn read_scaling(file: &SafeTensors<'_>, path: &Path) -> Result<InputScaling, WeightsError> {
    let read = |name| {
        let length = file.tensor(name).map_or(0, |view| view.shape().iter().product());
        let mut values = Vec::new();
        read_tensor(file, name, &[length], path, &mut values).map(|()| values)
    };
    Ok(InputScaling { means: read(MEAN)?, inverse_deviations: read(INVERSE_DEVIATION)? })
}

fn read_limited(path: &Path) -> Result<Vec<u8>, WeightsError> {
    let failed = |source: std::io::Error| match source.kind() {
        std::io::ErrorKind::NotFound => WeightsError::Missing { path: path.into() },
        _ => WeightsError::Read { path: path.into(), source },
    };
    let file = File::open(path).map_err(failed)?;
    let length = file.metadata().map_err(failed)?.len();
    let mut bytes = Vec::new();
    if length <= MAXIMUM_FILE_BYTES {
        // The length may have been a lie: a pipe or a device has none.
        bytes.reserve_exact(length as usize);
        file.take(MAXIMUM_FILE_BYTES + 1).read_to_end(&mut bytes).map_err(failed)?;
    }
    match length.max(bytes.len() as u64) {
        bytes if bytes > MAXIMUM_FILE_BYTES => Err(WeightsError::TooLarge { path: path.into(), bytes, limit: MAXIMUM_FILE_BYTES }),
        _ => Ok(bytes),
    }
}

fn check_finite(values: &[f32], tensor: &str, path: &Path) -> Result<(), WeightsError> {
    match values.iter().position(|value| !value.is_finite()) {
        Some(index) => Err(WeightsError::NotFinite { path: path.into(), tensor: tensor.into(), index, value: values[index] }),
        None => Ok(()),
    }
}

/// A tensor on its way into a file.
struct FloatView<'a> {
    shape: Vec<usize>,
    values: &'a [f32],
}

impl View for FloatView<'_> {
    fn dtype(&self) -> Dtype {
        Dtype::F32
    }

    fn shape(&self) -> &[usize] {
        &self.shape
    }

    fn data(&self) -> Cow<'_, [u8]> {
        self.values.iter().flat_map(|value| value.to_le_bytes()).collect()
    }

    fn data_len(&self) -> usize {
        size_of_val(self.values)
    }
}
