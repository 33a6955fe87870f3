//! Whether a process that is about to fork a run has threads: a forked process has none of them, and what it asks of one
//! never comes.

use crate::machine::threads;

/// What is wrong if this process has other threads than its first; no error, as those of a profiler or of a library may
/// do no harm. To be called before the first fork, and behind all code of the user's that runs before it: `main`, and the
/// constructors of a catalogue.
pub(super) fn warning() -> Option<String> {
    let names: Vec<String> = threads::others().into_iter().collect();
    (!names.is_empty()).then(|| {
        format!(
            "warning: this program has threads beside its first ({}), which the processes of a run will not have: one that waits for \
             them waits for ever; start none before `shoal::program::main` and none in a constructor, but in the first `reset`, in \
             `policy` or in `learning` (docs/own.md)",
            names.join(", ")
        )
    })
}
