//! Makes a libtorch folder out of the downloaded wheels, and puts it in its place in one step.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use zip::ZipArchive;

use super::wheels::Wheel;
use super::{VERSION, download, folder};
use crate::report::say;
use crate::workspace::CARGO_SETTINGS;

/// Unpacks the needed members of `wheels`, which lie in `partial`, and completes them to a folder that torch-sys accepts.
pub(super) fn assemble(wheels: &[Wheel], partial: &Path) -> Result<()> {
    say("Unpacking.");
    let draft = draft(partial);
    for wheel in wheels {
        let path = download::wheel_path(wheel, partial)?;
        unpack(wheel, &path, &draft).with_context(|| format!("{} cannot be unpacked", path.display()))?;
        // Each wheel goes as soon as it is unpacked, which keeps the highest point of disk usage low.
        fs::remove_file(&path).with_context(|| format!("{} cannot be removed", path.display()))?;
    }
    let library = |name: &str| draft.join("lib").join(name);
    // Torch-sys links -ltorch, but the libtorch.so of the wheel asks for CUDA; all that is needed is in libtorch_cpu.so. With CUDA,
    // `build.rs` links programs to its library separately.
    symlink("libtorch_cpu.so", library("libtorch.so")).context("libtorch.so cannot be linked")?;
    symlink("libgomp.so.1", library("libgomp.so")).context("libgomp.so cannot be linked")?;
    fs::write(draft.join("build-version"), format!("{VERSION}\n")).context("build-version cannot be written")?;
    fs::write(draft.join(CARGO_SETTINGS), folder::CARGO_SETTINGS_TEXT).context("the cargo settings cannot be written")?;
    folder::check_fetched(&draft).context("the wheels do not hold what they should")
}

/// Moves the assembled folder to `destination` by a rename: others see all of it or nothing.
pub(super) fn publish(partial: &Path, destination: &Path) -> Result<()> {
    // After a power failure a rename may be on disk before the files it publishes, unless they are written out first.
    let handle = File::open(partial).with_context(|| format!("{} cannot be opened", partial.display()))?;
    rustix::fs::syncfs(&handle).context("the disk does not take the files")?;
    if destination.symlink_metadata().is_ok() {
        fs::rename(destination, partial.join("replaced")).with_context(|| format!("{} cannot be moved away", destination.display()))?;
    }
    fs::rename(draft(partial), destination).with_context(|| format!("{} cannot be put in its place", destination.display()))
}

fn draft(partial: &Path) -> PathBuf {
    partial.join("libtorch")
}

fn unpack(wheel: &Wheel, path: &Path, draft: &Path) -> Result<()> {
    let mut archive = ZipArchive::new(io::BufReader::new(File::open(path)?))?;
    for index in 0..archive.len() {
        let mut member = archive.by_index(index)?;
        let Some(destination) = wheel.destination(&member.name()?) else { continue };
        if member.enclosed_name().is_none() {
            bail!("the member {:?} leaves the archive", member.name()?);
        }
        let destination = draft.join(destination);
        let written = destination.parent().map_or(Ok(()), fs::create_dir_all).and_then(|()| {
            let mut file = File::create(&destination)?;
            io::copy(&mut member, &mut file)
        });
        written.with_context(|| format!("{} cannot be written", destination.display()))?;
    }
    match wheel.libraries().find(|library| !draft.join(library).is_file()) {
        Some(library) => bail!("the wheel lacks {library}"),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use zip::write::SimpleFileOptions;

    use super::super::{Devices, wheels};
    use super::*;

    /// Writes wheels that hold the named members, each with its own name as content.
    fn write_wheels(partial: &Path, left_out: &str) {
        fs::create_dir_all(partial.join("downloads")).unwrap();
        let members = [
            "torch/lib/libtorch_cpu.so",
            "torch/lib/libtorch_cuda.so",
            "torch/lib/libc10.so",
            "torch/lib/libgomp.so.1",
            "torch/include/ATen/ATen.h",
            "torch/include/torch/csrc/api/include/torch/torch.h",
            "nvidia/cu13/lib/libcudart.so.13",
            "nvidia/cu13/lib/libcupti.so.13",
        ];
        for wheel in wheels::for_machine(Devices::Cpu, "linux", "x86_64", true).unwrap() {
            let file = File::create(partial.join(format!("downloads/{}py3-none-any.whl", wheel.file_prefix()))).unwrap();
            let mut archive = zip::ZipWriter::new(file);
            for member in members.into_iter().filter(|member| *member != left_out) {
                archive.start_file(member, SimpleFileOptions::default()).unwrap();
                archive.write_all(member.as_bytes()).unwrap();
            }
            archive.finish().unwrap();
        }
    }

    #[test]
    fn wheels_become_a_folder_that_replaces_an_unusable_one() {
        let root = tempfile::tempdir().unwrap();
        let (partial, destination) = (root.path().join("partial"), root.path().join(".libtorch"));
        write_wheels(&partial, "");
        fs::create_dir_all(destination.join("old")).unwrap();
        assemble(wheels::for_machine(Devices::Cpu, "linux", "x86_64", true).unwrap(), &partial).unwrap();
        assert!(folder::check_fetched(&destination).is_err(), "nothing is visible before it is published");
        publish(&partial, &destination).unwrap();
        folder::check_fetched(&destination).unwrap();
        assert!(!destination.join("old").exists());
        assert!(!destination.join("lib/libtorch_cuda.so").exists());
        assert_eq!(fs::read_to_string(destination.join("lib/libtorch.so")).unwrap(), "torch/lib/libtorch_cpu.so");
    }

    #[test]
    fn a_wheel_without_a_library_is_refused() {
        let root = tempfile::tempdir().unwrap();
        write_wheels(root.path(), "nvidia/cu13/lib/libcupti.so.13");
        let error = assemble(wheels::for_machine(Devices::Cpu, "linux", "x86_64", true).unwrap(), root.path()).unwrap_err();
        assert!(format!("{error:#}").contains("the wheel lacks lib/libcupti.so.13"), "{error:#}");
    }
}
