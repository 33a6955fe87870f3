//! Supervisors as child processes, a few at a time.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::SeedsError;
use crate::segment::system;
use crate::telemetry::plain_name;

/// Time between two looks at the children.
const LOOK: Duration = Duration::from_millis(50);

/// What to start for each seed.
#[derive(Debug, Clone)]
pub struct Launch {
    /// The program.
    pub program: PathBuf,
    /// Its arguments, to which `--set run.seed=N` and `--set run.folder=FOLDER` are added.
    pub arguments: Vec<OsString>,
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
    /// Process id that it had, by which its run folder is found.
    pub pid: u32,
    /// Whether it ended well.
    pub succeeded: bool,
}

impl Launch {
    /// A folder below `root` for all seeds of a run of that name: the time (UTC) and the name, and a number if that is taken.
    pub fn free_folder(root: &Path, name: &str) -> PathBuf {
        let plain = plain_name(name);
        let base = format!("{}-{plain}-seeds", jiff::Timestamp::now().strftime("%Y%m%d-%H%M%S"));
        let names = std::iter::once(base.clone()).chain((2..).map(|number| format!("{base}-{number}")));
        names.map(|name| root.join(name)).find(|path| !path.exists()).expect("there is always another number")
    }

    /// Where the supervisor of `seed` writes what it would write on a terminal.
    pub fn log(&self, seed: u64) -> PathBuf {
        self.folder.join(format!("seed-{seed}.log"))
    }

    /// Run a supervisor for each of `seeds`, and call `ended` at the end of each. At a stop signal those that run are asked to end, which
    /// saves what they learned, and no other is started.
    ///
    /// # Errors
    /// A supervisor cannot be started; those that run are waited for first.
    pub fn run(&self, seeds: &[u64], mut ended: impl FnMut(&Ended)) -> Result<Vec<Ended>, SeedsError> {
        system::handle_stop_signals()?;
        fs::create_dir_all(&self.folder).map_err(SeedsError::file("create", &self.folder))?;
        let mut waiting: VecDeque<u64> = seeds.iter().copied().collect();
        let mut running: Vec<(u64, Child)> = Vec::new();
        let (mut all, mut failure, mut told) = (Vec::new(), None, 0);
        while !running.is_empty() || !waiting.is_empty() {
            if system::stop_requested() || failure.is_some() {
                waiting.clear();
                // Each once for each signal: another one gives up what the first still waits for.
                let asked = system::stops().max(1);
                if told < asked {
                    running.iter().for_each(|(_, child)| ask_to_end(child));
                    told = asked;
                }
            }
            while running.len() < self.jobs.max(1)
                && let Some(seed) = waiting.pop_front()
            {
                match self.start(seed) {
                    Ok(child) => running.push((seed, child)),
                    Err(error) => failure = Some(error),
                }
            }
            running.retain_mut(|(seed, child)| {
                let Ok(Some(status)) = child.try_wait() else { return true };
                let found = Ended { seed: *seed, pid: child.id(), succeeded: status.success() };
                ended(&found);
                all.push(found);
                false
            });
            std::thread::sleep(LOOK);
        }
        all.sort_by_key(|ended| ended.seed);
        failure.map_or(Ok(all), Err)
    }

    fn start(&self, seed: u64) -> Result<Child, SeedsError> {
        let log_path = self.log(seed);
        let log = File::create(&log_path).map_err(SeedsError::file("create", &log_path))?;
        let set = |key: &str, value: &dyn std::fmt::Display| ["--set".to_owned(), format!("{key}={value}")];
        let folder = self.folder.to_str().ok_or_else(|| SeedsError::FolderName { path: self.folder.clone() })?;
        let folder = toml::Value::from(folder);
        let mut command = Command::new(&self.program);
        command.args(&self.arguments).args(set("run.seed", &seed)).args(set("run.folder", &folder));
        // In a group of its own, so that it has Ctrl+C from here alone: twice would give its last checkpoint up.
        command.process_group(0);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).spawn().map_err(SeedsError::file("start", Path::new(&self.program)))
    }
}

/// As Ctrl+C does: the supervisor lets everybody leave and saves the weights.
fn ask_to_end(child: &Child) {
    if let Ok(pid) = i32::try_from(child.id()) {
        // ESRCH would mean that it has just ended.
        let _ = kill(Pid::from_raw(pid), Signal::SIGTERM);
    }
}
