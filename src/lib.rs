//! Shoal: deep reinforcement learning that uses a whole Linux machine.

pub mod algorithms;
pub mod checkpoint;
pub mod config;
pub mod environments;
pub mod machine;
pub mod networks;
pub mod rendezvous;
pub mod replay;
pub mod roles;
pub mod segment;
pub mod sync;
pub mod telemetry;
