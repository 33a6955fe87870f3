//! Processes are killed, at moments of nobody's choice and after every single machine instruction: what they leave is repaired, and nothing
//! that was committed is lost.
//!
//! One program, since each is optimised as a whole in a release, in which the same is proved of other instructions.

mod skipped;
mod support;

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
