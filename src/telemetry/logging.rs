//! Diagnostics through `tracing`: formatted in the calling thread and printed above the live line.

use std::fmt;
use std::io;
use std::time::Instant;

use thiserror::Error;
use tracing::Subscriber;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::FormatTime;

use super::Console;

/// Why diagnostics could not be set up.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum LoggingError {
    /// The filter cannot be parsed.
    #[error("RUST_LOG is `{filter}`, which is no filter: {source}; use for instance RUST_LOG=info or RUST_LOG=shoal=debug")]
    Filter {
        /// The filter as it was given.
        filter: String,
        /// What the parser says.
        source: tracing_subscriber::filter::ParseError,
    },
    /// `init` was called twice.
    #[error("logging is set up already; call init once per process")]
    Twice,
}

/// Sends this process's diagnostics to `console`. `RUST_LOG` decides what is shown; without it `verbosity`, the number of `-v` on the
/// command line: 0 shows warnings and errors, 1 information too, 2 debugging, 3 everything. Forked children inherit the set-up and print whole lines too.
///
/// # Errors
/// `RUST_LOG` cannot be parsed, or the process has a subscriber already.
pub fn init(verbosity: u8, console: &Console) -> Result<(), LoggingError> {
    let asked = std::env::var("RUST_LOG").unwrap_or_default();
    let filter = if asked.trim().is_empty() { default_filter(verbosity) } else { &asked };
    let subscriber = subscriber(filter, console)?;
    tracing::subscriber::set_global_default(subscriber).map_err(|_| LoggingError::Twice)
}

/// The subscriber that [`init`] installs, for a filter in the syntax of `RUST_LOG`.
///
/// # Errors
/// The filter cannot be parsed.
pub fn subscriber(filter: &str, console: &Console) -> Result<impl Subscriber + Send + Sync + use<>, LoggingError> {
    let parsed = EnvFilter::try_new(filter).map_err(|source| LoggingError::Filter { filter: filter.into(), source })?;
    Ok(tracing_subscriber::fmt()
        .with_env_filter(parsed)
        .with_ansi(console.look().colour)
        .with_timer(Elapsed(Instant::now()))
        .with_writer(Lines(console.clone()))
        .finish())
}

fn default_filter(verbosity: u8) -> &'static str {
    match verbosity {
        0 => "warn",
        1 => "info",
        2 => "debug",
        _ => "trace",
    }
}

/// Seconds since logging was set up, to the millisecond.
struct Elapsed(Instant);

impl FormatTime for Elapsed {
    fn format_time(&self, writer: &mut Writer<'_>) -> fmt::Result {
        write!(writer, "{:>9.3}", self.0.elapsed().as_secs_f64())
    }
}

/// Makes a writer per event; the formatter writes each event in one piece.
struct Lines(Console);

impl<'a> MakeWriter<'a> for Lines {
    type Writer = LineWriter<'a>;

    fn make_writer(&'a self) -> Self::Writer {
        LineWriter(&self.0)
    }
}

struct LineWriter<'a>(&'a Console);

impl io::Write for LineWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.print(&String::from_utf8_lossy(bytes));
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
