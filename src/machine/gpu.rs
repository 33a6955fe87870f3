//! GPUs of NVIDIA, found in the driver's files. CUDA is never asked: a process that has asked it must not fork.

use std::path::Path;

use serde::Serialize;

/// What a GPU does at a moment.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GpuUse {
    /// Its number, in the order of the PCI addresses.
    pub index: u32,
    /// Share of the last moment in which something was computed there, by whomever.
    pub busy_share: f64,
    /// Bytes of its memory that are taken, by whomever.
    pub memory_bytes: u64,
}

/// GPUs of NVIDIA.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Gpus {
    /// Whether `/dev/nvidiactl` exists, without which no program can reach a GPU.
    pub has_driver: bool,
    /// The name of each GPU, in the order of their PCI addresses.
    pub names: Vec<String>,
}

impl Gpus {
    /// Reads the driver's files below `root`.
    pub fn detect_under(root: &Path) -> Self {
        let folders = std::fs::read_dir(root.join("proc/driver/nvidia/gpus")).into_iter().flatten().flatten();
        let mut addresses: Vec<_> = folders.map(|folder| folder.path()).collect();
        addresses.sort();
        let names = addresses.iter().map(|folder| name(&super::text_of(folder, "information"))).collect();
        Self { has_driver: root.join("dev/nvidiactl").exists(), names }
    }
}

/// The line `Model:` of a GPU's `information`.
fn name(information: &str) -> String {
    let model = information.lines().find_map(|line| line.strip_prefix("Model:"));
    model.map_or_else(|| "unknown GPU".to_owned(), |model| model.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::super::fixture;
    use super::*;

    #[test]
    fn gpus_are_named_in_the_order_of_their_addresses() {
        let root = fixture::root(&[
            ("dev/nvidiactl", ""),
            ("proc/driver/nvidia/gpus/0000:41:00.0/information", "Model: \t\t NVIDIA GeForce RTX 4090\nIRQ:   \t\t 120\n"),
            ("proc/driver/nvidia/gpus/0000:01:00.0/information", "Model: \t\t NVIDIA H200\nIRQ:   \t\t 119\n"),
        ]);
        let gpus = Gpus::detect_under(root.path());
        assert_eq!(gpus, Gpus { has_driver: true, names: vec!["NVIDIA H200".into(), "NVIDIA GeForce RTX 4090".into()] });
    }
}
