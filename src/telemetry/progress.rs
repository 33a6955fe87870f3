//! Progress while a run goes on: a live line on a terminal, a line now and then elsewhere.

use super::mean_rates::MeanRates;
use super::progress_line::{live_line, plain_line};
use super::{Console, Snapshot};

/// Seconds over which the shown rates are means.
const RATE_WINDOW_S: f64 = 2.0;
/// Seconds of the run between two lines where standard error is no terminal.
const PLAIN_INTERVAL_S: f64 = 10.0;

/// What is shown of a run while it goes on.
#[derive(Debug)]
pub struct Progress {
    console: Console,
    rates: MeanRates,
    first_return: Option<f64>,
    next_plain_s: f64,
}

impl Progress {
    /// Shows progress on `console`; if that is no terminal, one line every ten seconds of the run.
    pub fn new(console: Console) -> Self {
        Self { console, rates: MeanRates::over(RATE_WINDOW_S), first_return: None, next_plain_s: PLAIN_INTERVAL_S }
    }

    /// Shows `snapshot`. Never blocks, and is cheap enough for every turn of the supervisor's loop.
    pub fn update(&mut self, snapshot: &Snapshot) {
        self.first_return = self.first_return.or(snapshot.eval_return_mean);
        let steady = self.rates.steady(snapshot);
        if self.console.has_live_line() {
            self.console.set_line(live_line(&steady, self.first_return, self.console.look()));
        } else if snapshot.wall_s >= self.next_plain_s {
            // Late updates skip lines rather than catching up on them.
            self.next_plain_s = snapshot.wall_s + PLAIN_INTERVAL_S;
            self.console.print(&plain_line(&steady));
        }
    }

    /// Prints an event above the live line.
    pub fn print(&self, text: &str) {
        self.console.print(text);
    }

    /// Replaces the live line by a last plain line that stays. Its rates are those of the whole training.
    pub fn finish(&mut self, snapshot: &Snapshot) {
        self.console.clear_line();
        self.console.print(&plain_line(&snapshot.clone().with_rates_of_training()));
    }
}
