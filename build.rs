//! Lets every program that is linked here find its libraries when it starts, without LD_LIBRARY_PATH.
//!
//! It runs after the build script of torch-sys, which has then found a libtorch of the right version and says where, after
//! that of PyO3, which has chosen a Python, and after that of mujoco-rs, which has linked a libmujoco.

use std::env;
use std::path::{Path, PathBuf};

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-check-cfg=cfg(libtorch_on_demand)");
    println!("cargo::rerun-if-env-changed=PYO3_PYTHON");
    println!("cargo::rerun-if-env-changed=PYO3_ENVIRONMENT_SIGNATURE");
    if env::var_os("CARGO_FEATURE_TORCH").is_some() {
        link_libtorch();
    }
    #[cfg(feature = "python")]
    link_python();
    if env::var_os("CARGO_FEATURE_MUJOCO").is_some() {
        link_mujoco();
    }
}

/// Passes an argument to the linker of this package's programs, and to whoever reads `DEP_SHOAL_LINK_ARGUMENT_` and `library` in the build
/// script of a package that depends on this one: cargo does not pass it to the linker of that package's programs.
fn link_argument(library: &str, argument: &str) {
    println!("cargo::rustc-link-arg={argument}");
    println!("cargo::metadata=LINK_ARGUMENT_{library}={argument}");
}

/// Makes programs load the libmujoco that they were linked with, and remember where the models of Gymnasium's package are:
/// `cargo xtask setup` puts links to both into one folder.
///
/// Without the variable, mujoco-rs has asked pkg-config. The library is then where programs look anyway, and who runs the
/// program has to say where the models are.
fn link_mujoco() {
    const FOLDER: &str = "MUJOCO_DYNAMIC_LINK_DIR";
    println!("cargo::rerun-if-env-changed={FOLDER}");
    if let Some(folder) = env::var_os(FOLDER).map(PathBuf::from) {
        link_argument("MUJOCO", &format!("-Wl,-rpath,{}", folder.display()));
        println!("cargo::rustc-env=SHOAL_MUJOCO_ASSETS_OF_BUILD={}", folder.join("assets").display());
    }
}

fn link_libtorch() {
    let Some(libraries) = env::var_os("DEP_TCH_LIBTORCH_LIB").map(PathBuf::from) else {
        println!("cargo::error=torch-sys does not say where libtorch is; Shoal needs the dependency torch-sys =0.26.0 itself");
        return;
    };
    println!("cargo::rerun-if-changed={}", libraries.display());
    if !libraries.join("libtorch_cpu.so").exists() {
        // Cargo does not build torch-sys again when libtorch vanishes later, so the linker would be the next to complain.
        println!("cargo::error=libtorch was in {} and is gone. Fetch it again with:  cargo xtask setup", libraries.display());
        return;
    }
    link_argument("LIBTORCH", &format!("-Wl,-rpath,{}", libraries.display()));
    link_cuda(&libraries);
    link_on_demand(&libraries);
}

/// Links programs to functions that load libtorch when one of them is first called, if `cargo xtask setup` has made them: a program that
/// does not compute with libtorch then starts without it.
///
/// These functions become part of the library. LLVM's linker, which is Rust's own on x86-64, looks there before it looks in torch-sys. With
/// a linker that looks in torch-sys first, programs load libtorch when they start.
fn link_on_demand(libraries: &Path) {
    const AT_START: &str = "SHOAL_LIBTORCH_AT_START";
    println!("cargo::rerun-if-env-changed={AT_START}");
    let has = |name: &str| libraries.join(name).exists();
    if env::var_os(AT_START).is_none() && has("libtch_on_demand.a") && has("libtch.so") && !has("libtorch_cuda.so") {
        println!("cargo::rustc-link-search=native={}", libraries.display());
        println!("cargo::rustc-link-lib=static=tch_on_demand");
        println!("cargo::rustc-cfg=libtorch_on_demand");
    }
}

/// Keeps the CUDA library, if there is one, among the libraries that a program loads.
///
/// No program names a symbol of it: it registers itself when it is loaded. The linker would leave it out, and the machine
/// would seem to have no GPU.
fn link_cuda(libraries: &Path) {
    let library = libraries.join("libtorch_cuda.so");
    if library.exists() {
        link_argument("CUDA", &format!("-Wl,--no-as-needed,{},--as-needed", library.display()));
    }
}

/// Makes programs load the libpython that they were linked with, and remember where its standard library lies: the
/// interpreter would otherwise look for one beside the first `python3` on the search path, which may be another's.
#[cfg(feature = "python")]
fn link_python() {
    let python = pyo3_build_config::get();
    let name = python.executable().unwrap_or("the Python of PYO3_CONFIG_FILE");
    if !python.shared() {
        let rest = if env::var_os("CARGO_FEATURE_TORCH").is_some() { " --features torch" } else { "" };
        println!(
            "cargo::error={name} has no shared library (libpython), so no program can embed it. Take another one with PYO3_PYTHON, or \
             build without Python environments:  cargo build --no-default-features{rest}"
        );
        return;
    }
    if let Some(folder) = python.lib_dir() {
        link_argument("PYTHON", &format!("-Wl,-rpath,{folder}"));
    }
    let home = python.run_python_script("import sys; print(sys.base_prefix)").unwrap_or_default();
    // The version is that of the library which is linked: another interpreter may have taken the place of the one that PyO3 asked.
    let version = python.lib_name().and_then(|library| library.strip_prefix("python"));
    let (Some(home), Some(version)) = (home.lines().next(), version) else {
        println!("cargo::error={name} does not say what its library and its standard library are. Name a working one with PYO3_PYTHON");
        return;
    };
    println!("cargo::rustc-env=SHOAL_PYTHON_HOME={home}");
    println!("cargo::rustc-env=SHOAL_PYTHON_VERSION={version}");
}
