//! Suggests a known name for a mistyped one.

/// The known name that a mistyped one is most like; `least` is from 0 to 1, for equal names.
pub(crate) fn nearest<'n>(name: &str, least: f64, known: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    known
        .map(|known| (strsim::normalized_damerau_levenshtein(name, known), known))
        .filter(|(likeness, _)| *likeness >= least)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, known)| known)
}
