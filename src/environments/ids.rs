//! What the id of an environment tells by itself, and the id that was meant.

use crate::suggestion::{nearest, nearest_form};

/// The id of an environment nearest to `typed`, compared as by [`nearest`], without the prefix, which says where an
/// environment comes from, and with or without the version.
pub(crate) fn nearest_id<'a>(typed: &str, ids: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let task = |id: &'a str| id.rsplit(':').next().unwrap_or(id);
    let forms = |id: &'a str| [(task(id), id), (task(id).rsplit_once("-v").map_or(task(id), |(name, _)| name), id)];
    nearest_form(typed.rsplit(':').next().unwrap_or(typed), ids.into_iter().flat_map(forms))
}

/// Whether a name ends with a version, as the ids of Gymnasium do.
pub(crate) fn is_versioned(name: &str) -> bool {
    name.rsplit_once("-v").is_some_and(|(_, version)| version.parse::<u32>().is_ok())
}

/// Whether `word`, which stands before the colon of an id, can be a module: it is no prefix of ids, nor nearly one.
pub(crate) fn may_be_module(word: &str) -> bool {
    nearest(word, ["atari", "gym", "gymnasium", "mujoco", "python"]).is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_environment_is_recognised_without_its_prefix_and_its_version() {
        let ids = ["CartPole-v1", "mujoco:HalfCheetah-v5", "mujoco:Walker2d-v5"];
        for typed in ["halfcheetah", "Halfchetah", "HalfCheetah-v4", "mujoko:HalfCheetah-v5", "gym:half"] {
            assert_eq!(nearest_id(typed, ids), Some(ids[1]), "{typed}");
        }
        for typed in ["LunarLander-v3", "BipedalWalker-v3", "ALE/Pong-v5", "Zaxxon"] {
            assert_eq!(nearest_id(typed, ids), None, "{typed}");
        }
    }
}
