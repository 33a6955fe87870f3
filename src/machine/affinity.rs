//! Which process runs on which cores: the plan, binding, and what other runs are bound to.
//!
//! A learner computes all the time, so a process that shares its core takes half of it, and all learners wait for the
//! slowest. Binding helps if it keeps one core free for each learner and leaves at least one for the other processes.
//! If there are too few cores for that, or other programs have them or the time on them, the kernel shares them out
//! better than any plan: it sees which process waits for the rate limiter and which core is idle.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

use nix::errno::Errno;
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;

use super::cores::cores_of;
use super::text_of;

/// The processes that want cores.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Demand {
    /// Learners, each of which computes all the time.
    pub learners: usize,
    /// Actors.
    pub actors: usize,
    /// Whether a rate limiter lets actors run only as fast as learners do. Their cores are then idle for much of the
    /// time.
    pub actors_wait: bool,
}

/// The cores of every process. A process without cores is not bound.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Placement {
    /// The core of each learner.
    pub learners: Vec<usize>,
    /// The cores that all actors share.
    pub actors: Vec<usize>,
    /// Cores of the evaluator.
    pub evaluator: Vec<usize>,
}

/// Divides the `usable` cores, which are listed in the order of preference, except those that are `taken`.
///
/// Each learner gets a core of its own. All other processes share the rest, however few they are: an environment may
/// start threads and processes of its own, which inherit its cores, and the kernel spreads them. If actors wait for
/// learners and are more than the rest of the cores, they may run on every core that is not taken: when they are the
/// slower side, learners wait and leave their cores idle.
///
/// Returns `None` if no core would be left beside those of the learners; then nothing should be bound.
pub fn plan(usable: &[usize], taken: &BTreeSet<usize>, demand: Demand) -> Option<Placement> {
    let free: Vec<usize> = usable.iter().copied().filter(|core| !taken.contains(core)).collect();
    if free.len() <= demand.learners {
        return None;
    }
    let (for_learners, rest) = free.split_at(demand.learners);
    let actors = if demand.actors > rest.len() && demand.actors_wait { &free } else { rest };
    Some(Placement { learners: for_learners.to_vec(), actors: actors.to_vec(), evaluator: rest.to_vec() })
}

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

    use proptest::prelude::*;

    use super::super::fixture;
    use super::*;

    /// Held by a test while it binds all threads of this process.
    static ALONE: Mutex<()> = Mutex::new(());

    const USUAL: Demand = Demand { learners: 1, actors: 1, actors_wait: true };

    fn place(usable: &[usize], demand: Demand) -> Option<Placement> {
        plan(usable, &BTreeSet::new(), demand)
    }

    #[test]
    fn on_two_cores_the_learner_has_one_and_actor_and_evaluator_share_the_other() {
        let placement = place(&[0, 1], USUAL).unwrap();
        assert_eq!(placement, Placement { learners: vec![0], actors: vec![1], evaluator: vec![1] });
    }

    #[test]
    fn a_single_actor_may_use_every_core_that_no_learner_has_because_its_environment_may_start_others() {
        let placement = place(&[4, 5, 6, 7], USUAL).unwrap();
        assert_eq!(placement, Placement { learners: vec![4], actors: vec![5, 6, 7], evaluator: vec![5, 6, 7] });
    }

    #[test]
    fn learners_that_leave_no_core_to_the_others_are_left_to_the_kernel() {
        assert_eq!(place(&[0, 1], Demand { learners: 2, ..USUAL }), None);
        assert_eq!(place(&[3], USUAL), None);
        assert_eq!(place(&[0, 1, 2], Demand { learners: 4, ..USUAL }), None);
        assert!(place(&[0, 1, 2], Demand { learners: 2, ..USUAL }).is_some());
    }

    #[test]
    fn actors_that_wait_for_learners_may_use_the_cores_on_which_learners_wait_for_them() {
        let many = Demand { actors: 4, ..USUAL };
        assert_eq!(place(&[0, 1], many).unwrap().actors, [0, 1]);
        assert_eq!(place(&[0, 1], many).unwrap().evaluator, [1], "an evaluator computes all the time");
        assert_eq!(place(&[0, 1], Demand { actors_wait: false, ..many }).unwrap().actors, [1], "these never wait");
    }

    #[test]
    fn cores_of_others_are_left_alone_or_nothing_is_bound() {
        let taken = BTreeSet::from([0, 1]);
        let placement = plan(&[0, 1, 2, 3], &taken, USUAL).unwrap();
        assert_eq!(placement, Placement { learners: vec![2], actors: vec![3], evaluator: vec![3] });
        assert_eq!(plan(&[0, 1, 2, 3], &taken, Demand { actors: 9, ..USUAL }).unwrap().actors, [2, 3]);
        assert_eq!(plan(&[0, 1], &taken, USUAL), None);
        assert_eq!(plan(&[0, 1, 2], &taken, USUAL), None);
    }

    proptest! {
        #[test]
        fn a_learner_shares_its_core_with_nobody_but_actors_that_wait_for_it(
            core_count in 1usize..40, taken in prop::collection::btree_set(100usize..140, 0..40),
            actors in 1usize..60, learners in 1usize..10,
            actors_wait: bool,
        ) {
            let usable: Vec<usize> = (100..100 + core_count).collect();
            let free = usable.iter().filter(|core| !taken.contains(core)).count();
            let demand = Demand { learners, actors, actors_wait };
            let Some(placement) = plan(&usable, &taken, demand) else {
                prop_assert!(free <= learners);
                return Ok(());
            };
            prop_assert!(free > learners);
            let of_learners: BTreeSet<usize> = placement.learners.iter().copied().collect();
            prop_assert_eq!(of_learners.len(), learners, "learners share cores: {:?}", placement);
            prop_assert!(placement.evaluator.iter().all(|core| !of_learners.contains(core)));
            prop_assert_eq!(placement.evaluator.len(), free - learners);
            let everywhere = placement.actors.iter().any(|core| of_learners.contains(core));
            prop_assert_eq!(everywhere, actors_wait && actors > free - learners, "{:?}", placement);
            prop_assert!(placement.actors.len() >= free - learners);
            let all = of_learners.iter().chain(&placement.actors).chain(&placement.evaluator);
            prop_assert!(all.clone().all(|core| usable.contains(core) && !taken.contains(core)));
        }
    }

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
