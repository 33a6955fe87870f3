//! Objects in the shared-memory file system with bytes of a test's choice.
#![allow(dead_code, unreachable_pub, reason = "each test binary uses its part")]

use std::fs::File;
use std::io::Write;
use std::path::PathBuf;
use std::process::Command;

/// Where the object called `name` lies.
pub fn path_of(name: &str) -> PathBuf {
    PathBuf::from("/dev/shm").join(name.trim_start_matches('/'))
}

/// A name that nobody else has, as if given by process `pid`.
pub fn name_of(prefix: &str, pid: u32) -> String {
    format!("/{prefix}-{pid}-{:032x}", uuid::Uuid::new_v4().as_u128())
}

/// The id of a process that has ended.
pub fn ended_process() -> u32 {
    let mut child = Command::new("true").spawn().expect("a program that every system has");
    child.wait().expect("its end");
    child.id()
}

/// What lies under such a name; removed when dropped, if it is still there.
pub struct Object {
    /// Name of the object, with its slash.
    pub name: String,
}

impl Object {
    /// An object with a name that no segment has.
    pub fn new(bytes: &[u8]) -> Self {
        Self::named(name_of("shoal-test", std::process::id()), bytes)
    }

    /// An object with the name that a run's segment has: only such are ever removed as leftovers.
    pub fn named(name: String, bytes: &[u8]) -> Self {
        let mut file = File::options().write(true).create_new(true).open(path_of(&name)).expect("a new object");
        file.write_all(bytes).expect("room for a small object");
        Self { name }
    }

    /// The object under another name. Processes that share it go on sharing it.
    pub fn renamed(mut self, name: String) -> Self {
        std::fs::rename(self.path(), path_of(&name)).expect("another name for an object");
        self.name = name;
        self
    }

    /// Path of the object.
    pub fn path(&self) -> PathBuf {
        path_of(&self.name)
    }

    /// Whether it is still there.
    pub fn exists(&self) -> bool {
        self.path().exists()
    }
}

impl Drop for Object {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(self.path());
    }
}
