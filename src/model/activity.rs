//! What a command is doing, for whoever waits for it.

use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;

use super::plural;

/// Written by those who do it, read by those who show it. Clones share it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Activity(Arc<Mutex<Doing>>);

#[derive(Clone, Debug, Default)]
pub(crate) struct Doing {
    /// Empty: nothing that is worth a word.
    what: String,
    count: usize,
    of: Option<usize>,
    noun: &'static str,
}

impl Activity {
    /// Begins something whose steps cannot be counted.
    pub(crate) fn begin(&self, what: impl Into<String>) {
        *self.0.lock() = Doing { what: what.into(), ..Doing::default() };
    }

    /// How much is done, of how much if that is known.
    pub(crate) fn at(&self, what: &'static str, count: usize, of: Option<usize>, noun: &'static str) {
        let mut doing = self.0.lock();
        if doing.what != what {
            what.clone_into(&mut doing.what);
        }
        (doing.count, doing.of, doing.noun) = (count, of, noun);
    }

    pub(crate) fn now(&self) -> Doing {
        self.0.lock().clone()
    }
}

impl Doing {
    pub(crate) fn is_nothing(&self) -> bool {
        self.what.is_empty()
    }
}

impl fmt::Display for Doing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { what, count, of, noun } = self;
        match (noun.is_empty(), of) {
            (true, _) => f.write_str(what),
            (false, None) => write!(f, "{what}: {}", plural(*count, noun)),
            (false, Some(of)) => write!(f, "{what}: {count} of {}", plural(*of, noun)),
        }
    }
}
