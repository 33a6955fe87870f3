//! Lets the program find the libraries of Shoal's features when it starts. Shoal tells which arguments the linker needs for that.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    for library in ["LIBTORCH", "CUDA", "PYTHON", "MUJOCO"] {
        if let Ok(argument) = std::env::var(format!("DEP_SHOAL_LINK_ARGUMENT_{library}")) {
            println!("cargo::rustc-link-arg={argument}");
        }
    }
}
