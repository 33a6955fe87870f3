//! `shoal dashboard`: this user's runs in a browser.

use std::io::Write;

use clap::Args;

use super::end::{Code, SUCCESS, say};
use crate::dashboard::Dashboard;
use crate::rendezvous::Registry;
use crate::run_name::RunName;

/// Show this user's runs in a browser, those under way and those that have ended, without disturbing any.
#[derive(Args)]
pub(crate) struct ShowDashboard {
    /// The run to show first, with the runs beside it: the process id of its supervisor, or its folder, such as
    /// runs/latest. Without it, the newest of the runs in the folder `runs` and of those under way.
    #[arg(value_name = "PID or FOLDER")]
    run: Option<RunName>,
    /// Port on the loopback interface; 0 takes any that is free.
    #[arg(long, default_value_t = 0)]
    port: u16,
}

impl ShowDashboard {
    pub(crate) fn run(&self) -> Result<Code, anyhow::Error> {
        let dashboard = Dashboard::open(Registry::for_looking()?, self.run.as_ref(), self.port)?;
        writeln!(std::io::stdout(), "{}", dashboard.link())?;
        let port = dashboard.port();
        say(&format!(
            "open it in a browser on this machine, or on yours after `ssh -L {port}:127.0.0.1:{port} THIS_MACHINE`; Ctrl+C ends it"
        ));
        dashboard.serve()?;
        Ok(SUCCESS)
    }
}
