//! The image games keep their rules: in recordings of others, move by move, and whatever is played.

#[path = "image_games/catch.rs"]
mod catch;
#[path = "image_games/play.rs"]
mod play;
#[path = "image_games/rally.rs"]
mod rally;
#[path = "image_games/recordings.rs"]
mod recordings;

#[path = "support"]
mod support {
    pub(crate) mod recording;
}
