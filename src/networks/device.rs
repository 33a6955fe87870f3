//! Where a network computes: names as users write them.

use std::fmt;
use std::str::FromStr;

use super::NetworkError;

/// Where a network computes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Device {
    /// The processor; written `cpu`.
    #[default]
    Cpu,
    /// An NVIDIA GPU by its number; written `cuda:N`.
    Cuda(usize),
}

/// How many times as many rows a GPU takes at once as fit a core's caches.
const GPU_ROWS_FACTOR: usize = 16;

impl Device {
    /// How many rows to take through a network at once, if a core's caches hold `in_caches` of them. A GPU has many
    /// cores, and its cost is the way to it, which every pass goes once.
    pub fn rows_at_once(self, in_caches: usize) -> usize {
        match self {
            Self::Cpu => in_caches,
            Self::Cuda(_) => GPU_ROWS_FACTOR * in_caches,
        }
    }
}

impl fmt::Display for Device {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cpu => formatter.write_str("cpu"),
            Self::Cuda(index) => write!(formatter, "cuda:{index}"),
        }
    }
}

impl FromStr for Device {
    type Err = NetworkError;

    fn from_str(name: &str) -> Result<Self, NetworkError> {
        let unknown = || NetworkError::UnknownDevice { name: name.into() };
        match name.split_once(':') {
            None if name == "cpu" => Ok(Self::Cpu),
            Some(("cuda", index)) if !index.is_empty() && index.bytes().all(|byte| byte.is_ascii_digit()) => {
                index.parse().map(Self::Cuda).map_err(|_| unknown())
            }
            _ => Err(unknown()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn device_names_survive_a_round_trip() {
        for device in [Device::Cpu, Device::Cuda(0), Device::Cuda(7)] {
            assert_eq!(device.to_string().parse::<Device>().unwrap(), device);
        }
    }

    #[test]
    fn other_names_are_refused_with_the_name_that_was_written() {
        for name in ["", "CPU", "gpu", "cpu:0", "cuda", "cuda:", "cuda:+1", "cuda:-1", "cuda:99999999999999999999", "cuda:0 "] {
            let refused = name.parse::<Device>().unwrap_err().to_string();
            assert!(refused.contains(&format!("`{name}`")), "{refused}");
        }
    }
}
