//! Who may join gets a slot, everybody else a reason, and nobody can make the supervisor wait.

use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use rand::RngExt;
use serde::Serialize;
use shoal::rendezvous::handshake::JoinError;
use shoal::rendezvous::listener::ReservedSlot;
use shoal::rendezvous::{Announcement, Attachment, Joined, Listener, Refusal, RegisteredRun, RendezvousError, Reply, Visitor, attach};
use shoal::roles::attached::{self, AttachError};
use shoal::segment::pidfd::{Pidfd, start_time};
use shoal::segment::processes::{Role, SlotState};
use shoal::segment::{ABI_VERSION, system};
use shoal::sync::Ordering;

use super::{Child, Place, sleep_for_ever};
use crate::support::{forked, skipped};

const MAGIC: u64 = u64::from_le_bytes(*b"SHOALATT");

/// The run of this process, listening.
struct Door {
    place: Place,
    listener: Listener,
    _announcement: Announcement,
}

impl Door {
    fn open() -> Self {
        let place = Place::new();
        let record = place.record();
        let listener = Listener::bind(&record.socket).unwrap();
        let announcement = place.announce(&record).unwrap();
        Self { place, listener, _announcement: announcement }
    }

    fn socket(&self) -> PathBuf {
        self.place.record().socket
    }

    /// Slot 3, reserved.
    fn grant(&self) -> ReservedSlot {
        let segment = &self.place.run.segment;
        let generation = segment.processes().slot(3).reserve(Role::AttachedActor, 5).expect("slot 3 is free");
        ReservedSlot { segment: segment.name().into(), run_id: segment.identity().run_id, slot: 3, generation, number: 5 }
    }

    /// What becomes of an actor in this process when the supervisor decides like that.
    fn ask(
        &mut self,
        mut decide: impl FnMut(&Self) -> Result<ReservedSlot, Refusal>,
    ) -> (Result<Attachment, RendezvousError>, Vec<Joined>) {
        let registry = self.place.registry.clone();
        let actor = std::thread::spawn(move || attach(&registry, std::process::id(), Visitor::Actor));
        let mut joined = Vec::new();
        forked::wait_until(|| {
            joined.extend(self.serve(&mut decide));
            actor.is_finished()
        });
        (actor.join().expect("the actor does not panic"), joined)
    }

    fn serve(&mut self, decide: &mut impl FnMut(&Self) -> Result<ReservedSlot, Refusal>) -> Vec<Joined> {
        let knocks = self.listener.hear();
        knocks.into_iter().filter_map(|knock| knock.answer(|_| decide(self))).collect()
    }

    /// Send `bytes` and return what comes back until the connection is closed. Nobody gets in.
    fn answer_to(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut stream = connect(&self.socket());
        stream.write_all(bytes).unwrap();
        self.rest_of(&mut stream)
    }

    fn rest_of(&mut self, stream: &mut UnixStream) -> Vec<u8> {
        let (mut received, mut buffer) = (Vec::new(), [0; 512]);
        forked::wait_until(|| {
            assert!(self.serve(&mut |_| panic!("nobody may ask for a slot")).is_empty());
            match stream.read(&mut buffer) {
                Ok(0) => return true,
                Ok(count) => received.extend_from_slice(&buffer[..count]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                // The supervisor closed a connection whose bytes it had not read.
                Err(error) if error.kind() == ErrorKind::ConnectionReset => return true,
                Err(error) => panic!("{error}"),
            }
            false
        });
        received
    }
}

fn connect(socket: &Path) -> UnixStream {
    let stream = UnixStream::connect(socket).unwrap();
    stream.set_nonblocking(true).unwrap();
    stream
}

fn framed(body: &[u8]) -> Vec<u8> {
    [&u32::try_from(body.len()).unwrap().to_le_bytes()[..], body].concat()
}

fn body(message: &impl Serialize) -> Vec<u8> {
    bincode::serde::encode_to_vec(message, bincode::config::standard()).unwrap()
}

/// The body of a request, field by field.
fn request(magic: u64, abi_version: u64, program_version: &str, started: u64) -> Vec<u8> {
    body(&(magic, abi_version, program_version, started, Visitor::Actor))
}

fn own_request() -> Vec<u8> {
    request(MAGIC, ABI_VERSION, env!("CARGO_PKG_VERSION"), start_time(std::process::id()).unwrap())
}

fn refusal(answer: &[u8]) -> Refusal {
    let (length, body) = answer.split_first_chunk::<4>().expect("an answer");
    assert_eq!(u32::from_le_bytes(*length) as usize, body.len());
    match bincode::serde::decode_from_slice(body, bincode::config::standard()).unwrap().0 {
        Reply::Refused(refusal) => refusal,
        Reply::Accepted { .. } => panic!("accepted"),
    }
}

#[test]
fn an_actor_of_another_process_joins_works_and_leaves() {
    let mut door = Door::open();
    let supervisor = std::process::id();
    let registry = door.place.registry.clone();
    let mut actor = Child::fork(|| {
        let attachment = attach(&registry, supervisor, Visitor::Actor).unwrap();
        assert!(attachment.supervisor_alive());
        let segment = attachment.open_segment().unwrap();
        assert!(segment.processes().slot(attachment.slot).occupy(std::process::id(), attachment.generation));
        segment.control().env_steps().fetch_add(attachment.number as u64, Ordering::SeqCst);
        0
    });
    let mut joined = Vec::new();
    forked::wait_until(|| {
        joined.extend(door.serve(&mut |door| Ok(door.grant())));
        !joined.is_empty()
    });
    let [joined] = <[Joined; 1]>::try_from(joined).expect("one actor");
    assert_eq!((joined.slot, joined.pid), (3, actor.pid()));
    let segment = &door.place.run.segment;
    forked::wait_until(|| segment.control().env_steps().load(Ordering::SeqCst) == 5);
    let slot = segment.processes().slot(3);
    assert_eq!((slot.state(), slot.pid(), slot.role()), (SlotState::Live, actor.pid(), Some((Role::AttachedActor, 5))));
    forked::wait_until(|| joined.process.has_ended());
    // The connection was open as long as the actor lived, and its end is seen too.
    assert_eq!((&joined.connection).read(&mut [0]).unwrap(), 0);
    actor.reap();
}

#[test]
fn a_refused_actor_learns_why() {
    let mut door = Door::open();
    for (reason, says) in
        [(Refusal::Full { slots: 8 }, "all 8 slots"), (Refusal::Full { slots: 0 }, "actor.attach_slots"), (Refusal::Stopping, "is ending")]
    {
        let (result, joined) = door.ask(|_| Err(reason.clone()));
        assert!(joined.is_empty());
        let error = result.expect_err("refused");
        assert!(matches!(&error, RendezvousError::Refused { refusal, .. } if *refusal == reason), "{error}");
        let text = error.to_string();
        assert!(text.contains(says) && text.contains(&std::process::id().to_string()), "{text}");
    }
}

#[test]
fn requests_that_mean_nothing_are_refused_and_the_next_actor_joins() {
    let mut door = Door::open();
    let mut longer = own_request();
    longer.push(0);
    let after = [framed(&own_request()), vec![0]].concat();
    for garbage in [framed(b""), framed(b"garbage!"), framed(&longer), after, u32::MAX.to_le_bytes().into(), framed(&[0xff; 4_096])] {
        assert_eq!(refusal(&door.answer_to(&garbage)), Refusal::Garbled, "{garbage:?}");
    }
    assert_eq!(refusal(&door.answer_to(&framed(&request(MAGIC + 1, ABI_VERSION, "x", 0)))), Refusal::Garbled);
    let (result, joined) = door.ask(|door| Ok(door.grant()));
    assert_eq!((result.unwrap().slot, joined.len()), (3, 1));
}

#[test]
fn no_bytes_disturb_the_supervisor() {
    let mut door = Door::open();
    let mut random = forked::random(7);
    let mut answered = 0;
    for _ in 0..300 {
        let length = random.random_range(0..64);
        let bytes: Vec<u8> = (0..length).map(|_| random.random()).collect();
        // Half of them have a length that fits, so that their body is looked at.
        let bytes = if random.random() { framed(&bytes) } else { bytes };
        let mut stream = connect(&door.socket());
        stream.write_all(&bytes).unwrap();
        // Before it hangs up: of whoever has gone nothing is read.
        assert!(door.serve(&mut |_| panic!("nobody may ask for a slot")).is_empty());
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        answered += usize::from(!door.rest_of(&mut stream).is_empty());
    }
    assert!(answered > 100, "{answered} were told what is wrong");
    assert!(door.ask(|door| Ok(door.grant())).0.is_ok());
}

#[test]
fn another_version_is_told_both_versions() {
    let mut door = Door::open();
    let started = start_time(std::process::id()).unwrap();
    for (abi_version, version) in [(ABI_VERSION + 1, env!("CARGO_PKG_VERSION")), (ABI_VERSION, "77.0.0")] {
        let refusal = refusal(&door.answer_to(&framed(&request(MAGIC, abi_version, version, started))));
        let said = |version: &str, abi_version: u64| format!("{version} (layout version {abi_version})");
        let [supervisor, yours] = [said(env!("CARGO_PKG_VERSION"), ABI_VERSION), said(version, abi_version)];
        assert!(refusal.to_string().contains(&yours) && refusal.to_string().contains(&supervisor), "{refusal}");
        assert_eq!(refusal, Refusal::OtherVersion { supervisor, yours });
    }
}

#[test]
fn the_version_of_a_run_is_compared_before_its_configuration_is_read() {
    let place = Place::new();
    let supervisor = std::process::id();
    // Its configuration names no environment, and is refused when it is read.
    let of_this_release = place.record();
    let of_another = RegisteredRun { program_version: "77.0.0".into(), ..of_this_release.clone() };
    let refused = |record: &RegisteredRun| {
        let _announcement = place.announce(record).unwrap();
        attached::become_ready(&place.registry, supervisor, 2).expect_err("it cannot be joined")
    };
    assert!(matches!(refused(&of_this_release), AttachError::Config(_)));
    let error = refused(&of_another);
    let text = error.to_string();
    assert!(matches!(error, AttachError::OtherRelease { pid, .. } if pid == supervisor), "{text}");
    assert!(text.contains("version 77.0.0") && text.contains(env!("CARGO_PKG_VERSION")), "{text}");
}

#[test]
fn a_request_from_another_process_than_it_says_is_refused() {
    let mut door = Door::open();
    let started = start_time(std::process::id()).unwrap();
    let claimed = framed(&request(MAGIC, ABI_VERSION, env!("CARGO_PKG_VERSION"), started + 1));
    assert_eq!(refusal(&door.answer_to(&claimed)), Refusal::OtherProcess);
}

#[test]
fn another_user_is_refused_even_where_the_socket_is_open_to_all() {
    if !nix::unistd::getuid().is_root() {
        return skipped::because("only root can become somebody else");
    }
    let mut door = Door::open();
    for (path, mode) in [(door.place.folder.path(), 0o755), (door.place.registry.folder(), 0o755), (door.socket().as_path(), 0o777)] {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    }
    let socket = door.socket();
    let mut stranger = Child::fork(|| {
        nix::unistd::setuid(nix::unistd::Uid::from_raw(65_534)).unwrap();
        let mut stream = UnixStream::connect(&socket).unwrap();
        stream.write_all(&framed(&own_request())).unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        if refusal(&answer) == Refusal::OtherUser { 0 } else { 1 }
    });
    let pid = nix::unistd::Pid::from_raw(stranger.pid().cast_signed());
    let flags = nix::sys::wait::WaitPidFlag::WNOHANG;
    let mut status = nix::sys::wait::WaitStatus::StillAlive;
    forked::wait_until(|| {
        assert!(door.serve(&mut |_| panic!("a stranger may not ask for a slot")).is_empty());
        status = nix::sys::wait::waitpid(pid, Some(flags)).unwrap();
        status != nix::sys::wait::WaitStatus::StillAlive
    });
    stranger.0 = None;
    assert_eq!(status, nix::sys::wait::WaitStatus::Exited(pid, 0));
}

#[test]
fn the_silent_are_turned_away_in_time_and_hold_up_nobody() {
    let mut door = Door::open();
    let mut silent: Vec<UnixStream> = (0..100).map(|_| connect(&door.socket())).collect();
    let mut half = connect(&door.socket());
    half.write_all(&framed(&own_request())[..9]).unwrap();
    // They are waited for while this one joins.
    let (result, _) = door.ask(|door| Ok(door.grant()));
    assert_eq!(result.unwrap().slot, 3);
    assert!(door.listener.has_connections());
    for stream in silent.iter_mut().chain([&mut half]) {
        door.rest_of(stream);
    }
    assert!(!door.listener.has_connections());
}

#[test]
fn of_a_crowd_that_has_spoken_everybody_is_heard() {
    let mut door = Door::open();
    let spoken: Vec<UnixStream> = (0..100)
        .map(|_| {
            let mut stream = connect(&door.socket());
            stream.write_all(&framed(&own_request())).unwrap();
            stream
        })
        .collect();
    let (mut heard, mut times) = (0, 0);
    while heard < spoken.len() {
        let before = heard;
        door.serve(&mut |_| {
            heard += 1;
            Err(Refusal::Full { slots: 8 })
        });
        assert!(heard > before, "those at the door are heard at the next look");
        times += 1;
    }
    assert!(times > 1, "descriptors for a whole crowd are held at once");
}

#[test]
fn a_request_may_arrive_byte_by_byte() {
    let mut door = Door::open();
    let mut stream = connect(&door.socket());
    let mut joined = Vec::new();
    for byte in framed(&own_request()) {
        assert!(joined.is_empty());
        stream.write_all(&[byte]).unwrap();
        joined.extend(door.serve(&mut |door| Ok(door.grant())));
    }
    assert_eq!(joined.len(), 1);
}

#[test]
fn an_actor_that_died_after_its_request_is_handed_over_as_dead() {
    let mut door = Door::open();
    let socket = door.socket();
    let mut actor = Child::fork(|| {
        let mut stream = UnixStream::connect(&socket).unwrap();
        stream.write_all(&framed(&own_request())).unwrap();
        std::mem::forget(stream);
        sleep_for_ever()
    });
    // It dies between its request and the reply.
    let mut joined = Vec::new();
    forked::wait_until(|| {
        joined.extend(door.serve(&mut |door| {
            actor.signal(Signal::SIGKILL);
            Ok(door.grant())
        }));
        !joined.is_empty()
    });
    assert_eq!(joined[0].pid, actor.pid());
    forked::wait_until(|| joined[0].process.has_ended());
    actor.reap();
}

#[test]
fn a_promise_that_the_segment_does_not_keep_is_no_place() {
    let mut door = Door::open();
    let other = door.place.segment();
    let open = |door: &mut Door, change: &dyn Fn(&mut ReservedSlot)| {
        let mut granted = door.grant();
        change(&mut granted);
        let result = door.ask(|_| Ok(granted.clone())).0.unwrap().open_segment();
        door.place.run.slot(3).release();
        result.map(|_| ())
    };
    assert!(open(&mut door, &|_| ()).is_ok());
    let swapped = open(&mut door, &|granted| granted.segment = other.name().into()).unwrap_err();
    assert!(matches!(swapped, JoinError::Rendezvous(RendezvousError::OtherRun { .. })), "{swapped}");
    let renamed = open(&mut door, &|granted| granted.run_id ^= 1).unwrap_err();
    assert!(matches!(renamed, JoinError::Rendezvous(RendezvousError::OtherRun { .. })), "{renamed}");
    let outside = open(&mut door, &|granted| granted.slot = 8).unwrap_err();
    assert!(matches!(outside, JoinError::Rendezvous(RendezvousError::Garbled { .. })), "{outside}");
    let gone = open(&mut door, &|granted| granted.segment.push('x')).unwrap_err();
    assert!(matches!(gone, JoinError::Segment(_)), "{gone}");
}

/// A supervisor in a process of its own that announces itself, listens, and stops in the middle of everything.
fn stopped_supervisor(place: &Place) -> Child {
    let child = Child::fork(|| {
        let mut record = place.record();
        record.identity.supervisor_pid = std::process::id();
        record.identity.supervisor_start_time = start_time(std::process::id()).unwrap();
        record.socket = place.registry.socket_path(std::process::id());
        let _listener = Listener::bind(&record.socket).unwrap();
        let _announcement = place.announce(&record).unwrap();
        nix::sys::signal::raise(Signal::SIGSTOP).unwrap();
        sleep_for_ever()
    });
    let pid = nix::unistd::Pid::from_raw(child.pid().cast_signed());
    let status = nix::sys::wait::waitpid(pid, Some(nix::sys::wait::WaitPidFlag::WUNTRACED)).unwrap();
    assert!(matches!(status, nix::sys::wait::WaitStatus::Stopped(..)), "{status:?}");
    child
}

#[test]
fn a_supervisor_that_does_not_answer_is_not_waited_for_for_ever() {
    let place = Place::new();
    let supervisor = stopped_supervisor(&place);
    let error = attach(&place.registry, supervisor.pid(), Visitor::Actor).unwrap_err();
    assert!(matches!(error, RendezvousError::Silent { pid, .. } if pid == supervisor.pid()), "{error}");
    // Not even when its queue of connections is full, so that connecting itself waits.
    let mut queue = Vec::new();
    let socket = place.registry.socket_path(supervisor.pid());
    loop {
        use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};
        let stream = socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::NONBLOCK, None).unwrap();
        if connect(&stream, &SocketAddrUnix::new(&socket).unwrap()).is_err() {
            break;
        }
        queue.push(stream);
    }
    let error = attach(&place.registry, supervisor.pid(), Visitor::Actor).unwrap_err();
    assert!(matches!(error, RendezvousError::Silent { .. }), "{error} after {} connections", queue.len());
}

#[test]
fn a_supervisor_that_dies_instead_of_answering_is_reported_as_dead() {
    let place = Place::new();
    let mut supervisor = stopped_supervisor(&place);
    let (registry, pid) = (place.registry.clone(), supervisor.pid());
    let actor = std::thread::spawn(move || attach(&registry, pid, Visitor::Actor));
    std::thread::sleep(Duration::from_millis(100));
    supervisor.signal(Signal::SIGKILL);
    supervisor.reap();
    let error = actor.join().unwrap().unwrap_err();
    assert!(matches!(error, RendezvousError::Dead { pid: dead, .. } if dead == pid), "{error}");
    assert!(error.to_string().contains("if it wrote a checkpoint") && error.to_string().contains("inspect --clean"), "{error}");
}

#[test]
fn whoever_waits_for_an_end_waits_its_time_and_no_longer_whatever_signals_interrupt_it() {
    const PATIENCE: Duration = Duration::from_millis(100);
    let _watched = Place::new();
    // Before the child is there, which no signal is to end.
    system::handle_stop_signals_of_child().unwrap();
    let this = Pidfd::open(std::process::id()).unwrap();
    let mut child = Child::fork(|| {
        let began = Instant::now();
        i32::from(this.ends_within(PATIENCE) || began.elapsed() < PATIENCE)
    });
    let waiting = Pidfd::open(child.pid()).unwrap();
    while !waiting.ends_within(Duration::from_millis(10)) {
        child.signal(Signal::SIGTERM);
    }
    let status = child.reap();
    assert!(matches!(status, nix::sys::wait::WaitStatus::Exited(_, 0)), "{status:?}");
}

#[test]
fn a_run_whose_socket_is_gone_names_the_socket() {
    let door = Door::open();
    std::fs::remove_file(door.socket()).unwrap();
    let error = attach(&door.place.registry, std::process::id(), Visitor::Actor).unwrap_err().to_string();
    assert!(error.contains(door.socket().to_str().unwrap()), "{error}");
}

#[test]
fn an_attached_actor_sees_the_end_of_its_supervisor() {
    let place = Place::new();
    let mut supervisor = Child::fork(|| {
        let segment = place.segment();
        let record = place.record_of(&segment);
        let mut listener = Listener::bind(&record.socket).unwrap();
        let _announcement = place.announce(&record).unwrap();
        let mut joined = Vec::new();
        loop {
            let grant = |_| {
                Ok(ReservedSlot { segment: segment.name().into(), run_id: segment.identity().run_id, slot: 0, generation: 1, number: 0 })
            };
            joined.extend(listener.hear().into_iter().filter_map(|knock| knock.answer(grant)));
            std::thread::sleep(Duration::from_millis(1));
        }
    });
    forked::wait_until(|| place.registry.find(supervisor.pid()).is_ok());
    let attachment = attach(&place.registry, supervisor.pid(), Visitor::Actor).unwrap();
    let pid = supervisor.pid();
    assert!(attachment.supervisor_alive());
    supervisor.signal(Signal::SIGKILL);
    // A zombie is dead as well: it is not reaped yet.
    forked::wait_until(|| !attachment.supervisor_alive());
    supervisor.reap();
    assert!(!attachment.supervisor_alive());
    assert!(place.registry.clean(&place.registry.find(pid).unwrap()));
}
