//! Runs of the real supervisor for tests: started in a folder of their own, watched, and looked at from outside.
#![allow(dead_code, unreachable_pub, reason = "each test binary uses its part")]

mod processes;

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::time::{Duration, Instant};

use nix::sys::resource::{Resource, setrlimit};
use nix::sys::signal::Signal;
use serde_json::Value;
use shoal::checkpoint::{Checkpoints, PolicyWeights};
use shoal::segment::Segment;

pub use processes::*;

/// Longest that any wait of a test may take: a watchdog, not an expectation.
pub const WATCHDOG: Duration = Duration::from_secs(120);

/// Between two looks at what a test waits for.
const PAUSE: Duration = Duration::from_millis(5);

/// Bounds one wait of a test.
pub struct Watchdog {
    awaited: String,
    deadline: Instant,
}

impl Watchdog {
    /// A watchdog over the wait for what `awaited` names.
    pub fn new(awaited: impl Into<String>) -> Self {
        Self { awaited: awaited.into(), deadline: Instant::now() + WATCHDOG }
    }

    /// A pause between two looks. After too many the test fails, with what it waited for and how things stand.
    #[track_caller]
    pub fn pause(&self, length: Duration, state: impl FnOnce() -> String) {
        assert!(Instant::now() < self.deadline, "gave up waiting for {} after {WATCHDOG:?}; {}", self.awaited, state());
        std::thread::sleep(length);
    }
}

/// Wait until `look` finds something; `state` says how things stand should it find nothing.
#[track_caller]
pub fn wait_for<T>(awaited: &str, state: impl Fn() -> String, mut look: impl FnMut() -> Option<T>) -> T {
    let watchdog = Watchdog::new(awaited);
    loop {
        if let Some(found) = look() {
            return found;
        }
        watchdog.pause(PAUSE, &state);
    }
}

/// Wait until `condition` holds; `state` says how things stand should it never hold.
#[track_caller]
pub fn wait_until(awaited: &str, state: impl Fn() -> String, mut condition: impl FnMut() -> bool) {
    wait_for(awaited, state, || condition().then_some(()));
}

/// A supervisor under way. Dropping it kills its whole run, and asserts that nothing of it is left unless the test has failed.
pub struct Supervised {
    child: Child,
    /// Folder that holds the run folder and the registry.
    pub folder: tempfile::TempDir,
    /// What was read of its standard error since it was started last.
    said: String,
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

/// The program `name`, with its runs and its registry in `folder`.
pub fn program(name: &str, folder: &Path) -> Command {
    // Tests crash what they start: no file of the size of its memory is to be left each time.
    setrlimit(Resource::RLIMIT_CORE, 0, 0).unwrap();
    // All of them lie side by side.
    let mut command = Command::new(Path::new(env!("CARGO_BIN_EXE_supervisor")).with_file_name(name));
    command.env("XDG_RUNTIME_DIR", folder);
    command
}

/// Put the program of that name at `path`, as a link where that can be: what has just been written cannot be started as
/// long as a process has it open.
pub fn install(path: &Path) {
    let built = Path::new(env!("CARGO_BIN_EXE_supervisor")).with_file_name(path.file_name().unwrap());
    std::fs::hard_link(&built, path).or_else(|_| std::fs::copy(&built, path).map(drop)).unwrap();
}

/// What a command wrote to standard error.
pub fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// What a command wrote to standard output, which must have succeeded.
#[track_caller]
pub fn told(output: &Output) -> String {
    assert!(output.status.success(), "{}", said(output));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// A supervisor command in `folder` with `overrides`.
pub fn command(folder: &Path, overrides: &[&str]) -> Command {
    command_of(&preset(), folder, overrides)
}

/// A supervisor command in `folder` with the file `preset` and `overrides`.
pub fn command_of(preset: &Path, folder: &Path, overrides: &[&str]) -> Command {
    let mut command = program("supervisor", folder);
    command.arg(preset).args(["--set", &format!("run.folder={:?}", folder.join("runs").display().to_string())]);
    for change in overrides {
        command.args(["--set", change]);
    }
    command.stdout(Stdio::null()).stderr(Stdio::piped());
    command
}

/// `command` after what a shell does `first` in its process, such as `ulimit -n 90`.
pub fn under(first: &str, command: &Command) -> Command {
    let mut prepared = Command::new("bash");
    prepared.args(["-c", &format!("{first}; exec \"$0\" \"$@\"")]).arg(command.get_program()).args(command.get_args());
    prepared.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    prepared
}

/// Start a supervisor with the small configuration and `overrides`.
pub fn start(overrides: &[&str]) -> Supervised {
    let folder = tempfile::tempdir().unwrap();
    Supervised::spawn(command(folder.path(), &[SMALL, overrides].concat()), folder)
}

/// Start a supervisor with the shipped preset called `name` and `overrides`.
pub fn start_preset(name: &str, overrides: &[&str]) -> Supervised {
    let folder = tempfile::tempdir().unwrap();
    let preset = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("configs/{name}.toml"));
    let all = [&["run.metrics_interval_s=0.1", "machine.affinity=false"][..], overrides].concat();
    Supervised::spawn(command_of(&preset, folder.path(), &all), folder)
}

/// As [`start`], but in the registry of another run, so that the two know of each other. Drop it before the other.
pub fn start_beside(other: &Supervised, overrides: &[&str]) -> Supervised {
    let folder = tempfile::tempdir().unwrap();
    let child = command(folder.path(), &[SMALL, overrides].concat()).env("XDG_RUNTIME_DIR", other.folder.path()).spawn().unwrap();
    Supervised { child, folder, said: String::new() }
}

/// The count called `key` in a line of a run's files, where each line has it.
#[track_caller]
pub fn number(line: &Value, key: &str) -> u64 {
    let Some(number) = line[key].as_u64() else { panic!("no count `{key}` in {line}") };
    number
}

/// The complete checkpoints of the run in `folder`, the oldest first.
pub fn checkpoints_in(folder: &Path) -> Vec<PathBuf> {
    Checkpoints::new(folder.join("checkpoints")).list().unwrap()
}

/// The values bit for bit, with which parameters are compared.
pub fn bits(values: &[f32]) -> Vec<u32> {
    values.iter().map(|value| value.to_bits()).collect()
}

impl Supervised {
    /// Start a supervisor that [`command`] made for `folder`.
    pub fn spawn(mut command: Command, folder: tempfile::TempDir) -> Self {
        Self { child: command.spawn().unwrap(), folder, said: String::new() }
    }

    /// The program `name`, which finds the run.
    pub fn program(&self, name: &str) -> Command {
        program(name, self.folder.path())
    }

    /// What one of the binaries tells that finds the run.
    #[track_caller]
    pub fn ask(&self, name: &str, arguments: &[&str]) -> String {
        told(&self.program(name).args(arguments).output().unwrap())
    }

    /// A supervisor that does `action`, which is `resume` or `adopt`, to the run, with these arguments after its folder.
    pub fn command_to(&self, action: &str, arguments: &[&str]) -> Command {
        let mut command = self.program("supervisor");
        command.arg(action).arg(self.run_folder()).args(arguments).stdout(Stdio::null()).stderr(Stdio::piped());
        command
    }

    /// Once the run has ended: go on with it, with these arguments after its folder.
    pub fn resume(&mut self, arguments: &[&str]) {
        self.go_on(&mut self.command_to("resume", arguments));
    }

    /// Once the supervisor was killed: go on with its run in the memory in which it was kept, with these arguments after its folder.
    pub fn adopt(&mut self, arguments: &[&str]) {
        self.go_on(&mut self.command_to("adopt", arguments));
    }

    /// The output of another command that wants to adopt the run.
    pub fn adopt_elsewhere(&self, arguments: &[&str]) -> String {
        said(&self.command_to("adopt", arguments).output().unwrap())
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
        wait_until("all who train to leave", || self.state(), || self.workers().is_empty());
    }

    /// Wait until all that the supervisor had forked is gone.
    pub fn wait_for_end_of_all(&self) {
        wait_until("the end of all that a killed supervisor had forked", || self.state(), || self.all_processes().is_empty());
    }

    /// The complete checkpoints, the oldest first.
    pub fn checkpoints(&self) -> Vec<PathBuf> {
        checkpoints_in(&self.run_folder())
    }

    /// The errors of another command that wants to resume the run.
    pub fn resume_elsewhere(&self) -> String {
        said(&self.command_to("resume", &[]).output().unwrap())
    }

    /// How the run would go on, as `--check` has it.
    pub fn plan_to_resume(&self) -> String {
        said(&self.command_to("resume", &["--check"]).output().unwrap())
    }

    /// Once the run has ended: start another with the small configuration and `overrides` in its folder.
    pub fn start_again(&mut self, overrides: &[&str]) {
        self.go_on(&mut command(self.folder.path(), &[SMALL, overrides].concat()));
    }

    /// Let what `command` starts take the place of a supervisor that has ended. What that one said is forgotten.
    fn go_on(&mut self, command: &mut Command) {
        assert!(!self.is_running(), "the run has not ended");
        self.said.clear();
        self.child = command.spawn().unwrap();
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

    /// Move the folder of the run, as somebody does who archives it, to a place called `name`. [`Self::run_folder`] leads there then.
    pub fn move_folder(&self, name: &str) -> PathBuf {
        let (latest, moved) = (self.run_folder(), self.folder.path().join(name));
        std::fs::rename(latest.canonicalize().unwrap(), &moved).unwrap();
        std::fs::remove_file(&latest).and_then(|()| std::os::unix::fs::symlink(&moved, &latest)).unwrap();
        moved
    }

    /// How the run stands, for the message of a wait that was in vain.
    fn state(&self) -> String {
        let [metrics, evaluation] = [self.metrics(), self.evaluations()].map(|mut lines| lines.pop().unwrap_or_default());
        format!("the newest metrics: {metrics}, the newest evaluation: {evaluation}, the log:\n{}", self.log())
    }

    #[track_caller]
    fn look_every<T>(&mut self, pause: Duration, awaited: &str, mut look: impl FnMut(&Self) -> Option<T>) -> T {
        let watchdog = Watchdog::new(awaited);
        loop {
            if let Some(found) = look(self) {
                return found;
            }
            assert!(self.is_running(), "the run ended before {awaited}: {}", self.output());
            watchdog.pause(pause, || self.state());
        }
    }

    /// Wait until `look` finds something, while the run goes on.
    #[track_caller]
    pub fn look_for<T>(&mut self, awaited: &str, look: impl FnMut(&Self) -> Option<T>) -> T {
        self.look_every(PAUSE, awaited, look)
    }

    /// Wait until `condition` holds, while the run goes on.
    #[track_caller]
    pub fn wait_until(&mut self, awaited: &str, mut condition: impl FnMut() -> bool) {
        self.look_for(awaited, |_| condition().then_some(()));
    }

    /// Wait until the run's metrics satisfy `condition`, and return the line that does.
    #[track_caller]
    pub fn wait_for(&mut self, awaited: &str, condition: impl Fn(&Value) -> bool) -> Value {
        // There are many lines to look at.
        self.look_every(4 * PAUSE, awaited, |run| run.metrics().into_iter().rev().find(&condition))
    }

    /// Wait until there are more than `count` updates, and return the line of metrics that tells so.
    #[track_caller]
    pub fn wait_for_updates(&mut self, count: u64) -> Value {
        self.wait_for(&format!("more than {count} updates"), |line| line["updates"].as_u64() > Some(count))
    }

    /// Wait until the run's evaluations satisfy `condition`.
    #[track_caller]
    pub fn wait_for_evaluations(&mut self, awaited: &str, condition: impl Fn(&[Value]) -> bool) {
        self.look_for(awaited, |run| condition(&run.evaluations()).then_some(()));
    }

    /// All lines of `metrics.jsonl` so far.
    pub fn metrics(&self) -> Vec<Value> {
        self.lines("metrics.jsonl")
    }

    /// All lines of `evaluations.jsonl` so far.
    pub fn evaluations(&self) -> Vec<Value> {
        self.lines("evaluations.jsonl")
    }

    /// The weights that the run has saved last.
    #[track_caller]
    pub fn last_weights(&self) -> PolicyWeights {
        PolicyWeights::load(&self.run_folder().join("weights/last.safetensors")).unwrap()
    }

    /// What `run.json` says.
    pub fn record(&self) -> Value {
        serde_json::from_slice(&std::fs::read(self.run_folder().join("run.json")).unwrap()).unwrap()
    }

    /// What an audit from outside says of the tree.
    pub fn tree_verdict(&self) -> String {
        let output = self.program("inspect").args([&self.pid().to_string(), "--json", "--interval-ms", "1"]).output();
        let report: Value = serde_json::from_slice(&output.unwrap().stdout).unwrap_or_default();
        report["tree"]["verdict"].as_str().unwrap_or("none").to_owned()
    }

    /// Assert that the tree is exact. As long as others change it no look can tell, so it is looked at until one does.
    pub fn assert_tree_is_exact(&mut self) {
        self.look_for("a look that finds the tree exact", |run| {
            let verdict = run.tree_verdict();
            assert!(verdict != "inconsistent", "the sums of the tree are wrong; the log:\n{}", run.log());
            (verdict == "exact").then_some(())
        });
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
        let is_there = || self.log().get(bytes..).is_some_and(|log| log.contains(text));
        wait_until(&format!("`{text}` in the log"), || self.state(), is_there);
    }

    /// The run's segment, with the right to change it.
    pub fn segment(&self) -> Segment {
        let name = self.segment_name().expect("the run has a segment");
        Segment::attach(&name).unwrap()
    }

    /// The run's segment, without the right to change it: whoever looks at it in this way may do so beyond the end of the run.
    #[track_caller]
    pub fn segment_read_only(&self) -> Segment {
        let name = self.segment_name().expect("the run has a segment");
        Segment::attach_read_only(&name).unwrap()
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
        let Ok(segment) = Segment::attach_read_only(&name) else { return Vec::new() };
        living(&segment, role).into_iter().map(|(_, pid)| pid).collect()
    }

    /// Everybody who trains.
    pub fn workers(&self) -> Vec<u32> {
        ["learner", "actor", "evaluator"].into_iter().flat_map(|role| self.processes(role)).collect()
    }

    /// Wait until a process plays `role`, and return its id.
    pub fn wait_for_process(&self, role: &str) -> u32 {
        wait_for(&format!("a process that is {role}"), || self.state(), || self.processes(role).first().copied())
    }

    /// Send a signal to the supervisor.
    pub fn signal(&self, signal: Signal) {
        kill(self.pid(), signal);
    }

    /// Wait for the supervisor to end by itself.
    pub fn wait(&mut self) -> ExitStatus {
        let watchdog = Watchdog::new("the end of the supervisor");
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            watchdog.pause(PAUSE, || self.state());
        }
    }

    /// Wait for the supervisor to end by itself, with success.
    #[track_caller]
    pub fn succeed(&mut self) {
        let status = self.wait();
        assert!(status.success(), "{}", self.output());
    }

    /// End the run by a signal to its supervisor, which must leave in good order and say by its exit code what ended it.
    pub fn end_by(&mut self, signal: Signal) {
        self.signal(signal);
        let status = self.wait();
        assert_eq!(status.code(), Some(128 + signal as i32), "{}", self.output());
    }

    /// Wait without a pause until the supervisor has noted its end in `run.json`: it then removes what it made.
    pub fn spin_until_finished(&self) {
        let watchdog = Watchdog::new("the end that the supervisor notes");
        let record = self.run_folder().join("run.json");
        let finished = || {
            let record = std::fs::read(&record).unwrap_or_default();
            serde_json::from_slice::<Value>(&record).is_ok_and(|record| record["finished"].is_object())
        };
        while !finished() {
            watchdog.pause(Duration::ZERO, || self.state());
        }
    }

    /// What the supervisor wrote to standard error. Only after it has ended.
    pub fn output(&mut self) -> String {
        if let Some(mut stderr) = self.child.stderr.take() {
            let _ = stderr.read_to_string(&mut self.said);
        }
        self.said.clone()
    }

    /// Assert that nothing of the run is left: no process, no shared memory, no socket.
    pub fn assert_nothing_left(&self) {
        let left = || (segments_of(self.pid()), self.all_processes(), sockets_in(self.folder.path()));
        let is_nothing = || {
            let (segments, processes, sockets) = left();
            segments.is_empty() && processes.is_empty() && sockets.is_empty()
        };
        wait_until("nothing to be left of the run", || format!("left are {:?}", left()), is_nothing);
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
        self.all_processes().into_iter().for_each(|pid| _ = try_kill(pid, Signal::SIGKILL));
        name.map(|name| shoal::segment::object::remove(&name));
    }
}
