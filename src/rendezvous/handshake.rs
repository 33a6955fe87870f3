//! How a process from outside joins a run: one request, one reply, over a Unix socket.
//!
//! Messages are bincode behind a 32-bit length, both limited. The supervisor takes the joining process's identity from
//! the kernel and never from the message.

use std::fmt;
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::RendezvousError;
use super::registry::{Liveliness, RegisteredRun, Registry, state_of};
use crate::segment::pidfd::{Pidfd, start_time};
use crate::segment::processes::Role;
use crate::segment::{ABI_VERSION, Segment};

/// Longest message.
pub(super) const LIMIT_BYTES: usize = 4096;
const MAGIC: u64 = u64::from_le_bytes(*b"SHOALATT");
/// How long the supervisor may take to answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long a process that closed its connection is watched for its end.
const CLOSING: Duration = Duration::from_millis(500);

/// What a process joins as.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Visitor {
    /// An actor of Shoal's: a process that does nothing else, ends with the run, and may be killed for the run's sake.
    Actor,
    /// Somebody's program that uses the replay beside whatever else it does. It says itself when it leaves, and is
    /// never killed.
    Guest,
}

impl Visitor {
    /// The role of such a process in the process table.
    pub fn role(self) -> Role {
        match self {
            Self::Actor => Role::AttachedActor,
            Self::Guest => Role::Guest,
        }
    }
}

/// What a joining process says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Request {
    magic: u64,
    abi_version: u64,
    program_version: String,
    /// Start time of the process, to be compared with the kernel's.
    pub start_time: u64,
    /// What the process wants to join as.
    pub visitor: Visitor,
}

impl Request {
    /// The request of this process.
    pub fn of_this_process(visitor: Visitor) -> Self {
        Self {
            magic: MAGIC,
            abi_version: ABI_VERSION,
            program_version: env!("CARGO_PKG_VERSION").into(),
            start_time: start_time(std::process::id()).unwrap_or(0),
            visitor,
        }
    }

    pub(super) fn check(&self) -> Result<(), Refusal> {
        if self.magic != MAGIC {
            return Err(Refusal::Garbled);
        }
        if self.abi_version != ABI_VERSION || self.program_version != env!("CARGO_PKG_VERSION") {
            let supervisor = version_in_words(env!("CARGO_PKG_VERSION"), ABI_VERSION);
            return Err(Refusal::OtherVersion { supervisor, yours: version_in_words(&self.program_version, self.abi_version) });
        }
        Ok(())
    }
}

/// A program's version, and that of the layout of its segments, which may change between two releases.
fn version_in_words(program_version: &str, abi_version: u64) -> String {
    format!("{program_version} (layout version {abi_version})")
}

/// What the supervisor answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Reply {
    /// Welcome.
    Accepted {
        /// Name of the segment.
        segment: String,
        /// Whose segment it must be.
        run_id: u128,
        /// Slot in the process table, reserved for the one who asked.
        slot: u64,
        /// Generation of the reservation.
        generation: u64,
        /// Number among the actors of the run.
        number: u64,
    },
    /// Not now, or not you.
    Refused(Refusal),
}

/// Why the supervisor refuses.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Refusal {
    /// Every slot is taken.
    Full {
        /// How many there are.
        slots: u64,
    },
    /// Another version of the program.
    OtherVersion {
        /// The supervisor's.
        supervisor: String,
        /// Of who asked.
        yours: String,
    },
    /// Another user.
    OtherUser,
    /// The run ends.
    Stopping,
    /// The request made no sense.
    Garbled,
    /// The process that asked is not the one it says it is.
    OtherProcess,
}

impl fmt::Display for Refusal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Full { slots: 0 } => formatter.write_str("the run takes nobody from outside (actor.attach_slots or actor.count is 0)"),
            Self::Full { slots } => {
                write!(formatter, "all {slots} slots for actors and guests from outside are taken; raise actor.attach_slots")
            }
            Self::OtherVersion { supervisor, yours } => {
                write!(formatter, "it is version {supervisor} and this is version {yours}; use the program that started the run")
            }
            Self::OtherUser => formatter.write_str("it belongs to another user"),
            Self::Stopping => formatter.write_str("the run is ending"),
            Self::Garbled => formatter.write_str("it could not read the request"),
            Self::OtherProcess => formatter.write_str("the kernel knows the asking process under another start time"),
        }
    }
}

/// A place in a run, promised to this process. The connection stays open for as long as it is used.
#[derive(Debug)]
pub struct Attachment {
    /// Name of the segment.
    pub segment: String,
    /// Slot in the process table.
    pub slot: usize,
    /// Generation of its reservation, with which it is occupied.
    pub generation: u64,
    /// Number among the actors of the run.
    pub number: usize,
    run_id: u128,
    supervisor: u32,
    process: Pidfd,
    _connection: UnixStream,
}

impl Attachment {
    /// Open the segment that was promised.
    ///
    /// # Errors
    /// The segment is gone, cannot be used here, belongs to another run, or has no such slot among those that stage
    /// transitions.
    pub fn open_segment(&self) -> Result<Segment, JoinError> {
        let segment = Segment::attach(&self.segment)?;
        if segment.identity().run_id != self.run_id || segment.identity().supervisor_pid != self.supervisor {
            return Err(RendezvousError::OtherRun { pid: self.supervisor, segment: self.segment.clone() }.into());
        }
        let places = segment.layout().sizes().stagers;
        if self.slot >= places {
            let reason = format!("slot {} of {places} that stage transitions", self.slot);
            return Err(RendezvousError::Garbled { pid: self.supervisor, reason }.into());
        }
        Ok(segment)
    }

    /// Whether the supervisor still lives.
    pub fn supervisor_alive(&self) -> bool {
        !self.process.has_ended()
    }
}

/// Why a segment could not be joined.
#[derive(Debug, thiserror::Error)]
pub enum JoinError {
    /// The run was not found, or said no.
    #[error(transparent)]
    Rendezvous(#[from] RendezvousError),
    /// The segment of the run cannot be used.
    #[error(transparent)]
    Segment(#[from] crate::segment::SegmentError),
}

/// Ask the supervisor `pid` for a place as a `visitor`. Every wait is bounded, whatever the other side does.
///
/// # Errors
/// There is no such run, it is dead or of another namespace, or its supervisor does not answer in time, answers
/// with something else, or refuses.
pub fn attach(registry: &Registry, pid: u32, visitor: Visitor) -> Result<Attachment, RendezvousError> {
    let entry = registry.find(pid)?;
    let identity = &entry.record.identity;
    if entry.state == Liveliness::Running
        && let Err(source) = identity.check_that_processes_mean_the_same(&entry.record.segment)
    {
        return Err(RendezvousError::OtherNamespace { pid, environment: entry.record.environment, source });
    }
    let RegisteredRun { environment, run_folder, .. } = &entry.record;
    // It may have been moved since.
    let run_folder = Path::new(if Path::new(run_folder).is_dir() { run_folder.as_str() } else { "RUN" });
    let dead = || {
        let (environment, run_folder) = (environment.clone(), run_folder.into());
        if waits_for_adopter(&entry.record.segment) {
            RendezvousError::Kept { pid, environment, run_folder }
        } else {
            RendezvousError::Dead { pid, environment, run_folder }
        }
    };
    let process = Pidfd::open(pid);
    let socket = &entry.record.socket;
    // Asked after the descriptor was opened, so that this cannot be of a later process with the same id.
    if state_of(&entry.record, socket) == Liveliness::Dead {
        return Err(dead());
    }
    let process = process.map_err(|error| RendezvousError::file("watch the supervisor behind", socket)(error.into()))?;
    let explain = |action| {
        let (process, dead) = (&process, &dead);
        move |error: io::Error| match error.kind() {
            // A dying process closes its sockets a moment before its end can be seen.
            kind if process.ends_within(if is_loss(kind) { CLOSING } else { Duration::ZERO }) => dead(),
            ErrorKind::WouldBlock | ErrorKind::TimedOut => RendezvousError::Silent { pid, patience_s: PATIENCE.as_secs() },
            ErrorKind::UnexpectedEof => RendezvousError::Garbled { pid, reason: "it closed the connection".into() },
            _ => RendezvousError::file(action, socket)(error),
        }
    };
    let mut connection = connect_within(socket, PATIENCE).map_err(explain("connect to"))?;
    connection.set_read_timeout(Some(PATIENCE)).map_err(explain("set a timeout on"))?;
    connection.write_all(&encode(&Request::of_this_process(visitor))).map_err(explain("write to"))?;
    let mut length = [0; 4];
    connection.read_exact(&mut length).map_err(explain("read from"))?;
    let garbled = |reason: String| RendezvousError::Garbled { pid, reason };
    let length = message_length(length).map_err(garbled)?;
    let mut message = vec![0; length];
    connection.read_exact(&mut message).map_err(explain("read from"))?;
    match decode(&message).map_err(garbled)? {
        Reply::Refused(refusal) => Err(RendezvousError::Refused { pid, refusal }),
        Reply::Accepted { segment, run_id, slot, generation, number } => {
            let index = |value: u64| usize::try_from(value).map_err(|_| garbled(format!("{value} is no index")));
            let (slot, number) = (index(slot)?, index(number)?);
            Ok(Attachment { segment, slot, generation, number, run_id, supervisor: pid, process, _connection: connection })
        }
    }
}

/// Whether a run waits in the memory of that name for another supervisor.
fn waits_for_adopter(segment: &str) -> bool {
    Segment::attach_read_only(segment).is_ok_and(|segment| segment.control().keeping().is_kept())
}

/// A connection to `path` on which neither connecting nor sending takes longer than `patience`: the queue of a stopped
/// supervisor may be full, and the standard library's `connect` would wait for ever.
pub(super) fn connect_within(path: &Path, patience: Duration) -> io::Result<UnixStream> {
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    set_socket_timeout(&socket, Timeout::Send, Some(patience))?;
    connect(&socket, &SocketAddrUnix::new(path)?)?;
    Ok(socket.into())
}

/// Whether an error says that the other end of a connection is gone.
fn is_loss(kind: ErrorKind) -> bool {
    use ErrorKind::{BrokenPipe, ConnectionRefused, ConnectionReset, UnexpectedEof};
    matches!(kind, BrokenPipe | ConnectionRefused | ConnectionReset | UnexpectedEof)
}

/// A message with its length in front.
pub(super) fn encode(message: &impl Serialize) -> Vec<u8> {
    let body = bincode::serde::encode_to_vec(message, bincode::config::standard()).unwrap_or_default();
    let length = u32::try_from(body.len()).unwrap_or(u32::MAX);
    [&length.to_le_bytes()[..], &body].concat()
}

/// The length in front of a message, if it is one that we accept.
pub(super) fn message_length(bytes: [u8; 4]) -> Result<usize, String> {
    let length = usize::try_from(u32::from_le_bytes(bytes)).unwrap_or(usize::MAX);
    if length > LIMIT_BYTES { Err(format!("a message of {length} bytes, the limit is {LIMIT_BYTES}")) } else { Ok(length) }
}

/// A message without its length. Left-over bytes are refused.
pub(super) fn decode<T: DeserializeOwned>(message: &[u8]) -> Result<T, String> {
    let limited = bincode::config::standard().with_limit::<LIMIT_BYTES>();
    let (value, used) = bincode::serde::decode_from_slice(message, limited).map_err(|error| error.to_string())?;
    if used == message.len() { Ok(value) } else { Err(format!("{} bytes left over", message.len() - used)) }
}
