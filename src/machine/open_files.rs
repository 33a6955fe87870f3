//! How many files a process may have open at once.

use nix::sys::resource::{Resource, getrlimit, setrlimit};

/// For what processes open beside what they have from those that started them.
const ROOM: u64 = 1_024;

/// Let this process, and those that it starts, have `count` files open at once, and some more where the system lets them.
///
/// # Errors
/// How many it may have, where those are fewer and the system allows no more.
pub fn allow(count: u64) -> Result<(), u64> {
    // A system that does not say is asked when a file is opened.
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
