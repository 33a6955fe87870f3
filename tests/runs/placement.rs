//! On which cores the processes of real runs may run, as the kernel tells it. With a single core there is nothing to choose,
//! and nothing is bound, nor where a control group leaves a run the time of fewer cores than it may use.

use std::process::{Child, Command, Stdio};

use nix::sys::signal::Signal;
use shoal::machine::cores;

use crate::support::programs::{self, Supervised, command, confine, kill, start, start_beside, start_preset};
use crate::support::skipped;

/// The default placement, for learners that compute all the time.
const BOUND: &[&str] = &["machine.affinity=true", "replay.samples_per_insert=64.0", "network.hidden=[64, 64]", "learner.batch_size=64"];

/// The kernel's list of the cores that the process may run on.
fn allowed(pid: u32) -> String {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).unwrap_or_default().trim().to_owned()
}

/// Whether the process may run on less cores than its supervisor.
fn is_bound(run: &Supervised, pid: u32) -> bool {
    let list = allowed(pid);
    !list.is_empty() && list != allowed(run.pid())
}

/// Whether learners are bound where nothing else runs.
fn can_be_bound() -> bool {
    let cores = cores::affinity_mask().len();
    cores > 1 && cores::usable_now() == cores
}

/// Wait until `condition` holds of a run.
fn wait_until(awaited: &str, run: &Supervised, condition: impl FnMut() -> bool) {
    programs::wait_until(awaited, || run.log(), condition);
}

/// Whether two processes are bound to the same single core.
fn share_a_core(one: (&Supervised, u32), other: (&Supervised, u32)) -> bool {
    is_bound(one.0, one.1) && is_bound(other.0, other.1) && allowed(one.1) == allowed(other.1) && !allowed(one.1).contains(['-', ','])
}

/// Unless a process `was_bound`, a test has not seen what it is about.
fn skip_unless(was_bound: bool) {
    if !was_bound {
        skipped::because("nothing was bound: there are too few cores, or the machine is busy, and the run has left its cores already");
    }
}

/// A program that computes without end, on one core.
struct Hog(Child);

impl Hog {
    fn on(core: usize) -> Self {
        let child = Command::new("sh").args(["-c", "while :; do :; done"]).stdin(Stdio::null()).spawn().unwrap();
        let hog = Self(child);
        confine(hog.0.id(), core);
        hog
    }
}

impl Drop for Hog {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

#[test]
fn two_learners_are_never_bound_to_one_core() {
    let together = || start(&[BOUND, &["learner.count=2", "learner.batch_size=256", "replay.min_size=256"]].concat());
    let halves = || start_preset("pendulum_td3", &[BOUND, &["learner.split=actor_critic", "run.stop_env_steps=1000000000"]].concat());
    for begin in [together as fn() -> Supervised, halves] {
        let mut run = begin();
        // Both learn by then: neither half comes so far without the other.
        run.wait_for("the first hundred updates", |line| line["updates"].as_u64() >= Some(100));
        let learners = run.processes("learner");
        assert_eq!(learners.len(), 2);
        assert!(!share_a_core((&run, learners[0]), (&run, learners[1])), "both are bound to core {}", allowed(learners[0]));
        skip_unless(learners.iter().all(|&pid| is_bound(&run, pid)));
    }
}

#[test]
fn a_run_leaves_the_cores_alone_to_which_another_is_bound() {
    let first = start(BOUND);
    let learner = first.wait_for_process("learner");
    let mut second = start_beside(&first, BOUND);
    let other = second.wait_for_process("learner");
    let (one, two) = ((&first, learner), (&second, other));
    assert!(!share_a_core(one, two), "both learners are bound to core {}", allowed(learner));
    // A plan names the runs that it makes room for while they are bound, which they are not for long if other programs run.
    let plan = command(first.folder.path(), BOUND).arg("--check").output().unwrap();
    let plan = String::from_utf8_lossy(&plan.stderr).into_owned();
    let names_the_first = plan.contains(&format!("the run of {} (CartPole-v1) is bound to", first.pid()));
    assert!(names_the_first || !is_bound(&first, learner), "{plan}");
    // With two cores the second run leaves it alone by binding nothing.
    skip_unless(is_bound(&first, learner));
    second.end_by(Signal::SIGTERM);
}

#[test]
fn runs_that_start_at_the_same_moment_do_not_stay_on_one_core() {
    let first = start(BOUND);
    let second = start_beside(&first, BOUND);
    let learners = [&first, &second].map(|run| (run, run.wait_for_process("learner")));
    let mut was_bound = false;
    wait_until("the learners to part", &first, || {
        was_bound |= learners.iter().any(|&(run, pid)| is_bound(run, pid));
        !share_a_core(learners[0], learners[1])
    });
    skip_unless(was_bound);
}

#[test]
fn a_run_leaves_its_cores_when_another_program_takes_one() {
    if !can_be_bound() {
        return skipped::because("nothing is bound here, with a single core or a limit of time: there is nothing to leave");
    }
    let mut run = start(BOUND);
    let learner = run.wait_for_process("learner");
    let core = allowed(learner).parse().ok();
    // Without a core the run has left its cores already, because the machine is busy.
    let _hog = core.map(Hog::on);
    run.wait_for_log("every process may run on any core now");
    let workers = run.workers();
    assert!(!workers.is_empty() && workers.iter().all(|&pid| !is_bound(&run, pid)), "{workers:?}");
    // Replacements are not bound either.
    let actor = run.wait_for_process("actor");
    kill(actor, Signal::SIGKILL);
    let another = || run.processes("actor").into_iter().find(|&pid| pid != actor);
    assert!(!is_bound(&run, programs::wait_for("another actor", || run.log(), another)));
}

#[test]
fn a_run_that_may_use_other_cores_than_it_was_planned_for_follows_them() {
    if !can_be_bound() {
        return skipped::because("nothing is bound here, with a single core or a limit of time: there are no others to follow");
    }
    let mut run = start(BOUND);
    let learner = run.wait_for_process("learner");
    let Ok(core) = allowed(learner).parse::<usize>() else {
        return skipped::because("the machine is busy, and the run has left its cores already");
    };
    let other =
        allowed(run.pid()).split([',', '-']).filter_map(|number| number.parse().ok()).find(|&number: &usize| number != core).unwrap();
    confine(run.pid(), other);
    run.wait_for_log(&format!("the run may use cores {other} now"));
    wait_until("all processes to be there", &run, || {
        let workers = run.workers();
        !workers.is_empty() && workers.into_iter().all(|pid| allowed(pid) == other.to_string())
    });
}
