//! The configuration of a run for TensorBoard's tab of hyper-parameters, which compares runs by them.
//!
//! The messages are from `plugins/hparams/plugin_data.proto` of TensorBoard, reduced to the fields that are written
//! here.

use std::collections::BTreeMap;

use prost::Message;
use toml::Table;

/// Name of the plugin that reads hyper-parameters.
pub(super) const PLUGIN: &str = "hparams";
/// Up to this, each integer is a double.
const LARGEST_WHOLE_NUMBER: u64 = 1 << f64::MANTISSA_DIGITS;
/// The tag under which the plugin looks for hyper-parameters.
pub(super) const TAG: &str = "_hparams_/session_start_info";

/// What the plugin reads from the metadata of a summary.
#[derive(Clone, PartialEq, Message)]
pub struct PluginData {
    /// The start of a session, which is a run here.
    #[prost(message, optional, tag = "3")]
    pub session_start: Option<SessionStart>,
}

/// The start of a run.
#[derive(Clone, PartialEq, Message)]
pub struct SessionStart {
    /// Its hyper-parameters by name.
    #[prost(btree_map = "string, message", tag = "1")]
    pub hyper_parameters: BTreeMap<String, HyperParameter>,
    /// Seconds since 1970.
    #[prost(double, tag = "5")]
    pub start_time: f64,
}

/// The value of one hyper-parameter: `google.protobuf.Value`.
#[derive(Clone, PartialEq, Message)]
pub struct HyperParameter {
    /// The value.
    #[prost(oneof = "Kind", tags = "2, 3, 4")]
    pub kind: Option<Kind>,
}

/// The kinds of value that a configuration has.
#[derive(Clone, PartialEq, prost::Oneof)]
pub enum Kind {
    /// A float, or an integer that a double can be.
    #[prost(double, tag = "2")]
    Number(f64),
    /// A string; or a list, or an integer of many digits such as a seed, as it is spelled in TOML.
    #[prost(string, tag = "3")]
    Text(String),
    /// True or false.
    #[prost(bool, tag = "4")]
    Truth(bool),
}

impl PluginData {
    /// Every key of a configuration, as `table.key`.
    pub(super) fn of_configuration(config_toml: &str, start_time: f64) -> Self {
        // A run's own configuration is always TOML; anything else has no keys.
        let tables: Table = config_toml.parse().unwrap_or_default();
        let keys = |(name, table): (String, toml::Value)| {
            let keys = if let toml::Value::Table(table) = table { table } else { Table::new() };
            keys.into_iter().map(move |(key, value)| (format!("{name}.{key}"), HyperParameter { kind: Some(kind(&value)) }))
        };
        let hyper_parameters = tables.into_iter().flat_map(keys).collect();
        Self { session_start: Some(SessionStart { hyper_parameters, start_time }) }
    }
}

fn kind(value: &toml::Value) -> Kind {
    match value {
        toml::Value::Integer(number) if number.unsigned_abs() <= LARGEST_WHOLE_NUMBER => Kind::Number(*number as f64),
        toml::Value::Float(number) => Kind::Number(*number),
        toml::Value::Boolean(truth) => Kind::Truth(*truth),
        toml::Value::String(text) => Kind::Text(text.clone()),
        other => Kind::Text(other.to_string()),
    }
}
