//! All processes of a run killed at once, again and again: what they leave is gone after the next run.
//!
//! `SHOAL_TEST_CYCLES` says how often.

use std::time::Duration;

use nix::sys::signal::Signal;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use serde_json::Value;
use shoal::experience::Random;

use crate::support::counts::count_from_environment;
use crate::support::programs::{Supervised, Watchdog, segments_of, start, try_kill};

/// Longest life of a run: it is killed while it starts, while it learns, or in between.
const LONGEST_LIFE_MS: u64 = 400;
/// How long a socket that no record names is left alone: its process may not have written the record yet.
const GRACE: Duration = Duration::from_secs(5);

/// Kill every process of the run, the supervisor and its sentinel too, in any order and faster than they could help each other.
fn kill_everything(run: &mut Supervised, random: &mut Random) {
    let watchdog = Watchdog::new("the end of all processes of a run");
    loop {
        let mut processes = run.all_processes();
        if processes.is_empty() && !run.is_running() {
            return;
        }
        processes.shuffle(random);
        for process in processes {
            // Some are gone before their turn.
            try_kill(process, Signal::SIGKILL);
        }
        watchdog.pause(Duration::ZERO, || format!("left are {:?}", run.all_processes()));
    }
}

#[test]
fn runs_of_which_everything_was_killed_leave_nothing_once_another_has_started() {
    let cycles = count_from_environment("SHOAL_TEST_CYCLES", 10);
    let mut random = Random::seed_from_u64(3);
    let mut run = start(&[]);
    let mut supervisors = vec![run.pid()];
    for left in (0..cycles).rev() {
        std::thread::sleep(Duration::from_millis(random.random_range(0..=LONGEST_LIFE_MS)));
        kill_everything(&mut run, &mut random);
        if left == 0 {
            std::thread::sleep(GRACE);
        }
        run.start_again(&[]);
        supervisors.push(run.pid());
    }
    // Until the run has a folder of its own, `latest` leads to the folder of the run before.
    let (record, pid) = (run.run_folder().join("run.json"), run.pid());
    let is_its_own = || -> Option<bool> {
        let record: Value = serde_json::from_slice(&std::fs::read(&record).ok()?).ok()?;
        Some(record["supervisor_pid"] == pid)
    };
    run.wait_until("its folder", || is_its_own() == Some(true));
    run.wait_for_updates(20);
    run.end_by(Signal::SIGTERM);
    run.assert_nothing_left();
    let left: Vec<String> = supervisors.into_iter().flat_map(segments_of).collect();
    assert_eq!(left, [""; 0]);
}
