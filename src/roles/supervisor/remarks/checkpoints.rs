//! Remarks on checkpoints: a run that writes none to go on from, a disk that holds fewer than are kept, and a kernel that
//! leaves nobody to write the last one.

use indicatif::BinaryBytes;

use crate::config::{Config, Loaded, Resume};
use crate::machine::Machine;

/// A run of so many environment steps may take minutes that nobody wants to lose.
const LONG_RUN_STEPS: u64 = 50_000;

/// A run that is to go on by the same command may be configured to write no checkpoint, and a long one of a single process
/// writes none unless it is told to.
pub(super) fn no_checkpoint(config: &Config) -> Option<String> {
    let key = config.key_without_checkpoints()?;
    let told = format!("with {key} \"none\" no checkpoint is written to go on from; set it to a number");
    match config.run.resume {
        Resume::Auto => Some(format!("run.resume is \"auto\", and {told}")),
        Resume::Never => (config.is_synchronous() && config.run.stop_env_steps >= LONG_RUN_STEPS).then_some(told),
    }
}

/// A disk that has `free` bytes for checkpoints of up to `bytes` each may hold fewer of them than it has to: those that are kept, of which
/// the oldest goes before another is written where there is no room beside it, but never the only one.
pub(in crate::roles::supervisor) fn few_checkpoints_fit(config: &Config, bytes: u64, free: u64) -> Option<String> {
    let needed = config.checkpoint.keep_last.max(2) as u64;
    let fit = free / bytes.max(1);
    (config.key_without_checkpoints().is_none() && fit < needed).then(|| {
        let written = if fit == 0 { "none is written".to_owned() } else { format!("later ones are written only if it holds {needed}") };
        format!(
            "checkpoints take up to {} each, and the disk of run.folder has room for {fit}: {written} (checkpoint.keep_last, \
             checkpoint.replay)",
            BinaryBytes(bytes)
        )
    })
}

/// Where memory that runs out costs the supervisor and the sentinel, too, a run may be lost again and again before its first checkpoint.
/// Who has set how often they are written knows what may be lost.
pub(in crate::roles::supervisor) fn killed_as_one(loaded: &Loaded, machine: &Machine) -> Option<String> {
    let is_left = !loaded.config.is_synchronous() && !loaded.is_set("checkpoint.interval_s");
    let interval_s = loaded.config.checkpoint.interval_s.filter(|_| machine.is_killed_as_one && is_left)?;
    Some(format!(
        "if memory runs out, the kernel kills all processes of this control group at once (memory.oom.group is 1), and what came after the \
         newest checkpoint is lost; set checkpoint.interval_s, which is {interval_s}, to what may be lost"
    ))
}

#[cfg(test)]
mod tests {
    use super::super::tests::about;
    use super::*;

    #[test]
    fn a_run_that_is_to_go_on_and_writes_no_checkpoint_is_told_which_key_has_it_write_some() {
        let resumed = |actors, interval_s, interval_steps| {
            about(|config| {
                (config.run.resume, config.actor.count) = (Resume::Auto, actors);
                (config.checkpoint.interval_s, config.checkpoint.synchronous_interval_steps) = (interval_s, interval_steps);
            })
        };
        assert_eq!((resumed(1, Some(600.0), None), resumed(0, None, Some(1_000))), (String::new(), String::new()));
        let [alone, synchronous] = [resumed(1, None, Some(1_000)), resumed(0, Some(600.0), None)];
        assert!(alone.contains("with checkpoint.interval_s \"none\" no checkpoint is written"), "{alone}");
        assert!(synchronous.contains("with checkpoint.synchronous_interval_steps \"none\" no checkpoint"), "{synchronous}");
        assert_eq!(about(|config| config.checkpoint.interval_s = None), "", "nobody asked it to go on");
    }

    #[test]
    fn a_long_run_of_one_process_is_told_that_it_writes_no_checkpoint() {
        let of_steps = |steps| about(|config| (config.actor.count, config.run.stop_env_steps) = (0, steps));
        let long = "with checkpoint.synchronous_interval_steps \"none\" no checkpoint is written to go on from; set it to a number";
        assert_eq!((of_steps(LONG_RUN_STEPS), of_steps(LONG_RUN_STEPS - 1)), (long.to_owned(), String::new()));
    }

    #[test]
    fn a_run_whose_processes_the_kernel_kills_at_once_is_told_of_the_interval_that_nobody_has_set() {
        let mut machine = Machine::detect();
        let told = |machine: &Machine, set: &str| {
            let text = format!("environment.id = \"CartPole-v1\"\nalgorithm.name = \"dqn\"\n{set}");
            killed_as_one(&Config::parse(&text, "task.toml", &[]).unwrap(), machine)
        };
        machine.is_killed_as_one = true;
        let default = told(&machine, "").unwrap();
        assert!(default.contains("(memory.oom.group is 1)") && default.contains("checkpoint.interval_s, which is 600, to"), "{default}");
        for set in ["checkpoint.interval_s = 60.0", "checkpoint.interval_s = \"none\"", "actor.count = 0"] {
            assert_eq!(told(&machine, set), None, "{set}");
        }
        machine.is_killed_as_one = false;
        assert_eq!(told(&machine, ""), None);
    }

    #[test]
    fn a_disk_for_fewer_checkpoints_than_are_kept_and_for_fewer_than_two_is_named() {
        let mut config = Config::for_environment("CartPole-v1");
        config.checkpoint.keep_last = 3;
        assert_eq!(few_checkpoints_fit(&config, 1 << 20, 3 << 20), None, "the oldest goes before the fourth is written");
        let told = few_checkpoints_fit(&config, 1 << 20, (3 << 20) - 1).unwrap();
        assert!(told.contains("up to 1.00 MiB each, and the disk of run.folder has room for 2: ") && told.contains("holds 3 ("), "{told}");
        config.checkpoint.keep_last = 1;
        assert!(few_checkpoints_fit(&config, 1 << 20, 2 << 20).is_none() && few_checkpoints_fit(&config, 1 << 20, 1 << 20).is_some());
        assert!(few_checkpoints_fit(&config, 1 << 20, 100).unwrap().contains("has room for 0: none is written ("));
        config.checkpoint.interval_s = None;
        assert_eq!(few_checkpoints_fit(&config, 1 << 20, 0), None, "it writes none");
    }
}
