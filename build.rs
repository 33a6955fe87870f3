//! Lets every program that is linked here find libtorch and libmujoco when it starts, without LD_LIBRARY_PATH.
//!
//! It runs after the build script of torch-sys, which has then found a libtorch of the right version and says where, and after
//! that of mujoco-rs, which has linked the libmujoco in the folder that its variable names.

use std::env;
use std::path::{Path, PathBuf};

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    if env::var_os("CARGO_FEATURE_MUJOCO").is_some() {
        find_mujoco();
    }
    if env::var_os("CARGO_FEATURE_TORCH").is_some() {
        find_torch();
    }
}

/// Says where libmujoco is, and the models that Gymnasium's package contains: `cargo xtask setup` puts them beside it.
///
/// Without the variable, mujoco-rs has asked pkg-config: the library is then where programs look anyway, and who runs the
/// program has to say where the models are.
fn find_mujoco() {
    const FOLDER: &str = "MUJOCO_DYNAMIC_LINK_DIR";
    println!("cargo::rerun-if-env-changed={FOLDER}");
    if let Some(folder) = env::var_os(FOLDER).map(PathBuf::from) {
        println!("cargo::rustc-link-arg=-Wl,-rpath,{}", folder.display());
        println!("cargo::rustc-env=SHOAL_MUJOCO_ASSETS_OF_BUILD={}", folder.join("assets").display());
    }
}

fn find_torch() {
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
    println!("cargo::rustc-link-arg=-Wl,-rpath,{}", libraries.display());
    link_cuda(&libraries);
}

/// Keeps the CUDA library, where there is one, among the libraries that a program loads.
///
/// No program names a symbol of it: it registers itself when it is loaded. The linker would leave it out, and the machine
/// would seem to have no GPU.
fn link_cuda(libraries: &Path) {
    let library = libraries.join("libtorch_cuda.so");
    if library.exists() {
        println!("cargo::rustc-link-arg=-Wl,--no-as-needed,{},--as-needed", library.display());
    }
}
