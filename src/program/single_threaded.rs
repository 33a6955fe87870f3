//! Refuses to fork a run beside threads: a forked process has none of them, and what it asks of one never comes.

use anyhow::ensure;

use crate::machine::threads;

/// Refuses to go on if this process has other threads than its first. To be called before the first fork, and behind
/// all code of the user's that runs before it: `main`, and the constructors of a catalogue.
pub(super) fn check() -> Result<(), anyhow::Error> {
    let names: Vec<String> = threads::others().into_iter().collect();
    ensure!(
        names.is_empty(),
        "this program has threads beside its first ({}), so it cannot fork a run, whose processes would wait for them for ever: start none \
         before `shoal::program::main` and none in a constructor, but in the first `reset`, in `policy` or in `learning` (docs/own.md)",
        names.join(", ")
    );
    Ok(())
}
