//! What the MuJoCo environments leave alone in the process that steps them.
//!
//! One test, because it counts the threads of its process and changes its folder.

#![cfg(feature = "mujoco")]

use std::env;
use std::error::Error;
use std::fs;

use shoal::environments::{Action, ActionSpace, make, names, spec};

fn threads() -> std::io::Result<usize> {
    Ok(fs::read_dir("/proc/self/task")?.count())
}

#[test]
fn environments_start_no_threads_write_no_files_and_step_without_allocating() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    env::set_current_dir(&folder)?;
    let before = threads()?;
    for id in names().filter(|name| name.starts_with("mujoco:")) {
        spec(id)?;
        let mut environment = make(id)?;
        let mut observation = vec![0.0; environment.spec().observation.len()];
        let actions: Vec<f32> = (0..100).map(|index| (index as f32 * 0.37).sin()).collect();
        let ActionSpace::Box { low, .. } = environment.spec().action.clone() else {
            return Err("a task of MuJoCo takes real numbers".into());
        };
        environment.reset(Some(0), (&mut observation).into())?;
        let seen = allocation_counter::measure(|| {
            for action in actions.windows(low.len()) {
                let step = environment.step(Action::Continuous(action), (&mut observation).into()).expect("the action is valid");
                if step.ended() {
                    environment.reset(None, (&mut observation).into()).expect("an environment can always be reset");
                }
            }
        });
        assert_eq!(seen.count_total, 0, "{id}");
        assert_eq!(threads()?, before, "{id}");
    }
    let written: Vec<_> = fs::read_dir(&folder)?.filter_map(Result::ok).map(|entry| entry.file_name()).collect();
    assert!(written.is_empty(), "{written:?}");
    env::set_current_dir("/")?;
    Ok(())
}
