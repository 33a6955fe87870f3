//! A run that can start: all that its configuration names is found and fits together. Of that it makes the plan.

use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use indicatif::BinaryBytes;

use super::neighbours::neighbours;
use super::plan::Beginning;
use super::{Plan, PlanError, Resumption, RunOutcome, Session, SupervisorError, fitting, remarks, starting_point};
use crate::adaptation::{Ranges, Setting};
use crate::algorithms::{Algorithm, AlgorithmError};
use crate::catalogue::Catalogue;
use crate::config::fitted::Found;
use crate::config::schema::{AlgorithmConfig, MOST_NAME_CHARACTERS, Split};
use crate::config::{Config, ConfigError, Difference, Loaded, RowKind};
use crate::environments::{ActionSpace, EnvironmentError, EnvironmentSpec, Examined, Moment};
use crate::experience::fragment::FragmentShape;
use crate::machine::memory::Budget;
use crate::machine::{Machine, cores};
use crate::networks;
use crate::rendezvous::Registry;
use crate::roles::configured_environment;
use crate::segment::layout::MAX_ROW_WORDS;
use crate::telemetry::{self, Console, fault_of};

/// The keys of the arguments of an environment, and of those with which the agent is evaluated and shown.
const KEYWORD_ARGUMENTS: &str = "environment.keyword_arguments";
const EVALUATION_ARGUMENTS: &str = "environment.evaluation_arguments";
/// The key of the steps after which evaluations cut an episode off.
const EPISODE_LIMIT: &str = "evaluator.episode_limit_steps";

/// How long the kernel may take to free the memory of a killed run that goes on, and the time between two looks.
const FREEING_PATIENCE: Duration = Duration::from_secs(5);
const FREEING_PAUSE: Duration = Duration::from_millis(50);

/// A run that can start: the configuration with the environment and the algorithm that it names.
pub struct Prepared {
    /// The configuration.
    pub loaded: Loaded,
    /// What the program knows by name.
    pub catalogue: Catalogue,
    /// The environment's facts.
    pub environment: EnvironmentSpec,
    /// Steps after which an episode is truncated where the agent is evaluated, by the environment itself; `None` if there is no limit.
    pub(super) evaluation_limit_steps: Option<u32>,
    /// Names and versions of the software that the environment runs on; nothing for native ones.
    pub software: Vec<(String, String)>,
    /// What was strange about the environment when it was tried.
    remark_on_environment: Option<String>,
    /// The algorithm, with room for all that the run may become, built for each device that `learner.device` names.
    algorithms: Vec<Box<dyn Algorithm>>,
    /// The configuration that memory is planned for, where the run may become larger than it begins.
    planned: Config,
    /// What is tried to fit the run to the machine.
    pub(super) ranges: Option<Ranges>,
    /// The upper ends of actors and environments that somebody gave; the others follow from the cores.
    given_ends: [Option<usize>; 2],
    /// Since when the run counts its seconds.
    pub started: Instant,
}

impl Prepared {
    /// Look up in `catalogue` what `loaded` names. What is wrong is reported with its place in the file.
    ///
    /// # Errors
    /// The environment or the algorithm is unknown, does not work here, or does not fit the rest of the configuration.
    pub fn new(mut loaded: Loaded, catalogue: &Catalogue) -> Result<Self, SupervisorError> {
        let started = Instant::now();
        Self::resolve(&mut loaded)?;
        let request = configured_environment::request(&loaded.config);
        let examined = catalogue.environments().examine(&request).map_err(|error| about_environment(&loaded, &error))?;
        catalogue.algorithms().resolve(&mut loaded.config).map_err(|error| about_algorithm(&loaded, &error))?;
        let environment = configured_environment::observation_options(catalogue, &loaded.config).spec(&examined.spec);
        let environment = environment.map_err(|error| about_environment(&loaded, &error))?;
        let for_evaluation = examine_for_evaluation(&loaded, catalogue, &environment)?;
        let evaluation_limit_steps = for_evaluation.as_ref().unwrap_or(&examined).spec.time_limit_steps;
        let given_ends = [loaded.config.adaptation.most_actors, loaded.config.adaptation.most_environments];
        let ranges = fitting::ranges(&loaded.config, cores::usable_now());
        let planned = fitting::planned(&mut loaded, ranges.as_ref())?;
        let algorithms = build(&planned, &loaded, catalogue, &environment)?;
        let algorithm = &*algorithms[0];
        if planned.learner.split != Split::None && algorithm.handed_over() == 0 {
            let message = format!("the algorithm \"{}\" has no halves; set learner.split to \"none\"", algorithm.name());
            return Err(loaded.error_at("learner.split", message).into());
        }
        if let Some(fault) = fault_of(algorithm.metrics()) {
            let message = format!("the algorithm \"{}\" declares {fault}; declare others", algorithm.name());
            return Err(loaded.error_at("algorithm.name", message).into());
        }
        let Examined { software, remark, .. } = examined;
        let remark_on_evaluation = || Some(format!("with {EVALUATION_ARGUMENTS}, {}", for_evaluation?.remark?));
        Ok(Self {
            loaded,
            catalogue: catalogue.clone(),
            environment,
            evaluation_limit_steps,
            software,
            remark_on_environment: remark.or_else(remark_on_evaluation),
            algorithms,
            planned,
            ranges,
            given_ends,
            started,
        })
    }

    /// Write into `loaded` what it leaves to its source and its surroundings: the name of the run, the checkpoint
    /// that it begins with, which Python, and where modules of the user's own are searched. What starts from its
    /// configuration later, from elsewhere, then begins the same run.
    ///
    /// # Errors
    /// There is no such checkpoint or no Python that fits, or the name of a folder has a colon in it or is no UTF-8.
    pub fn resolve(loaded: &mut Loaded) -> Result<(), SupervisorError> {
        // What starts from the resolved configuration later has to find the name valid.
        if let ("", Some(stem)) = (loaded.config.run.name.as_str(), loaded.source.file_stem()) {
            loaded.config.run.name = stem.to_string_lossy().chars().take(MOST_NAME_CHARACTERS).collect();
        }
        starting_point::resolve(loaded)?;
        // Whoever types folders means those from where they are. An empty value means the file's folder, typed or not.
        let is_typed = loaded.is_typed("environment.python_path") && !loaded.config.environment.python_path.is_empty();
        let written_in = if is_typed { Path::new("") } else { loaded.source.as_path() };
        configured_environment::resolve(&mut loaded.config, written_in).map_err(|error| about_environment(loaded, &error))
    }

    /// What there is to say of what `loaded` sets and leaves: settings that were written for another environment, and keys of priorities
    /// that nobody draws by.
    pub fn remarks_on_settings(loaded: &Loaded) -> impl Iterator<Item = String> {
        let of_arguments = [KEYWORD_ARGUMENTS, EVALUATION_ARGUMENTS].into_iter().filter_map(move |key| remark_on_arguments(loaded, key));
        remark_on_goal(loaded).into_iter().chain(of_arguments).chain(remarks::priorities_at_rest(loaded))
    }

    /// The algorithm, for whoever does not ask on which device it computes.
    pub fn algorithm(&self) -> &dyn Algorithm {
        &*self.algorithms[0]
    }

    /// The algorithm on the device of the learner with this number: a single device serves all learners.
    pub(super) fn algorithm_of_learner(&self, number: usize) -> &dyn Algorithm {
        self.algorithms.get(number).map_or_else(|| self.algorithm(), |algorithm| &**algorithm)
    }

    /// Let this process run what `loaded` names: its children inherit what an environment in Python needs, and libtorch where they
    /// compute with it. May start the program anew, as [`configured_environment::become_ready`] does, so it comes before anything
    /// that must happen once.
    ///
    /// # Errors
    /// There is no Python that fits.
    pub fn become_ready(loaded: &Loaded) -> Result<(), SupervisorError> {
        configured_environment::become_ready(&loaded.config).map_err(|error| about_environment(loaded, &error))?;
        if loaded.config.computes_with_libtorch() {
            networks::load_libtorch();
        }
        Ok(())
    }

    /// A size that no segment can have, at the key that it follows from: the limits of the keys exclude all others.
    fn beyond_any_segment(&self, error: &PlanError) -> ConfigError {
        let steps = self.planned.fragments.length_steps;
        let words_of = |steps| FragmentShape::new(steps, &self.environment).schema().words();
        let is_too_long = self.planned.row_kind() == RowKind::Fragments && words_of(steps) > MAX_ROW_WORDS;
        match (1..steps).rev().find(|&fewer| is_too_long && words_of(fewer) <= MAX_ROW_WORDS) {
            Some(fewer) => {
                let [bytes, most] = [words_of(steps), MAX_ROW_WORDS].map(|words| BinaryBytes(8 * words as u64));
                let text = format!("a fragment of {steps} steps takes {bytes}, and one in the replay at most {most}; use at most {fewer}");
                self.loaded.error_at("fragments.length_steps", text)
            }
            None => self.loaded.error_at("environment.id", error.to_string()),
        }
    }

    /// The run of the same name that was killed, was terminated or gave up, if `run.resume` says that this one is to go on with it.
    /// `say` is told what is waited for, and which samples per insert stay though others would follow the batch.
    ///
    /// # Errors
    /// Its newest checkpoint is damaged, or the system would not say which runs and checkpoints there are.
    pub fn find_broken_run(&mut self, say: &dyn Fn(&str)) -> Result<Option<Resumption>, SupervisorError> {
        let asked = Instant::now();
        let found = Resumption::of_a_broken_run(self, say)?;
        if let Some(found) = &found {
            let followed = self.loaded.config.replay.samples_per_insert;
            self.go_on_with(found)?;
            let kept = self.loaded.config.replay.samples_per_insert;
            if kept != followed {
                let [kept, followed] = [kept, followed].map(|ratio| ratio.map_or_else(|| "none".to_owned(), |ratio| format!("{ratio:?}")));
                say(&format!(
                    "replay.samples_per_insert stays {kept}, with which the run began; a new run (--set run.resume=never) would have \
                     {followed}, by its learner.batch_size"
                ));
            }
        }
        // This may have waited until a killed run was written to the disk. That is no time of the new run.
        self.started += asked.elapsed();
        Ok(found)
    }

    /// Plan with what `found` keeps. That includes the upper ends of actors and environments that its earlier life had, where nobody gave
    /// others: the cores may be others by now, and frames that would have room for others would not fit.
    fn go_on_with(&mut self, found: &Resumption) -> Result<(), SupervisorError> {
        self.loaded.config = found.config_to_go_on_with(&self.loaded);
        if self.ranges.is_some() {
            let [most_actors, most_environments] = found.ends_of_frames().unwrap_or_default();
            let Setting { actors, environments, .. } = self.loaded.config.setting();
            let [given_actors, given_environments] = self.given_ends;
            let table = &mut self.loaded.config.adaptation;
            table.most_actors = given_actors.or(most_actors.map(|most| most.max(actors)));
            table.most_environments = given_environments.or(most_environments.map(|most| most.max(environments)));
            self.ranges = fitting::ranges(&self.loaded.config, cores::usable_now());
        }
        // A band that is wide enough for the batch of now may be too narrow for the samples per insert of then.
        if let Err(errors) = self.loaded.config.validate() {
            let problems: Vec<String> = errors.0.iter().map(|error| error.problem.to_string()).collect();
            let message = format!("with the replay.samples_per_insert with which the run began: {}", problems.join("; "));
            return Err(self.loaded.error_at("replay.error_band", message).into());
        }
        self.planned = fitting::planned(&mut self.loaded, self.ranges.as_ref())?;
        self.algorithms = build(&self.planned, &self.loaded, &self.catalogue, &self.environment)?;
        Ok(())
    }

    /// The plan of the run, on cores that no other run has bound processes to, checked against the memory that is free once what dead runs
    /// have left is removed, and what `resumption` has already.
    ///
    /// # Errors
    /// No segment can hold the run, the free memory cannot, or it needs more files or processes than are allowed.
    pub fn plan(&self, resumption: Option<&Resumption>) -> Result<Plan, SupervisorError> {
        let config = &self.loaded.config;
        // Nothing is made for a plan: a run that starts makes the registry, or says why it cannot.
        let registry = Registry::existing();
        let swept = registry.as_ref().map_or_else(Vec::new, Registry::sweep);
        let neighbours = registry.map_or_else(Vec::new, |registry| neighbours(&registry, Path::new("/"), std::process::id()));
        let machine = Machine::detect();
        let beginning = Beginning {
            config: config.clone(),
            ranges: self.ranges,
            actors: self.found(resumption).map_or(config.actor.count, |found| found.home.actors),
            usable_cores: cores::usable_now(),
            goes_on_after: resumption.map(|resumption| resumption.part_over(config)),
        };
        let plan = Plan::of_run(&self.planned, self.algorithm(), &machine.cores.by_preference, &neighbours, beginning);
        let mut plan = plan.map_err(|error| match error {
            PlanError::Layout(_) => SupervisorError::from(self.beyond_any_segment(&error)),
            other => other.into(),
        })?;
        plan.swept = swept;
        self.add_remarks(&mut plan, &machine, resumption);
        plan.check_processes(machine.room_for_processes)?;
        check_memory(&plan, machine, resumption)?;
        plan.allow_open_files()?;
        Ok(plan)
    }

    /// Add to `plan` what there is to say of the configuration on `machine`. Nothing here refuses a run.
    fn add_remarks(&self, plan: &mut Plan, machine: &Machine, resumption: Option<&Resumption>) {
        let config = &self.loaded.config;
        Self::remarks_on_settings(&self.loaded).for_each(|remark| plan.remark(remark));
        if let Some(remark) = &self.remark_on_environment {
            plan.remark(remark.clone());
        }
        if let Some(remark) = remarks::killed_as_one(&self.loaded, machine) {
            plan.remark(remark);
        }
        // Only the environment tells that these are idle. A file may have been written for another one.
        let of_deviations = ["algorithm.initial_action_std", "algorithm.free_action_std"];
        let is_discrete = matches!(self.environment.action, ActionSpace::Discrete { .. });
        for key in of_deviations.into_iter().filter(|key| is_discrete && self.loaded.is_typed(key)) {
            plan.remark(format!("{key} has no effect on what is learned: a policy over discrete actions has no standard deviation"));
        }
        // Where nobody sets the parts of a batch and they are not the default, PPO's batch follows its environments and fragments.
        let parts = config.algorithm.minibatches;
        let batch_follows = parts != AlgorithmConfig::default().minibatches && !self.loaded.is_set("algorithm.minibatches");
        // A run that goes on keeps the length of its fragments, and has its checkpoints there already.
        if resumption.is_none() {
            if let Some(remark) = remarks::fragments_beyond_the_limit(config, self.environment.time_limit_steps, batch_follows) {
                plan.remark(remark);
            }
            if let Some(remark) = self.remark_on_room_for_checkpoints(plan) {
                plan.remark(remark);
            }
        }
        // Who has set how long evaluations wait for an end knows of it, and what is not in Python says itself how it ends.
        let is_in_python = configured_environment::request(config).needs_python();
        if is_in_python && config.evaluator.enabled && self.evaluation_limit_steps.is_none() && !self.loaded.is_set(EPISODE_LIMIT) {
            plan.remark(remarks::no_time_limit(config));
        }
        let arguments = [&config.environment.keyword_arguments, &config.environment.evaluation_arguments];
        let without_python = configured_environment::without_python(&config.environment.id);
        if let Some(id) = without_python.filter(|_| arguments.iter().all(|text| *text == "{}")) {
            plan.remark(format!("environment.id = \"{id}\" is the same task without Python, and is stepped faster"));
        }
        let learns_from_bytes =
            self.catalogue.algorithms().learns_from_bytes(&config.algorithm.name) && !config.algorithm.normalise_observations;
        plan.warn_of_images(&self.environment.observation, learns_from_bytes);
    }

    /// What an earlier life of the run found, if its search goes on from there: within the ranges of now, which may be narrower.
    pub(super) fn found(&self, resumption: Option<&Resumption>) -> Option<Found> {
        let (ranges, adaptation) = (self.ranges?, resumption?.folder().adaptation());
        let found = Found::of_probes(self.loaded.config.setting(), telemetry::jsonl::read(&adaptation))?;
        Some(Found { home: ranges.clamped(found.home), ..found })
    }

    /// Train until the run ends, from the beginning or where `resumption` goes on. The report has been printed when this returns.
    ///
    /// # Errors
    /// No folder can be made for the run, or it asks for videos or a device that are not to be had; and those of [`Session::start`] and
    /// [`Session::run`].
    pub fn train(self, plan: Plan, console: Console, resumption: Option<Resumption>) -> Result<RunOutcome, SupervisorError> {
        self.check_briefly(resumption.as_ref().map(Resumption::folder))?;
        Session::start(self, plan, console, resumption)?.run()
    }

    /// Refuse to go on from a checkpoint that does not fit.
    ///
    /// # Errors
    /// The run has reached its goal or its end, a key differs that must not, or what was kept of it has other sizes.
    pub fn check_resumption(&self, plan: &Plan, resumption: &mut Resumption) -> Result<(), SupervisorError> {
        Ok(resumption.check(self, plan.layout.sizes())?)
    }
}

/// The algorithm of `planned` on each device that it names. What is wrong is reported with its place in the file of `loaded`.
fn build(
    planned: &Config,
    loaded: &Loaded,
    catalogue: &Catalogue,
    environment: &EnvironmentSpec,
) -> Result<Vec<Box<dyn Algorithm>>, SupervisorError> {
    let on = |device: &str| {
        let mut config = planned.clone();
        device.clone_into(&mut config.learner.device);
        catalogue.algorithms().build(&config, environment).map_err(|error| about_algorithm(loaded, &error))
    };
    planned.learner.devices().into_iter().map(on).collect()
}

/// Refuse a plan that takes more memory than `machine` has free and `resumption` has already.
fn check_memory(plan: &Plan, mut machine: Machine, resumption: Option<&Resumption>) -> Result<(), PlanError> {
    let kept_bytes = resumption.map_or(0, Resumption::kept_bytes);
    // The last process of a killed run gives back its memory a moment after its folder.
    let deadline = Instant::now() + if resumption.is_some() { FREEING_PATIENCE } else { Duration::ZERO };
    loop {
        let budget = Budget::of(&machine);
        match plan.check(&Budget { bytes: budget.bytes.saturating_add(kept_bytes), ..budget }) {
            Err(_) if Instant::now() < deadline => {
                thread::sleep(FREEING_PAUSE);
                machine = Machine::detect();
            }
            checked => return checked,
        }
    }
}

/// An error of the algorithm, blamed on the key that it is about.
fn about_algorithm(loaded: &Loaded, error: &AlgorithmError) -> SupervisorError {
    let key = match error {
        // Either may be meant; what was said last does not fit the other.
        AlgorithmError::ActionSpace { .. } | AlgorithmError::Unbounded { .. } => loaded.set_last("environment.id", "algorithm.name"),
        _ => error.key(),
    };
    loaded.error_at(key, error.to_string()).into()
}

/// The goal, if it was written for another environment.
fn remark_on_goal(loaded: &Loaded) -> Option<String> {
    let goal = loaded.config.run.stop_eval_return?;
    let place = &loaded.written_for_another_environment("run.stop_eval_return")?.place;
    Some(format!("the goal of {goal} ({place}) was written for another environment; set run.stop_eval_return too, or to \"none\""))
}

/// The arguments of the environment at `key`, if they were written for another one.
fn remark_on_arguments(loaded: &Loaded, key: &str) -> Option<String> {
    let Difference { value, place, .. } = loaded.written_for_another_environment(key)?;
    Some(format!("the arguments {value} ({place}) were written for another environment; set {key} too, or to \"{{}}\""))
}

/// What is known of the environment in which the agent is evaluated, if `environment.evaluation_arguments` make it another one than that
/// of training, which is `environment`. Refuse arguments with which it cannot be used, or is not what the agent acts in when it is trained.
fn examine_for_evaluation(
    loaded: &Loaded,
    catalogue: &Catalogue,
    environment: &EnvironmentSpec,
) -> Result<Option<Examined>, SupervisorError> {
    let config = &loaded.config;
    let examine = || -> Result<Option<Examined>, EnvironmentError> {
        let request = configured_environment::evaluation_request(config)?;
        if request.keyword_arguments == config.environment.keyword_arguments {
            return Ok(None);
        }
        let examined = catalogue.environments().examine(&request)?;
        let spec = configured_environment::observation_options(catalogue, config).spec(&examined.spec)?;
        Ok(Some(Examined { spec, ..examined }))
    };
    let found = examine().map_err(|error| refuse_environment(loaded, EVALUATION_ARGUMENTS, EVALUATION_ARGUMENTS, &error))?;
    // Without these arguments it was examined already.
    let Some(examined) = found else { return Ok(None) };
    let (found, planned) = (examined.spec.spaces_in_words(), environment.spaces_in_words());
    if found == planned {
        return Ok(Some(examined));
    }
    let id = &environment.id;
    let text =
        format!("`{id}` has {found} with these arguments, and {planned} in training; leave out those that change observations or actions");
    Err(loaded.error_at(EVALUATION_ARGUMENTS, text).into())
}

/// An error of the environment, blamed on the key that it is about.
fn about_environment(loaded: &Loaded, error: &EnvironmentError) -> SupervisorError {
    let key = match error {
        EnvironmentError::KeywordArguments { .. }
        | EnvironmentError::TakesNoArguments { .. }
        | EnvironmentError::UnknownArgument { .. }
        | EnvironmentError::InvalidArgument { .. } => KEYWORD_ARGUMENTS,
        EnvironmentError::FramesDoNotDivide { .. } => "environment.frames_per_observation",
        _ => "environment.id",
    };
    refuse_environment(loaded, key, KEYWORD_ARGUMENTS, error)
}

/// An error of the environment at `key`, and whether the arguments at `arguments` were written for another one.
fn refuse_environment(loaded: &Loaded, key: &str, arguments: &str, error: &EnvironmentError) -> SupervisorError {
    // A constructor says that it takes no such argument, but not who gave it.
    let remark = match error {
        EnvironmentError::Python { during: Moment::Construction, .. } => remark_on_arguments(loaded, arguments),
        _ => None,
    };
    loaded.error_at(key, remark.map_or_else(|| error.to_string(), |remark| format!("{error}\n{remark}"))).into()
}
