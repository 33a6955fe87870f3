//! Processes of another PID namespace, such as another container's, know a run's processes by other ids, and those of another
//! time namespace by other start times: they are told so, and take nobody for dead.

mod run_support;
mod skipped;

use std::process::{Command, Output};

use nix::sys::signal::Signal;
use run_support::{Supervised, start};
use serde_json::Value;

/// The beginnings of commands that run the rest in a namespace of their own; the second needs no rights.
const UNSHARE: [&[&str]; 2] = [&["unshare"], &["unshare", "--user", "--map-root-user"]];
const PID: &[&str] = &["--pid", "--fork", "--kill-child", "--mount-proc"];
const TIME: &[&str] = &["--time", "--boottime", "1000", "--fork", "--kill-child"];

/// `program` in another `namespace`; `None` where the machine allows none.
fn elsewhere(namespace: &[&str], program: &str) -> Option<Command> {
    let command = |prefix: &[&str], program: &str| {
        let mut command = Command::new(prefix[0]);
        command.args(&prefix[1..]).args(namespace).arg(program);
        command
    };
    let works = |prefix: &&&[&str]| command(prefix, "true").output().is_ok_and(|output| output.status.success());
    let found = UNSHARE.iter().find(works).map(|prefix| command(prefix, program));
    if found.is_none() {
        skipped::because(format_args!("this machine allows no other namespaces (unshare {})", namespace.join(" ")));
    }
    found
}

/// What a program says of `run` from another `namespace`: whether it succeeded, its output, its errors.
fn said(run: &Supervised, namespace: &[&str], program: &str, arguments: &[&str]) -> Option<(bool, String, String)> {
    let Output { status, stdout, stderr } =
        elsewhere(namespace, program)?.args(arguments).env("XDG_RUNTIME_DIR", run.folder.path()).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Some((status.success(), text(&stdout), text(&stderr)))
}

/// Look at a run from another `namespace`, which is called `name`, and be given the `advice`.
fn check_from_elsewhere(namespace: &[&str], name: &str, advice: &str) {
    let (inspect, attach) = (env!("CARGO_BIN_EXE_inspect"), env!("CARGO_BIN_EXE_attach"));
    let mut run = start(&[]);
    run.wait_for("the first updates", |line| line["updates"].as_u64() > Some(20));
    let pid = run.pid().to_string();
    let said = |program, arguments: &[&str]| said(&run, namespace, program, arguments);
    let Some((success, _, error)) = said(attach, &[&pid]) else { return };
    assert!(!success && error.contains(name) && error.contains(advice), "{error}");
    let (success, _, error) = said(inspect, &[&pid]).unwrap();
    assert!(!success && error.contains(name), "{error}");
    let (_, list, error) = said(inspect, &["--json"]).unwrap();
    let list: Value = serde_json::from_str(&list).unwrap_or_else(|_| panic!("{list}{error}"));
    let listed = &list["runs"][0];
    assert_eq!((&listed["pid"], &listed["state"]), (&Value::from(run.pid()), &Value::from("running")), "{listed}");
    assert!(listed["problem"].as_str().is_some_and(|problem| problem.contains(name)), "{listed}");
    let (success, cleaned, error) = said(inspect, &["--clean"]).unwrap();
    assert!(success && !cleaned.contains(&format!("-{pid}-")), "{cleaned}{error}");
    let before = run.metrics().pop().unwrap();
    run.wait_for("more updates", |line| line["updates"].as_u64() > before["updates"].as_u64());
    run.end_by(Signal::SIGTERM);
    run.assert_nothing_left();
}

#[test]
fn a_run_is_not_taken_for_dead_and_refuses_to_be_joined_or_looked_at() {
    check_from_elsewhere(PID, "another PID namespace", "--pid=container:");
}

#[test]
fn a_run_is_not_taken_for_dead_where_its_processes_have_other_start_times() {
    check_from_elsewhere(TIME, "another time namespace", "nsenter --time");
}
