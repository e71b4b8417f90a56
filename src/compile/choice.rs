//! Selection within a budget.

/// The result for a candidate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Selection {
    Included,
    /// Excluded before considering its size.
    NotConsidered,
    NoRoom,
}

/// Takes candidates in order as long as they fit. A smaller one may fit after a larger one did not.
pub(super) fn choose(sizes: impl Iterator<Item = Option<usize>>, mut room: usize) -> Vec<Selection> {
    sizes
        .map(|size| match size {
            None => Selection::NotConsidered,
            Some(size) => match room.checked_sub(size) {
                Some(left) => {
                    room = left;
                    Selection::Included
                }
                None => Selection::NoRoom,
            },
        })
        .collect()
}
