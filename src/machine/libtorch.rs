//! Which libtorch this program has, as far as it can be known without calling it.

use std::path::{Path, PathBuf};

use serde::Serialize;

use super::text_of;

/// libtorch, as far as it can be known without calling it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Libtorch {
    /// Whether this program was built with it (feature `torch`).
    pub is_linked: bool,
    /// The folder with its `lib/`.
    pub folder: Option<PathBuf>,
    /// Its version, from `build-version`, or from `version.py` of a Python package.
    pub version: Option<String>,
    /// Whether this program loads the CUDA half as well.
    pub has_cuda: bool,
}

impl Libtorch {
    /// The library that is mapped into this process, by its `maps`; otherwise the one in the folder of the variable
    /// LIBTORCH, now or at build time. A program that loads libtorch on demand takes the one of build time, and never
    /// its CUDA half.
    pub(super) fn detect(maps: &str, is_on_demand: bool) -> Self {
        let named_now = || std::env::var("LIBTORCH").ok().filter(|_| !is_on_demand);
        let named = || named_now().or_else(|| option_env!("LIBTORCH").map(str::to_owned)).map(PathBuf::from);
        let mapped = mapped_folder(maps);
        // A program that was linked to the CPU half alone does not load the CUDA half beside it.
        let takes_cuda = if mapped.is_some() { maps.lines().any(|line| line.ends_with("/libtorch_cuda.so")) } else { !is_on_demand };
        let needed = if is_on_demand { "lib/libtch.so" } else { "lib/libtorch_cpu.so" };
        let folder = mapped.or_else(named).filter(|folder| folder.join(needed).exists());
        Self {
            is_linked: cfg!(feature = "torch"),
            version: folder.as_deref().and_then(version),
            has_cuda: takes_cuda && folder.as_deref().is_some_and(|folder| folder.join("lib/libtorch_cuda.so").exists()),
            folder,
        }
    }

    /// The oldest driver for the CUDA half, by the first number of its version; `None` if this program has no CUDA
    /// half.
    pub fn oldest_driver(&self) -> Option<u32> {
        // The version of a Python package names its CUDA; the libtorch that `cargo xtask setup --cuda` fetches has
        // CUDA 13.
        let is_of_cuda_12 = self.version.as_deref().is_some_and(|version| version.contains("+cu12"));
        (self.is_linked && self.has_cuda).then_some(if is_of_cuda_12 { 525 } else { 580 })
    }
}

/// The folder above the `lib/libtorch_cpu.so` in `/proc/self/maps`.
fn mapped_folder(maps: &str) -> Option<PathBuf> {
    let path = maps.lines().find_map(|line| Some(&line[line.find('/')?..]).filter(|path| path.ends_with("/libtorch_cpu.so")))?;
    Path::new(path).parent()?.parent().map(Path::to_path_buf)
}

/// The version of the libtorch in `folder`.
fn version(folder: &Path) -> Option<String> {
    let build_version = text_of(folder, "build-version");
    if !build_version.is_empty() {
        return Some(build_version.trim().to_owned());
    }
    let line = text_of(folder, "version.py").lines().find_map(|line| Some(line.strip_prefix("__version__ = ")?.to_owned()))?;
    Some(line.trim_matches(['\'', '"']).to_owned())
}

#[cfg(test)]
mod tests {
    use super::super::fixture;
    use super::*;

    fn maps_with(libraries: &[&Path]) -> String {
        let lines = libraries.iter().map(|library| format!("7f00-7f01 r-xp 00000000 fe:00 12   {}\n", library.display()));
        format!("55d0-55d1 r-xp 00000000 fe:00 11 /usr/bin/supervisor\n{}7ffc-7ffd rw-p 0 00:00 0 [stack]\n", lines.collect::<String>())
    }

    #[test]
    fn the_mapped_library_tells_its_version_and_whether_it_has_cuda() {
        let root = fixture::root(&[("torch/lib/libtorch_cpu.so", ""), ("torch/build-version", "2.13.0\n")]);
        let found = Libtorch::detect(&maps_with(&[&root.path().join("torch/lib/libtorch_cpu.so")]), false);
        assert_eq!((found.version.as_deref(), found.has_cuda), (Some("2.13.0"), false));
        assert_eq!(found.folder, Some(root.path().join("torch")));
    }

    #[test]
    fn a_library_that_is_loaded_on_demand_is_there_with_the_one_that_loads_it_and_never_has_cuda() {
        let files = [("torch/lib/libtorch_cpu.so", ""), ("torch/lib/libtorch_cuda.so", ""), ("torch/build-version", "2.13.0\n")];
        let (root, missing) = (fixture::root(&[&files[..], &[("torch/lib/libtch.so", "")]].concat()), fixture::root(&files));
        let detect = |root: &Path| Libtorch::detect(&maps_with(&[&root.join("torch/lib/libtorch_cpu.so")]), true);
        let found = detect(root.path());
        assert_eq!((found.version.as_deref(), found.has_cuda), (Some("2.13.0"), false));
        assert_eq!(detect(missing.path()).folder, None);
    }

    #[test]
    fn the_library_of_a_python_package_tells_its_version_too() {
        let files = [
            ("torch/lib/libtorch_cpu.so", ""),
            ("torch/lib/libtorch_cuda.so", ""),
            ("torch/version.py", "x = 1\n__version__ = '2.13.0+cu130'\n"),
        ];
        let root = fixture::root(&files);
        let [cpu, cuda] = ["torch/lib/libtorch_cpu.so", "torch/lib/libtorch_cuda.so"].map(|name| root.path().join(name));
        let found = Libtorch::detect(&maps_with(&[&cpu, &cuda]), false);
        assert_eq!((found.version.as_deref(), found.has_cuda), (Some("2.13.0+cu130"), true));
        let found = Libtorch::detect(&maps_with(&[&cpu]), false);
        assert_eq!((found.version.as_deref(), found.has_cuda), (Some("2.13.0+cu130"), false), "the half for GPUs is there and not loaded");
    }

    #[test]
    fn the_oldest_driver_follows_from_the_cuda_that_is_there() {
        let with = |version: &str, has_cuda| Libtorch { is_linked: true, folder: None, version: Some(version.into()), has_cuda };
        assert_eq!(with("2.13.0", true).oldest_driver(), Some(580));
        assert_eq!(with("2.13.0+cu130", true).oldest_driver(), Some(580));
        assert_eq!(with("2.13.0+cu126", true).oldest_driver(), Some(525));
        assert_eq!(with("2.13.0", false).oldest_driver(), None);
    }
}
