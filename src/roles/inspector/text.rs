//! Reports as plain text, for people and their terminals.

use std::fmt::{self, Display, Formatter};

use indicatif::{BinaryBytes, HumanCount};

use super::processes::ProcessReport;
use super::report::Report;
use super::runs::{Cleaned, RunList};
use super::table::Table;
use super::transition::{Transition, Values};
use super::tree::{TreeReport, Verdict};
use super::{Histogram, Rates};
use crate::rendezvous::RunState as Liveliness;
use crate::segment::processes::SlotState;

/// Characters of the longest bar.
const BAR_WIDTH: usize = 40;
/// Shares of time below this are not shown.
const LEAST_SHARE: f64 = 0.005;

impl Display for Report {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        self.header_lines(formatter)?;
        self.region_lines(formatter)?;
        self.process_lines(formatter)?;
        self.replay_lines(formatter)?;
        if let Some(tree) = &self.tree {
            line(formatter, "sum tree", &describe_tree(tree))?;
        }
        if let Some(priorities) = &self.priorities {
            write!(formatter, "{priorities}")?;
        }
        self.staging_lines(formatter)
    }
}

impl Report {
    fn header_lines(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        let (header, run) = (&self.header, &self.run);
        line(formatter, "run", &self.title())?;
        let alive = liveliness(header.state);
        let state = format!("{alive}, {}, started {} ago", run.state, age(header.age_s));
        line(formatter, "supervisor", &format!("pid {}, {state}", header.supervisor_pid))?;
        if let Some(description) = &self.description {
            line(formatter, "folder", &description.run_folder)?;
            let fields = description.fields.iter().map(|field| format!("{} {}[{}]", field.name, field.element, field.length));
            line(formatter, "transition", &fields.collect::<Vec<_>>().join(", "))?;
        }
        if let Some(problem) = &self.description_problem {
            line(formatter, "problem", problem)?;
        }
        line(formatter, "identity", &format!("run {}, layout version {}", header.run_id, header.layout_version))?;
        let progress = format!(
            "{} env steps{}, {} episodes, {} updates{}",
            HumanCount(run.env_steps),
            per_second(run.rates.env_steps_per_s),
            HumanCount(run.episodes),
            HumanCount(run.updates),
            per_second(run.rates.updates_per_s)
        );
        line(formatter, "progress", &progress)?;
        let lag = run.policy_lag_mean.map_or_else(|| "no transitions yet".into(), |mean| format!("mean {mean:.1}"));
        line(formatter, "policy lag", &format!("{lag}, max {} updates", HumanCount(run.policy_lag_max)))?;
        let parameters = &self.parameters;
        let versions =
            format!("version {} for acting, version {} of the learners' state", parameters.version, parameters.learner_state_version);
        line(formatter, "parameters", &format!("{} values, {versions}", HumanCount(parameters.count as u64)))?;
        let learners = &self.learners;
        let leader = learners.leader.map_or_else(|| "nobody leads".into(), |leader| format!("{leader} leads"));
        line(formatter, "learners", &format!("{:?} in epoch {}, {leader}", learners.members, learners.epoch))?;
        let repairing = if run.repairing { ", one under way" } else { "" };
        line(formatter, "repairs", &format!("{}{repairing}", run.repairs))
    }

    fn region_lines(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        let total = bytes(self.header.total_bytes);
        line(formatter, "segment", &format!("{}, {total}", self.header.segment))?;
        let mut table = Table::new(&["region", "offset", "bytes", ""], &[0], 2);
        for region in &self.header.regions {
            let cells = [region.offset_bytes, region.length_bytes].map(|count| HumanCount(count as u64).to_string());
            let [offset, length] = cells;
            table.row(vec![region.name.replace('_', " "), offset, length, bytes(region.length_bytes)]);
        }
        write!(formatter, "{table}")
    }

    fn process_lines(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        let (busy, idle): (Vec<_>, Vec<_>) = self.processes.iter().partition(|process| process.is_of_interest());
        line(formatter, "processes", &format!("{} slots, {} never used", self.processes.len(), idle.len()))?;
        let header = ["slot", "process", "pid", "state", "phase", "heartbeat", "restarts", "done", "rate"];
        let mut table = Table::new(&header, &[1, 3, 4], 2);
        for process in &busy {
            table.row(process_cells(process));
        }
        write!(formatter, "{table}")?;
        for process in &busy {
            let shares: Vec<String> = process.time.named().into_iter().filter(|&(_, share)| share >= LEAST_SHARE).map(percent).collect();
            if !shares.is_empty() {
                writeln!(formatter, "  {}: {} of {:.1} s", process.name(), shares.join(", "), process.time.accounted_s)?;
            }
            if let Some(words) = &process.last_words {
                writeln!(formatter, "  {} said last: {words}", process.name())?;
            }
        }
        Ok(())
    }

    fn replay_lines(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        let replay = &self.replay;
        let share = format!("{:.1} % full", 100.0 * replay.fill);
        line(formatter, "replay", &format!("{} of {} transitions, {share}", HumanCount(replay.size), HumanCount(replay.capacity as u64)))?;
        let ratio = replay.samples_per_insert.map_or_else(String::new, |ratio| format!(" ({ratio:.2} per insert)"));
        let counts = [replay.claimed, replay.inserted, replay.sampled].map(HumanCount);
        line(formatter, "", &format!("claimed {}, inserted {}, sampled {}{ratio}", counts[0], counts[1], counts[2]))?;
        let odd = [replay.skipped_slots, replay.redrawn, replay.stale_priorities, replay.refused_priorities].map(HumanCount);
        line(
            formatter,
            "",
            &format!("skipped slots {}, redrawn {}, stale priorities {}, refused priorities {}", odd[0], odd[1], odd[2], odd[3]),
        )
    }

    fn staging_lines(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        let used: Vec<_> = self.staging.iter().filter(|area| area.committed > 0).collect();
        line(formatter, "staging", &format!("{} areas, {} in use", self.staging.len(), used.len()))?;
        let mut table = Table::new(&["slot", "committed", "flushed", "pending", "room"], &[], 2);
        for area in &used {
            table.row([area.slot, area.committed, area.flushed, area.pending, area.capacity].map(|count| count.to_string()).to_vec());
        }
        if used.is_empty() { Ok(()) } else { write!(formatter, "{table}") }
    }
}

impl Display for Histogram {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        let (Some(smallest), Some(largest), Some(mean)) = (self.smallest, self.largest, self.mean) else {
            return line(formatter, "priorities", "none");
        };
        let spread = format!("smallest {smallest:.3e}, mean {mean:.3e}, largest {largest:.3e}");
        line(formatter, "priorities", &format!("{} ({} zero), {spread}", HumanCount(self.positive), HumanCount(self.zero)))?;
        for bin in &self.bins {
            let bar = bar(bin.count, self.highest_count(), BAR_WIDTH);
            writeln!(formatter, "  {:>9.3e} .. {:<9.3e} {:>10} {bar}", bin.at_least, bin.below, HumanCount(bin.count).to_string())?;
        }
        Ok(())
    }
}

impl Display for RunList {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        if self.runs.is_empty() {
            return writeln!(formatter, "no runs");
        }
        let header = ["pid", "state", "algorithm", "environment", "age", "env steps", "updates", "folder"];
        let mut table = Table::new(&header, &[1, 2, 3, 7], 0);
        for run in &self.runs {
            let count = |count: Option<u64>| count.map_or_else(|| "?".into(), |count| HumanCount(count).to_string());
            // A dead run's own word for its state is what it was when it died.
            let state = match (run.state, run.phase) {
                (Liveliness::Running, Some(phase)) => phase,
                (state, _) => liveliness(state),
            };
            table.row(vec![
                run.pid.to_string(),
                state.into(),
                run.algorithm.clone(),
                run.environment.clone(),
                age(run.age_s),
                count(run.env_steps),
                count(run.updates),
                run.run_folder.clone(),
            ]);
        }
        write!(formatter, "{table}")?;
        for run in &self.runs {
            if let Some(problem) = &run.problem {
                writeln!(formatter, "{}: {problem}", run.pid)?;
            }
        }
        if self.runs.iter().any(|run| run.state == Liveliness::Dead) {
            writeln!(formatter, "`inspect --clean` removes what dead runs left")?;
        }
        Ok(())
    }
}

impl Display for Cleaned {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        for name in &self.removed {
            writeln!(formatter, "removed {name}")?;
        }
        for pid in &self.kept {
            writeln!(formatter, "kept what supervisor {pid} left: processes of its run still live")?;
        }
        if self.removed.is_empty() && self.kept.is_empty() {
            writeln!(formatter, "nothing to remove")?;
        }
        Ok(())
    }
}

impl Display for Transition {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        let role = self.owner.role.map_or("no process of the table", |role| role.name());
        line(formatter, "slot", &self.slot.to_string())?;
        line(formatter, "generation", &self.generation.to_string())?;
        line(formatter, "owner", &format!("process slot {} ({role})", self.owner.slot))?;
        line(formatter, "priority", &self.priority.map_or_else(|| "none".into(), |priority| priority.to_string()))?;
        let mut table = Table::new(&["field", "type", "values"], &[0, 1, 2], 0);
        for field in &self.fields {
            let values = match &field.values {
                Values::F32(values) => format!("{values:?}"),
                Values::I32(values) => format!("{values:?}"),
                Values::U8(values) => format!("{values:?}"),
            };
            table.row(vec![field.name.clone(), field.element.into(), values]);
        }
        write!(formatter, "{table}")
    }
}

fn line(formatter: &mut Formatter<'_>, name: &str, text: &str) -> fmt::Result {
    writeln!(formatter, "{name:<11} {text}")
}

fn process_cells(process: &ProcessReport) -> Vec<String> {
    let dash = || "-".to_owned();
    vec![
        process.slot.to_string(),
        process.name(),
        if process.pid == 0 { dash() } else { process.pid.to_string() },
        process_state(process).into(),
        process.phase.map_or_else(dash, |phase| phase.name().to_owned()),
        process.heartbeat_age_ms.map_or_else(dash, |age_ms| format!("{} ms", HumanCount(age_ms))),
        process.restarts.to_string(),
        done(process),
        rate(&process.rates, process.updates > 0),
    ]
}

/// Whether the owner of a slot lives, in a word.
pub(super) fn process_state(process: &ProcessReport) -> &'static str {
    match process.state {
        SlotState::Free => "free",
        SlotState::Reserved => "reserved",
        SlotState::Live if process.alive => "alive",
        SlotState::Live => "dead",
    }
}

/// What a process has done.
pub(super) fn done(process: &ProcessReport) -> String {
    if process.updates > 0 {
        format!("{} updates", HumanCount(process.updates))
    } else if process.env_steps > 0 {
        format!("{} steps", HumanCount(process.env_steps))
    } else {
        "-".into()
    }
}

/// How fast a process works: in updates if it learns, else in environment steps.
pub(super) fn rate(rates: &Rates, learns: bool) -> String {
    let rate = if learns { rates.updates_per_s } else { rates.env_steps_per_s };
    rate.filter(|&rate| rate > 0.0).map_or_else(|| "-".into(), |rate| format!("{}/s", HumanCount(rate.round() as u64)))
}

fn per_second(rate: Option<f64>) -> String {
    rate.map_or_else(String::new, |rate| format!(" ({}/s)", HumanCount(rate.round() as u64)))
}

fn percent((name, share): (&str, f64)) -> String {
    format!("{name} {:.0} %", 100.0 * share)
}

/// What an audit came to, in words.
pub(super) fn describe_tree(tree: &TreeReport) -> String {
    let looks = if tree.looks == 1 { "1 look".into() } else { format!("{} looks", tree.looks) };
    let sums = format!("root {}, leaves {}", HumanCount(tree.audit.root), HumanCount(tree.audit.leaf_sum));
    let nodes = HumanCount(tree.audit.inconsistent_nodes as u64);
    match tree.verdict {
        Verdict::Exact => format!("exact after {looks} (fan-out {}, {sums})", tree.fanout),
        Verdict::Inconsistent => {
            format!("INCONSISTENT: {nodes} nodes are not the sum of their children ({sums}), and nobody is changing it")
        }
        Verdict::InMotion => format!("in motion: updates were under way in {looks}, {nodes} nodes differ for the moment ({sums})"),
    }
}

fn liveliness(state: Liveliness) -> &'static str {
    match state {
        Liveliness::Running => "running",
        Liveliness::Dead => "dead",
    }
}

/// A bar of up to `width` characters; what is there at all gets at least one.
pub(super) fn bar(count: u64, highest: u64, width: usize) -> String {
    let length = (count as f64 / highest.max(1) as f64 * width as f64).round() as usize;
    "█".repeat(length.clamp(usize::from(count > 0), width))
}

fn bytes(count: usize) -> String {
    BinaryBytes(count as u64).to_string()
}

/// A duration in its two largest units.
pub(super) fn age(seconds: f64) -> String {
    let total = seconds.round() as u64;
    match total {
        0..60 => format!("{total} s"),
        60..3_600 => format!("{} min {} s", total / 60, total % 60),
        3_600..86_400 => format!("{} h {} min", total / 3_600, total / 60 % 60),
        _ => format!("{} d {} h", total / 86_400, total / 3_600 % 24),
    }
}
