//! The console: on a terminal nothing tears or wraps, elsewhere lines come now and then, and no reader can stop the writer.

use std::fs::File;
use std::io::Read;
use std::num::NonZeroU16;
use std::os::fd::OwnedFd;
use std::time::Duration;

use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::pty::{Winsize, openpty};
use nix::sys::termios::{FlowArg, tcflow};
use shoal::telemetry::{Abilities, Console, Progress, Snapshot, StopReason};
use tempfile::tempdir;

use crate::support::{all_of, piped_console, sinks_in, snapshot_at, within};

const PATIENCE: Duration = Duration::from_secs(30);

/// A terminal window: what is written to the slave side ends up on an emulated screen.
struct Window {
    master: File,
    slave: OwnedFd,
    screen: vt100::Parser,
}

impl Window {
    fn open(columns: u16) -> (Self, Console) {
        let size = Winsize { ws_row: 24, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        let pair = openpty(&size, None).unwrap();
        fcntl(&pair.master, FcntlArg::F_SETFL(OFlag::O_NONBLOCK)).unwrap();
        let console = Console::on(pair.slave.try_clone().unwrap().into(), Abilities::ALL).unwrap();
        let [rows, width] = [24, columns].map(|count| NonZeroU16::new(count).unwrap());
        (Self { master: pair.master.into(), slave: pair.slave, screen: vt100::Parser::new(rows, width, 0) }, console)
    }

    /// The rows shown now, without those that are empty.
    fn rows(&mut self) -> Vec<String> {
        let mut bytes = [0; 4096];
        while let Ok(count) = self.master.read(&mut bytes) {
            self.screen.process(&bytes[..count]);
        }
        let columns = self.screen.screen().size().1;
        // Row by row: the joined text would hide that a line wrapped.
        self.screen.screen().rows(0, columns.get()).map(|row| row.trim_end().to_string()).filter(|row| !row.is_empty()).collect()
    }
}

#[test]
fn events_stand_above_a_live_line_that_stays_one_line() {
    let (mut window, console) = Window::open(100);
    let mut progress = Progress::new(console);
    for second in 1..=5 {
        progress.update(&snapshot_at(f64::from(second)));
        progress.print(&format!("event {second}"));
    }
    progress.update(&snapshot_at(6.0));
    let rows = window.rows();
    assert_eq!(rows[..5], ["event 1", "event 2", "event 3", "event 4", "event 5"]);
    assert!(rows.len() == 6 && rows[5].contains("4.8k/100k steps"), "{rows:#?}");
    progress.finish(&snapshot_at(6.0));
    let rows = window.rows();
    assert!(rows.len() == 6 && rows[5].starts_with("[0:06] 4.8k/100k steps, 800 steps/s"), "{rows:#?}");
}

#[test]
fn no_width_of_the_window_makes_the_live_line_wrap() {
    for columns in 2..=200 {
        let (mut window, console) = Window::open(columns);
        let mut progress = Progress::new(console);
        for second in 1..=3 {
            progress.update(&Snapshot { eval_return_mean: Some(100.0), ..snapshot_at(f64::from(second)) });
        }
        let rows = window.rows();
        assert_eq!(rows.len(), 1, "{columns} columns: {rows:#?}");
    }
}

#[test]
fn the_live_line_is_gone_when_the_console_is() {
    let (mut window, console) = Window::open(100);
    console.set_line("the live line".into());
    assert_eq!(window.rows(), ["the live line"]);
    drop(console);
    assert!(window.rows().is_empty());
}

#[test]
fn a_paused_terminal_does_not_stop_the_writer_and_loses_no_event() {
    let (mut window, console) = Window::open(100);
    tcflow(&window.slave, FlowArg::TCOOFF).unwrap();
    let paused = console.clone();
    within(PATIENCE, move || {
        for turn in 0..500 {
            paused.set_line(format!("turn {turn}"));
            if turn % 100 == 0 {
                paused.print(&format!("event {turn}"));
            }
        }
    });
    assert!(window.rows().is_empty(), "the terminal is paused");
    tcflow(&window.slave, FlowArg::TCOON).unwrap();
    console.set_line("resumed".into());
    let rows = window.rows();
    assert_eq!(rows, ["event 0", "event 100", "event 200", "event 300", "event 400", "resumed"]);
}

#[test]
fn a_terminal_that_nobody_reads_does_not_stop_the_writer() {
    for length in [1, 60, 97, 999, 5000] {
        let (window, console) = Window::open(100);
        let line = "x".repeat(length);
        within(PATIENCE, move || {
            for turn in 0..2_000 {
                console.print(&line);
                console.set_line(format!("turn {turn}"));
            }
        });
        drop(window);
    }
}

#[test]
fn a_full_pipe_does_not_stop_the_writer_and_the_lines_lost_are_counted() {
    let (mut reader, console) = piped_console();
    let line = "x".repeat(999);
    let writer = console.clone();
    within(PATIENCE, move || (0..1000).for_each(|_| writer.print(&line)));
    let collected = std::thread::spawn(move || {
        let mut text = String::new();
        reader.read_to_string(&mut text).unwrap();
        text
    });
    within(PATIENCE, move || {
        console.drain(PATIENCE);
        console.print("the end");
        console.drain(PATIENCE);
    });
    let text = collected.join().unwrap();
    let whole = text.lines().filter(|line| line.len() == 999).count();
    let tail: Vec<&str> = text.lines().rev().take(2).collect();
    assert_eq!(tail, ["the end", &format!("({} lines were dropped while nobody read them)", 1000 - whole)]);
    assert!(whole >= 64 && whole + 2 == text.lines().count(), "{whole} whole lines of {}", text.lines().count());
}

#[test]
fn nothing_that_is_printed_steers_the_terminal() {
    let root = tempdir().unwrap();
    let (reader, console) = piped_console();
    let mut sinks = sinks_in(root.path(), console);
    sinks.event("starts from a\u{1b}]0;x\u{7}\u{1b}[2J\nb");
    drop(sinks);
    let log = root.path().join("latest/run.log");
    for text in [all_of(reader), std::fs::read_to_string(log).unwrap()] {
        assert!(text.contains("starts from a\\u{1b}]0;x\\u{7}\\u{1b}[2J\nb\n") && !text.contains('\u{1b}'), "{text:?}");
    }
}

#[test]
fn a_reader_that_went_away_does_not_matter() {
    let (reader, console) = piped_console();
    drop(reader);
    within(PATIENCE, move || (0..1000).for_each(|_| console.print("nobody reads this")));
}

#[test]
fn without_a_terminal_a_plain_line_appears_every_interval_and_at_the_end() {
    let root = tempdir().unwrap();
    let (reader, console) = piped_console();
    let mut sinks = sinks_in(root.path(), console);
    for fifth in 0..=125 {
        sinks.record(&snapshot_at(f64::from(fifth) / 5.0));
    }
    sinks.finish(StopReason::TimeLimit, &snapshot_at(25.0));
    let printed = all_of(reader);
    let times: Vec<&str> = printed.lines().filter(|line| line.starts_with('[')).map(|line| &line[..6]).collect();
    assert_eq!(times, ["[0:10]", "[0:20]", "[0:25]"], "{printed}");
    assert!(!printed.contains('\x1b') && !printed.contains('\r'), "{printed:?}");
}
