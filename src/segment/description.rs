//! What a run says of itself, so that a reader needs nothing but the segment: the fields of a transition, the
//! environment, the network and the resolved configuration. Written before the header is published, and again when
//! another supervisor adopts the run.

use serde::{Deserialize, Serialize};

use super::SegmentError;
use super::layout::{Layout, Region};
use super::shared_words::{load_bytes, store_bytes};
use crate::metrics::{Accumulation, Metric};
use crate::sync::{AtomicU64, Ordering};

/// A run's description.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
pub struct Description {
    /// Version of the program.
    pub program_version: String,
    /// The resolved configuration, as TOML.
    pub config_toml: String,
    /// Folder of the run.
    pub run_folder: String,
    /// Environment.
    pub environment: String,
    /// The spaces of observations and actions, in words: an actor that joins must find the same.
    pub spaces: String,
    /// Algorithm.
    pub algorithm: String,
    /// Fields of a transition, in order.
    pub fields: Vec<FieldDescription>,
    /// The metrics that learners report of their updates, in the order of their numbers in the metric rings.
    pub metrics: Vec<MetricDescription>,
}

/// One metric of the algorithm.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MetricDescription {
    /// Name.
    pub name: String,
    /// How several of its values become one.
    pub accumulation: Accumulation,
}

impl From<&Metric> for MetricDescription {
    fn from(metric: &Metric) -> Self {
        Self { name: metric.name.into(), accumulation: metric.accumulation }
    }
}

/// One field of a transition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FieldDescription {
    /// Name.
    pub name: String,
    /// Element type, such as `f32`.
    pub element: String,
    /// Elements, as readers see them.
    pub length: usize,
    /// Lengths of their dimensions; images are rows and columns last.
    pub shape: Vec<usize>,
    /// Frames stacked in it, each stored once in the frame store; 0 for a field that lies in the row.
    pub stack: usize,
}

impl FieldDescription {
    /// Whether its shape has as many elements as it says.
    pub fn is_shaped(&self) -> bool {
        self.shape.iter().try_fold(1_usize, |product, &length| product.checked_mul(length)) == Some(self.length)
    }
}

impl Description {
    /// As bytes: bincode, so that nothing depends on the order of keys.
    ///
    /// # Errors
    /// The encoder refuses it.
    pub fn encode(&self) -> Result<Vec<u8>, SegmentError> {
        bincode::serde::encode_to_vec(self, bincode::config::standard())
            .map_err(|error| SegmentError::System { action: "encode the description", source: std::io::Error::other(error) })
    }

    /// As bytes, if the region for them has room.
    pub(super) fn encoded_for(&self, layout: &Layout) -> Result<Vec<u8>, SegmentError> {
        let encoded = self.encode()?;
        let limit_bytes = layout.section(Region::Description).length_bytes - 8;
        let length_bytes = encoded.len();
        if length_bytes > limit_bytes { Err(SegmentError::DescriptionTooLong { length_bytes, limit_bytes }) } else { Ok(encoded) }
    }
}

/// Bytes of the longest description that a reader accepts; a hostile length must not make it allocate more.
const LIMIT_BYTES: usize = 1 << 24;

pub(super) fn write(words: &[AtomicU64], encoded: &[u8]) {
    words[0].store(encoded.len() as u64, Ordering::Relaxed);
    store_bytes(&words[1..], encoded);
}

pub(super) fn read(words: &[AtomicU64]) -> Result<Description, SegmentError> {
    let refuse = |reason: String| SegmentError::Description { reason };
    let length = usize::try_from(words[0].load(Ordering::Relaxed)).unwrap_or(usize::MAX);
    let room = 8 * (words.len() - 1);
    if length > room {
        return Err(refuse(format!("it claims {length} bytes in a region of {room}")));
    }
    let mut bytes = vec![0; length];
    load_bytes(&words[1..], &mut bytes);
    let limited = bincode::config::standard().with_limit::<LIMIT_BYTES>();
    let (description, used) = bincode::serde::decode_from_slice(&bytes, limited).map_err(|error| refuse(error.to_string()))?;
    if used != length {
        return Err(refuse(format!("{} bytes are left over", length - used)));
    }
    Ok(description)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(count: usize) -> Vec<AtomicU64> {
        (0..count).map(|_| AtomicU64::new(0)).collect()
    }

    #[test]
    fn hostile_descriptions_are_errors() {
        let region = words(64);
        region[0].store(u64::MAX, Ordering::Relaxed);
        assert!(matches!(read(&region), Err(SegmentError::Description { .. })));
        for length in 0..200 {
            region[0].store(length, Ordering::Relaxed);
            for word in &region[1..] {
                word.store(u64::MAX, Ordering::Relaxed);
            }
            assert!(read(&region).is_err(), "{length} bytes of ones were accepted");
        }
    }
}
