//! The targets of `cargo xtask fuzz` without a fuzzer: readers of the library, each given empty and random input.

#[allow(unreachable_pub, reason = "they are a library of their own where they are fuzzed")]
#[path = "fuzz/src/lib.rs"]
mod targets;

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

/// Inputs for each target: the first is empty, and each may be longer than the one before.
const INPUTS: usize = 200;
/// Bytes by which an input may be longer than the one before.
const FURTHER_BYTES: usize = 20;

#[test]
fn every_target_accepts_empty_and_random_input() {
    let mut random = Pcg64Mcg::seed_from_u64(1);
    for number in 0..INPUTS {
        let length = random.random_range(0..=number * FURTHER_BYTES);
        let content: Vec<u8> = (0..length).map(|_| random.random()).collect();
        targets::configuration::read(&String::from_utf8_lossy(&content));
        targets::header::read((random.random(), &content));
        let of_bytes: [fn(&[u8]); 6] = [
            targets::description::read,
            targets::handshake::read,
            targets::manifest::read,
            targets::registry::read,
            targets::replay_file::read,
            targets::weights::read,
        ];
        of_bytes.iter().for_each(|read| read(&content));
    }
    std::fs::remove_dir_all(targets::folder()).unwrap();
    std::fs::remove_file(format!("/dev/shm/shoal-fuzz-header-{}", std::process::id())).unwrap();
}
