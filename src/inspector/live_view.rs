//! The drawing of the live view: a pure function from a report and a short history to a frame.

use std::collections::VecDeque;

use indicatif::HumanCount;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Style, Stylize};
use ratatui::text::Line;
use ratatui::widgets::{Block, Cell, Gauge, Paragraph, Row, Sparkline, Table};

use super::report::Report;
use super::words::{
    PROCESS_COLUMNS, age, bar, describe_tree, evaluation, process_cells, significant, speed_with_gpus, training, whole_if_large,
};
use crate::segment::processes::Role;

/// Moments that the sparklines remember.
const MOMENTS: usize = 240;
/// Rows of the table of processes for its frame and its header.
const FRAME_AND_HEADER: u16 = 3;

/// Rates of the run over the last moments, the newest last.
#[derive(Debug, Clone, Default)]
pub struct History {
    env_steps_per_s: VecDeque<f64>,
    updates_per_s: VecDeque<f64>,
}

impl History {
    /// Appends the rates of `report`.
    pub fn push(&mut self, report: &Report) {
        let rates = report.run.rates;
        for (history, rate) in [(&mut self.env_steps_per_s, rates.env_steps_per_s), (&mut self.updates_per_s, rates.updates_per_s)] {
            history.push_back(rate.unwrap_or(0.0));
            if history.len() > MOMENTS {
                history.pop_front();
            }
        }
    }
}

/// Draws `report`, with the rates of `history`.
pub fn draw(frame: &mut Frame<'_>, report: &Report, history: &History) {
    let [header, processes, replay, priorities, rates, help] = areas(frame.area(), report);
    draw_header(frame, header, report);
    draw_processes(frame, processes, report);
    draw_replay(frame, replay, report);
    draw_priorities(frame, priorities, report);
    let [steps, updates] = Layout::horizontal([Constraint::Fill(1), Constraint::Fill(1)]).areas(rates);
    draw_rate(frame, steps, "env steps/s", &history.env_steps_per_s, Color::Green);
    draw_rate(frame, updates, "updates/s", &history.updates_per_s, Color::Yellow);
    frame.render_widget(Line::from("q quits").dim(), help);
}

/// The areas of the parts, from top to bottom. Processes get half of the rows at most. A low terminal has no room for
/// priorities, and a lower one none for rates.
fn areas(area: Rect, report: &Report) -> [Rect; 6] {
    const HEADER: u16 = 6;
    const REPLAY: u16 = 3;
    const RATES: u16 = 6;
    const HELP: u16 = 1;
    let rows = |count: usize, frame: u16| u16::try_from(count).unwrap_or(u16::MAX).saturating_add(frame);
    let processes = rows(report.processes.iter().filter(|process| process.is_of_interest()).count(), FRAME_AND_HEADER).min(area.height / 2);
    let left = area.height.saturating_sub(HEADER + processes + REPLAY + HELP);
    let rates = if left < RATES { 0 } else { RATES };
    let bins = report.priorities.as_ref().map_or(0, |priorities| priorities.bins.len());
    let priorities = Some(rows(bins, 2).clamp(3, 14).min(left - rates)).filter(|&height| height >= 3).unwrap_or(0);
    let [header, replay, priorities, rates, help] = [HEADER, REPLAY, priorities, rates, HELP].map(Constraint::Length);
    Layout::vertical([header, Constraint::Fill(1), replay, priorities, rates, help]).areas(area)
}

fn draw_header(frame: &mut Frame<'_>, area: Rect, report: &Report) {
    let (header, run) = (&report.header, &report.run);
    let title = format!(" {}, supervisor {} ", report.title(), header.supervisor_pid);
    let lag = run.policy_lag_mean.map_or_else(|| "-".into(), |mean| format!("{mean:.1}"));
    let counts = format!(
        "{} for {}   {} env steps   {} episodes   {} updates",
        run.state.name(),
        age(header.age_s),
        HumanCount(run.env_steps),
        HumanCount(run.episodes),
        HumanCount(run.updates)
    );
    let learning = format!(
        "policy lag {lag} (max {})   parameters version {}   learners {:?} epoch {}   repairs {}",
        HumanCount(run.policy_lag_max),
        report.parameters.version,
        report.learners.members,
        report.learners.epoch,
        run.repairs
    );
    let returns = format!("training {}   evaluation {}", training(&report.scores), evaluation(&report.scores));
    let figure = |name: &str| report.metrics.iter().find(|metric| metric.name == name).map(|metric| metric.value);
    let speed = speed_with_gpus(&run.rates, "busy", figure).unwrap_or_default();
    let lines = vec![Line::from(counts), Line::from(speed), Line::from(returns), Line::from(learning)];
    frame.render_widget(Paragraph::new(lines).block(Block::bordered().title(title.bold())), area);
}

fn draw_processes(frame: &mut Frame<'_>, area: Rect, report: &Report) {
    let mut processes: Vec<_> = report.processes.iter().filter(|process| process.is_of_interest()).collect();
    // Actors come last, so that they go without a row if there is no room: the other processes are few, and each is of
    // another kind.
    processes.sort_by_key(|process| matches!(process.role, Some(Role::Actor | Role::Guest)));
    let count = processes.len();
    let room = usize::from(area.height.saturating_sub(FRAME_AND_HEADER));
    let title = if count > room { format!(" processes, {room} of {count} ") } else { " processes ".to_owned() };
    let processes: Vec<_> = processes.into_iter().take(room).map(process_cells).collect();
    // Columns are as wide as their cells, since a terminal has little room for so many.
    let widths: [usize; PROCESS_COLUMNS.len()] = std::array::from_fn(|column| {
        let cells = processes.iter().map(|cells| cells[column].as_str()).chain([PROCESS_COLUMNS[column]]);
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    });
    // A narrow terminal shortens all other columns first.
    let widths = PROCESS_COLUMNS.iter().zip(widths).map(|(column, width)| {
        let width = u16::try_from(width).unwrap_or(u16::MAX);
        if ["process", "pid"].contains(column) { Constraint::Min(width) } else { Constraint::Length(width) }
    });
    let rows = processes.into_iter().map(|cells| {
        Row::new(PROCESS_COLUMNS.into_iter().zip(cells).map(|(column, cell)| {
            let colour = match (column, cell.as_str()) {
                ("state", "alive") => Color::Green,
                ("state", "dead") => Color::Red,
                ("state", _) => Color::DarkGray,
                _ => Color::Reset,
            };
            Cell::from(cell).style(Style::new().fg(colour))
        }))
    });
    let header = Row::new(PROCESS_COLUMNS).bold();
    frame.render_widget(Table::new(rows, widths).header(header).block(Block::bordered().title(title)), area);
}

fn draw_replay(frame: &mut Frame<'_>, area: Rect, report: &Report) {
    let replay = &report.replay;
    let ratio = replay.samples_per_insert.map_or_else(String::new, |ratio| format!(", {ratio:.2} samples per insert"));
    let label = format!("{} of {} rows{ratio}", HumanCount(replay.size), HumanCount(replay.capacity as u64));
    let gauge = Gauge::default().ratio(replay.fill.clamp(0.0, 1.0)).label(label).gauge_style(Style::new().fg(Color::Blue));
    frame.render_widget(gauge.block(Block::bordered().title(" replay ")), area);
}

fn draw_priorities(frame: &mut Frame<'_>, area: Rect, report: &Report) {
    let (Some(priorities), Some(tree)) = (&report.priorities, &report.tree) else {
        let text = Paragraph::new("sampling is uniform").block(Block::bordered().title(" priorities "));
        frame.render_widget(text, area);
        return;
    };
    let width = usize::from(area.width.saturating_sub(40));
    // The largest priorities come first, and are shown if there are more powers of two than lines.
    let lines = priorities.bins.iter().rev().map(|bin| {
        let bar = bar(bin.count, priorities.highest_count(), width);
        let [at_least, below] = [bin.at_least, bin.below].map(significant);
        Line::from(format!("{at_least:>11} .. {below:<11} {:>11} {bar}", HumanCount(bin.count).to_string()))
    });
    let title = format!(" priorities, sum tree {} ", describe_tree(tree));
    frame.render_widget(Paragraph::new(lines.collect::<Vec<_>>()).block(Block::bordered().title(title)), area);
}

fn draw_rate(frame: &mut Frame<'_>, area: Rect, name: &str, history: &VecDeque<f64>, colour: Color) {
    let room = usize::from(area.width.saturating_sub(2));
    // In thousandths, since a sparkline has whole numbers and rates may be below one.
    let shown: Vec<u64> = history.iter().skip(history.len().saturating_sub(room)).map(|rate| (rate * 1e3).round() as u64).collect();
    let title = format!(" {name} {} ", whole_if_large(history.back().copied().unwrap_or(0.0)));
    let sparkline = Sparkline::default().data(&shown).style(Style::new().fg(colour));
    frame.render_widget(sparkline.block(Block::bordered().title(title)), area);
}
