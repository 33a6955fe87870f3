//! Which cores the processes of another supervisor have for themselves, as the kernel tells.

use std::collections::BTreeSet;
use std::path::Path;

use super::cores::parse_core_list;
use super::text_of;

/// The cores to which children of the process `parent` are bound, each to a single one: the cores of its learners.
/// The files of the kernel are read below `root`.
///
/// Children that may run on several cores are left out, since they can make room. A child that may run wherever its
/// parent may is not bound. The set is empty if there is no such process.
pub fn cores_bound_by(root: &Path, parent: u32) -> BTreeSet<usize> {
    let Some(of_parent) = allowed(root, parent) else { return BTreeSet::new() };
    let children = text_of(root, &format!("proc/{parent}/task/{parent}/children"));
    let masks = children.split_ascii_whitespace().filter_map(|child| allowed(root, child.parse().ok()?));
    masks.filter(|mask| mask.len() == 1 && *mask != of_parent).flatten().collect()
}

/// The cores that the kernel lets a process run on.
fn allowed(root: &Path, pid: u32) -> Option<Vec<usize>> {
    let status = text_of(root, &format!("proc/{pid}/status"));
    status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).map(parse_core_list)
}

#[cfg(test)]
mod tests {
    use super::super::fixture;
    use super::*;

    fn status(list: &str) -> String {
        format!("Name:\tsupervisor\nCpus_allowed:\tff\nCpus_allowed_list:\t{list}\nMems_allowed_list:\t0\n")
    }

    #[test]
    fn only_children_with_a_single_core_of_those_of_their_parent_are_bound() {
        let statuses = ["0-7", "0-7", "2", "3-4"].map(status);
        let root = fixture::root(&[
            ("proc/50/task/50/children", "51 52 53 99 "),
            ("proc/50/status", &statuses[0]),
            ("proc/51/status", &statuses[1]),
            ("proc/52/status", &statuses[2]),
            ("proc/53/status", &statuses[3]),
        ]);
        assert_eq!(cores_bound_by(root.path(), 50), BTreeSet::from([2]));
        assert_eq!(cores_bound_by(root.path(), 51), BTreeSet::new(), "it has no children");
        assert_eq!(cores_bound_by(root.path(), 60), BTreeSet::new(), "it is not there");
    }

    #[test]
    fn a_whole_run_within_fewer_cores_is_bound_to_none_of_them() {
        let statuses = ["0-1", "0-1"].map(status);
        let root = fixture::root(&[("proc/50/task/50/children", "51"), ("proc/50/status", &statuses[0]), ("proc/51/status", &statuses[1])]);
        assert_eq!(cores_bound_by(root.path(), 50), BTreeSet::new());
    }
}
