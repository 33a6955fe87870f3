//! Which runs there are: those under way, and those whose folders lie where runs lie.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::video;
use super::{DashboardError, locked};
use crate::bounded_file::read_text;
use crate::config::CONFIG_LIMIT_BYTES;
use crate::inspector;
use crate::rendezvous::{Entry, Liveliness, Registry};
use crate::run_name::{RunName, announced};
use crate::segment::Segment;
use crate::shell::word;
use crate::telemetry::{Diagnosis, RunFolder, RunRecord, Video, is_of_seeds, jsonl};

/// The metrics that the table of all runs shows. Every page gets them of every run, every few seconds.
const LISTED: [&str; 8] =
    ["env_steps", "updates", "learned", "training_s", "wall_s", "train_return_mean", "eval_return_mean", "best_eval_return"];

/// The state of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum State {
    /// The supervisor lives, and the run is announced here.
    Running,
    /// The supervisor noted the end.
    Ended,
    /// The supervisor noted no end and does not live, and a process keeps the run in memory.
    Kept,
    /// The supervisor noted no end and does not live.
    Killed,
    /// The supervisor noted no end and lives, and the run is not announced here: it is just beginning, for instance.
    Unannounced,
}

/// A run in a few facts.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Card {
    /// Name of the run's folder. If several folders have one name, as copies do, only one is shown.
    pub(super) id: String,
    /// Path of the folder.
    folder: String,
    /// Path of the folder, quoted as a shell needs it.
    folder_word: String,
    /// Name that the user gave.
    name: String,
    /// The state of the run.
    pub(super) state: State,
    /// Why the run ended.
    reason: Option<String>,
    /// Process id of the supervisor.
    pub(super) supervisor_pid: u32,
    /// Start, in milliseconds since 1970.
    started_unix_ms: i64,
    /// Environment.
    environment: Option<String>,
    /// Algorithm.
    algorithm: Option<String>,
    /// Seed, as text: JavaScript's numbers have 53 bits.
    seed: Option<String>,
    /// Environment steps after which the run stops.
    stop_env_steps: Option<u64>,
    /// The mean return that ends the run once it is confirmed.
    goal: Option<f64>,
    /// Of the last line of `metrics.jsonl`, what is [`LISTED`].
    metrics: Map<String, Value>,
    /// What held the run back, in the sentence of its closing report, once it has ended.
    bottleneck: Option<String>,
    /// Cores that the run computed on in training, on average, once it has ended.
    cores_used: Option<f64>,
    /// Share of the machine's time that any program computed in training, once the run has ended.
    machine_busy_share: Option<f64>,
    /// What networks computed in training as a share of what the cores could, once the run has ended.
    peak_share: Option<f64>,
    /// Videos of episodes, the newest first.
    videos: Vec<Video>,
}

/// The places where runs are looked for, and what is known of the runs there.
#[derive(Debug)]
pub(super) struct Runs {
    registry: Registry,
    /// Folders of runs.
    roots: Vec<PathBuf>,
    /// The folders of runs that were under way at some look, by id. They are shown after their end, wherever they lie.
    seen: Mutex<BTreeMap<String, PathBuf>>,
    /// The cards of runs that have ended, by folder.
    ended: Mutex<HashMap<PathBuf, Ended>>,
}

/// The card of a run that has ended, and which version of its record the card is of. The record is replaced when the
/// run goes on, and nothing else changes before.
#[derive(Debug)]
struct Ended {
    record: PathBuf,
    version: Version,
    card: Card,
}

/// What tells a file from those that had its name before: inode, bytes, and seconds and nanoseconds of the last change.
type Version = (u64, u64, i64, i64);

fn version_of(path: &Path) -> Option<Version> {
    let file = fs::metadata(path).ok()?;
    Some((file.ino(), file.len(), file.mtime(), file.mtime_nsec()))
}

impl Runs {
    pub(super) fn new(registry: Registry) -> Self {
        Self { registry, roots: Vec::new(), seen: Mutex::default(), ended: Mutex::default() }
    }

    pub(super) fn registry(&self) -> &Registry {
        &self.registry
    }

    /// Adds the runs in the folder `root`.
    pub(super) fn add_root(&mut self, root: &Path) {
        // The folder may not exist yet: the first run creates it.
        self.roots.extend(root.canonicalize().or_else(|_| std::path::absolute(root)));
    }

    /// Adds `run` and the runs that lie beside it, and returns the id of `run`. Beside one of several seeds lie also the
    /// runs beside the folder of the seeds.
    pub(super) fn add(&mut self, run: &RunName) -> Result<String, DashboardError> {
        let path = match run {
            RunName::Folder(path) => path.clone(),
            RunName::Supervisor(pid) => PathBuf::from(self.registry.find(*pid)?.record.run_folder),
        };
        let folder = RunFolder::open(&path)?;
        let mut above = folder.path().ancestors().skip(1);
        self.roots.extend(above.find(|path| !is_of_seeds(path)).map(Path::to_path_buf));
        Ok(id_of(folder.path()).unwrap_or_default())
    }

    /// The run `id`. The id from a request is compared with those of the runs that are there, and never becomes a path.
    pub(super) fn find(&self, id: &str) -> Option<RunFolder> {
        RunFolder::open(self.folders().get(id)?).ok()
    }

    /// All runs, the newest first.
    pub(super) fn cards(&self) -> Vec<Card> {
        let folders = self.folders();
        // Most runs have ended, and opening a folder would read its record.
        let card = |path: &PathBuf| self.known(path).or_else(|| self.card(&RunFolder::open(path).ok()?));
        let mut cards: Vec<_> = folders.values().filter_map(card).collect();
        cards.sort_by_key(|card| std::cmp::Reverse(card.started_unix_ms));
        cards
    }

    /// The card of one run. For a run that has ended, it is read once.
    pub(super) fn card(&self, folder: &RunFolder) -> Option<Card> {
        if let Some(card) = self.known(folder.path()) {
            return Some(card);
        }
        let record = folder.record_path();
        let version = version_of(&record)?;
        let card = self.read_card(folder)?;
        if card.state == State::Ended {
            locked(&self.ended).insert(folder.path().to_path_buf(), Ended { record, version, card: card.clone() });
        }
        Some(card)
    }

    /// The card of the run in the folder `path`, if the run has ended and its card was read since.
    fn known(&self, path: &Path) -> Option<Card> {
        let all = locked(&self.ended);
        let ended = all.get(path)?;
        (version_of(&ended.record)? == ended.version).then(|| ended.card.clone())
    }

    fn read_card(&self, folder: &RunFolder) -> Option<Card> {
        let record = folder.record().ok()?;
        let config: toml::Table =
            read_text(&folder.config(), CONFIG_LIMIT_BYTES).ok().and_then(|text| text.parse().ok()).unwrap_or_default();
        let key = |table: &str, key: &str| config.get(table).and_then(|table| table.get(key));
        let text = |table: &str, name: &str| key(table, name).and_then(toml::Value::as_str).map(str::to_owned);
        let summary = record.finished.as_ref().map(|finished| &finished.summary);
        let figure = |key: &str| summary.and_then(|summary| summary[key].as_f64());
        let mut metrics: Map<String, Value> = jsonl::last(&folder.metrics()).unwrap_or_default();
        metrics.retain(|key, _| LISTED.contains(&key.as_str()));
        Some(Card {
            id: id_of(folder.path())?,
            folder: folder.path().display().to_string(),
            folder_word: word(folder.path()),
            state: self.state(folder, &record),
            reason: record.finished.as_ref().map(|finished| finished.reason.clone()),
            supervisor_pid: record.supervisor_pid,
            started_unix_ms: record.started.as_millisecond(),
            environment: text("environment", "id"),
            algorithm: text("algorithm", "name"),
            seed: key("run", "seed").map(ToString::to_string),
            stop_env_steps: key("run", "stop_env_steps").and_then(toml::Value::as_integer).and_then(|steps| steps.try_into().ok()),
            goal: key("run", "stop_eval_return").and_then(|goal| goal.as_float().or(goal.as_integer().map(|goal| goal as f64))),
            metrics,
            bottleneck: summary.and_then(|summary| Diagnosis::deserialize(&summary["bottleneck"]).ok()).map(|verdict| verdict.to_string()),
            cores_used: figure("cores_used"),
            machine_busy_share: figure("machine_busy_share"),
            peak_share: figure("peak_share"),
            videos: video::newest_first(folder),
            name: record.name,
        })
    }

    fn state(&self, folder: &RunFolder, record: &RunRecord) -> State {
        match announced(&self.registry, folder, record) {
            Some(Entry { state: Liveliness::Running, .. }) => State::Running,
            _ if record.finished.is_some() => State::Ended,
            _ if is_kept(folder) => State::Kept,
            _ if record.is_under_way() => State::Unannounced,
            _ => State::Killed,
        }
    }

    /// The folders of all runs, by id. If there are copies, the folder is that of the run that is or was under way.
    fn folders(&self) -> BTreeMap<String, PathBuf> {
        let announced = self.registry.list().into_iter().filter_map(|entry| Path::new(&entry.record.run_folder).canonicalize().ok());
        let mut seen = locked(&self.seen);
        seen.extend(announced.filter_map(|path| Some((id_of(&path)?, path))));
        // A folder that is gone may have been moved to another root.
        seen.retain(|_, path| path.is_dir());
        let beside = self.roots.iter().flat_map(|root| folders_in(root));
        let beside = beside.flat_map(|path| if is_of_seeds(&path) { folders_in(&path) } else { vec![path] });
        let mut folders: BTreeMap<_, _> = beside.filter_map(|path| Some((id_of(&path)?, path))).collect();
        folders.extend(seen.clone());
        folders
    }
}

/// The folders in `place`. Links, such as `latest`, would show runs twice.
fn folders_in(place: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(place).into_iter().flatten().flatten();
    entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())).map(|entry| entry.path()).collect()
}

/// Whether the run in `folder` is kept in memory, for another supervisor to adopt. A copy of the folder names the same
/// memory, and is another run.
fn is_kept(folder: &RunFolder) -> bool {
    let kept = || {
        let segment = Segment::attach_read_only(&folder.kept_segment_name().ok()?).ok()?;
        let is_copy = folder.is_copy_of(&segment.description().ok()?.run_folder);
        Some(inspector::is_kept(&segment) && !is_copy)
    };
    kept().unwrap_or(false)
}

fn id_of(path: &Path) -> Option<String> {
    path.file_name()?.to_str().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use jiff::Timestamp;
    use serde_json::json;

    use super::*;
    use crate::telemetry::Finished;

    const CONFIG: &str = "[environment]\nid = \"CartPole-v1\"\n";

    fn registry_in(place: &Path) -> Registry {
        Registry::open_at(place.join("shoal")).unwrap()
    }

    /// The record of a run in `folder`, as a supervisor leaves it that is killed.
    fn announce(registry: &Registry, folder: &RunFolder) -> PathBuf {
        let identity = json!({
            "run_id": 1, "boot_id": 1, "supervisor_pid": 7, "supervisor_start_time": 1, "created_unix_ms": 1,
            "pid_namespace": 0, "time_namespace": 0,
        });
        let record = json!({
            "identity": identity, "segment": "/shoal-7", "socket": "7", "run_folder": folder.path(),
            "environment": "CartPole-v1", "algorithm": "dqn", "program_version": "0",
        });
        let path = registry.folder().join("7.json");
        fs::write(&path, record.to_string()).unwrap();
        assert_eq!(registry.list().len(), 1);
        path
    }

    fn ids(runs: &Runs) -> Vec<String> {
        runs.cards().into_iter().map(|card| card.id).collect()
    }

    #[test]
    fn a_run_that_has_ended_is_read_once_until_it_goes_on() {
        let place = tempfile::tempdir().unwrap();
        let config = format!("{CONFIG}[run]\nseed = 7\n");
        let mut folder = RunFolder::create(place.path(), "first", &config).unwrap();
        let mut runs = Runs::new(registry_in(place.path()));
        runs.add_root(place.path());
        let found = |runs: &Runs, folder: &RunFolder| runs.card(folder).map(|card| (card.state, card.seed));
        let is = |state: State, seed: &str| Some((state, Some(seed.to_owned())));
        assert_eq!(found(&runs, &folder), is(State::Unannounced, "7"), "nobody noted an end yet, and this process lives");
        folder.write_finished(Finished { at: Timestamp::now(), reason: "solved".into(), summary: Value::Null }).unwrap();
        assert_eq!(found(&runs, &folder), is(State::Ended, "7"));
        assert_eq!(ids(&runs), [folder.id()]);
        fs::remove_file(folder.config()).unwrap();
        assert_eq!(found(&runs, &folder), is(State::Ended, "7"), "it is not read again");
        assert_eq!(ids(&runs), [folder.id()], "its folder is not opened again");
        folder.go_on(&config.replace('7', "9007199254740993")).unwrap();
        assert_eq!(found(&runs, &folder), is(State::Unannounced, "9007199254740993"), "no double is this number");
    }

    #[test]
    fn runs_are_shown_from_a_folder_that_was_not_there_yet() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path().join("runs");
        let mut runs = Runs::new(registry_in(place.path()));
        runs.add_root(&root);
        assert!(runs.cards().is_empty());
        let folder = RunFolder::create(&root, "first", CONFIG).unwrap();
        assert_eq!(ids(&runs), [folder.id()]);
    }

    #[test]
    fn runs_of_several_seeds_are_shown_beside_other_runs_whichever_of_them_is_named() {
        let place = tempfile::tempdir().unwrap();
        let seeds = place.path().join("20261125-073212-first-seeds");
        let of_a_seed = RunFolder::create(&seeds, "first-seed1", CONFIG).unwrap();
        fs::write(seeds.join("config.toml"), CONFIG).unwrap();
        let alone = RunFolder::create(place.path(), "second", CONFIG).unwrap();
        let both = BTreeSet::from([&of_a_seed, &alone].map(|folder| folder.id().to_owned()));
        let shown = |runs: &Runs| BTreeSet::from_iter(ids(runs));
        let mut runs = Runs::new(registry_in(place.path()));
        runs.add_root(place.path());
        assert_eq!(shown(&runs), both);
        for folder in [&of_a_seed, &alone] {
            let mut runs = Runs::new(registry_in(place.path()));
            assert_eq!(runs.add(&RunName::Folder(folder.path().to_path_buf())).unwrap(), folder.id());
            assert_eq!(shown(&runs), both, "{}", folder.id());
        }
    }

    #[test]
    fn a_run_that_was_under_way_is_shown_for_as_long_as_its_folder_is_there() {
        let place = tempfile::tempdir().unwrap();
        let folder = RunFolder::create(&place.path().join("elsewhere"), "first", CONFIG).unwrap();
        let registry = registry_in(place.path());
        let record = announce(&registry, &folder);
        let runs = Runs::new(registry);
        assert_eq!(ids(&runs), [folder.id()]);
        fs::remove_file(record).unwrap();
        assert_eq!(ids(&runs), [folder.id()], "nobody announces it any more");
        fs::remove_dir_all(folder.path()).unwrap();
        assert!(ids(&runs).is_empty());
    }

    #[test]
    fn a_run_that_has_ended_tells_what_its_report_told() {
        let place = tempfile::tempdir().unwrap();
        let folder = RunFolder::create(place.path(), "first", CONFIG).unwrap();
        let runs = Runs::new(registry_in(place.path()));
        let told = |summary: Value| {
            folder.write_finished(Finished { at: Timestamp::now(), reason: "solved".into(), summary }).unwrap();
            let card = runs.card(&folder).unwrap();
            (card.bottleneck, card.cores_used, card.machine_busy_share, card.peak_share)
        };
        let advice = json!({"set": [{"key": "learner.count", "now": "1", "to": "2"}], "why": "cores were idle"});
        let verdict = json!({"bottleneck": "learners", "evidence": "actors waited", "advice": [advice]});
        let sentence = "learner-bound: actors waited; set learner.count=2 (now 1): cores were idle";
        assert_eq!(
            told(json!({"bottleneck": verdict, "cores_used": 1.5, "machine_busy_share": 0.25, "peak_share": null})),
            (Some(sentence.to_owned()), Some(1.5), Some(0.25), None)
        );
        assert_eq!(told(json!({"bottleneck": {"bottleneck": "of another version"}})), (None, None, None, None));
    }

    #[test]
    fn a_pipe_or_an_endless_file_in_the_folder_of_a_run_keeps_nobody_from_the_others() {
        let place = tempfile::tempdir().unwrap();
        let [piped, long] = ["piped", "long"].map(|name| RunFolder::create(place.path(), name, CONFIG).unwrap());
        let segment = piped.kept_segment();
        fs::create_dir(segment.parent().unwrap()).unwrap();
        nix::unistd::mkfifo(&segment, nix::sys::stat::Mode::S_IRWXU).unwrap();
        let record = fs::read_to_string(long.record_path()).unwrap();
        fs::write(long.record_path(), record + &" ".repeat(17 << 20)).unwrap();
        let mut runs = Runs::new(registry_in(place.path()));
        runs.add_root(place.path());
        let shown: Vec<_> = runs.cards().into_iter().map(|card| (card.id, card.state)).collect();
        assert_eq!(shown, [(piped.id().to_owned(), State::Unannounced)]);
    }

    #[test]
    fn of_the_metrics_of_a_run_its_card_has_what_the_table_of_all_runs_shows() {
        let place = tempfile::tempdir().unwrap();
        let folder = RunFolder::create(place.path(), "first", CONFIG).unwrap();
        fs::write(folder.metrics(), "{\"env_steps\": 64, \"loss\": 0.5, \"best_eval_return\": 9.5, \"actors\": 2}\n").unwrap();
        let metrics = Runs::new(registry_in(place.path())).card(&folder).unwrap().metrics;
        assert_eq!(Value::from(metrics), json!({"env_steps": 64, "best_eval_return": 9.5}));
    }

    #[test]
    fn a_run_whose_folder_was_moved_is_shown_from_where_it_is() {
        let place = tempfile::tempdir().unwrap();
        let [began, archive] = ["runs", "archive"].map(|name| place.path().join(name));
        let folder = RunFolder::create(&began, "first", CONFIG).unwrap();
        let registry = registry_in(place.path());
        announce(&registry, &folder);
        fs::create_dir(&archive).unwrap();
        let moved = archive.join(folder.path().file_name().unwrap());
        fs::rename(folder.path(), &moved).unwrap();
        let mut runs = Runs::new(registry);
        runs.add_root(&archive);
        assert_eq!(runs.folders().into_values().collect::<Vec<_>>(), [moved]);
    }
}
