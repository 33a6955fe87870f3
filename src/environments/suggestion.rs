//! The name that was probably meant.

/// Similarity (0 to 1, Jaro-Winkler) from which a name is taken for a misspelling of another.
const SUGGESTION_SIMILARITY: f64 = 0.8;

/// The name most like `asked`, if one is like it.
pub(super) fn most_similar<'a>(asked: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    most_similar_by(str::to_owned, asked, names)
}

/// The id of an environment most like `asked`, if one is like it. The prefix says where an environment comes from; which one was meant
/// shows in the rest.
pub(super) fn most_similar_id<'a>(asked: &str, ids: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    most_similar_by(|id| id.rsplit(':').next().unwrap_or(id).to_lowercase(), asked, ids)
}

fn most_similar_by<'a>(compared: impl Fn(&str) -> String, asked: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let asked = compared(asked);
    names
        .into_iter()
        .map(|name| (strsim::jaro_winkler(&asked, &compared(name)), name))
        .filter(|(similarity, _)| *similarity >= SUGGESTION_SIMILARITY)
        .max_by(|(left, _), (right, _)| left.total_cmp(right))
        .map(|(_, name)| name)
}
