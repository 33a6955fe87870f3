//! libtorch is loaded by runs that compute with it, before their processes begin, and by nobody else. One that was not fetched, or is for
//! GPUs, is loaded when programs start, and there is nothing to test.

#![cfg(libtorch_on_demand)]

mod run_support;

use run_support::{SMALL, Supervised, command, number};

/// A run with `engine` that has learned something, on a system that binds every symbol of a library when it is loaded.
fn learning_with(engine: &str) -> Supervised {
    let folder = tempfile::tempdir().unwrap();
    let mut command = command(folder.path(), &[SMALL, &[&format!("network.engine={engine}")]].concat());
    command.env("LD_BIND_NOW", "1");
    let mut run = Supervised::spawn(command, folder);
    run.wait_for("updates", |line| number(line, "updates") > 0);
    run
}

/// Those of the run that have libtorch, of how many.
fn who_has_it(run: &Supervised) -> (Vec<u32>, usize) {
    // Of a process that has just ended there is none.
    let maps_of = |pid| std::fs::read_to_string(format!("/proc/{pid}/maps")).ok().filter(|maps| !maps.is_empty()).map(|maps| (pid, maps));
    let all: Vec<(u32, String)> = run.all_processes().into_iter().filter_map(maps_of).collect();
    let with = all.iter().filter(|(_, maps)| maps.contains("/libtorch_cpu.so")).map(|&(pid, _)| pid).collect();
    (with, all.len())
}

#[test]
fn who_computes_with_the_native_engine_never_loads_it() {
    let run = learning_with("cpu");
    let (with, all) = who_has_it(&run);
    assert!(with.is_empty() && all > 3, "{with:?} of {all}");
}

#[test]
fn all_processes_of_a_run_that_computes_with_it_share_what_the_supervisor_has_loaded() {
    let run = learning_with("torch");
    let (with, all) = who_has_it(&run);
    assert!(with.len() == all && all > 3, "{with:?} of {all}");
}
