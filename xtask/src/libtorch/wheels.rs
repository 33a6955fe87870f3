//! The Python wheels that libtorch is taken from, and the part of each that is needed.
//!
//! A package index carries PyTorch for Linux only with CUDA. The CPU library of that build stands on its own once the
//! libraries that it names are beside it: libcupti for its profiler and libcudart, a few megabytes each. The CUDA library
//! names some gigabytes of others; all look for what they need in the folder in which they lie.

use anyhow::{Result, bail};

use super::Devices;

/// One wheel.
pub(super) struct Wheel {
    /// What pip is asked for.
    pub(super) package: &'static str,
    pub(super) version: &'static str,
    /// SHA-256 of the file, which pip checks.
    pub(super) sha256: &'static str,
    /// The folder inside the wheel that has the libraries.
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

    /// Paths in the libtorch folder of the libraries that are taken from this wheel.
    pub(super) fn libraries(&self) -> impl Iterator<Item = String> {
        self.libraries.iter().map(|name| format!("lib/{name}"))
    }

    /// The beginning of the file's name: a wheel spells its package with underscores.
    pub(super) fn file_prefix(&self) -> String {
        format!("{}-{}-", self.package.replace('-', "_"), self.version)
    }
}

/// PyTorch for x86-64, with these libraries of it.
const fn torch_x86_64(libraries: &'static [&'static str]) -> Wheel {
    torch("60fcdcb2f3876e21146cb4524ef06397d727ca9ad5f020818547e25075fe3cb7", libraries)
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

const CUDA_RUNTIME: Wheel =
    cuda("nvidia-cuda-runtime", "13.0.96", "7f82250d7782aa23b6cfe765ecc7db554bd3c2870c43f3d1821f1d18aebf0548", &["libcudart.so.13"]);
const CUPTI: Wheel =
    cuda("nvidia-cuda-cupti", "13.0.85", "4eb01c08e859bf924d222250d2e8f8b8ff6d3db4721288cf35d14252a4d933c8", &["libcupti.so.13"]);

static X86_64: [Wheel; 3] = [torch_x86_64(&["libtorch_cpu.so", "libc10.so", "libgomp.so.1"]), CUDA_RUNTIME, CUPTI];

/// What PyTorch's own metadata ask for. Unpacked on a machine without a GPU, where every library that these name was found among them.
static X86_64_WITH_CUDA: [Wheel; 15] = [
    torch_x86_64(&[
        "libtorch_cpu.so",
        "libtorch_cuda.so",
        "libtorch_cuda_linalg.so",
        "libtorch_nvshmem.so",
        "libc10.so",
        "libc10_cuda.so",
        "libcaffe2_nvrtc.so",
        "libgomp.so.1",
    ]),
    CUDA_RUNTIME,
    CUPTI,
    cuda(
        "nvidia-cublas",
        "13.1.1.3",
        "37936a16db8fe4ac1f065c2139360608a543a09275cb1a1af612e08cfa065436",
        &["libcublas.so.13", "libcublasLt.so.13"],
    ),
    cuda(
        "nvidia-cuda-nvrtc",
        "13.0.88",
        "ad9b6d2ead2435f11cbb6868809d2adeeee302e9bb94bcf0539c7a40d80e8575",
        &["libnvrtc.so.13", "libnvrtc-builtins.so.13.0"],
    ),
    cuda("nvidia-cufft", "12.0.0.61", "6c44f692dce8fd5ffd3e3df134b6cdb9c2f72d99cf40b62c32dde45eea9ddad3", &["libcufft.so.12"]),
    cuda("nvidia-cufile", "1.15.1.6", "08a3ecefae5a01c7f5117351c64f17c7c62efa5fffdbe24fc7d298da19cd0b44", &["libcufile.so.0"]),
    cuda("nvidia-curand", "10.4.0.35", "1aee33a5da6e1db083fe2b90082def8915f30f3248d5896bcec36a579d941bfc", &["libcurand.so.10"]),
    cuda("nvidia-cusolver", "12.0.4.66", "0a759da5dea5c0ea10fd307de75cdeb59e7ea4fcb8add0924859b944babf1112", &["libcusolver.so.12"]),
    cuda("nvidia-cusparse", "12.6.3.3", "2b3c89c88d01ee0e477cb7f82ef60a11a4bcd57b6b87c33f789350b59759360b", &["libcusparse.so.12"]),
    cuda("nvidia-nvjitlink", "13.5.37", "280d7cb9649704145f074b8dbde500de04ce02d0872e066e20a83c17bcaa93eb", &["libnvJitLink.so.13"]),
    Wheel {
        library_folder: "nvidia/cusparselt/lib/",
        ..cuda(
            "nvidia-cusparselt-cu13",
            "0.8.1",
            "786ce87568c303fadb5afcc7102d454cd3040d75f6f8626f5db460d1871f4dd0",
            &["libcusparseLt.so.0"],
        )
    },
    Wheel {
        library_folder: "nvidia/nccl/lib/",
        ..cuda("nvidia-nccl-cu13", "2.29.7", "edd81538446786ec3b73972543e53bb43bcaf0bfc8ef76cb679fcc390ffe136d", &["libnccl.so.2"])
    },
    Wheel {
        library_folder: "nvidia/nvshmem/lib/",
        ..cuda(
            "nvidia-nvshmem-cu13",
            "3.4.5",
            "290f0a2ee94c9f3687a02502f3b9299a9f9fe826e6d0287ee18482e78d495b80",
            &["libnvshmem_host.so.3"],
        )
    },
    Wheel {
        library_folder: "nvidia/cudnn/lib/",
        ..cuda(
            "nvidia-cudnn-cu13",
            "9.20.0.48",
            "0c45dd8eeb50b603f07995b1b300c62ffe6a1980482b82b3bcf94a4ca9d49304",
            &[
                "libcudnn.so.9",
                "libcudnn_adv.so.9",
                "libcudnn_cnn.so.9",
                "libcudnn_engines_precompiled.so.9",
                "libcudnn_engines_runtime_compiled.so.9",
                "libcudnn_graph.so.9",
                "libcudnn_heuristic.so.9",
                "libcudnn_ops.so.9",
            ],
        )
    },
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
pub(super) fn for_this_machine(devices: Devices) -> Result<&'static [Wheel]> {
    for_machine(devices, std::env::consts::OS, std::env::consts::ARCH, cfg!(target_env = "gnu"))
}

pub(super) fn for_machine(devices: Devices, system: &str, architecture: &str, glibc: bool) -> Result<&'static [Wheel]> {
    match (system, architecture, glibc, devices) {
        ("linux", "x86_64", true, Devices::Cpu) => Ok(&X86_64),
        ("linux", "x86_64", true, Devices::CpuAndCuda) => Ok(&X86_64_WITH_CUDA),
        ("linux", "aarch64", true, Devices::Cpu) => Ok(&AARCH64),
        ("linux", "aarch64", true, Devices::CpuAndCuda) => bail!(
            "the set-up fetches a libtorch with CUDA for x86-64 alone. Install PyTorch {} with CUDA and run the set-up with \
             LIBTORCH_USE_PYTORCH=1",
            super::VERSION
        ),
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
    fn with_cuda_there_is_all_that_there_is_without_and_no_file_twice() {
        let files = |wheels: &[Wheel]| wheels.iter().flat_map(Wheel::libraries).collect::<Vec<_>>();
        let (without, with) = (files(&X86_64), files(&X86_64_WITH_CUDA));
        assert!(without.iter().all(|file| with.contains(file)));
        assert!(with.iter().enumerate().all(|(index, file)| !with[..index].contains(file)));
        let cudnn = &X86_64_WITH_CUDA[14];
        assert_eq!(cudnn.destination("nvidia/cudnn/lib/libcudnn.so.9").as_deref(), Some("lib/libcudnn.so.9"));
        assert!(for_machine(Devices::CpuAndCuda, "linux", "aarch64", true).err().unwrap().to_string().contains("LIBTORCH_USE_PYTORCH"));
    }

    #[test]
    fn a_machine_without_wheels_is_told_what_to_do() {
        assert!(for_machine(Devices::Cpu, "linux", "aarch64", true).is_ok());
        for (system, architecture, glibc) in [("linux", "riscv64", true), ("linux", "x86_64", false), ("macos", "aarch64", true)] {
            let error = for_machine(Devices::Cpu, system, architecture, glibc).err().unwrap().to_string();
            assert!(error.contains(architecture) && error.contains("--no-default-features"), "{error}");
        }
    }
}
