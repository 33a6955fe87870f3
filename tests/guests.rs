//! A guest of a run is somebody's program. Whatever it does, nobody kills it, and it harms nobody.

mod run_support;

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use run_support::{Supervised, WATCHDOG, kill, segments_of, start};
use shoal::segment::Segment;
use shoal::segment::processes::ProcessSlot;
use shoal::standalone::{Patience, Stale, Standalone};

/// Names the supervisor to the process that plays a guest.
const SUPERVISOR: &str = "SHOAL_TEST_SUPERVISOR";
/// Priorities that a guest sets at once: so many that it is inside the operation for most of its time.
const AT_ONCE: usize = 16_384;

/// Not a test of its own: what a guest does, in a process of its own, when [`guest`] starts this program again.
#[test]
fn play_a_guest() {
    let Some(supervisor) = std::env::var(SUPERVISOR).ok().and_then(|pid| pid.parse().ok()) else { return };
    let replay = Standalone::attach(supervisor, Some(1)).unwrap();
    let indices: Vec<i64> = (0..AT_ONCE as i64).map(|index| index % 64).collect();
    for round in 0u16.. {
        let errors = vec![1.0 + f32::from(round % 10); AT_ONCE];
        let updated = replay.update(&indices, None, &errors, Stale::Ignore, Patience::new(None, &mut || true));
        if updated.is_err() && !replay.is_empty() {
            break;
        }
    }
}

fn guest(run: &Supervised) -> Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "play_a_guest", "--nocapture"]).env(SUPERVISOR, run.pid().to_string());
    command.env("XDG_RUNTIME_DIR", run.folder.path()).stdout(Stdio::null()).spawn().unwrap()
}

fn slot_of(segment: &Segment, pid: u32) -> ProcessSlot<'_> {
    segment.processes().iter().find(|slot| slot.pid() == pid).expect("a slot")
}

/// Stop a process in the middle of an operation.
fn stop_inside(segment: &Segment, pid: u32) {
    let slot = slot_of(segment, pid);
    let deadline = Instant::now() + WATCHDOG;
    loop {
        kill(pid, Signal::SIGSTOP);
        while !is_stopped(pid) {
            std::thread::yield_now();
        }
        if slot.in_operation() {
            return;
        }
        kill(pid, Signal::SIGCONT);
        assert!(Instant::now() < deadline, "gave up waiting for process {pid} to be inside an operation");
        std::thread::sleep(Duration::from_micros(300));
    }
}

fn is_stopped(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    stat[stat.rfind(')').unwrap() + 1..].trim_start().starts_with('T')
}

#[test]
fn a_guest_that_stands_still_inside_an_operation_is_not_killed_and_holds_up_no_repair() {
    let mut run = start(&["actor.count=1", "replay.samples_per_insert=\"none\""]);
    run.wait_for("the first updates", |line| line["updates"].as_u64() > Some(20));
    let mut guest = guest(&run);
    assert_eq!(run.wait_for_process("guest"), guest.id());
    let name = segments_of(run.pid()).pop().unwrap();
    let segment = Segment::attach_read_only(&name).unwrap();
    stop_inside(&segment, guest.id());
    // An actor that dies in the middle of an operation has to be repaired after.
    let actor = run.wait_for_process("actor");
    stop_inside(&segment, actor);
    kill(actor, Signal::SIGKILL);
    run.wait_for_log("stands still inside an operation");
    run.wait_for_log("restarting");
    let before = run.metrics().pop().unwrap();
    run.wait_for("steps of the actor's replacement", |line| {
        line["env_steps"].as_u64() > before["env_steps"].as_u64().map(|steps| steps + 100)
    });
    assert!(guest.try_wait().unwrap().is_none(), "the guest was killed");
    assert!(!run.log().contains("exact again"), "{}", run.log());
    kill(guest.id(), Signal::SIGCONT);
    run.wait_for_log("the sums of the tree are exact again");
    assert!(guest.try_wait().unwrap().is_none(), "the guest has failed");
    run.end_by(Signal::SIGTERM);
    assert!(guest.wait().unwrap().success(), "the guest was told in good order that the run has ended");
    assert!(!run.log().contains("audit"), "{}", run.log());
    run.assert_nothing_left();
}
