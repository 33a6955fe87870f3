//! Environments can be looked at: pictures show the state that the observations tell, and a film shows an episode.

#[path = "environment_pictures/film.rs"]
mod film;
#[path = "environment_pictures/scenes.rs"]
mod scenes;
#[path = "environment_pictures/support.rs"]
mod support;
