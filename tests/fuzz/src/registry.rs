//! Reads a record of the registry of runs.

use std::os::unix::fs::PermissionsExt;
use std::sync::LazyLock;

use shoal::rendezvous::Registry;

static REGISTRY: LazyLock<Registry> = LazyLock::new(|| {
    let folder = super::folder().join("registry");
    std::fs::create_dir_all(&folder).expect("room");
    std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o700)).expect("our own folder");
    Registry::open_at(folder).expect("a registry")
});

/// List the runs of a registry that has a record with this `content`.
pub fn read(content: &[u8]) {
    let pid = std::process::id();
    std::fs::write(REGISTRY.folder().join(format!("{pid}.json")), content).expect("room");
    let _ = REGISTRY.find(pid);
    let _ = REGISTRY.list();
}
