//! What must be on the machine before a build or a download can succeed.
//!
//! Each check names what it found, or what is missing together with the command that installs it, so that nobody has to
//! read a compiler's error message to learn it.

use std::fmt::Write as _;
use std::io::Write as _;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Result, bail};

use crate::distribution::{Tool, install_command};
use crate::libtorch::{Devices, Profile};
use crate::processor::Processor;
use crate::python::{self, Environments};
use crate::{libtorch, package, report::say, workspace};

/// Room for the wheels and for what is unpacked from them: 1.1 GB at the highest point, and some air.
const SETUP_BYTES: u64 = 1_500_000_000;
/// What stays of that: libtorch, and Python with the packages for environments.
const KEPT_BYTES: u64 = 800_000_000;
/// Room for the set-up with the libraries for GPUs: 6 GB at the highest point.
const CUDA_SETUP_BYTES: u64 = 6_500_000_000;
/// Room in shared memory for the tests, of which several have a run at the same time. A container has 64 MB unless it is given more.
const SHARED_MEMORY_BYTES: u64 = 500_000_000;
/// How to make room on a disk.
const ON_DISK: &str = "Make room, or move this checkout to a larger disk";
/// What is built in each profile: 1.9 GB were measured for `train`, and 6.4 GB, without incremental files, for `test`.
const BUILDS: [Build; 2] = [
    Build { profile: Profile::Release, folder: "release", bytes: 2_000_000_000, last: &["release/supervisor"] },
    // The tests build the program long before all is built; the documentation comes last, and needs no program.
    Build { profile: Profile::Dev, folder: "debug", bytes: 7_000_000_000, last: &["debug/supervisor", "doc/shoal/index.html"] },
];

/// What is built in one profile of cargo.
struct Build {
    profile: Profile,
    /// Its folder in the target folder.
    folder: &'static str,
    /// The room it takes.
    bytes: u64,
    /// Files in the target folder that are all there once everything is built.
    last: &'static [&'static str],
}

impl Build {
    /// Whether nothing is left to build in `target`. What was built for a processor by its name lies in a folder of that name.
    fn is_complete(&self, target: &Path) -> bool {
        let holds_all = |folder: &Path| self.last.iter().all(|file| folder.join(file).exists());
        holds_all(target) || holds_all(&target.join(Processor::HOST.target()))
    }
}

/// The outcome of one check.
pub(crate) struct Check {
    subject: &'static str,
    /// What was found, or what to do.
    outcome: Result<String, String>,
}

impl Check {
    /// The outcome of a look for `subject`.
    pub(crate) fn new(subject: &'static str, outcome: Result<String, String>) -> Self {
        Self { subject, outcome }
    }
}

/// Fails if something is missing; the error names every missing thing at once.
pub(crate) fn require(checks: impl IntoIterator<Item = Check>) -> Result<()> {
    let mut missing = String::new();
    for check in checks {
        if let Err(advice) = check.outcome {
            let _ = write!(missing, "\n  {}: {advice}", check.subject);
        }
    }
    if missing.is_empty() { Ok(()) } else { bail!("this machine is not ready:{missing}") }
}

/// Prints every check; fails when one of them did.
pub(crate) fn doctor() -> Result<()> {
    let found = libtorch::find();
    let mut checks = vec![cpp_compiler(), space_to_build(&[Profile::Release, Profile::Dev], matches!(found, Ok(None))), shared_memory()];
    match found {
        Ok(Some(found)) => checks.push(Check { subject: "libtorch", outcome: Ok(found.to_string()) }),
        Ok(None) => {
            checks.push(Check { subject: "libtorch", outcome: Ok("not fetched yet; `cargo xtask setup` fetches it".to_owned()) });
            checks.extend(for_download(Devices::Cpu));
        }
        Err(error) => checks.push(Check { subject: "libtorch", outcome: Err(format!("{error:#}")) }),
    }
    checks.push(python_for_environments());
    for check in &checks {
        match &check.outcome {
            Ok(found) => say(format!("ok       {}: {found}", check.subject)),
            Err(advice) => say(format!("MISSING  {}: {advice}", check.subject)),
        }
    }
    let missing = checks.iter().filter(|check| check.outcome.is_err()).count();
    if missing == 0 { Ok(()) } else { bail!("{missing} of {} checks failed", checks.len()) }
}

/// The checks before libtorch is fetched, if it is still to be (`fetches_libtorch`), and these `profiles` are built.
pub(crate) fn for_build(profiles: &[Profile], fetches_libtorch: bool) -> Vec<Check> {
    let mut checks = vec![cpp_compiler(), space_to_build(profiles, fetches_libtorch)];
    checks.extend(fetches_libtorch.then(python_with_pip));
    checks.extend(profiles.contains(&Profile::Dev).then(shared_memory));
    checks
}

/// The checks before a libtorch for `devices` is fetched.
pub(crate) fn for_download(devices: Devices) -> [Check; 2] {
    let needed_bytes = match devices {
        Devices::Cpu => SETUP_BYTES,
        Devices::CpuAndCuda => CUDA_SETUP_BYTES,
    };
    [python_with_pip(), space("disk space to fetch libtorch", &workspace::root(), needed_bytes, ON_DISK)]
}

/// The command, without arguments, of the C++ compiler that compiles torch-sys: `$CXX`, or else `c++`.
pub(crate) fn cpp_command() -> Command {
    command_of(&cpp_name())
}

/// The command for `compiler`, read as the build reads it: a program, or a program and its first arguments, such as `ccache g++`.
fn command_of(compiler: &str) -> Command {
    let mut words = if Path::new(compiler).exists() { vec![compiler] } else { compiler.split_whitespace().collect() }.into_iter();
    let mut command = Command::new(words.next().unwrap_or_default());
    command.args(words);
    command
}

fn cpp_name() -> String {
    std::env::var("CXX").ok().filter(|name| !name.trim().is_empty()).unwrap_or_else(|| "c++".to_owned())
}

/// A C++ compiler that finds its standard library.
pub(crate) fn cpp_compiler() -> Check {
    let compiler = cpp_name();
    let outcome = if compiles_cpp(&compiler) {
        Ok(format!("{compiler} compiles C++17"))
    } else {
        Err(format!("`{compiler}` compiles no C++17. Install g++:  {}", install_command(Tool::CppCompiler)))
    };
    Check { subject: "C++ compiler", outcome }
}

fn compiles_cpp(compiler: &str) -> bool {
    let child = command_of(compiler)
        .args(["-std=c++17", "-fsyntax-only", "-x", "c++", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    let Ok(mut child) = child else { return false };
    // A compiler that exits before it reads closes the pipe; its exit status tells the rest.
    let _ = child.stdin.take().map(|mut input| input.write_all(b"#include <optional>\nstd::optional<int> nothing;\n"));
    child.wait().is_ok_and(|status| status.success())
}

/// The Python for environments. Its absence is no failure, since native environments need none. A virtual environment in its place that the
/// set-up did not make is one.
fn python_for_environments() -> Check {
    let outcome = python::find().map_err(|error| format!("{error:#}")).map(|found| match found {
        Some(found @ Environments::InPython(_)) => found.to_string(),
        Some(Environments::NativeAlone(obstacle)) => format!("none, so environments in Python are left out: {obstacle}"),
        None => "not set up yet; `cargo xtask setup` does it".to_owned(),
    });
    Check { subject: "Python for environments", outcome }
}

/// Python with pip: pip knows the user's package index, proxy and certificates, so nothing of that is repeated here.
fn python_with_pip() -> Check {
    let outcome = match libtorch::python_with_pip() {
        Some(python) => Ok(format!("{python} has pip")),
        None => Err(format!("no Python with pip 20.3 or later was found. Install it:  {}", install_command(Tool::PythonWithPip))),
    };
    Check { subject: "Python with pip", outcome }
}

/// Room for what is not built yet of these `profiles` and, if it is to be fetched first, for libtorch.
fn space_to_build(profiles: &[Profile], fetches_libtorch: bool) -> Check {
    let root = workspace::root();
    space_in(&root, &package::target(&root), profiles, fetches_libtorch)
}

/// Room in `target` for what is not built yet of these `profiles`. If libtorch is fetched to `root` first, and that is on the same file
/// system, there must be room to fetch it, and then for what is built beside what stays of the set-up.
fn space_in(root: &Path, target: &Path, profiles: &[Profile], fetches_libtorch: bool) -> Check {
    let unbuilt_bytes = unbuilt_bytes(target, profiles);
    let needed_bytes = match fetches_libtorch && file_system(root) == file_system(target) {
        true => SETUP_BYTES.max(KEPT_BYTES + unbuilt_bytes),
        false => unbuilt_bytes,
    };
    space("disk space for what is still to be built and fetched", target, needed_bytes, ON_DISK)
}

/// What is not built yet of these `profiles` in `target`: nothing of a complete one, and of another what its size leaves of the estimate.
fn unbuilt_bytes(target: &Path, profiles: &[Profile]) -> u64 {
    let is_unbuilt = |build: &Build| profiles.contains(&build.profile) && !build.is_complete(target);
    let (unbuilt, others): (Vec<_>, Vec<_>) = BUILDS.into_iter().partition(is_unbuilt);
    // What was built for a processor by its name lies in another folder, and counts too.
    let others_bytes: u64 = others.into_iter().map(|build| taken_bytes(&target.join(build.folder))).sum();
    let built_bytes = taken_bytes(target).saturating_sub(others_bytes);
    unbuilt.into_iter().map(|build| build.bytes).sum::<u64>().saturating_sub(built_bytes)
}

/// Room for the memory that the processes of the tests share.
pub(crate) fn shared_memory() -> Check {
    shared_memory_in(Path::new("/dev/shm"), SHARED_MEMORY_BYTES)
}

fn shared_memory_in(folder: &Path, needed_bytes: u64) -> Check {
    let subject = "shared memory for the tests";
    if !folder.is_dir() {
        let advice = "As root:  mkdir -p /dev/shm && mount -t tmpfs -o mode=1777 tmpfs /dev/shm  (docker: leave --ipc=none out)";
        return Check::new(subject, Err(format!("{} is not there. {advice}", folder.display())));
    }
    space(subject, folder, needed_bytes, "As root:  mount -o remount,size=2G /dev/shm  (docker: --shm-size=2g)")
}

/// Whether so many bytes are free where `folder` is, or will be; if not, `advice` says how to make room.
fn space(subject: &'static str, folder: &Path, needed_bytes: u64, advice: &str) -> Check {
    let outcome = match free_bytes(folder) {
        // A file system that does not say how full it is gets the benefit of the doubt.
        None => Ok("unknown".to_owned()),
        Some(free) if free >= needed_bytes => Ok(format!("{:.1} GB free, {:.1} GB needed", gigabytes(free), gigabytes(needed_bytes))),
        Some(free) => {
            Err(format!("{:.1} GB free in {}, {:.1} GB needed. {advice}", gigabytes(free), folder.display(), gigabytes(needed_bytes)))
        }
    };
    Check { subject, outcome }
}

fn free_bytes(folder: &Path) -> Option<u64> {
    let status = rustix::fs::statvfs(existing(folder)?).ok()?;
    // A file system without blocks, such as a tmpfs of size 0, has no limit.
    (status.f_blocks > 0).then(|| status.f_bavail.saturating_mul(status.f_frsize))
}

/// The number of the file system that `folder` is on, or will be.
fn file_system(folder: &Path) -> Option<u64> {
    existing(folder)?.metadata().ok().map(|facts| facts.dev())
}

/// `folder`, or the innermost folder around it that is there.
fn existing(folder: &Path) -> Option<&Path> {
    folder.ancestors().find(|path| path.exists())
}

/// Bytes that the files in `folder` take on the disk. Cargo gives many files two names, each of which counts for half.
fn taken_bytes(folder: &Path) -> u64 {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let sizes = entries.map(|entry| match entry.metadata() {
        Ok(facts) if facts.is_dir() => taken_bytes(&entry.path()),
        Ok(facts) => facts.blocks() * 512 / facts.nlink().max(1),
        Err(_) => 0,
    });
    sizes.sum()
}

fn gigabytes(bytes: u64) -> f64 {
    bytes as f64 / 1e9
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_missing_thing_is_named_at_once() {
        let check = |subject, outcome: Result<&str, &str>| Check { subject, outcome: outcome.map(str::to_owned).map_err(str::to_owned) };
        let error =
            require([check("one", Err("install one")), check("two", Ok("there")), check("three", Err("install three"))]).unwrap_err();
        let text = error.to_string();
        assert!(text.contains("one: install one") && text.contains("three: install three") && !text.contains("two"), "{text}");
    }

    #[test]
    fn pip_is_asked_for_beside_the_compiler_where_libtorch_is_still_to_be_fetched() {
        let subjects = |fetches_libtorch| for_build(&[], fetches_libtorch).iter().map(|check| check.subject).collect::<Vec<_>>();
        let [there, missing] = [false, true].map(subjects);
        assert!(there.contains(&"C++ compiler") && !there.contains(&"Python with pip"), "{there:?}");
        assert!(missing.contains(&"C++ compiler") && missing.contains(&"Python with pip"), "{missing:?}");
    }

    #[test]
    fn what_is_built_counts_once_however_many_names_it_has() {
        let folder = tempfile::tempdir().unwrap();
        let (built, names) = (folder.path().join("deps/built"), folder.path().join("names"));
        std::fs::create_dir(built.parent().unwrap()).unwrap();
        std::fs::write(&built, [1u8; 4096]).unwrap();
        // What it takes may be known no sooner.
        std::fs::File::open(&built).unwrap().sync_all().unwrap();
        let taken = taken_bytes(folder.path());
        assert!(taken > 0);
        std::fs::create_dir(&names).unwrap();
        std::fs::hard_link(&built, names.join("second")).unwrap();
        assert_eq!(taken_bytes(folder.path()), taken);
        assert_eq!(taken_bytes(&folder.path().join("none")), 0);
    }

    #[test]
    fn a_folder_that_is_not_there_yet_has_the_room_of_the_one_that_it_will_be_in() {
        let folder = tempfile::tempdir().unwrap();
        assert!(free_bytes(&folder.path().join("not/there")).is_some());
    }

    #[test]
    fn each_command_needs_the_room_of_what_it_has_still_to_build() {
        let target = tempfile::tempdir().unwrap();
        let (train, test, both) = ([Profile::Release], [Profile::Dev], [Profile::Dev, Profile::Release]);
        let unbuilt = |profiles: &[Profile]| unbuilt_bytes(target.path(), profiles);
        assert_eq!((unbuilt(&train), unbuilt(&test), unbuilt(&both)), (2_000_000_000, 7_000_000_000, 9_000_000_000));
        std::fs::create_dir(target.path().join("debug")).unwrap();
        let built = target.path().join("debug/built");
        std::fs::write(&built, [1u8; 4096]).unwrap();
        std::fs::File::open(&built).unwrap().sync_all().unwrap();
        let taken = taken_bytes(target.path());
        assert!(taken > 0);
        assert_eq!((unbuilt(&train), unbuilt(&test)), (2_000_000_000, 7_000_000_000 - taken));
    }

    #[test]
    fn what_is_built_completely_needs_no_room_however_small_it_is() {
        for folder in ["", Processor::HOST.target()] {
            let target = tempfile::tempdir().unwrap();
            let needs_room = || [Profile::Release, Profile::Dev].map(|profile| unbuilt_bytes(target.path(), &[profile]) > 0);
            for (file, expected) in [
                ("release/supervisor", [false, true]),
                // The tests have begun, and most is still to be built.
                ("debug/supervisor", [false, true]),
                ("doc/shoal/index.html", [false, false]),
            ] {
                let path = target.path().join(folder).join(file);
                std::fs::create_dir_all(path.parent().unwrap()).unwrap();
                std::fs::write(path, "").unwrap();
                assert_eq!(needs_room(), expected, "{folder} {file}");
            }
        }
    }

    #[test]
    fn what_is_fetched_to_the_disk_of_the_build_needs_room_beside_it() {
        let root = tempfile::tempdir().unwrap();
        let target = root.path().join("target");
        let needs = |profiles: &[Profile], fetches_libtorch, needed: &str| {
            let (Ok(text) | Err(text)) = space_in(root.path(), &target, profiles, fetches_libtorch).outcome;
            assert!(text.contains(&format!(" {needed} GB needed")), "{text}");
        };
        needs(&[Profile::Release], false, "2.0");
        // Most of what is fetched is gone before the build begins.
        needs(&[Profile::Release], true, "2.8");
        needs(&[], true, "1.5");
    }

    #[test]
    fn a_container_with_little_shared_memory_or_none_is_refused_before_the_tests_are_built() {
        let folder = tempfile::tempdir().unwrap();
        let refusal = |folder: &Path, needed_bytes| shared_memory_in(folder, needed_bytes).outcome.unwrap_err();
        let [little, none] = [refusal(folder.path(), u64::MAX), refusal(&folder.path().join("none"), 0)];
        assert!(little.contains("GB needed. ") && little.contains("docker: --shm-size=2g"), "{little}");
        assert!(none.contains("none is not there. ") && none.contains("--ipc=none"), "{none}");
        let asks = |profile| for_build(&[profile], false).iter().any(|check| check.subject == "shared memory for the tests");
        assert!(asks(Profile::Dev) && !asks(Profile::Release));
    }

    #[test]
    fn the_readme_names_the_room_that_is_asked_for() {
        let readme = std::fs::read_to_string(workspace::root().join("README.md")).unwrap();
        let [release, development] = BUILDS.map(|build| build.bytes);
        for (bytes, words) in [
            (SETUP_BYTES, "GB while they are fetched"),
            (release, "GB for `cargo xtask train`"),
            (development, "GB for `cargo xtask test`"),
            (release + development, "GB for both"),
            (SHARED_MEMORY_BYTES, "GB of shared memory"),
        ] {
            let wanted = format!("{} {words}", gigabytes(bytes));
            assert!(readme.contains(&wanted), "{wanted}");
        }
        let all = format!("about {:.0} GB for the first command", gigabytes(KEPT_BYTES + release));
        assert!(readme.contains(&all), "{all}");
    }

    #[test]
    fn a_program_that_is_no_compiler_is_refused() {
        for compiler in ["false", "no-such-compiler", "env no-such-compiler", ""] {
            assert!(!compiles_cpp(compiler), "{compiler}");
        }
        assert_eq!(compiles_cpp("env c++"), compiles_cpp("c++"), "a program may start the compiler");
    }
}
