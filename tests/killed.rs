//! Processes are killed, at random moments and after every single machine instruction: what they leave is repaired, and nothing that was
//! committed is lost.
//!
//! All in one program: an optimised build, in which the same is proved for other instructions, takes long for each program.

#[path = "support"]
mod support {
    pub(crate) mod counts;
    pub(crate) mod forked;
    pub(crate) mod skipped;
}

#[path = "killed/boards.rs"]
mod boards;
#[path = "killed/fragments.rs"]
mod fragments;
#[path = "killed/participants.rs"]
mod participants;
#[path = "killed/recorded_frames.rs"]
mod recorded_frames;
#[path = "killed/repairs.rs"]
mod repairs;
#[path = "killed/replay.rs"]
mod replay;
#[path = "killed/replay_at_every_instruction.rs"]
mod replay_at_every_instruction;
#[path = "killed/shared_replay.rs"]
mod shared_replay;
