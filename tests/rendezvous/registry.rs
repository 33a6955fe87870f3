//! The folder is private or refused; records say what was announced, and the kernel whether their run lives.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use shoal::rendezvous::{Listener, Liveliness, Registry, RendezvousError};

use super::{Child, Place, sleep_for_ever};
use crate::support::forked;

fn refused(folder: PathBuf) -> String {
    let error = Registry::open_at(folder.clone()).expect_err("an unsafe folder was accepted");
    assert!(matches!(error, RendezvousError::UnsafeFolder { .. }), "{error}");
    let text = error.to_string();
    assert!(text.contains(folder.to_str().unwrap()) && text.contains("XDG_RUNTIME_DIR") && text.contains("if it is yours"), "{text}");
    text
}

#[test]
fn the_folder_is_made_private_and_kept_if_it_is() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("shoal");
    for _ in 0..2 {
        Registry::open_at(folder.clone()).unwrap();
        assert_eq!(fs::metadata(&folder).unwrap().mode() & 0o7777, 0o700);
    }
}

#[test]
fn a_folder_that_others_could_change_is_refused() {
    let place = tempfile::tempdir().unwrap();
    let real = place.path().join("real");
    Registry::open_at(real.clone()).unwrap();
    let link = place.path().join("link");
    symlink(&real, &link).unwrap();
    refused(link);
    let dangling = place.path().join("dangling");
    symlink(place.path().join("nowhere"), &dangling).unwrap();
    assert!(Registry::open_at(dangling).is_err());
    let file = place.path().join("file");
    fs::write(&file, "").unwrap();
    refused(file);
    for mode in [0o710, 0o704, 0o777, 0o1777] {
        fs::set_permissions(&real, fs::Permissions::from_mode(mode)).unwrap();
        assert!(refused(real.clone()).contains("open to others"));
    }
}

#[test]
fn a_folder_that_cannot_be_made_or_where_nobody_can_listen_is_refused_with_the_variable_to_change() {
    let missing = Registry::open_at(PathBuf::from("/proc/nowhere/shoal")).expect_err("nobody can make a folder there").to_string();
    let place = tempfile::tempdir().unwrap();
    // Whoever only looks at runs needs no socket.
    let registry = Registry::open_at(place.path().join("x".repeat(100))).expect("a folder like any");
    let long = registry.check_free(1).expect_err("no socket has such a path").to_string();
    for text in [&missing, &long] {
        assert!(text.contains("XDG_RUNTIME_DIR") && text.contains("unset it"), "{text}");
    }
    assert!(missing.contains("/proc/nowhere/shoal") && long.contains("the system allows 107"), "{missing} {long}");
}

#[test]
fn a_folder_of_somebody_else_is_refused() {
    // Root owns its own folders, so there the folder is given away; everybody else is shown one of root's.
    let place = tempfile::tempdir().unwrap();
    let foreign = if nix::unistd::getuid().is_root() {
        let folder = place.path().join("shoal");
        fs::create_dir(&folder).unwrap();
        std::os::unix::fs::chown(&folder, Some(65_534), None).unwrap();
        folder
    } else {
        PathBuf::from("/usr")
    };
    assert!(refused(foreign).contains("owned by user"));
}

#[test]
fn what_is_announced_is_found_until_the_announcement_is_dropped() {
    let place = Place::new();
    let record = place.record();
    let announcement = place.announce(&record).unwrap();
    fs::write(&record.socket, "stands for the socket").unwrap();
    let entry = place.registry.find(std::process::id()).unwrap();
    assert_eq!((&entry.record, entry.state), (&record, Liveliness::Running));
    assert_eq!(place.registry.list(), [entry]);
    let file = place.registry.folder().join(format!("{}.json", std::process::id()));
    assert_eq!(fs::metadata(file).unwrap().mode() & 0o777, 0o600);
    assert_eq!(place.file_names().len(), 2, "only the record and the socket: {:?}", place.file_names());
    drop(announcement);
    assert_eq!(place.file_names(), Vec::<String>::new());
}

#[test]
fn a_run_is_seen_once_it_is_published() {
    let place = Place::new();
    let record = place.record();
    let announcement = place.registry.reserve(&record).unwrap();
    fs::write(&record.socket, "stands for the socket").unwrap();
    assert_eq!(place.registry.list(), []);
    announcement.publish().unwrap();
    assert_eq!(place.registry.list().len(), 1);
}

#[test]
fn the_exit_of_a_forked_child_withdraws_nothing() {
    let place = Place::new();
    let announcement = place.announce(&place.record()).unwrap();
    let before = place.file_names();
    for body in [|| 0, || panic!("a child may panic")] {
        let mut child = Child::fork(|| {
            std::panic::set_hook(Box::new(|_| ()));
            body()
        });
        child.reap();
        assert_eq!(place.file_names(), before);
    }
    drop(announcement);
}

#[test]
fn another_start_time_another_boot_and_a_zombie_are_dead() {
    let place = Place::new();
    let pid = std::process::id();
    let announce = |change: fn(&mut shoal::rendezvous::RegisteredRun)| {
        let mut record = place.record();
        change(&mut record);
        let _announcement = place.announce(&record).unwrap();
        place.registry.find(record.identity.supervisor_pid).unwrap().state
    };
    assert_eq!(announce(|_| ()), Liveliness::Running);
    assert_eq!(announce(|record| record.identity.supervisor_start_time += 1), Liveliness::Dead, "the id of {pid} went to another");
    assert_eq!(announce(|record| record.identity.boot_id ^= 1), Liveliness::Dead);
    assert_eq!(announce(|record| record.identity.supervisor_pid = u32::MAX), Liveliness::Dead);

    let child = Child::fork(|| sleep_for_ever());
    let mut record = place.record();
    record.identity.supervisor_pid = child.pid();
    record.identity.supervisor_start_time = shoal::segment::pidfd::start_time(child.pid()).unwrap();
    let _announcement = place.announce(&record).unwrap();
    let state = || place.registry.find(child.pid()).unwrap().state;
    assert_eq!(state(), Liveliness::Running);
    child.signal(nix::sys::signal::Signal::SIGKILL);
    // It is not reaped here: the kernel keeps its id, and `kill(pid, 0)` still succeeds.
    forked::wait_until(|| state() == Liveliness::Dead);
    assert!(Path::new(&format!("/proc/{}", child.pid())).exists());
}

#[test]
fn a_run_of_another_container_whose_memory_is_out_of_sight_lives_as_long_as_somebody_listens_at_its_socket() {
    let place = Place::new();
    let mut record = place.record();
    record.identity.pid_namespace ^= 1;
    record.segment.push_str("-elsewhere");
    let listener = Listener::bind(&record.socket).unwrap();
    // Killed, its supervisor withdraws nothing.
    std::mem::forget(place.announce(&record).unwrap());
    place.registry.sweep();
    let state = || place.registry.find(record.identity.supervisor_pid).unwrap().state;
    assert_eq!(state(), Liveliness::Running);
    let of_the_same_id = place.announce(&place.record());
    assert!(matches!(of_the_same_id, Err(RendezvousError::Taken { .. })), "{of_the_same_id:?}");
    drop(listener);
    forked::wait_until(|| state() == Liveliness::Dead);
    place.registry.sweep();
    assert_eq!(place.file_names(), Vec::<String>::new());
}

#[test]
fn an_unknown_run_is_answered_with_those_that_run() {
    let place = Place::new();
    let error = || place.registry.find(4_000_000).unwrap_err().to_string();
    assert!(error().contains("4000000") && error().contains("nothing is running"), "{}", error());
    let looked_in = format!("the runs in {}", place.registry.folder().display());
    assert!(error().contains(&looked_in) && error().contains("XDG_RUNTIME_DIR"), "{}", error());
    let _announcement = place.announce(&place.record()).unwrap();
    let running = format!("running now: {} (Test-v0)", std::process::id());
    assert!(error().contains(&running) && error().contains("inspect"), "{}", error());
}

#[test]
fn what_is_no_record_is_passed_over() {
    let place = Place::new();
    let record = place.record();
    let _announcement = place.announce(&record).unwrap();
    let put = |name: &str, bytes: &[u8]| fs::write(place.registry.folder().join(name), bytes).unwrap();
    let text = serde_json::to_string(&record).unwrap();
    put("1.json", b"");
    put("2.json", b"{\"identity\": 3}");
    put("3.json", &[0xff; 100]);
    put("4.json", text.as_bytes());
    put("5.json", format!("{text}{}", " ".repeat(100_000)).as_bytes());
    put("6.text", text.as_bytes());
    put("seven.json", text.as_bytes());
    symlink(place.registry.folder().join(format!("{}.json", record.identity.supervisor_pid)), place.registry.folder().join("8.json"))
        .unwrap();
    // Opening a pipe would wait for a writer for ever.
    nix::unistd::mkfifo(&place.registry.folder().join("9.json"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    let listed = place.registry.list();
    assert_eq!(listed.iter().map(|entry| &entry.record).collect::<Vec<_>>(), [&record]);
    for pid in 1..10 {
        assert!(matches!(place.registry.find(pid), Err(RendezvousError::NoSuchRun { .. })), "{pid}");
    }
}

#[test]
fn a_reader_never_sees_half_a_record() {
    let place = Place::new();
    let record = place.record();
    let mut other = record.clone();
    other.run_folder = "another/".repeat(1_000);
    let _announcement = place.announce(&record).unwrap();
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            for round in 0..2_000 {
                // Kept: dropping an announcement would remove the record.
                std::mem::forget(place.announce(if round % 2 == 0 { &other } else { &record }).unwrap());
            }
        });
        while !writer.is_finished() {
            let seen = place.registry.find(std::process::id()).expect("the record is always there").record;
            assert!(seen == record || seen == other);
        }
    });
}
