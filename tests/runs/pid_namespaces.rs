//! A process in another PID namespace, such as another container's, knows a run's processes by other ids; one in another time namespace
//! knows them by other start times. Programs there say so, and take no process for dead. A supervisor, or another program, may be the first
//! process of such a namespace.

use std::path::Path;
use std::process::{ExitStatus, Output, Stdio};

use nix::sys::signal::Signal;
use serde_json::Value;

use crate::support::namespaces::unshare;
use crate::support::programs::{SMALL, Supervised, command, kill, start, stop, under, wait_for};
#[cfg(feature = "python")]
use crate::support::python;
use crate::support::skipped;

const PID: &[&str] = &["--pid", "--fork", "--kill-child", "--mount-proc"];
const TIME: &[&str] = &["--time", "--boottime", "1000", "--fork", "--kill-child"];
/// A PID namespace whose processes have a `/dev/shm` of their own, as containers have.
const CONTAINER: &[&str] =
    &["--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c", "mount -t tmpfs tmpfs /dev/shm && exec \"$@\"", "sh"];

/// Whether a program that looks at `run` from another `namespace` succeeded, its output and its errors. `None` if the machine allows no
/// such namespace.
fn said(run: &Supervised, namespace: &[&str], program: &str, arguments: &[&str]) -> Option<(bool, String, String)> {
    let mut elsewhere = unshare(namespace, &["true"])?;
    elsewhere.arg(program).args(arguments).env("XDG_RUNTIME_DIR", run.folder.path());
    let Output { status, stdout, stderr } = elsewhere.output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Some((status.success(), text(&stdout), text(&stderr)))
}

/// Look at a run from another `namespace`: be told its `name` and the `advice` when joining, and the `problem` when looking.
fn check_from_elsewhere(namespace: &[&str], [name, advice]: [&str; 2], problem: &str) {
    let (inspect, attach) = (env!("CARGO_BIN_EXE_inspect"), env!("CARGO_BIN_EXE_attach"));
    let mut run = start(&[]);
    run.wait_for_updates(20);
    let pid = run.pid().to_string();
    let said = |program, arguments: &[&str]| said(&run, namespace, program, arguments);
    let Some((success, _, error)) = said(attach, &[&pid]) else { return };
    assert!(!success && error.contains(name) && error.contains(advice), "{error}");
    let (success, _, error) = said(inspect, &[&pid]).unwrap();
    assert!(!success && error.contains(problem), "{error}");
    let (_, list, error) = said(inspect, &["--json"]).unwrap();
    let list: Value = serde_json::from_str(&list).unwrap_or_else(|_| panic!("{list}{error}"));
    let listed = &list["runs"][0];
    assert_eq!((&listed["pid"], &listed["state"]), (&Value::from(run.pid()), &Value::from("running")), "{listed}");
    assert!(listed["problem"].as_str().is_some_and(|found| found.contains(problem)), "{listed}");
    let (success, cleaned, error) = said(inspect, &["--clean"]).unwrap();
    assert!(success && !cleaned.contains(&format!("-{pid}-")), "{cleaned}{error}");
    let before = run.metrics().pop().unwrap();
    run.wait_for("more updates", |line| line["updates"].as_u64() > before["updates"].as_u64());
    run.end_by(Signal::SIGTERM);
}

#[test]
fn a_run_is_not_taken_for_dead_and_refuses_to_be_joined_or_looked_at() {
    let name = "another PID namespace";
    check_from_elsewhere(PID, [name, "--pid=container:"], name);
}

#[test]
fn a_run_is_not_taken_for_dead_where_its_memory_is_out_of_sight() {
    check_from_elsewhere(CONTAINER, ["another PID namespace", "--pid=container:"], "cannot open the shared-memory object");
}

#[test]
fn a_run_is_not_taken_for_dead_where_its_processes_have_other_start_times() {
    let name = "another time namespace";
    check_from_elsewhere(TIME, [name, "nsenter --time"], name);
}

#[test]
fn a_run_whose_lock_was_cleared_away_is_not_gone_on_with_where_it_is_seen_in_the_registry_alone() {
    let mut run = start(&[]);
    run.wait_for_updates(20);
    // It would lock its folder again.
    stop(run.pid());
    let folder = run.run_folder();
    std::fs::remove_file(folder.join(".lock")).unwrap();
    let resumed = said(&run, PID, env!("CARGO_BIN_EXE_supervisor"), &["resume", folder.to_str().unwrap(), "--check"]);
    run.signal(Signal::SIGCONT);
    let Some((success, _, error)) = resumed else { return };
    assert!(!success && error.contains("is under way"), "{error}");
    run.end_by(Signal::SIGTERM);
}

/// The children of a process, those included that have ended and were not waited for.
fn children_of(pid: u32) -> Vec<u32> {
    let listed = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    listed.split_ascii_whitespace().map(|id| id.parse().unwrap()).collect()
}

#[test]
fn as_the_first_process_a_supervisor_reaps_orphans_and_leaves_children_from_before_to_whoever_waits_for_them() {
    if !Path::new("/proc/thread-self/children").exists() {
        return skipped::because("the kernel does not list children");
    }
    let Some(mut container) = unshare(CONTAINER, &["true"]) else { return };
    let folder = tempfile::tempdir().unwrap();
    // Before the first process becomes the supervisor, it starts a shell that has two children.
    let first = under("{ (sleep 1000 & sleep 1000 & wait) & }", &command(folder.path(), SMALL));
    container.arg(first.get_program()).args(first.get_args()).env("XDG_RUNTIME_DIR", folder.path());
    container.stdout(Stdio::null()).stderr(Stdio::piped());
    let mut run = Supervised::spawn(container, folder);
    run.wait_for_updates(20);
    let [supervisor] = children_of(run.pid())[..] else { panic!("the namespace has a first process") };
    let (shell, orphans) = run.look_for("a shell with two children", |_| {
        let mut families = children_of(supervisor).into_iter().map(|child| (child, children_of(child)));
        families.find(|(_, children)| children.len() == 2)
    });
    let left = || children_of(supervisor).into_iter().filter(|child| orphans.contains(child)).count();
    kill(shell, Signal::SIGKILL);
    run.wait_until("its children to be the supervisor's", || left() == 2);
    orphans.iter().for_each(|&orphan| kill(orphan, Signal::SIGKILL));
    run.wait_until("them to be reaped", || left() == 0);
    assert!(children_of(supervisor).contains(&shell), "somebody in that process may wait for it");
    kill(supervisor, Signal::SIGTERM);
    assert_eq!(run.wait().code(), Some(128 + Signal::SIGTERM as i32), "{}", run.output());
}

/// How an evaluation of `run` ends that is the first process of a namespace, and gets `signal` again and again once `mark` exists. `None`
/// if the machine allows no such namespace.
fn end_of_evaluation(run: &Supervised, signal: Signal, mark: &Path, arguments: &[&str]) -> Option<ExitStatus> {
    let mut container = unshare(PID, &["true"])?;
    // A signal that comes before the program handles it does nothing.
    let number = signal as i32;
    let script = format!("{{ until test -e \"$0\"; do sleep 0.1; done; while :; do kill -{number} 1; sleep 0.1; done; }} & exec \"$@\"");
    container.args(["sh", "-c", &script]).arg(mark).arg(env!("CARGO_BIN_EXE_evaluate")).arg(run.run_folder()).args(arguments);
    // The variable by which the processes of a test that fails are found and killed.
    let mut evaluation = container.env("XDG_RUNTIME_DIR", run.folder.path()).stdout(Stdio::null()).spawn().unwrap();
    Some(wait_for("the end of the evaluation", String::new, || evaluation.try_wait().unwrap()))
}

#[test]
fn as_the_first_process_a_program_that_handles_no_signals_ends_by_one_that_asks_it_to_stop() {
    let mut run = start(&["run.stop_env_steps=1000", "evaluator.enabled=false"]);
    run.succeed();
    let Some(ended) = end_of_evaluation(&run, Signal::SIGTERM, &run.run_folder(), &["--episodes", "1000000"]) else { return };
    assert_eq!(ended.code(), Some(128 + Signal::SIGTERM as i32));
}

#[cfg(feature = "python")]
#[test]
fn as_the_first_process_a_program_that_notes_the_first_signal_ends_by_the_second_though_its_environment_hangs() {
    let folder = tempfile::tempdir().unwrap();
    let (mark, video) = (folder.path().join("hangs"), folder.path().join("first.gif"));
    let mut run = start(&[
        "environment.id=python:faulty:Faulty",
        &format!("environment.python_path={}", python::folder().display()),
        r#"environment.keyword_arguments={"how": "behave"}"#,
        &format!(r#"environment.evaluation_arguments={{"how": "hang", "after": 5, "once": "{}"}}"#, mark.display()),
        "evaluator.enabled=false",
        "run.stop_env_steps=1000",
    ]);
    run.succeed();
    assert!(!mark.exists(), "it hangs only where it is played in");
    let Some(ended) = end_of_evaluation(&run, Signal::SIGINT, &mark, &["--video", video.to_str().unwrap()]) else { return };
    assert_eq!(ended.code(), Some(128 + Signal::SIGINT as i32));
}
