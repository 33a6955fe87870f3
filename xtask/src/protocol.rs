//! Tests the shared-memory protocol on an emulated processor, and in Miri, an interpreter.

use std::process::Command;

use anyhow::{Result, ensure};

use crate::prerequisites::{self, Check};
use crate::processor::Processor;
use crate::{package, workspace};

/// The tests for the emulated processor: those of the library alone, and the files about shared memory.
const EMULATED: [&str; 9] = [
    "--lib",
    "--test=sum_tree",
    "--test=replay_sampling",
    "--test=replay_frames",
    "--test=replay_processes",
    "--test=insert_turns",
    "--test=segment_gradients",
    "--test=segment_header",
    "--test=segment_parameters",
];
/// Where Debian's packages of a C library for Arm put it.
const ARM_LIBRARIES: &str = "/usr/aarch64-linux-gnu";
const ARM_COMPILER: &str = "aarch64-linux-gnu-gcc";
const ARM_EMULATOR: &str = "qemu-aarch64";
/// The tests for Miri, by the beginnings of their names: those in which threads share memory.
const INTERPRETED: [&str; 6] = [
    "segment::gradients",
    "segment::metrics",
    "segment::float_board",
    "segment::pictures",
    "segment::scores",
    "threads_that_update_and_clear",
];

/// Test the protocol on a 64-bit Arm that qemu emulates.
pub(crate) fn emulated() -> Result<()> {
    let arm = Processor::Arm;
    let installed = |program: &'static str| {
        let found = Command::new(program).arg("--version").output().is_ok();
        let advice = "apt-get install gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user";
        Check::new(program, if found { Ok("found".to_owned()) } else { Err(format!("not installed:  {advice}")) })
    };
    prerequisites::require([arm.standard_library(), installed(ARM_COMPILER), installed(ARM_EMULATOR)])?;
    let mut command = workspace::cargo();
    command.args(["test", "--no-default-features", "--target", arm.target()]).args(EMULATED);
    command.env("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER", ARM_COMPILER).env("CC_aarch64_unknown_linux_gnu", ARM_COMPILER);
    command.env("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER", format!("{ARM_EMULATOR} -L {ARM_LIBRARIES}"));
    ensure!(command.status()?.success(), "the tests fail on an emulated {}", arm.name());
    Ok(())
}

/// Test the protocol in Miri, once for each of `seeds` seeds. Miri looks for undefined behaviour and data races. It switches threads
/// anywhere, and lets loads return old values, as a machine with a weaker memory model may.
pub(crate) fn interpreted(seeds: u32) -> Result<()> {
    let found = Command::new("cargo").args(["+nightly", "miri", "--version"]).output().is_ok_and(|output| output.status.success());
    let outcome =
        if found { Ok("found".to_owned()) } else { Err("not installed:  rustup toolchain install nightly --component miri".to_owned()) };
    prerequisites::require([Check::new("Miri", outcome)])?;
    let mut command = Command::new("cargo");
    command
        .args(["+nightly", "miri", "test", "--no-default-features", "--lib", "--test=sum_tree", "--"])
        .args(INTERPRETED)
        .current_dir(workspace::root());
    // Apart from the builds of the ordinary compiler.
    command.env("CARGO_TARGET_DIR", package::target(&workspace::root()).join("interpreted"));
    command.env("MIRIFLAGS", format!("-Zmiri-disable-isolation -Zmiri-many-seeds=0..{seeds}"));
    ensure!(command.status()?.success(), "Miri has found a fault; its message is above");
    Ok(())
}
