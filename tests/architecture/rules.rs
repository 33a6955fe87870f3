//! The rules. Each takes sources and returns what breaks it, as `path:line: what`.

use std::collections::BTreeSet;

use crate::imports::{imports, module_path, tokens};
use crate::source::Source;

/// Modules that `source` names although `table` does not allow it. Every module needs a row.
pub(crate) fn forbidden_imports(source: &Source, table: &[(&str, &[&str])]) -> Vec<String> {
    let module = module_path(source);
    let Some(first) = module.first() else { return Vec::new() };
    let Some((own, allowed)) = table.iter().find(|(name, _)| first == name) else {
        return vec![format!("{}: `{first}` has no row in the table", source.path)];
    };
    let is_module = |name: &str| table.iter().any(|(module, _)| *module == name);
    imports(source)
        .into_iter()
        .filter(|import| is_module(&import.names[0]) && import.names[0] != *own && !allowed.contains(&import.names[0].as_str()))
        .map(|import| format!("{}:{}: `{own}` may not use `{}`", source.path, import.line, import.names.join("::")))
        .collect()
}

/// Permissions of `table` that no module uses.
pub(crate) fn unused_permissions(sources: &[Source], table: &[(&str, &[&str])]) -> Vec<String> {
    let uses = |own: &str, allowed: &str| {
        let own_sources = sources.iter().filter(|source| module_path(source).first().is_some_and(|first| first == own));
        own_sources.flat_map(imports).any(|import| import.names[0] == allowed)
    };
    let permissions = table.iter().flat_map(|(own, allowed)| allowed.iter().map(move |allowed| (*own, *allowed)));
    permissions.filter(|(own, allowed)| !uses(own, allowed)).map(|(own, allowed)| format!("`{own}` does not use `{allowed}`")).collect()
}

/// Rooms that a row of `table` names although they do not stand above it.
pub(crate) fn not_above(table: &[(&str, &[&str])]) -> Vec<String> {
    let violations_of = |(row, (own, allowed)): (usize, &(&str, &[&str]))| {
        let is_above = |name: &str| table[..row].iter().any(|(room, _)| *room == name);
        let below = allowed.iter().filter(|name| !is_above(name));
        below.map(|name| format!("`{name}` does not stand above `{own}`")).collect::<Vec<_>>()
    };
    table.iter().enumerate().flat_map(violations_of).collect()
}

/// The rooms at which the bullets of `document` begin, in their order: `- `, then one or more paths such as `src/sync.rs`.
pub(crate) fn rooms_of_the_map(document: &str) -> Vec<&str> {
    let bullets = document.lines().filter(|line| line.starts_with("- `src/"));
    bullets.flat_map(|line| line.split("`src/").skip(1)).filter_map(|path| path.split(['/', '.']).next()).collect()
}

/// The roles: every file or folder directly below `src/roles` that is not shared.
pub(crate) fn role_names(sources: &[Source], shared: &[&str]) -> BTreeSet<String> {
    sources.iter().filter_map(|source| module_path(source).get(1).cloned()).filter(|name| !shared.contains(&name.as_str())).collect()
}

/// The places where a role names another one that `made_of` does not allow it.
pub(crate) fn roles_that_use_roles(source: &Source, roles: &BTreeSet<String>, made_of: &[(&str, &[&str])]) -> Vec<String> {
    // `roles/mod.rs` itself names them all.
    let Some(own) = module_path(source).get(1).cloned() else { return Vec::new() };
    let allowed = made_of.iter().find(|(name, _)| *name == own).map_or(&[][..], |(_, parts)| parts);
    imports(source)
        .into_iter()
        .filter(|import| !import.names.get(1).is_some_and(|name| allowed.contains(&name.as_str())))
        .filter(|import| import.names[0] == "roles" && import.names.get(1).is_some_and(|name| *name != own && roles.contains(name)))
        .map(|import| format!("{}:{}: `{own}` may not use `{}`", source.path, import.line, import.names.join("::")))
        .collect()
}

pub(crate) fn unsafe_outside_the_segment(source: &Source) -> Vec<String> {
    if source.path.starts_with("src/segment/") {
        return Vec::new();
    }
    let keywords = tokens(&source.code).into_iter().filter(|(_, token)| *token == "unsafe");
    keywords.map(|(position, _)| format!("{}:{}: `unsafe`", source.path, source.line(position))).collect()
}

pub(crate) fn longer_than(source: &Source, limit: usize) -> Vec<String> {
    let lines = source.text.lines().count();
    if lines > limit { vec![format!("{}: {lines} lines, at most {limit} are allowed", source.path)] } else { Vec::new() }
}

/// The lines, comments included, that have more than `limit` columns, except those with a part of a raw string. Any other line can be
/// broken, a string by a `\` at the end of the line.
pub(crate) fn wider_than(source: &Source, limit: usize) -> Vec<String> {
    let raw_strings = source.raw_strings();
    let mut violations = Vec::new();
    let mut start = 0;
    for (index, line) in source.text.split('\n').enumerate() {
        let (columns, end) = (line.chars().count(), start + line.len());
        let holds_raw_string = raw_strings.iter().any(|range| range.start < end && start < range.end);
        if columns > limit && !holds_raw_string {
            violations.push(format!("{}:{}: {columns} columns, at most {limit} are allowed", source.path, index + 1));
        }
        start = end + 1;
    }
    violations
}

/// The number of lines of the file in the middle when they are sorted by length; 0 if there is none.
pub(crate) fn median_lines(sources: &[Source]) -> usize {
    let mut lines: Vec<usize> = sources.iter().map(|source| source.text.lines().count()).collect();
    lines.sort_unstable();
    lines.get(lines.len() / 2).copied().unwrap_or(0)
}

/// Paths through one of `names`, of packages or modules, in a file that is not below `room`.
pub(crate) fn named_outside(source: &Source, room: &str, names: &[&str]) -> Vec<String> {
    if source.path.starts_with(room) {
        return Vec::new();
    }
    let tokens = tokens(&source.code);
    let naming = |pair: &&[(usize, &str)]| names.contains(&pair[0].1) && pair[1].1 == "::";
    tokens.windows(2).filter(naming).map(|pair| format!("{}:{}: `{}`", source.path, source.line(pair[0].0), pair[0].1)).collect()
}

pub(crate) fn no_opening_comment(source: &Source) -> Vec<String> {
    if source.text.starts_with("//! ") { Vec::new() } else { vec![source.path.clone()] }
}

/// The packages of `[dependencies]` in `manifest` that no row of a table in `document` names.
pub(crate) fn dependencies_not_in_a_table(manifest: &str, document: &str) -> Vec<String> {
    let manifest: toml::Table = manifest.parse().expect("the manifest is TOML");
    let dependencies = manifest["dependencies"].as_table().expect("[dependencies] is a table");
    let rows: Vec<&str> = document.lines().filter(|line| line.trim_start().starts_with('|')).collect();
    let named = |name: &str| rows.iter().any(|row| row.contains(&format!("`{name}`")));
    dependencies.keys().filter(|name| !named(name)).cloned().collect()
}

/// The packages of `[dependencies]` in `manifest`, but those of features, that the lock file `lock` does not know its package to have.
pub(crate) fn dependencies_not_in_a_lock(manifest: &str, lock: &str) -> Vec<String> {
    let [manifest, lock] = [manifest, lock].map(|text| text.parse::<toml::Table>().expect("both are TOML"));
    let packages = lock["package"].as_array().expect("packages");
    let own = packages.iter().find(|package| package["name"] == manifest["package"]["name"]).expect("the package itself");
    let locked = own["dependencies"].as_array().expect("its dependencies");
    // If a lock has several versions of a package, its name is followed by a version.
    let is_locked = |name: &str| locked.iter().filter_map(toml::Value::as_str).any(|entry| entry.split(' ').next() == Some(name));
    let is_optional = |dependency: &toml::Value| dependency.get("optional").is_some_and(|optional| optional.as_bool() == Some(true));
    let dependencies = manifest["dependencies"].as_table().expect("[dependencies] is a table");
    dependencies.iter().filter(|(name, dependency)| !is_optional(dependency) && !is_locked(name)).map(|(name, _)| name.clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: [(&str, &[&str]); 3] = [("sync", &[]), ("segment", &["sync"]), ("roles", &["sync", "segment"])];

    fn source(path: &str, text: &str) -> Source {
        Source::new(path, text)
    }

    #[test]
    fn an_import_must_be_in_the_table() {
        let check = |path: &str, text: &str| forbidden_imports(&source(path, text), &TABLE);
        assert_eq!(check("src/segment/mod.rs", "use crate::sync;\nuse crate::segment::layout;"), Vec::<String>::new());
        assert_eq!(check("src/sync.rs", "\nuse crate::segment::Segment;"), ["src/sync.rs:2: `sync` may not use `segment::Segment`"]);
        assert_eq!(check("src/segment/mod.rs", "use super::roles;"), ["src/segment/mod.rs:1: `segment` may not use `roles`"]);
        assert_eq!(check("src/roles/actor.rs", "use crate::{sync, segment};"), Vec::<String>::new());
        assert_eq!(check("src/lib.rs", "use crate::{sync, segment};"), Vec::<String>::new());
        assert_eq!(check("src/novelty/mod.rs", ""), ["src/novelty/mod.rs: `novelty` has no row in the table"]);
    }

    #[test]
    fn a_permission_must_be_used() {
        let sources = [source("src/segment/mod.rs", "use crate::sync;"), source("src/sync.rs", "")];
        let table: [(&str, &[&str]); 2] = [("segment", &["sync", "replay"]), ("sync", &[])];
        assert_eq!(unused_permissions(&sources, &table), ["`segment` does not use `replay`"]);
    }

    #[test]
    fn a_row_names_only_rows_above_it() {
        assert_eq!(not_above(&TABLE), Vec::<String>::new());
        let table: [(&str, &[&str]); 3] = [("sync", &["novelty"]), ("replay", &["sync", "segment"]), ("segment", &["segment"])];
        let violations = [("novelty", "sync"), ("segment", "replay"), ("segment", "segment")];
        assert_eq!(not_above(&table), violations.map(|(name, own)| format!("`{name}` does not stand above `{own}`")));
    }

    #[test]
    fn bullets_of_the_map_begin_with_their_rooms() {
        let document =
            "- `src/sync.rs`: atomics\n  in `src/values.rs`\n\n### Words\n\n- `src/shell.rs`, `src/segment/`: two\n- `python/src/`: no";
        assert_eq!(rooms_of_the_map(document), ["sync", "shell", "segment"]);
    }

    #[test]
    fn a_role_may_use_what_is_shared_and_no_other_role() {
        let sources =
            ["src/roles/mod.rs", "src/roles/actor.rs", "src/roles/learner/mod.rs", "src/roles/common.rs"].map(|path| source(path, ""));
        let roles = role_names(&sources, &["common"]);
        assert_eq!(roles, BTreeSet::from(["actor".to_owned(), "learner".to_owned()]));
        let made_of: [(&str, &[&str]); 1] = [("learner", &["actor"])];
        let check = |path: &str, text: &str| roles_that_use_roles(&source(path, text), &roles, &[]).len();
        let allowed = source("src/roles/learner/mod.rs", "use crate::roles::actor;");
        assert!(roles_that_use_roles(&allowed, &roles, &made_of).is_empty());
        let refused = source("src/roles/actor.rs", "use super::learner::Learner;");
        assert_eq!(roles_that_use_roles(&refused, &roles, &made_of).len(), 1);
        assert_eq!(check("src/roles/actor.rs", "use super::learner::Learner;"), 1);
        assert_eq!(check("src/roles/learner/mod.rs", "use crate::roles::actor;"), 1);
        assert_eq!(check("src/roles/common.rs", "use super::actor;"), 1);
        assert_eq!(check("src/roles/actor.rs", "use super::{Role, common::Clock}; use crate::roles::actor::Step;"), 0);
        assert_eq!(check("src/roles/mod.rs", "pub use self::actor::Actor; use crate::roles::learner;"), 0);
    }

    #[test]
    fn unsafe_is_found_in_code_and_only_there() {
        let text = "// unsafe\nfn f() { unsafe { g() } }\nconst S: &str = \"unsafe\";\n#![allow(unsafe_code)]";
        assert_eq!(unsafe_outside_the_segment(&source("src/replay/mod.rs", text)), ["src/replay/mod.rs:2: `unsafe`"]);
        assert_eq!(unsafe_outside_the_segment(&source("src/segment/shared_words.rs", text)), Vec::<String>::new());
    }

    #[test]
    fn lengths_are_counted_in_lines() {
        let files = ["a\n", "a\nb\n", "a\nb\nc\nd\n"].map(|text| source("src/a.rs", text));
        assert_eq!(median_lines(&files), 2);
        assert_eq!(median_lines(&[]), 0);
        assert_eq!(longer_than(&files[2], 4), Vec::<String>::new());
        assert_eq!(longer_than(&files[2], 3), ["src/a.rs: 4 lines, at most 3 are allowed"]);
    }

    #[test]
    fn wide_lines_are_found_outside_of_raw_strings() {
        let check = |text: &str| wider_than(&source("src/a.rs", text), 10);
        assert_eq!(check("ten\u{00fc} colum\n\n// a comment\n"), ["src/a.rs:3: 12 columns, at most 10 are allowed"]);
        assert_eq!(check("let a = \"long\";"), ["src/a.rs:1: 15 columns, at most 10 are allowed"]);
        assert_eq!(check("f(r\"\nthirteen columns\n\");"), Vec::<String>::new());
        assert_eq!(check("f(r\"\n\");\neleven();  "), ["src/a.rs:3: 11 columns, at most 10 are allowed"]);
    }

    #[test]
    fn a_package_or_module_of_one_room_is_found_elsewhere() {
        let text = "//! clap::Parser\nuse clap::Parser;\nfn f(clap: u32) -> anyhow::Error { todo!() }";
        let found = |path: &str| named_outside(&source(path, text), "src/program/", &["clap", "anyhow"]);
        assert_eq!(found("src/roles/actor.rs"), ["src/roles/actor.rs:2: `clap`", "src/roles/actor.rs:3: `anyhow`"]);
        assert!(found("src/program/train.rs").is_empty());
        let asking = source("src/roles/supervisor/mod.rs", "mod gpu_meter;\nuse crate::machine::gpu_meter::GpuMeter;");
        assert_eq!(named_outside(&asking, "src/roles/learner/", &["gpu_meter"]), ["src/roles/supervisor/mod.rs:2: `gpu_meter`"]);
    }

    #[test]
    fn a_file_begins_with_its_purpose() {
        assert_eq!(no_opening_comment(&source("src/a.rs", "use std::io;\n//! late")), ["src/a.rs"]);
        assert_eq!(no_opening_comment(&source("src/a.rs", "//! What and why.\n")), Vec::<String>::new());
    }

    #[test]
    fn a_dependency_needs_a_row_of_a_table() {
        let manifest = "[dependencies]\nnix = \"1\"\nserde = { version = \"1\" }\ntoml = \"1\"\n[dev-dependencies]\nproptest = \"1\"";
        let document = "We use `toml`.\n\n| package | use |\n|---|---|\n| `nix` | system calls |\n";
        assert_eq!(dependencies_not_in_a_table(manifest, document), ["serde", "toml"]);
    }

    #[test]
    fn a_dependency_needs_its_place_in_a_lock() {
        let manifest = "[package]\nname = \"shoal\"\n[dependencies]\nnix = \"1\"\nserde = \"1\"\n\
                        tch = { version = \"1\", optional = true }\ntoml = { version = \"1\" }\n";
        let lock = "[[package]]\nname = \"nix\"\n[[package]]\nname = \"shoal\"\ndependencies = [\"nix 1.2.3\", \"toml\"]\n";
        assert_eq!(dependencies_not_in_a_lock(manifest, lock), ["serde"]);
    }
}
