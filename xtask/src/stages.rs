//! Runs a list of commands one after the other, with one line and a time for each, and stops at the first failure.

use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, bail};

use crate::report::{duration, say};
use crate::skipped::Skipped;

/// One command of a list.
pub(crate) struct Stage {
    pub(crate) name: &'static str,
    pub(crate) command: Command,
}

/// Runs `stages` in order, up to the first that fails. The error then names that stage and the command that repeats it alone, which is
/// `rerun` followed by the stage's name; the stages that did not run are printed. At the end it says what tests have skipped.
pub(crate) fn run(stages: Vec<Stage>, rerun: &str) -> Result<()> {
    let skipped = Skipped::new()?;
    let result = run_in_order(stages, rerun, &skipped);
    if let Some(summary) = skipped.summary() {
        say(summary);
    }
    result
}

fn run_in_order(stages: Vec<Stage>, rerun: &str, skipped: &Skipped) -> Result<()> {
    let names: Vec<_> = stages.iter().map(|stage| stage.name).collect();
    let start = Instant::now();
    let mut lines = Vec::new();
    for (index, Stage { name, mut command }) in stages.into_iter().enumerate() {
        let typed = shown(&command);
        say(format!("\n[{}/{}] {name}: {typed}", index + 1, names.len()));
        skipped.hear(&mut command);
        let stage_start = Instant::now();
        let status = command.status().with_context(|| format!("`{typed}` does not start"))?;
        let line = format!("{name:<24} {:>12}", duration(stage_start.elapsed()));
        if !status.success() {
            say(summary(&lines));
            say(format!("  FAILED  {line}   ({status})"));
            if !names[index + 1..].is_empty() {
                say(format!("  not run {}", names[index + 1..].join(", ")));
            }
            bail!("the stage `{name}` failed. Repeat it alone with:  {rerun} {name}");
        }
        say(format!("[{}/{}] {name}: passed in {}", index + 1, names.len(), duration(stage_start.elapsed())));
        lines.push(line);
    }
    say(summary(&lines));
    say(format!("All {} stages passed in {}.", names.len(), duration(start.elapsed())));
    Ok(())
}

fn summary(lines: &[String]) -> String {
    lines.iter().map(|line| format!("\n  passed  {line}")).collect()
}

/// The command as it would be typed.
fn shown(command: &Command) -> String {
    let variables =
        command.get_envs().filter_map(|(name, value)| Some(format!("{}=\"{}\" ", name.display(), value?.display()))).collect::<String>();
    let program = std::path::Path::new(command.get_program()).file_name().unwrap_or(command.get_program()).display();
    let arguments = command.get_args().map(|argument| format!(" {}", argument.display())).collect::<String>();
    format!("{variables}{program}{arguments}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stage(name: &'static str, script: &str) -> Stage {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        Stage { name, command }
    }

    #[test]
    fn stages_after_a_failure_do_not_run() {
        let folder = tempfile::tempdir().unwrap();
        let mark = |name: &str| folder.path().join(name);
        let touch = |name: &str| format!("touch '{}'", mark(name).display());
        let error =
            run(vec![stage("first", &touch("first")), stage("second", "exit 3"), stage("third", &touch("third"))], "again").unwrap_err();
        assert_eq!(error.to_string(), "the stage `second` failed. Repeat it alone with:  again second");
        assert!(mark("first").exists());
        assert!(!mark("third").exists());
    }

    #[test]
    fn what_stages_skip_is_told_by_reason_also_after_a_failure() {
        let skip = |reason: &str| format!("echo {reason} >> \"$SHOAL_TEST_SKIPPED\"");
        let skipped = Skipped::new().unwrap();
        let second = format!("{}; {}; exit 3", skip("no namespace"), skip("no browser"));
        run_in_order(vec![stage("first", &skip("no namespace")), stage("second", &second)], "again", &skipped).unwrap_err();
        let summary = skipped.summary().unwrap();
        assert!(summary.ends_with("(3):\n  skipped   1 x no browser\n  skipped   2 x no namespace"), "{summary}");
    }

    #[test]
    fn a_shown_command_can_be_typed() {
        let mut command = Command::new("/somewhere/cargo");
        command.arg("doc").env("RUSTDOCFLAGS", "-D warnings").env_remove("LIBTORCH");
        assert_eq!(shown(&command), "RUSTDOCFLAGS=\"-D warnings\" cargo doc");
    }
}
