//! The results of all seeds, as a table with mean and interval, and as files.

use std::ffi::OsStr;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::curves::{self, Point};
use super::{Ended, Outcome, SeedsError, plot};
use crate::checkpoint::PolicyWeights;
use crate::readable::{as_text, score};
use crate::telemetry::{RunFolder, RunRecord, Table};

/// The results of one seed.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SeedResult {
    /// The seed.
    pub seed: u64,
    /// Why its run stopped or, if the run noted no end, what became of it.
    pub stopped: String,
    /// Whether its supervisor exited with success.
    pub succeeded: bool,
    /// Environment steps taken.
    pub env_steps: Option<u64>,
    /// Seconds from start to end.
    pub wall_s: Option<f64>,
    /// Mean return of the best weights, over the fresh episodes that confirmed them.
    pub best_confirmed: Option<f64>,
    /// Environment steps that the best weights had seen: with 0 they are those that the run began with.
    pub best_env_steps: Option<u64>,
    /// Mean return of the last evaluation.
    pub last_evaluation: Option<f64>,
    /// Its run folder; absent if none was made.
    #[serde(serialize_with = "as_text")]
    pub folder: Option<PathBuf>,
}

/// The results of all seeds, side by side.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// The seeds, ascending.
    pub seeds: Vec<SeedResult>,
    /// The folder of all of them.
    #[serde(serialize_with = "as_text")]
    pub folder: PathBuf,
    #[serde(skip)]
    curves: Vec<Vec<Point>>,
}

impl Report {
    /// Reads what the supervisors that `ended` wrote below `folder`.
    pub fn read(folder: &Path, ended: &[Ended]) -> Self {
        let runs: Vec<(u64, RunFolder)> = runs_below(folder, |_| true).collect();
        // Each seed has one run here. Process ids would not find a run with which another supervisor has gone on.
        let run_of = |ended: &Ended| runs.iter().find(|(seed, _)| *seed == ended.seed).map(|(_, run)| run);
        let curve_of = |ended: &Ended| run_of(ended).map(|run| curves::read(&run.evaluations())).unwrap_or_default();
        let curves: Vec<Vec<Point>> = ended.iter().map(curve_of).collect();
        let seeds = ended.iter().zip(&curves).map(|(ended, curve)| SeedResult::of(ended, run_of(ended), curve)).collect();
        Self { seeds, folder: folder.to_path_buf(), curves }
    }

    /// Writes `seeds.json` and, if anything was evaluated, `curves.svg` into the folder, and returns their names.
    /// `name` is the title of the plot.
    ///
    /// # Errors
    /// A file cannot be written.
    pub fn write(&self, name: &str) -> Result<Vec<&'static str>, SeedsError> {
        let (table, plot_file) = ("seeds.json", "curves.svg");
        let path = self.folder.join(table);
        let text = serde_json::to_string_pretty(self).map_err(|error| SeedsError::file("write", &path)(error.into()))?;
        fs::write(&path, text + "\n").map_err(SeedsError::file("write", &path))?;
        let curves: Vec<Vec<Point>> = self.curves.iter().map(|points| curves::routine(points)).filter(|curve| !curve.is_empty()).collect();
        if curves.is_empty() {
            return Ok(vec![table]);
        }
        let path = self.folder.join(plot_file);
        let title = format!("{name}, {} seeds", curves.len());
        plot::draw(&path, &title, &curves).map_err(|error| SeedsError::Plot { path, reason: error.to_string() })?;
        Ok(vec![table, plot_file])
    }

    /// Whether every seed succeeded.
    pub fn all_succeeded(&self) -> bool {
        self.seeds.iter().all(|seed| seed.succeeded)
    }
}

/// The runs in the folders below `folder` whose name `is_wanted`, each with its seed.
pub(super) fn runs_below(folder: &Path, is_wanted: impl Fn(&OsStr) -> bool) -> impl Iterator<Item = (u64, RunFolder)> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let folders = entries.filter(move |entry| is_wanted(&entry.file_name()) && entry.file_type().is_ok_and(|kind| kind.is_dir()));
    folders.filter_map(|entry| {
        let run = RunFolder::open(&entry.path()).ok()?;
        Some((seed_of(&run)?, run))
    })
}

/// The seed in the configuration of a run.
fn seed_of(run: &RunFolder) -> Option<u64> {
    let config: toml::Table = fs::read_to_string(run.config()).ok()?.parse().ok()?;
    config.get("run")?.get("seed")?.as_integer()?.try_into().ok()
}

/// Why the run with this `record` stopped or, if the run noted no end, what became of it.
fn stopped(ended: &Ended, record: Option<&RunRecord>) -> String {
    match (record, &ended.outcome) {
        (Some(RunRecord { finished: Some(finished), .. }), _) => finished.headline().to_owned(),
        // Another supervisor has gone on with the run.
        (Some(record), _) if record.is_under_way() => "goes on".to_owned(),
        (_, Outcome::NotStarted(reason)) => format!("not started: {reason}"),
        (_, Outcome::Interrupted) => "interrupted".to_owned(),
        (_, Outcome::Killed(signal)) => format!("killed by {signal}"),
        (_, Outcome::Succeeded) => format!("ended, see seed-{}.log", ended.seed),
        (_, Outcome::Failed) => format!("failed, see seed-{}.log", ended.seed),
    }
}

/// The mean return with which fresh episodes confirmed the best weights of a run, and the environment steps that these
/// had seen, as the file of the weights says.
fn best_confirmed(run: &RunFolder) -> Option<(f64, u64)> {
    let metadata = PolicyWeights::load(&run.best_weights()).ok()?.metadata;
    let evaluation = metadata.confirmation()?;
    Some((evaluation.return_mean, metadata.environment_steps))
}

impl SeedResult {
    fn of(ended: &Ended, run: Option<&RunFolder>, curve: &[Point]) -> Self {
        let record = run.and_then(|run| run.record().ok());
        let best = run.and_then(best_confirmed);
        let figure = |key: &str| Some(record.as_ref()?.finished.as_ref()?.summary[key].clone());
        Self {
            seed: ended.seed,
            stopped: stopped(ended, record.as_ref()),
            succeeded: ended.outcome == Outcome::Succeeded,
            env_steps: figure("env_steps").and_then(|value| value.as_u64()),
            wall_s: figure("wall_s").and_then(|value| value.as_f64()),
            best_confirmed: best.map(|(return_mean, _)| return_mean),
            best_env_steps: best.map(|(_, env_steps)| env_steps),
            last_evaluation: curves::routine(curve).last().map(|point| point.return_mean),
            folder: run.map(|run| run.path().to_path_buf()),
        }
    }

    /// Whether the best weights are those that the run began with.
    fn is_best_untrained(&self) -> bool {
        self.best_env_steps == Some(0)
    }

    /// Environment steps, wall time, confirmed and last evaluation.
    fn figures(&self) -> [Option<f64>; 4] {
        [self.env_steps.map(|steps| steps as f64), self.wall_s, self.best_confirmed, self.last_evaluation]
    }
}

impl fmt::Display for Report {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut table = Table::new(&["seed", "env steps", "wall time (s)", "best confirmed", "last evaluation", "stopped"], &[5], 0);
        let mut row = |name: &str, cells: [String; 4], stopped: &str| {
            table.row([name.to_owned()].into_iter().chain(cells).chain([stopped.to_owned()]).collect());
        };
        for seed in &self.seeds {
            row(&seed.seed.to_string(), in_words(seed.figures(), seed.is_best_untrained()), &seed.stopped);
        }
        let any_untrained = self.seeds.iter().any(SeedResult::is_best_untrained);
        let columns: [Vec<f64>; 4] = std::array::from_fn(|column| self.seeds.iter().filter_map(|seed| seed.figures()[column]).collect());
        let counts = columns.each_ref().map(Vec::len);
        // Seeds without a figure have no part in its mean, so the table tells how many have one.
        if counts.iter().any(|count| (1..self.seeds.len()).contains(count)) {
            row("seeds with figures", counts.map(|count| count.to_string()), "");
        }
        let means = columns.map(|figures| curves::mean_of(&figures));
        row("mean", in_words(means.map(|mean| mean.map(|(mean, _)| mean)), any_untrained), "");
        let has_intervals = means.iter().flatten().any(|(_, interval)| interval.is_some());
        if has_intervals {
            let lows = means.map(|mean| mean.and_then(|(_, interval)| interval.map(|(low, _)| low)));
            let highs = means.map(|mean| mean.and_then(|(_, interval)| interval.map(|(_, high)| high)));
            row("95 % low", in_words(lows, any_untrained), "");
            row("95 % high", in_words(highs, any_untrained), "");
        }
        write!(formatter, "{table}")?;
        if any_untrained {
            writeln!(formatter, "* with weights of step 0, which a run begins with: none that it learned were confirmed to be better")?;
        }
        if !has_intervals {
            write!(formatter, "an interval of the mean takes {} seeds with figures", curves::FEWEST_SEEDS)?;
        }
        Ok(())
    }
}

/// [`SeedResult::figures`] as people read them, with a mark if the best weights are untrained.
fn in_words([env_steps, wall_s, best_confirmed, last_evaluation]: [Option<f64>; 4], is_best_untrained: bool) -> [String; 4] {
    let text = |number: Option<f64>, words: fn(f64) -> String| number.map_or_else(|| "-".into(), words);
    let steps = |number: f64| format!("{number:.0}");
    let seconds = |number: f64| format!("{number:.1}");
    let marked = |number: f64| format!("* {}", score(number));
    let best = if is_best_untrained { best_confirmed.map(marked) } else { best_confirmed.map(score) };
    let best = best.unwrap_or_else(|| "-".into());
    [text(env_steps, steps), text(wall_s, seconds), best, text(last_evaluation, score)]
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStrExt;

    use jiff::Timestamp;
    use serde_json::json;

    use super::*;
    use crate::telemetry::Finished;

    #[test]
    fn a_seed_has_what_its_run_reached_and_what_became_of_it_whichever_process_had_it_last() {
        let root = tempfile::tempdir().unwrap();
        // All of them by this process, which is nobody's supervisor.
        let [first, second] = [1, 2].map(|seed| RunFolder::create(root.path(), "run", &format!("[run]\nseed = {seed}\n")).unwrap());
        let end = Finished { at: Timestamp::now(), reason: "step limit".into(), summary: json!({ "env_steps": 3000 }) };
        first.write_finished(end).unwrap();
        let not_started = Outcome::NotStarted("no memory".into());
        let outcomes = [Outcome::Failed, Outcome::Failed, Outcome::Interrupted, not_started, Outcome::Failed];
        let ended: Vec<Ended> = (1..).zip(outcomes).map(|(seed, outcome)| Ended { seed, outcome }).collect();
        let found = Report::read(root.path(), &ended).seeds;
        let of = |seed: &SeedResult| (seed.stopped.clone(), seed.env_steps, seed.folder.clone());
        let path = |run: &RunFolder| Some(run.path().canonicalize().unwrap());
        assert_eq!(of(&found[0]), ("step limit".to_owned(), Some(3000), path(&first)));
        assert_eq!(of(&found[1]), ("goes on".to_owned(), None, path(&second)));
        for (seed, told) in found[2..].iter().zip(["interrupted", "not started: no memory", "failed, see seed-5.log"]) {
            assert_eq!(of(seed), (told.to_owned(), None, None));
        }
    }

    #[test]
    fn scores_of_untrained_weights_are_marked_and_so_is_a_mean_with_them() {
        let report = |best_env_steps: [u64; 3]| {
            let seeds = best_env_steps.iter().zip(1_u64..).map(|(&env_steps, seed)| SeedResult {
                seed,
                stopped: "step limit".into(),
                succeeded: true,
                env_steps: Some(20_000),
                wall_s: Some(9.0),
                best_confirmed: Some(300.0 + (seed * seed) as f64),
                best_env_steps: Some(env_steps),
                last_evaluation: Some(80.0),
                folder: None,
            });
            Report { seeds: seeds.collect(), folder: PathBuf::new(), curves: Vec::new() }.to_string()
        };
        let marked = |text: &str| text.lines().filter(|line| line.contains("  * ")).count();
        let mixed = report([0, 4_000, 0]);
        assert_eq!(marked(&mixed), 5, "two seeds, the mean, both ends of its interval: {mixed}");
        assert!(mixed.contains("* 301.0") && !mixed.contains("* 304.0") && mixed.contains("\n* with weights of step 0"), "{mixed}");
        assert!(!report([8_000, 4_000, 8_000]).contains('*'));
    }

    #[test]
    fn a_mean_and_a_plot_say_of_how_many_seeds_they_are() {
        let root = tempfile::tempdir().unwrap();
        for seed in [1, 2] {
            let run = RunFolder::create(root.path(), "run", &format!("[run]\nseed = {seed}\n")).unwrap();
            fs::write(run.evaluations(), "{\"kind\": \"routine\", \"env_steps\": 10, \"return_mean\": 1.0}\n").unwrap();
        }
        let ended = [1, 2, 3].map(|seed| Ended { seed, outcome: Outcome::Succeeded });
        let report = Report::read(root.path(), &ended);
        assert_eq!(report.write("x").unwrap(), ["seeds.json", "curves.svg"]);
        let plot = fs::read_to_string(root.path().join("curves.svg")).unwrap();
        assert!(plot.contains("x, 2 seeds"), "{plot}");
        let counts = |report: &Report| {
            let table = report.to_string();
            let row = table.lines().find_map(|line| line.trim_start().strip_prefix("seeds with figures"))?;
            Some(row.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
        };
        assert_eq!(counts(&report).unwrap(), ["0", "0", "0", "2"], "{report}");
        assert_eq!(counts(&Report::read(root.path(), &ended[..2])), None, "all have figures, or none");
    }

    #[test]
    fn results_are_written_also_in_a_folder_whose_name_is_not_utf8() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path().join(OsStr::from_bytes(b"caf\xe9"));
        RunFolder::create(&root, "run", "[run]\nseed = 1\n").unwrap();
        let report = Report::read(&root, &[Ended { seed: 1, outcome: Outcome::Succeeded }]);
        assert!(report.seeds[0].folder.is_some());
        assert_eq!(report.write("x").unwrap(), ["seeds.json"]);
    }
}
