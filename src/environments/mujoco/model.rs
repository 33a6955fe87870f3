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
pub(super) const VERSION: &str = "3.17.0";
/// The environment variable that names the folder of the models, if that is not the folder of the build.
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

/// Compiles a model's description in this thread alone: a process that may fork has no other.
fn compile(text: &str) -> Result<MjModel, String> {
    if text.contains('\0') {
        return Err("it contains a zero byte, so it is no XML".to_owned());
    }
    let (text, total_mass_kg) = total_mass::take(text);
    let mut description = MjSpec::from_xml_string(&text).map_err(|error| error.to_string())?;
    description.compiler_mut().set_usethread(false);
    let model = description.compile().map_err(|error| error.to_string())?;
    Ok(match total_mass_kg {
        Some(total_mass_kg) => total_mass::set(model, total_mass_kg),
        None => model,
    })
}

#[cfg(test)]
mod tests {
    use super::{Sizes, check, compile, load};
    use std::sync::Arc;

    const HOPPER: Sizes = Sizes { positions: 6, velocities: 6, actions: 3, bodies: 5, sites: 0 };

    #[test]
    fn environments_of_one_process_share_a_model() {
        let model = || load("mujoco:Hopper-v5", "hopper.xml", &HOPPER).expect("the set-up has put the models there");
        let first = model();
        assert!(Arc::ptr_eq(&first, &model()));
    }

    #[test]
    fn the_half_cheetah_has_the_masses_and_means_that_mujocos_compiler_gives_it() {
        let sizes = Sizes { positions: 9, velocities: 9, actions: 6, bodies: 8, sites: 0 };
        let model = load("mujoco:HalfCheetah-v5", "half_cheetah.xml", &sizes).expect("the set-up has put the models there");
        // What `mujoco.MjModel.from_xml_path` of MuJoCo 3.17.0 holds.
        assert_eq!((model.stat().meaninertia, model.stat().meanmass), (3.722702429381685, 2.0000000000000004));
        assert_eq!(model.body_mass()[1], 6.25020920502092);
    }

    #[test]
    fn a_missing_model_is_found_out_before_one_is_loaded() {
        let message = check("mujoco:Hopper-v5", "flea.xml").expect_err("there is no such model").to_string();
        for part in ["`mujoco:Hopper-v5`", "flea.xml", "no such file", "cargo xtask setup", "SHOAL_MUJOCO_ASSETS"] {
            assert!(message.contains(part), "{message}");
        }
    }

    #[test]
    fn a_model_of_another_body_is_refused() {
        let error = load("mujoco:Hopper-v5", "swimmer.xml", &HOPPER).expect_err("a swimmer is no hopper");
        assert!(error.to_string().contains("Sizes { positions: 5, velocities: 5, actions: 2, bodies: 4, sites: 0 }"), "{error}");
    }

    #[test]
    fn a_text_that_describes_no_model_is_refused_with_mujocos_reason() {
        for text in ["no XML", "<mujoco><flea/></mujoco>", "<mujoco>\0</mujoco>"] {
            let reason = compile(text).map(drop).expect_err(text);
            assert!(!reason.is_empty(), "{text}");
        }
    }
}
