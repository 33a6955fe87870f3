//! The options of a replay outside the processes of a run: checked once, kept in its segment and in its files, or read
//! from the configuration of the run that it belongs to.

use serde::{Deserialize, Serialize};

use super::ReplayError;
use crate::config::schedule::linear;
use crate::config::{Config, RowKind};
use crate::replay::{Element, Field, RateLimiter, Schema};
use crate::segment::description::FieldDescription;
use crate::segment::layout::{Layout, MAX_CAPACITY, MAX_FRAME_BYTES, MAX_ROW_WORDS, SegmentSizes};

/// Most steps that become one transition.
pub const MOST_N_STEPS: usize = 1_000;

/// Transitions that a participant stages before it flushes them.
const STAGED_ROWS: usize = 64;
/// Children per node of the tree, measured best over search and update (docs/sum-tree.md).
pub(super) const FANOUT: usize = 16;
/// Room for the options in the segment.
const DESCRIPTION_BYTES: usize = 1 << 16;
/// Processes that may share a replay, if its creator gives no number.
pub const DEFAULT_PARTICIPANTS: usize = 16;
/// Most processes that may share a replay: each takes a place to write and a place to read.
pub const MAX_PARTICIPANTS: usize = 256;

/// A field, with the shape that its readers see.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FieldOptions {
    /// Name.
    pub name: String,
    /// Name of the element type, see [`Element::name`].
    pub element: String,
    /// Shape of one transition's value; of one frame if `stack` is not 0.
    pub shape: Vec<usize>,
    /// Frames stacked in front of the shape, each stored once; 0 for a field that lies in its row.
    pub stack: usize,
}

impl FieldOptions {
    /// Shape of one transition's value as readers see it.
    pub fn full_shape(&self) -> Vec<usize> {
        let stack = (self.stack > 0).then_some(self.stack);
        stack.into_iter().chain(self.shape.iter().copied()).collect()
    }

    /// Element type.
    pub fn element(&self) -> Option<Element> {
        Element::from_name(&self.element)
    }
}

/// A value that is linear in the number of transitions sampled, or of environment steps in a run: `start` at 0, `end`
/// from `samples` on.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Schedule {
    /// Value at the beginning.
    pub start: f64,
    /// Value at the end.
    pub end: f64,
    /// Samples, or environment steps, after which the value stays at `end`.
    pub samples: u64,
}

impl Schedule {
    /// The value after `sampled` samples, or environment steps.
    pub fn at(&self, sampled: u64) -> f64 {
        linear(self.start, self.end, sampled, self.samples)
    }
}

/// How steps become n-step transitions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StepOptions {
    /// Most steps in one transition.
    pub n: usize,
    /// Discount per step.
    pub gamma: f32,
    /// Field of the reward, an `f32` or `f64`.
    pub reward: String,
    /// Fields that are taken from the last of the steps.
    pub next_fields: Vec<String>,
    /// Field that says that the episode ended inside the problem.
    pub terminated: String,
    /// Field that says that the episode was cut off.
    pub truncated: Option<String>,
    /// Field, an `f32`, that gets gamma to the number of steps, or 0 after a termination.
    pub discount: Option<String>,
}

/// Everything that a replay is made from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Options {
    /// Most transitions.
    pub capacity: usize,
    /// Whether transitions are drawn by priority.
    pub prioritized: bool,
    /// Exponent of the priorities (Schaul et al. 2016, equation 1).
    pub alpha: f64,
    /// Exponent of the importance weights (Schaul et al. 2016, section 3.4).
    pub beta: Schedule,
    /// Added to every error before it becomes a priority.
    pub epsilon: f64,
    /// Transitions before the first sample.
    pub min_size: u64,
    /// Samples per insert to hold; `None` lets both sides run free.
    pub samples_per_insert: Option<f64>,
    /// How far the samples may drift from `samples_per_insert`, in samples.
    pub error_band: f64,
    /// Processes that may take part at once.
    pub participants: usize,
    /// Frames that fit; 0 if no field is stacked.
    pub frames: usize,
    /// Fields of a transition.
    pub fields: Vec<FieldOptions>,
    /// How steps become transitions; `None` if transitions are added.
    pub steps: Option<StepOptions>,
}

impl Options {
    /// How the run with this configuration uses its replay, whose transitions have these `fields`, and which has room for so many `frames`.
    pub(super) fn of_run(config_toml: &str, fields: &[FieldDescription], frames: usize) -> Result<Self, ReplayError> {
        let config = Config::parse(config_toml, "the run's configuration", &[])?.config;
        if config.row_kind() == RowKind::Fragments {
            return Err(ReplayError::Fragments { algorithm: config.algorithm.name });
        }
        let replay = &config.replay;
        let field = |field: &FieldDescription| FieldOptions {
            name: field.name.clone(),
            element: field.element.clone(),
            shape: shape_of_one(field),
            stack: field.stack,
        };
        Ok(Self {
            capacity: replay.capacity,
            prioritized: replay.prioritized,
            alpha: replay.alpha,
            beta: Schedule { start: replay.beta_start, end: replay.beta_end, samples: replay.beta_anneal_steps },
            epsilon: replay.priority_epsilon,
            min_size: replay.min_size as u64,
            samples_per_insert: replay.samples_per_insert,
            error_band: config.effective_error_band().unwrap_or(f64::INFINITY),
            participants: 1,
            frames,
            fields: fields.iter().map(field).collect(),
            steps: None,
        })
    }

    /// The schema and the layout that follow, once every value has been checked.
    pub(super) fn plan(&self) -> Result<(Schema, Layout), ReplayError> {
        let schema = self.schema()?;
        self.check(&schema)?;
        let layout = Layout::new(SegmentSizes {
            processes: 2 * self.participants,
            stagers: self.participants,
            staged_rows: STAGED_ROWS,
            fanout: if self.prioritized { FANOUT } else { 0 },
            frames: self.frames,
            frame_bytes: schema.frame_bytes(),
            description_bytes: DESCRIPTION_BYTES,
            ..SegmentSizes::of_rows(schema.words(), self.capacity)
        })?;
        Ok((schema, layout))
    }

    /// The fields as the replay knows them.
    pub(super) fn schema(&self) -> Result<Schema, ReplayError> {
        let field = |field: &FieldOptions| {
            let invalid = |problem: &str| ReplayError::Field { name: field.name.clone(), problem: problem.into() };
            let element =
                field.element().ok_or_else(|| invalid("its dtype is none of bool and the integers and floats of up to 8 bytes"))?;
            let length = field.shape.iter().try_fold(1usize, |product, &axis| product.checked_mul(axis));
            let (most_bytes, whole) = if field.stack > 0 { (MAX_FRAME_BYTES, "a frame") } else { (8 * MAX_ROW_WORDS, "a transition") };
            let most = most_bytes / element.size_bytes();
            let length = length.filter(|length| (1..=most).contains(length)).ok_or_else(|| {
                invalid(&format!(
                    "its shape {:?} holds no value, or more than the {most} of its type that {whole} has room for",
                    field.shape
                ))
            })?;
            let flat = match field.stack {
                0 => Field::new(&field.name, element, length),
                stack => Field::stacked(&field.name, element, length, stack),
            };
            Ok(flat.shaped(&field.full_shape()))
        };
        Ok(Schema::new(self.fields.iter().map(field).collect::<Result<_, ReplayError>>()?))
    }

    /// How steps become transitions; `None` if each step is a transition as it is.
    pub(super) fn steps_to_put_together(&self) -> Option<&StepOptions> {
        self.steps.as_ref().filter(|steps| steps.n > 1 || steps.discount.is_some())
    }

    /// When inserting and sampling may go on.
    pub(super) fn limiter(&self) -> RateLimiter {
        RateLimiter { min_size: self.min_size, samples_per_insert: self.samples_per_insert, takes_once: false, error_band: self.error_band }
    }

    fn check(&self, schema: &Schema) -> Result<(), ReplayError> {
        let within = |what: &'static str, value: f64, least: f64, most: f64| {
            let inside = value >= least && value <= most;
            if inside { Ok(()) } else { Err(ReplayError::OutOfRange { what, value, least, most }) }
        };
        within("participants", self.participants as f64, 1.0, MAX_PARTICIPANTS as f64)?;
        // One slot more than there are writers, or writers that hold a slot each could wait for each other.
        within("capacity (above participants)", self.capacity as f64, (self.participants + 1) as f64, MAX_CAPACITY as f64)?;
        within("alpha", self.alpha, 0.0, 1.0)?;
        within("epsilon", self.epsilon, 0.0, 1e3)?;
        within("beta", self.beta.start, 0.0, 1.0)?;
        within("beta", self.beta.end, 0.0, 1.0)?;
        within("min_size", self.min_size as f64, 0.0, self.capacity as f64)?;
        if let Some(ratio) = self.samples_per_insert {
            within("samples_per_insert", ratio, 1e-6, 1e9)?;
            within("error_band", self.error_band, ratio.max(1.0), 1e15)?;
        }
        if self.fields.is_empty() {
            return Err(ReplayError::NoFields);
        }
        for (index, field) in self.fields.iter().enumerate() {
            if self.fields[..index].iter().any(|earlier| earlier.name == field.name) {
                return Err(ReplayError::Field { name: field.name.clone(), problem: "it is there twice".into() });
            }
        }
        let stacked = || schema.fields().iter().filter(|field| field.stack > 0);
        if let Some(other) = stacked().find(|field| field.frame_bytes() != schema.frame_bytes()) {
            let problem = format!(
                "its frames have {} bytes, those of another field {}; they share one store",
                other.frame_bytes(),
                schema.frame_bytes()
            );
            return Err(ReplayError::Field { name: other.name.clone(), problem });
        }
        let most_named = stacked().map(|field| field.stack).sum::<usize>();
        if most_named > 0 {
            let least = (2 * most_named).max(self.participants + 1);
            within("frame_capacity", self.frames as f64, least as f64, MAX_CAPACITY as f64)?;
        }
        self.steps.as_ref().map_or(Ok(()), |steps| steps.check(schema))
    }
}

impl StepOptions {
    fn check(&self, schema: &Schema) -> Result<(), ReplayError> {
        if !(1..=MOST_N_STEPS).contains(&self.n) {
            return Err(ReplayError::OutOfRange { what: "n_step.n", value: self.n as f64, least: 1.0, most: MOST_N_STEPS as f64 });
        }
        if !(0.0..=1.0).contains(&self.gamma) {
            return Err(ReplayError::OutOfRange { what: "n_step.gamma", value: self.gamma.into(), least: 0.0, most: 1.0 });
        }
        let field = |name: &str| {
            let position = schema.position(name);
            position.map(|position| &schema.fields()[position]).ok_or_else(|| ReplayError::Field {
                name: name.into(),
                problem: "n_step names it, and the replay has no such field".into(),
            })
        };
        for name in &self.next_fields {
            field(name)?;
        }
        let of_one = |name: &str, elements: &[Element], kind: &str| {
            let found = field(name)?;
            if found.length == 1 && found.stack == 0 && elements.contains(&found.element) {
                return Ok(());
            }
            Err(ReplayError::Field { name: name.into(), problem: format!("n_step needs a single {kind} here") })
        };
        of_one(&self.reward, &[Element::F32, Element::F64], "float32 or float64")?;
        for name in [Some(&self.terminated), self.truncated.as_ref()].into_iter().flatten() {
            of_one(name, &[Element::Bool, Element::U8, Element::F32, Element::I32], "bool, uint8, int32 or float32")?;
        }
        self.discount.as_deref().map_or(Ok(()), |name| of_one(name, &[Element::F32], "float32"))
    }
}

/// The shape of one frame, for a field of frames; otherwise the shape of the field's value. Empty for a single number.
fn shape_of_one(field: &FieldDescription) -> Vec<usize> {
    match (field.stack, field.shape.as_slice()) {
        (_, [1]) => Vec::new(),
        (0, shape) => shape.to_vec(),
        (stack, [first, rest @ ..]) if *first == stack => rest.to_vec(),
        (stack, [first, rest @ ..]) if first.is_multiple_of(stack) => [&[first / stack], rest].concat(),
        // For instance stacks of observations that have two frames themselves.
        (stack, _) => vec![field.length / stack],
    }
}
