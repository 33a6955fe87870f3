//! The live view: what it draws, and that it gives the terminal back.

use std::fs::File;
use std::io::{Read, Write};
use std::num::NonZeroU16;
use std::os::fd::{AsFd, OwnedFd};
use std::process::{Child, Stdio};
use std::time::Duration;

use nix::pty::{Winsize, openpty};
use nix::sys::termios::{LocalFlags, tcgetattr};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use shoal::inspector::{History, Inspection, Look, ProcessReport, Report, draw};
use shoal::segment::metrics;
use shoal::segment::processes::{Phase, Role};
use shoal::sync::Ordering;

use super::fixture::{Known, World};
use crate::support::programs::{Watchdog, wait_for};

const ROWS: u16 = 45;
const COLUMNS: u16 = 140;

/// The report on the run that all these tests look at.
fn report() -> Report {
    let (world, known) = (World::new(), Known::new());
    let _announcement = world.announce(known.segment.identity(), known.segment.name());
    Inspection::open(&world.registry, std::process::id()).unwrap().report(Duration::ZERO)
}

/// What a terminal of that size shows of `report`.
fn screen(columns: u16, rows: u16, report: &Report, history: &History) -> String {
    let mut terminal = Terminal::new(TestBackend::new(columns, rows)).unwrap();
    terminal.draw(|frame| draw(frame, report, history)).unwrap();
    terminal.backend().to_string()
}

#[test]
fn a_frame_shows_the_processes_the_replay_and_the_rates() {
    let (world, known) = (World::new(), Known::new());
    let _announcement = world.announce(known.segment.identity(), known.segment.name());
    let inspection = Inspection::open(&world.registry, std::process::id()).unwrap();
    known.segment.metric_ring(2).push(metrics::Report::Gpu { index: 0, busy_share: 0.25, memory_bytes: 3 << 30 });
    let mut history = History::default();
    let mut last = None;
    for gained in [10, 1_000, 100] {
        let look = Look::at(inspection.segment());
        known.segment.control().env_steps().fetch_add(gained, Ordering::Relaxed);
        std::thread::sleep(Duration::from_millis(1));
        let report = inspection.report_since(&look);
        history.push(&report);
        last = Some(report);
    }
    let screen = screen(COLUMNS, ROWS, &last.unwrap(), &history);
    for part in [
        "dqn on Known-v1, supervisor",
        "1,230 env steps",
        "7 updates",
        "training mean return -120.2 over the newest 4 episodes",
        "evaluation mean return 412.5 (95 % interval 380.0 to 445.0, 20 episodes)",
        "samples learned from per second",
        ", GPU 25 % busy, 3.00 GiB of its memory",
        "policy lag 3.0 (max 9)",
        "actor 0",
        "dead",
        "learner 0",
        "computing",
        "10 of 32 rows, 22.40 samples per insert",
        "sum tree exact after 1 look",
        "env steps/s",
        "updates/s",
        "q quits",
    ] {
        assert!(screen.contains(part), "`{part}` is missing in:\n{screen}");
    }
    assert!(screen.contains('▁') || screen.contains('▂') || screen.contains('█'), "no sparkline in:\n{screen}");
}

#[test]
fn an_ordinary_terminal_cuts_no_process_short() {
    let mut report = report();
    let process = &mut report.processes[0];
    (process.phase, process.restarts, process.env_steps, process.updates) = (Some(Phase::LimiterWait), 12, 12_345_678, 0);
    (process.rates.env_steps_per_s, process.rates.cores_used) = (Some(123_456.0), Some(0.98));
    let screen = screen(120, ROWS, &report, &History::default());
    for whole in ["waiting for the rate limiter", "12,345,678 steps", "123,456/s", "0.98", "cores share"] {
        assert!(screen.contains(whole), "`{whole}` is cut short in:\n{screen}");
    }
}

#[test]
fn slow_work_is_no_standstill() {
    let mut report = report();
    (report.run.rates.env_steps_per_s, report.run.rates.updates_per_s) = (Some(0.4), Some(0.3));
    let process = &mut report.processes[0];
    (process.env_steps, process.updates, process.rates.env_steps_per_s) = (12, 0, Some(0.25));
    let mut history = History::default();
    history.push(&report);
    let screen = screen(COLUMNS, ROWS, &report, &history);
    for rate in [" 0.25/s ", " env steps/s 0.4 ", " updates/s 0.3 "] {
        assert!(screen.contains(rate), "`{rate}` is missing in:\n{screen}");
    }
    let text = report.to_string();
    assert!(text.contains(" env steps (0.4/s)") && text.contains(" updates (0.3/s)"), "{text}");
}

#[test]
fn a_low_terminal_shows_every_process() {
    let report = report();
    let screen = screen(80, 24, &report, &History::default());
    let shown: Vec<_> = report.processes.iter().filter(|process| process.is_of_interest()).collect();
    assert!(shown.len() > 2, "{shown:?}");
    for process in shown {
        let name = process.name();
        assert!(screen.contains(&name), "{name} is missing in:\n{screen}");
    }
    assert!(screen.contains("replay") && screen.contains("q quits"), "{screen}");
}

#[test]
fn a_low_terminal_leaves_out_and_counts_some_actors_and_shows_everybody_else() {
    let mut report = report();
    let actor = report.processes.iter().find(|process| process.role == Some(Role::Actor) && process.is_of_interest()).unwrap().clone();
    let actors = (1..=40).map(|number| ProcessReport { number: Some(number), ..actor.clone() });
    report.processes.splice(0..0, actors);
    let count = report.processes.iter().filter(|process| process.is_of_interest()).count();
    let screen = screen(80, 24, &report, &History::default());
    assert!(screen.contains("learner 0") && screen.contains("actor 1 ") && !screen.contains("actor 40"), "{screen}");
    assert!(screen.contains(&format!(" processes, 11 of {count} ")), "{screen}");
}

#[test]
fn a_frame_fits_any_terminal() {
    let report = report();
    let mut history = History::default();
    (0..1_000).for_each(|_| history.push(&report));
    for (columns, rows) in [(1, 1), (2, 40), (200, 2), (40, 10), (500, 200)] {
        screen(columns, rows, &report, &history);
    }
}

/// The live view in a terminal of its own.
struct Watched {
    child: Child,
    terminal: File,
    /// Kept open, so that the terminal's settings can be looked at after the view has ended.
    side: OwnedFd,
    screen: vt100::Parser,
}

impl Watched {
    fn start(world: &World, pid: &str) -> Self {
        let size = Winsize { ws_row: ROWS, ws_col: COLUMNS, ws_xpixel: 0, ws_ypixel: 0 };
        let pair = openpty(Some(&size), None).unwrap();
        // Not inherited: the holder of this end is the terminal, and the view must not hold it open itself.
        rustix::io::fcntl_setfd(&pair.master, rustix::io::FdFlags::CLOEXEC).unwrap();
        let side = || Stdio::from(pair.slave.try_clone().unwrap());
        let mut command = world.command(&[pid, "--live"]);
        let child = command.env("TERM", "xterm-256color").stdin(side()).stdout(side()).stderr(side()).spawn().unwrap();
        let [rows, columns] = [ROWS, COLUMNS].map(|count| NonZeroU16::new(count).unwrap());
        Self { child, terminal: File::from(pair.master), side: pair.slave, screen: vt100::Parser::new(rows, columns, 0) }
    }

    /// Take in what was drawn until the screen satisfies `ready`.
    fn wait_for(&mut self, what: &str, ready: impl Fn(&vt100::Screen) -> bool) {
        let watchdog = Watchdog::new(what);
        while !ready(self.screen.screen()) {
            watchdog.pause(Duration::ZERO, || self.screen.screen().contents());
            let mut descriptors = [PollFd::new(&self.terminal, PollFlags::IN)];
            if poll(&mut descriptors, Some(&Timespec { tv_sec: 0, tv_nsec: 20_000_000 })).unwrap() > 0 {
                let mut bytes = [0; 4096];
                let count = self.terminal.read(&mut bytes).unwrap();
                self.screen.process(&bytes[..count]);
            }
        }
    }

    fn is_raw(&self) -> bool {
        !tcgetattr(self.side.as_fd()).unwrap().local_flags.contains(LocalFlags::ICANON)
    }

    /// Assert that the view ended well and left the terminal as it was.
    fn assert_ended(&mut self) {
        let status = wait_for("the end of the live view", String::new, || self.child.try_wait().unwrap());
        assert!(status.success(), "{status}");
        assert!(!self.is_raw(), "the terminal is still in raw mode");
        self.wait_for("the main screen", |screen| !screen.alternate_screen() && !screen.hide_cursor());
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn keys_and_signals_end_the_live_view_and_give_the_terminal_back() {
    let (world, known) = (World::new(), Known::new());
    let _announcement = world.announce(known.segment.identity(), known.segment.name());
    for end in ["q", "\x03", "signal"] {
        let mut watched = Watched::start(&world, &known.pid());
        watched.wait_for("the first frame", |screen| screen.alternate_screen() && screen.contents().contains("learner 0"));
        assert!(watched.is_raw());
        match end {
            "signal" => crate::support::programs::kill(watched.child.id(), nix::sys::signal::Signal::SIGTERM),
            key => watched.terminal.write_all(key.as_bytes()).unwrap(),
        }
        watched.assert_ended();
    }
}

#[test]
fn the_live_view_ends_with_the_run() {
    let (world, known) = (World::new(), Known::new());
    let announcement = world.announce(known.segment.identity(), known.segment.name());
    let mut watched = Watched::start(&world, &known.pid());
    watched.wait_for("the first frame", |screen| screen.contents().contains("10 of 32 rows"));
    drop(announcement);
    watched.assert_ended();
    let pid = known.pid();
    watched.wait_for("the farewell", |screen| screen.contents().contains(&format!("the run of supervisor {pid} has ended")));
}

#[test]
fn a_live_view_whose_terminal_is_closed_ends() {
    let (world, known) = (World::new(), Known::new());
    let _announcement = world.announce(known.segment.identity(), known.segment.name());
    let mut watched = Watched::start(&world, &known.pid());
    watched.wait_for("the first frame", |screen| screen.contents().contains("learner 0"));
    // The terminal controls no session, so that no signal reports its end.
    drop(std::mem::replace(&mut watched.terminal, File::open("/dev/null").unwrap()));
    wait_for("the end of the live view", String::new, || watched.child.try_wait().unwrap());
}

#[test]
fn the_live_view_is_refused_without_a_terminal() {
    let (world, known) = (World::new(), Known::new());
    let _announcement = world.announce(known.segment.identity(), known.segment.name());
    let terminal = openpty(None, None).unwrap();
    let side = || Stdio::from(terminal.slave.try_clone().unwrap());
    for (input, output, kind) in [(Stdio::null(), Stdio::piped(), "xterm"), (side(), Stdio::piped(), "xterm"), (side(), side(), "dumb")] {
        let mut command = world.command(&[&known.pid(), "--live"]);
        let output =
            command.env("TERM", kind).stdin(input).stdout(output).stderr(Stdio::piped()).spawn().unwrap().wait_with_output().unwrap();
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{error}");
        assert!(error.contains("the live view needs a terminal") && !output.stdout.contains(&0x1b), "{error}");
        assert!(tcgetattr(terminal.slave.as_fd()).unwrap().local_flags.contains(LocalFlags::ICANON));
    }
}
