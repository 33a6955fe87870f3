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
    /// Until when nobody is listened to, since the system had no room for a connection.
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
    /// As what.
    pub visitor: Visitor,
    /// Its slot in the process table.
    pub slot: usize,
    /// Its process id, from the kernel.
    pub pid: u32,
    /// Readable once it has ended.
    pub process: Pidfd,
    /// Kept open for as long as it is attached.
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

    /// To be polled for reading; nothing while it rests.
    pub fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        let rests = self.rests_until.is_some_and(|until| Instant::now() < until);
        (!rests).then(|| self.socket.as_fd())
    }

    /// Whether somebody has connected and not yet spoken.
    pub fn has_connections(&self) -> bool {
        !self.silent.is_empty()
    }

    /// Some of those who have said by now what they want, without waiting: each is to be answered. Of a crowd the others are at the
    /// door still.
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
                    // Whoever knocks while this process has no descriptor for it goes on knocking, and would keep the supervisor awake.
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
    /// Let it in, or say why not: `decide` reserves a slot for it or refuses, and is asked of nobody who may not come at all.
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
                // If it has gone meanwhile, its descriptor says so and the slot is taken back.
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
            // Whoever goes on after its request does not speak this protocol.
            Ok(length) if body.len() > length => Heard::Garbage,
            Ok(_) => decode(body).map_or(Heard::Garbage, Heard::Request),
        }
    }
}

/// Who is at the other end, in the kernel's words.
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
