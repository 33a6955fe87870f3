//! Environments can be looked at: pictures show the state that the observations tell, and a video shows an episode.

#[path = "environment_pictures/scenes.rs"]
mod scenes;
#[path = "environment_pictures/support.rs"]
mod support;
#[path = "environment_pictures/video.rs"]
mod video;
