//! Lets binaries and tests find libtorch where the build found it, without `LD_LIBRARY_PATH`.

use std::{env, path::Path};

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    // Exported by torch-sys, a direct dependency under the feature `torch`.
    if let Some(folder) = env::var_os("DEP_TCH_LIBTORCH_LIB") {
        link_libtorch(Path::new(&folder));
    }
}

fn link_libtorch(folder: &Path) {
    println!("cargo:rustc-link-arg=-Wl,-rpath,{}", folder.display());
    let cuda = folder.join("libtorch_cuda.so");
    println!("cargo:rerun-if-changed={}", cuda.display());
    if cuda.exists() {
        // Nothing refers to its symbols, so the linker would drop it, and libtorch would then see no GPU.
        println!("cargo:rustc-link-arg=-Wl,--push-state,--no-as-needed,-ltorch_cuda,--pop-state");
    }
}
