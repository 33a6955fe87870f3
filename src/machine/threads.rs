//! The threads of this process.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use std::{fs, thread};

/// How long a thread may take to end once its work is done, and the pause between two looks.
const ENDING: Duration = Duration::from_millis(100);
const PAUSE: Duration = Duration::from_millis(10);

/// Names of the threads of this process but its first, as the kernel has them, each once. Threads that are about to end
/// do not count. Empty if the kernel does not tell.
pub fn others() -> BTreeSet<String> {
    let deadline = Instant::now() + ENDING;
    loop {
        let names = names();
        if names.is_empty() || Instant::now() >= deadline {
            return names;
        }
        thread::sleep(PAUSE);
    }
}

fn names() -> BTreeSet<String> {
    // From /proc, whose process ids may be those of another PID namespace than this process's.
    let (Ok(first), Ok(tasks)) = (fs::read_link("/proc/self"), fs::read_dir("/proc/self/task")) else { return BTreeSet::new() };
    let others = tasks.flatten().map(|task| task.path()).filter(|task| task.file_name() != Some(first.as_os_str()));
    // A thread that has ended since the folder was listed has no name.
    let name = |task: PathBuf| Some(String::from_utf8_lossy(&fs::read(task.join("comm")).ok()?).trim_end().to_owned());
    others.filter_map(name).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    #[test]
    fn a_thread_that_goes_on_is_named() {
        let ((tell, told), (end, ended)) = (channel(), channel::<()>());
        let work = move || {
            tell.send(()).unwrap();
            let _ = ended.recv();
        };
        let thread = thread::Builder::new().name("sleeper".into()).spawn(work).unwrap();
        told.recv().unwrap();
        assert!(names().contains("sleeper"), "{:?}", names());
        drop(end);
        thread.join().unwrap();
    }
}
