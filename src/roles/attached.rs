//! An actor that joins a run from outside.

use thiserror::Error;

use super::run::{RoleError, Run, catch_panic};
use super::{actor, configured_environment};
use crate::algorithms::AlgorithmError;
use crate::catalogue::Catalogue;
use crate::config::{Config, ConfigErrors};
use crate::environments::{EnvironmentError, python};
use crate::rendezvous::handshake::{JoinError, Visitor};
use crate::rendezvous::{Entry, Liveliness, Registry, RendezvousError, attach};
use crate::segment::processes::Role;
use crate::segment::{Segment, SegmentError};

/// Why an actor could not join.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum AttachError {
    /// The run was not found, or said no.
    #[error(transparent)]
    Join(#[from] JoinError),
    /// Another release has started the run, whose configuration may have other keys.
    #[error("the supervisor {pid} is version {run} and this program is version {program}; attach with the program that started the run")]
    OtherRelease {
        /// Process id of the supervisor.
        pid: u32,
        /// Version of the program that started the run.
        run: String,
        /// Version of this program.
        program: &'static str,
    },
    /// The run's description cannot be used.
    #[error(transparent)]
    Segment(#[from] SegmentError),
    /// The run's configuration cannot be read.
    #[error(transparent)]
    Config(#[from] ConfigErrors),
    /// The environment is not known or not usable here.
    #[error("{}", configured_environment::advised(.0, EnvironmentError::is_unknown))]
    Environment(#[from] EnvironmentError),
    /// The algorithm is not known or not usable here.
    #[error("{}", configured_environment::advised(.0, AlgorithmError::is_unknown))]
    Algorithm(#[from] AlgorithmError),
    /// The algorithm of that name is another than the run's.
    #[error("`{name}` has other transitions or parameters in this program than in the run; attach with the program that started the run")]
    OtherAlgorithm {
        /// Algorithm.
        name: String,
    },
    /// The actor failed at its work.
    #[error(transparent)]
    Role(#[from] RoleError),
    /// The actor panicked.
    #[error("{0}")]
    Panicked(String),
    /// More actors are to join than the run has places.
    #[error("{asked} actors are asked for, and the run has {places} places for actors and guests from outside (actor.attach_slots)")]
    TooMany {
        /// Actors that are to join.
        asked: usize,
        /// The value of `actor.attach_slots`.
        places: usize,
    },
    /// The supervisor has given the slot to somebody else.
    #[error("the place that the supervisor had promised has expired; try again")]
    Expired,
}

impl From<RendezvousError> for AttachError {
    fn from(error: RendezvousError) -> Self {
        Self::Join(error.into())
    }
}

/// Let this process, and the `actors` that it is going to fork, step the environment of the run of the supervisor `pid`; may start
/// the program anew, as [`configured_environment::become_ready`] does. To be called before any actor is forked.
///
/// # Errors
/// There is no such run, another release has started it, its description cannot be used, it has places but fewer than `actors`,
/// or there is no Python that fits.
pub fn become_ready(registry: &Registry, pid: u32, actors: usize) -> Result<(), AttachError> {
    let Entry { record, state } = registry.find(pid)?;
    // A run that is dead, or about to vanish, is refused with better words when it is joined.
    if state == Liveliness::Dead {
        return Ok(());
    }
    let program = env!("CARGO_PKG_VERSION");
    if record.program_version != program {
        return Err(AttachError::OtherRelease { pid, run: record.program_version, program });
    }
    let Ok(segment) = Segment::attach_read_only(&record.segment) else { return Ok(()) };
    let config = Config::parse(&segment.description()?.config_toml, "the run's configuration", &[])?.config;
    let places = config.places_to_attach();
    // A run that takes nobody says so itself, and why.
    if (1..actors).contains(&places) {
        return Err(AttachError::TooMany { asked: actors, places });
    }
    Ok(configured_environment::become_ready(&config)?)
}

/// Join the run of the supervisor `pid` and act in it until the run ends, the supervisor is gone, or this process is
/// asked to leave. What the run names is looked up in `catalogue`; `joined` is called once the place has been taken.
///
/// # Errors
/// The run cannot be joined, or the promised place has expired; what it names is not in `catalogue`, cannot be made here, or is not what it
/// is in the run; the actor fails or panics.
pub fn run(registry: &Registry, catalogue: &Catalogue, pid: u32, joined: impl FnOnce(usize)) -> Result<(), AttachError> {
    let attachment = attach(registry, pid, Visitor::Actor)?;
    let segment = attachment.open_segment()?;
    let description = segment.description()?;
    let config = Config::parse(&description.config_toml, "the run's configuration", &[])?.config;
    let environment = {
        let found = catalogue.environments().make(&configured_environment::request(&config))?;
        configured_environment::observation_options(catalogue, &config).spec(found.spec())?
    };
    configured_environment::check_unchanged(&environment, &description.spaces)?;
    let algorithm = catalogue.algorithms().build(&config, &environment)?;
    if algorithm.schema().describe() != description.fields || algorithm.sizes().published != segment.parameter_board().len() {
        return Err(AttachError::OtherAlgorithm { name: algorithm.name().to_owned() });
    }
    let slot = segment.processes().slot(attachment.slot);
    if !slot.occupy(std::process::id(), attachment.generation) {
        return Err(AttachError::Expired);
    }
    joined(attachment.number);
    let run = Run {
        segment: &segment,
        config: &config,
        algorithm: &*algorithm,
        environment: &environment,
        catalogue,
        process: slot,
        role: Role::AttachedActor,
        number: attachment.number,
        incarnation: attachment.generation,
        supervisor_alive: &|| attachment.supervisor_alive(),
    };
    let acted = catch_panic(slot, || actor::run(&run));
    python::end_helpers();
    let result = acted.ok_or_else(|| AttachError::Panicked(slot.last_words()))?;
    if let Err(error) = &result {
        slot.set_last_words(&error.to_string());
    }
    Ok(result?)
}
