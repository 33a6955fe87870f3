//! The live view: the terminal, the clock and the keys around `live_view`.

use std::time::{Duration, Instant};

use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use super::live_view::{History, draw};
use super::rates::Look;
use super::{InspectError, Inspection};
use crate::rendezvous::Liveliness;
use crate::segment::system;

/// Time between two frames.
const REFRESH: Duration = Duration::from_millis(500);
/// How often a signal to stop is looked for.
const PAUSE: Duration = Duration::from_millis(100);

/// Why the live view ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// Whoever watched wanted no more.
    Left,
    /// The run has ended.
    RunEnded,
}

/// Show the run full-screen, twice a second, until it ends or `q` or Ctrl+C is pressed. The terminal is given back as
/// it was, also when something panics.
///
/// # Errors
/// The run is dead, or there is no terminal.
pub fn watch(inspection: &Inspection) -> Result<Ending, InspectError> {
    if inspection.state() == Liveliness::Dead {
        return Err(InspectError::NothingLives { pid: inspection.segment().identity().supervisor_pid });
    }
    system::handle_stop_signals()?;
    // Its panic hook restores the terminal before the message is printed.
    let mut terminal = ratatui::try_init()?;
    let ending = frames(inspection, &mut terminal);
    ratatui::try_restore()?;
    ending
}

fn frames(inspection: &Inspection, terminal: &mut DefaultTerminal) -> Result<Ending, InspectError> {
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
        let wait = next.saturating_duration_since(Instant::now()).min(PAUSE);
        if system::stop_requested() || event::poll(wait)? && wants_to_leave(&event::read()?) {
            return Ok(Ending::Left);
        }
    }
}

fn wants_to_leave(event: &Event) -> bool {
    let Event::Key(KeyEvent { code, modifiers, kind: KeyEventKind::Press, .. }) = event else { return false };
    matches!(code, KeyCode::Char('q') | KeyCode::Esc) || *code == KeyCode::Char('c') && modifiers.contains(KeyModifiers::CONTROL)
}
