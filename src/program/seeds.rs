//! The same run with several seeds.

use std::ffi::OsString;
use std::path::Path;

use clap::Args;

use super::end::{Code, FAILURE, SUCCESS, say};
use super::print::print;
use super::train::Train;
use crate::config::schema::Resume;
use crate::config::{ConfigErrors, Loaded};
use crate::machine::Host;
use crate::roles::supervisor::{RunOutcome, SupervisorError};
use crate::seeds::{Launch, Report, SeedList};
use crate::segment::system;

/// Which seeds, and how many at a time.
#[derive(Args)]
pub(crate) struct Seeds {
    /// Run once for each of these seeds, such as 1-5 or 1,3,8-10, and end in a table and a plot.
    #[arg(long, conflicts_with_all = ["check", "seed"])]
    seeds: Option<SeedList>,
    /// How many of them run at a time.
    #[arg(long, value_name = "COUNT", default_value_t = 1, requires = "seeds", value_parser = clap::value_parser!(u16).range(1..=256))]
    jobs: u16,
}

impl Seeds {
    /// Whether each seed is a run of its own, which looks for itself what it needs.
    pub(crate) fn are_asked_for(&self) -> bool {
        self.seeds.is_some()
    }

    /// Run all seeds, if any were asked for.
    pub(crate) fn run(&self, train: &Train, loaded: &Loaded) -> Option<Result<Code, anyhow::Error>> {
        self.seeds.as_ref().map(|seeds| self.run_all(seeds.seeds(), train, loaded))
    }

    fn run_all(&self, seeds: &[u64], train: &Train, loaded: &Loaded) -> Result<Code, anyhow::Error> {
        if loaded.config.run.resume == Resume::Auto {
            let message = "several seeds always begin anew; set it to \"never\", and go on with one of them by `shoal resume FOLDER`";
            return Err(SupervisorError::Config(ConfigErrors(vec![loaded.error_at("run.resume", message.into())])).into());
        }
        loaded.check_folder_has_no_home().map_err(|error| SupervisorError::Config(ConfigErrors(vec![error])))?;
        let stem = loaded.source.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let name = if loaded.config.run.name.is_empty() { stem } else { loaded.config.run.name.clone() };
        let root = std::path::absolute(&loaded.config.run.folder)?;
        let (program, first) = Host::program()?;
        let launch = Launch {
            program,
            arguments: first.iter().map(OsString::from).chain(self.arguments(train, loaded)).collect(),
            folder: Launch::make_folder(&root, &name)?,
            jobs: self.jobs.into(),
        };
        say(&format!("{} seeds of {name}, {} at a time, in {}", seeds.len(), self.jobs, launch.folder.display()));
        let ended = launch.run(seeds, |seed| {
            let how = match &seed.pid {
                Ok(_) if seed.succeeded => "has ended".to_owned(),
                Ok(_) => format!("has failed, see {}", launch.log(seed.seed).display()),
                Err(reason) => format!("was not started: {reason}"),
            };
            say(&format!("seed {} {how}", seed.seed));
        })?;
        let report = Report::read(&launch.folder, &ended);
        print(&report, false)?;
        let written = report.write(&format!("{name}, {} seeds", ended.len()))?;
        say(&format!("written     {}: {}", launch.folder.display(), written.join(", ")));
        if let Some(signal) = system::stop_signal() {
            return Ok(RunOutcome::Interrupted { signal }.exit_code());
        }
        let complete = report.all_succeeded() && ended.len() == seeds.len();
        Ok(if complete { SUCCESS } else { FAILURE })
    }

    /// The arguments of one run. Runs that start at the same moment do not see each other and could take the same cores, so the kernel
    /// places them.
    fn arguments(&self, train: &Train, loaded: &Loaded) -> Vec<OsString> {
        let unbound = self.jobs > 1 && loaded.config.machine.affinity;
        let changes = unbound.then(|| "machine.affinity=false".to_owned()).into_iter().chain(train.changes());
        let set = changes.flat_map(|change| ["--set".into(), change.into()]);
        ["train".into(), Path::new(train.asked()).into()].into_iter().chain(set).collect()
    }
}
