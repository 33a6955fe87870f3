//! What the files of a run tell of it from its beginning: curves, evaluations, events, and what holds it back now.

use std::collections::{BTreeMap, VecDeque};

use serde::Serialize;
use serde_json::{Map, Value};
use tokio::task::yield_now;

use super::json;
use super::tail::Tail;
use crate::bounded_file::read_text;
use crate::config::fitted::{Found, Tried, repeating};
use crate::config::{CONFIG_LIMIT_BYTES, Config};
use crate::telemetry::bottleneck::{Clock, Context, as_training_ended, verdict_since};
use crate::telemetry::{RunFolder, Snapshot};

/// Rows that the curves keep. When there are more, every other row is dropped, and only every other new one is kept.
const MOST_ROWS: usize = 4096;
/// Evaluations that are kept. When there are more, every other one is dropped of the kind that has more.
const MOST_EVALUATIONS: usize = 4096;
/// Lines of `run.log` that are kept.
const MOST_EVENTS: usize = 500;
/// Seconds of training that the verdict on the bottleneck is about.
const JUDGED_S: f64 = 60.0;
/// The key by which curves are drawn. It goes back only if a run went on from a checkpoint.
const PROGRESS: &str = "env_steps";

/// The history of one run, as far as it has been read.
#[derive(Debug)]
pub(super) struct History {
    metrics: Tail,
    evaluations: Tail,
    adaptation: Tail,
    log: Tail,
    shown: Shown,
    /// The newest moments in which the run learned, for the verdict.
    learning: VecDeque<Snapshot>,
    /// The newest row, whether or not the run learned in it.
    newest: Option<Snapshot>,
    /// Updates of the run before its newest life.
    earlier_updates: u64,
    folder: RunFolder,
    /// What the newest life of the run was configured to be, and the cores that it may use.
    configured: Option<Context>,
    /// The settings that were tried, if the run fits itself to the machine.
    tried: Vec<Tried>,
    /// Seconds of the run at which each life after the first began.
    went_on_s: Vec<f64>,
}

/// All that is shown of a history. A page goes on from there by itself (`page/columns.js`), so it is also told how the
/// columns were thinned.
#[derive(Debug, Default, Serialize)]
struct Shown {
    /// A column of numbers for each key of `metrics.jsonl`, all of the same length.
    columns: BTreeMap<String, Vec<Option<f64>>>,
    /// Number of rows that came.
    rows_so_far: usize,
    /// One row of this many is kept.
    stride: usize,
    /// Whether the newest row is one that the stride leaves out. It stays until the next row comes, so that curves always
    /// end with the newest values.
    newest_is_passing: bool,
    /// The lines of `evaluations.jsonl`, without routine ones of steps that the run repeated from a checkpoint.
    evaluations: Vec<Value>,
    /// The lines of `adaptation.jsonl` with which the run became another one.
    changes: Vec<Value>,
    /// The newest lines of `run.log`.
    events: VecDeque<String>,
    /// What holds the newest life of the run back, in a sentence.
    bottleneck: Option<String>,
}

/// What a history has gained in one look.
#[derive(Debug, Serialize)]
pub(super) struct Growth {
    rows: Vec<Map<String, Value>>,
    evaluations: Vec<Value>,
    /// All changes, since earlier ones may have another place by now.
    changes: Vec<Value>,
    events: Vec<String>,
    bottleneck: Option<String>,
}

impl History {
    /// The history of the run in `folder`, of which nothing has been read yet.
    pub(super) fn of(folder: &RunFolder) -> Self {
        Self {
            metrics: Tail::new(folder.metrics()),
            evaluations: Tail::new(folder.evaluations()),
            adaptation: Tail::new(folder.adaptation()),
            log: Tail::new(folder.log()),
            shown: Shown { stride: 1, ..Shown::default() },
            learning: VecDeque::new(),
            newest: None,
            earlier_updates: 0,
            folder: folder.clone(),
            configured: configured(folder),
            tried: Vec::new(),
            went_on_s: Vec::new(),
        }
    }

    /// Reads everything that the files have gained. A look reads a limited part, and other tasks have their turn
    /// between two looks.
    pub(super) async fn catch_up(&mut self) {
        while self.grow().is_some() {
            yield_now().await;
        }
    }

    /// Everything, as JSON.
    pub(super) fn whole(&self) -> String {
        json(&self.shown)
    }

    /// The returns in training, by steps and by time, as JSON.
    pub(super) fn returns(&self) -> String {
        let wanted = [PROGRESS, "wall_s", "train_return_mean"];
        let columns: BTreeMap<_, _> = self.shown.columns.iter().filter(|(name, _)| wanted.contains(&name.as_str())).collect();
        json(&BTreeMap::from([("columns", columns)]))
    }

    /// Reads the next part of what the files have gained; `None` if they have gained nothing.
    pub(super) fn grow(&mut self) -> Option<Growth> {
        let rows = parsed(&self.metrics.new_lines());
        let evaluations = parsed(&self.evaluations.new_lines());
        let probes = self.adaptation.new_lines();
        self.tried.extend(parsed::<Tried>(&probes));
        let changes = self.changes(parsed(&probes));
        let events = self.log.new_lines();
        if rows.is_empty() && evaluations.is_empty() && probes.is_empty() && events.is_empty() {
            return None;
        }
        for row in &rows {
            self.add_row(row);
        }
        self.judge();
        evaluations.iter().for_each(|evaluation| self.add_evaluation(evaluation));
        self.thin_evaluations();
        self.shown.changes.extend(changes);
        self.place_changes();
        self.shown.events.extend(events.iter().cloned());
        let too_many = self.shown.events.len().saturating_sub(MOST_EVENTS);
        self.shown.events.drain(..too_many);
        let (changes, bottleneck) = (self.shown.changes.clone(), self.shown.bottleneck.clone());
        Some(Growth { rows, evaluations, changes, events, bottleneck })
    }

    /// The probes that changed the setting of the run: those that were accepted, and those that were accepted and then
    /// abandoned, turned into a change back.
    fn changes(&self, probes: Vec<Value>) -> Vec<Value> {
        let mut newest = self.shown.changes.last().cloned();
        let mut changes = Vec::new();
        for mut probe in probes {
            let is_taken_back = probe["verdict"] == "abandoned"
                && newest.as_ref().is_some_and(|last| ["from", "to"].iter().all(|end| last[end] == probe[end]));
            if is_taken_back {
                probe["to"] = probe["from"].clone();
            }
            if is_taken_back || probe["verdict"] == "accepted" {
                newest = Some(probe.clone());
                changes.push(probe);
            }
        }
        changes
    }

    /// Has a change that was made after the checkpoint of a later life count from the beginning of that life, which had it from there on.
    fn place_changes(&mut self) {
        for change in &mut self.shown.changes {
            let Some(life) = change["resumptions"].as_u64() else { continue };
            let went_on_s = self.went_on_s.iter().skip(life as usize).copied().fold(f64::INFINITY, f64::min);
            if change["wall_s"].as_f64().is_some_and(|wall_s| wall_s > went_on_s) {
                change["wall_s"] = went_on_s.into();
            }
        }
    }

    fn add_row(&mut self, row: &Map<String, Value>) {
        self.remember(row);
        let Some(progress) = row.get(PROGRESS).and_then(Value::as_f64) else { return };
        // A run that went on from a checkpoint repeats the steps after it.
        let kept = self.column(PROGRESS).partition_point(|&before| before.is_some_and(|before| before <= progress));
        let length = kept.min(self.column(PROGRESS).len() - usize::from(self.shown.newest_is_passing));
        self.shown.columns.values_mut().for_each(|column| column.truncate(length));
        self.shown.rows_so_far += 1;
        self.shown.newest_is_passing = !self.shown.rows_so_far.is_multiple_of(self.shown.stride);
        for (key, value) in row.iter().filter(|(_, value)| value.is_number() || value.is_null()) {
            let column = self.shown.columns.entry(key.clone()).or_default();
            column.resize(length, None);
            column.push(value.as_f64());
        }
        for column in self.shown.columns.values_mut() {
            column.resize(length + 1, None);
        }
        if length + 1 >= MOST_ROWS && !self.shown.newest_is_passing {
            self.shown.stride *= 2;
            for column in self.shown.columns.values_mut() {
                let mut position = 0;
                column.retain(|_| {
                    position += 1;
                    position % 2 == 0
                });
            }
        }
    }

    /// Adds an evaluation. If the run went on from a checkpoint, the curve leaves out what was evaluated before of the
    /// steps that it repeats. Confirmations of them stay, since those weights existed and may be the best.
    fn add_evaluation(&mut self, evaluation: &Value) {
        let evaluations = &mut self.shown.evaluations;
        let goes_back_behind =
            |before: &Value| evaluation[PROGRESS].as_u64().is_some_and(|env_steps| before[PROGRESS].as_u64() > Some(env_steps));
        while is_routine(evaluation)
            && let Some(last) = evaluations.iter().rposition(is_routine)
            && goes_back_behind(&evaluations[last])
        {
            evaluations.remove(last);
        }
        evaluations.push(evaluation.clone());
    }

    /// Drops evaluations if there are too many. Evaluations that made their weights the best stay.
    fn thin_evaluations(&mut self) {
        let evaluations = &mut self.shown.evaluations;
        let mut before = usize::MAX;
        while (MOST_EVALUATIONS + 1..before).contains(&evaluations.len()) {
            before = evaluations.len();
            let goes_for_routine = 2 * evaluations.iter().filter(|&evaluation| is_routine(evaluation)).count() >= before;
            let mut of_the_kind = 0;
            evaluations.retain(|evaluation| {
                let may_go = is_routine(evaluation) == goes_for_routine && evaluation["is_best"] != true;
                of_the_kind += u32::from(may_go);
                !may_go || of_the_kind % 2 == 0
            });
        }
    }

    fn column(&self, key: &str) -> &[Option<f64>] {
        self.shown.columns.get(key).map_or(&[], Vec::as_slice)
    }

    /// Takes in a row for the verdict. Rows from before learning began, or went on, say nothing about it.
    fn remember(&mut self, row: &Map<String, Value>) {
        let Ok(snapshot) = serde_json::from_value::<Snapshot>(Value::Object(row.clone())) else { return };
        if self.newest.as_ref().is_some_and(|newest| is_of_another_life(&snapshot, newest)) {
            self.learning.clear();
            self.went_on_s.push(snapshot.wall_s);
            self.earlier_updates = snapshot.updates;
            self.configured = configured(&self.folder);
            // Its advice may have been followed.
            self.shown.bottleneck = None;
        }
        let has_trained = self.learning.back().is_none_or(|last| snapshot.training_s > last.training_s);
        if snapshot.updates > self.earlier_updates && has_trained {
            while self.learning.get(1).is_some_and(|moment| snapshot.training_s - moment.training_s >= JUDGED_S) {
                self.learning.pop_front();
            }
            self.learning.push_back(snapshot.clone());
        }
        self.newest = Some(snapshot);
    }

    /// The first and the last moment of the time that is judged, if the run learned in it. The newest row may be later
    /// than the end of training.
    fn judged(&self) -> Option<(&Snapshot, Snapshot)> {
        let [first, last] = [self.learning.front()?, self.learning.back()?];
        let judged = Snapshot { machine_busy_share: self.machine_busy_share(), ..as_training_ended(self.newest.clone()?, last) };
        (first.training_s < last.training_s).then_some((first, judged))
    }

    /// How busy the machine was in the time that is judged, by the rows of training. A row tells of the time since the
    /// one before it, so the first is left out.
    fn machine_busy_share(&self) -> Option<f64> {
        let shares: Vec<f64> = self.learning.iter().skip(1).filter_map(|moment| moment.machine_busy_share).collect();
        (!shares.is_empty()).then(|| shares.iter().sum::<f64>() / shares.len() as f64)
    }

    fn judge(&mut self) {
        if let Some(configured) = &self.configured
            && let Some((first, last)) = self.judged()
        {
            let context = fitted(configured, &self.tried);
            self.shown.bottleneck = Some(verdict_since(first, Some(first), &last, Clock::Training, &context).to_string());
        }
    }
}

/// The configuration and the cores of the newest life of the run in `folder`; `None` if its configuration or its record
/// cannot be read.
fn configured(folder: &RunFolder) -> Option<Context> {
    let path = folder.config();
    let text = read_text(&path, CONFIG_LIMIT_BYTES).ok()?;
    let config = Config::parse(&text, &path.display().to_string(), &[]).ok()?.config;
    Some(Context::of_run(config, &folder.record().ok()?))
}

/// The context with the setting that the run has fitted itself to, as the closing report has it.
fn fitted(configured: &Context, tried: &[Tried]) -> Context {
    let config = &configured.config;
    match Found::of_probes(config.setting(), tried.iter().copied()) {
        Some(found) if config.adaptation.enabled => Context { config: repeating(config, found.home).0, ..configured.clone() },
        _ => configured.clone(),
    }
}

/// Whether the run went on from a checkpoint between `before` and `now`. Processor seconds begin anew then; wall time
/// need not go back, since the last row before a kill may be earlier or later than the checkpoint.
fn is_of_another_life(now: &Snapshot, before: &Snapshot) -> bool {
    let seconds =
        |moment: &Snapshot| [moment.wall_s, moment.actor_time.processor_s, moment.learner_time.processor_s, moment.evaluator_processor_s];
    seconds(now).into_iter().zip(seconds(before)).any(|(now, before)| now < before)
}

fn is_routine(evaluation: &Value) -> bool {
    evaluation["kind"] == "routine"
}

/// The objects of type `T` in `lines`; other lines are passed over.
fn parsed<T: serde::de::DeserializeOwned>(lines: &[String]) -> Vec<T> {
    lines.iter().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn folder() -> (tempfile::TempDir, RunFolder) {
        let root = tempfile::tempdir().unwrap();
        let config = "[environment]\nid = \"CartPole-v1\"\n";
        let folder = RunFolder::create(root.path(), "test", config).unwrap();
        (root, folder)
    }

    /// Its history, as far as its files go.
    fn read(folder: &RunFolder) -> History {
        let mut history = History::of(folder);
        while history.grow().is_some() {}
        history
    }

    fn line(env_steps: u64) -> String {
        format!("{{\"wall_s\": {0}, \"env_steps\": {0}, \"updates\": {0}, \"loss\": 0.5}}\n", env_steps)
    }

    #[test]
    fn curves_of_any_length_keep_their_ends_in_bounded_room() {
        let (_root, folder) = folder();
        fs::write(folder.metrics(), (1..=50_001).map(line).collect::<String>()).unwrap();
        let mut history = read(&folder);
        let steps = history.column(PROGRESS);
        assert!(steps.len() < MOST_ROWS && steps.len() >= MOST_ROWS / 2 - 1, "{}", steps.len());
        assert!(steps.first().unwrap().unwrap() <= 16.0 && steps.last() == Some(&Some(50_001.0)), "{steps:?}");
        let middle = steps.len() / 2;
        assert_eq!(steps[middle + 1].unwrap() - steps[middle].unwrap(), history.shown.stride as f64);
        assert!(history.shown.columns.values().all(|column| column.len() == steps.len()), "all columns have the same length");
        let sent: Value = serde_json::from_str(&history.whole()).unwrap();
        let state = ["rows_so_far", "stride", "newest_is_passing"].map(|key| sent[key].clone());
        assert_eq!(
            state,
            [Value::from(50_001), Value::from(16), Value::from(true)],
            "a page thins its columns from there as the server does"
        );
        let length = steps.len();
        fs::write(folder.metrics(), (1..=50_002).map(line).collect::<String>()).unwrap();
        history.grow().unwrap();
        assert_eq!((history.column(PROGRESS).len(), history.column(PROGRESS).last()), (length, Some(&Some(50_002.0))));
    }

    #[test]
    fn a_run_that_went_on_from_a_checkpoint_goes_on_from_there() {
        let (_root, folder) = folder();
        fs::write(folder.metrics(), [10, 20, 30, 40].map(line).concat()).unwrap();
        let evaluation = |kind: &str, env_steps: u64| format!("{{\"kind\": \"{kind}\", \"env_steps\": {env_steps}}}\n");
        let before = [15, 22, 28, 38].map(|env_steps| evaluation("routine", env_steps)).concat() + &evaluation("confirmation", 38);
        fs::write(folder.evaluations(), &before).unwrap();
        let mut history = read(&folder);
        fs::write(folder.metrics(), [10, 20, 30, 40, 25, 35].map(line).concat()).unwrap();
        fs::write(folder.evaluations(), before + &evaluation("routine", 26) + &evaluation("routine", 34)).unwrap();
        assert_eq!(history.grow().unwrap().rows.len(), 2);
        assert_eq!(history.column(PROGRESS), [10.0, 20.0, 25.0, 35.0].map(Some));
        assert!(history.grow().is_none(), "nothing is new");
        let evaluated =
            |history: &History| history.shown.evaluations.iter().map(|evaluation| evaluation[PROGRESS].as_u64()).collect::<Vec<_>>();
        assert_eq!(evaluated(&history), [15, 22, 38, 26, 34].map(Some), "of what it repeated, the confirmation stays");
        assert_eq!(evaluated(&read(&folder)), evaluated(&history), "an open page shows what a reload does");
    }

    #[test]
    fn evaluations_take_bounded_room_whatever_kind_they_are_of() {
        let (_root, folder) = folder();
        // A run at its goal that fresh episodes do not confirm; what was the best for a moment is the third of all.
        let pair = |round: u64| {
            let best = round == 1;
            format!(
                "{{\"kind\": \"routine\", \"env_steps\": {round}}}\n{{\"kind\": \"confirmation\", \"env_steps\": {round}, \
                 \"is_best\": {best}}}\n"
            )
        };
        fs::write(folder.evaluations(), (0..20_000).map(pair).collect::<String>()).unwrap();
        let history = read(&folder);
        let of = |kind: &str| history.shown.evaluations.iter().filter(|evaluation| evaluation["kind"] == kind).count();
        let counts = [of("routine"), of("confirmation")];
        assert!(counts.iter().sum::<usize>() <= MOST_EVALUATIONS && counts.iter().all(|&count| count > MOST_EVALUATIONS / 8), "{counts:?}");
        assert!(history.shown.evaluations.iter().any(|evaluation| evaluation["is_best"] == true), "the best stays");
    }

    #[test]
    fn of_the_settings_that_were_tried_those_are_told_that_were_kept() {
        let (_root, folder) = folder();
        let probe = |from: u32, to: u32, verdict: &str| {
            format!("{{\"wall_s\": 21.0, \"from\": {{\"actors\": {from}}}, \"to\": {{\"actors\": {to}}}, \"verdict\": \"{verdict}\"}}\n")
        };
        let kept = probe(3, 4, "rejected") + &probe(3, 6, "accepted") + &probe(6, 12, "abandoned");
        fs::write(folder.adaptation(), &kept).unwrap();
        let mut history = read(&folder);
        let actors = |history: &History| history.shown.changes.iter().map(|probe| probe["to"]["actors"].as_u64()).collect::<Vec<_>>();
        assert_eq!(actors(&history), [Some(6)]);
        fs::write(folder.adaptation(), kept + &probe(3, 6, "abandoned")).unwrap();
        history.grow().unwrap();
        assert_eq!(actors(&history), [Some(6), Some(3)], "it could not be kept");
    }

    #[test]
    fn a_change_that_came_after_a_checkpoint_is_told_where_the_run_went_on_with_it() {
        let (_root, folder) = folder();
        let change = |wall_s: u64, resumptions: u64| {
            format!("{{\"wall_s\": {wall_s}, \"from\": {{}}, \"to\": {{}}, \"verdict\": \"accepted\", \"resumptions\": {resumptions}}}\n")
        };
        fs::write(folder.metrics(), [10, 20, 30, 40].map(line).concat()).unwrap();
        let before = change(15, 0) + &change(35, 0);
        fs::write(folder.adaptation(), &before).unwrap();
        let mut history = read(&folder);
        fs::write(folder.metrics(), [10, 20, 30, 40, 25, 33, 45].map(line).concat()).unwrap();
        fs::write(folder.adaptation(), before + &change(36, 1)).unwrap();
        let seconds = |changes: &[Value]| changes.iter().map(|change| change["wall_s"].as_f64()).collect::<Vec<_>>();
        assert_eq!(seconds(&history.grow().unwrap().changes), [15.0, 25.0, 36.0].map(Some));
        assert_eq!(seconds(&read(&folder).shown.changes), [15.0, 25.0, 36.0].map(Some), "an open page shows what a reload does");
    }

    #[test]
    fn the_verdict_is_about_one_life_of_a_run() {
        let (_root, folder) = folder();
        let moment = |seconds: u64, processor_s: f64| {
            let actor = format!("\"actor_environment_s\": {seconds}, \"actor_processor_s\": {processor_s}");
            let time = format!("\"wall_s\": {seconds}, \"training_s\": {seconds}");
            format!("{{{time}, \"env_steps\": {0}, \"updates\": {0}, {actor}}}\n", 100 * seconds)
        };
        // The checkpoint of a killed run is later than its last line, so that nothing but the processor seconds goes
        // back.
        let moments = [moment(10, 9.0), moment(20, 18.0), moment(30, 1.0), moment(40, 10.0), moment(50, 20.0)];
        fs::write(folder.metrics(), moments[..2].concat()).unwrap();
        let mut history = read(&folder);
        assert!(history.shown.bottleneck.is_some());
        fs::write(folder.metrics(), moments[..3].concat()).unwrap();
        assert_eq!(history.grow().unwrap().bottleneck, None, "nothing is known yet of the life that has begun");
        fs::write(folder.metrics(), moments.concat()).unwrap();
        assert!(history.grow().unwrap().bottleneck.is_some());
        // What it takes until learning goes on is none of it.
        assert_eq!(history.learning.iter().map(|moment| moment.wall_s).collect::<Vec<_>>(), [40.0, 50.0]);
    }

    #[test]
    fn advice_is_about_the_newest_life_of_a_run_also_where_the_one_before_it_learned_nothing() {
        let (_root, mut folder) = folder();
        let moment = |wall_s: u64| format!("{{\"wall_s\": {wall_s}, \"training_s\": 0, \"env_steps\": 64, \"updates\": 0}}\n");
        fs::write(folder.metrics(), moment(20)).unwrap();
        let mut history = read(&folder);
        folder.go_on("[environment]\nid = \"CartPole-v1\"\n[actor]\ncount = 4\n").unwrap();
        fs::write(folder.metrics(), moment(20) + &moment(10)).unwrap();
        history.grow().unwrap();
        assert_eq!(history.configured.unwrap().config.actor.count, 4);
    }

    #[test]
    fn the_verdict_is_about_training_and_what_was_counted_of_it_later() {
        let (_root, folder) = folder();
        let moment = |wall_s: u64, training_s: u64, waited_s: u64, evaluator_s: u64| {
            let time = format!("\"wall_s\": {wall_s}, \"training_s\": {training_s}");
            let spent = format!("\"actor_limiter_wait_s\": {waited_s}, \"evaluator_processor_s\": {evaluator_s}");
            format!("{{{time}, \"env_steps\": {training_s}, \"updates\": {training_s}, {spent}}}\n")
        };
        // It is told to end after 25 seconds of training, a moment before the third line. An actor is released, and
        // the evaluator goes on.
        let moments = [moment(10, 5, 1, 2), moment(20, 15, 1, 4), moment(35, 25, 1, 6), moment(45, 25, 9, 16), moment(99, 25, 9, 70)];
        fs::write(folder.metrics(), moments.concat()).unwrap();
        let mut history = read(&folder);
        let (first, last) = history.judged().unwrap();
        assert_eq!((last.training_s - first.training_s, last.evaluator_processor_s, last.actor_time.limiter_wait_s), (20.0, 6.0, 9.0));
        // It went on from a checkpoint of a time before the newest row, and after as much of training.
        fs::write(folder.metrics(), moments.concat() + &moment(60, 25, 9, 70)).unwrap();
        history.grow().unwrap();
        assert!(history.learning.is_empty(), "that was another life");
    }

    #[test]
    fn advice_is_about_what_a_run_has_fitted_itself_to_on_the_cores_that_it_may_use() {
        let config = "[environment]\nid = \"CartPole-v1\"\n[adaptation]\nenabled = true\n[actor]\ncount = 1\n";
        let (root, _) = folder();
        let folder = RunFolder::create(root.path(), "fits", config).unwrap();
        let setting = |actors: usize| format!("{{\"actors\": {actors}, \"environments\": 8, \"batch_size\": 64}}");
        let probe = |from, to, verdict: &str| {
            format!(
                "{{\"from\": {}, \"to\": {}, \"verdict\": \"{verdict}\", \"configured\": {}}}\n",
                setting(from),
                setting(to),
                setting(1)
            )
        };
        fs::write(folder.adaptation(), [probe(1, 16, "accepted"), probe(16, 17, "rejected")].concat()).unwrap();
        let history = read(&folder);
        let context = fitted(history.configured.as_ref().unwrap(), &history.tried);
        assert_eq!((context.config.actor.count, context.config.adaptation.enabled, context.adapts), (16, false, true));
        let record = folder.record().unwrap();
        assert_eq!((context.cores, context.machine_cores), (record.usable_cores, record.machine_cores));
    }

    #[test]
    fn what_is_no_number_is_no_point_of_a_curve() {
        let (_root, folder) = folder();
        fs::write(folder.metrics(), "no object\n{\"env_steps\": 1, \"loss\": null, \"word\": \"text\"}\n{\"env_steps\": 2, \"late\": 3}\n")
            .unwrap();
        let history = read(&folder);
        assert_eq!(history.column("loss"), [None, None]);
        assert_eq!(history.column("late"), [None, Some(3.0)]);
        assert!(!history.shown.columns.contains_key("word"));
    }
}
