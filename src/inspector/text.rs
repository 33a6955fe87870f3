//! A run's report as plain text, for people and their terminals.

use std::fmt::{self, Display, Formatter};

use indicatif::HumanCount;

use super::Histogram;
use super::listing::from_here;
use super::report::Report;
use super::words::{
    PROCESS_COLUMNS, age, bar, bytes, describe_tree, evaluation, line, metric_value, named_share, per_second, process_cells, significant,
    speed, training,
};
use crate::rendezvous::Liveliness;
use crate::telemetry::Table;

/// Characters of the longest bar.
const BAR_WIDTH: usize = 40;
/// The least share of time that is shown.
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
        let alive = if header.state == Liveliness::Running { "alive" } else { "dead" };
        let cores = run.supervisor_cores_used.map_or_else(String::new, |cores| format!(", {cores:.2} cores"));
        line(formatter, "supervisor", &format!("pid {} ({alive}), started {} ago{cores}", header.supervisor_pid, age(header.age_s)))?;
        line(formatter, "state", run.state.name())?;
        if let Some(description) = &self.description {
            line(formatter, "folder", &from_here(&description.run_folder))?;
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
        if let Some(speed) = speed(&run.rates) {
            line(formatter, "speed", &speed)?;
        }
        line(formatter, "training", &training(&self.scores))?;
        line(formatter, "evaluation", &evaluation(&self.scores))?;
        if !self.metrics.is_empty() {
            let metrics: Vec<_> = self.metrics.iter().map(metric_value).collect();
            line(formatter, "metrics", &metrics.join(", "))?;
        }
        let lag = run.policy_lag_mean.map_or_else(|| "no transitions yet".into(), |mean| format!("mean {mean:.1}"));
        line(formatter, "policy lag", &format!("{lag}, max {} updates", HumanCount(run.policy_lag_max)))?;
        let parameters = &self.parameters;
        let versions =
            format!("version {} for acting, version {} of the learners' state", parameters.version, parameters.learner_state_version);
        line(formatter, "parameters", &format!("{} values, {versions}", HumanCount(parameters.count as u64)))?;
        let learners = &self.learners;
        let leader = match learners.leader {
            _ if self.header.sizes.halves() > 0 => "a half each".into(),
            Some(leader) => format!("{leader} leads"),
            None => "nobody leads".into(),
        };
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
        let mut table = Table::new(&PROCESS_COLUMNS, &[1, 3, 4], 2);
        for process in &busy {
            table.row(process_cells(process).to_vec());
        }
        write!(formatter, "{table}")?;
        for process in &busy {
            let shares: Vec<String> =
                process.time.named().into_iter().filter(|&(_, share)| share >= LEAST_SHARE).map(named_share).collect();
            if !shares.is_empty() {
                writeln!(formatter, "  {}: {} of {:.1} s", process.name(), shares.join(", "), process.time.accounted_s)?;
            }
            if let Some(words) = &process.last_words {
                writeln!(formatter, "  {} said last: {}", process.name(), words.lines().next().unwrap_or_default())?;
            }
        }
        Ok(())
    }

    fn replay_lines(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        let replay = &self.replay;
        let share = format!("{:.1} % full", 100.0 * replay.fill);
        line(formatter, "replay", &format!("{} of {} rows, {share}", HumanCount(replay.size), HumanCount(replay.capacity as u64)))?;
        let ratio = replay.samples_per_insert.map_or_else(String::new, |ratio| format!(" ({ratio:.2} per insert)"));
        let counts = [replay.claimed, replay.inserted, replay.sampled].map(HumanCount);
        line(formatter, "", &format!("claimed {}, inserted {}, sampled {}{ratio}", counts[0], counts[1], counts[2]))?;
        let odd = [replay.skipped_slots, replay.redrawn].map(HumanCount);
        line(formatter, "", &format!("skipped slots {}, redrawn {}", odd[0], odd[1]))?;
        let odd = [replay.stale_priorities, replay.refused_priorities, replay.saturated_priorities].map(HumanCount);
        line(formatter, "", &format!("priorities: stale {}, refused {}, saturated {}", odd[0], odd[1], odd[2]))
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
        let spread = format!("smallest {}, mean {}, largest {}", significant(smallest), significant(mean), significant(largest));
        line(formatter, "priorities", &format!("{} ({} zero), {spread}", HumanCount(self.positive), HumanCount(self.zero)))?;
        for bin in &self.bins {
            let bar = bar(bin.count, self.highest_count(), BAR_WIDTH);
            let [at_least, below] = [bin.at_least, bin.below].map(significant);
            writeln!(formatter, "  {at_least:>11} .. {below:<11} {:>10} {bar}", HumanCount(bin.count).to_string())?;
        }
        Ok(())
    }
}
