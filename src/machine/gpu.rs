//! GPUs of NVIDIA, found in the driver's files. CUDA is never called here: a process that has called it must not fork.

use std::path::Path;

use serde::Serialize;

/// How much of a GPU is used at a moment.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GpuUse {
    /// Number of the GPU, in the order of the PCI addresses.
    pub index: u32,
    /// Share of the last moment in which any program computed there.
    pub busy_share: f64,
    /// Bytes of its memory that any program has taken.
    pub memory_bytes: u64,
}

/// GPUs of NVIDIA.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Gpus {
    /// Whether `/dev/nvidiactl` exists, without which no program can reach a GPU.
    pub has_driver: bool,
    /// The driver's version, such as `580.95.05`, if its file says one.
    pub driver: Option<String>,
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
        let driver = version(&super::text_of(root, "proc/driver/nvidia/version"));
        Self { has_driver: root.join("dev/nvidiactl").exists(), driver, names }
    }

    /// The first number of the driver's version, in which the requirements of CUDA are given.
    pub fn driver_branch(&self) -> Option<u32> {
        self.driver.as_deref()?.split('.').next()?.parse().ok()
    }
}

/// The version in the first line of the driver's file: the first word of numbers with points. The words around it
/// differ between kinds of driver.
fn version(text: &str) -> Option<String> {
    let is_version = |word: &&str| word.contains('.') && word.split('.').all(|number| number.parse::<u32>().is_ok());
    text.lines().next()?.split_whitespace().find(is_version).map(str::to_owned)
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
        assert_eq!(gpus, Gpus { has_driver: true, driver: None, names: vec!["NVIDIA H200".into(), "NVIDIA GeForce RTX 4090".into()] });
    }

    #[test]
    fn a_driver_of_either_kind_tells_its_version() {
        let files = [
            ("NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.129.03  Thu Oct 19 18:56:32 UTC 2023\nGCC version:  gcc 12.2.0\n", 535),
            ("NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.95.05  Release Build  (builder@host)\n", 580),
        ];
        for (text, branch) in files {
            let gpus = Gpus::detect_under(fixture::root(&[("proc/driver/nvidia/version", text)]).path());
            assert_eq!(gpus.driver_branch(), Some(branch), "{gpus:?}");
        }
        assert_eq!(version("NVRM version: of another kind\nGCC version:  gcc 12.2.0\n"), None);
    }
}
