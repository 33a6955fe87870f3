//! The file format of TensorBoard: protobuf events framed as TFRecords with masked CRC-32C checksums.
//!
//! The published writers start threads and panic on a full disk, which a supervisor that forks must not do. So the
//! messages that are needed are declared here for `prost` and framed by hand. Formats: `event.proto`, `summary.proto`
//! and `tensor.proto` of TensorBoard, `tfrecord` of TensorFlow.

use std::path::Path;
use std::time::SystemTime;

use prost::Message;

use super::TelemetryError;
use super::append::AppendFile;

/// One record of an event file.
#[derive(Clone, PartialEq, Message)]
pub struct Event {
    /// Seconds since 1970.
    #[prost(double, tag = "1")]
    pub wall_time: f64,
    /// The horizontal axis of TensorBoard's charts.
    #[prost(int64, tag = "2")]
    pub step: i64,
    /// What happened.
    #[prost(oneof = "What", tags = "3, 5, 7")]
    pub what: Option<What>,
}

/// The kinds of event that are written here.
#[derive(Clone, PartialEq, prost::Oneof)]
pub enum What {
    /// The first record of each file.
    #[prost(string, tag = "3")]
    FileVersion(String),
    /// Values of one moment.
    #[prost(message, tag = "5")]
    Summary(Summary),
    /// A beginning: readers forget what earlier files say of this step and later ones.
    #[prost(message, tag = "7")]
    Session(Session),
}

/// Beginning of a part of a run.
#[derive(Clone, Copy, PartialEq, Message)]
pub struct Session {
    /// 1 is a start.
    #[prost(int32, tag = "1")]
    pub status: i32,
}

/// Values of one moment.
#[derive(Clone, PartialEq, Message)]
pub struct Summary {
    /// One entry per tag.
    #[prost(message, repeated, tag = "1")]
    pub value: Vec<Value>,
}

/// One value.
#[derive(Clone, PartialEq, Message)]
pub struct Value {
    /// Name of the chart, grouped at slashes.
    #[prost(string, tag = "1")]
    pub tag: String,
    /// A message for the plugin that shows it; scalars need none.
    #[prost(message, optional, tag = "9")]
    pub metadata: Option<Metadata>,
    /// The value itself.
    #[prost(oneof = "Content", tags = "2, 8")]
    pub content: Option<Content>,
}

/// The forms of a value; a `oneof`, so that a zero is written too.
#[derive(Clone, PartialEq, prost::Oneof)]
pub enum Content {
    /// A scalar, in single precision.
    #[prost(float, tag = "2")]
    Scalar(f32),
    /// A tensor, for a value whose content is in its metadata.
    #[prost(message, tag = "8")]
    Tensor(Tensor),
}

/// What a plugin has to know about a value.
#[derive(Clone, PartialEq, Message)]
pub struct Metadata {
    /// The message and its plugin.
    #[prost(message, optional, tag = "1")]
    pub plugin: Option<Plugin>,
}

/// A message for a plugin.
#[derive(Clone, PartialEq, Message)]
pub struct Plugin {
    /// Its name.
    #[prost(string, tag = "1")]
    pub name: String,
    /// The message, encoded.
    #[prost(bytes = "vec", tag = "2")]
    pub content: Vec<u8>,
}

/// A tensor without elements.
#[derive(Clone, PartialEq, Message)]
pub struct Tensor {
    /// Element type; 1 is `f32`.
    #[prost(int32, tag = "1")]
    pub element: i32,
    /// Its shape.
    #[prost(message, optional, tag = "2")]
    pub shape: Option<Shape>,
}

/// The shape of a tensor.
#[derive(Clone, PartialEq, Message)]
pub struct Shape {
    /// Its dimensions.
    #[prost(message, repeated, tag = "2")]
    pub dimensions: Vec<Dimension>,
}

/// One dimension.
#[derive(Clone, Copy, PartialEq, Message)]
pub struct Dimension {
    /// Its length.
    #[prost(int64, tag = "1")]
    pub length: i64,
}

/// A growing event file.
#[derive(Debug)]
pub struct EventFile {
    file: AppendFile,
}

impl EventFile {
    /// Creates the file and writes its version record. TensorBoard finds it only if the name contains `tfevents`.
    ///
    /// # Errors
    /// The file exists or cannot be written.
    pub fn create(path: &Path) -> Result<Self, TelemetryError> {
        let mut file = Self { file: AppendFile::create(path)? };
        file.append(&Event { wall_time: unix_seconds(), step: 0, what: Some(What::FileVersion("brain.Event:2".into())) })?;
        Ok(file)
    }

    /// Appends that the run begins anew at `step`: TensorBoard then forgets what earlier lives of the run wrote for
    /// that step and later ones.
    ///
    /// # Errors
    /// The disk is full or failing; the file then still ends with a whole record.
    pub fn begin_at(&mut self, step: u64) -> Result<(), TelemetryError> {
        let step = i64::try_from(step).unwrap_or(i64::MAX);
        self.append(&Event { wall_time: unix_seconds(), step, what: Some(What::Session(Session { status: 1 })) })
    }

    /// Appends the scalars of one moment as one event; `step` is the horizontal axis.
    ///
    /// # Errors
    /// The disk is full or failing; the file then still ends with a whole record.
    pub fn scalars(&mut self, step: u64, scalars: impl IntoIterator<Item = (impl Into<String>, f64)>) -> Result<(), TelemetryError> {
        let value = scalars
            .into_iter()
            .map(|(tag, value)| Value { tag: tag.into(), metadata: None, content: Some(Content::Scalar(value as f32)) })
            .collect();
        let step = i64::try_from(step).unwrap_or(i64::MAX);
        self.append(&Event { wall_time: unix_seconds(), step, what: Some(What::Summary(Summary { value })) })
    }

    /// Appends a message for the plugin of that name, under a tag that it looks for.
    ///
    /// # Errors
    /// The disk is full or failing; the file then still ends with a whole record.
    pub fn for_plugin(&mut self, name: &str, tag: &str, message: &impl Message) -> Result<(), TelemetryError> {
        let plugin = Plugin { name: name.into(), content: message.encode_to_vec() };
        // A value must be there; the smallest is a vector without elements.
        let nothing = Tensor { element: 1, shape: Some(Shape { dimensions: vec![Dimension { length: 0 }] }) };
        let metadata = Some(Metadata { plugin: Some(plugin) });
        let value = vec![Value { tag: tag.into(), metadata, content: Some(Content::Tensor(nothing)) }];
        self.append(&Event { wall_time: unix_seconds(), step: 0, what: Some(What::Summary(Summary { value })) })
    }

    fn append(&mut self, event: &Event) -> Result<(), TelemetryError> {
        self.file.append(&frame(&event.encode_to_vec()))
    }
}

/// A TFRecord: length (u64), checksum of the length, payload, checksum of the payload; all little-endian.
fn frame(payload: &[u8]) -> Vec<u8> {
    let length = (payload.len() as u64).to_le_bytes();
    let mut record = Vec::with_capacity(payload.len() + 16);
    record.extend_from_slice(&length);
    record.extend_from_slice(&masked_crc32c(&length).to_le_bytes());
    record.extend_from_slice(payload);
    record.extend_from_slice(&masked_crc32c(payload).to_le_bytes());
    record
}

/// The masked CRC-32C of a TFRecord: rotated right by 15 bits, plus a constant, so that checksums of data that contains
/// checksums stay sound.
fn masked_crc32c(bytes: &[u8]) -> u32 {
    crc32c::crc32c(bytes).rotate_right(15).wrapping_add(0xa282_ead8)
}

pub(super) fn unix_seconds() -> f64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_is_castagnolis_and_masked_as_the_format_says() {
        // 0xe3069283 is the check value that RFC 3720 (iSCSI) implementations publish for "123456789".
        assert_eq!(crc32c::crc32c(b"123456789"), 0xe306_9283);
        assert_eq!(masked_crc32c(b"123456789"), 0xe306_9283_u32.rotate_right(15).wrapping_add(0xa282_ead8));
    }

    #[test]
    fn a_zero_is_written_and_not_left_out_as_a_default() {
        let value = Value { tag: "t".into(), metadata: None, content: Some(Content::Scalar(0.0)) };
        assert_eq!(value.encode_to_vec(), [0x0a, 1, b't', 0x15, 0, 0, 0, 0]);
    }
}
