//! Rules for the pages: links lead somewhere, each page can be found, tables of settings are true, and prose has short lines, so that
//! changes to it can be read.

use std::fs;
use std::path::{Path, PathBuf};

use shoal::config::Config;
use shoal::presets::Preset;
use toml::{Table, Value};

const LONGEST_LINE: usize = 120;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Every page of Markdown that belongs to the project.
fn pages() -> Vec<PathBuf> {
    let folders = ["", "docs", "configs", "benches", "python"].map(|folder| root().join(folder));
    let files = folders.iter().flat_map(|folder| fs::read_dir(folder).expect("a folder of pages")).flatten();
    let mut pages: Vec<_> = files.map(|file| file.path()).filter(|path| path.extension().is_some_and(|it| it == "md")).collect();
    pages.sort();
    pages
}

/// The lines outside code blocks, with their numbers.
fn lines_of_text(page: &str) -> Vec<(usize, &str)> {
    let mut in_code = false;
    let numbered = page.lines().enumerate().filter(|(_, line)| {
        let fence = line.trim_start().starts_with("```");
        in_code ^= fence;
        !in_code && !fence
    });
    numbered.map(|(index, line)| (index + 1, line)).collect()
}

/// Targets of the links in a line: what stands between `](` and `)`.
fn targets(line: &str) -> impl Iterator<Item = &str> {
    line.split("](").skip(1).filter_map(|rest| rest.split(')').next())
}

/// The name that a heading has in links.
fn anchor(heading: &str) -> String {
    let kept = heading.trim_start_matches('#').trim().to_lowercase();
    kept.chars().filter(|it| it.is_alphanumeric() || " -_".contains(*it)).map(|it| if it == ' ' { '-' } else { it }).collect()
}

fn leads_nowhere(page: &Path, target: &str) -> bool {
    if target.contains("://") {
        return false;
    }
    let (file, heading) = target.split_once('#').unwrap_or((target, ""));
    let file = if file.is_empty() { page.to_path_buf() } else { page.parent().expect("a folder").join(file) };
    if heading.is_empty() {
        return !file.exists();
    }
    let text = fs::read_to_string(file).unwrap_or_default();
    !lines_of_text(&text).iter().any(|(_, line)| line.starts_with('#') && anchor(line) == heading)
}

#[test]
fn every_link_between_pages_leads_somewhere() {
    let mut broken = Vec::new();
    for page in pages() {
        let text = fs::read_to_string(&page).expect("a page");
        for (number, line) in lines_of_text(&text) {
            let dead = targets(line).filter(|target| leads_nowhere(&page, target));
            broken.extend(dead.map(|target| format!("{}:{number}: {target}", page.display())));
        }
    }
    assert!(broken.is_empty(), "links that lead nowhere:\n  {}", broken.join("\n  "));
}

#[test]
fn every_page_below_docs_is_in_the_table_of_contents() {
    let contents = fs::read_to_string(root().join("docs/README.md")).expect("the table of contents");
    let missing: Vec<_> = pages()
        .into_iter()
        .filter(|page| page.parent() == Some(&root().join("docs")))
        .filter_map(|page| page.file_name()?.to_str().map(String::from))
        .filter(|name| name != "README.md" && !contents.contains(&format!("({name})")))
        .collect();
    assert!(missing.is_empty(), "docs/README.md does not name {missing:?}");
}

/// The cells of a row of a table.
fn cells(row: &str) -> Vec<&str> {
    row.trim_matches('|').split('|').map(str::trim).collect()
}

/// What stands in backticks at the beginning of a cell.
fn quoted(cell: &str) -> Option<&str> {
    cell.strip_prefix('`')?.split('`').next()
}

/// The configuration that a column of a table of settings is about, if it is about one of Shoal's: the defaults, or a preset.
fn configuration(column: &str, algorithm: &str) -> Option<Table> {
    let config = if column == "default" {
        Config::for_algorithm(algorithm)
    } else {
        let presets = Preset::find(quoted(column)?);
        presets[0].load(&[]).expect("a preset can be loaded").config
    };
    Some(config.to_toml().parse().expect("a configuration is TOML"))
}

/// Whether two values are the same, however a number is written.
fn is_same(one: &Value, other: &Value) -> bool {
    let number = |value: &Value| value.as_float().or_else(|| value.as_integer().map(|whole| whole as f64));
    one == other || number(one).is_some_and(|one| number(other) == Some(one))
}

#[test]
fn tables_of_settings_have_the_defaults_and_those_of_the_presets() {
    let mut wrong = Vec::new();
    for algorithm in ["dqn", "ddpg", "td3", "sac", "ppo", "appo"] {
        let page = fs::read_to_string(root().join(format!("docs/{algorithm}.md"))).expect("a page");
        let table = page.lines().skip_while(|line| !line.starts_with("| key | default |"));
        let mut rows = table.take_while(|line| line.starts_with('|')).map(cells);
        let header = rows.next().expect("a table of settings");
        let columns: Vec<_> = header.iter().map(|column| configuration(column, algorithm)).collect();
        for row in rows {
            let Some((table, key)) = quoted(row[0]).and_then(|path| path.split_once('.')) else { continue };
            for (configuration, cell) in columns.iter().zip(&row) {
                let Some(value) = configuration.as_ref().map(|tables| &tables[table][key]) else { continue };
                let shown = quoted(cell).and_then(|text| format!("shown = {text}").parse::<Table>().ok()?.remove("shown"));
                if !shown.is_some_and(|shown| is_same(&shown, value)) {
                    wrong.push(format!("docs/{algorithm}.md: {table}.{key}: {cell}, which is {value}"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "settings that are others:\n  {}", wrong.join("\n  "));
}

#[test]
fn tables_of_promises_name_tests_that_are_there() {
    let is_there = |name: &str| {
        let path = if name.contains('/') { name.to_owned() } else { format!("tests/{}", name.replace("::", "/")) };
        root().join(format!("{path}.rs")).exists() || name.contains('/') && root().join(path).exists()
    };
    let (mut named, mut missing) = (0, Vec::new());
    for page in ["docs/reliability.md", "docs/transfer.md"] {
        let text = fs::read_to_string(root().join(page)).expect("a page");
        let mut has_promises = false;
        for line in text.lines() {
            let last_cell = *cells(line).last().expect("a line has a cell, if an empty one");
            has_promises = line.starts_with('|') && (has_promises || last_cell == "shown by");
            for name in last_cell.split('`').skip(1).step_by(2).filter(|_| has_promises) {
                named += 1;
                if !is_there(name) {
                    missing.push(format!("{page}: {name}"));
                }
            }
        }
    }
    assert!(named > 0 && missing.is_empty(), "{named} names, and these of no test:\n  {}", missing.join("\n  "));
}

#[test]
fn prose_has_short_lines() {
    let mut long = Vec::new();
    // A program writes the page of keys.
    for page in pages().into_iter().filter(|page| !page.ends_with("docs/configuration.md")) {
        let text = fs::read_to_string(&page).expect("a page");
        for (number, line) in lines_of_text(&text) {
            // Tables and formulas cannot be broken.
            let is_prose = !line.starts_with('|') && !line.contains("$$");
            if is_prose && line.chars().count() > LONGEST_LINE {
                long.push(format!("{}:{number}: {} columns", page.display(), line.chars().count()));
            }
        }
    }
    assert!(long.is_empty(), "prose of more than {LONGEST_LINE} columns:\n  {}", long.join("\n  "));
}

#[test]
fn pictures_of_curves_show_the_data_beside_them() {
    let files = fs::read_dir(root().join("docs/curves")).expect("a folder of curves").flatten().map(|file| file.path());
    let (pictures, data): (Vec<_>, Vec<_>) = files.partition(|file| file.extension().is_some_and(|it| it == "svg"));
    let names = data.iter().map(|file| {
        let curves: serde_json::Value = serde_json::from_slice(&fs::read(file).expect("data")).expect("data are JSON");
        let text = |key: &str| curves[key].as_str().expect("a name").to_owned();
        let seeds = curves["runs"].as_array().expect("runs").len();
        format!("{} on {}, {seeds} seed{}", text("algorithm"), text("environment"), if seeds == 1 { "" } else { "s" })
    });
    let names: Vec<_> = names.collect();
    for picture in pictures {
        let text = fs::read_to_string(&picture).expect("a picture");
        let legends = text.split("<!-- ").filter_map(|rest| rest.split(" -->").next()).filter(|legend| legend.contains(" on "));
        let legends: Vec<_> = legends.collect();
        assert!(!legends.is_empty(), "{} names no curve", picture.display());
        for legend in legends {
            assert!(names.iter().any(|name| name == legend), "{}: no data of {legend:?}: draw it again", picture.display());
        }
    }
}
