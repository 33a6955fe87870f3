//! Lets programs load libtorch when they first compute with it, instead of whenever they start.
//!
//! A program that is linked to libtorch as usual takes 0.3 s to start: the system's loader binds and initialises half a gigabyte, even if
//! the program only says what a run does, or trains with the native engine. So two files are put beside libtorch:
//!
//! - `libtch.so`, the C++ half of torch-sys as a library of its own, which is linked to libtorch;
//! - `libtch_on_demand.a`, functions with the names of those in that half (`first_call.S`). The first call of one of them loads `libtch.so`
//!   (`load.cpp`).
//!
//! If the second file is there, `build.rs` links it into the programs, and the linker finds in it what it would otherwise take from
//! torch-sys.
//!
//! Only for x86-64, the processor that `first_call.S` is written for. A libtorch with CUDA is left as it is: programs must be linked to its
//! CUDA library by name, since they call no symbol of it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::{FOLDER, Libtorch, VERSION, folder};
use crate::lock::SetupLock;
use crate::processor::Processor;
use crate::report::say;
use crate::{prerequisites, workspace};

const FIRST_CALL: &str = include_str!("first_call.S");
const LOAD: &str = include_str!("load.cpp");
const STREAMS: &str = include_str!("streams.cpp");
/// This file, which says how the two files are made: a part of their recipe.
const MAKING: &str = include_str!("mod.rs");
/// The C++ half of torch-sys, linked to libtorch.
const LIBRARY: &str = "lib/libtch.so";
/// The functions that are linked into programs in place of [`LIBRARY`].
const FUNCTIONS: &str = "lib/libtch_on_demand.a";
/// File that says what both were made from, to tell when they have to be made again.
const RECIPE: &str = "on-demand-recipe";
/// Beginning of the names of the lock and of unfinished work in the folder of libtorch, which several checkouts may link to.
const WORK: &str = "on-demand";

/// The profile of cargo's next build. Torch-sys is compiled with it here too, so that nothing is compiled for this alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Profile {
    Dev,
    Release,
}

/// Puts both files into the libtorch that was fetched into `root`, if they are missing. Programs work without them and only start more
/// slowly, so a failure is printed and is no error.
pub(super) fn provide(root: &Path, profile: Profile) {
    // It may be a link to a libtorch that other checkouts link to as well.
    let Ok(folder) = root.join(FOLDER).canonicalize() else { return };
    if Processor::HOST != Processor::X86 || folder::has_cuda(&folder) || is_made(&folder, profile) {
        return;
    }
    if let Err(error) = make(root, &folder, profile) {
        let consequence = match folder.join(FUNCTIONS).exists() {
            true => "The loader that lets programs start without libtorch stays as it is",
            false => "Programs will load libtorch whenever they start, which takes 0.3 s",
        };
        say(format!("{consequence}: {error:#}"));
    }
}

/// Whether both files are there, made for this `profile` or for a release.
fn is_made(folder: &Path, profile: Profile) -> bool {
    let is_whole = |name: &str| fs::metadata(folder.join(name)).is_ok_and(|facts| facts.is_file() && facts.len() > 0);
    let was_made_for = |profile| fs::read_to_string(folder.join(RECIPE)).is_ok_and(|text| text == recipe(folder, profile));
    let serves = was_made_for(Profile::Release) || profile == Profile::Dev && was_made_for(Profile::Dev);
    is_whole(LIBRARY) && is_whole(FUNCTIONS) && serves
}

fn recipe(folder: &Path, profile: Profile) -> String {
    let manifest = include_str!("../../../../Cargo.toml");
    let torch_sys = manifest.lines().find(|line| line.starts_with("torch-sys")).unwrap_or_default();
    let compiler = output(prerequisites::cpp_command().arg("--version")).unwrap_or_default();
    let compiler = compiler.lines().next().unwrap_or_default();
    let flags = std::env::var("CXXFLAGS").unwrap_or_default();
    let head = format!("libtorch {VERSION} in {}\n{torch_sys}\n{compiler} {flags}\n{profile:?}\n", folder.display());
    [MAKING, FIRST_CALL, LOAD, STREAMS].iter().fold(head, |text, source| text + source)
}

fn make(root: &Path, folder: &Path, profile: Profile) -> Result<()> {
    prerequisites::require([prerequisites::cpp_compiler()])?;
    // Nobody may fetch or remove this libtorch meanwhile, and no other checkout that links to it may make the files.
    let _fetching = SetupLock::acquire(root, FOLDER)?;
    let making = SetupLock::acquire(folder, WORK)?;
    // Another set-up may have made them, or fetched a libtorch for GPUs, while this one waited for the locks.
    if folder::has_cuda(folder) || is_made(folder, profile) {
        return Ok(());
    }
    let partial = making.partial_folder()?;
    let draft = partial.path();
    let cannot_be_written = || format!("{} cannot be written", folder.display());
    // If the new files cannot be made, the old functions must not be linked. The old library stays: programs that were built with it may
    // have it open.
    for path in [FUNCTIONS, RECIPE].map(|name| folder.join(name)).into_iter().filter(|path| path.exists()) {
        fs::remove_file(path).with_context(cannot_be_written)?;
    }
    say("Compiling the loader that lets programs start without libtorch and load it when needed: a minute or two the first time.");
    make_in(draft, &compiled_half(profile)?.join("libtch.a"), &folder.join("lib"))?;
    fs::write(draft.join(RECIPE), recipe(folder, profile))?;
    // After a power failure a rename may be on disk before the file that it publishes, unless that is written out first.
    rustix::fs::syncfs(&fs::File::open(draft)?).context("the disk does not take the files")?;
    for name in [LIBRARY, FUNCTIONS, RECIPE] {
        let made = draft.join(Path::new(name).file_name().unwrap_or_default());
        fs::rename(made, folder.join(name)).with_context(cannot_be_written)?;
    }
    Ok(())
}

/// Makes both files in `draft`, from the C++ half in `archive` and the libtorch in `libraries`.
fn make_in(draft: &Path, archive: &Path, libraries: &Path) -> Result<()> {
    fs::write(draft.join("load.cpp"), LOAD)?;
    fs::write(draft.join("streams.cpp"), STREAMS)?;
    let compiler = || {
        let mut command = prerequisites::cpp_command();
        command.current_dir(draft);
        command
    };
    let compiled = ["-c", "-O2", "-fPIC", "-fno-exceptions"];
    let place = libraries.display().to_string().replace('\\', r"\\").replace('"', r#"\""#);
    output(compiler().args(compiled).arg(format!("-DLIBRARIES=\"{place}\"")).args(["load.cpp", "streams.cpp"]))?;
    let mut link = compiler();
    link.args(["-shared", "-s", "-o", "libtch.so", "streams.o", "-Wl,--whole-archive"]).arg(archive).arg("-Wl,--no-whole-archive");
    // `defs`: no symbol may be missing, since some systems bind all of them when a library is loaded.
    link.arg("-L").arg(libraries).args(["-ltorch_cpu", "-lc10", "-lstdc++", "-Wl,-z,defs", "-Wl,-rpath,$ORIGIN"]);
    output(&mut link)?;
    let symbols = output(Command::new("nm").args(["--dynamic", "--defined-only", "--format=posix", "libtch.so"]).current_dir(draft))?;
    let functions = functions(&symbols);
    ensure!(functions != FIRST_CALL, "the C++ half of torch-sys has no function that programs could call");
    fs::write(draft.join("functions.S"), functions)?;
    output(compiler().args(["-c", "functions.S"]))?;
    output(Command::new("ar").args(["rcs", "libtch_on_demand.a", "functions.o", "load.o"]).current_dir(draft))?;
    Ok(())
}

/// Has cargo compile the C++ half of torch-sys, and returns the folder with the archive.
fn compiled_half(profile: Profile) -> Result<PathBuf> {
    let mut command = workspace::cargo();
    command.args(["build", "--package", "torch-sys"]);
    if profile == Profile::Release {
        command.arg("--release");
    }
    Libtorch::Fetched.hand_to(&mut command);
    let failure = "torch-sys cannot be compiled; the compiler's messages are above";
    workspace::built_path(&mut command, folder_of_torch_sys, failure)?.context("cargo does not say where torch-sys was compiled")
}

/// Where the build script of torch-sys wrote, if this message of cargo has it.
fn folder_of_torch_sys(message: &Value) -> Option<&str> {
    let is_it = message["reason"] == "build-script-executed" && message["package_id"].as_str()?.contains("torch-sys");
    is_it.then(|| message["out_dir"].as_str()).flatten()
}

/// Assembly with an entry for each function that programs call in a library with these `symbols`, as `nm` prints them.
fn functions(symbols: &str) -> String {
    let names = symbols.lines().filter_map(|line| match *line.split(' ').collect::<Vec<_>>() {
        // All functions of the C interface. For anything else linkers look in torch-sys as before.
        [name, "T", ..] if name.starts_with("at") || name == "get_and_reset_last_err" => Some(name),
        _ => None,
    });
    names.fold(FIRST_CALL.to_owned(), |text, name| text + "    on_demand " + name + "\n")
}

/// What a program printed. If it fails, the error has its first messages only: a linker may have thousands.
fn output(command: &mut Command) -> Result<String> {
    let program = command.get_program().display().to_string();
    let output = command.output().with_context(|| format!("`{program}` does not start"))?;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "`{program}` failed: {}", errors.trim().lines().take(5).collect::<Vec<_>>().join("\n"));
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_folder_of_torch_sys_is_found_among_the_messages_of_cargo() {
        let message = r#"{"reason":"build-script-executed","package_id":"registry+x#torch-sys@0.26.0","out_dir":"/t/torch-sys-1/out"}"#;
        assert_eq!(workspace::first_path(message, folder_of_torch_sys), Some(PathBuf::from("/t/torch-sys-1/out")));
        for other in [&message.replace("torch-sys@", "zip@"), &message.replace("build-script-executed", "compiler-artifact"), "no message"]
        {
            assert_eq!(workspace::first_path(other, folder_of_torch_sys), None, "{other}");
        }
    }

    #[test]
    fn complete_files_of_the_same_recipe_are_kept_and_a_release_needs_files_of_a_release() {
        let folder = tempfile::tempdir().unwrap();
        let (place, write) = (folder.path(), |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap());
        fs::create_dir(place.join("lib")).unwrap();
        write(FUNCTIONS, "functions");
        for (made, serves_release) in [(Profile::Dev, false), (Profile::Release, true)] {
            write(RECIPE, &recipe(place, made));
            write(LIBRARY, "library");
            assert_eq!((is_made(place, Profile::Dev), is_made(place, Profile::Release)), (true, serves_release), "{made:?}");
            write(LIBRARY, "");
            assert!(!is_made(place, Profile::Dev), "cut off");
        }
        write(LIBRARY, "library");
        write(RECIPE, &recipe(Path::new("/elsewhere"), Profile::Release));
        assert!(!is_made(place, Profile::Dev), "a program's second look for it would be elsewhere");
    }

    #[test]
    fn each_function_of_the_c_interface_gets_an_entry_and_no_other_symbol_does() {
        let symbols = "at_new_tensor T 10 20\natg_abs T 30 8\nget_and_reset_last_err T 40 8\n_ZN2at6TensorD2Ev W 50\nstbi_load T 1 2\n\
                       torch_last_err B 0 8\natc_cuda_device_count T 60 8\n";
        let text = functions(symbols);
        let added: Vec<_> = text.strip_prefix(FIRST_CALL).unwrap().split_whitespace().filter(|word| *word != "on_demand").collect();
        assert_eq!(added, ["at_new_tensor", "atg_abs", "get_and_reset_last_err", "atc_cuda_device_count"]);
    }
}
