//! Everything that is reported about one run, as plain data: collected from its segment, rendered by `text`,
//! `live_view` and serde.

use serde::Serialize;

use super::histogram::Histogram;
use super::metrics::MetricReport;
use super::printable::{printable, printable_path};
use super::processes::ProcessReport;
use super::rates::{Look, Rates};
use super::replay::{ReplayReport, StagingReport, staging};
use super::runs::age_s;
use super::tree::TreeReport;
use crate::rendezvous::Liveliness;
use crate::replay::SumTree;
use crate::segment::control::RunState;
use crate::segment::counters::Counter;
use crate::segment::membership::View;
use crate::segment::pictures::{Caption, DRAWN_AS_BARS, PictureBoard};
use crate::segment::scores::Scores;
use crate::segment::{ABI_VERSION, Description, Segment, SegmentSizes};
use crate::sync::Ordering;

/// One run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// Whose segment it is and where everything lies in it.
    pub header: Header,
    /// What the run says of itself; absent if that cannot be read.
    pub description: Option<RunDescription>,
    /// Why the description cannot be read.
    pub description_problem: Option<String>,
    /// Run-wide counts.
    pub run: RunReport,
    /// The newest returns, as the supervisor last knew them.
    pub scores: Scores,
    /// What the learners said of their updates lately.
    pub metrics: Vec<MetricReport>,
    /// The process table, a row per slot.
    pub processes: Vec<ProcessReport>,
    /// The replay's counts.
    pub replay: ReplayReport,
    /// The distribution of priorities; absent if sampling is uniform, or if the tree was not looked at.
    pub priorities: Option<Histogram>,
    /// The audit of the sum tree; absent if sampling is uniform, or if the tree was not looked at.
    pub tree: Option<TreeReport>,
    /// Staging areas.
    pub staging: Vec<StagingReport>,
    /// Published parameters.
    pub parameters: ParameterReport,
    /// The learners that take part in the exchange.
    pub learners: LearnerReport,
    /// The newest picture of the visualizer; absent before the first.
    pub picture: Option<PictureReport>,
}

/// Whose segment it is and where everything lies in it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Header {
    /// Name of the shared-memory object.
    pub segment: String,
    /// Version of the layout.
    pub layout_version: u64,
    /// Random name of the run, in hexadecimal.
    pub run_id: String,
    /// Process id of the supervisor.
    pub supervisor_pid: u32,
    /// Whether the supervisor lives.
    pub state: Liveliness,
    /// When the run was created, in milliseconds since 1970.
    pub created_unix_ms: u64,
    /// Seconds since the run was created.
    pub age_s: f64,
    /// Bytes of the segment.
    pub total_bytes: usize,
    /// The sizes from which the layout follows.
    pub sizes: SegmentSizes,
    /// The regions, in the order of their offsets.
    pub regions: Vec<RegionReport>,
}

/// One region's place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct RegionReport {
    /// Name.
    pub name: &'static str,
    /// Bytes from the start of the segment.
    pub offset_bytes: usize,
    /// Bytes.
    pub length_bytes: usize,
}

/// What the run says of itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RunDescription {
    /// Version of the program that started the run.
    pub program_version: String,
    /// Environment.
    pub environment: String,
    /// Algorithm.
    pub algorithm: String,
    /// The folder of the run's results.
    pub run_folder: String,
    /// Fields of a transition.
    pub fields: Vec<FieldReport>,
}

/// One field of a transition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FieldReport {
    /// Name.
    pub name: String,
    /// Element type.
    pub element: String,
    /// Number of elements.
    pub length: usize,
}

/// Run-wide counts.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct RunReport {
    /// What the run is doing.
    pub state: RunState,
    /// Environment steps of all actors.
    pub env_steps: u64,
    /// Episodes finished.
    pub episodes: u64,
    /// Updates of the parameters.
    pub updates: u64,
    /// Work per second, measured.
    #[serde(flatten)]
    pub rates: Rates,
    /// Cores that the supervisor computed on, measured; they are no part of `cores_used`.
    pub supervisor_cores_used: Option<f64>,
    /// Updates by which the acting policy was older than the newest, mean over all transitions; absent before the
    /// first.
    pub policy_lag_mean: Option<f64>,
    /// The largest policy lag.
    pub policy_lag_max: u64,
    /// How often the supervisor repaired the replay.
    pub repairs: u64,
    /// Whether the supervisor is repairing the replay now.
    pub repairing: bool,
}

/// Published parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct ParameterReport {
    /// Number of parameters that are published for acting.
    pub count: usize,
    /// How many versions were published for acting.
    pub version: u64,
    /// How many versions were published of the learners' whole state.
    pub learner_state_version: u64,
}

/// The learners that take part in the exchange.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LearnerReport {
    /// A number that grows with every change of the members.
    pub epoch: u32,
    /// Numbers of the learners.
    pub members: Vec<usize>,
    /// The learner that publishes; absent also if two learners have a half each.
    pub leader: Option<usize>,
}

/// What a picture shows.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct PictureReport {
    /// Number of the picture, from 1.
    pub version: u64,
    /// Environment steps of the run.
    pub env_steps: u64,
    /// Updates that led to the parameters that act.
    pub updates: u64,
    /// Return of the episode so far.
    pub episode_return: f64,
    /// Steps of the episode so far.
    pub episode_steps: u64,
    /// Whether the picture shows the observation as bars, since the environment draws nothing.
    pub drawn_as_bars: bool,
}

impl PictureReport {
    /// What `caption` says.
    pub(crate) fn of(caption: Caption) -> Self {
        let [env_steps, updates, episode_return, step] = caption.notes;
        Self {
            version: caption.version,
            env_steps,
            updates,
            episode_return: f64::from_bits(episode_return),
            episode_steps: step & !DRAWN_AS_BARS,
            drawn_as_bars: step & DRAWN_AS_BARS != 0,
        }
    }
}

impl Report {
    /// Collects the report from `segment`. Rates are since `earlier`, and the tree is audited up to `most_looks`
    /// times; with 0 it is left out.
    pub(super) fn collect(segment: &Segment, state: Liveliness, earlier: Option<&Look>, most_looks: u32) -> Self {
        let now = Look::at(segment);
        let of_this_boot = segment.identity().is_of_this_boot();
        let process_rates = |slot| earlier.map_or_else(Rates::default, |earlier| now.process_rates(earlier, slot));
        let inserted = segment.processes().total(Counter::Inserted);
        let processes =
            segment.processes().iter().map(|slot| ProcessReport::of(slot, process_rates(slot.index()), inserted, of_this_boot)).collect();
        let described = segment.description();
        let metrics = described.as_ref().map_or_else(|_| Vec::new(), |described| MetricReport::all(segment, &described.metrics));
        let (description, description_problem) = match described {
            Ok(described) => (Some(printed(&described)), None),
            Err(problem) => (None, Some(printable(&problem.to_string()))),
        };
        let replay = ReplayReport::of(segment);
        let sizes = segment.layout().sizes();
        let tree = SumTree::of(segment).filter(|_| most_looks > 0);
        let view = View::load(segment.control().membership());
        Self {
            header: header(segment, state),
            description,
            description_problem,
            run: run(segment, earlier, &now),
            processes,
            scores: segment.control().scores().read(),
            metrics,
            replay,
            priorities: tree.as_ref().map(|tree| Histogram::of(tree, replay.size)),
            tree: tree.as_ref().map(|tree| TreeReport::of(segment, tree, most_looks)),
            staging: staging(segment),
            parameters: ParameterReport {
                count: sizes.published_values,
                version: segment.parameter_board().version(),
                learner_state_version: segment.learner_boards().next().map_or(0, |board| board.version()),
            },
            learners: LearnerReport {
                epoch: view.epoch,
                members: view.learners().collect(),
                leader: view.leader.filter(|_| sizes.halves() == 0),
            },
            picture: segment.picture_board().and_then(PictureBoard::caption).map(PictureReport::of),
        }
    }

    /// Algorithm and environment, for people.
    pub fn title(&self) -> String {
        match &self.description {
            Some(description) => format!("{} on {}", description.algorithm, description.environment),
            None => "a run without a readable description".into(),
        }
    }
}

fn header(segment: &Segment, state: Liveliness) -> Header {
    let identity = segment.identity();
    let layout = segment.layout();
    let regions = layout.sections().iter().map(|section| RegionReport {
        name: section.region.name(),
        offset_bytes: section.offset_bytes,
        length_bytes: section.length_bytes,
    });
    Header {
        segment: printable(segment.name()),
        layout_version: ABI_VERSION,
        run_id: format!("{:032x}", identity.run_id),
        supervisor_pid: identity.supervisor_pid,
        state,
        created_unix_ms: identity.created_unix_ms,
        age_s: age_s(identity.created_unix_ms),
        total_bytes: layout.total_bytes(),
        sizes: *layout.sizes(),
        regions: regions.collect(),
    }
}

fn printed(description: &Description) -> RunDescription {
    let fields = description.fields.iter().map(|field| FieldReport {
        name: printable(&field.name),
        element: printable(&field.element),
        length: field.length,
    });
    RunDescription {
        program_version: printable(&description.program_version),
        environment: printable(&description.environment),
        algorithm: printable(&description.algorithm),
        run_folder: printable_path(&description.run_folder),
        fields: fields.collect(),
    }
}

fn run(segment: &Segment, earlier: Option<&Look>, now: &Look) -> RunReport {
    let control = segment.control();
    RunReport {
        state: control.run_state(),
        env_steps: control.env_steps().load(Ordering::Relaxed),
        episodes: segment.processes().total(Counter::Episodes),
        updates: control.updates().load(Ordering::Relaxed),
        rates: earlier.map_or_else(Rates::default, |earlier| now.run_rates(earlier)),
        supervisor_cores_used: earlier.and_then(|earlier| now.supervisor_cores_used(earlier)),
        policy_lag_mean: segment.processes().mean_policy_lag(),
        policy_lag_max: segment.processes().largest_policy_lag(),
        repairs: control.repairs().load(Ordering::Relaxed),
        repairing: control.gate().load(Ordering::Relaxed) != 0,
    }
}
