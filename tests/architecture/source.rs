//! Rust source files of this checkout, and their text without comments and literals.

use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// One file.
pub(crate) struct Source {
    /// Relative to the root of the checkout, for instance `src/sync.rs`.
    pub(crate) path: String,
    pub(crate) text: String,
    /// `text` with a space in place of every byte of a comment, string or character, so that positions and lines stay.
    pub(crate) code: String,
}

impl Source {
    pub(crate) fn new(path: &str, text: &str) -> Self {
        Self { path: path.to_owned(), text: text.to_owned(), code: without_comments_and_literals(text) }
    }

    /// The number of the line that holds the byte at `position`, counted from 1.
    pub(crate) fn line(&self, position: usize) -> usize {
        self.text.as_bytes()[..position].iter().filter(|byte| **byte == b'\n').count() + 1
    }

    /// Where the raw strings are, each from its `r`, or the `b` or `c` before that, to the last quote or `#`.
    pub(crate) fn raw_strings(&self) -> Vec<Range<usize>> {
        let mut ranges = comments_and_literals(&self.text);
        ranges.retain(|range| [b'r', b'b', b'c'].contains(&self.text.as_bytes()[range.start]));
        ranges
    }
}

pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Every Rust file that belongs to the workspace.
pub(crate) fn all() -> Vec<Source> {
    let mut sources = below(&["src", "bin", "xtask", "tests", "benches", "examples", "python"]);
    sources.extend(fs::read_to_string(root().join("build.rs")).map(|text| Source::new("build.rs", &text)));
    sources
}

/// Every Rust file below `folders`; a folder that does not exist holds none.
pub(crate) fn below(folders: &[&str]) -> Vec<Source> {
    let mut paths = Vec::new();
    for folder in folders {
        collect(&root().join(folder), &mut paths);
    }
    assert!(!paths.is_empty(), "no Rust file was found below {folders:?}: a rule that checks nothing proves nothing");
    paths.sort();
    let read = |path: &PathBuf| {
        let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{} cannot be read: {error}", path.display()));
        Source::new(&path.strip_prefix(root()).expect("the path begins with the root").to_string_lossy(), &text)
    };
    paths.iter().map(read).collect()
}

fn collect(folder: &Path, paths: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok) {
        let (path, name) = (entry.path(), entry.file_name());
        let generated = name == "target" || name.to_string_lossy().starts_with('.');
        if path.is_dir() && !generated {
            collect(&path, paths);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            paths.push(path);
        }
    }
}

/// Replaces comments and literals by spaces. Line breaks stay.
fn without_comments_and_literals(text: &str) -> String {
    let mut code = text.as_bytes().to_vec();
    for range in comments_and_literals(text) {
        code[range].iter_mut().filter(|byte| **byte != b'\n').for_each(|byte| *byte = b' ');
    }
    String::from_utf8(code).expect("whole literals and comments are replaced, so whole characters are")
}

/// Where the comments and literals of `text` are, in their order.
fn comments_and_literals(text: &str) -> Vec<Range<usize>> {
    let bytes = text.as_bytes();
    let mut ranges = Vec::new();
    let mut position = 0;
    while position < bytes.len() {
        let Some(end) = skipped_end(bytes, position) else {
            position += 1;
            continue;
        };
        ranges.push(position..end.min(bytes.len()));
        position = end;
    }
    ranges
}

/// Where the comment or literal that begins at `start` ends, if one does.
fn skipped_end(bytes: &[u8], start: usize) -> Option<usize> {
    let rest = &bytes[start..];
    let in_a_word = start > 0 && is_word(bytes[start - 1]);
    match rest {
        [b'/', b'/', ..] => Some(start + rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len())),
        [b'/', b'*', ..] => Some(block_comment_end(bytes, start)),
        [b'"', ..] => Some(quoted_end(bytes, start + 1, b'"')),
        [b'r', b'"' | b'#', ..] if !in_a_word => raw_string_end(bytes, start + 1),
        [b'b' | b'c', b'r', b'"' | b'#', ..] if !in_a_word => raw_string_end(bytes, start + 2),
        // 'a' and '\n' are characters, 'a without a closing quote is a lifetime.
        [b'\'', b'\\', ..] => Some(quoted_end(bytes, start + 1, b'\'')),
        [b'\'', first, ..] => {
            let width = match first {
                0..=0x7f => 1,
                0x80..=0xdf => 2,
                0xe0..=0xef => 3,
                0xf0..=0xff => 4,
            };
            (rest.get(1 + width) == Some(&b'\'')).then_some(start + width + 2)
        }
        _ => None,
    }
}

fn block_comment_end(bytes: &[u8], start: usize) -> usize {
    let (mut depth, mut position) = (0, start);
    while position < bytes.len() {
        match &bytes[position..] {
            [b'/', b'*', ..] => (depth, position) = (depth + 1, position + 2),
            [b'*', b'/', ..] => (depth, position) = (depth - 1, position + 2),
            _ => position += 1,
        }
        if depth == 0 {
            break;
        }
    }
    position
}

fn quoted_end(bytes: &[u8], start: usize, quote: u8) -> usize {
    let mut position = start;
    while position < bytes.len() && bytes[position] != quote {
        position += if bytes[position] == b'\\' { 2 } else { 1 };
    }
    position + 1
}

/// The end of the raw string whose `#` or `"` stands at `start`; `None` for a raw identifier such as `r#type`.
fn raw_string_end(bytes: &[u8], start: usize) -> Option<usize> {
    let hashes = bytes[start..].iter().take_while(|byte| **byte == b'#').count();
    let content = start + hashes + 1;
    if bytes.get(start + hashes) != Some(&b'"') {
        return None;
    }
    let closing: Vec<u8> = std::iter::once(b'"').chain(std::iter::repeat_n(b'#', hashes)).collect();
    let length = bytes[content..].windows(closing.len()).position(|window| window == closing);
    Some(length.map_or(bytes.len(), |length| content + length + closing.len()))
}

pub(crate) fn is_word(byte: u8) -> bool {
    byte == b'_' || byte.is_ascii_alphanumeric()
}

#[test]
fn comments_and_literals_leave_no_words_behind() {
    let hidden = [
        "// word",
        "/* word /* word */ word */",
        "\"word \\\" word\"",
        "r\"word \\\"",
        "r#\"word \" word\"#",
        "br##\"word \"# word\"##",
        "b\"word\"",
        "'\\''",
        "'\"'",
        "'é'",
    ];
    for literal in hidden {
        let code = without_comments_and_literals(&format!("before {literal}\nafter"));
        assert!(!code.contains("word"), "{literal} leaves {code:?}");
        assert!(code.starts_with("before ") && code.ends_with("\nafter"), "{literal} leaves {code:?}");
    }
}

#[test]
fn lifetimes_and_raw_identifiers_are_code() {
    for text in ["fn first<'a>(x: &'a str) -> &'a str { x }", "let r#type = number;", "loop { break 'outer; }"] {
        assert_eq!(without_comments_and_literals(text), text);
    }
}

#[test]
fn raw_strings_are_told_from_other_literals() {
    let source = Source::new("a.rs", r###"f("a", b"b", r"c", 'd', br#"e"#); // r"f""###);
    let texts: Vec<&str> = source.raw_strings().into_iter().map(|range| &source.text[range]).collect();
    assert_eq!(texts, [r#"r"c""#, r###"br#"e"#"###]);
}

#[test]
fn lines_are_counted_from_one() {
    let source = Source::new("a.rs", "one\ntwo\nthree");
    assert_eq!([0, 3, 4, 8].map(|position| source.line(position)), [1, 1, 2, 3]);
}
