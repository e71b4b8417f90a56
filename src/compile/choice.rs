//! Selection within a budget.

use crate::model::ContextItem;

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

/// What goes into a prompt.
pub(super) struct Selected {
    pub(super) text: String,
    pub(super) items: Vec<ContextItem>,
    /// Of each candidate.
    pub(super) selections: Vec<Selection>,
}

impl Selected {
    /// None of so many candidates.
    pub(super) fn nothing(candidates: usize) -> Self {
        Self { text: String::new(), items: Vec::new(), selections: vec![Selection::NotConsidered; candidates] }
    }

    /// The candidates with their selection, as a receipt lists them.
    pub(super) fn included_first<'a, C>(&self, candidates: &'a [C]) -> impl Iterator<Item = (&'a C, Selection)> {
        let all = candidates.iter().zip(self.selections.iter().copied());
        let (ins, outs): (Vec<_>, Vec<_>) = all.partition(|(_, selection)| *selection == Selection::Included);
        ins.into_iter().chain(outs)
    }
}

pub(super) fn included<'a, C>(candidates: &'a [C], selections: &[Selection]) -> impl Iterator<Item = &'a C> {
    let all = candidates.iter().zip(selections);
    all.filter(|(_, selection)| **selection == Selection::Included).map(|(candidate, _)| candidate)
}
