//! Reads the header of a shared-memory object.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::LazyLock;

use shoal::segment::Segment;

/// The largest object that is made: its pages are never written.
const MOST_BYTES: u64 = 1 << 32;

static OBJECT: LazyLock<(String, File)> = LazyLock::new(|| {
    let name = format!("/shoal-fuzz-header-{}", std::process::id());
    let file = File::options().read(true).write(true).create(true).truncate(true).open(format!("/dev/shm{name}"));
    (name, file.expect("an object"))
});

/// Look into an object of `length` bytes that begins with `content`.
pub fn read((length, content): (u32, &[u8])) {
    let (name, file) = &*OBJECT;
    file.set_len(0).and_then(|()| file.set_len(u64::from(length) % MOST_BYTES)).expect("room");
    let content = &content[..content.len().min(length as usize)];
    file.write_all_at(content, 0).expect("room");
    let _ = Segment::identity_of(name);
}
