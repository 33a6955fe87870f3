//! What the driver tells the tuner after each window.

use super::setting::Setting;
use super::window::Window;

/// Something that happened to a process in a window.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Incident {
    /// A process crashed, or the machine was busy with something else: the window says nothing about the setting.
    Disturbed,
    /// A process that the setting asks for could not be started, or failed again and again; the message says how.
    ProcessFailed(String),
}

/// What a run did in one window, and where it stands.
#[derive(Debug, Clone, PartialEq)]
pub struct Status {
    /// Seconds since the run began, at the end of the window.
    pub wall_s: f64,
    /// Share of all its steps that the run has taken, from 0 to 1.
    pub progress: f64,
    /// What the processes did.
    pub window: Window,
    /// The setting that was in force all through the window. While processes start or end, it may not be the wanted
    /// one.
    pub in_force: Setting,
    /// Cores that the run may use.
    pub usable_cores: usize,
    /// Share of the memory that the run may use that is taken, from 0 to 1.
    pub memory_used: f64,
    /// What else happened.
    pub incident: Option<Incident>,
}
