//! Shared memory that is too small is refused, whatever its size, and shared memory that others fill later does not matter: no process ever
//! meets a page that is not there (SIGBUS). Its pages are huge if that is wanted.

use std::path::Path;

use nix::sys::signal::Signal;

use crate::support::namespaces::{in_a_mount_namespace, mount};
use crate::support::programs::{program, segments_of, start, told, try_kill};
use crate::support::skipped;

const SHARED_MEMORY: &str = "/dev/shm";

/// Mounts a fresh file system of `bytes` for all shared memory; 0 means without a limit.
fn give(bytes: u64) {
    mount(&["-t", "tmpfs", "-o", &format!("size={bytes}"), "tmpfs"], Path::new(SHARED_MEMORY));
}

/// The exit code and the errors of a short run, which must leave nothing.
fn short_run() -> (Option<i32>, String) {
    let mut run = start(&["run.stop_env_steps=1000"]);
    let code = run.wait().code();
    run.assert_nothing_left();
    (code, run.output())
}

#[test]
fn a_run_is_refused_or_learns_whatever_the_size_of_shared_memory() {
    in_a_mount_namespace("shared_memory_sizes::a_run_is_refused_or_learns_whatever_the_size_of_shared_memory", || {
        let mut run = start(&[]);
        run.wait_for_updates(20);
        let needed = std::fs::metadata(Path::new(SHARED_MEMORY).join(&segments_of(run.pid())[0][1..])).unwrap().len();
        run.end_by(Signal::SIGTERM);
        for percent in [1, 2, 5, 10, 25, 50, 75, 90, 95, 98, 99, 100, 101, 105, 110, 125, 150, 200] {
            give(needed * percent / 100);
            let (code, said) = short_run();
            if percent < 100 {
                assert!(code == Some(1) && said.contains(SHARED_MEMORY), "with {percent} %: {code:?}, {said}");
            } else if percent > 100 {
                assert_eq!(code, Some(0), "with {percent} %: {said}");
            } else {
                assert!(code == Some(0) || code == Some(1) && said.contains(SHARED_MEMORY), "with {percent} %: {code:?}, {said}");
            }
        }
        give(0);
        let (code, said) = short_run();
        assert_eq!(code, Some(0), "without a limit: {said}");
    });
}

#[test]
fn the_doctor_has_no_problem_with_as_little_as_the_smallest_run_takes() {
    in_a_mount_namespace("shared_memory_sizes::the_doctor_has_no_problem_with_as_little_as_the_smallest_run_takes", || {
        give(8 << 20);
        let folder = tempfile::tempdir().unwrap();
        let shoal =
            |arguments: &[&str]| told(&program("shoal", folder.path()).args(arguments).current_dir(folder.path()).output().unwrap());
        shoal(&["train", "CartPole-v1", "--check"]);
        assert!(shoal(&["doctor"]).contains("8.00 MiB free of 8.00 MiB in /dev/shm"));
    });
}

#[test]
fn what_dead_runs_have_left_is_not_in_the_way_of_the_next() {
    in_a_mount_namespace("shared_memory_sizes::what_dead_runs_have_left_is_not_in_the_way_of_the_next", || {
        let auto = &["run.resume=auto", "checkpoint.interval_s=0.2"];
        let mut run = start(auto);
        run.wait_for_log("checkpoint 000001");
        let needed = std::fs::metadata(Path::new(SHARED_MEMORY).join(&segments_of(run.pid())[0][1..])).unwrap().len();
        run.end_by(Signal::SIGTERM);
        drop(run);
        // Not for two of them.
        give(needed + needed / 2);
        let mut run = start(auto);
        run.wait_for_log("checkpoint 000001");
        while run.is_running() || !run.all_processes().is_empty() {
            run.all_processes().into_iter().for_each(|process| _ = try_kill(process, Signal::SIGKILL));
        }
        assert_eq!(segments_of(run.pid()).len(), 1, "nobody was there to remove it");
        let check = run.plan_to_resume();
        assert!(check.contains("goes on from checkpoint") && check.contains("that a dead run had left"), "{check}");
        run.resume(&[]);
        run.wait_for_log("goes on from checkpoint");
        // The sentinel frees its memory only after the next one has begun to wait for that.
        run.signal(Signal::SIGKILL);
        run.wait();
        let log_bytes = run.log().len();
        run.start_again(auto);
        run.wait_for_log_after(log_bytes, "goes on from checkpoint");
        run.end_by(Signal::SIGTERM);
    });
}

#[test]
fn a_run_goes_on_when_others_have_filled_the_shared_memory() {
    in_a_mount_namespace("shared_memory_sizes::a_run_goes_on_when_others_have_filled_the_shared_memory", || {
        give(64 << 20);
        let mut run = start(&[]);
        run.wait_for_updates(20);
        let filled = std::fs::write(Path::new(SHARED_MEMORY).join("others"), vec![1; 64 << 20]);
        assert!(filled.is_err(), "there is room left");
        let before = run.metrics().pop().unwrap();
        // The replay comes to pages that nobody has written yet.
        run.wait_for("many more steps", |line| line["env_steps"].as_u64() > before["env_steps"].as_u64().map(|steps| steps + 30_000));
        assert_eq!(run.metrics().pop().unwrap()["restarts"], 0);
        run.end_by(Signal::SIGTERM);
    });
}

#[test]
fn a_run_wishes_for_huge_pages_only_if_it_is_told_to() {
    if !Path::new("/sys/kernel/mm/transparent_hugepage").exists() {
        return skipped::because("this kernel has no transparent huge pages");
    }
    for wished in [true, false] {
        let mut run = start(&[&format!("machine.huge_pages={wished}")]);
        run.wait_for_updates(0);
        let segment = run.segment_name().unwrap();
        let maps = std::fs::read_to_string(format!("/proc/{}/smaps", run.pid())).unwrap();
        let mut of_segment = maps.lines().skip_while(|line| !line.ends_with(&segment));
        let flags = of_segment.find_map(|line| line.strip_prefix("VmFlags:")).expect("the supervisor has mapped the segment");
        assert_eq!(flags.split_whitespace().any(|flag| flag == "hg"), wished, "{flags}");
        run.end_by(Signal::SIGTERM);
    }
}
