//! Table `[machine]`.

use crate::config::define::{choice, table};
use crate::config::limits::{Limits, between, whole};

table! {
    /// How the machine is used.
    [machine] MachineConfig {
        /// Bind each learner to a core of its own, the fastest first, if that leaves a core for the other processes,
        /// which share the rest. If other programs or runs take such a core, all processes are unbound. None is bound
        /// where a control group limits the time on the cores (`docker --cpus`).
        affinity: bool = true, Limits::Any, "";
        /// Threads of libtorch inside each learner.
        torch_threads: usize = 1, whole(1, 256), "threads";
        /// Ask the kernel for huge pages under the segment.
        huge_pages: bool = true, Limits::Any, "";
        /// Restarts granted to one process within a day before the run is given up, or goes on without its
        /// visualizer. Restarts of actors and learners while a setting is on trial are not counted. If the trainer of
        /// a run with `actor.count = 0` dies, the run ends.
        max_restarts: u32 = 10, whole(0, 1_000_000), "restarts";
        /// Time without a heartbeat after which a process counts as hung and is replaced. A run in which nothing
        /// advances for as long although all processes have heartbeats is reported.
        hang_timeout_s: f64 = 60.0, between(1.0, 86_400.0), "seconds";
        /// What the sentinel does with a run that has checkpoints when its supervisor was killed (docs/resume.md).
        sentinel: AfterSupervisor = AfterSupervisor::WrittenToDisk, Limits::Any, "";
    }
}

choice! {
    /// What the sentinel does with a run whose supervisor was killed.
    AfterSupervisor {
        /// The sentinel writes a checkpoint, from which `shoal resume` continues, and frees the memory.
        WrittenToDisk = "checkpoint",
        /// The sentinel keeps the run in memory. `shoal adopt` continues it there, without a look at the
        /// replay's rows; `shoal resume`, or SIGTERM to the sentinel, has it written to the disk.
        Kept = "keep",
    }
}
