//! What a run leaves behind and shows: the run folder and its files, the console, and how they bear kills, full disks and stuck readers.

#[path = "telemetry/console.rs"]
mod console;
#[path = "telemetry/files.rs"]
mod files;
#[path = "telemetry/folder.rs"]
mod folder;
#[path = "telemetry/page.rs"]
mod page;
#[path = "telemetry/support.rs"]
mod support;
