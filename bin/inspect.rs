//! `inspect [PID]`: a look into a run.

fn main() {}
