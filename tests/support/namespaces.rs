//! Tests that need a namespace of their own: they run once more, alone, in one.
#![allow(dead_code, unreachable_pub, reason = "each test binary uses its part")]

use std::path::Path;
use std::process::Command;

use super::skipped;

/// Set in the process that has the namespace.
const INSIDE: &str = "SHOAL_TEST_NAMESPACE";

/// Run the test `name` once more, alone, where it may mount what it likes; skipped where that is not permitted.
pub fn in_a_mount_namespace(name: &str, body: impl FnOnce()) {
    let attempt = ["mount", "-t", "tmpfs", "tmpfs", "/mnt"];
    in_a_namespace(&["--mount"], &attempt, name, body);
}

/// Run the test `name` once more, alone, where process ids are its own; skipped where that is not permitted.
pub fn in_a_pid_namespace(name: &str, body: impl FnOnce()) {
    let attempt = ["sh", "-c", "echo 1000 > /proc/sys/kernel/ns_last_pid"];
    in_a_namespace(&["--pid", "--fork", "--kill-child", "--mount-proc"], &attempt, name, body);
}

/// `attempt` is a command that succeeds in a namespace in which the test can run.
fn in_a_namespace(kind: &[&str], attempt: &[&str], name: &str, body: impl FnOnce()) {
    if std::env::var_os(INSIDE).is_some() {
        return body();
    }
    let Some(mut command) = unshare(kind, attempt) else { return };
    command.arg(std::env::current_exe().unwrap()).args(["--exact", name, "--nocapture"]).env(INSIDE, "1");
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && text.contains("1 passed"), "in the namespace ({}):\n{text}", output.status);
}

/// The beginning of a command that runs the rest of it in a namespace of this kind, in which `attempt` succeeds. If none is permitted,
/// prints so and returns `None`.
pub fn unshare(kind: &[&str], attempt: &[&str]) -> Option<Command> {
    // The second needs no rights.
    let prefixes: [&[&str]; 2] = [&[], &["--user", "--map-root-user"]];
    let command = |prefix: &[&str]| {
        let mut command = Command::new("unshare");
        command.args(prefix).args(kind);
        command
    };
    let works = |prefix: &&[&str]| command(prefix).args(attempt).output().is_ok_and(|output| output.status.success());
    let found = prefixes.into_iter().find(works).map(command);
    if found.is_none() {
        skipped::because(format_args!("a namespace of one's own (unshare {}) is not permitted here", kind.join(" ")));
    }
    found
}

/// `mount` with these arguments.
pub fn mount(arguments: &[&str], target: &Path) {
    let output = Command::new("mount").args(arguments).arg(target).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
