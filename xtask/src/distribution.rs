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

/// A package manager: its program, how it fetches its list of packages if it does not do so by itself, how it installs, and what it calls
/// the C++ compiler, Python with pip and the Python that programs can link.
struct PackageManager {
    program: &'static str,
    fetch_list: Option<&'static str>,
    install: &'static str,
    cpp_compiler: &'static str,
    python_with_pip: &'static str,
    python_to_embed: &'static str,
}

const PACKAGE_MANAGERS: [PackageManager; 4] = [
    PackageManager {
        program: "apt-get",
        // The images of containers come without the list.
        fetch_list: Some("apt-get update"),
        install: "apt-get install --yes",
        cpp_compiler: "g++",
        python_with_pip: "python3 python3-pip",
        python_to_embed: "python3-dev python3-venv",
    },
    PackageManager {
        program: "dnf",
        fetch_list: None,
        install: "dnf install --assumeyes",
        cpp_compiler: "gcc-c++",
        python_with_pip: "python3 python3-pip",
        python_to_embed: "python3-devel",
    },
    PackageManager {
        program: "pacman",
        fetch_list: None,
        install: "pacman -S --needed",
        cpp_compiler: "gcc",
        python_with_pip: "python python-pip",
        python_to_embed: "python",
    },
    PackageManager {
        program: "zypper",
        fetch_list: None,
        install: "zypper install",
        cpp_compiler: "gcc-c++",
        python_with_pip: "python3 python3-pip",
        python_to_embed: "python3-devel",
    },
];

impl PackageManager {
    /// The command that installs `tool`; `privilege` is what makes one root's.
    fn command(&self, tool: Tool, privilege: &str) -> String {
        let packages = match tool {
            Tool::CppCompiler => self.cpp_compiler,
            Tool::PythonWithPip => self.python_with_pip,
            Tool::PythonToEmbed => self.python_to_embed,
        };
        let fetch_list = self.fetch_list.map_or_else(String::new, |fetch_list| format!("{privilege}{fetch_list} && "));
        format!("{fetch_list}{privilege}{} {packages}", self.install)
    }
}

/// The command to type for `tool`: for the package manager that is on this machine, or for all known ones.
pub(crate) fn install_command(tool: Tool) -> String {
    let privilege = if rustix::process::geteuid().is_root() { "" } else { "sudo " };
    let command = |manager: &PackageManager| manager.command(tool, privilege);
    match PACKAGE_MANAGERS.iter().find(|manager| is_on_path(manager.program)) {
        Some(manager) => command(manager),
        None => PACKAGE_MANAGERS.iter().map(command).collect::<Vec<_>>().join("   or   "),
    }
}

fn is_on_path(program: &str) -> bool {
    env::var_os("PATH").is_some_and(|path| env::split_paths(&path).any(|folder| folder.join(program).is_file()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn apt_is_told_to_fetch_its_list_of_packages_first() {
        let [apt, dnf, ..] = PACKAGE_MANAGERS;
        assert_eq!(apt.command(Tool::CppCompiler, "sudo "), "sudo apt-get update && sudo apt-get install --yes g++");
        assert_eq!(apt.command(Tool::PythonWithPip, ""), "apt-get update && apt-get install --yes python3 python3-pip");
        assert_eq!(dnf.command(Tool::CppCompiler, "sudo "), "sudo dnf install --assumeyes gcc-c++");
    }
}
