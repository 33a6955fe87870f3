//! A run whose every number is known, made by the test itself, and the binary to look at it with.
#![allow(unreachable_pub, reason = "the module is this test's own")]

use std::process::Command;

use serde_json::Value;
use shoal::metrics::{Metric, Tally};
use shoal::rendezvous::{Announcement, RegisteredRun, Registry};
use shoal::replay::{Element, Field, Priority, Replay, Schema, StagingArea};
use shoal::segment::control::RunState;
use shoal::segment::counters::Counter;
use shoal::segment::membership::View;
use shoal::segment::processes::{Phase, Role};
use shoal::segment::scores::{EvaluationScore, Scores, TrainingScore};
use shoal::segment::{Description, Identity, Layout, Region, Segment, SegmentSizes};
use shoal::sync::Ordering;
use tempfile::TempDir;

use crate::support::object::{ended_process, path_of};
use crate::support::programs::program;

/// Priorities of the ten transitions that are inserted, by slot.
pub const PRIORITIES: [f32; 10] = [0.25, 0.3, 0.5, 1.0, 1.5, 1.9, 4.0, 7.0, 1000.0, 0.001];
/// Transitions that are staged and not flushed.
pub const PENDING: usize = 3;
pub const CAPACITY: usize = 32;
/// The newest scores of the run.
pub const SCORES: Scores = Scores {
    training: Some(TrainingScore { return_mean: -120.25, episodes: 4 }),
    evaluation: Some(EvaluationScore {
        return_mean: 412.5,
        ci95_low: Some(380.0),
        ci95_high: Some(445.0),
        episodes: 20,
        env_steps: 96,
        version: 2,
    }),
};
/// What the dead actor said last, with an escape code that must not reach a terminal.
pub const LAST_WORDS: &str = "out of \x1b[31mmemory";

/// The sizes of the run.
pub fn sizes() -> SegmentSizes {
    SegmentSizes {
        processes: 4,
        stagers: 2,
        staged_rows: 8,
        capacity: CAPACITY,
        fanout: 8,
        row_words: schema().words(),
        published_values: 10,
        learned_parameters: 10,
        learner_state_values: 40,
        statistics_values: 0,
        learners: 2,
        frames: 0,
        frame_bytes: 0,
        picture_bytes: 0,
        handed_over_values: 0,
        description_bytes: 16_384,
    }
}

/// Fields of every element type, wide and narrow.
pub fn schema() -> Schema {
    Schema::new(vec![
        Field::new("observation", Element::F32, 3),
        Field::new("action", Element::I32, 1),
        Field::new("pixels", Element::U8, 5),
        Field::new("flags", Element::U8, 2),
        Field::new("indices", Element::I32, 2),
    ])
}

/// A registry in a folder of its own, for which the binary can be run.
pub struct World {
    folder: TempDir,
    pub registry: Registry,
}

impl World {
    pub fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let registry = Registry::open_at(folder.path().join("shoal")).unwrap();
        Self { folder, registry }
    }

    /// The binary with `arguments`.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = program("inspect", self.folder.path());
        command.args(arguments);
        command
    }

    /// Run the binary; its standard output if it succeeds, else its standard error. Anything but an orderly success or
    /// failure, such as a panic, fails the test.
    pub fn inspect(&self, arguments: &[&str]) -> Result<String, String> {
        let output = self.command(arguments).output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("the output is text");
        let (out, err) = (text(output.stdout), text(output.stderr));
        match output.status.code() {
            Some(0) => {
                assert_eq!(err, "");
                Ok(out)
            }
            Some(1) => {
                assert_eq!(out, "");
                assert!(err.starts_with("error: ") && err.lines().count() == 1, "{err}");
                Err(err)
            }
            _ => panic!("{arguments:?} ended with {}: {err}", output.status),
        }
    }

    /// Run the binary with `--json` and read what it printed; the report on a run takes no longer than it must.
    pub fn json(&self, arguments: &[&str]) -> Value {
        let mut all = vec!["--json"];
        all.extend(arguments);
        if matches!(arguments, [run] if !run.starts_with('-')) {
            all.extend(["--interval-ms", "1"]);
        }
        serde_json::from_str(&self.inspect(&all).unwrap()).unwrap()
    }

    /// Announce a run of `identity` with the segment called `segment`.
    pub fn announce(&self, identity: &Identity, segment: &str) -> Announcement {
        self.announce_in("runs/known", identity, segment)
    }

    /// As [`announce`](Self::announce), a run with its results in `run_folder`.
    pub fn announce_in(&self, run_folder: &str, identity: &Identity, segment: &str) -> Announcement {
        let record = RegisteredRun {
            identity: identity.clone(),
            segment: segment.into(),
            socket: self.registry.socket_path(identity.supervisor_pid),
            run_folder: run_folder.into(),
            environment: "Known-v1".into(),
            algorithm: "dqn".into(),
            program_version: "9.9.9".into(),
        };
        let announcement = self.registry.reserve(&record).unwrap();
        announcement.publish().unwrap();
        announcement
    }
}

/// The known run.
pub struct Known {
    pub segment: Segment,
}

impl Known {
    pub fn new() -> Self {
        Self::with(sizes())
    }

    pub fn with(sizes: SegmentSizes) -> Self {
        let segment = Segment::create(Layout::new(sizes).unwrap(), &description(), false).unwrap();
        fill_processes(&segment);
        report_metrics(&segment);
        fill_replay(&segment);
        let control = segment.control();
        control.set_run_state(RunState::Running);
        control.env_steps().store(120, Ordering::Relaxed);
        control.updates().store(7, Ordering::Relaxed);
        control.sampled().store(224, Ordering::Relaxed);
        control.repairs().store(2, Ordering::Relaxed);
        View { epoch: 5, members: 0b11, leader: Some(1), doublings: 0 }.store(control.membership());
        control.scores().publish(&SCORES);
        for version in 1..=3 {
            segment.parameter_board().publish(&[&[0.5; 10]], [version; 4]);
        }
        segment.learner_boards().next().unwrap().publish(&[&[0.5; 10], &[0.5; 10], &[0.5; 10], &[0.5; 10]], [0; 4]);
        Self { segment }
    }

    /// The run's name on the command line.
    pub fn pid(&self) -> String {
        self.segment.identity().supervisor_pid.to_string()
    }

    /// Every byte of its segment.
    pub fn bytes(&self) -> Vec<u8> {
        std::fs::read(path_of(self.segment.name())).unwrap()
    }

    /// Every byte of its segment, had it this `description`.
    pub fn bytes_with(&self, description: &Description) -> Vec<u8> {
        let (mut bytes, encoded) = (self.bytes(), description.encode().unwrap());
        let start = self.segment.layout().section(Region::Description).offset_bytes;
        put_word(&mut bytes, start / 8, encoded.len() as u64);
        bytes[start + 8..][..encoded.len()].copy_from_slice(&encoded);
        bytes
    }
}

/// As an algorithm declares them.
const METRICS: &[Metric] = &[Metric::mean("loss"), Metric::max("entropy"), Metric::sum("drops"), Metric::last("never_said")];

/// Two reports of a learner.
fn report_metrics(segment: &Segment) {
    for (loss, entropy) in [(77.0, 0.75), (0.5, 0.25)] {
        let mut tally = Tally::new(METRICS);
        tally.add_all(METRICS[0], 4.0 * loss, 4.0);
        tally.add(METRICS[1], entropy);
        tally.add(METRICS[2], 3.0);
        segment.metric_ring(2).push_all(&tally);
    }
}

fn description() -> Description {
    Description {
        program_version: "9.9.9".into(),
        config_toml: "[run]\nseed = 1\n".into(),
        run_folder: "runs/known".into(),
        environment: "Known-v1".into(),
        spaces: "4 observed values (f32 [4]) and takes an index from 0 to 1".into(),
        algorithm: "dqn".into(),
        fields: schema().describe(),
        metrics: METRICS.iter().map(Into::into).collect(),
    }
}

fn fill_processes(segment: &Segment) {
    let table = segment.processes();
    for (index, role, number, pid) in
        [(0, Role::Actor, 0, std::process::id()), (1, Role::Actor, 1, ended_process()), (2, Role::Learner, 0, std::process::id())]
    {
        let slot = table.slot(index);
        assert!(slot.reserve(role, number).is_some_and(|generation| slot.occupy(pid, generation)));
    }
    let count = |slot: usize, counts: &[(Counter, u64)]| {
        counts.iter().for_each(|&(counter, amount)| table.slot(slot).counters().add(counter, amount));
    };
    let seconds = 1_000_000_000;
    count(
        0,
        &[
            (Counter::EnvSteps, 120),
            (Counter::Episodes, 4),
            (Counter::PolicyLagSum, 30),
            (Counter::LaggedRows, 10),
            (Counter::PolicyLagMax, 9),
        ],
    );
    count(0, &[(Counter::EnvironmentNs, 3 * seconds), (Counter::InferenceNs, seconds), (Counter::SkippedSlots, 1)]);
    count(2, &[(Counter::Updates, 7), (Counter::Sampled, 224), (Counter::Redrawn, 2), (Counter::ComputeNs, 2 * seconds)]);
    count(2, &[(Counter::StalePriorities, 5), (Counter::RefusedPriorities, 6), (Counter::SaturatedPriorities, 7)]);
    table.slot(0).enter(Phase::Insert);
    table.slot(2).enter(Phase::Compute);
    table.slot(1).set_last_words(LAST_WORDS);
    table.slot(1).count_restarts(1);
}

fn fill_replay(segment: &Segment) {
    let schema = schema();
    let area = StagingArea::of(segment, 0);
    let mut replay = Replay::new(segment, schema.clone(), segment.processes().slot(0));
    let stage = |number: u16, priority| {
        let value = f32::from(number);
        let mut writer = area.write(&schema);
        writer.f32(0, &[value, -value, 0.5]).i32(1, &[-i32::from(number)]);
        writer.u8(2, &[1, 2, 3, 4, number as u8]).u8(3, &[number as u8, 255]).i32(4, &[i32::MIN, i32::from(number)]);
        writer.commit(priority);
    };
    for (number, &priority) in (0..).zip(&PRIORITIES) {
        stage(number, Priority::from_f32(priority));
        if area.is_full() {
            replay.flush(area);
        }
    }
    replay.flush(area);
    (0..PENDING).for_each(|_| stage(99, None));
}

/// Make a segment's bytes those of a run whose supervisor has ended, and return its identity.
pub fn kill_supervisor(bytes: &mut [u8], identity: &Identity) -> Identity {
    let identity = Identity { supervisor_pid: ended_process(), supervisor_start_time: 1, ..identity.clone() };
    put_word(bytes, 8, u64::from(identity.supervisor_pid));
    put_word(bytes, 9, identity.supervisor_start_time);
    seal(bytes);
    identity
}

/// Overwrite the 64-bit word number `index`.
pub fn put_word(bytes: &mut [u8], index: usize, value: u64) {
    bytes[8 * index..][..8].copy_from_slice(&value.to_le_bytes());
}

/// The word of the header that holds the checksum of those before it, the first one apart: behind three words for each region.
pub const CHECKSUM_WORD: usize = 32 + 3 * Region::ALL.len();

/// Make the header's checksum right again.
pub fn seal(bytes: &mut [u8]) {
    let sum = crc32fast::hash(&bytes[8..8 * CHECKSUM_WORD]);
    put_word(bytes, CHECKSUM_WORD, u64::from(sum));
}
