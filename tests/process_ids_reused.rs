//! A process whose id now belongs to another one is dead: its place is given back, and what it had added stays.

mod support {
    pub(crate) mod counts;
    pub(crate) mod forked;
    pub(crate) mod namespaces;
    pub(crate) mod skipped;
}

use std::process::{Command, Stdio};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::sys::wait::waitpid;
use nix::unistd::Pid;
use shoal::segment::pidfd::{has_exited, start_time};
use shoal::segment::system::fork_child;
use support::forked;
use support::forked::shared::{OLDER, Shared, add};
use support::namespaces::in_a_pid_namespace;

/// Longer than a clock tick, in which start times are counted.
const TICKS: Duration = Duration::from_millis(50);
const ATTEMPTS: usize = 100;

/// A process that has the id of one that is gone, and does nothing.
fn process_with_id(id: u32) -> std::process::Child {
    for _ in 0..ATTEMPTS {
        std::fs::write("/proc/sys/kernel/ns_last_pid", (id - 1).to_string()).unwrap();
        let mut child = Command::new("sleep").arg("600").stdin(Stdio::null()).spawn().unwrap();
        if child.id() == id {
            return child;
        }
        child.kill().unwrap();
        child.wait().unwrap();
    }
    panic!("no process has got the id {id}");
}

#[test]
fn a_dead_participant_whose_id_is_a_living_process_again_is_repaired_after() {
    in_a_pid_namespace("a_dead_participant_whose_id_is_a_living_process_again_is_repaired_after", || {
        let shared = Shared::new();
        let free = shared.free_places();
        let name = shared.held.name().unwrap().to_owned();
        let participant: Pid = fork_child(|| {
            let held = shoal::standalone::ReplayHandle::open(&name, Some(2)).expect("a replay that is there");
            add(&held, 100..102, &mut Vec::new());
            std::thread::sleep(Duration::from_secs(600));
            0
        })
        .unwrap();
        let id = participant.as_raw().cast_unsigned();
        // They are counted once they are whole; until then nobody can look at them.
        forked::wait_until(|| shared.held.inserted() >= OLDER as u64 + 2);
        let started = start_time(id).unwrap();
        kill(participant, Signal::SIGKILL).unwrap();
        waitpid(participant, None).unwrap();
        std::thread::sleep(TICKS);
        let mut another = process_with_id(id);
        assert_ne!(start_time(id), Some(started));
        assert!(has_exited(id, started) && !has_exited(id, start_time(id).unwrap()));
        // A process that joins repairs after the dead.
        let joined = shared.open();
        drop(joined);
        assert_eq!(shared.free_places(), free, "the dead participant's place");
        assert!(shared.contents().contains_key(&100));
        another.kill().unwrap();
        another.wait().unwrap();
    });
}
