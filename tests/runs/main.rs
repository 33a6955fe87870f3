//! Runs of the real programs, each seen from outside: tests start supervisors and others, look at what they say and leave, and kill them.
//!
//! One program for all of them, because each that is linked with the library takes its time and its place on the disk. None of these
//! tests forks, or changes what its process shares, such as its folder or its variables: such a test is in a program of its own.
//! `cargo nextest run --test runs chaos::` runs those of one file.

mod adapts;
mod adopted;
mod attach;
mod attach_storm;
mod bottleneck_advice;
mod by_folder;
mod cannot_begin;
mod chaos;
mod check;
mod clock_jumps;
mod dashboard;
mod doctor;
mod ends_cleanly;
mod evaluate;
mod full_disk;
mod guests;
mod is_fair;
mod keeps_best_weights;
mod killed_whole;
mod learner_halves;
mod learns;
mod libtorch_on_demand;
mod pid_namespaces;
mod pixels_and_fragments;
mod placement;
mod program;
mod resumes;
mod resumes_at_limits;
mod resumes_with_fewer_actors;
mod same_command;
mod several_seeds;
mod shared_memory_sizes;
mod shows_its_peak;
mod solves;
mod stands_still;
mod start_from;
mod survives_kills;
mod synchronous;
mod upkeep;
mod visualizer;
mod without_locks;

#[path = "../support"]
mod support {
    pub(crate) mod counts;
    pub(crate) mod few_transitions;
    pub(crate) mod namespaces;
    pub(crate) mod programs;
    #[cfg(feature = "python")]
    pub(crate) mod python;
    pub(crate) mod skipped;
}
