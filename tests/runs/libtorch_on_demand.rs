//! Only runs that compute with libtorch load it, before they fork their processes. A libtorch that was not fetched, or is for GPUs, is
//! loaded when programs start; then there is nothing to test.

#![cfg(libtorch_on_demand)]

use crate::support::programs::{SMALL, Supervised, command};

/// A run with `engine` that has learned something, on a system that binds every symbol of a library when it is loaded.
fn learning_with(engine: &str) -> Supervised {
    let folder = tempfile::tempdir().unwrap();
    let mut command = command(folder.path(), &[SMALL, &[&format!("network.engine={engine}")]].concat());
    command.env("LD_BIND_NOW", "1");
    let mut run = Supervised::spawn(command, folder);
    run.wait_for_updates(0);
    run
}

/// The processes of the run that have loaded libtorch, and the number of all its processes.
fn who_has_it(run: &Supervised) -> (Vec<u32>, usize) {
    // A process that has just ended has no maps.
    let maps_of = |pid| std::fs::read_to_string(format!("/proc/{pid}/maps")).ok().filter(|maps| !maps.is_empty()).map(|maps| (pid, maps));
    let all: Vec<(u32, String)> = run.all_processes().into_iter().filter_map(maps_of).collect();
    let with = all.iter().filter(|(_, maps)| maps.contains("/libtorch_cpu.so")).map(|&(pid, _)| pid).collect();
    (with, all.len())
}

#[test]
fn a_run_on_the_native_engine_never_loads_libtorch() {
    let run = learning_with("cpu");
    let (with, all) = who_has_it(&run);
    assert!(with.is_empty() && all > 3, "{with:?} of {all}");
}

#[test]
fn a_run_on_libtorch_shares_the_one_that_its_supervisor_has_loaded() {
    let run = learning_with("torch");
    let (with, all) = who_has_it(&run);
    assert!(with.len() == all && all > 3, "{with:?} of {all}");
}
