//! The shared-memory segment of a run: the only thing that processes share, and the only folder with unsafe code.
//!
//! A segment is created by the supervisor of a run, or by the process that makes a replay without a run. Processes
//! that the supervisor forks inherit it. Attached actors, guests, other participants and a supervisor that adopts the
//! run open it by name; the inspector opens it read-only. It holds offsets and no pointers, and describes itself: the
//! header lists the sections, and the description names the fields of a transition and the configuration of the run.

// Memory and the system. All unsafe code is in these files.
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[allow(unsafe_code)]
mod copy;
#[cfg(test)]
#[allow(unsafe_code)]
mod lock_baseline;
#[allow(unsafe_code)]
mod mapping;
pub mod object; // a shared-memory object before it is mapped
pub mod orphans; // what others leave to the first process of a container
pub mod pidfd; // processes as the kernel knows them
mod private; // memory of one process alone
pub mod shared_words; // copies of words that another process may be writing
#[allow(unsafe_code)]
pub mod system;

// Where everything lies, and what the segment says of itself.
pub mod description;
mod header;
mod identity; // who it belongs to
pub mod layout;

// What lies in it, once for the run.
pub mod control;
pub mod keeping; // who answers for a run whose supervisor was killed
pub mod membership; // which learners learn together, and which of them leads
pub mod scores;

// For each process.
pub mod counters;
pub mod metrics; // reports to the supervisor
pub mod processes;
mod role;

// Boards, on which one process publishes and any number read; and the exchange of gradients.
mod board; // the protocol of all boards
pub mod float_board;
pub mod gradients;
pub mod pictures;

mod error;
pub(crate) mod named_enum; // enums of which the segment has numbers or names
mod named_process; // a process in one word

pub use description::{Description, MetricDescription};
pub use error::SegmentError;
pub use header::ABI_VERSION;
pub use identity::{Identity, boot_name, replay_name_prefix, segment_name_prefix};
pub use layout::{Layout, LayoutError, Region, SegmentSizes};
pub use named_process::NamedProcess;
pub use private::PrivateWords;

use crate::sync::{AtomicU64, Ordering};
use control::Control;
use float_board::FloatBoard;
use gradients::GradientExchange;
use mapping::Mapping;
use metrics::MetricRing;
use object::{Access, Object};
use pictures::PictureBoard;
use processes::{ProcessSlot, ProcessTable};

/// A mapped segment whose header has been validated.
pub struct Segment {
    mapping: Mapping,
    layout: Layout,
    identity: Identity,
}

impl Segment {
    /// Allocate a segment: reserve all its memory now, so that a full `/dev/shm` is an error here and never a
    /// SIGBUS later, then write the description and publish the header.
    ///
    /// # Errors
    /// The description is longer than the room for it, the kernel does not tell who is alive, or the system has no room
    /// for the segment or refuses to make it.
    pub fn create(layout: Layout, description: &Description, huge_pages: bool) -> Result<Self, SegmentError> {
        Self::described(layout, description, |identity, length_bytes| {
            identity.check_that_processes_are_known()?;
            Mapping::create(&identity.segment_name(), length_bytes, huge_pages)
        })
    }

    /// As [`Segment::create`], for a replay that belongs to no run and that no process owns: it outlives its creator,
    /// and the last process to leave it has to call [`object::remove_if_dead`].
    ///
    /// # Errors
    /// As [`Segment::create`].
    pub fn create_replay(layout: Layout, description: &Description) -> Result<Self, SegmentError> {
        let segment = Self::described(layout, description, |identity, length_bytes| {
            identity.check_that_processes_are_known()?;
            Mapping::create(&identity.replay_name(), length_bytes, true)
        })?;
        segment.disown();
        Ok(segment)
    }

    /// Allocate a segment in memory of this process alone, with no name. A forked child gets a copy of its own. The
    /// memory is not reserved: the system may end a process that fills it and finds none left.
    ///
    /// # Errors
    /// The description is longer than the room for it, or the system refuses so much memory.
    pub fn create_private(layout: Layout, description: &Description) -> Result<Self, SegmentError> {
        Self::described(layout, description, |_, length_bytes| Mapping::private(length_bytes))
    }

    /// A private segment of these sizes, which says nothing of itself.
    #[cfg(test)]
    pub(crate) fn of_sizes(sizes: SegmentSizes) -> Self {
        Self::create_private(Layout::new(sizes).unwrap(), &Description::default()).unwrap()
    }

    fn described(
        layout: Layout,
        description: &Description,
        map: impl FnOnce(&Identity, usize) -> Result<Mapping, SegmentError>,
    ) -> Result<Self, SegmentError> {
        let encoded = description.encoded_for(&layout)?;
        let identity = Identity::of_this_process();
        let mapping = map(&identity, layout.total_bytes())?;
        let segment = Self { mapping, layout, identity };
        segment.describe(&encoded);
        Ok(segment)
    }

    /// Open the segment called `name` for reading and writing, as an attached actor does.
    ///
    /// # Errors
    /// No object of that name can be opened, or it is not this user's, not a whole segment of this version, or shared
    /// by processes of another namespace.
    pub fn attach(name: &str) -> Result<Self, SegmentError> {
        Self::open(name, Access::ReadWrite)
    }

    /// Open the segment called `name` without the right to change a byte of it, as the inspector does.
    ///
    /// # Errors
    /// As [`Segment::attach`].
    pub fn attach_read_only(name: &str) -> Result<Self, SegmentError> {
        Self::open(name, Access::ReadOnly)
    }

    /// The identity of the segment called `name`. Reads its header and maps nothing; its processes may be of another
    /// PID namespace.
    ///
    /// # Errors
    /// As [`Segment::attach`], but for the namespace.
    pub fn identity_of(name: &str) -> Result<Identity, SegmentError> {
        Ok(header::validate(&Object::open(name, Access::ReadOnly)?)?.1)
    }

    fn open(name: &str, access: Access) -> Result<Self, SegmentError> {
        // The C library opens the same object with and without the slash; what kind of segment it is, the name with
        // the slash says.
        let name = &format!("/{}", name.trim_start_matches('/'));
        // A reader is no member of the run: it holds no lock.
        let lock = (access == Access::ReadWrite).then(|| Object::join(name)).transpose()?;
        let object = Object::open(name, access)?;
        let (layout, identity) = header::validate(&object)?;
        identity.check_that_processes_mean_the_same(name)?;
        Ok(Self { mapping: Mapping::of(&object, access, lock)?, layout, identity })
    }

    /// An error unless process ids and start times still mean the same processes here as where the segment was made:
    /// the child of a fork may be in another namespace. A private segment has no other processes.
    ///
    /// # Errors
    /// They do not, or `/proc` does not tell.
    pub fn check_namespaces(&self) -> Result<(), SegmentError> {
        if self.name().is_empty() { Ok(()) } else { self.identity.check_that_processes_mean_the_same(self.name()) }
    }

    /// Leave the segment's name alone when this is dropped. Every forked child has to call this first.
    pub fn disown(&self) {
        self.mapping.disown();
    }

    /// Remove the segment's name when this is dropped, as its creator does. For a supervisor that adopts the run.
    pub fn own(&self) {
        self.mapping.own();
    }

    /// Stop counting as a living process of the run, for the process that cleans up after it.
    pub fn retire(&self) {
        self.mapping.disown();
        self.mapping.forget_lock();
    }

    /// Take over the run that is kept in this segment, as its supervisor: all regions but those of `kept` become as
    /// in a new segment, described by `description`. The segment keeps its name, and [`Self::own`] has yet to be
    /// called.
    ///
    /// # Errors
    /// The description is longer than the room for it. Then nothing was changed.
    pub fn adopt(mut self, kept: &[Region], description: &Description, huge_pages: bool) -> Result<Self, SegmentError> {
        let encoded = description.encoded_for(&self.layout)?;
        self.reset_all_but(kept);
        if huge_pages {
            self.mapping.wish_for_huge_pages();
        }
        self.identity = Identity::of_this_process();
        self.describe(&encoded);
        Ok(self)
    }

    /// Reset the segment as [`Self::adopt`] does, after the death of a process that was about to adopt the run, and
    /// name the supervisor again that it had before. By the run's keeper.
    ///
    /// # Errors
    /// The description is longer than the room for it. Then nothing was changed.
    pub fn take_back(&self, kept: &[Region], description: &Description) -> Result<(), SegmentError> {
        let encoded = description.encoded_for(&self.layout)?;
        self.reset_all_but(kept);
        self.describe(&encoded);
        Ok(())
    }

    fn reset_all_but(&self, kept: &[Region]) {
        let others = |region: &Region| !kept.contains(region) && !matches!(region, Region::Control | Region::Processes);
        for region in Region::ALL.into_iter().filter(others) {
            self.words(region).iter().for_each(|word| word.store(0, Ordering::Relaxed));
        }
        self.processes().iter().for_each(ProcessSlot::reset);
        self.control().reset();
    }

    fn describe(&self, encoded: &[u8]) {
        description::write(self.words(Region::Description), encoded);
        header::publish(&self.mapping, &self.layout, &self.identity);
    }

    /// Where everything lies.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Whether it is a run's: a replay that belongs to no run has no supervisor.
    pub fn has_supervisor(&self) -> bool {
        !self.name().is_empty() && !self.name().starts_with(identity::REPLAY_NAMES)
    }

    /// What identifies the segment.
    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    /// Whether the header still names the run that the segment was opened or made for: another supervisor may have
    /// adopted it.
    pub fn goes_by_its_identity(&self) -> bool {
        header::run_id_in(&self.mapping) == self.identity.run_id
    }

    /// Name of the shared-memory object.
    pub fn name(&self) -> &str {
        self.mapping.name()
    }

    /// What the run wrote about itself.
    ///
    /// # Errors
    /// It is damaged.
    pub fn description(&self) -> Result<Description, SegmentError> {
        description::read(self.words(Region::Description))
    }

    /// The run-wide words.
    pub fn control(&self) -> Control<'_> {
        let section = self.layout.section(Region::Control);
        Control::new(self.words(Region::Control), self.mapping.half_words(section.offset_bytes, section.length_bytes / 4))
    }

    /// The process table.
    pub fn processes(&self) -> ProcessTable<'_> {
        ProcessTable::new(self.words(Region::Processes), self.layout.sizes().processes)
    }

    /// The published parameters.
    pub fn parameter_board(&self) -> FloatBoard<'_> {
        FloatBoard::new(self.words(Region::Parameters), self.layout.sizes().published_values)
    }

    /// The states of learners (parameters, target parameters, moments of the optimizer), for a learner that takes
    /// over: one board for all, or one for each half of the algorithm.
    pub fn learner_boards(&self) -> impl Iterator<Item = FloatBoard<'_>> {
        let sizes = self.layout.sizes();
        self.boards(Region::LearnerState, sizes.learner_states(), sizes.learner_state_values)
    }

    /// The boards on which each half of the algorithm hands values over to the other, in the order of their learners'
    /// numbers; none if learners share the algorithm otherwise.
    pub fn handing_over_boards(&self) -> impl Iterator<Item = FloatBoard<'_>> {
        let sizes = self.layout.sizes();
        self.boards(Region::Halves, sizes.halves(), sizes.handed_over_values)
    }

    /// `count` boards of `values` floats each, one after the other.
    fn boards(&self, region: Region, count: usize, values: usize) -> impl Iterator<Item = FloatBoard<'_>> {
        let boards = self.words(region).chunks_exact(FloatBoard::words_needed(values));
        boards.take(count).map(move |words| FloatBoard::new(words, values))
    }

    /// What the visualizer shows; `None` in a run without one.
    pub fn picture_board(&self) -> Option<PictureBoard<'_>> {
        let picture_bytes = self.layout.sizes().picture_bytes;
        (picture_bytes > 0).then(|| PictureBoard::new(self.words(Region::Pictures), picture_bytes))
    }

    /// The gradients that learners exchange.
    pub fn gradient_exchange(&self) -> GradientExchange<'_> {
        let sizes = self.layout.sizes();
        GradientExchange::new(self.words(Region::Gradients), sizes.learners, sizes.learned_parameters)
    }

    /// The metric ring of the process in `slot`.
    pub fn metric_ring(&self, slot: usize) -> MetricRing<'_> {
        MetricRing::of_process(self.words(Region::Metrics), slot)
    }

    /// The statistics of what the process in staging slot `slot` has seen; `None` if nothing is normalised.
    pub fn statistics_board(&self, slot: usize) -> Option<FloatBoard<'_>> {
        (slot < self.layout.sizes().stagers).then(|| self.board_of_statistics(slot)).flatten()
    }

    /// The statistics with which all learners normalise, published by their leader; `None` if nothing is normalised.
    pub fn settled_statistics(&self) -> Option<FloatBoard<'_>> {
        self.board_of_statistics(self.layout.sizes().stagers)
    }

    fn board_of_statistics(&self, index: usize) -> Option<FloatBoard<'_>> {
        let sizes = self.layout.sizes();
        let length = sizes.statistics_words();
        let words = self.words(Region::Statistics);
        (length > 0).then(|| FloatBoard::new(&words[index * length..][..length], sizes.statistics_values))
    }

    /// All words of a region.
    pub fn words(&self, region: Region) -> &[AtomicU64] {
        let section = self.layout.section(region);
        self.mapping.words(section.offset_bytes, section.length_bytes / 8)
    }
}
