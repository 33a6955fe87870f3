//! Runs of the real supervisor for tests: started in a folder of their own, watched, and looked at from outside.
#![allow(dead_code, unreachable_pub, reason = "each test binary uses its part")]

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

/// Longest that any wait of a test may take: a watchdog, not an expectation.
pub const WATCHDOG: Duration = Duration::from_secs(120);

/// A supervisor under way. Dropping it kills its whole run.
pub struct Supervised {
    child: Child,
    /// Folder that holds the run folder and the registry.
    pub folder: tempfile::TempDir,
}

/// A small, quick configuration of the shipped preset.
pub const SMALL: &[&str] = &[
    "network.hidden=[32]",
    "learner.batch_size=32",
    "replay.min_size=200",
    "replay.capacity=20000",
    "actor.random_steps=200",
    "actor.flush_transitions=32",
    "replay.samples_per_insert=2.0",
    "evaluator.episodes=4",
    "run.metrics_interval_s=0.1",
    "run.stop_env_steps=1000000000",
    "run.stop_eval_return=\"none\"",
    "machine.affinity=false",
    "checkpoint.interval_s=\"none\"",
];

/// The preset for CartPole.
pub fn preset() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("configs/cartpole_dqn.toml")
}

/// A supervisor command in `folder` with `overrides`.
pub fn command(folder: &Path, overrides: &[&str]) -> Command {
    command_of(&preset(), folder, overrides)
}

/// A supervisor command in `folder` with the file `preset` and `overrides`.
pub fn command_of(preset: &Path, folder: &Path, overrides: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_supervisor"));
    command.arg(preset).args(["--set", &format!("run.folder={:?}", folder.join("runs").display().to_string())]);
    for change in overrides {
        command.args(["--set", change]);
    }
    command.env("XDG_RUNTIME_DIR", folder).stdout(Stdio::null()).stderr(Stdio::piped());
    command
}

/// Start a supervisor with the small configuration and `overrides`.
pub fn start(overrides: &[&str]) -> Supervised {
    let folder = tempfile::tempdir().unwrap();
    let all: Vec<&str> = SMALL.iter().chain(overrides).copied().collect();
    Supervised::spawn(command(folder.path(), &all), folder)
}

/// Start a supervisor with the shipped preset called `name` and `overrides`.
pub fn start_preset(name: &str, overrides: &[&str]) -> Supervised {
    let folder = tempfile::tempdir().unwrap();
    let preset = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("configs/{name}.toml"));
    let all: Vec<&str> = ["run.metrics_interval_s=0.1", "machine.affinity=false"].iter().chain(overrides).copied().collect();
    let command = command_of(&preset, folder.path(), &all);
    Supervised::spawn(command, folder)
}

/// As [`start`], in the registry of another run, so that they know of each other. To be dropped before the other.
pub fn start_beside(other: &Supervised, overrides: &[&str]) -> Supervised {
    let folder = tempfile::tempdir().unwrap();
    let all: Vec<&str> = SMALL.iter().chain(overrides).copied().collect();
    let child = command(folder.path(), &all).env("XDG_RUNTIME_DIR", other.folder.path()).spawn().unwrap();
    Supervised { child, folder }
}

/// The count called `key` in a line of a run's files, where each line has it.
#[track_caller]
pub fn number(line: &Value, key: &str) -> u64 {
    let Some(number) = line[key].as_u64() else { panic!("no count `{key}` in {line}") };
    number
}

/// The complete checkpoints of the run in `folder`, the oldest first.
pub fn checkpoints_in(folder: &Path) -> Vec<PathBuf> {
    shoal::checkpoint::Checkpoints::new(folder.join("checkpoints")).list()
}

impl Supervised {
    /// Start a supervisor that [`command`] made for `folder`.
    pub fn spawn(mut command: Command, folder: tempfile::TempDir) -> Self {
        Self { child: command.spawn().unwrap(), folder }
    }

    /// Once the run has ended: go on with it, with these arguments after its folder.
    pub fn resume(&mut self, arguments: &[&str]) {
        assert!(!self.is_running(), "the run has not ended");
        let mut command = Command::new(env!("CARGO_BIN_EXE_supervisor"));
        command.arg("resume").arg(self.run_folder()).args(arguments);
        command.env("XDG_RUNTIME_DIR", self.folder.path()).stdout(Stdio::null()).stderr(Stdio::piped());
        self.child = command.spawn().unwrap();
    }

    /// Once the supervisor was killed: go on with its run in the memory in which it was kept, with these arguments after its folder.
    pub fn adopt(&mut self, arguments: &[&str]) {
        assert!(!self.is_running(), "the run has not ended");
        self.child = self.command_to_adopt(arguments).spawn().unwrap();
    }

    /// What is said to somebody else who wants to adopt the run.
    pub fn adopt_elsewhere(&self, arguments: &[&str]) -> String {
        String::from_utf8(self.command_to_adopt(arguments).output().unwrap().stderr).unwrap()
    }

    /// The command that adopts the run.
    pub fn command_to_adopt(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_supervisor"));
        command.arg("adopt").arg(self.run_folder()).args(arguments);
        command.env("XDG_RUNTIME_DIR", self.folder.path()).stdout(Stdio::null()).stderr(Stdio::piped());
        command
    }

    /// Kill the supervisor of a run that is then kept, and return the process that keeps it.
    pub fn kill_and_wait_for_keeper(&mut self) -> u32 {
        let log = self.log();
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        self.wait_for_log_after(log.len(), "keeps the run in memory");
        let log = self.log();
        let said = log.lines().rev().find(|line| line.contains("keeps the run in memory")).unwrap();
        said.split("process ").nth(1).unwrap().split(' ').next().unwrap().parse().unwrap()
    }

    /// Kill the supervisor, and wait until all that it had forked is gone too.
    pub fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        self.wait_for_end_of_all();
    }

    /// Wait until the processes that train have left a run that was told to end.
    pub fn wait_until_left(&self) {
        let deadline = Instant::now() + WATCHDOG;
        while ["actor", "learner", "evaluator"].iter().any(|role| !self.processes(role).is_empty()) {
            assert!(Instant::now() < deadline, "a process does not leave:\n{}", self.log());
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Wait until all that the supervisor had forked is gone.
    pub fn wait_for_end_of_all(&self) {
        let deadline = Instant::now() + WATCHDOG;
        while !self.all_processes().is_empty() {
            assert!(Instant::now() < deadline, "a process has outlived its killed supervisor");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// The complete checkpoints, the oldest first.
    pub fn checkpoints(&self) -> Vec<PathBuf> {
        checkpoints_in(&self.run_folder())
    }

    /// What is said to somebody else who wants to go on with the run.
    pub fn resume_elsewhere(&self) -> String {
        let mut command = Command::new(env!("CARGO_BIN_EXE_supervisor"));
        command.arg("resume").arg(self.run_folder()).env("XDG_RUNTIME_DIR", self.folder.path());
        String::from_utf8(command.output().unwrap().stderr).unwrap()
    }

    /// How the run would go on, as `--check` has it.
    pub fn plan_to_resume(&self) -> String {
        let mut command = Command::new(env!("CARGO_BIN_EXE_supervisor"));
        command.arg("resume").arg(self.run_folder()).arg("--check").env("XDG_RUNTIME_DIR", self.folder.path());
        String::from_utf8(command.output().unwrap().stderr).unwrap()
    }

    /// Once the run has ended: start another with the small configuration and `overrides` in its folder.
    pub fn start_again(&mut self, overrides: &[&str]) {
        assert!(!self.is_running(), "the run has not ended");
        let all: Vec<&str> = SMALL.iter().chain(overrides).copied().collect();
        self.child = command(self.folder.path(), &all).spawn().unwrap();
    }

    /// Whether the supervisor has not ended yet.
    pub fn is_running(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    /// Process id of the supervisor.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The run folder, once it exists.
    pub fn run_folder(&self) -> PathBuf {
        self.folder.path().join("runs/latest")
    }

    /// Wait until the run's metrics satisfy `condition`, and return the line that does.
    pub fn wait_for(&mut self, what: &str, condition: impl Fn(&Value) -> bool) -> Value {
        let deadline = Instant::now() + WATCHDOG;
        loop {
            if let Some(found) = self.metrics().into_iter().rev().find(&condition) {
                return found;
            }
            let running = self.child.try_wait().unwrap().is_none();
            assert!(running, "the run ended before {what}: {}", self.output());
            assert!(Instant::now() < deadline, "gave up waiting for {what}; last metrics: {:?}", self.metrics().pop());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Wait until the run's evaluations satisfy `condition`.
    pub fn wait_for_evaluations(&mut self, what: &str, condition: impl Fn(&[Value]) -> bool) {
        let deadline = Instant::now() + WATCHDOG;
        while !condition(&self.evaluations()) {
            let running = self.child.try_wait().unwrap().is_none();
            assert!(running, "the run ended before {what}: {}", self.output());
            assert!(Instant::now() < deadline, "gave up waiting for {what}; evaluations: {:#?}", self.evaluations());
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// All lines of `metrics.jsonl` so far.
    pub fn metrics(&self) -> Vec<Value> {
        self.lines("metrics.jsonl")
    }

    /// All lines of `evaluations.jsonl` so far.
    pub fn evaluations(&self) -> Vec<Value> {
        self.lines("evaluations.jsonl")
    }

    /// What `run.json` says.
    pub fn record(&self) -> Value {
        serde_json::from_slice(&std::fs::read(self.run_folder().join("run.json")).unwrap()).unwrap()
    }

    /// What an audit from outside says of the tree.
    pub fn tree_verdict(&self) -> String {
        let mut command = Command::new(env!("CARGO_BIN_EXE_inspect"));
        command.args([&self.pid().to_string(), "--json", "--interval-ms", "1"]).env("XDG_RUNTIME_DIR", self.folder.path());
        let report: Value = serde_json::from_slice(&command.output().unwrap().stdout).unwrap_or_default();
        report["tree"]["verdict"].as_str().unwrap_or("none").to_owned()
    }

    /// Assert that the tree is exact. As long as others change it no look can tell, so it is looked at until one does.
    pub fn assert_tree_is_exact(&mut self) {
        let deadline = Instant::now() + WATCHDOG;
        loop {
            let verdict = self.tree_verdict();
            if verdict == "exact" {
                return;
            }
            assert!(verdict != "inconsistent", "the sums of the tree are wrong; the log:\n{}", self.log());
            assert!(self.is_running(), "the run ended before its tree was looked at: {}", self.output());
            assert!(Instant::now() < deadline, "no look at the tree finds it exact: {verdict}; the log:\n{}", self.log());
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// All lines of a file of JSON objects so far.
    pub fn lines(&self, file: &str) -> Vec<Value> {
        let text = std::fs::read_to_string(self.run_folder().join(file)).unwrap_or_default();
        text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    }

    /// The events that the supervisor reported.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.run_folder().join("run.log")).unwrap_or_default()
    }

    /// Wait until the log contains `text`.
    pub fn wait_for_log(&mut self, text: &str) {
        self.wait_for_log_after(0, text);
    }

    /// Wait until the log contains `text` behind its first `bytes`.
    pub fn wait_for_log_after(&mut self, bytes: usize, text: &str) {
        let deadline = Instant::now() + WATCHDOG;
        while !self.log().get(bytes..).is_some_and(|log| log.contains(text)) {
            assert!(Instant::now() < deadline, "gave up waiting for `{text}` in the log:\n{}", self.log());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Wait until `condition` holds.
    pub fn wait_until(&mut self, what: &str, condition: impl Fn() -> bool) {
        let deadline = Instant::now() + WATCHDOG;
        while !condition() {
            let running = self.child.try_wait().unwrap().is_none();
            assert!(running, "the run ended before {what}: {}", self.output());
            assert!(Instant::now() < deadline, "gave up waiting for {what}; the log:\n{}", self.log());
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// The run's segment, with the right to change it.
    pub fn segment(&self) -> shoal::segment::Segment {
        let name = self.segment_name().expect("the run has a segment");
        shoal::segment::Segment::attach(&name).unwrap()
    }

    /// Name of the run's segment: an adopted one has the name that it was given in another life.
    pub fn segment_name(&self) -> Option<String> {
        let record = std::fs::read(self.folder.path().join(format!("shoal/{}.json", self.pid()))).ok();
        let named = record.and_then(|record| Some(serde_json::from_slice::<Value>(&record).ok()?["segment"].as_str()?.to_owned()));
        named.or_else(|| segments_of(self.pid()).pop())
    }

    /// Everything that the run started, itself included.
    pub fn all_processes(&self) -> Vec<u32> {
        processes_of(&self.folder)
    }

    /// Processes of the run by their role in the process table, read from the segment itself.
    pub fn processes(&self, role: &str) -> Vec<u32> {
        let Some(name) = self.segment_name() else { return Vec::new() };
        let Ok(segment) = shoal::segment::Segment::attach_read_only(&name) else { return Vec::new() };
        living(&segment, role).into_iter().map(|(_, pid)| pid).collect()
    }

    /// Wait until a process plays `role`, and return its id.
    pub fn wait_for_process(&self, role: &str) -> u32 {
        let deadline = Instant::now() + WATCHDOG;
        loop {
            if let Some(&pid) = self.processes(role).first() {
                return pid;
            }
            assert!(Instant::now() < deadline, "gave up waiting for a process that is {role}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Send a signal to the supervisor.
    pub fn signal(&self, signal: nix::sys::signal::Signal) {
        kill(self.pid(), signal);
    }

    /// Wait for the supervisor to end by itself.
    pub fn wait(&mut self) -> ExitStatus {
        let deadline = Instant::now() + WATCHDOG;
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            assert!(Instant::now() < deadline, "the supervisor did not end; its log:\n{}", self.log());
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// End the run by a signal to its supervisor, which must leave in good order and say by its exit code what ended it.
    pub fn end_by(&mut self, signal: nix::sys::signal::Signal) {
        self.signal(signal);
        let status = self.wait();
        assert_eq!(status.code(), Some(128 + signal as i32), "{}", self.output());
    }

    /// Wait without a pause until the supervisor has noted its end in `run.json`: it then removes what it made.
    pub fn spin_until_finished(&self) {
        let deadline = Instant::now() + WATCHDOG;
        let record = self.run_folder().join("run.json");
        let finished = || {
            let record = std::fs::read(&record).unwrap_or_default();
            serde_json::from_slice::<Value>(&record).is_ok_and(|record| record["finished"].is_object())
        };
        while !finished() {
            assert!(Instant::now() < deadline, "the supervisor noted no end; its log:\n{}", self.log());
        }
    }

    /// What the supervisor wrote to standard error. Only after it has ended.
    pub fn output(&mut self) -> String {
        let mut text = String::new();
        if let Some(mut stderr) = self.child.stderr.take() {
            let _ = stderr.read_to_string(&mut text);
        }
        text
    }

    /// Assert that nothing of the run is left: no process, no shared memory, no socket.
    pub fn assert_nothing_left(&self) {
        let pid = self.pid();
        let deadline = Instant::now() + WATCHDOG;
        loop {
            let (segments, processes, sockets) = (segments_of(pid), processes_of(&self.folder), sockets_in(self.folder.path()));
            if segments.is_empty() && processes.is_empty() && sockets.is_empty() {
                return;
            }
            assert!(Instant::now() < deadline, "left behind: {segments:?}, processes {processes:?}, {sockets:?}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Supervised {
    fn drop(&mut self) {
        let name = self.segment_name();
        let _ = self.child.kill();
        let _ = self.child.wait();
        if !std::thread::panicking() {
            self.assert_nothing_left();
            return;
        }
        // A run that is kept in memory would be so for ever.
        self.all_processes().into_iter().for_each(|pid| _ = nix::sys::signal::kill(pid_of(pid), nix::sys::signal::Signal::SIGKILL));
        name.map(|name| shoal::segment::system::remove(&name));
    }
}

/// Numbers and process ids of those who play `role`.
pub fn living(segment: &shoal::segment::Segment, role: &str) -> Vec<(usize, u32)> {
    let live = segment.processes().iter().filter(|slot| slot.state() == shoal::segment::processes::SlotState::Live);
    let found = live.filter_map(|slot| slot.role().map(|(found, number)| (found, number, slot.pid())));
    found.filter(|(found, ..)| found.name() == role).map(|(_, number, pid)| (number, pid)).collect()
}

fn pid_of(pid: u32) -> nix::unistd::Pid {
    nix::unistd::Pid::from_raw(i32::try_from(pid).unwrap())
}

/// Send a signal to a process.
pub fn kill(pid: u32, signal: nix::sys::signal::Signal) {
    nix::sys::signal::kill(pid_of(pid), signal).unwrap();
}

/// Shared-memory objects of the supervisor with this process id.
pub fn segments_of(pid: u32) -> Vec<String> {
    let wanted = format!("-{pid}-");
    let names = std::fs::read_dir("/dev/shm").unwrap().filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    names.filter(|name| name.starts_with("shoal-") && name.contains(&wanted)).map(|name| format!("/{name}")).collect()
}

/// Processes whose environment names this folder: all that a run in it started.
fn processes_of(folder: &tempfile::TempDir) -> Vec<u32> {
    let wanted = format!("XDG_RUNTIME_DIR={}", folder.path().display());
    let pids = std::fs::read_dir("/proc").unwrap().filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok());
    pids.filter(|pid| {
        let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment.split(|&byte| byte == 0).any(|variable| variable == wanted.as_bytes())
    })
    .collect()
}

fn sockets_in(folder: &Path) -> Vec<PathBuf> {
    use std::os::unix::fs::FileTypeExt;
    let Ok(entries) = std::fs::read_dir(folder.join("shoal")) else { return Vec::new() };
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    paths.filter(|path| path.metadata().is_ok_and(|facts| facts.file_type().is_socket())).collect()
}
