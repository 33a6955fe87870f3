//! The native part of the Python package `shoal`: NumPy arrays in, NumPy arrays out, around `shoal::standalone`; and the program `shoal`.
//!
//! Everything that takes time happens with the interpreter's lock released. The Python files beside this crate define the
//! exceptions, fields and options.

mod array;
mod batch;
mod errors;
mod input;
mod options;
mod policy;
mod program;
mod replay;
mod sum_tree;

use pyo3::prelude::*;

#[pymodule(gil_used = true)]
mod _native {
    use pyo3::prelude::*;

    #[pymodule_export]
    use super::batch::Batch;
    #[pymodule_export]
    use super::policy::{Policy, statistics};
    #[pymodule_export]
    use super::program::{default_variables, found_folder, goes_on, run_folder, run_program, settle, supervisor_of};
    #[pymodule_export]
    use super::replay::Replay;
    #[pymodule_export]
    use super::sum_tree::SumTree;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        // Begun here and not at its first use: if another thread forked in the middle of that, the child would wait forever for it to end.
        shoal::segment::system::count_forks();
        module.add("__version__", shoal::machine::software::VERSION)
    }
}
