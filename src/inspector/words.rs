//! The wording of single facts, which the text and the live view share.

use std::fmt::{self, Formatter};

use indicatif::{BinaryBytes, HumanCount};

use super::Rates;
use super::metrics::MetricReport;
use super::processes::ProcessReport;
use super::tree::{Exactness, TreeReport};
use crate::readable::{counted, percent, score};
use crate::rendezvous::Liveliness;
use crate::segment::processes::SlotState;
use crate::segment::scores::Scores;

/// A named line of a report.
pub(super) fn line(formatter: &mut Formatter<'_>, name: &str, text: &str) -> fmt::Result {
    writeln!(formatter, "{name:<11} {text}")
}

/// Whether the owner of a slot lives, in a word.
fn process_state(process: &ProcessReport) -> &'static str {
    match process.state {
        SlotState::Live if process.alive => "alive",
        SlotState::Live => "dead",
        state => state.name(),
    }
}

/// What a process has done.
fn done(process: &ProcessReport) -> String {
    if process.updates > 0 {
        format!("{} updates", HumanCount(process.updates))
    } else if process.env_steps > 0 {
        format!("{} steps", HumanCount(process.env_steps))
    } else {
        "-".into()
    }
}

/// A process's share of what was inserted.
fn share(process: &ProcessReport) -> String {
    process.insert_share.map_or_else(|| "-".into(), percent)
}

/// How fast a process works: in updates if it learns, else in environment steps.
fn rate(rates: &Rates, learns: bool) -> String {
    let rate = if learns { rates.updates_per_s } else { rates.env_steps_per_s };
    rate.filter(|&rate| rate > 0.0).map_or_else(|| "-".into(), |rate| format!("{}/s", whole_if_large(rate)))
}

/// Cores that a process computed on.
fn cores(rates: &Rates) -> String {
    rates.cores_used.map_or_else(|| "-".into(), |cores| format!("{cores:.2}"))
}

/// Columns of the table of processes.
pub(super) const PROCESS_COLUMNS: [&str; 11] =
    ["slot", "process", "pid", "state", "phase", "heartbeat", "restarts", "done", "rate", "cores", "share"];

/// The row of a process.
pub(super) fn process_cells(process: &ProcessReport) -> [String; PROCESS_COLUMNS.len()] {
    let dash = || "-".to_owned();
    [
        process.slot.to_string(),
        process.name(),
        if process.pid == 0 { dash() } else { process.pid.to_string() },
        process_state(process).into(),
        process.phase.map_or_else(dash, |phase| phase.name().to_owned()),
        process.heartbeat_age_ms.map_or_else(dash, |age_ms| format!("{} ms", HumanCount(age_ms))),
        process.restarts.to_string(),
        done(process),
        rate(&process.rates, process.updates > 0),
        cores(&process.rates),
        share(process),
    ]
}

/// The mean return of the newest training episodes.
pub(super) fn training(scores: &Scores) -> String {
    scores.training.map_or_else(
        || "no episode is finished yet".into(),
        |training| format!("mean return {} over the newest {} episodes", score(training.return_mean), training.episodes),
    )
}

/// What the newest evaluation found.
pub(super) fn evaluation(scores: &Scores) -> String {
    let Some(evaluation) = scores.evaluation else { return "none yet".into() };
    let interval = match (evaluation.ci95_low, evaluation.ci95_high) {
        (Some(low), Some(high)) => format!("95 % interval {} to {}, ", score(low), score(high)),
        _ => String::new(),
    };
    let (episodes, env_steps) = (HumanCount(evaluation.episodes), HumanCount(evaluation.env_steps));
    let when = format!("version {}, {env_steps} env steps", evaluation.version);
    format!("mean return {} ({interval}{episodes} episodes), {when}", score(evaluation.return_mean))
}

/// A rate in parentheses, if it was measured.
pub(super) fn per_second(rate: Option<f64>) -> String {
    rate.map_or_else(String::new, |rate| format!(" ({}/s)", whole_if_large(rate)))
}

/// A rate as a whole number, or with three significant digits if it is below ten: slow work is not none.
pub(super) fn whole_if_large(rate: f64) -> String {
    if rate < 10.0 { significant(rate) } else { HumanCount(rate.round() as u64).to_string() }
}

/// How fast the whole run computes, on how many cores, and how near that is to what they could compute; `None` until
/// two looks have been compared.
pub(super) fn speed(rates: &Rates) -> Option<String> {
    let (learned, cores) = rates.learned_per_s.zip(rates.cores_used)?;
    let peak = rates.peak_share.map_or_else(String::new, |share| format!(", {:.1} % of what they could compute", share * 100.0));
    let busy = rates.machine_busy_share.map_or_else(String::new, |share| format!(", machine {} busy", percent(share)));
    let learned = whole_if_large(learned);
    Some(format!("{learned} samples learned from per second, {cores:.2} cores used{peak}{busy}"))
}

/// [`speed`], and what the learners' GPUs did lately if they use any. `figure` gives the metric of a name, and `busy` is
/// the word for what they were.
pub(super) fn speed_with_gpus(rates: &Rates, busy: &str, figure: impl Fn(&str) -> Option<f64>) -> Option<String> {
    let speed = speed(rates)?;
    let Some((busy_share, memory_bytes)) = figure("gpu_busy_share").zip(figure("gpu_memory_bytes")) else { return Some(speed) };
    Some(format!("{speed}, GPU {} {busy}, {} of its memory", percent(busy_share), bytes(memory_bytes as usize)))
}

/// A metric and its value, with bytes as people read them.
pub(super) fn metric_value(metric: &MetricReport) -> String {
    let MetricReport { name, value } = metric;
    if name.ends_with("_bytes") { format!("{name} {}", bytes(*value as usize)) } else { format!("{name} {}", significant(*value)) }
}

/// A named share.
pub(super) fn named_share((name, share): (&str, f64)) -> String {
    format!("{name} {}", percent(share))
}

/// The verdict of an audit, in words.
pub(super) fn describe_tree(tree: &TreeReport) -> String {
    let looks = counted(tree.looks as usize, "look");
    let sums = format!("root {}, leaves {}", HumanCount(tree.audit.root), HumanCount(tree.audit.leaf_sum));
    let nodes = HumanCount(tree.audit.inconsistent_nodes as u64);
    match tree.verdict {
        Exactness::Exact => format!("exact after {looks} (fan-out {}, {sums})", tree.fanout),
        Exactness::Inconsistent => {
            format!("INCONSISTENT: {nodes} nodes are not the sum of their children ({sums}), and nobody is changing it")
        }
        Exactness::HalfChanged => {
            format!("half changed: a process died in the middle of an operation, and {nodes} nodes are not repaired yet ({sums})")
        }
        Exactness::InMotion => format!("in motion: updates were under way in {looks}, {nodes} nodes differ for the moment ({sums})"),
    }
}

/// Whether a run's supervisor lives.
pub(super) fn liveliness(state: Liveliness) -> &'static str {
    match state {
        Liveliness::Running => "running",
        Liveliness::Dead => "dead",
    }
}

/// A bar of up to `width` characters. A count above zero gets at least one.
pub(super) fn bar(count: u64, highest: u64, width: usize) -> String {
    let length = (count as f64 / highest.max(1) as f64 * width as f64).round() as usize;
    "█".repeat(length.max(usize::from(count > 0)).min(width))
}

/// Bytes, with powers of 1024.
pub(super) fn bytes(count: usize) -> String {
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

/// A number with three significant digits, without an exponent: priorities span many powers of ten around one.
pub(super) fn significant(value: f64) -> String {
    let decimals = (2.0 - value.abs().max(1e-9).log10().floor()).clamp(0.0, 9.0) as usize;
    let text = format!("{value:.decimals$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').into() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_keep_three_significant_digits() {
        let shown = [0.0, 2f64.powi(-20), 0.0009765625, 0.0625, 0.4655, 1.0, 12.063, 131_072.0].map(significant);
        assert_eq!(shown, ["0", "0.000000954", "0.000977", "0.0625", "0.466", "1", "12.1", "131072"]);
    }

    #[test]
    fn bars_never_leave_their_room_and_never_hide_a_count() {
        let lengths = [(0, 9, 4), (1, 1_000, 4), (9, 9, 4), (9, 9, 0), (1, 9, 0)];
        assert_eq!(lengths.map(|(count, highest, width)| bar(count, highest, width).chars().count()), [0, 1, 4, 0, 0]);
    }

    #[test]
    fn ages_have_two_units() {
        assert_eq!([0.4, 61.0, 3_700.0, 100_000.0].map(age), ["0 s", "1 min 1 s", "1 h 1 min", "1 d 3 h"]);
    }
}
