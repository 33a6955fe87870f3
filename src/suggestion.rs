//! "Did you mean": the known name nearest to what was typed.

/// The candidate nearest to `typed`, whatever the case of letters, among those that `typed` may be a slip of the
/// fingers for (one edit for every three letters or so), or the beginning of.
pub(crate) fn nearest<'a>(typed: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    nearest_form(typed, candidates.into_iter().map(|candidate| (candidate, candidate)))
}

/// The id of an environment nearest to `typed`, compared as by [`nearest`] without the prefix, which says where an
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

/// The candidate that has a form nearest to `typed`. `candidates` are pairs of a form and its candidate.
fn nearest_form<'a>(typed: &str, candidates: impl IntoIterator<Item = (&'a str, &'a str)>) -> Option<&'a str> {
    let typed = typed.to_lowercase();
    let letters = typed.chars().count();
    let near = candidates.into_iter().filter_map(|(form, candidate)| {
        let form = form.to_lowercase();
        let edits = strsim::damerau_levenshtein(&typed, &form);
        let begins = letters >= LEAST_BEGINNING && form.starts_with(&typed);
        (edits <= ((letters + 1) / 3).max(1) || begins).then_some((edits, candidate))
    });
    near.min_by_key(|(edits, _)| *edits).map(|(_, candidate)| candidate)
}

/// The fewest letters that may be the beginning of a name.
const LEAST_BEGINNING: usize = 4;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_of_the_fingers_is_recognised_and_another_word_is_not() {
        assert_eq!(nearest("batch_sise", ["batch_size", "count"]), Some("batch_size"));
        assert_eq!(nearest("Hubre", ["huber", "mse"]), Some("huber"));
        assert_eq!(nearest("momentum", ["batch_size", "count"]), None);
    }

    #[test]
    fn a_name_is_recognised_by_its_beginning() {
        assert_eq!(nearest("pendulum", ["cartpole_dqn", "pendulum_ddpg", "pendulum_sac"]), Some("pendulum_sac"));
        assert_eq!(nearest("pen", ["cartpole_dqn", "pendulum_ddpg"]), None, "three letters begin too much");
    }

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
