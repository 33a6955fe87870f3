//! Which libtorch a build uses, and the set-up that provides one.
//!
//! The order is: the Python environment's PyTorch if LIBTORCH_USE_PYTORCH is set, the folder in LIBTORCH if the user set
//! it, and otherwise `.libtorch` in the workspace's root, which is fetched when it is missing. What the user chose is
//! checked and never changed. `.libtorch` lies outside `target`, so that `cargo clean` keeps it.

mod assemble;
mod chosen;
mod download;
mod folder;
mod on_demand;
mod wheels;

use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::lock::SetupLock;
use crate::report::{duration, say};
use crate::{prerequisites, workspace};

pub(crate) use download::python_with_pip;
pub(crate) use on_demand::Profile;

/// The only version that torch-sys, and with it this workspace, accepts.
pub(crate) const VERSION: &str = "2.13.0";
/// What the CUDA part, which is of CUDA 13, runs on.
const NEEDS_OF_CUDA: &str = "It computes on NVIDIA GPUs of Turing (compute capability 7.5) or newer, with a driver of 580 or newer; \
                             `nvidia-smi --query-gpu=name,compute_cap,driver_version --format=csv` says what there is.";
const FOLDER: &str = ".libtorch";
/// The path of `.cargo/config.toml` as long as there is no `.libtorch`.
const PLACEHOLDER: &str = "xtask/libtorch-missing";

/// The devices that a libtorch must compute on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Devices {
    Cpu,
    CpuAndCuda,
}

impl Devices {
    /// Whether the libtorch in `folder` computes on these devices.
    fn are_served_by(self, folder: &Path) -> bool {
        self == Self::Cpu || folder::has_cuda(folder)
    }
}

/// A libtorch that was checked.
#[derive(Debug)]
pub(crate) enum Libtorch {
    /// The PyTorch of the active Python environment: LIBTORCH_USE_PYTORCH is set.
    Python,
    /// The folder that the user's own LIBTORCH names.
    Chosen(PathBuf),
    /// `.libtorch` in the workspace's root.
    Fetched,
}

impl Libtorch {
    /// Lets a cargo command use this libtorch, exactly as the same command typed by hand would.
    pub(crate) fn hand_to(&self, command: &mut Command) {
        if matches!(self, Self::Fetched) {
            // This process inherited cargo's default, which may still be the placeholder; without it the command reads
            // `.cargo/config.toml` anew.
            command.env_remove("LIBTORCH");
        }
    }

    /// Hides the active Python environment from the programs that `command` runs, unless its PyTorch is this libtorch: they would prefer
    /// its packages to those that were set up.
    pub(crate) fn hide_other_environment(&self, command: &mut Command) {
        if !matches!(self, Self::Python) {
            command.env_remove("VIRTUAL_ENV");
        }
    }

    /// Lets programs that are built with `profile` load this libtorch only when they need it, if the set-up fetched it.
    pub(crate) fn loaded_on_demand(self, profile: Profile) -> Self {
        if matches!(self, Self::Fetched) {
            on_demand::provide(&workspace::root(), profile);
        }
        self
    }
}

impl fmt::Display for Libtorch {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Python => write!(formatter, "PyTorch {VERSION} of the active Python environment"),
            Self::Chosen(path) => write!(formatter, "{VERSION} in {} (from LIBTORCH)", path.display()),
            Self::Fetched => write!(formatter, "{VERSION} in {}", workspace::root().join(FOLDER).display()),
        }
    }
}

/// The libtorch that a build would use now, or `None` if it must be fetched first.
///
/// # Errors
///
/// If the user chose a libtorch that cannot work.
pub(crate) fn find() -> Result<Option<Libtorch>> {
    let root = workspace::root();
    Ok(match chosen::by_user(&root)? {
        Some(chosen) => Some(chosen),
        None => folder::check_fetched(&root.join(FOLDER)).is_ok().then_some(Libtorch::Fetched),
    })
}

/// Finds a libtorch for `devices`, and fetches it first if need be.
///
/// # Errors
///
/// If the user chose a libtorch that cannot work or lacks a device, or if fetching one fails.
pub(crate) fn provide(devices: Devices) -> Result<Libtorch> {
    if let Some(found) = find_for(devices)? {
        return Ok(found);
    }
    let root = workspace::root();
    let lock = SetupLock::acquire(&root, FOLDER)?;
    // Another set-up may have finished while this one waited for the lock.
    if let Some(found) = find_for(devices)? {
        return Ok(found);
    }
    fetch(devices, &root, &lock)?;
    Ok(Libtorch::Fetched)
}

fn find_for(devices: Devices) -> Result<Option<Libtorch>> {
    let found = find()?;
    match &found {
        Some(Libtorch::Fetched) if !devices.are_served_by(&workspace::root().join(FOLDER)) => Ok(None),
        Some(Libtorch::Chosen(path)) if !devices.are_served_by(path) => bail!(
            "LIBTORCH is set to \"{}\", which has no libtorch_cuda.so; run `unset LIBTORCH` and let the set-up fetch one that has",
            path.display()
        ),
        _ => Ok(found),
    }
}

fn fetch(devices: Devices, root: &Path, lock: &SetupLock) -> Result<()> {
    let start = std::time::Instant::now();
    let destination = root.join(FOLDER);
    let serves = devices.are_served_by(&destination);
    if serves && let Some(version_alone) = folder::complete(&destination)? {
        say(version_alone);
        return Ok(());
    }
    if let Ok(metadata) = destination.symlink_metadata() {
        let kind = if metadata.is_symlink() { "link" } else { "folder" };
        let why = if serves { format!("{:#}", why_unusable(&destination)) } else { "it computes on the CPU alone".to_owned() };
        say(format!("The {kind} {} is not usable and will be replaced: {why}", destination.display()));
    }
    let wheels = wheels::for_this_machine(devices)?;
    prerequisites::require(prerequisites::for_download(devices))?;
    let (what, download, disk) = match devices {
        Devices::Cpu => ("the CPU", "0.5 GB", "0.5 GB"),
        Devices::CpuAndCuda => ("CPU and CUDA", "2.5 GB", "3.4 GB (6.5 GB free while it is unpacked)"),
    };
    say(format!("Fetching libtorch {VERSION} for {what}: about {download} to download, {disk} on disk in {}.", destination.display()));
    if devices == Devices::CpuAndCuda {
        say(NEEDS_OF_CUDA);
    }
    let partial = lock.partial_folder()?;
    download::download(wheels, partial.path())?;
    assemble::assemble(wheels, partial.path())?;
    assemble::publish(partial.path(), &destination)?;
    say(format!("libtorch {VERSION} was fetched in {}.", duration(start.elapsed())));
    Ok(())
}

fn why_unusable(destination: &Path) -> anyhow::Error {
    folder::check_fetched(destination).err().unwrap_or_else(|| anyhow::anyhow!("it changed meanwhile"))
}

/// Removes `.libtorch` and what interrupted set-ups left. Of a symbolic link only the link goes.
pub(crate) fn remove() -> Result<()> {
    let root = workspace::root();
    let _lock = SetupLock::acquire(&root, FOLDER)?;
    let folder = root.join(FOLDER);
    match folder.symlink_metadata() {
        Err(_) => say(format!("There is no {}.", folder.display())),
        Ok(metadata) => {
            let removed = if metadata.is_dir() { std::fs::remove_dir_all(&folder) } else { std::fs::remove_file(&folder) };
            removed.with_context(|| format!("{} cannot be removed", folder.display()))?;
            say(format!("Removed {}.", folder.display()));
        }
    }
    Ok(())
}
