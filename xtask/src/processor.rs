//! Processors for which Shoal is built.

use std::path::Path;
use std::process::Command;

use clap::ValueEnum;

use crate::prerequisites::Check;

/// A kind of processor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Processor {
    /// Most computers
    #[value(name = "x86_64")]
    X86,
    /// 64-bit Arm
    #[value(name = "aarch64")]
    Arm,
}

impl Processor {
    /// The processor of this machine.
    pub(crate) const HOST: Self = if cfg!(target_arch = "aarch64") { Self::Arm } else { Self::X86 };

    /// The name in the file names of packages.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::X86 => "x86_64",
            Self::Arm => "aarch64",
        }
    }

    /// The name of cargo's target.
    pub(crate) fn target(self) -> &'static str {
        match self {
            Self::X86 => "x86_64-unknown-linux-gnu",
            Self::Arm => "aarch64-unknown-linux-gnu",
        }
    }

    /// Whether Rust's standard library for this processor is installed.
    pub(crate) fn standard_library(self) -> Check {
        let target = self.target();
        let found = Command::new("rustc").args(["--print", "target-libdir", "--target", target]).output();
        let folder = found.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned()).unwrap_or_default();
        let outcome = match Path::new(&folder).is_dir() {
            true => Ok(folder),
            false => Err(format!("not installed; `rustup target add {target}` fetches it")),
        };
        Check::new("Rust's standard library for this processor", outcome)
    }
}
