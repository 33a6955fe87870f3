//! What can be wrong with a segment.

use thiserror::Error;

/// Advice for a segment with content that none of its processes leaves there.
const SPOILED: &str = "try again in a second, since a run that is adopted has it changed for a moment; if that does not help, something \
                       outside of Shoal has changed it: end what uses it, and go on from what was saved (a run: `shoal resume FOLDER`)";

/// Why a segment could not be created, opened or read.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SegmentError {
    /// There is no memory for what is this process's alone.
    #[error(
        "there is no memory for {needed_bytes} bytes ({source}): the machine has too little memory and swap, or a limit forbids it \
         (ulimit -v, or vm.overcommit_memory = 2); ask for less, or raise the limit"
    )]
    NoMemory {
        /// Bytes asked for.
        needed_bytes: usize,
        /// What the system said.
        source: std::io::Error,
    },
    /// There is no room for it, in shared memory or in this process.
    #[error(
        "there is no room for the segment of {needed_bytes} bytes ({source}); others may have taken it a moment ago: try again, ask for \
         less, let fewer run at a time, or enlarge /dev/shm or the limit of memory (ulimit -v, or vm.overcommit_memory = 2)"
    )]
    NoRoom {
        /// Bytes asked for.
        needed_bytes: usize,
        /// What the system said.
        source: std::io::Error,
    },
    /// The object could not be created.
    #[error("cannot create the shared-memory object `{name}`: {reason}")]
    Create {
        /// Name of the object.
        name: String,
        /// What the system said.
        reason: String,
    },
    /// The object could not be opened.
    #[error("cannot open the shared-memory object `{name}`: {reason}; the run may have ended (`shoal inspect` lists the runs)")]
    Open {
        /// Name of the object.
        name: String,
        /// What the system said.
        reason: String,
    },
    /// The system refused to do something with the object.
    #[error("{action} the shared-memory object `{name}` failed: {source}")]
    Refused {
        /// Name of the object.
        name: String,
        /// What was tried.
        action: &'static str,
        /// What the system said.
        source: std::io::Error,
    },
    /// Somebody else's, or no file at all: it is left alone.
    #[error(
        "`{name}` is {found}, and a segment is a regular file of one's own: whoever put it into /dev/shm is not Shoal; choose another \
         name, or have it removed"
    )]
    NotOurs {
        /// Name of the object.
        name: String,
        /// What is there.
        found: String,
    },
    /// Process ids mean other processes where the segment was made.
    #[error(
        "`{name}` belongs to processes of another PID namespace (pid:[{found}]; this process is in pid:[{own}]), where nobody here can \
         tell who is alive: run both in one, such as `docker run --pid=container:NAME` or shareProcessNamespace of a Kubernetes pod"
    )]
    OtherPidNamespace {
        /// Name of the object.
        name: String,
        /// The namespace of those who share it.
        found: u64,
        /// The namespace of this process.
        own: u64,
    },
    /// Start times of processes are others where the segment was made.
    #[error(
        "`{name}` belongs to processes of another time namespace (time:[{found}]; this process is in time:[{own}]), where the kernel \
         tells other start times of processes, so that nobody here can tell who is alive: run both in one (`nsenter --time`)"
    )]
    OtherTimeNamespace {
        /// Name of the object.
        name: String,
        /// The namespace of those who share it.
        found: u64,
        /// The namespace of this process.
        own: u64,
    },
    /// The kernel cannot be asked which processes live.
    #[error(
        "/proc is missing or shows the processes of another PID namespace, so nobody here can tell who is alive; mount it \
         (`mount -t proc proc /proc`, or `unshare --mount-proc`)"
    )]
    UnknownProcesses,
    /// The kernel gives no descriptors of processes.
    #[error(
        "the kernel does not tell of the end of processes (pidfd_open: {source}): use Linux 5.4 or newer, and in a container Docker 20.10 \
         or newer, or a seccomp profile that allows pidfd_open and pidfd_send_signal"
    )]
    NoPidfd {
        /// What the system said.
        source: std::io::Error,
    },
    /// Not one of ours.
    #[error("`{name}` is not a Shoal segment: it starts with {found:#018x}, expected {expected:#018x}")]
    NotASegment {
        /// Name of the object.
        name: String,
        /// First word found.
        found: u64,
        /// First word of a segment.
        expected: u64,
    },
    /// Made by another version.
    #[error("the segment has layout version {found}, this program reads version {expected}; use the program that started the run")]
    Version {
        /// Version found.
        found: u64,
        /// Version of this program.
        expected: u64,
    },
    /// Sizes, offsets or the checksum contradict each other.
    #[error("the segment's header is damaged: {what} is {found}, expected {expected}; {}", SPOILED)]
    Damaged {
        /// Field.
        what: &'static str,
        /// Value found.
        found: u64,
        /// Value expected, or its limit.
        expected: u64,
    },
    /// The header has not been published.
    #[error("the segment is still being initialised; try again in a second")]
    NotReady,
    /// The description cannot be read.
    #[error("the run's description cannot be read: {reason}; {}", SPOILED)]
    Description {
        /// What is wrong with it.
        reason: String,
    },
    /// The description does not fit.
    #[error(
        "the description takes {length_bytes} bytes and {limit_bytes} are reserved; shorten the configuration of the run, or give the \
         replay fewer fields"
    )]
    DescriptionTooLong {
        /// Its length.
        length_bytes: usize,
        /// The limit.
        limit_bytes: usize,
    },
    /// No process can be forked.
    #[error(
        "there is no room for another process ({source}): let fewer run (in a run: actor.count), or raise the limit of processes \
         (docker: --pids-limit, systemd: TasksMax, ulimit -u)"
    )]
    NoRoomForProcess {
        /// What the system said.
        source: std::io::Error,
    },
    /// The system refused something else.
    #[error("{action} failed: {source}")]
    System {
        /// What was tried.
        action: &'static str,
        /// What the system said.
        source: std::io::Error,
    },
}
