//! Where the libtorch engine computes in the tests of networks and algorithms.
#![allow(unreachable_pub, reason = "some test binaries re-export it")]

/// What `SHOAL_TEST_DEVICE` names, for instance `cuda:0`, or the CPU: no test needs a GPU, and a machine that has one tries it with them.
pub fn of_libtorch() -> String {
    std::env::var("SHOAL_TEST_DEVICE").unwrap_or_else(|_| "cpu".into())
}
