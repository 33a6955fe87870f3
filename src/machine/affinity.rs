//! Binds processes to cores, and finds those that others are bound to.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

use nix::errno::Errno;
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;

use super::cores::cores_of;
use super::text_of;

/// A process cannot be bound to the cores.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AffinityError {
    /// No cores were given.
    #[error("a process cannot be bound to no core at all; give at least one of those in `shoal doctor`")]
    NoCores,
    /// The number is beyond what the kernel's mask holds.
    #[error("core {core} is beyond the {limit} cores of an affinity mask; use those in `shoal doctor`")]
    NoSuchCore {
        /// The core.
        core: usize,
        /// Cores that a mask holds.
        limit: usize,
    },
    /// The kernel refused.
    #[error(
        "the kernel refused to bind a process to the cores {cores:?} ({errno}); use those in `shoal doctor`, or set \
         machine.affinity to false"
    )]
    Refused {
        /// The cores.
        cores: Vec<usize>,
        /// Its reason.
        errno: Errno,
    },
}

/// Binds this process, and those that it will fork, to `cores`.
///
/// # Errors
/// No core, a core that does not exist, or one that this process may not use.
pub fn bind_current_process(cores: &[usize]) -> Result<(), AffinityError> {
    bind(Pid::from_raw(0), cores)
}

/// Most looks at the threads of a process and at what it has started, if it starts more all the time.
const MOST_LOOKS: u32 = 10;
/// A thread or process has the cores of the thread that starts it some moments before it can be seen.
const UNSEEN: Duration = Duration::from_millis(1);

/// Lets every thread of the process `pid`, and those that it will start, run on all of `cores`. The same holds for
/// the processes that it has started, such as the simulator of an environment, unless somebody has given them other
/// cores than they were started with.
///
/// # Errors
/// As [`bind_current_process`]. A thread that has ended meanwhile is no error, nor is a started process that may not be
/// bound.
pub fn bind_process(pid: Pid, cores: &[usize]) -> Result<(), AffinityError> {
    let mut before = BTreeMap::new();
    let mut looks_without_new = 0;
    for _ in 0..MOST_LOOKS {
        let seen = before.len();
        bind_unseen(pid, cores, None, &mut before)?;
        // Each thread may have started another before it was bound, with its cores from before.
        looks_without_new = if before.len() == seen { looks_without_new + 1 } else { 0 };
        if looks_without_new == 2 {
            break;
        }
        std::thread::sleep(UNSEEN);
    }
    Ok(())
}

/// Binds the threads of a process that are not in `before` yet, and notes there which cores each had; then does so
/// for the processes that its threads have started. If the process has `inherited` its cores, only threads that still
/// have exactly those are bound.
fn bind_unseen(process: Pid, cores: &[usize], inherited: Option<CpuSet>, before: &mut BTreeMap<i32, CpuSet>) -> Result<(), AffinityError> {
    let Ok(threads) = std::fs::read_dir(format!("/proc/{process}/task")) else { return Ok(()) };
    for thread in threads.filter_map(|thread| thread.ok()?.file_name().to_str()?.parse::<i32>().ok()) {
        let had = before.get(&thread).copied().or_else(|| sched_getaffinity(Pid::from_raw(thread)).ok());
        let Some(had) = had.filter(|&had| inherited.is_none_or(|inherited| had == inherited)) else { continue };
        if before.insert(thread, had).is_none() {
            match bind(Pid::from_raw(thread), cores) {
                Err(AffinityError::Refused { errno: Errno::ESRCH, .. }) | Ok(()) => {}
                Err(error) => return Err(error),
            }
        }
        // Not every kernel has this list; without it, started processes are not known.
        let started = text_of(Path::new("/"), &format!("proc/{process}/task/{thread}/children"));
        for child in started.split_ascii_whitespace().filter_map(|child| child.parse::<i32>().ok()) {
            let _ = bind_unseen(Pid::from_raw(child), cores, Some(had), before);
        }
    }
    Ok(())
}

fn bind(thread: Pid, cores: &[usize]) -> Result<(), AffinityError> {
    if cores.is_empty() {
        return Err(AffinityError::NoCores);
    }
    let mut mask = CpuSet::new();
    for &core in cores {
        mask.set(core).map_err(|_| AffinityError::NoSuchCore { core, limit: CpuSet::count() })?;
    }
    sched_setaffinity(thread, &mask).map_err(|errno| AffinityError::Refused { cores: cores.to_vec(), errno })
}

/// The cores to which children of the process `parent` are bound, each to a single one: the cores of its learners.
/// The files of the kernel are read below `root`.
///
/// Children that may run on several cores are left out, since they can make room. A child that may run wherever its
/// parent may is not bound. The set is empty if there is no such process.
pub fn cores_bound_by(root: &Path, parent: u32) -> BTreeSet<usize> {
    let Some(of_parent) = cores_of(root, &parent.to_string()) else { return BTreeSet::new() };
    let children = text_of(root, &format!("proc/{parent}/task/{parent}/children"));
    let masks = children.split_ascii_whitespace().filter_map(|child| cores_of(root, child));
    masks.filter(|mask| mask.len() == 1 && *mask != of_parent).flatten().collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::super::fixture;
    use super::*;

    /// Held by a test while it binds all threads of this process.
    static ALONE: Mutex<()> = Mutex::new(());

    #[test]
    fn a_bound_thread_runs_on_that_core_alone_until_its_process_may_use_all_again() {
        let _alone = ALONE.lock();
        // The mask belongs to a thread, so that binding one of our own leaves the other tests alone.
        let detect = || super::super::Cores::detect_under(std::path::Path::new("/")).usable;
        let usable = detect();
        let core = usable[usable.len() - 1];
        let bound = std::thread::spawn(move || {
            bind_current_process(&[core]).unwrap();
            let bound = detect();
            bind_process(nix::unistd::getpid(), &usable).unwrap();
            (bound, detect() == usable)
        });
        assert_eq!(bound.join().unwrap(), (vec![core], true));
    }

    #[test]
    fn threads_that_start_while_their_process_is_bound_are_bound_with_it() {
        use std::sync::mpsc::channel;
        let _alone = ALONE.lock();
        let detect = || super::super::Cores::detect_under(std::path::Path::new("/")).usable;
        let usable = detect();
        let core = usable[usable.len() - 1];
        for _ in 0..20 {
            let ((started, has_started), (bound, is_bound)) = (channel(), channel());
            let starter = std::thread::spawn(move || {
                bind_current_process(&[core]).unwrap();
                let start = |_| {
                    started.send(()).unwrap();
                    std::thread::spawn(move || {
                        std::thread::park();
                        detect()
                    })
                };
                let threads: Vec<_> = (0..100).map(start).collect();
                is_bound.recv().unwrap();
                threads.iter().for_each(|thread| thread.thread().unpark());
                threads.into_iter().map(|thread| thread.join().unwrap()).collect::<Vec<_>>()
            });
            (0..10).for_each(|_| has_started.recv().unwrap());
            bind_process(nix::unistd::getpid(), &usable).unwrap();
            bound.send(()).unwrap();
            for cores in starter.join().unwrap() {
                assert_eq!(cores, usable, "a thread was left behind on the cores of before");
            }
        }
    }

    #[test]
    fn what_a_bound_process_has_started_may_use_all_cores_again_unless_it_has_chosen_others() {
        use std::io::{BufRead, BufReader};
        use std::process::{Command, Stdio};

        use super::super::cores::affinity_mask;

        let _alone = ALONE.lock();
        let usable = affinity_mask();
        // One core is all cores, and some kernels do not list who was started.
        let [first, .., last] = usable[..] else { return };
        if !Path::new("/proc/thread-self/children").exists() {
            return;
        }
        let cores_of = |pid: Pid| cores_of(Path::new("/"), &pid.to_string()).unwrap_or_default();
        let start_and_bind = || {
            bind_current_process(&[last]).unwrap();
            let mut shell = Command::new("sh").args(["-c", "sleep 60 & echo $!; wait"]).stdout(Stdio::piped()).spawn().unwrap();
            let mut started = String::new();
            BufReader::new(shell.stdout.take().unwrap()).read_line(&mut started).unwrap();
            let started = Pid::from_raw(started.trim().parse().unwrap());
            let mut chooser = Command::new("sleep").arg("60").spawn().unwrap();
            let [of_shell, of_chooser] = [&shell, &chooser].map(|child| Pid::from_raw(child.id().cast_signed()));
            bind(of_chooser, &[first]).unwrap();
            let before = [of_shell, started, of_chooser].map(cores_of);
            bind_process(nix::unistd::getpid(), &usable).unwrap();
            let after = [of_shell, started, of_chooser].map(cores_of);
            nix::sys::signal::kill(started, nix::sys::signal::Signal::SIGKILL).unwrap();
            shell.wait().unwrap();
            chooser.kill().unwrap();
            chooser.wait().unwrap();
            (before, after)
        };
        let (before, after) = std::thread::scope(|scope| scope.spawn(start_and_bind).join().unwrap());
        assert_eq!(before, [vec![last], vec![last], vec![first]]);
        assert_eq!(after, [usable.clone(), usable.clone(), vec![first]]);
    }

    fn status(list: &str) -> String {
        format!("Name:\tsupervisor\nCpus_allowed:\tff\nCpus_allowed_list:\t{list}\nMems_allowed_list:\t0\n")
    }

    #[test]
    fn only_children_with_a_single_core_of_those_of_their_parent_are_bound() {
        let statuses = ["0-7", "0-7", "2", "3-4"].map(status);
        let root = fixture::root(&[
            ("proc/50/task/50/children", "51 52 53 99 "),
            ("proc/50/status", &statuses[0]),
            ("proc/51/status", &statuses[1]),
            ("proc/52/status", &statuses[2]),
            ("proc/53/status", &statuses[3]),
        ]);
        assert_eq!(cores_bound_by(root.path(), 50), BTreeSet::from([2]));
        assert_eq!(cores_bound_by(root.path(), 51), BTreeSet::new(), "it has no children");
        assert_eq!(cores_bound_by(root.path(), 60), BTreeSet::new(), "it is not there");
    }

    #[test]
    fn a_whole_run_within_fewer_cores_is_bound_to_none_of_them() {
        let statuses = ["0-1", "0-1"].map(status);
        let root = fixture::root(&[("proc/50/task/50/children", "51"), ("proc/50/status", &statuses[0]), ("proc/51/status", &statuses[1])]);
        assert_eq!(cores_bound_by(root.path(), 50), BTreeSet::new());
    }

    #[test]
    fn a_process_that_is_gone_cannot_be_bound_and_that_is_no_error() {
        assert_eq!(bind_process(Pid::from_raw(1 << 23), &[0]), Ok(()));
    }

    #[test]
    fn cores_that_do_not_exist_are_refused() {
        assert_eq!(bind_current_process(&[]), Err(AffinityError::NoCores));
        assert!(matches!(bind_current_process(&[1_000_000]), Err(AffinityError::NoSuchCore { core: 1_000_000, .. })));
    }
}
