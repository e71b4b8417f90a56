use std::collections::HashMap;

use similar::algorithms::{Capture, Compact, Replace, myers};
use similar::udiff::UnifiedHunkHeader;
use similar::{Change, DiffOp, group_diff_ops};

/// The lines by which two texts differ. It calls one algorithm on numbers: `similar::TextDiff` brings every algorithm for
/// every kind of text, 0.25 MB of the binary.
pub(crate) struct LineDiff<'a> {
    old: Vec<&'a str>,
    new: Vec<&'a str>,
    operations: Vec<DiffOp>,
}

impl<'a> LineDiff<'a> {
    pub(crate) fn new(old: &'a str, new: &'a str) -> Self {
        let (old, new): (Vec<_>, Vec<_>) = (old.split_inclusive('\n').collect(), new.split_inclusive('\n').collect());
        let mut known: HashMap<&str, usize> = HashMap::new();
        let mut number = |line: &&'a str| {
            let next = known.len();
            *known.entry(*line).or_insert(next)
        };
        let (before, after): (Vec<_>, Vec<_>) =
            (old.iter().map(&mut number).collect(), new.iter().map(&mut number).collect());
        let mut found = Compact::new(Replace::new(Capture::new()), &before, &after);
        let Ok(()) = myers::diff(&mut found, &before, 0..before.len(), &after, 0..after.len());
        Self { old, new, operations: found.into_inner().into_inner().into_ops() }
    }

    /// The changes with `context` unchanged lines around them, each hunk with its header in the unified format.
    pub(crate) fn hunks(&self, context: usize) -> impl Iterator<Item = (UnifiedHunkHeader, Vec<Change<&'a str>>)> {
        group_diff_ops(self.operations.clone(), context).into_iter().map(|hunk| {
            let changes = hunk.iter().flat_map(|part| part.iter_changes(&self.old, &self.new)).collect();
            (UnifiedHunkHeader::new(&hunk), changes)
        })
    }

    /// In the unified format, without a header; empty if the texts are equal.
    pub(crate) fn unified(&self, context: usize) -> String {
        let mut text = String::new();
        for (header, changes) in self.hunks(context) {
            text.push_str(&format!("{header}\n"));
            for change in changes {
                let line = change.value();
                let end = if line.ends_with('\n') { "" } else { "\n\\ No newline at end of file\n" };
                text.push_str(&format!("{}{line}{end}", change.tag()));
            }
        }
        text
    }
}
