//! What the tests of the segment and the replay share: a run with a watchdog, processes to kill, transitions that can be
//! verified, and the audits of a supervisor.
#![allow(dead_code, unused_imports, unreachable_pub, reason = "every test binary uses its own part")]

pub mod family;
pub mod operations;
pub mod payload;
pub mod recorded;
pub mod run;
pub mod shared;
pub mod traced;

pub use super::counts::count_from_environment;
pub use family::{Family, kill_and_reap};
pub use payload::{Identity, Payload};
pub use run::{Run, Sizes};

use rand::SeedableRng;
use rand_pcg::Pcg64Mcg;

/// How many instructions are sampled at which a process is killed for real. An optimised build has other instructions; more are sampled.
pub fn sampled_kills() -> u64 {
    count_from_environment("SHOAL_TEST_INSTRUCTION_KILLS", if cfg!(debug_assertions) { 8 } else { 25 })
}

/// A generator that is the same in every repetition.
pub fn random(seed: u64) -> Pcg64Mcg {
    Pcg64Mcg::seed_from_u64(seed)
}

/// Wait until `ready`, yielding the processor in between; the run's watchdog bounds it.
pub fn wait_until(mut ready: impl FnMut() -> bool) {
    let mut looks = 0u32;
    while !ready() {
        looks += 1;
        if looks < 64 {
            std::thread::yield_now();
        } else {
            std::thread::sleep(std::time::Duration::from_micros(50));
        }
    }
}
