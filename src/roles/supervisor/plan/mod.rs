//! The plan of a run: which processes, on which cores, and how many bytes where. Made, printed and checked before
//! anything starts.

mod placement;
mod shortage;
mod updates;

use std::fmt;

use indicatif::BinaryBytes;
use thiserror::Error;

pub(super) use self::placement::Placement;
use self::placement::place;
use self::updates::updates_for_each_step;
use super::neighbours::Neighbour;
use super::remarks::{fragments_that_wait, remarks};
use super::slots::{PlannedProcess, Slots};
use crate::adaptation::Ranges;
use crate::algorithms::{Algorithm, Half};
use crate::config::schema::Split;
use crate::config::{Config, Key};
use crate::environments::{ObservationSpace, Picture};
use crate::machine::cores::core_list;
use crate::machine::memory::{Budget, OverBudget};
use crate::machine::open_files;
use crate::readable::counted;
use crate::replay::frames_for;
use crate::segment::processes::Role;
use crate::segment::{Layout, LayoutError, Region, SegmentSizes};
use crate::values::ValueType;

/// Bytes for the configuration and the schema, and once more for each half of that which the configuration takes:
/// it is as long as what it hands to an environment. The steps are so large that a kept run may go on in the same
/// memory with a few changes.
const DESCRIPTION_BYTES: usize = 64 << 10;
/// Smaller images are as well off with dense layers.
const LEAST_IMAGE_BYTES: usize = 256;

/// Why a plan cannot be carried out.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum PlanError {
    /// A size that no segment can have. The limits of the keys exclude all such sizes but those that follow from
    /// the environment, alone or with the length of fragments.
    #[error("no segment can hold this run: {0}; observations with fewer values need less")]
    Layout(#[from] LayoutError),
    /// The machine has less memory than the segment takes.
    #[error("{over}, or {advice}")]
    Memory {
        /// What is needed and what there is.
        over: OverBudget,
        /// What to lower.
        advice: String,
    },
    /// The supervisor may not open as many files as there would be processes.
    #[error(
        "this run takes {needed} open files, two for each process, and no more than {limit} are allowed; lower {keys} or \
         actor.attach_slots, or have the limit raised (as root: prlimit --nofile={needed}:{needed} --pid $$)"
    )]
    OpenFiles {
        /// How many are needed.
        needed: u64,
        /// How many there may be.
        limit: u64,
        /// The keys that the number of actors follows from.
        keys: &'static str,
    },
    /// The control group has no room for the processes that the run begins with.
    #[error(
        "this run begins with {needed} processes, its sentinel among them, and the control group has room for {limit}; lower \
         {keys}, or have the limit raised (docker: --pids-limit, systemd: TasksMax)"
    )]
    Processes {
        /// How many are started.
        needed: usize,
        /// How many there is room for.
        limit: u64,
        /// The keys that the number of actors follows from.
        keys: &'static str,
    },
}

/// What a run begins with. Memory is planned for what it may become.
#[derive(Debug, Clone)]
pub(super) struct Beginning {
    /// The configuration.
    pub(super) config: Config,
    /// The settings that are tried to fit the run to the machine; `None` if it is not fitted.
    pub(super) ranges: Option<Ranges>,
    /// Actors: those of the configuration, or as many as an earlier life of the run has found to be best.
    pub(super) actors: usize,
    /// Cores that there is time for: a control group may leave a run less than it has cores.
    pub(super) usable_cores: usize,
    /// The part of the run that is over where it goes on with what a checkpoint holds; `None` where it begins.
    pub(super) goes_on_after: Option<f64>,
}

/// A run before it starts.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Where everything lies.
    pub layout: Layout,
    /// The processes that the supervisor forks.
    pub processes: Vec<PlannedProcess>,
    /// Slots for attached actors.
    pub attach_slots: std::ops::Range<usize>,
    beginning: Beginning,
    /// Frames of an observation; 0 where none is made of them.
    stack: usize,
    placed: String,
    /// How many updates there are for each environment step, if that is held.
    updates: Option<String>,
    /// Remarks that do not follow from the configuration.
    noted: Vec<String>,
    /// What images cost as observations. Also part of the advice where the plan takes too much memory.
    warning: Option<String>,
    title: String,
    run_folder: String,
    /// Names of the segments of dead runs that were removed for it.
    pub(super) swept: Vec<String>,
}

impl Plan {
    /// Plan the run that `config` describes on `cores`, listed in the order of preference, beside runs that have bound
    /// processes to some of them.
    ///
    /// # Errors
    /// A size that no segment can have.
    pub fn new(config: &Config, algorithm: &dyn Algorithm, cores: &[usize], neighbours: &[Neighbour]) -> Result<Self, PlanError> {
        let (actors, usable_cores) = (config.actor.count, cores.len());
        let beginning = Beginning { config: config.clone(), ranges: None, actors, usable_cores, goes_on_after: None };
        Self::of_run(config, algorithm, cores, neighbours, beginning)
    }

    /// Plan a run that may become what `config` describes, and has another `beginning`.
    ///
    /// # Errors
    /// A size that no segment can have.
    pub(super) fn of_run(
        config: &Config,
        algorithm: &dyn Algorithm,
        cores: &[usize],
        neighbours: &[Neighbour],
        beginning: Beginning,
    ) -> Result<Self, PlanError> {
        let slots = Slots::of(config);
        let sizes = algorithm.sizes();
        let schema = algorithm.schema();
        let storage = algorithm.experience().storage();
        let frame_bytes = schema.frame_bytes();
        let stack = schema.fields().iter().map(|field| field.stack).max().unwrap_or(0);
        let layout = Layout::new(SegmentSizes {
            processes: slots.count(),
            stagers: slots.stagers(),
            staged_rows: storage.largest_flush_rows + 1,
            capacity: storage.capacity,
            fanout: storage.fanout,
            row_words: schema.words(),
            published_values: sizes.published,
            learned_parameters: sizes.learned,
            learner_state_values: sizes.state,
            statistics_values: algorithm.normalisation().statistics_values(),
            learners: config.learner.count,
            frames: frames(config, slots.stagers(), stack, storage.capacity),
            frame_bytes,
            picture_bytes: slots.visualizers * Picture::LARGEST_SHOWN_BYTES,
            handed_over_values: if config.learner.split == Split::None { 0 } else { algorithm.handed_over() },
            description_bytes: DESCRIPTION_BYTES * (1 + config.to_toml().len() / (DESCRIPTION_BYTES / 2)),
        })?;
        let limiter = algorithm.experience().limiter();
        let (placement, placed) = place(config, limiter, cores, beginning.usable_cores, neighbours);
        Ok(Self {
            layout,
            processes: slots.processes(placement.unwrap_or_default()),
            attach_slots: slots.attached(),
            updates: updates_for_each_step(&beginning.config, limiter, beginning.ranges),
            beginning,
            stack,
            placed,
            noted: Vec::new(),
            warning: None,
            title: format!("{} on {}", algorithm.name(), config.environment.id),
            run_folder: config.run.folder.clone(),
            swept: Vec::new(),
        })
    }

    /// Say something more with the plan.
    pub(super) fn remark(&mut self, remark: String) {
        self.noted.push(remark);
    }

    /// What was removed for the run, for people.
    pub(super) fn removals(&self) -> Vec<String> {
        self.swept.iter().map(|name| format!("removed the segment {name} that a dead run had left")).collect()
    }

    /// What there is to say of what the run begins with and of what it may become, and what else was remarked.
    fn remarks(&self) -> Vec<String> {
        let config = &self.beginning.config;
        let mut remarks = remarks(config, self.beginning.usable_cores);
        let most = self.beginning.ranges.map_or(0, |ranges| ranges.actors.high * ranges.environments.high);
        if most > config.actor.count * config.actor.environments {
            let told = fragments_that_wait(config, most, "adaptation.most_environments or adaptation.most_actors");
            remarks.extend(told.map(|told| format!("at the upper ends of its ranges, {told}")));
        }
        remarks.extend(self.noted.iter().cloned());
        remarks
    }

    /// Say where the results of the run go.
    pub fn set_run_folder(&mut self, path: &std::path::Path) {
        self.run_folder = path.display().to_string();
    }

    /// Say what it costs that a network of dense layers alone takes an image, or that images come as floats to an
    /// algorithm that `learns_from_bytes`.
    pub(super) fn warn_of_images(&mut self, observation: &ObservationSpace, learns_from_bytes: bool) {
        let for_dense_layers = self.warning_of_image_for_dense_layers(observation);
        self.warning = for_dense_layers.or_else(|| learns_from_bytes.then(|| self.warning_of_float_image(observation)).flatten());
    }

    fn warning_of_image_for_dense_layers(&self, observation: &ObservationSpace) -> Option<String> {
        if !observation.is_image() || !self.beginning.config.network.convolutions.is_empty() || observation.len() < LEAST_IMAGE_BYTES {
            return None;
        }
        let algorithm = &self.beginning.config.algorithm.name;
        let advice = match Key::find("network.convolutions") {
            Some(key) if !key.is_known_to(algorithm) => {
                let others: Vec<_> = key.algorithms.iter().map(|other| format!("{other:?}")).collect();
                format!("only {} have convolutions, and {algorithm:?} has none", others.join(", "))
            }
            _ => "set network.convolutions".to_owned(),
        };
        Some(format!(
            "observations are images of {} bytes, and dense layers alone take them as {} separate numbers: the replay's transitions \
             take {}, and learning from pixels this way rarely works; {advice}",
            lengths(observation),
            observation.len(),
            self.size_of_rows()
        ))
    }

    fn warning_of_float_image(&self, observation: &ObservationSpace) -> Option<String> {
        let looks_like_one = observation.shape.len() == 3 && observation.len() >= LEAST_IMAGE_BYTES;
        (observation.element == ValueType::F32 && looks_like_one).then(|| {
            format!(
                "observations are {} floats: the replay's transitions take {}, and a quarter of that where an environment gives its \
                 images as bytes (uint8, from 0 to 255)",
                lengths(observation),
                self.size_of_rows()
            )
        })
    }

    /// What the content of the replay takes.
    fn size_of_rows(&self) -> BinaryBytes {
        BinaryBytes([Region::Store, Region::Frames].map(|region| self.layout.section(region).length_bytes as u64).iter().sum())
    }

    /// Refuse the plan if the supervisor may not open as many files as it needs: a few of its own, and two for each
    /// process.
    ///
    /// # Errors
    /// Too few open files are allowed, and the limit cannot be raised.
    pub fn allow_open_files(&self) -> Result<(), PlanError> {
        let needed = 64 + 2 * self.layout.sizes().processes as u64;
        open_files::allow(needed).map_err(|limit| PlanError::OpenFiles { needed, limit, keys: self.keys_of_processes() })
    }

    /// Refuse the plan if there is no `room` for the processes that the run begins with and its sentinel. Threads that
    /// they start come on top.
    ///
    /// # Errors
    /// There is room for fewer.
    pub fn check_processes(&self, room: Option<u64>) -> Result<(), PlanError> {
        let needed = self.first_processes().len() + 1;
        match room {
            Some(limit) if limit < needed as u64 => Err(PlanError::Processes { needed, limit, keys: self.keys_of_processes() }),
            _ => Ok(()),
        }
    }

    /// The processes that the run begins with.
    fn first_processes(&self) -> Vec<&PlannedProcess> {
        let begins = |process: &&PlannedProcess| process.role != Role::Actor || process.number < self.beginning.actors;
        self.processes.iter().filter(begins).collect()
    }

    /// Refuse the plan if the segment does not fit, with what to lower so that it would.
    ///
    /// # Errors
    /// The segment is larger than `budget`.
    pub fn check(&self, budget: &Budget) -> Result<(), PlanError> {
        let Err(over) = budget.check(self.layout.total_bytes() as u64) else { return Ok(()) };
        let available = usize::try_from(budget.bytes).unwrap_or(usize::MAX);
        let mut advice = self.advice(available);
        if let Some(warning) = &self.warning {
            advice += &format!("; {warning}");
        }
        Err(PlanError::Memory { over, advice })
    }

    /// Frames that a replay of `capacity` rows would need.
    fn frames(&self, capacity: usize) -> usize {
        frames(&self.beginning.config, self.layout.sizes().stagers, self.stack, capacity)
    }

    /// Processes of one role with the same cores, for people.
    fn name(&self, alike: &[&PlannedProcess]) -> String {
        let (first, last) = (alike[0], alike[alike.len() - 1]);
        let name = if alike.len() == 1 { first.name() } else { format!("{}s {} to {}", first.role.name(), first.number, last.number) };
        let cores = match first.cores.as_slice() {
            [] => "any core".into(),
            [core] => format!("core {core}"),
            cores => format!("cores {}", core_list(cores)),
        };
        let is_half = first.role == Role::Learner && self.layout.sizes().halves() > 0;
        let half = if is_half { format!("{}, ", Half::of(first.number).name()) } else { String::new() };
        format!("{name} ({half}{cores})")
    }
}

/// Frames that a replay of `capacity` rows needs, if observations are made of `stack` frames; 0 if they are not
/// made of frames.
fn frames(config: &Config, stagers: usize, stack: usize, capacity: usize) -> usize {
    if stack == 0 { 0 } else { frames_for(capacity, stagers * config.most_environments(), stack, config.algorithm.n_step) }
}

impl fmt::Display for Plan {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut line = |name: &str, text: &dyn fmt::Display| writeln!(formatter, "{name:<11} {text}");
        let Beginning { config, ranges, usable_cores, goes_on_after, .. } = &self.beginning;
        line("training", &format!("{}, seed {}, device {}", self.title, config.run.seed, config.learner.device))?;
        line("folder", &self.run_folder)?;
        let largest = self.layout.sections().iter().filter(|section| section.length_bytes >= self.layout.total_bytes() / 100);
        let parts: Vec<String> =
            largest.map(|section| format!("{} {}", section.region.words(), BinaryBytes(section.length_bytes as u64))).collect();
        line("segment", &format!("{} ({})", BinaryBytes(self.layout.total_bytes() as u64), parts.join(", ")))?;
        let processes = self.first_processes();
        let named: Vec<String> = processes.chunk_by(|one, next| one.is_like(next)).map(|alike| self.name(alike)).collect();
        line("processes", &format!("{} on {}: {}", processes.len(), counted(*usable_cores, "core"), named.join(", ")))?;
        line("cores", &self.placed)?;
        if let Some(updates) = &self.updates {
            line("updates", updates)?;
        }
        if let Some(ranges) = ranges {
            let (over, freeze_after) = (goes_on_after.unwrap_or(0.0), config.adaptation.freeze_after);
            if over < freeze_after {
                line("fits itself", ranges)?;
            } else {
                let after = format!("nothing is tried after {freeze_after} of the run (adaptation.freeze_after)");
                line("fits itself", &format!("not: {after}, and {over:.2} of it is over"))?;
            }
        }
        for remark in self.remarks() {
            line("note", &remark)?;
        }
        if !self.attach_slots.is_empty() {
            line("attach", &format!("room for {} more actors", self.attach_slots.len()))?;
        }
        if let Some(warning) = &self.warning {
            line("warning", warning)?;
        }
        Ok(())
    }
}

/// The lengths of the dimensions of an observation, for people.
fn lengths(observation: &ObservationSpace) -> String {
    observation.shape.iter().map(usize::to_string).collect::<Vec<_>>().join(" x ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::adaptation::Range;
    use crate::algorithms::registry;
    use crate::environments::{self, EnvironmentSpec};
    use crate::machine::memory::Limit;

    fn plan(change: impl FnOnce(&mut Config)) -> Plan {
        let mut config = Config::for_environment("CartPole-v1");
        change(&mut config);
        let algorithm = registry::build(&config, &environments::registry::spec("CartPole-v1").unwrap()).unwrap();
        Plan::new(&config, &*algorithm, &[0, 1], &[]).unwrap()
    }

    /// A plan for two learners that can be bound to `cores`, and have the time of so many.
    fn plan_of_two_learners(cores: &[usize], usable_cores: usize) -> Plan {
        let mut config = Config::for_environment("CartPole-v1");
        (config.learner.count, config.learner.batch_size) = (2, 256);
        let algorithm = registry::build(&config, &environments::registry::spec("CartPole-v1").unwrap()).unwrap();
        let beginning = Beginning { config: config.clone(), ranges: None, actors: 1, usable_cores, goes_on_after: None };
        Plan::of_run(&config, &*algorithm, cores, &[], beginning).unwrap()
    }

    fn plan_for(config: &Config, observation: ObservationSpace) -> Plan {
        let environment = EnvironmentSpec { observation, ..environments::registry::spec("CartPole-v1").unwrap() };
        let algorithm = registry::build(config, &environment).unwrap();
        Plan::new(config, &*algorithm, &[0, 1], &[]).unwrap()
    }

    #[test]
    fn halves_of_an_algorithm_are_two_learners_each_with_a_state_and_a_core() {
        let mut config = Config::for_environment("Pendulum-v1");
        (config.algorithm.name, config.learner.split) = ("sac".into(), Split::ActorCritic);
        let algorithm = registry::build(&config, &environments::registry::spec("Pendulum-v1").unwrap()).unwrap();
        let plan = Plan::new(&config, &*algorithm, &[0, 1, 2, 3], &[]).unwrap();
        assert!(plan.to_string().contains("learner 0 (critics, core 0), learner 1 (policy, core 1)"), "{plan}");
        assert_eq!(plan.layout.sizes().learner_states(), 2);
    }

    #[test]
    fn a_configuration_of_any_length_has_room_in_what_a_run_says_of_itself() {
        let room = |length: usize| {
            let plan = plan(|config| config.environment.python_path = "x".repeat(length));
            plan.layout.section(Region::Description).length_bytes
        };
        assert_eq!(room(0), DESCRIPTION_BYTES);
        assert_eq!(room(DESCRIPTION_BYTES / 4), DESCRIPTION_BYTES, "small changes leave the layout of a kept run as it is");
        for length in [60_000, 70_000, 1_000_000] {
            assert!(room(length) >= length + DESCRIPTION_BYTES / 2, "{length}");
        }
    }

    #[test]
    fn cores_without_time_on_them_do_not_count() {
        let plan = plan_of_two_learners(&[0, 1], 2);
        assert!(plan.to_string().contains("on 2 cores") && plan.remarks().is_empty(), "{plan}");
        assert!(plan.to_string().contains("every process on any core: of 2 cores none would be left beside 2 learners\n"), "{plan}");
        let plan = plan_of_two_learners(&[0, 1], 1);
        assert!(plan.to_string().contains("on 1 core:") && plan.remarks()[0].starts_with("2 learners on 1 core"), "{plan}");
    }

    #[test]
    fn a_control_group_without_the_time_of_all_cores_leaves_every_process_to_the_kernel() {
        let [limited, unlimited] = [3, 4].map(|usable_cores| plan_of_two_learners(&[0, 1, 2, 3], usable_cores));
        assert!(limited.to_string().contains("any core: the control group has the time of 3 of 4 cores, and others"), "{limited}");
        assert!(limited.processes.iter().all(|process| process.cores.is_empty()));
        assert!(unlimited.processes.iter().all(|process| !process.cores.is_empty()), "{unlimited}");
    }

    #[test]
    fn more_cores_than_can_be_bound_to_are_left_to_the_kernel_and_count() {
        let plan = plan_of_two_learners(&[], 1_500);
        assert!(plan.to_string().contains("on 1,500 cores:") && plan.remarks().is_empty(), "{plan}");
        assert!(plan.to_string().contains("every process on any core: there are more than an affinity mask"), "{plan}");
    }

    #[test]
    fn a_run_that_goes_on_too_late_to_try_anything_says_so_in_place_of_its_ranges() {
        let mut config = Config::for_environment("CartPole-v1");
        config.adaptation.enabled = true;
        let algorithm = registry::build(&config, &environments::registry::spec("CartPole-v1").unwrap()).unwrap();
        let range = |high| Range { low: 1, high };
        let ranges = Some(Ranges { actors: range(4), environments: range(32), batch_size: Range::fixed(64) });
        let said = |goes_on_after| {
            let beginning = Beginning { config: config.clone(), ranges, actors: 1, usable_cores: 2, goes_on_after };
            Plan::of_run(&config, &*algorithm, &[0, 1], &[], beginning).unwrap().to_string()
        };
        for early in [None, Some(0.19)] {
            assert!(said(early).contains("fits itself actor.count 1 to 4, "), "{}", said(early));
        }
        let late = said(Some(0.3));
        let told = "fits itself not: nothing is tried after 0.2 of the run (adaptation.freeze_after), and 0.30 of it is over\n";
        assert!(late.contains(told) && !late.contains("actor.count 1 to 4"), "{late}");
    }

    #[test]
    fn every_process_has_a_slot_of_its_own_and_stagers_come_first() {
        let plan = plan(|config| {
            config.actor.count = 3;
            config.learner.count = 2;
        });
        let mut slots: Vec<usize> = plan.processes.iter().map(|process| process.slot).chain(plan.attach_slots.clone()).collect();
        slots.sort_unstable();
        assert_eq!(slots, (0..plan.layout.sizes().processes).collect::<Vec<_>>());
        let stagers = plan.layout.sizes().stagers;
        assert!(plan.processes.iter().all(|process| (process.role == Role::Actor) == (process.slot < 3)));
        assert!(plan.attach_slots.end == stagers);
    }

    #[test]
    fn an_image_for_dense_layers_is_a_warning_with_its_price_in_memory() {
        let floats = |shape: &[usize], high| {
            let length: usize = shape.iter().product();
            let (low, high) = (vec![0.0; length], vec![high; length]);
            ObservationSpace { shape: shape.to_vec(), low, high, ..ObservationSpace::unbounded(length) }
        };
        let mut config = Config::for_environment("Image-v0");
        config.replay.capacity = 76_800;
        let floats_plan = plan_for(&config, floats(&[4, 84, 84], 255.0));
        let mut plan = floats_plan.clone();
        plan.warn_of_images(&floats(&[4, 84, 84], 255.0), true);
        let said = plan.to_string();
        // Two observations of 28,224 floats of 4 bytes and a line of other fields, 76,800 times.
        assert!(said.contains("warning     observations are images of 4 x 84 x 84 bytes") && said.contains("take 16.15 GiB"), "{said}");
        let refused = plan.check(&Budget { bytes: 1 << 30, limit: Limit::SharedMemory { used_bytes: 0 } }).unwrap_err().to_string();
        assert!(refused.contains("lower replay.capacity") && refused.contains("images of 4 x 84 x 84 bytes"), "{refused}");

        let mut plan = floats_plan;
        for no_image in [floats(&[28_224], 255.0), floats(&[84, 84], 1.0)] {
            plan.warn_of_images(&no_image, true);
            assert!(plan.warning.is_none(), "a vector and a box of other numbers are no images, and as small as they can be");
        }
        plan.warn_of_images(&floats(&[4, 84, 84], 1.0), false);
        assert!(plan.warning.is_none(), "the algorithm learns from floats");
        plan.beginning.config.network.convolutions = vec![[32, 8, 4]];
        plan.warn_of_images(&ObservationSpace::bytes(&[4, 84, 84]), true);
        assert!(plan.warning.is_none(), "convolutions are what images want, and bytes as small as they can be");
        plan.warn_of_images(&floats(&[4, 84, 84], 1.0), true);
        let said = plan.to_string();
        assert!(said.contains("4 x 84 x 84 floats") && said.contains("take 16.15 GiB, and a quarter of that"), "{said}");
    }

    #[test]
    fn a_million_transitions_of_four_frames_take_what_their_frames_take_once() {
        let mut config = Config::for_environment("Image-v0");
        config.replay.capacity = 1_000_000;
        config.network.convolutions = vec![[32, 8, 4], [64, 4, 2], [64, 3, 1]];
        let plan = plan_for(&config, ObservationSpace { stack: 4, ..ObservationSpace::bytes(&[4, 84, 84]) });
        let total_gib = plan.layout.total_bytes() as f64 / f64::from(1 << 30);
        assert!((7.0..7.4).contains(&total_gib), "{total_gib} GiB\n{plan}");
        let budget = Budget { bytes: 1 << 30, limit: Limit::SharedMemory { used_bytes: 0 } };
        let refused = plan.check(&budget).unwrap_err().to_string();
        let (_, capacity) = refused.split_once("replay.capacity from 1000000 to ").unwrap_or_else(|| panic!("{refused}"));
        config.replay.capacity = capacity.split(',').next().unwrap().parse().unwrap();
        let observation = ObservationSpace { stack: 4, ..ObservationSpace::bytes(&[4, 84, 84]) };
        assert!(plan_for(&config, observation).check(&budget).is_ok(), "{refused}");
    }

    #[test]
    fn a_control_group_without_room_for_the_first_processes_and_the_sentinel_is_refused_with_the_key_to_lower() {
        // Three actors, a learner, an evaluator and the sentinel.
        let plan = plan(|config| config.actor.count = 3);
        assert!(plan.check_processes(None).is_ok() && plan.check_processes(Some(6)).is_ok());
        let refused = plan.check_processes(Some(5)).unwrap_err().to_string();
        assert!(refused.contains("begins with 6 processes") && refused.contains("room for 5; lower actor.count, or"), "{refused}");
    }

    #[test]
    fn the_synchronous_plan_has_one_process() {
        let plan = plan(|config| config.actor.count = 0);
        assert_eq!(plan.processes.len(), 1);
        assert_eq!(plan.processes[0].role, Role::Synchronous);
        assert!(plan.attach_slots.is_empty());
    }
}
