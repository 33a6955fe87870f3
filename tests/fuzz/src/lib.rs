//! The fuzz targets, one module each, and what they share: a folder in memory, since the readers take files, and replays to read into.
//! `tests/fuzz_targets.rs` calls the same targets without a fuzzer.

pub mod configuration;
pub mod description;
pub mod handshake;
pub mod header;
pub mod manifest;
pub mod registry;
pub mod replay_file;
pub mod weights;

use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use shoal::replay::{Element, Field, Schema};
use shoal::segment::{Description, Layout, Segment, SegmentSizes};

/// A folder of this process in memory.
static FOLDER: LazyLock<PathBuf> = LazyLock::new(|| {
    let folder = PathBuf::from(format!("/dev/shm/shoal-fuzz-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder in memory");
    folder
});

/// The folder of this process in memory. It is left behind, so that a finding can be looked at; `cargo xtask fuzz` removes it.
pub fn folder() -> &'static Path {
    &FOLDER
}

/// A file in the folder, with this content.
pub fn file(name: &str, content: &[u8]) -> PathBuf {
    let path = folder().join(name);
    std::fs::write(&path, content).expect("room in memory");
    path
}

/// A schema with a field of every kind.
pub fn schema() -> Schema {
    Schema::new(vec![Field::new("observation", Element::F32, 4), Field::new("action", Element::I32, 1)])
}

/// A replay of this process alone, for rows of [`schema`].
pub fn segment() -> Segment {
    let layout = Layout::new(SegmentSizes::of_rows(schema().words(), 64)).expect("a small layout");
    let description = Description { fields: schema().describe(), ..Description::default() };
    Segment::create_private(layout, &description).expect("memory")
}
