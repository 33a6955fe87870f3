//! Room on disks and in shared memory for what is to be fetched, built and tested.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use super::Check;
use crate::libtorch::{Devices, Profile};
use crate::processor::Processor;
use crate::{package, workspace};

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
    Build { profile: Profile::Release, folder: "release", bytes: 2_000_000_000, last: &["release/shoal"] },
    // The tests build the program long before all is built; the documentation comes last, and needs no program.
    Build { profile: Profile::Dev, folder: "debug", bytes: 7_000_000_000, last: &["debug/shoal", "doc/shoal/index.html"] },
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

/// Room for what is not built yet of these `profiles` and, if it is to be fetched first, for libtorch.
pub(super) fn to_build(profiles: &[Profile], fetches_libtorch: bool) -> Check {
    let root = workspace::root();
    space_in(&root, &package::target(&root), profiles, fetches_libtorch)
}

/// Room to fetch a libtorch for `devices`.
pub(super) fn to_fetch(devices: Devices) -> Check {
    let needed_bytes = match devices {
        Devices::Cpu => SETUP_BYTES,
        Devices::CpuAndCuda => CUDA_SETUP_BYTES,
    };
    space("disk space to fetch libtorch", &workspace::root(), needed_bytes, ON_DISK)
}

/// Room in `target` for what is not built yet of these `profiles`. If libtorch is fetched to `root` first, and that is on the same file
/// system, there must be room to fetch it, and then for what is built beside what stays of the set-up.
fn space_in(root: &Path, target: &Path, profiles: &[Profile], fetches_libtorch: bool) -> Check {
    let unbuilt_bytes = unbuilt_bytes(target, profiles, fetches_libtorch);
    let needed_bytes = match fetches_libtorch && file_system(root) == file_system(target) {
        true => SETUP_BYTES.max(KEPT_BYTES + unbuilt_bytes),
        false => unbuilt_bytes,
    };
    space("disk space for what is still to be built and fetched", target, needed_bytes, ON_DISK)
}

/// What is not built yet of these `profiles` in `target`: nothing of a complete one, and of another what its size leaves of the estimate.
/// While this checkout `lacks_libtorch` nothing counts: what is there was built without it.
fn unbuilt_bytes(target: &Path, profiles: &[Profile], lacks_libtorch: bool) -> u64 {
    let is_wanted = |build: &Build| profiles.contains(&build.profile);
    if lacks_libtorch {
        return BUILDS.into_iter().filter(is_wanted).map(|build| build.bytes).sum();
    }
    let is_unbuilt = |build: &Build| is_wanted(build) && !build.is_complete(target);
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
    Check::new(subject, outcome)
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
    use super::super::for_build;
    use super::*;

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
        let unbuilt = |profiles: &[Profile]| unbuilt_bytes(target.path(), profiles, false);
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
            let needs_room = || [Profile::Release, Profile::Dev].map(|profile| unbuilt_bytes(target.path(), &[profile], false) > 0);
            for (file, expected) in [
                ("release/shoal", [false, true]),
                // The tests have begun, and most is still to be built.
                ("debug/shoal", [false, true]),
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
    fn a_program_without_libtorch_leaves_the_whole_to_be_built() {
        let target = tempfile::tempdir().unwrap();
        std::fs::create_dir(target.path().join("release")).unwrap();
        let program = target.path().join("release/shoal");
        std::fs::write(&program, [1u8; 4096]).unwrap();
        std::fs::File::open(&program).unwrap().sync_all().unwrap();
        assert!(taken_bytes(target.path()) > 0);
        let unbuilt = |lacks_libtorch| unbuilt_bytes(target.path(), &[Profile::Release], lacks_libtorch);
        assert_eq!((unbuilt(true), unbuilt(false)), (2_000_000_000, 0));
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
    fn the_pages_name_the_room_that_is_asked_for() {
        let [release, development] = BUILDS.map(|build| build.bytes);
        let (train, both) = (KEPT_BYTES + release, KEPT_BYTES + release + development);
        for (page, wanted) in [
            ("README.md", format!("about {:.0} GB of disk for the first of the two", gigabytes(train))),
            ("README.md", format!("about {:.0} GB for both", gigabytes(both))),
            ("README.md", format!("{} GB of shared memory", gigabytes(SHARED_MEMORY_BYTES))),
            ("CONTRIBUTING.md", format!("take {} GB", gigabytes(KEPT_BYTES))),
            ("CONTRIBUTING.md", format!("{} GB while they are fetched", gigabytes(SETUP_BYTES))),
            ("CONTRIBUTING.md", format!("{} GB for `cargo xtask train`", gigabytes(release))),
            ("CONTRIBUTING.md", format!("{} GB for `cargo xtask test`", gigabytes(development))),
            ("CONTRIBUTING.md", format!("{} GB for both", gigabytes(release + development))),
            ("docs/gpu.md", format!("{} GB have to be free", gigabytes(CUDA_SETUP_BYTES))),
        ] {
            let text = std::fs::read_to_string(workspace::root().join(page)).unwrap();
            assert!(text.contains(&wanted), "{page}: {wanted}");
        }
    }
}
