//! Quotes paths in commands that users are told to type.

use std::path::Path;

/// `path` as one word of a shell's command line, quoted if necessary.
pub fn word(path: &Path) -> String {
    let text = path.display().to_string();
    // Only a NUL cannot be quoted, and no path has one.
    shlex::try_quote(&text).map_or_else(|_| text.clone(), Into::into)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_one_word() {
        for path in ["runs/20261121-cart_pole-3f2a", "it's mine", "", "a b/$c", "größer"] {
            assert_eq!(shlex::split(&format!("shoal resume {}", word(Path::new(path)))).unwrap(), ["shoal", "resume", path], "{path}");
        }
        assert_eq!(word(Path::new("runs/20261121-cart_pole-3f2a")), "runs/20261121-cart_pole-3f2a");
    }
}
