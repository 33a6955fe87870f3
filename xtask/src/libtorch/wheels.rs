//! The Python wheels that libtorch is taken from, and the part of each that is needed.
//!
//! A package index carries PyTorch for Linux only with CUDA. The CPU library of that build stands on its own once the
//! libraries that it names are beside it: libcupti for its profiler and libcudart, a few megabytes each.

use anyhow::{Result, bail};

/// One wheel.
pub(super) struct Wheel {
    /// What pip is asked for.
    pub(super) package: &'static str,
    pub(super) version: &'static str,
    /// SHA-256 of the file, which pip checks.
    pub(super) sha256: &'static str,
    /// The folder inside the wheel whose libraries are meant.
    library_folder: &'static str,
    libraries: &'static [&'static str],
    /// The folder inside the wheel whose headers are taken, all of them.
    header_folder: Option<&'static str>,
}

impl Wheel {
    /// Where a member of the wheel goes in the libtorch folder, if it is needed.
    pub(super) fn destination(&self, member: &str) -> Option<String> {
        if let Some(name) = member.strip_prefix(self.library_folder).filter(|name| self.libraries.contains(name)) {
            return Some(format!("lib/{name}"));
        }
        let header = member.strip_prefix(self.header_folder?)?;
        (!header.is_empty() && !header.ends_with('/')).then(|| format!("include/{header}"))
    }

    /// Where the libraries go that must be there in the end.
    pub(super) fn libraries(&self) -> impl Iterator<Item = String> {
        self.libraries.iter().map(|name| format!("lib/{name}"))
    }

    /// The beginning of the file's name: a wheel spells its package with underscores.
    pub(super) fn file_prefix(&self) -> String {
        format!("{}-{}-", self.package.replace('-', "_"), self.version)
    }
}

const fn torch(sha256: &'static str, libraries: &'static [&'static str]) -> Wheel {
    Wheel {
        package: "torch",
        version: super::VERSION,
        sha256,
        library_folder: "torch/lib/",
        libraries,
        header_folder: Some("torch/include/"),
    }
}

const fn cuda(package: &'static str, version: &'static str, sha256: &'static str, libraries: &'static [&'static str]) -> Wheel {
    Wheel { package, version, sha256, library_folder: "nvidia/cu13/lib/", libraries, header_folder: None }
}

static X86_64: [Wheel; 3] = [
    torch("60fcdcb2f3876e21146cb4524ef06397d727ca9ad5f020818547e25075fe3cb7", &["libtorch_cpu.so", "libc10.so", "libgomp.so.1"]),
    cuda("nvidia-cuda-runtime", "13.0.96", "7f82250d7782aa23b6cfe765ecc7db554bd3c2870c43f3d1821f1d18aebf0548", &["libcudart.so.13"]),
    cuda("nvidia-cuda-cupti", "13.0.85", "4eb01c08e859bf924d222250d2e8f8b8ff6d3db4721288cf35d14252a4d933c8", &["libcupti.so.13"]),
];

/// Downloaded and unpacked on an x86-64 machine, where every library that these name was found among them; not yet run.
static AARCH64: [Wheel; 3] = [
    torch(
        "092790c696a760c729fd5722835f50b9d81fd7c8f141571f3f3cf4081a8f664c",
        &[
            "libtorch_cpu.so",
            "libc10.so",
            "libgomp.so.1",
            "libarm_compute.so",
            "libarm_compute_graph.so",
            "libnvpl_blas_core.so.0",
            "libnvpl_blas_lp64_gomp.so.0",
            "libnvpl_lapack_core.so.0",
            "libnvpl_lapack_lp64_gomp.so.0",
        ],
    ),
    cuda("nvidia-cuda-runtime", "13.0.96", "ef9bcbe90493a2b9d810e43d249adb3d02e98dd30200d86607d8d02687c43f55", &["libcudart.so.13"]),
    cuda("nvidia-cuda-cupti", "13.0.85", "796bd679890ee55fb14a94629b698b6db54bcfd833d391d5e94017dd9d7d3151", &["libcupti.so.13"]),
];

/// The wheels for the machine that this program was built for.
pub(super) fn for_this_machine() -> Result<&'static [Wheel]> {
    for_machine(std::env::consts::OS, std::env::consts::ARCH, cfg!(target_env = "gnu"))
}

pub(super) fn for_machine(system: &str, architecture: &str, glibc: bool) -> Result<&'static [Wheel]> {
    match (system, architecture, glibc) {
        ("linux", "x86_64", true) => Ok(&X86_64),
        ("linux", "aarch64", true) => Ok(&AARCH64),
        _ => bail!(
            "there is no libtorch to fetch for {system} on {architecture}{}. Build PyTorch {} there and set LIBTORCH to it, or build Shoal \
             without libtorch:  cargo build --release --no-default-features",
            if glibc { "" } else { " without glibc" },
            super::VERSION
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_needed_is_taken_from_a_wheel() {
        let [torch, runtime, _] = &X86_64;
        assert_eq!(torch.destination("torch/lib/libtorch_cpu.so").as_deref(), Some("lib/libtorch_cpu.so"));
        assert_eq!(torch.destination("torch/include/ATen/ATen.h").as_deref(), Some("include/ATen/ATen.h"));
        for other in ["torch/lib/libtorch_cuda.so", "torch/lib/libtorch.so", "torch/include/", "torch/include/ATen/", "torch/__init__.py"] {
            assert_eq!(torch.destination(other), None, "{other}");
        }
        assert_eq!(runtime.destination("nvidia/cu13/lib/libcudart.so.13").as_deref(), Some("lib/libcudart.so.13"));
        assert_eq!(runtime.destination("nvidia/cu13/include/cuda.h"), None);
        assert_eq!(runtime.file_prefix(), "nvidia_cuda_runtime-13.0.96-");
    }

    #[test]
    fn a_machine_without_wheels_is_told_what_to_do() {
        assert!(for_machine("linux", "aarch64", true).is_ok());
        for (system, architecture, glibc) in [("linux", "riscv64", true), ("linux", "x86_64", false), ("macos", "aarch64", true)] {
            let error = for_machine(system, architecture, glibc).err().unwrap().to_string();
            assert!(error.contains(architecture) && error.contains("--no-default-features"), "{error}");
        }
    }
}
