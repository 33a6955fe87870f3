//! Finds the modules that a file names by paths through `crate` or `super`, in `use` declarations and anywhere else.

use crate::source::{Source, is_word};

/// A path below the root of the crate: `crate::a::b` or, from two modules deep, `super::super::a::b`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Import {
    pub(crate) line: usize,
    /// The first names of the path, at most two: `["a", "b"]`.
    pub(crate) names: Vec<String>,
}

/// The modules from the root of the crate to this file: `["roles", "actor"]` for `src/roles/actor.rs`.
pub(crate) fn module_path(source: &Source) -> Vec<String> {
    let path = source.path.strip_prefix("src/").unwrap_or(&source.path).trim_end_matches(".rs");
    path.split('/').filter(|name| !["mod", "lib"].contains(name)).map(str::to_owned).collect()
}

/// Every path of `source` that begins with `crate` or `super`, resolved to the root of the crate.
///
/// An inner module (`mod tests { … }`) counts as the file around it; `super` from there says the file itself, which is
/// never a violation, and cannot hide one: a path that climbs to the root is still resolved.
pub(crate) fn imports(source: &Source) -> Vec<Import> {
    let tokens = tokens(&source.code);
    let module = module_path(source);
    let mut found = Vec::new();
    let mut index = 0;
    while index < tokens.len() {
        let (position, word) = tokens[index];
        let continues_a_path = index > 0 && tokens[index - 1].1 == "::";
        if !["crate", "super"].contains(&word) || continues_a_path || tokens.get(index + 1).map(|token| token.1) != Some("::") {
            index += 1;
            continue;
        }
        let mut climbed = 0;
        while tokens.get(index).is_some_and(|token| token.1 == "super") && tokens.get(index + 1).is_some_and(|token| token.1 == "::") {
            (climbed, index) = (climbed + 1, index + 2);
        }
        let base = if word == "crate" {
            index += 2;
            &[][..]
        } else {
            &module[..module.len().saturating_sub(climbed)]
        };
        let mut paths = Vec::new();
        index = read_paths(&tokens, index, base, &mut paths);
        let line = source.line(position);
        found.extend(paths.into_iter().map(|names| Import { line, names }));
    }
    found
}

/// Reads the path, or the group of paths in braces, at `index`; returns the index after it.
fn read_paths(tokens: &[(usize, &str)], mut index: usize, base: &[String], paths: &mut Vec<Vec<String>>) -> usize {
    let mut names = base.to_vec();
    while let Some((_, token)) = tokens.get(index) {
        if *token == "{" {
            index += 1;
            while tokens.get(index).is_some_and(|token| token.1 != "}") {
                index = read_paths(tokens, index, &names, paths);
                while tokens.get(index).is_some_and(|token| token.1 != "," && token.1 != "}") {
                    index += 1;
                }
                index += usize::from(tokens.get(index).is_some_and(|token| token.1 == ","));
            }
            return index + 1;
        }
        names.push((*token).to_owned());
        index += 1;
        if tokens.get(index).map(|token| token.1) != Some("::") {
            break;
        }
        index += 1;
    }
    names.truncate(2);
    paths.push(names);
    index
}

/// Words, `::` and single other bytes, each with its position.
pub(crate) fn tokens(code: &str) -> Vec<(usize, &str)> {
    let bytes = code.as_bytes();
    let mut tokens = Vec::new();
    let mut position = 0;
    while position < bytes.len() {
        let length = if is_word(bytes[position]) {
            bytes[position..].iter().take_while(|byte| is_word(**byte)).count()
        } else if code[position..].starts_with("::") {
            2
        } else {
            code[position..].chars().next().map_or(1, char::len_utf8)
        };
        let token = &code[position..position + length];
        if !token.trim().is_empty() {
            tokens.push((position, token));
        }
        position += length;
    }
    tokens
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(path: &str, text: &str) -> Vec<String> {
        imports(&Source::new(path, text)).into_iter().map(|import| import.names.join("::")).collect()
    }

    #[test]
    fn paths_are_found_wherever_they_stand() {
        assert_eq!(names("src/replay/mod.rs", "use crate::segment::layout::Layout;"), ["segment::layout"]);
        assert_eq!(names("src/replay/mod.rs", "fn f(x: &crate::sync::Word) {}"), ["sync::Word"]);
        assert_eq!(names("src/replay/mod.rs", "pub(crate) use other::crate_name::x; pub(super) fn f() {}"), Vec::<String>::new());
        assert_eq!(
            names("src/replay/mod.rs", "use crate::{segment::{self, layout}, sync as s, config::*};"),
            ["segment::self", "segment::layout", "sync", "config::*"]
        );
    }

    #[test]
    fn super_is_resolved_from_the_place_of_the_file() {
        assert_eq!(names("src/replay/mod.rs", "use super::segment::Segment;"), ["segment::Segment"]);
        assert_eq!(names("src/replay/sampler.rs", "use super::schema::Field;"), ["replay::schema"]);
        assert_eq!(names("src/replay/sampler.rs", "use super::super::segment;"), ["segment"]);
        assert_eq!(names("src/roles/actor/steps.rs", "use super::super::learner::Learner;"), ["roles::learner"]);
        assert_eq!(names("src/sync.rs", "mod tests { use super::*; }"), ["*"]);
    }

    #[test]
    fn an_import_knows_its_line() {
        assert_eq!(imports(&Source::new("src/sync.rs", "//! Words.\n\nuse crate::segment;"))[0].line, 3);
    }
}
