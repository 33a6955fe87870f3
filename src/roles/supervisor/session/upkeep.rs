//! What has to be there for as long as the run goes on, even if somebody takes it away: the sentinel, the run's place
//! in the registry, and its folder. And what must not stay: orphans that are given to the supervisor.

use std::time::{Duration, Instant};

use nix::unistd::Pid;

use super::super::products_peak::ProductsPeak;
use super::super::salvage::Salvage;
use super::super::sentinel::Sentinel;
use super::{Session, SupervisorError};
use crate::rendezvous::{Listener, Registry};
use crate::segment::orphans::Orphans;
use crate::telemetry::RunFolder;

/// Time between two looks at the registry, the folder and orphans.
const LOOK_INTERVAL: Duration = Duration::from_secs(5);
/// Time after which a sentinel that is gone is replaced.
const PAUSE: Duration = Duration::from_secs(1);

/// When to look again at what has to be there.
#[derive(Debug)]
pub(super) struct Upkeep {
    look_at: Instant,
    sentinel_at: Instant,
    orphans: Orphans,
}

impl Upkeep {
    pub(super) fn new() -> Self {
        Self { look_at: Instant::now() + LOOK_INTERVAL, sentinel_at: Instant::now(), orphans: Orphans::from_now_on() }
    }
}

impl Session {
    /// Put back what is gone.
    pub(super) fn keep_up(&mut self) {
        if Instant::now() >= self.upkeep.look_at {
            self.upkeep.look_at = Instant::now() + LOOK_INTERVAL;
            self.follow_folder();
            self.lock_folder_again();
            self.upkeep.orphans.reap(self.children());
            if self.announcement.is_gone() {
                match self.announce_again() {
                    Ok(()) => self.sinks.event("somebody had removed the run from the registry: it is there again"),
                    Err(error) => self.sinks.trouble(error.to_string(), &format!("nobody finds the run in the registry: {error}")),
                }
            }
        }
        if self.sentinel.as_ref().is_some_and(Sentinel::has_ended) {
            self.sentinel = None;
            self.upkeep.sentinel_at = Instant::now() + PAUSE;
            self.sinks.event("the sentinel, which sees to what a killed supervisor leaves, was killed: another takes its place");
        }
        if self.sentinel.is_none() && Instant::now() >= self.upkeep.sentinel_at {
            self.upkeep.sentinel_at = Instant::now() + PAUSE;
            if let Err(error) = self.fork_sentinel() {
                self.sinks.trouble(error.to_string(), &format!("the sentinel could not be started: {error}"));
            }
        }
    }

    /// The children that this process waits for.
    fn children(&self) -> impl Iterator<Item = Pid> {
        let living = self.watched.iter().filter_map(|watched| Some(watched.living.as_ref()?.pid));
        let writer = self.checkpoints.process();
        let measuring = self.peak.as_ref().and_then(ProductsPeak::process);
        living.chain(writer).chain(measuring).chain(self.sentinel.as_ref().map(Sentinel::pid))
    }

    /// The folder of the run, where it is now: whatever is about to be written there asks for it.
    pub(super) fn folder(&mut self) -> &RunFolder {
        self.follow_folder();
        self.sinks.folder()
    }

    /// Have results go to where the folder of the run is now, and the registry name that: somebody may have moved it.
    fn follow_folder(&mut self) {
        if let Some(folder) = self.sinks.folder().moved() {
            self.checkpoints.follow(&folder);
            let announced = self.announcement.follow(folder.path());
            self.sinks.follow(folder);
            if let Err(error) = announced {
                self.sinks.trouble(error.to_string(), &format!("the registry names the folder in which the run began: {error}"));
            }
        }
    }

    /// Lock the folder of the run again, if somebody has removed the file that was locked. The sentinel has that one: it goes, and the next
    /// has what is locked now.
    fn lock_folder_again(&mut self) {
        if self.sinks.take_folder_anew() {
            self.sinks.event("somebody had removed .lock from the folder of the run, which keeps others out: it is there again");
            self.sentinel.take().into_iter().for_each(Sentinel::dismiss);
        }
    }

    fn fork_sentinel(&mut self) -> Result<(), SupervisorError> {
        let folder = self.sinks.folder();
        let salvage = self.checkpoints.is_enabled().then_some(Salvage { prepared: &self.prepared, folder });
        // A caller that waits for the end of this process must not wait for that of the sentinel.
        let (attachments, reports) = (&mut self.attachments, &mut self.reports);
        let let_go = || {
            attachments.leave_to_supervisor();
            *reports = None;
        };
        self.sentinel = Some(Sentinel::fork(&self.segment, &self.announcement, folder, salvage, let_go)?);
        Ok(())
    }

    fn announce_again(&mut self) -> Result<(), SupervisorError> {
        // Its folder may be gone, too, and by now the variable may lead to another one.
        if let Some(registry) = self.announcement.socket().parent() {
            Registry::open_at(registry.to_path_buf())?;
        }
        if !self.announcement.socket().exists() {
            self.attachments.listen_at(Listener::bind(self.announcement.socket())?);
        }
        Ok(self.announcement.publish()?)
    }
}
