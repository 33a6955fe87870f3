//! The protocol of the segment and of the replay, under a checker of memory models.
//!
//! The files of the product are mounted here as they are: `replay` whole, and of `segment` all but the mapping, the
//! header and the calls to the kernel. Only what these files build on is replaced: [`sync`] gives them atomics whose every
//! access is a decision of the checker (loom), and [`segment`] a segment on the heap. `explore` runs a model in every
//! interleaving of its threads, with every value that an access may read under the rules of C11. It can break one
//! place of the code for the time of an exploration: a model that then fails is worth something.

// The models do not use everything that the files have.
#![allow(dead_code)]

#[path = "../../../src/metrics.rs"]
pub mod metrics;
#[path = "../../../src/replay/mod.rs"]
pub mod replay;
#[path = "../../../src/values.rs"]
pub mod values;

pub mod explore;
pub mod segment;
pub mod sync;
