//! Many come to a run at once and leave in every way, some in the middle of the handshake: no place is lost, and the run goes on.
//!
//! `SHOAL_TEST_ATTACHES` says how many come.

use std::process::{Child, Stdio};
use std::time::Duration;

use nix::sys::signal::Signal;
use rand::{RngExt, SeedableRng};
use shoal::experience::Random;
use shoal::segment::Segment;
use shoal::segment::processes::SlotState;

use crate::support::counts::count_from_environment;
use crate::support::programs::{Supervised, kill, segments_of, start, wait_until};

/// Places that the run has for attached processes; and the most that are there at once, which is more.
const PLACES: usize = 4;
const TOGETHER: usize = 6;
/// Kills come within this time: during the handshake, which takes a few milliseconds, or the start of the program before it.
const HANDSHAKE_MS: u64 = 30;

fn attach(run: &Supervised, actors: usize) -> Child {
    let mut command = run.program("attach");
    command.args([&run.pid().to_string(), "--actors", &actors.to_string()]).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

fn leave(mut child: Child, signal: Signal) {
    // It may have ended already: it is refused if all places are taken.
    if child.try_wait().unwrap().is_none() {
        let pid = child.id();
        kill(pid, signal);
        wait_until(
            "an attached program to leave",
            || format!("{signal} was sent to process {pid}"),
            || child.try_wait().unwrap().is_some(),
        );
    }
}

/// How many places of the process table are free.
fn free_places(supervisor: u32) -> usize {
    let segment = Segment::attach_read_only(&segments_of(supervisor)[0]).unwrap();
    segment.processes().iter().filter(|slot| slot.state() == SlotState::Free).count()
}

#[test]
fn a_storm_of_attaching_processes_leaves_every_place_free_and_disturbs_nobody() {
    let attaches = count_from_environment("SHOAL_TEST_ATTACHES", 150);
    let mut random = Random::seed_from_u64(7);
    let mut run = start(&[&format!("actor.attach_slots={PLACES}")]);
    run.wait_for_updates(20);
    let own = [run.wait_for_process("actor"), run.wait_for_process("learner")];
    let pid = run.pid();
    let free = free_places(pid);
    let (mut there, mut killed_early) = (Vec::new(), 0);
    for _ in 0..attaches {
        if there.len() == TOGETHER {
            let signal = if random.random_bool(0.5) { Signal::SIGKILL } else { Signal::SIGINT };
            leave(there.swap_remove(random.random_range(0..TOGETHER)), signal);
        }
        let child = attach(&run, 1);
        if random.random_bool(0.2) {
            std::thread::sleep(Duration::from_millis(random.random_range(0..HANDSHAKE_MS)));
            leave(child, Signal::SIGKILL);
            killed_early += 1;
        } else {
            there.push(child);
        }
    }
    there.into_iter().for_each(|child| leave(child, Signal::SIGKILL));
    assert!(killed_early > 0);
    run.wait_until("the places to be free", || free_places(pid) == free);
    // Every place can be taken again, and the run's own processes are those that it began with.
    let last = attach(&run, PLACES);
    run.wait_for("as many as there are places for", |line| line["attached"].as_u64() == Some(PLACES as u64));
    leave(last, Signal::SIGINT);
    let before = run.metrics().pop().unwrap();
    run.wait_for("more updates", |line| line["updates"].as_u64() > before["updates"].as_u64());
    assert_eq!([run.processes("actor"), run.processes("learner")], own.map(|pid| vec![pid]));
    assert_eq!(run.metrics().pop().unwrap()["restarts"], 0);
    run.end_by(Signal::SIGTERM);
}
