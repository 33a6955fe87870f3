//! The rules of ARCHITECTURE.md that a compiler does not check, checked on the source text.
//!
//! Each test here applies one rule of `architecture/rules.rs` to this checkout; the rules themselves are tested there, on
//! samples that break them.

#[path = "architecture/imports.rs"]
mod imports;
#[path = "architecture/rules.rs"]
mod rules;
#[path = "architecture/source.rs"]
mod source;

use source::Source;

/// Who may import whom: a folder or file directly below `src`, and the others that it may name. They stand above it, so
/// no circle is possible. `lib.rs` may name all of them.
const MAY_IMPORT: [(&str, &[&str]); 29] = [
    // Foundations.
    ("sync", &[]),
    ("values", &[]),
    ("metrics", &[]),
    ("readable", &[]),
    ("suggestion", &[]),
    ("shell", &[]),
    ("bounded_file", &[]),
    ("machine", &["shell"]),
    // Shared memory.
    ("segment", &["sync", "metrics"]),
    ("replay", &["sync", "values", "segment"]),
    ("rendezvous", &["segment", "shell"]),
    // Configuration.
    ("adaptation", &[]),
    ("config", &["adaptation", "segment", "suggestion"]),
    // Learning.
    ("environments", &["values", "machine", "suggestion"]),
    ("networks", &["values", "config"]),
    ("experience", &["sync", "values", "segment", "replay", "environments", "config"]),
    ("algorithms", &["metrics", "values", "experience", "replay", "environments", "networks", "config", "suggestion"]),
    ("catalogue", &["algorithms", "environments", "config", "values"]),
    ("prelude", &["algorithms", "catalogue", "config", "environments", "experience", "metrics", "networks", "replay", "values"]),
    // Runs.
    ("checkpoint", &["sync", "values", "bounded_file", "shell", "environments", "networks", "segment", "replay"]),
    ("telemetry", &["metrics", "segment", "config", "machine", "shell", "readable", "bounded_file"]),
    ("presets", &["config", "telemetry"]),
    ("run_name", &["rendezvous", "shell", "telemetry"]),
    (
        "roles",
        &[
            "adaptation",
            "algorithms",
            "catalogue",
            "checkpoint",
            "config",
            "environments",
            "experience",
            "machine",
            "metrics",
            "networks",
            "readable",
            "rendezvous",
            "replay",
            "run_name",
            "segment",
            "shell",
            "sync",
            "telemetry",
            "values",
        ],
    ),
    ("seeds", &["checkpoint", "segment", "telemetry", "readable"]),
    // Programs.
    (
        "inspector",
        &[
            "checkpoint",
            "config",
            "experience",
            "machine",
            "metrics",
            "readable",
            "rendezvous",
            "replay",
            "segment",
            "shell",
            "sync",
            "telemetry",
        ],
    ),
    ("dashboard", &["config", "inspector", "bounded_file", "rendezvous", "run_name", "segment", "shell", "telemetry"]),
    (
        "program",
        &[
            "catalogue",
            "config",
            "dashboard",
            "environments",
            "inspector",
            "machine",
            "networks",
            "presets",
            "readable",
            "rendezvous",
            "roles",
            "run_name",
            "seeds",
            "segment",
            "shell",
            "telemetry",
        ],
    ),
    ("standalone", &["sync", "segment", "replay", "rendezvous", "config", "checkpoint"]),
];

/// What the roles share. A role may name these and what `roles/mod.rs` defines.
const SHARED_BY_ROLES: [&str; 4] = ["run", "configured_environment", "newest_parameters", "signs_of_life"];

/// The only roles that may name other roles, and which: the one that forks them, and those that play several of them.
const ROLES_OF_ROLES: [(&str, &[&str]); 5] = [
    ("supervisor", &["actor", "learner", "evaluator", "synchronous", "visualizer"]),
    ("synchronous", &["actor", "learner", "evaluator"]),
    ("attached", &["actor"]),
    ("player", &["evaluator"]),
    ("visualizer", &["evaluator"]),
];

/// The room of the command line, and the packages that only it may name: arguments, and errors without types.
const PROGRAM: (&str, &[&str]) = ("src/program/", &["clap", "clap_complete", "anyhow"]);

/// The package and the module that ask a GPU's driver, each with the only room that may name it. A process that has asked must not
/// fork. The supervisor forks, so it finds GPUs in the driver's files, as `doctor` does.
const ASKING_A_GPU: [(&str, &[&str]); 2] = [("src/machine/gpu_meter/", &["nvml_wrapper"]), ("src/roles/learner/", &["gpu_meter"])];

const LONGEST_FILE_LINES: usize = 600;
/// As `max_width` in rustfmt.toml: rustfmt leaves comments and strings as wide as they are.
const WIDEST_LINE_COLUMNS: usize = 140;
const LONGEST_PROGRAM_LINES: usize = 20;
const MEDIAN_FILE_LINES: usize = 150;

fn assert_kept(rule: &str, violations: Vec<String>) {
    assert!(violations.is_empty(), "{rule}:\n  {}\n", violations.join("\n  "));
}

fn every_violation(sources: &[Source], rule: impl Fn(&Source) -> Vec<String>) -> Vec<String> {
    sources.iter().flat_map(rule).collect()
}

fn architecture() -> String {
    std::fs::read_to_string(source::root().join("ARCHITECTURE.md")).expect("ARCHITECTURE.md is readable")
}

#[test]
fn modules_import_only_what_the_table_allows() {
    let violations = every_violation(&source::below(&["src"]), |source| rules::forbidden_imports(source, &MAY_IMPORT));
    assert_kept("a module names another that MAY_IMPORT in tests/architecture.rs does not allow", violations);
}

#[test]
fn a_room_uses_all_that_the_table_allows_it() {
    assert_kept("a row of MAY_IMPORT allows more than its room needs", rules::unused_permissions(&source::all(), &MAY_IMPORT));
}

#[test]
fn a_room_uses_only_rooms_above_it_in_the_table() {
    assert_kept("a row of MAY_IMPORT names a room that does not stand above it", rules::not_above(&MAY_IMPORT));
}

#[test]
fn the_code_map_has_the_rooms_in_the_order_of_the_table() {
    let rooms = MAY_IMPORT.map(|(room, _)| room);
    assert_eq!(rules::rooms_of_the_map(&architecture()), rooms, "left: bullets of ARCHITECTURE.md; right: rows of MAY_IMPORT");
}

#[test]
fn no_role_uses_another_role_beyond_the_table() {
    let sources = source::below(&["src/roles"]);
    let roles = rules::role_names(&sources, &SHARED_BY_ROLES);
    let violations = every_violation(&sources, |source| rules::roles_that_use_roles(source, &roles, &ROLES_OF_ROLES));
    assert_kept("a role names another role; what they share belongs in roles/run.rs, and ROLES_OF_ROLES names the exceptions", violations);
}

#[test]
fn unsafe_code_is_in_the_segment_alone() {
    let violations = every_violation(&source::all(), rules::unsafe_outside_the_segment);
    assert_kept("`unsafe` stands outside src/segment", violations);
}

#[test]
fn files_stay_short() {
    let mut violations = every_violation(&source::all(), |source| rules::longer_than(source, LONGEST_FILE_LINES));
    violations.extend(every_violation(&source::below(&["bin"]), |source| rules::longer_than(source, LONGEST_PROGRAM_LINES)));
    assert_kept("a file is too long; give its second idea a file of its own", violations);
    let median = rules::median_lines(&source::below(&["src", "bin", "xtask"]));
    assert!(median <= MEDIAN_FILE_LINES, "the median file has {median} lines, at most {MEDIAN_FILE_LINES} are allowed");
}

#[test]
fn lines_stay_narrow() {
    let violations = every_violation(&source::all(), |source| rules::wider_than(source, WIDEST_LINE_COLUMNS));
    assert_kept("a line is too wide; break a comment between words, and a string by a `\\` at the end of the line", violations);
}

#[test]
fn arguments_and_errors_without_types_are_for_the_command_line_alone() {
    let (room, packages) = PROGRAM;
    let violations = every_violation(&source::below(&["src"]), |source| rules::named_outside(source, room, packages));
    assert_kept("a package of the command line is named outside src/program", violations);
}

#[test]
fn the_driver_of_a_gpu_is_asked_by_learners_alone() {
    let sources = source::below(&["src"]);
    let violations = |(room, names): (&str, &[&str])| every_violation(&sources, |source| rules::named_outside(source, room, names));
    assert_kept("a GPU's driver is asked outside of src/roles/learner", ASKING_A_GPU.into_iter().flat_map(violations).collect());
}

#[test]
fn every_file_of_the_library_says_what_it_is_for() {
    let violations = every_violation(&source::below(&["src"]), rules::no_opening_comment);
    assert_kept("a file does not begin with a `//!` comment", violations);
}

#[test]
fn every_dependency_is_in_the_table_of_the_architecture() {
    let manifest = std::fs::read_to_string(source::root().join("Cargo.toml")).expect("Cargo.toml is readable");
    let violations = rules::dependencies_not_in_a_table(&manifest, &architecture());
    assert_kept("a package of [dependencies] has no row, with its name as `name`, in a table of ARCHITECTURE.md", violations);
}

#[test]
fn the_lock_files_of_other_workspaces_have_every_dependency() {
    let read = |path: &str| std::fs::read_to_string(source::root().join(path)).expect(path);
    for lock in ["python/Cargo.lock", "tests/fuzz/Cargo.lock"] {
        let violations = rules::dependencies_not_in_a_lock(&read("Cargo.toml"), &read(lock));
        assert_kept(&format!("{lock} is older than Cargo.toml; `cargo metadata` beside it writes it anew"), violations);
    }
}
