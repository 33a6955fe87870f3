//! The supervisor's side of the handshake: never waits for anybody.

use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::time::{Duration, Instant};

use nix::sys::socket::{getsockopt, sockopt::PeerCredentials};

use super::RendezvousError;
use super::handshake::{Refusal, Reply, Request, Visitor, decode, encode, message_length};
use crate::segment::pidfd::Pidfd;

/// How long a connection may take to say what it wants.
const PATIENCE: Duration = Duration::from_secs(2);
/// How long nobody is let in after the system had no room for a connection.
const REST: Duration = Duration::from_secs(1);
/// Connections that may be silent at once.
const MOST_SILENT: usize = 64;
/// Connections that are accepted at once: each has a descriptor until it is answered.
const MOST_ACCEPTED: usize = 16;

/// The socket on which actors and guests knock.
#[derive(Debug)]
pub struct Listener {
    socket: UnixListener,
    silent: Vec<Silent>,
    /// If the system had no room for a connection: until when nobody is listened to.
    rests_until: Option<Instant>,
}

/// A connection that has not said everything yet.
#[derive(Debug)]
struct Silent {
    connection: UnixStream,
    received: Vec<u8>,
    since: Instant,
}

/// Somebody who has said what it wants and waits for the answer.
#[derive(Debug)]
pub struct Knock {
    connection: UnixStream,
    request: Request,
}

/// A process that was let in.
#[derive(Debug)]
pub struct Joined {
    /// The part for which the process joined.
    pub visitor: Visitor,
    /// Slot in the process table.
    pub slot: usize,
    /// Process id, from the kernel.
    pub pid: u32,
    /// Descriptor of the process: readable once that has ended.
    pub process: Pidfd,
    /// The connection, kept open for as long as the process is attached.
    pub connection: UnixStream,
}

impl Listener {
    /// Listen at `path`, which only this user can reach. A socket that a dead supervisor left there is replaced.
    ///
    /// # Errors
    /// The system makes no socket there.
    pub fn bind(path: &Path) -> Result<Self, RendezvousError> {
        let _ = fs::remove_file(path);
        let bind = || -> std::io::Result<UnixListener> {
            let socket = UnixListener::bind(path)?;
            fs::set_permissions(path, fs::Permissions::from_mode(0o600))?;
            socket.set_nonblocking(true)?;
            Ok(socket)
        };
        Ok(Self { socket: bind().map_err(RendezvousError::file("listen at", path))?, silent: Vec::new(), rests_until: None })
    }

    /// To be polled for reading; `None` while nobody is listened to.
    pub fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        let rests = self.rests_until.is_some_and(|until| Instant::now() < until);
        (!rests).then(|| self.socket.as_fd())
    }

    /// Whether somebody has connected and not yet spoken.
    pub fn has_connections(&self) -> bool {
        !self.silent.is_empty()
    }

    /// Some of the processes that have said by now what they want, without waiting for any. Each is to be answered.
    /// If there are more, the others stay for the next call.
    pub fn hear(&mut self) -> Vec<Knock> {
        let mut knocks = Vec::new();
        for visitor in std::mem::take(&mut self.silent) {
            knocks.extend(self.listen_to(visitor));
        }
        self.rests_until = None;
        for _ in 0..MOST_ACCEPTED {
            match self.socket.accept() {
                Ok((connection, _)) if connection.set_nonblocking(true).is_ok() => {
                    knocks.extend(self.listen_to(Silent { connection, received: Vec::new(), since: Instant::now() }));
                }
                Ok(_) => {}
                Err(error) => {
                    // As long as this process has no descriptor for it, a pending connection stays readable, and
                    // would keep the supervisor awake.
                    self.rests_until = (error.kind() != ErrorKind::WouldBlock).then(|| Instant::now() + REST);
                    break;
                }
            }
        }
        knocks
    }

    /// Listen to a visitor, who may stay if there is nothing to be heard yet.
    fn listen_to(&mut self, mut visitor: Silent) -> Option<Knock> {
        match visitor.listen() {
            Heard::Nothing => {
                if visitor.since.elapsed() < PATIENCE {
                    // The one that has been silent longest makes room, so that a crowd of them shuts nobody out.
                    if self.silent.len() == MOST_SILENT {
                        self.silent.remove(0);
                    }
                    self.silent.push(visitor);
                }
            }
            Heard::Request(request) => return Some(Knock { connection: visitor.connection, request }),
            Heard::Garbage => refuse(&visitor.connection, Refusal::Garbled),
            Heard::Closed => {}
        }
        None
    }
}

impl Knock {
    /// Let the visitor in, or tell it why not. `decide` reserves a slot or refuses; it is not called for a visitor
    /// that may not come at all.
    pub fn answer(self, decide: impl FnOnce(Visitor) -> Result<ReservedSlot, Refusal>) -> Option<Joined> {
        let Self { connection, request } = self;
        let visitor = request.visitor;
        let admitted = request.check().and_then(|()| identify(&connection, &request)).and_then(|peer| Ok((peer, decide(visitor)?)));
        match admitted {
            Err(refusal) => {
                refuse(&connection, refusal);
                None
            }
            Ok(((pid, process), place)) => {
                let ReservedSlot { segment, run_id, slot, generation, number } = place;
                let reply = Reply::Accepted { segment, run_id, slot: slot as u64, generation, number: number as u64 };
                // If the visitor has gone meanwhile, its descriptor says so, and the slot is taken back.
                let _ = (&connection).write_all(&encode(&reply));
                Some(Joined { visitor, slot, pid, process, connection })
            }
        }
    }
}

/// A reserved place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReservedSlot {
    /// Name of the segment.
    pub segment: String,
    /// Whose segment it is.
    pub run_id: u128,
    /// Slot in the process table.
    pub slot: usize,
    /// Generation of its reservation.
    pub generation: u64,
    /// Number among the actors.
    pub number: usize,
}

enum Heard {
    Nothing,
    Request(Request),
    Garbage,
    Closed,
}

impl Silent {
    fn listen(&mut self) -> Heard {
        let mut buffer = [0; 512];
        loop {
            match self.connection.read(&mut buffer) {
                Ok(0) => return Heard::Closed,
                Ok(count) => self.received.extend_from_slice(&buffer[..count]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return Heard::Closed,
            }
            if self.received.len() > super::handshake::LIMIT_BYTES {
                return Heard::Garbage;
            }
        }
        let Some((length, body)) = self.received.split_first_chunk::<4>() else { return Heard::Nothing };
        match message_length(*length) {
            Err(_) => Heard::Garbage,
            Ok(length) if body.len() < length => Heard::Nothing,
            // A process that sends more after its request does not speak this protocol.
            Ok(length) if body.len() > length => Heard::Garbage,
            Ok(_) => decode(body).map_or(Heard::Garbage, Heard::Request),
        }
    }
}

/// Who is at the other end, according to the kernel.
fn identify(connection: &UnixStream, request: &Request) -> Result<(u32, Pidfd), Refusal> {
    let peer = getsockopt(connection, PeerCredentials).map_err(|_| Refusal::OtherProcess)?;
    if peer.uid() != nix::unistd::getuid().as_raw() {
        return Err(Refusal::OtherUser);
    }
    let pid = u32::try_from(peer.pid()).map_err(|_| Refusal::OtherProcess)?;
    let process = Pidfd::open_of(pid, request.start_time).ok_or(Refusal::OtherProcess)?;
    Ok((pid, process))
}

fn refuse(mut connection: &UnixStream, refusal: Refusal) {
    let _ = connection.write_all(&encode(&Reply::Refused(refusal)));
}
