//! The inspector tells the truth about a run, disturbs nothing, and survives whatever a segment holds.

#[path = "inspect/fixture.rs"]
mod fixture;
#[path = "inspect/hostile.rs"]
mod hostile;
#[path = "inspect/live.rs"]
mod live;
#[path = "inspect/runs.rs"]
mod runs;
#[path = "inspect/supervised.rs"]
mod supervised;
#[path = "inspect/truth.rs"]
mod truth;

#[path = "support"]
mod support {
    pub(crate) mod object;
    pub(crate) mod programs;
}
