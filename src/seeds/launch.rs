//! Supervisors as child processes, a few at a time.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::SeedsError;
use crate::segment::orphans::Orphans;
use crate::segment::system;
use crate::telemetry::{LATEST, plain_name, point_latest};

/// Time between two looks at the children.
const LOOK: Duration = Duration::from_millis(50);
/// Time between two of [`Event::Running`].
const TELL: Duration = Duration::from_millis(500);

/// Name of the file with the configuration of all seeds, in their folder.
const CONFIG: &str = "config.toml";

/// How to start a supervisor for each seed.
#[derive(Debug, Clone)]
pub struct Launch {
    /// The program.
    pub program: PathBuf,
    /// Its first arguments, which `train CONFIG --set run.seed=N --set run.folder=FOLDER` follows.
    pub arguments: Vec<OsString>,
    /// The content of CONFIG, in TOML.
    pub configuration: String,
    /// The folder of all seeds.
    pub folder: PathBuf,
    /// How many run at a time.
    pub jobs: usize,
}

/// A supervisor that has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ended {
    /// Its seed.
    pub seed: u64,
    /// What became of it.
    pub outcome: Outcome,
}

/// What became of a supervisor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// It could not be started, for this reason.
    NotStarted(String),
    /// It exited with success.
    Succeeded,
    /// A signal ended it early, as when the command is to stop.
    Interrupted,
    /// The signal of this name killed it, one that does not ask it to end.
    Killed(String),
    /// It exited without success.
    Failed,
}

impl From<ExitStatus> for Outcome {
    fn from(status: ExitStatus) -> Self {
        // Its exit code says that a signal ended its run, or a signal ended the supervisor itself.
        let is_by = |signal: Signal| status.code() == Some(128 + signal as i32) || status.signal() == Some(signal as i32);
        let was_interrupted = system::STOP_SIGNALS.into_iter().any(is_by);
        match status.signal() {
            _ if was_interrupted => Self::Interrupted,
            Some(number) => Self::Killed(name_of_signal(number)),
            None if status.success() => Self::Succeeded,
            None => Self::Failed,
        }
    }
}

/// What happens while supervisors run.
#[derive(Debug, Clone, Copy)]
pub enum Event<'a> {
    /// The file of the program has been replaced since the first seed, and this seed is about to be started from it.
    Replaced(u64),
    /// A supervisor has ended.
    Ended(&'a Ended),
    /// Supervisors of these seeds run. Reported now and then.
    Running(&'a [u64]),
}

impl Launch {
    /// Makes a folder below `root` for all seeds of the run `name`. It is called by the time (UTC) and the name, and
    /// a number if that is taken.
    ///
    /// # Errors
    /// The folder cannot be made, or no configuration can hold its name.
    pub fn make_folder(root: &Path, name: &str) -> Result<PathBuf, SeedsError> {
        fs::create_dir_all(root).map_err(SeedsError::file("create", root))?;
        let plain = plain_name(name);
        let base = format!("{}-{plain}-seeds", jiff::Timestamp::now().strftime("%Y%m%d-%H%M%S"));
        let names = std::iter::once(base.clone()).chain((2..).map(|number| format!("{base}-{number}")));
        for path in names.map(|name| root.join(name)) {
            if path.to_str().is_none() {
                return Err(SeedsError::FolderName { path });
            }
            match fs::create_dir(&path) {
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                made => return made.map(|()| path.clone()).map_err(SeedsError::file("create", &path)),
            }
        }
        unreachable!("there is always another number")
    }

    /// The file to which the standard error of the supervisor of `seed` goes.
    pub fn log(&self, seed: u64) -> PathBuf {
        self.folder.join(format!("seed-{seed}.log"))
    }

    /// The file with the configuration of all seeds. It is a copy, whatever becomes of the file that the user named.
    pub fn config(&self) -> PathBuf {
        self.folder.join(CONFIG)
    }

    /// Runs a supervisor for each of `seeds`, and `tell`s what happens. At a stop signal the running supervisors are
    /// asked to end, which saves what they learned, and no other is started.
    ///
    /// # Errors
    /// The configuration cannot be written, or signals cannot be handled. A supervisor that cannot be started is no
    /// error; it is among those that have ended.
    pub fn run(&self, seeds: &[u64], mut tell: impl FnMut(Event<'_>)) -> Result<Vec<Ended>, SeedsError> {
        fs::write(self.config(), &self.configuration).map_err(SeedsError::file("write", &self.config()))?;
        system::handle_stop_signals()?;
        let orphans = Orphans::from_now_on();
        let mut waiting: VecDeque<u64> = seeds.iter().copied().collect();
        let mut running: Vec<(u64, Child)> = Vec::new();
        let mut all = Vec::new();
        let mut passed_on = 0;
        let mut newest = None;
        let mut told_at: Option<Instant> = None;
        let first_program = self.file_of_program();
        while !running.is_empty() || !waiting.is_empty() {
            if let Some(signal) = system::newest_stop_signal() {
                waiting.clear();
                // Each request is passed on once, by its own signal: one that comes a second after the first makes a
                // supervisor give up what it waits for, unless the first has warned of it.
                let signals = system::stops();
                if passed_on < signals {
                    running.iter().for_each(|(_, child)| ask_to_end(child, signal));
                    passed_on = signals;
                }
            }
            let told = all.len();
            while running.len() < self.jobs.max(1)
                && let Some(seed) = waiting.pop_front()
            {
                // Without a file, the seed is not started, which is told.
                if self.file_of_program().is_some_and(|file| Some(file) != first_program) {
                    tell(Event::Replaced(seed));
                }
                match self.start(seed) {
                    Ok(child) => running.push((seed, child)),
                    Err(error) => all.push(Ended { seed, outcome: Outcome::NotStarted(error.to_string()) }),
                }
            }
            running.retain_mut(|(seed, child)| {
                let Ok(Some(status)) = child.try_wait() else { return true };
                all.push(Ended { seed: *seed, outcome: status.into() });
                false
            });
            orphans.reap(running.iter().map(|(_, child)| Pid::from_raw(child.id().cast_signed())));
            all[told..].iter().for_each(|ended| tell(Event::Ended(ended)));
            if told_at.is_none_or(|at| at.elapsed() >= TELL) {
                tell(Event::Running(&running.iter().map(|(seed, _)| *seed).collect::<Vec<_>>()));
                told_at = Some(Instant::now());
            }
            let begun = fs::read_link(self.folder.join(LATEST)).ok();
            if begun.is_some() && begun != newest {
                self.lead_latest_here();
                newest = begun;
            }
            std::thread::sleep(LOOK);
        }
        all.sort_by_key(|ended| ended.seed);
        Ok(all)
    }

    /// Lets `latest` beside the folder of all seeds lead to the newest run in it.
    fn lead_latest_here(&self) {
        if let Some(root) = self.folder.parent()
            && let Some(name) = self.folder.file_name().and_then(|name| name.to_str())
        {
            // If the link cannot be made, the user still knows the folder, which was named at the start.
            let _ = point_latest(root, &format!("{name}/{LATEST}"));
        }
    }

    /// Device and number of the program's file, which no other file has as long as a process runs the program; `None`
    /// if there is no file.
    fn file_of_program(&self) -> Option<(u64, u64)> {
        fs::metadata(&self.program).ok().map(|file| (file.dev(), file.ino()))
    }

    fn start(&self, seed: u64) -> Result<Child, SeedsError> {
        let log_path = self.log(seed);
        let log = File::create(&log_path).map_err(SeedsError::file("create", &log_path))?;
        let set = |key: &str, value: &dyn std::fmt::Display| ["--set".to_owned(), format!("{key}={value}")];
        let folder = self.folder.to_str().ok_or_else(|| SeedsError::FolderName { path: self.folder.clone() })?;
        let folder = toml::Value::from(folder);
        let mut command = Command::new(&self.program);
        command.args(&self.arguments).arg("train").arg(self.config()).args(set("run.seed", &seed)).args(set("run.folder", &folder));
        // In a process group of its own, so that Ctrl+C reaches the supervisor through `ask_to_end` alone. If the
        // terminal's signal reached it too, ours could come a second later, as another request, which gives up the
        // last checkpoint.
        command.process_group(0);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).spawn().map_err(SeedsError::file("start", Path::new(&self.program)))
    }
}

fn name_of_signal(number: i32) -> String {
    Signal::try_from(number).map_or_else(|_| format!("signal {number}"), |signal| signal.to_string())
}

/// Asks a supervisor to end by the stop signal of this number: it lets its processes leave, saves the weights, and notes what ended it.
fn ask_to_end(child: &Child, signal: u32) {
    if let (Ok(pid), Ok(signal)) = (i32::try_from(child.id()), Signal::try_from(signal.cast_signed())) {
        // An error (ESRCH) would mean that it has just ended.
        let _ = kill(Pid::from_raw(pid), signal);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_that_ends_a_run_early_interrupts_its_seed_and_a_kill_does_not() {
        let outcome = |status| Outcome::from(ExitStatus::from_raw(status));
        for signal in system::STOP_SIGNALS.map(|signal| signal as i32) {
            assert_eq!(outcome((128 + signal) << 8), Outcome::Interrupted, "told of {signal}");
            assert_eq!(outcome(signal), Outcome::Interrupted, "ended by {signal}");
        }
        assert_eq!(outcome(Signal::SIGKILL as i32), Outcome::Killed("SIGKILL".into()));
        assert_eq!([0, 1 << 8].map(outcome), [Outcome::Succeeded, Outcome::Failed]);
    }
}
