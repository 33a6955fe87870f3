//! The one way to standard error: a live line at the bottom and whole lines above it, so that neither tears the other.
//!
//! No thread is started, nothing blocks, and no lock is held between two calls, so the supervisor may fork at any
//! time. A forked child that writes through its copy erases the live line and prints its own; the supervisor's next
//! update draws the live line again below.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, IsTerminal, Write};
use std::os::fd::AsFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::output::{Output, without_waiting};
use super::progress_line::Look;
use crate::readable::harmless;

/// Lines are dropped, and counted, while more than this waits for a reader.
const BACKLOG_LIMIT_BYTES: usize = 64 << 10;
const ERASE_LINE: &str = "\r\x1b[2K";

/// A cheap handle to standard error; all clones share one live line.
#[derive(Debug, Clone)]
pub struct Console {
    shared: Arc<Shared>,
}

/// What the reader of a console understands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Abilities {
    /// Escape codes, which the live line takes.
    pub live_line: bool,
    /// Colours.
    pub colour: bool,
    /// Signs beyond ASCII.
    pub unicode: bool,
}

impl Abilities {
    /// Those of a modern terminal.
    pub const ALL: Self = Self { live_line: true, colour: true, unicode: true };
    /// Those of a file or a pipe.
    pub const NONE: Self = Self { live_line: false, colour: false, unicode: false };
}

#[derive(Debug)]
struct Shared {
    /// Process id of whoever made the console.
    owner: u32,
    file: File,
    abilities: Abilities,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    output: Output,
    line: Option<String>,
    skipped_lines: usize,
}

/// Whether `file` is a terminal that understands escape codes.
pub(crate) fn is_capable(file: &impl IsTerminal) -> bool {
    file.is_terminal() && std::env::var("TERM").is_ok_and(|kind| !matches!(kind.as_str(), "" | "dumb"))
}

impl Console {
    /// A console on standard error. The live line needs a terminal that understands escape codes (`TERM` is set and not
    /// `dumb`). Colours are left out if `NO_COLOR` is set, and signs beyond ASCII if the locale is not UTF-8.
    ///
    /// # Errors
    /// Standard error is closed.
    pub fn stderr() -> io::Result<Self> {
        let variable = |name| std::env::var(name).unwrap_or_default();
        let file = File::from(io::stderr().as_fd().try_clone_to_owned()?);
        let locale = ["LC_ALL", "LC_CTYPE", "LANG"].map(variable).into_iter().find(|value| !value.is_empty()).unwrap_or_default();
        let unicode = locale.to_ascii_uppercase().replace('-', "").contains("UTF8");
        let live_line = is_capable(&file);
        Self::on(file, Abilities { live_line, colour: live_line && variable("NO_COLOR").is_empty(), unicode })
    }

    /// A console on any file, whose reader has these abilities.
    ///
    /// # Errors
    /// The file descriptor cannot be duplicated.
    pub fn on(file: File, abilities: Abilities) -> io::Result<Self> {
        let file = without_waiting(file);
        let state = State { output: Output::new(file.try_clone()?), line: None, skipped_lines: 0 };
        Ok(Self { shared: Arc::new(Shared { owner: std::process::id(), file, abilities, state: Mutex::new(state) }) })
    }

    /// Whether a live line is shown.
    pub fn has_live_line(&self) -> bool {
        self.shared.abilities.live_line
    }

    /// What a line may look like now; the width follows the window. One column stays free, because a full line makes
    /// terminals wrap.
    pub fn look(&self) -> Look {
        let Abilities { colour, unicode, .. } = self.shared.abilities;
        Look { width: usize::from(columns(&self.shared.file)) - 1, colour, unicode }
    }

    /// Prints text above the live line. Each line is whole, and nothing waits: lines for which a stuck reader leaves no
    /// room are dropped and counted. Control characters are spelled out: the words may be those of a stranger's checkpoint.
    pub fn print(&self, text: &str) {
        let text = harmless(text);
        if !self.is_owner() {
            return self.print_from_child(&text);
        }
        let mut state = self.state();
        state.output.pump(Duration::ZERO);
        if state.output.backlog_bytes() > BACKLOG_LIMIT_BYTES {
            state.skipped_lines += text.lines().count();
            return;
        }
        let mut piece = String::new();
        if state.line.is_some() {
            piece.push_str(ERASE_LINE);
        }
        if state.skipped_lines > 0 {
            let _ = writeln!(piece, "({} lines were dropped while nobody read them)", std::mem::take(&mut state.skipped_lines));
        }
        let _ = writeln!(piece, "{}", text.trim_end_matches('\n'));
        piece.push_str(state.line.as_deref().unwrap_or_default());
        // In one piece, so that terminals show no half-drawn line.
        state.output.push(piece.as_bytes());
    }

    /// Shows `line` as the live line, if there is a terminal. It must not be wider than [`Console::look`] says.
    pub fn set_line(&self, line: String) {
        if !self.has_live_line() || !self.is_owner() {
            return;
        }
        let mut state = self.state();
        state.output.pump(Duration::ZERO);
        if state.output.backlog_bytes() > 0 {
            // The terminal is paused: an outdated line is worth nothing by the time it is read.
            return;
        }
        state.output.push(format!("{ERASE_LINE}{line}").as_bytes());
        state.line = Some(line);
    }

    /// Removes the live line.
    pub fn clear_line(&self) {
        if !self.is_owner() {
            return;
        }
        self.state().erase_line();
    }

    /// Waits until everything is written, but no longer than `patience`. To be called at the end of the program.
    pub fn drain(&self, patience: Duration) {
        if self.is_owner() {
            self.state().output.pump(patience);
        }
    }

    fn is_owner(&self) -> bool {
        self.shared.owner == std::process::id()
    }

    /// Takes the lock even if the supervisor panicked while it drew: that leaves nothing that harms a later line.
    fn state(&self) -> MutexGuard<'_, State> {
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn print_from_child(&self, text: &str) {
        let erase = if self.has_live_line() { ERASE_LINE } else { "" };
        let line = format!("{erase}{}\n", text.trim_end_matches('\n'));
        // One write and no lock: the child's copy of the state belongs to its parent. A failure could be reported to
        // nobody.
        let _ = (&self.shared.file).write(line.as_bytes());
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        if self.owner == std::process::id() {
            state.erase_line();
        }
    }
}

impl State {
    fn erase_line(&mut self) {
        if self.line.take().is_some() {
            self.output.push(ERASE_LINE.as_bytes());
        }
    }
}

fn columns(file: &File) -> u16 {
    rustix::termios::tcgetwinsize(file).map_or(80, |size| if size.ws_col == 0 { 80 } else { size.ws_col.max(2) })
}
