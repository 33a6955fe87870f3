//! Which cores the other runs of this user have bound single processes to.

use std::collections::BTreeSet;
use std::fmt;
use std::path::Path;

use crate::machine::affinity::cores_bound_by;
use crate::machine::cores::core_list;
use crate::rendezvous::{Liveliness, Registry};

/// A living run with processes that are bound to cores.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Neighbour {
    /// Process id of its supervisor.
    pub pid: u32,
    /// The environment that the run trains in.
    pub environment: String,
    /// The cores.
    pub cores: BTreeSet<usize>,
}

impl fmt::Display for Neighbour {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cores: Vec<usize> = self.cores.iter().copied().collect();
        write!(formatter, "the run of {} ({}) is bound to {}", self.pid, self.environment, core_list(&cores))
    }
}

/// The runs in `registry` that have bound processes to cores, but for the one of the supervisor `own`. What the runs of other containers
/// have bound cannot be seen: here their process ids are those of other programs. The files of the kernel are those below `root`.
pub(super) fn neighbours(registry: &Registry, root: &Path, own: u32) -> Vec<Neighbour> {
    let living = registry.list().into_iter().filter(|entry| entry.state == Liveliness::Running);
    let visible = living.map(|entry| entry.record).filter(|record| record.identity.is_of_these_namespaces());
    let others = visible.filter(|record| record.identity.supervisor_pid != own);
    let bound = others.map(|record| {
        let pid = record.identity.supervisor_pid;
        Neighbour { pid, environment: record.environment, cores: cores_bound_by(root, pid) }
    });
    bound.filter(|neighbour| !neighbour.cores.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;
    use std::process::{Child, Command};

    use super::*;
    use crate::rendezvous::RegisteredRun;
    use crate::segment::pidfd::start_time;
    use crate::segment::{Identity, Segment, SegmentSizes};

    /// A process that lives as long as the value.
    struct Living(Child);

    impl Living {
        fn start() -> Self {
            Self(Command::new("sleep").arg("600").spawn().unwrap())
        }
    }

    impl Drop for Living {
        fn drop(&mut self) {
            self.0.kill().unwrap();
            self.0.wait().unwrap();
        }
    }

    /// Writes the record of a run of the supervisor `pid`, else like `identity`, into the folder of a registry.
    fn announce(registry: &Registry, mut identity: Identity, pid: u32) {
        (identity.supervisor_pid, identity.supervisor_start_time) = (pid, start_time(pid).unwrap_or(0));
        let record = RegisteredRun {
            identity,
            segment: format!("/shoal-none-{pid}"),
            socket: registry.socket_path(pid),
            run_folder: "runs/made-up".into(),
            environment: "CartPole-v1".into(),
            algorithm: "dqn".into(),
            program_version: "0".into(),
        };
        std::fs::write(registry.folder().join(format!("{pid}.json")), serde_json::to_string(&record).unwrap()).unwrap();
    }

    /// The files of a supervisor that may use cores 0 to 3 and of its only child, which may use those of `list`.
    fn bind(root: &Path, supervisor: u32, child: u32, list: &str) {
        let write = |name: String, text: String| {
            let path = root.join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        write(format!("proc/{supervisor}/task/{supervisor}/children"), child.to_string());
        write(format!("proc/{supervisor}/status"), "Cpus_allowed_list:\t0-3\n".into());
        write(format!("proc/{child}/status"), format!("Cpus_allowed_list:\t{list}\n"));
    }

    #[test]
    fn living_runs_of_others_with_bound_processes_are_neighbours() {
        let folder = tempfile::tempdir().unwrap();
        let registry = Registry::open_at(folder.path().join("shoal")).unwrap();
        let segment = Segment::of_sizes(SegmentSizes::of_rows(1, 64));
        let [bound, unbound, own] = [(); 3].map(|()| Living::start());
        let ended = {
            let ended = Living::start();
            ended.0.id()
        };
        for (pid, list) in [(bound.0.id(), "2"), (unbound.0.id(), "0-3"), (own.0.id(), "3"), (ended, "0")] {
            announce(&registry, segment.identity().clone(), pid);
            bind(folder.path(), pid, pid + 4_000_000, list);
        }
        let found = neighbours(&registry, folder.path(), own.0.id());
        assert_eq!(found, [Neighbour { pid: bound.0.id(), environment: "CartPole-v1".into(), cores: BTreeSet::from([2]) }]);
    }

    #[test]
    fn a_run_of_another_container_is_not_looked_up_among_the_processes_of_this_one() {
        let folder = tempfile::tempdir().unwrap();
        let registry = Registry::open_at(folder.path().join("shoal")).unwrap();
        let segment = Segment::of_sizes(SegmentSizes::of_rows(1, 64));
        let of_its_id = Living::start();
        let pid = of_its_id.0.id();
        let identity = Identity { pid_namespace: segment.identity().pid_namespace ^ 1, ..segment.identity().clone() };
        announce(&registry, identity, pid);
        bind(folder.path(), pid, pid + 4_000_000, "2");
        let _listener = UnixListener::bind(registry.socket_path(pid)).unwrap();
        assert_eq!(registry.find(pid).unwrap().state, Liveliness::Running);
        assert_eq!(neighbours(&registry, folder.path(), 0), []);
    }
}
