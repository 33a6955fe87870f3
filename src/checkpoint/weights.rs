//! Named sets of parameters as safetensors files, which Python's `safetensors` reads too.
//!
//! A tensor is called `{network}.{tensor}`, for instance `policy.layers.0.weight`. Where observations are scaled before they enter the
//! networks, `observation.mean` and `observation.inverse_deviation` say how. The header's metadata has one entry, `shoal`: a JSON
//! document with the shapes and where the parameters come from ([`WeightsMetadata`]); with two, their order and so the bytes would
//! be chance, and the same weights always give the same bytes. Optimizer moments fit in as further networks of the same shape.
//! `docs/weights.md` is for those who read these files without this program.

use std::{
    borrow::Cow,
    collections::{BTreeMap, HashMap},
    fs::File,
    io::Read,
    path::Path,
};

use safetensors::{Dtype, SafeTensors, View};
use serde::{Deserialize, Serialize};

use super::{atomic, error::WeightsError};
use crate::networks::{Head, InputScaling, NetworkSpec};

/// Version of the layout of these files. Older ones are still read: up to version 2 a network is a multi-layer perceptron, described by
/// its widths, and version 1 has the scaling of observations in the JSON document.
pub const FORMAT_VERSION: u32 = 3;

/// The last version that knows perceptrons only.
const PERCEPTRONS: u32 = 2;

/// Largest file that is read, in bytes: 4 GiB.
pub const MAXIMUM_FILE_BYTES: u64 = 4 << 30;

pub(super) const METADATA_KEY: &str = "shoal";

/// What the tensors of the scaling have where others have the name of their network.
const OBSERVATION: &str = "observation";
const MEAN: &str = "observation.mean";
const INVERSE_DEVIATION: &str = "observation.inverse_deviation";

/// The parameters of one network.
#[derive(Debug, Clone, PartialEq)]
pub struct NetworkWeights {
    /// Its shape.
    pub spec: NetworkSpec,
    /// Its parameters, in the order of [`NetworkSpec::tensors`].
    pub parameters: Vec<f32>,
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
    /// The evaluation of these parameters, if there was one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub evaluation: Option<WeightsEvaluation>,
    /// How observations are scaled before the network sees them, if they are. Written as tensors; read here in files of version 1.
    #[serde(skip_serializing)]
    pub input_scaling: Option<InputScaling>,
    /// Anything else, by name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub extra: BTreeMap<String, String>,
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

/// The content of a weights file.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Weights {
    /// Where the parameters come from.
    pub metadata: WeightsMetadata,
    /// The networks by name; a name has no dot.
    pub networks: BTreeMap<String, NetworkWeights>,
}

/// The JSON document in the header; `N` is how it describes a network.
#[derive(Serialize, Deserialize)]
struct Header<N> {
    format: u32,
    networks: BTreeMap<String, N>,
    /// For people who use the tensors by themselves: present if observations must be scaled, and how.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    observation_scaling: Option<String>,
    #[serde(flatten)]
    metadata: WeightsMetadata,
}

impl Weights {
    /// Weights of one network.
    pub fn single(name: &str, weights: NetworkWeights, metadata: WeightsMetadata) -> Self {
        Self { metadata, networks: BTreeMap::from([(name.to_owned(), weights)]) }
    }

    /// Takes the network `name` out, which must have the shape `expected`.
    ///
    /// # Errors
    /// When it is missing or has another shape; `path` is for the message.
    pub fn take(&mut self, name: &str, expected: &NetworkSpec, path: &Path) -> Result<Vec<f32>, WeightsError> {
        let Some(found) = self.networks.get(name) else { return Err(self.missing(name, path)) };
        if found.spec != *expected {
            let (found, expected) = (Box::new(found.spec.clone()), Box::new(expected.clone()));
            return Err(WeightsError::OtherSpec { path: path.into(), network: name.into(), found, expected });
        }
        Ok(self.networks.remove(name).map(|weights| weights.parameters).unwrap_or_default())
    }

    pub(super) fn missing(&self, name: &str, path: &Path) -> WeightsError {
        let present = self.networks.keys().cloned().collect::<Vec<_>>().join(", ");
        WeightsError::NoNetwork { path: path.into(), network: name.into(), present }
    }

    /// Saves under `path`, replacing what is there in one step: at any time the file is the old one or the new one, complete.
    ///
    /// A process killed in the middle can leave a file that ends in `.partial` beside it, which nothing reads.
    ///
    /// # Errors
    /// When parameters do not fit their shape or are not finite, or the file cannot be written; then the old file is untouched.
    pub fn save(&self, path: &Path) -> Result<(), WeightsError> {
        let refused = |message: String| WeightsError::Encode { path: path.into(), message };
        let mut tensors = Vec::new();
        for (name, weights) in &self.networks {
            if name.is_empty() || name.contains('.') || name == OBSERVATION {
                return Err(refused(format!("the network name `{name}` is empty, has a dot, or is `{OBSERVATION}`")));
            }
            weights.spec.validate().map_err(|source| WeightsError::Shape { path: path.into(), network: name.clone(), source })?;
            let (found, expected) = (weights.parameters.len(), weights.spec.parameter_count());
            if found != expected {
                return Err(refused(format!("network `{name}` has {found} parameters, its shape asks for {expected}")));
            }
            for tensor in weights.spec.tensors() {
                let values = &weights.parameters[tensor.range()];
                let tensor_name = format!("{name}.{}", tensor.name);
                check_finite(values, &tensor_name, path)?;
                tensors.push((tensor_name, FloatView { shape: tensor.shape, values }));
            }
        }
        let scaling = self.metadata.input_scaling.as_ref();
        for (name, values) in
            scaling.into_iter().flat_map(|scaling| [(MEAN, &scaling.means), (INVERSE_DEVIATION, &scaling.inverse_deviations)])
        {
            check_finite(values, name, path)?;
            tensors.push((name.into(), FloatView { shape: vec![values.len()], values }));
        }
        let returns = self.metadata.evaluation.iter().flat_map(|evaluation| [Some(evaluation.return_mean), evaluation.return_ci95_low]);
        if let Some(value) = returns.flatten().find(|value| !value.is_finite()) {
            return Err(refused(format!("a return of the evaluation is {value}, which JSON cannot hold")));
        }
        let networks = self.networks.iter().map(|(name, weights)| (name.clone(), weights.spec.clone())).collect();
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

    /// Reads a file and checks all of it: every tensor that the shapes ask for is there, nothing else is, and every value is finite.
    ///
    /// # Errors
    /// Whatever is wrong with the file, before any of it is used.
    pub fn load(path: &Path) -> Result<Self, WeightsError> {
        let bytes = read_limited(path)?;
        let damaged = |source| WeightsError::Damaged { path: path.into(), source };
        let (_, entries) = SafeTensors::read_metadata(&bytes).map_err(damaged)?;
        let header = entries.metadata().as_ref().and_then(|entries| entries.get(METADATA_KEY));
        let header = header.ok_or_else(|| WeightsError::Foreign { path: path.into() })?;
        let header = parse_header(header, path)?;
        let file = SafeTensors::deserialize(&bytes).map_err(damaged)?;
        let mut networks = BTreeMap::new();
        let mut expected_tensors = 0;
        for (name, spec) in header.networks {
            spec.validate().map_err(|source| WeightsError::Shape { path: path.into(), network: name.clone(), source })?;
            // Shapes that the file cannot hold are refused before anything of their size is allocated.
            let mut parameters = Vec::with_capacity(spec.parameter_count().min(bytes.len() / size_of::<f32>()));
            for tensor in spec.tensors() {
                read_tensor(&file, &format!("{name}.{}", tensor.name), &tensor.shape, path, &mut parameters)?;
                expected_tensors += 1;
            }
            networks.insert(name, NetworkWeights { spec, parameters });
        }
        let mut metadata = header.metadata;
        if header.format > 1 {
            metadata.input_scaling = header.observation_scaling.map(|_| read_scaling(&file, path)).transpose()?;
            expected_tensors += if metadata.input_scaling.is_some() { 2 } else { 0 };
        }
        let weights = Self { metadata, networks };
        if file.len() != expected_tensors { Err(weights.surplus(&file, path)) } else { Ok(weights) }
    }

    fn surplus(&self, file: &SafeTensors<'_>, path: &Path) -> WeightsError {
        let known = |name: &str| {
            if [MEAN, INVERSE_DEVIATION].contains(&name) {
                return self.metadata.input_scaling.is_some();
            }
            let (network, tensor) = name.split_once('.').unwrap_or((name, ""));
            self.networks.get(network).is_some_and(|weights| weights.spec.tensors().iter().any(|spec| spec.name == tensor))
        };
        let mut names = file.names();
        names.sort_unstable();
        let tensor = names.into_iter().find(|name| !known(name)).unwrap_or_default().to_owned();
        WeightsError::Tensor { path: path.into(), tensor, found: "present".into(), expected: "no such tensor".into() }
    }
}

/// A network in a file of version 1 or 2.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Perceptron {
    inputs: usize,
    hidden: Vec<usize>,
    outputs: usize,
    dueling: bool,
}

impl From<Perceptron> for NetworkSpec {
    fn from(Perceptron { inputs, hidden, outputs, dueling }: Perceptron) -> Self {
        Self::perceptron(inputs, &hidden, if dueling { Head::Dueling { outputs } } else { Head::Linear { outputs } })
    }
}

fn parse_header(header: &str, path: &Path) -> Result<Header<NetworkSpec>, WeightsError> {
    /// Read first, because another format may have other fields.
    #[derive(Deserialize)]
    struct Format {
        format: u32,
    }
    let unreadable = |source| WeightsError::Metadata { path: path.into(), source };
    let Format { format } = serde_json::from_str(header).map_err(unreadable)?;
    if !(1..=FORMAT_VERSION).contains(&format) {
        return Err(WeightsError::Format { path: path.into(), found: format, expected: FORMAT_VERSION });
    }
    if format > PERCEPTRONS {
        return serde_json::from_str(header).map_err(unreadable);
    }
    let Header::<Perceptron> { format, networks, observation_scaling, metadata } = serde_json::from_str(header).map_err(unreadable)?;
    let networks = networks.into_iter().map(|(name, network)| (name, network.into())).collect();
    Ok(Header { format, networks, observation_scaling, metadata })
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
