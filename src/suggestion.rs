//! "Did you mean": the known name nearest to what was typed.

/// The candidate nearest to `typed`, whatever the case of letters, among those that `typed` may be a slip of the
/// fingers for (one edit for every three letters or so), or the beginning of.
pub(crate) fn nearest<'a>(typed: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    nearest_form(typed, candidates.into_iter().map(|candidate| (candidate, candidate)))
}

/// The candidate that has a form nearest to `typed`. `candidates` are pairs of a form and its candidate.
pub(crate) fn nearest_form<'a>(typed: &str, candidates: impl IntoIterator<Item = (&'a str, &'a str)>) -> Option<&'a str> {
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
}
