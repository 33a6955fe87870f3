//! What the tests of telemetry share.

use std::fs::File;
use std::io::{PipeReader, Read};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::{Command, Output};
use std::sync::mpsc;
use std::time::Duration;

use shoal::config::Config;
use shoal::telemetry::bottleneck::Context;
use shoal::telemetry::{Abilities, Console, Evaluation, EvaluationKind, Metrics, RunFolder, Sinks, Snapshot};

/// A console that is no terminal, and what is printed on it.
pub(crate) fn piped_console() -> (PipeReader, Console) {
    let (reader, writer) = std::io::pipe().unwrap();
    (reader, Console::on(File::from(OwnedFd::from(writer)), Abilities::NONE).unwrap())
}

/// Everything printed; the console and its clones must be gone.
pub(crate) fn all_of(mut reader: PipeReader) -> String {
    let mut text = String::new();
    reader.read_to_string(&mut text).unwrap();
    text
}

pub(crate) fn context() -> Context {
    let mut config = Config::for_environment("CartPole-v1");
    (config.actor.count, config.run.stop_eval_return) = (2, Some(475.0));
    Context::new(config, 4)
}

/// Sinks in a new run folder under `root`.
pub(crate) fn sinks_in(root: &Path, console: Console) -> Sinks {
    let folder = RunFolder::create(root, "cartpole_dqn", "[environment]\nid = \"CartPole-v1\"\n").unwrap();
    folder.become_latest().unwrap();
    Sinks::open(folder, console, context(), None).unwrap()
}

/// The state of a steady run: 800 steps and 200 updates a second.
pub(crate) fn snapshot_at(wall_s: f64) -> Snapshot {
    Snapshot {
        wall_s,
        training_s: wall_s,
        env_steps: (wall_s * 800.0) as u64,
        stop_env_steps: 100_000,
        updates: (wall_s * 200.0) as u64,
        replay_capacity: 10_000,
        metrics: Metrics(vec![("loss", 0.5)]),
        ..Snapshot::default()
    }
}

pub(crate) fn evaluation(version: u64, returns: &[f64]) -> Evaluation {
    let lengths = returns.iter().map(|&one| one as u64).collect();
    let (wall_s, env_steps, returns) = (version as f64, version * 100, returns.to_vec());
    Evaluation { wall_s, env_steps, updates: version, version, returns, lengths, ..Evaluation::default() }
}

/// Fresh episodes that made the weights the best.
pub(crate) fn confirmation(version: u64, returns: &[f64]) -> Evaluation {
    Evaluation { kind: EvaluationKind::Confirmation, is_best: true, ..evaluation(version, returns) }
}

pub(crate) fn json_lines(path: &Path) -> Vec<serde_json::Value> {
    let text = std::fs::read_to_string(path).unwrap();
    assert!(text.is_empty() || text.ends_with('\n'), "a partial line: {text:?}");
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Fails the test instead of hanging it.
pub(crate) fn within<T: Send + 'static>(limit: Duration, work: impl FnOnce() -> T + Send + 'static) -> T {
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || sender.send(work()));
    receiver.recv_timeout(limit).unwrap_or_else(|error| panic!("not done within {limit:?}: {error}"))
}

/// Runs the ignored test `name` of this binary in a process of its own, in which the signal for too large files is ignored.
pub(crate) fn run_alone(name: &str, root: &Path) -> Output {
    let program = std::env::current_exe().unwrap();
    let script = "trap '' XFSZ; exec timeout 120 \"$0\" \"$@\"";
    let arguments = ["--ignored", "--exact", "--test-threads=1", name];
    Command::new("sh").args(["-c", script]).arg(program).args(arguments).env("TELEMETRY_ROOT", root).output().unwrap()
}

/// The folder that [`run_alone`] handed over.
pub(crate) fn root_of_this_process() -> Option<std::path::PathBuf> {
    std::env::var_os("TELEMETRY_ROOT").map(Into::into)
}
