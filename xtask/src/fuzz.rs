//! Feeds random input to the readers of files, memory and messages, and reports what makes them panic.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};

use crate::processor::Processor;
use crate::report::say;
use crate::workspace;

/// The programs in `tests/fuzz/src/bin`.
pub(crate) const TARGETS: [&str; 8] =
    ["configuration", "description", "handshake", "header", "manifest", "registry", "replay_file", "weights"];
/// Compiler flags that report every branch and every comparison to the fuzzer. A stable compiler has them too.
const COVERAGE: [&str; 6] = [
    "--cfg=fuzzing",
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
];
/// The most memory and seconds that a reader may take, whatever its input.
const LIMITS: [&str; 3] = ["-rss_limit_mb=2048", "-malloc_limit_mb=512", "-timeout=10"];

fn folder() -> PathBuf {
    workspace::root().join("tests/fuzz")
}

/// Give each of `targets`, or all of them if there are none, `runs` inputs; those that its corpus keeps come first.
pub(crate) fn fuzz(targets: &[String], runs: u64) -> Result<()> {
    let folder = folder();
    ensure!(build(&folder).status()?.success(), "the targets in {} could not be built", folder.display());
    let targets: Vec<&str> = if targets.is_empty() { TARGETS.to_vec() } else { targets.iter().map(String::as_str).collect() };
    let mut total = 0;
    for target in targets {
        let executed = run(&folder, target, runs);
        remove_leftovers();
        total += executed?;
    }
    say(format!("{total} inputs, and nothing panicked."));
    Ok(())
}

/// The command that builds all targets.
fn build(folder: &Path) -> Command {
    let mut command = workspace::cargo();
    // The target that cargo would choose by itself: naming it keeps the flags from build scripts.
    command.args(["build", "--release", "--target", Processor::HOST.target(), "--manifest-path"]).arg(folder.join("Cargo.toml"));
    // Named here, whatever the user's settings say: the program that is started must be the one that was just built.
    command.arg("--target-dir").arg(target_folder(folder)).env("RUSTFLAGS", COVERAGE.join(" "));
    command
}

fn target_folder(folder: &Path) -> PathBuf {
    folder.join("target")
}

/// The program that was built for `target`.
fn program(folder: &Path, target: &str) -> PathBuf {
    target_folder(folder).join(Processor::HOST.target()).join("release").join(target)
}

fn run(folder: &Path, target: &str, runs: u64) -> Result<u64> {
    let corpus = folder.join("corpus").join(target);
    let found = target_folder(folder).join("found/");
    std::fs::create_dir_all(&corpus)?;
    std::fs::create_dir_all(&found)?;
    let mut command = Command::new(program(folder, target));
    command.arg(&corpus).args(LIMITS).args(["-print_final_stats=1", "-verbosity=0"]);
    command.arg(format!("-runs={runs}")).arg(format!("-artifact_prefix={}", found.display()));
    let output = command.stdout(Stdio::null()).stderr(Stdio::piped()).output().with_context(|| format!("`{target}` does not start"))?;
    let told = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        bail!("`{target}` failed on an input, which is kept in {}:\n{told}", found.display());
    }
    let number = |name: &str| told.lines().find_map(|line| line.strip_prefix(name)?.trim().parse::<u64>().ok()).unwrap_or(0);
    let executed = number("stat::number_of_executed_units:");
    let per_second = number("stat::average_exec_per_sec:");
    ensure!(executed > 0, "`{target}` reports no input:\n{told}");
    let kept = std::fs::read_dir(&corpus)?.count();
    say(format!("{target:<16} {executed:>12} inputs, {per_second} per second, {kept} of interest"));
    Ok(executed)
}

/// Remove the shared memory that ended targets left. Its names end in their process ids.
fn remove_leftovers() {
    let Ok(entries) = std::fs::read_dir("/dev/shm") else { return };
    let has_ended = |name: &str| {
        let pid = name.strip_prefix("shoal-fuzz-").and_then(|rest| rest.rsplit('-').next());
        pid.is_some_and(|pid| !Path::new("/proc").join(pid).exists())
    };
    let left = entries.flatten().filter(|entry| has_ended(&entry.file_name().to_string_lossy()));
    for path in left.map(|entry| entry.path()) {
        let _ = if path.is_dir() { std::fs::remove_dir_all(&path) } else { std::fs::remove_file(&path) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_started_program_is_the_one_just_built_whatever_folder_other_builds_use() {
        let (folder, command) = (folder(), build(&folder()));
        let words: Vec<_> = command.get_args().collect();
        let named = words.iter().position(|word| *word == "--target-dir").map(|at| Path::new(words[at + 1]));
        assert!(named.is_some_and(|named| program(&folder, "header").starts_with(named)), "{words:?}");
    }
}
