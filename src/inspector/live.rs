//! The live view: the terminal, the clock and the keys around `live_view`.

use std::fs::File;
use std::io::{self, IsTerminal};
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::live_view::{History, draw};
use super::rates::Look;
use super::{InspectError, Inspection};
use crate::rendezvous::Liveliness;
use crate::segment::system;
use crate::telemetry::is_capable;

/// Time between two frames.
const REFRESH: Duration = Duration::from_millis(500);
/// How often a signal to stop is looked for.
const PAUSE: Duration = Duration::from_millis(100);

/// Why the live view ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// The user left the view.
    Left,
    /// The run has ended.
    RunEnded,
}

/// Shows the run full-screen, twice a second, until it ends or `q` or Ctrl+C is pressed. The terminal is restored in
/// the end, also after a panic.
///
/// # Errors
/// The run is dead, or there is no terminal.
pub fn watch(inspection: &Inspection) -> Result<Ending, InspectError> {
    if inspection.state() == Liveliness::Dead {
        return Err(InspectError::NothingLives { pid: inspection.segment().identity().supervisor_pid });
    }
    if !is_capable(&io::stdout()) {
        return Err(io::Error::other("the standard output is none, or TERM says that it understands no escape codes").into());
    }
    let keyboard = keyboard()?;
    system::handle_stop_signals()?;
    // The panic hook of `ratatui` restores the terminal before the message is printed.
    let ending = match ratatui::try_init() {
        Ok(mut terminal) => frames(inspection, &mut terminal, &keyboard),
        Err(error) => Err(error.into()),
    };
    let restored = ratatui::try_restore();
    let ending = ending?;
    restored?;
    Ok(ending)
}

/// The file that `crossterm` reads keys from. Whether it is gone must be known before `crossterm` is asked, which would
/// otherwise try to read it for ever.
fn keyboard() -> io::Result<OwnedFd> {
    let input = io::stdin();
    if input.is_terminal() { input.as_fd().try_clone_to_owned() } else { Ok(File::open("/dev/tty")?.into()) }
}

fn frames(inspection: &Inspection, terminal: &mut DefaultTerminal, keyboard: &OwnedFd) -> Result<Ending, InspectError> {
    let mut history = History::default();
    let mut earlier = Look::at(inspection.segment());
    let mut next = Instant::now() + PAUSE;
    loop {
        if Instant::now() >= next {
            next = Instant::now() + REFRESH;
            if !inspection.is_running() {
                return Ok(Ending::RunEnded);
            }
            let report = inspection.report_since(&earlier);
            earlier = Look::at(inspection.segment());
            history.push(&report);
            terminal.draw(|frame| draw(frame, &report, &history))?;
        }
        let heard = listen(keyboard, next.saturating_duration_since(Instant::now()).min(PAUSE));
        if heard.intersects(PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL) || system::stop_requested() {
            return Ok(Ending::Left);
        }
        let mut is_understood = false;
        while event::poll(Duration::ZERO)? {
            is_understood = true;
            if wants_to_leave(&event::read()?) {
                return Ok(Ending::Left);
            }
        }
        if heard.contains(PollFlags::IN) && !is_understood {
            // Part of a key stays in the file until the rest comes, and would wake the next poll at once.
            std::thread::sleep(PAUSE);
        }
    }
}

/// Waits for a key, and no longer than `patience`. The flags tell whether there is one, and whether the terminal was
/// closed so that none can come any more.
fn listen(keyboard: &OwnedFd, patience: Duration) -> PollFlags {
    let mut keys = [PollFd::new(keyboard, PollFlags::IN)];
    // A signal may interrupt the wait; the caller looks for it next.
    let _ = poll(&mut keys, Timespec::try_from(patience).ok().as_ref());
    keys[0].revents()
}

fn wants_to_leave(event: &Event) -> bool {
    let Event::Key(KeyEvent { code, modifiers, kind: KeyEventKind::Press, .. }) = event else { return false };
    matches!(code, KeyCode::Char('q') | KeyCode::Esc) || *code == KeyCode::Char('c') && modifiers.contains(KeyModifiers::CONTROL)
}
