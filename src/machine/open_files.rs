//! How many files a process may have open at once.

use nix::sys::resource::{Resource, getrlimit, setrlimit};

/// Files beyond those that were asked for, for files that processes open themselves.
const ROOM: u64 = 1_024;

/// Lets this process, and those that it starts, have `count` files open at once, and some more if the system allows it.
///
/// # Errors
/// The system allows fewer; the error is how many.
pub fn allow(count: u64) -> Result<(), u64> {
    // If the system does not tell the limit, opening a file will show it.
    let Ok((now, most)) = getrlimit(Resource::RLIMIT_NOFILE) else { return Ok(()) };
    if count <= now {
        return Ok(());
    }
    if count > most {
        return Err(most);
    }
    setrlimit(Resource::RLIMIT_NOFILE, count.saturating_add(ROOM).min(most), most).map_err(|_| now)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_files_are_allowed_up_to_the_limit_of_the_system() {
        let (now, most) = getrlimit(Resource::RLIMIT_NOFILE).unwrap();
        assert_eq!(allow(1), Ok(()));
        assert_eq!(getrlimit(Resource::RLIMIT_NOFILE).unwrap(), (now, most), "nobody needs fewer");
        let more = (now + 1).min(most);
        assert_eq!(allow(more), Ok(()));
        assert!((more..=most).contains(&getrlimit(Resource::RLIMIT_NOFILE).unwrap().0));
        if let Some(beyond) = most.checked_add(1) {
            assert_eq!(allow(beyond), Err(most));
        }
    }
}
