//! Finds and loads the models that Gymnasium's package contains, one copy for all environments of a process.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::{env, fs};

use mujoco_rs::mujoco_version;
use mujoco_rs::wrappers::MjModel;
use mujoco_rs::wrappers::mj_editing::MjSpec;

use super::total_mass;
use crate::environments::EnvironmentError;

/// The version of MuJoCo that this was built for. Others give other trajectories.
const VERSION: &str = "3.17.0";
/// Names the folder of the models, where it is not the one of the build.
const FOLDER_VARIABLE: &str = "SHOAL_MUJOCO_ASSETS";
/// The folder beside the library that was linked, if the build knew where that is.
const FOLDER_OF_BUILD: Option<&str> = option_env!("SHOAL_MUJOCO_ASSETS_OF_BUILD");

/// The sizes that a task counts on, so that another model is refused.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Sizes {
    /// Generalised coordinates.
    pub(super) positions: usize,
    /// Degrees of freedom.
    pub(super) velocities: usize,
    /// Actuators.
    pub(super) actions: usize,
    /// Bodies, the world among them.
    pub(super) bodies: usize,
    /// Marked places.
    pub(super) sites: usize,
}

impl Sizes {
    fn of(model: &MjModel) -> Self {
        let raw = model.ffi();
        let [positions, velocities, actions, bodies, sites] =
            [raw.nq, raw.nv, raw.nu, raw.nbody, raw.nsite].map(|size| usize::try_from(size).expect("MuJoCo's sizes are not negative"));
        Self { positions, velocities, actions, bodies, sites }
    }
}

/// Whether the model of `id` can probably be loaded, without doing so.
///
/// # Errors
/// - [`EnvironmentError::LibraryVersion`] if another libmujoco was loaded than the one that this was built for;
/// - [`EnvironmentError::Model`] if there is no such file.
pub(super) fn check(id: &'static str, file: &str) -> Result<(), EnvironmentError> {
    find(id, file).map(drop)
}

/// The model in `file`.
///
/// # Errors
/// As [`check`]; and [`EnvironmentError::Model`] if MuJoCo refuses the file, or it describes something else.
pub(super) fn load(id: &'static str, file: &str, sizes: &Sizes) -> Result<Arc<MjModel>, EnvironmentError> {
    let path = find(id, file)?;
    let model = shared(&path).map_err(|reason| unusable(id, &path, reason))?;
    let found = Sizes::of(&model);
    if found == *sizes {
        return Ok(model);
    }
    Err(unusable(id, &path, format!("it is not the model of Gymnasium 1.4.0: it has {found:?}, the task needs {sizes:?}")))
}

fn find(id: &'static str, file: &str) -> Result<PathBuf, EnvironmentError> {
    if mujoco_version() != VERSION {
        let found = mujoco_version().to_owned();
        return Err(EnvironmentError::LibraryVersion { id, library: "libmujoco", expected: VERSION, found });
    }
    let folder = env::var_os(FOLDER_VARIABLE).map(PathBuf::from).or_else(|| FOLDER_OF_BUILD.map(PathBuf::from));
    let path = folder.unwrap_or_default().join(file);
    if path.is_file() { Ok(path) } else { Err(unusable(id, &path, "there is no such file".to_owned())) }
}

fn unusable(id: &'static str, path: &Path, reason: String) -> EnvironmentError {
    EnvironmentError::Model { id, path: path.display().to_string(), reason, variable: FOLDER_VARIABLE }
}

/// The model of that file, loaded unless an environment of this process still uses it.
fn shared(path: &Path) -> Result<Arc<MjModel>, String> {
    static LOADED: Mutex<BTreeMap<PathBuf, Weak<MjModel>>> = Mutex::new(BTreeMap::new());
    // A thread that panicked here has left the map as it was.
    let mut loaded = LOADED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(model) = loaded.get(path).and_then(Weak::upgrade) {
        return Ok(model);
    }
    let text = fs::read_to_string(path).map_err(|error| error.to_string())?;
    let model = Arc::new(compile(&text)?);
    loaded.insert(path.to_owned(), Arc::downgrade(&model));
    Ok(model)
}

/// What MuJoCo makes of a model's description, in this thread alone: whoever forks has only one.
fn compile(text: &str) -> Result<MjModel, String> {
    if text.contains('\0') {
        return Err("it contains a zero byte, so it is no XML".to_owned());
    }
    let (text, total_mass) = total_mass::take(text);
    let mut description = MjSpec::from_xml_string(&text).map_err(|error| error.to_string())?;
    description.compiler_mut().set_usethread(false);
    if let Some(total_mass) = total_mass {
        description.compiler_mut().set_settotalmass(total_mass);
    }
    description.compile().map_err(|error| error.to_string())
}
