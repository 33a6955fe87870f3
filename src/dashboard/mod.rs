//! The dashboard: pages for a browser on this machine, which show runs while they go on and after they have ended.
//!
//! It is a program of its own that changes nothing: it reads run folders and, through the inspector, segments that it
//! maps read-only. It answers on the loopback interface alone, and only requests with the secret of the link that it
//! prints (`guard`).
//!
//! One thread does everything. A run is looked at once, however many pages show it (`feed`).

mod answers;
mod error;
mod feed;
mod guard;
mod history;
mod page;
mod picture;
mod runs;
mod tail;
mod video;
mod visitors;

use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::Serialize;

pub use error::DashboardError;

use self::guard::Token;
use self::runs::Runs;
use self::visitors::{LetIn, Visitors};
use crate::rendezvous::Registry;
use crate::run_name::RunName;
use crate::segment::system;

/// How often a signal to stop is looked for.
const PAUSE: Duration = Duration::from_millis(100);
/// The folder of all runs, unless their configurations name another.
const DEFAULT_ROOT: &str = "runs";

/// A dashboard that has its port and can be visited once it serves.
#[derive(Debug)]
pub struct Dashboard {
    listener: TcpListener,
    port: u16,
    token: Token,
    runs: Runs,
    /// The run that the link leads to.
    first: Option<String>,
}

impl Dashboard {
    /// Binds `port` of the loopback interface, or any free port with 0. The dashboard shows this user's runs: those
    /// under way, and all that lie beside `run` or, without one, in the folder `runs`.
    ///
    /// # Errors
    /// There is no such run, or the port is taken.
    pub fn open(registry: Registry, run: Option<&RunName>, port: u16) -> Result<Self, DashboardError> {
        let mut runs = Runs::new(registry);
        let first = run.map(|run| runs.add(run)).transpose()?;
        if run.is_none() {
            runs.add_root(Path::new(DEFAULT_ROOT));
        }
        let failed = |source| DashboardError::Listen { port, source };
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        let port = listener.local_addr().map_err(failed)?.port();
        Ok(Self { listener, port, token: Token::random(), runs, first })
    }

    /// The port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The link to open in a browser. Whoever knows it sees everything that the dashboard shows.
    pub fn link(&self) -> String {
        let run = self.first.as_ref().map_or_else(String::new, |id| format!("#{}", encoded(id)));
        format!("http://{}:{}/{}/{run}", Ipv4Addr::LOCALHOST, self.port, self.token.as_str())
    }

    /// Answers requests until this process gets a stop signal.
    ///
    /// # Errors
    /// The operating system refuses what a server needs.
    pub fn serve(self) -> Result<(), DashboardError> {
        let Self { listener, port, token, runs, .. } = self;
        let failed = |source| DashboardError::Listen { port, source };
        system::handle_stop_signals()?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build().map_err(failed)?;
        runtime.block_on(async {
            let listener = tokio::net::TcpListener::from_std(listener).map_err(failed)?;
            let pages = answers::router(token, runs).into_make_service_with_connect_info::<LetIn>();
            // Open pages hold their connections, so a graceful end that waits for them would never come.
            tokio::select! {
                served = axum::serve(Visitors::of(listener), pages).into_future() => served.map_err(failed),
                () = stopped() => Ok(()),
            }
        })
    }
}

async fn stopped() {
    while !system::stop_requested() {
        tokio::time::sleep(PAUSE).await;
    }
}

/// A name, percent-encoded for an address: terminals, for instance, end a link at a blank.
fn encoded(name: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte);
    name.bytes().map(|byte| if is_plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") }).collect()
}

/// `value` as JSON. Values here have names and numbers alone, which can always be written.
fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_else(|_| "null".into())
}

/// Takes the lock even if a panic poisoned it. A row or a message may then be half added: a page that is a little
/// wrong is better than none.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::telemetry::RunFolder;

    #[test]
    fn a_link_leads_to_a_run_of_any_name() {
        let place = tempfile::tempdir().unwrap();
        for (name, end) in [("a run + b", "/#a%20run%20%2B%20b"), ("größer 100%", "/#gr%C3%B6%C3%9Fer%20100%25")] {
            let made = RunFolder::create(place.path(), "first", "[environment]\nid = \"CartPole-v1\"\n").unwrap();
            let folder = place.path().join(name);
            std::fs::rename(made.path(), &folder).unwrap();
            let registry = Registry::open_at(place.path().join("shoal")).unwrap();
            let link = Dashboard::open(registry, Some(&RunName::Folder(folder)), 0).unwrap().link();
            assert!(link.ends_with(end), "{name}: {link}");
        }
    }
}
