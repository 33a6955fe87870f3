//! The command that installs a missing tool on this Linux distribution.

use std::env;

/// A tool that the commands need and the machine may lack.
#[derive(Clone, Copy)]
pub(crate) enum Tool {
    CppCompiler,
    PythonWithPip,
    /// A Python with a shared library that programs can link.
    PythonToEmbed,
}

/// A package manager: its program, how it installs, and what it calls the C++ compiler, Python with pip and the Python that
/// programs can link.
struct PackageManager {
    program: &'static str,
    install: &'static str,
    cpp_compiler: &'static str,
    python_with_pip: &'static str,
    python_to_embed: &'static str,
}

const PACKAGE_MANAGERS: [PackageManager; 4] = [
    PackageManager {
        program: "apt-get",
        install: "apt-get install --yes",
        cpp_compiler: "g++",
        python_with_pip: "python3 python3-pip",
        python_to_embed: "python3-dev python3-venv",
    },
    PackageManager {
        program: "dnf",
        install: "dnf install --assumeyes",
        cpp_compiler: "gcc-c++",
        python_with_pip: "python3 python3-pip",
        python_to_embed: "python3-devel",
    },
    PackageManager {
        program: "pacman",
        install: "pacman -S --needed",
        cpp_compiler: "gcc",
        python_with_pip: "python python-pip",
        python_to_embed: "python",
    },
    PackageManager {
        program: "zypper",
        install: "zypper install",
        cpp_compiler: "gcc-c++",
        python_with_pip: "python3 python3-pip",
        python_to_embed: "python3-devel",
    },
];

/// The command to type for `tool`: for the package manager that is on this machine, or for all known ones.
pub(crate) fn install_command(tool: Tool) -> String {
    let privilege = if rustix::process::geteuid().is_root() { "" } else { "sudo " };
    let command = |manager: &PackageManager| {
        let packages = match tool {
            Tool::CppCompiler => manager.cpp_compiler,
            Tool::PythonWithPip => manager.python_with_pip,
            Tool::PythonToEmbed => manager.python_to_embed,
        };
        format!("{privilege}{} {packages}", manager.install)
    };
    match PACKAGE_MANAGERS.iter().find(|manager| is_on_path(manager.program)) {
        Some(manager) => command(manager),
        None => PACKAGE_MANAGERS.iter().map(command).collect::<Vec<_>>().join("   or   "),
    }
}

fn is_on_path(program: &str) -> bool {
    env::var_os("PATH").is_some_and(|path| env::split_paths(&path).any(|folder| folder.join(program).is_file()))
}
