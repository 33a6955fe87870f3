//! What is tried before a run starts: the folder of its results, and in a process of their own the learner's device and one step of the
//! environment. What is wrong is told once, at the key that it follows from, and not by the third process that fails of it.

use std::io::{Read, Write, pipe};
use std::path::{Path, PathBuf};
use std::time::Duration;

use indicatif::BinaryBytes;
use nix::sys::signal::{Signal, kill};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::retry_on_intr;

use super::resumption::name_of_folders;
use super::{Plan, Prepared, Resumption, SupervisorError, remarks};
use crate::checkpoint::{bytes_of_largest_checkpoint, free_bytes};
use crate::config::schema::KeepReplay;
use crate::config::{Config, Resume};
use crate::environments::{ActionSpace, Actions, EnvironmentError, VectorEnvironment, video};
use crate::networks::{self, Device};
use crate::rendezvous::Registry;
use crate::roles::configured_environment;
use crate::segment::{Identity, system};
use crate::telemetry::{CHARTS, RunFolder};

impl Prepared {
    /// Try everything that a run needs and that can be tried without starting one: what the kernel tells of processes, the device, the
    /// environment, the run folder and the room on its disk; what a new run starts from; of a run that goes on, its folder, and all of its
    /// replay, which may take a while. Whether it goes on, and where, or what it starts from, is added to the plan.
    ///
    /// # Errors
    /// The first that fails, with its key and place.
    pub fn check(&self, plan: &mut Plan, resumption: Option<&Resumption>) -> Result<(), SupervisorError> {
        plan.removals().into_iter().for_each(|removal| plan.remark(removal));
        Identity::of_this_process().check_that_processes_are_known()?;
        match resumption {
            Some(resumption) => {
                plan.set_run_folder(resumption.folder().path());
                plan.remark(resumption.describe(&self.loaded.config));
            }
            None => {
                if self.loaded.config.run.resume == Resume::Auto {
                    plan.remark(format!(
                        "run.resume is \"auto\", and no run called {} waits to go on: a new one begins",
                        name_of_folders(&self.loaded.config)
                    ));
                }
                if let Some(point) = self.starting_point()? {
                    plan.remark(point.describe());
                }
            }
        }
        let existing = resumption.map(Resumption::folder);
        self.check_run_folder(existing)?;
        self.check_room(existing)?;
        resumption.map_or(Ok(()), Resumption::check_replay)?;
        Registry::open()?.check_free(std::process::id())?;
        self.check_videos()?;
        self.check_environment()?;
        self.check_learner()
    }

    /// What is tried whenever a run starts, because it costs nothing, or because only an attempt is certain. A run that goes on does so in
    /// the folder `existing`.
    pub(super) fn check_briefly(&self, existing: Option<&RunFolder>) -> Result<(), SupervisorError> {
        self.check_run_folder(existing)?;
        self.check_videos()?;
        if needs_an_attempt(&self.loaded.config) { self.check_learner() } else { Ok(()) }
    }

    /// Whether something can be made where the run's files will be: if it goes on, in the `existing` folder, and in any case among the
    /// charts beside it.
    fn check_run_folder(&self, existing: Option<&RunFolder>) -> Result<(), SupervisorError> {
        let Some(folder) = existing else {
            self.loaded.check_folder_has_no_home()?;
            let charts = Path::new(&self.loaded.config.run.folder).join(CHARTS);
            self.check_leads_somewhere(&charts)?;
            let root = self.run_root();
            if !root.is_dir() {
                return Err(self.refuse_folder(format!("{} is no folder; choose another run.folder", root.display())));
            }
            self.check_is_utf8(&root, "choose another run.folder")?;
            self.check_is_writable(&root, "choose a run.folder that you may write to")?;
            // Several users may share the root, and whose run was the first has made the folder of the charts.
            return if charts.exists() {
                self.check_is_writable(&charts, "make it writable, or choose another run.folder")
            } else {
                Ok(())
            };
        };
        self.check_is_utf8(folder.path(), "rename it")?;
        self.check_is_writable(folder.path(), "make it writable")?;
        let charts = folder.charts().join(folder.id());
        let nearest = charts.ancestors().find(|path| path.exists()).unwrap_or(&charts);
        self.check_is_writable(nearest, "make it writable, or move the run")
    }

    /// Refuse a link on the way to `folder` that leads to nothing: no folder can be made there, nor through it.
    fn check_leads_somewhere(&self, folder: &Path) -> Result<(), SupervisorError> {
        let Some(link) = folder.ancestors().find(|path| path.is_symlink() && !path.exists()) else { return Ok(()) };
        let target = link.read_link().unwrap_or_default();
        let (link, target) = (link.display(), target.display());
        Err(self.refuse_folder(format!("{link} is a link to {target}, which is not there; make that, or choose another run.folder")))
    }

    fn check_is_utf8(&self, folder: &Path, advice: &str) -> Result<(), SupervisorError> {
        match folder.canonicalize().ok().filter(|path| path.to_str().is_none()) {
            None => Ok(()),
            Some(path) => {
                let path = path.display();
                Err(self.refuse_folder(format!("the path {path} is not UTF-8, and the records of a run cannot hold it; {advice}")))
            }
        }
    }

    fn check_is_writable(&self, folder: &Path, advice: &str) -> Result<(), SupervisorError> {
        // Permissions, a read-only disk, a quota: only an attempt knows them all. The new folder goes at once.
        match tempfile::Builder::new().prefix(".shoal-check-").tempdir_in(folder) {
            Ok(_) => Ok(()),
            Err(error) => Err(self.refuse_folder(format!("no folder can be made in {}: {}; {advice}", folder.display(), error.kind()))),
        }
    }

    /// Whether the disk has room for the best weights, the last ones, and the file that replaces either.
    fn check_room(&self, existing: Option<&RunFolder>) -> Result<(), SupervisorError> {
        let needed = 3 * size_of::<f32>() as u64 * self.algorithm().sizes().published as u64;
        let folder = existing.map_or_else(|| self.run_root(), |folder| folder.path().to_path_buf());
        let Ok(free) = free_bytes(&folder) else { return Ok(()) };
        if free >= needed {
            return Ok(());
        }
        let (free, needed) = (BinaryBytes(free), BinaryBytes(needed));
        Err(self.refuse_folder(format!(
            "the disk has {free} left and the run's weights take {needed}; free space{}",
            if existing.is_some() { "" } else { " or choose another run.folder" }
        )))
    }

    /// What is to be said if the disk will not take as many checkpoints of a new run as it has to.
    pub(super) fn remark_on_room_for_checkpoints(&self, plan: &Plan) -> Option<String> {
        let config = &self.loaded.config;
        // A step makes one row at most, and one frame or, with the reset after it, two.
        let records = config.run.stop_env_steps.saturating_mul(2);
        let has_replay = config.checkpoint.replay != KeepReplay::Never;
        let bytes = bytes_of_largest_checkpoint(&plan.layout, has_replay.then_some(records));
        remarks::few_checkpoints_fit(config, bytes, free_bytes(&self.run_root()).ok()?)
    }

    /// The run folder's root, or else the nearest of the folders around it that exists.
    fn run_root(&self) -> PathBuf {
        let root = Path::new(&self.loaded.config.run.folder);
        let existing = root.ancestors().find(|path| path.exists()).filter(|path| !path.as_os_str().is_empty());
        existing.unwrap_or(Path::new(".")).to_path_buf()
    }

    fn refuse_folder(&self, message: String) -> SupervisorError {
        let advice = if self.loaded.is_set("run.folder") { "" } else { " (--set run.folder=PATH)" };
        self.loaded.error_at("run.folder", format!("{message}{advice}")).into()
    }

    /// Whether videos can be made as they are wanted.
    fn check_videos(&self) -> Result<(), SupervisorError> {
        let visualizer = &self.loaded.config.visualizer;
        let makes_videos = visualizer.enabled && visualizer.video_interval_s.is_some();
        let checked = if makes_videos { video::check_ending(visualizer.video_format.ending()) } else { Ok(()) };
        checked.map_err(|error| self.loaded.error_at("visualizer.video_format", error.to_string()).into())
    }

    /// One reset and one step of an environment that Python does not step; those in Python were tried when they were described.
    fn check_environment(&self) -> Result<(), SupervisorError> {
        let request = configured_environment::request(&self.loaded.config);
        if request.needs_python() {
            return Ok(());
        }
        let try_out = || -> Result<(), EnvironmentError> {
            let mut made = VectorEnvironment::new(vec![self.catalogue.environments().make(&request)?])?;
            made.reset(self.loaded.config.run.seed)?;
            match made.spec().action.clone() {
                ActionSpace::Discrete { .. } => made.step(Actions::Discrete(&[0])),
                ActionSpace::Box { low, high } => {
                    let nearest_to_zero: Vec<f32> = low.iter().zip(high).map(|(low, high)| 0.0_f32.max(*low).min(high)).collect();
                    made.step(Actions::Continuous(&nearest_to_zero))
                }
            }
        };
        in_a_child(request.patience, || try_out().map_err(|error| error.to_string()))?
            .map_err(|message| self.loaded.error_at("environment.id", message).into())
    }

    /// Build the learners' networks where they will be, and save their state once: an algorithm of a program's own may need more room for
    /// it than it says.
    fn check_learner(&self) -> Result<(), SupervisorError> {
        let config = &self.loaded.config;
        let build = |number| -> Result<(), String> {
            let algorithm = self.algorithm_of_learner(number);
            let learning = algorithm.learning(config.run.seed).map_err(|error| error.to_string())?;
            learning.save(&mut vec![0.0; algorithm.sizes().state]);
            Ok(())
        };
        let key = if lacks_engine(config) { "network.engine" } else { "learner.device" };
        // CUDA may take as long as it likes.
        (0..config.learner.devices().len()).try_for_each(|number| {
            in_a_child(Duration::MAX, || build(number))?.map_err(|message| self.loaded.error_at(key, message).into())
        })
    }
}

/// Whether learners may not find what they compute with: a GPU, or an engine that this program has not. The driver's files may be hidden
/// in a container, and show GPUs that nobody can use: the driver is too old, libtorch not built for them, or another process has them for
/// itself. An attempt takes as long as CUDA takes to start, so on CPUs there is none.
fn needs_an_attempt(config: &Config) -> bool {
    config.learner.uses_gpu() || lacks_engine(config)
}

/// Whether this program has not the engine that is asked for, whatever the device.
fn lacks_engine(config: &Config) -> bool {
    networks::check_is_built(config.network.engine, Device::Cpu).is_err()
}

/// Run `attempt` in a process of its own: the supervisor itself computes nothing, so that it can fork at any time. One that takes longer
/// than `patience` is killed, and has failed.
fn in_a_child(patience: Duration, attempt: impl Fn() -> Result<(), String>) -> Result<Result<(), String>, SupervisorError> {
    let (mut reader, mut writer) = pipe().map_err(|source| SupervisorError::System { action: "opening a pipe", source })?;
    let child = system::fork_child(|| match attempt() {
        Ok(()) => 0,
        Err(message) => {
            let _ = writer.write_all(message.as_bytes());
            1
        }
    })?;
    drop(writer);
    let mut message = String::new();
    // Readable once the attempt has failed, or its process has ended.
    let limit = Timespec::try_from(patience).ok();
    if retry_on_intr(|| poll(&mut [PollFd::new(&reader, PollFlags::IN)], limit.as_ref())) == Ok(0) {
        let _ = kill(child, Signal::SIGKILL);
        let seconds = patience.as_secs_f64();
        message = format!(
            "the process that tried it had not ended after {seconds} s; raise machine.hang_timeout_s above that if it takes longer"
        );
    } else {
        let _ = reader.read_to_string(&mut message);
    }
    if system::wait_for_children(&[child]) {
        return Ok(Ok(()));
    }
    Ok(Err(if message.is_empty() { "the process that tried it died; what it wrote is above".to_owned() } else { message }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::schema::Engine;

    #[test]
    fn only_learners_on_gpus_and_without_their_engine_are_tried_before_a_run() {
        let mut config = Config::for_environment("CartPole-v1");
        assert!(!needs_an_attempt(&config), "on a CPU nothing slows a start");
        config.network.engine = Engine::Torch;
        assert_eq!(needs_an_attempt(&config), !cfg!(feature = "torch"));
        config.network.engine = Engine::Auto;
        for device in ["cuda:0", "cpu,cuda:0"] {
            config.learner.device = device.into();
            assert!(needs_an_attempt(&config), "{device}");
        }
    }

    #[test]
    fn an_attempt_fails_in_its_own_words_or_for_taking_too_long() {
        assert_eq!(in_a_child(Duration::MAX, || Ok(())).unwrap(), Ok(()));
        assert_eq!(in_a_child(Duration::MAX, || Err("it is broken".into())).unwrap(), Err("it is broken".into()));
        let hang = || {
            std::thread::sleep(Duration::from_hours(1));
            Ok(())
        };
        let late = in_a_child(Duration::from_millis(1), hang).unwrap().unwrap_err();
        assert!(late.contains("after 0.001 s") && late.contains("machine.hang_timeout_s above that"), "{late}");
    }
}
