//! `shoal train --seeds`: one run for each of several seeds.

use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use clap::Args;

use super::end::{Code, FAILURE, SUCCESS, say};
use super::print::print;
use crate::config::Loaded;
use crate::config::schema::Resume;
use crate::machine::Host;
use crate::roles::supervisor::{Prepared, RunOutcome, SupervisorError};
use crate::seeds::{Ended, Event, Launch, Outcome, Progress, Report, SeedList};
use crate::segment::system;
use crate::shell::word;
use crate::telemetry::{CHARTS, Console, Invocation, LATEST, RunFolder};

/// Longest wait, before the table is printed, for a terminal that is slow to take the lines about the seeds.
const PATIENCE: Duration = Duration::from_secs(1);

/// The options about seeds.
#[derive(Args)]
pub(crate) struct Seeds {
    /// Run once for each of these seeds, such as 1-5 or 1,3,8-10, and end in a table and a plot.
    #[arg(long, conflicts_with = "seed")]
    seeds: Option<SeedList>,
    /// How many seeds run at a time.
    #[arg(
        long,
        value_name = "COUNT",
        default_value_t = 1,
        requires = "seeds",
        conflicts_with = "seed",
        value_parser = clap::value_parser!(u16).range(1..=256)
    )]
    jobs: u16,
}

impl Seeds {
    /// Whether `--seeds` was given: each seed is then a run in a process of its own, which checks for itself what it
    /// needs.
    pub(crate) fn are_asked_for(&self) -> bool {
        self.seeds.is_some()
    }

    fn seeds(&self) -> &[u64] {
        self.seeds.as_ref().map_or(&[][..], SeedList::seeds)
    }

    /// Refuses configurations that only a single run can have.
    pub(crate) fn check(&self, loaded: &Loaded) -> Result<(), anyhow::Error> {
        if loaded.config.run.resume == Resume::Auto {
            let message = "several seeds always begin anew; set it to \"never\", and go on with one of them by `shoal resume FOLDER`";
            return Err(SupervisorError::from(loaded.error_at("run.resume", message.into())).into());
        }
        Ok(loaded.check_folder_has_no_home().map_err(SupervisorError::from)?)
    }

    /// Makes `loaded` the configuration of the first seed, of which alone a plan is made, and returns a note that
    /// says so.
    pub(crate) fn begin_with_the_first(&self, loaded: &mut Loaded) -> String {
        loaded.config.run.seed = self.seeds()[0];
        self.unbind(loaded);
        format!("{:<11} {}, {} at a time; this is the plan of the first", "seeds", self.seeds().len(), self.jobs)
    }

    /// Runs all seeds, each as `loaded` says: they read a copy, since the file may be edited before the last of them
    /// begins.
    pub(crate) fn run(&self, mut loaded: Loaded, console: &Console) -> Result<Code, anyhow::Error> {
        let seeds = self.seeds();
        self.unbind(&mut loaded);
        Prepared::resolve(&mut loaded)?;
        let name = loaded.config.run.name.clone();
        let root = std::path::absolute(&loaded.config.run.folder)?;
        let (program, first) = Host::program()?;
        let folder = Launch::make_folder(&root, &name)?;
        // The remaining seeds may be begun from another folder.
        loaded.config.run.folder = root.display().to_string();
        let launch = Launch {
            program,
            arguments: first.iter().map(OsString::from).collect(),
            configuration: format!("# What all seeds began with, as it was asked for then.\n{}", loaded.config.to_toml()),
            folder,
            jobs: self.jobs.into(),
        };
        say(&format!("{} seeds of {name}, {} at a time, in {}", seeds.len(), self.jobs, launch.folder.display()));
        // Said here, since the copy that the seeds read no longer says where settings were written, nor which were left.
        Prepared::remarks_on_settings(&loaded).for_each(|remark| say(&format!("{:<11} {remark}", "note")));
        let newest = launch.folder.join(LATEST);
        say(&format!("`shoal dashboard {}` shows them while they run, and `shoal inspect` lists them", word(&newest)));
        let ended = follow(&launch, seeds, &loaded, console)?;
        let report = Report::read(&launch.folder, &ended);
        // The report is written before the table is printed: a terminal that was closed meanwhile takes no table.
        let written = report.write(&name);
        let printed = print(&report, false);
        if let Ok(files) = &written {
            say(&format!("written     {}: {}", launch.folder.display(), files.join(", ")));
        }
        say(&format!("charts      tensorboard --logdir {}", word(&launch.folder.join(CHARTS))));
        let complete = report.all_succeeded() && ended.len() == seeds.len();
        let signal = system::stop_signal().filter(|_| !complete);
        let sentinels_save = loaded.config.checkpoint.interval_s.is_some() && !loaded.config.is_synchronous();
        ways_on(seeds, &ended, &report, &launch, sentinels_save).iter().for_each(|line| say(line));
        written?;
        if let Some(signal) = signal {
            // The table is in its file. What counts is that the seeds were interrupted, as by the end of a terminal.
            printed.unwrap_or_else(|error| say(&format!("the table could not be printed: {error}")));
            return Ok(RunOutcome::Interrupted { signal }.exit_code());
        }
        printed?;
        Ok(if complete { SUCCESS } else { FAILURE })
    }

    /// Binds no seed to cores if several run at a time: runs that start at the same moment do not see each other and
    /// could take the same cores.
    fn unbind(&self, loaded: &mut Loaded) {
        loaded.config.machine.affinity &= self.jobs == 1;
    }
}

/// Runs all seeds and shows how far they are: a line for each that ends, and on a terminal a live line below.
fn follow(launch: &Launch, seeds: &[u64], loaded: &Loaded, console: &Console) -> Result<Vec<Ended>, anyhow::Error> {
    let run = &loaded.config.run;
    let mut progress = Progress::new(&launch.folder, seeds.len(), run.stop_env_steps, run.stop_wall_s);
    let mut count = 0;
    let ended = launch.run(seeds, |event| match event {
        Event::Replaced(seed) => {
            let program = launch.program.display();
            console.print(&format!("warning: {program} was replaced: seed {seed} may be trained by another program than the first"));
        }
        Event::Ended(Ended { seed, outcome }) => {
            count += 1;
            let how = match outcome {
                Outcome::Succeeded => "has ended".to_owned(),
                Outcome::Interrupted => "was interrupted".to_owned(),
                Outcome::Killed(signal) => format!("was killed by {signal}; what it said is in {}", launch.log(*seed).display()),
                Outcome::Failed => format!("has failed, see {}", launch.log(*seed).display()),
                Outcome::NotStarted(reason) => format!("was not started: {reason}"),
            };
            console.print(&format!("seed {seed} {how}"));
        }
        Event::Running(running) if console.has_live_line() => console.set_line(progress.line(count, running, console.look().width)),
        Event::Running(_) => {}
    })?;
    console.clear_line();
    // The next lines are not written through the console.
    console.drain(PATIENCE);
    Ok(ended)
}

/// What there is to do about the seeds that a signal ended or killed, and about those that it kept from beginning as
/// `launch` says. `sentinels_save` says that the sentinel of a killed supervisor writes a checkpoint.
fn ways_on(seeds: &[u64], ended: &[Ended], report: &Report, launch: &Launch, sentinels_save: bool) -> Vec<String> {
    let invocation = Invocation::current();
    let mut lines = Vec::new();
    let mut left = Vec::new();
    let mut which = "did not begin";
    let was_cut_short = |ended: &Ended| matches!(ended.outcome, Outcome::Interrupted | Outcome::Killed(_));
    for &seed in seeds {
        if ended.iter().any(|ended| ended.seed == seed && !was_cut_short(ended)) {
            continue;
        }
        let folder = report.seeds.iter().find(|result| result.seed == seed).and_then(|result| result.folder.as_ref());
        match folder {
            Some(folder) if is_or_will_be_saved(folder, sentinels_save) => {
                let command = invocation.resume(folder, None).unwrap_or_else(|| format!("shoal resume {}", word(folder)));
                lines.push(format!("seed {seed} goes on with: {command}"));
            }
            begun => {
                if begun.is_some() {
                    which = "did not begin, or left no checkpoint";
                }
                left.push(seed.to_string());
            }
        }
    }
    if !left.is_empty() {
        let left = left.join(",");
        let command = invocation.train(&launch.config()).unwrap_or_else(|| format!("shoal train {}", word(&launch.config())));
        lines.push(format!("seeds that {which}: {left}; begin them with: {command} --seeds {left} --jobs {}", launch.jobs));
    }
    lines
}

/// Whether the run in `folder` has a checkpoint, or may get one: a sentinel that saves has the folder until it has
/// written what was there, and `resume` waits for it.
fn is_or_will_be_saved(folder: &Path, sentinels_save: bool) -> bool {
    let Ok(mut run) = RunFolder::open(folder) else { return false };
    run.saved_env_steps().is_some() || sentinels_save && matches!(run.take_deserted(), Ok(false))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interrupted_seeds_without_a_checkpoint_are_begun_anew_with_those_that_did_not_begin() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().to_path_buf();
        RunFolder::create(root.path(), "run", "[run]\nseed = 1\n").unwrap();
        let ended = [Ended { seed: 1, outcome: Outcome::Interrupted }];
        let launch =
            Launch { program: "shoal".into(), arguments: Vec::new(), configuration: String::new(), folder: folder.clone(), jobs: 1 };
        let lines = ways_on(&[1, 2], &ended, &Report::read(&folder, &ended), &launch, true);
        let [line] = &lines[..] else { panic!("{lines:?}") };
        assert!(line.starts_with("seeds that did not begin, or left no checkpoint: 1,2; ") && line.contains("--seeds 1,2"), "{line}");
    }

    #[test]
    fn a_killed_seed_whose_processes_still_leave_goes_on_only_if_its_sentinel_saves() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().to_path_buf();
        let _held = RunFolder::create(root.path(), "run", "[run]\nseed = 1\n").unwrap();
        let ended = [Ended { seed: 1, outcome: Outcome::Killed("SIGKILL".into()) }];
        let launch =
            Launch { program: "shoal".into(), arguments: Vec::new(), configuration: String::new(), folder: folder.clone(), jobs: 1 };
        for (sentinels_save, told) in [(true, "seed 1 goes on with: "), (false, "seeds that did not begin, or left no checkpoint: 1; ")] {
            let lines = ways_on(&[1], &ended, &Report::read(&folder, &ended), &launch, sentinels_save);
            assert!(matches!(&lines[..], [line] if line.starts_with(told)), "{lines:?}");
        }
    }
}
