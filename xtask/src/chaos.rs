//! Kills and stops processes of a run at random.

use anyhow::{Result, ensure};

use crate::workspace;

/// Disturb a run until `kills` processes have been killed. `seed` decides which ones.
pub(crate) fn chaos(kills: u64, seed: u64) -> Result<()> {
    let mut command = workspace::cargo();
    command.args(["test", "--release", "--no-default-features", "--test", "runs", "chaos::", "--", "--nocapture"]);
    command.env("SHOAL_CHAOS_KILLS", kills.to_string()).env("SHOAL_CHAOS_SEED", seed.to_string());
    let status = command.status()?;
    ensure!(status.success(), "a run did not survive; the same victims again: cargo xtask chaos --kills {kills} --seed {seed}");
    Ok(())
}
