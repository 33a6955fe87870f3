//! Runs are found by their records, and joined by a handshake, whatever lies in the registry and whoever connects.

#[path = "support"]
mod support {
    pub(crate) mod counts;
    pub(crate) mod forked;
    pub(crate) mod object;
    pub(crate) mod skipped;
}

#[path = "rendezvous/handshake.rs"]
mod handshake;
#[path = "rendezvous/leftovers.rs"]
mod leftovers;
#[path = "rendezvous/registry.rs"]
mod registry;

use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::Pid;
use shoal::rendezvous::{Announcement, RegisteredRun, Registry, RendezvousError};
use shoal::segment::{Segment, system};
use support::forked::{Run, Sizes};
use tempfile::TempDir;

/// A run, and a registry of its own.
struct Place {
    run: Run,
    registry: Registry,
    folder: TempDir,
}

impl Place {
    fn new() -> Self {
        let run = Run::new(Sizes { capacity: 9, staged_rows: 4, ..Sizes::default() });
        let folder = tempfile::tempdir().unwrap();
        let registry = Registry::open_at(folder.path().join("shoal")).unwrap();
        Self { run, registry, folder }
    }

    /// What the supervisor of `segment` says of it.
    fn record_of(&self, segment: &Segment) -> RegisteredRun {
        let description = segment.description().unwrap();
        RegisteredRun {
            identity: segment.identity().clone(),
            segment: segment.name().into(),
            socket: self.registry.socket_path(segment.identity().supervisor_pid),
            run_folder: description.run_folder,
            environment: description.environment,
            algorithm: description.algorithm,
            program_version: description.program_version,
        }
    }

    fn record(&self) -> RegisteredRun {
        self.record_of(&self.run.segment)
    }

    /// Show a run to everybody; whether somebody listens is the test's concern.
    fn announce(&self, record: &RegisteredRun) -> Result<Announcement, RendezvousError> {
        let announcement = self.registry.reserve(record)?;
        announcement.publish()?;
        Ok(announcement)
    }

    /// A second segment, whose supervisor is the calling process.
    fn segment(&self) -> Segment {
        let layout = self.run.segment.layout().clone();
        Segment::create(layout, &self.run.segment.description().unwrap(), false).unwrap()
    }

    fn file_names(&self) -> Vec<String> {
        let files = std::fs::read_dir(self.registry.folder()).unwrap();
        let mut names: Vec<String> = files.map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

/// A child of the test; killed and reaped when dropped.
struct Child(Option<Pid>);

impl Child {
    fn fork(body: impl FnOnce() -> i32) -> Self {
        Self(Some(system::fork_child(body).expect("fork")))
    }

    fn pid(&self) -> u32 {
        self.0.expect("a child that was not reaped").as_raw().cast_unsigned()
    }

    fn signal(&self, signal: Signal) {
        kill(self.0.expect("a child that was not reaped"), signal).unwrap();
    }

    /// Wait for its end; afterwards its process id is free.
    fn reap(&mut self) -> WaitStatus {
        waitpid(self.0.take().expect("a child that was not reaped"), None).unwrap()
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        if let Some(pid) = self.0.take() {
            let _ = kill(pid, Signal::SIGKILL);
            let _ = waitpid(pid, None);
        }
    }
}

/// Do nothing until killed.
fn sleep_for_ever() -> ! {
    loop {
        std::thread::sleep(std::time::Duration::from_secs(1));
    }
}
