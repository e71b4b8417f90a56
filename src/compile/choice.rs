//! Choosing within a budget.

/// What became of a candidate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fit {
    In,
    /// There was a reason not even to offer it.
    NotOffered,
    NoRoom,
}

/// Takes candidates in their order as long as they fit; a smaller one may fit where a larger one did not.
pub(super) fn choose(sizes: impl Iterator<Item = Option<usize>>, mut room: usize) -> Vec<Fit> {
    sizes
        .map(|size| match size {
            None => Fit::NotOffered,
            Some(size) => match room.checked_sub(size) {
                Some(left) => {
                    room = left;
                    Fit::In
                }
                None => Fit::NoRoom,
            },
        })
        .collect()
}
