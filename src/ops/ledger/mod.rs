//! The ledger: writing, reading, repairing and sharing it.

pub(crate) mod contents;
pub(crate) mod duplicates;
pub(crate) mod examine;
pub(crate) mod gc;
pub(crate) mod index;
pub(crate) mod journal;
pub(crate) mod log;
pub(crate) mod lost;
pub(crate) mod prove;
pub(crate) mod repair;
pub(crate) mod rescue;
pub(crate) mod scrub;
pub(crate) mod sync;
pub(in crate::ops) mod undone;
