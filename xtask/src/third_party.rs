//! The licences of the crates that the wheel's native parts are compiled from, in one file. Most of them ask that whoever
//! hands on a program hands on their text with it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::package;
use crate::processor::Processor;

/// What the names of files with a licence begin with, in capital letters.
const NAMES: [&str; 5] = ["LICENSE", "LICENCE", "COPYING", "COPYRIGHT", "NOTICE"];

/// Writes the licences of all crates in the wheel for `processor` to `file`.
pub(crate) fn write_licenses(processor: Processor, programs: &Path, file: &Path) -> Result<()> {
    let mut command = package::command(programs, "cargo");
    // With the libtorch engine, so that the list holds for both native parts.
    command.args(["metadata", "--format-version", "1", "--features", "torch", "--filter-platform", processor.target()]);
    let output = command.output()?;
    ensure!(output.status.success(), "cargo cannot list the crates in the wheel: {}", String::from_utf8_lossy(&output.stderr));
    let metadata = serde_json::from_slice(&output.stdout).context("cargo's list of the crates in the wheel")?;
    std::fs::write(file, licenses(&metadata)?).with_context(|| file.display().to_string())
}

/// The text of the file: each licence once, under the crates that have it, and the crates that come without one.
fn licenses(metadata: &Value) -> Result<String> {
    let mut crates_of_text: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut without_text = Vec::new();
    for package in linked_packages(metadata).context("cargo's list of crates has another form than expected")? {
        // Crates of this workspace have no source, and the licence of the wheel itself.
        if package["source"].is_null() {
            continue;
        }
        let name = format!("{} {}", text(&package["name"]), text(&package["version"]));
        let texts = texts_beside(Path::new(text(&package["manifest_path"]))).with_context(|| name.clone())?;
        if texts.is_empty() {
            without_text.push(format!("{name}: {} ({})", text(&package["license"]), text(&package["repository"])));
        }
        for text in texts {
            crates_of_text.entry(text).or_default().push(name.clone());
        }
    }
    let mut contents = String::from(
        "The native parts of this package are compiled from the following crates, under these licences, and linked with\n\
         Rust's standard library (MIT OR Apache-2.0).\n",
    );
    for (text, crates) in crates_of_text {
        contents += &format!("\n{}\n{}\n\n{}\n", "-".repeat(80), crates.join(", "), text.trim());
    }
    contents +=
        &format!("\n{}\nThese crates name their licence and come without its text:\n\n{}\n", "-".repeat(80), without_text.join("\n"));
    Ok(contents)
}

/// The packages that the root package of `metadata` is compiled from, with their procedural macros, in the order of their
/// names, and the root itself. Those that only build scripts or tests need are left out.
fn linked_packages(metadata: &Value) -> Option<Vec<&Value>> {
    let nodes: BTreeMap<_, _> = metadata["resolve"]["nodes"].as_array()?.iter().map(|node| (text(&node["id"]), node)).collect();
    let mut linked = BTreeSet::new();
    let mut found = vec![metadata["resolve"]["root"].as_str()?];
    while let Some(id) = found.pop() {
        if linked.insert(id) {
            let dependencies = nodes.get(id)?["deps"].as_array()?;
            let is_linked = |dependency: &Value| {
                dependency["dep_kinds"].as_array().is_some_and(|kinds| kinds.iter().any(|kind| kind["kind"].is_null()))
            };
            found.extend(dependencies.iter().filter(|dependency| is_linked(dependency)).map(|dependency| text(&dependency["pkg"])));
        }
    }
    let mut packages: Vec<_> = metadata["packages"].as_array()?.iter().filter(|package| linked.contains(text(&package["id"]))).collect();
    packages.sort_by_key(|package| text(&package["name"]));
    Some(packages)
}

/// The licences beside a crate's manifest, in the order of their files' names.
fn texts_beside(manifest: &Path) -> Result<Vec<String>> {
    let folder = manifest.parent().context("a manifest lies in a folder")?;
    let mut files: Vec<_> = std::fs::read_dir(folder)?.flatten().map(|entry| entry.path()).filter(|path| path.is_file()).collect();
    files.retain(|path| {
        let name = path.file_name().map(|name| name.to_string_lossy().to_uppercase()).unwrap_or_default();
        NAMES.iter().any(|beginning| name.starts_with(beginning))
    });
    files.sort();
    // Some authors' names are not in UTF-8.
    files.iter().map(|file| Ok(String::from_utf8_lossy(&std::fs::read(file)?).into_owned())).collect()
}

/// A text of cargo's, or nothing if it has none.
fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_licence_stands_once_under_the_crates_that_are_linked() {
        let folder = tempfile::tempdir().unwrap();
        let package = |name: &str, source: Value, files: &[(&str, &str)]| {
            let crate_folder = folder.path().join(name);
            std::fs::create_dir(&crate_folder).unwrap();
            for (file, contents) in files {
                std::fs::write(crate_folder.join(file), contents).unwrap();
            }
            json!({
                "id": name, "name": name, "version": "1.0.0", "source": source, "license": "MIT", "repository": "its/home",
                "manifest_path": crate_folder.join("Cargo.toml"),
            })
        };
        let packages = [
            package("ours", Value::Null, &[("LICENSE-MIT", "our own")]),
            package("first", json!("registry"), &[("LICENSE-MIT", "may be copied\n"), ("README.md", "first")]),
            package("second", json!("registry"), &[("COPYING", "may be copied\n"), ("Licence.txt", "and sold")]),
            package("bare", json!("registry"), &[]),
            package("builder", json!("registry"), &[("LICENSE", "of a build script")]),
        ];
        let needs = |name: &str, kind: Value| json!({"pkg": name, "dep_kinds": [{"kind": kind}]});
        let node = |name: &str, dependencies: &[Value]| json!({"id": name, "deps": dependencies});
        let nodes = [
            node("ours", &[needs("first", Value::Null), needs("builder", json!("build"))]),
            node("first", &[needs("second", Value::Null), needs("bare", Value::Null)]),
            node("second", &[]),
            node("bare", &[]),
            node("builder", &[]),
        ];
        let contents = licenses(&json!({"packages": packages, "resolve": {"root": "ours", "nodes": nodes}})).unwrap();
        assert!(contents.contains("first 1.0.0, second 1.0.0\n\nmay be copied\n"), "{contents}");
        assert!(contents.contains("second 1.0.0\n\nand sold\n"), "{contents}");
        assert!(contents.contains("bare 1.0.0: MIT (its/home)"), "{contents}");
        assert!(["our own", "of a build script", "README"].iter().all(|other| !contents.contains(other)), "{contents}");
    }
}
