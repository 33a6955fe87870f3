//! What the doctor tells of a machine.

use std::process::Command;

use serde_json::Value;

#[test]
fn the_doctor_names_cores_memory_and_libtorch() {
    let output = Command::new(env!("CARGO_BIN_EXE_supervisor")).args(["doctor", "--json"]).output().unwrap();
    let findings: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap();
    for topic in ["cores", "memory", "shared memory", "huge pages", "libtorch", "gpu"] {
        let finding = findings.iter().find(|finding| finding["topic"] == topic).unwrap_or_else(|| panic!("{topic} is missing"));
        assert!(!finding["fact"].as_str().unwrap().is_empty());
    }
}
