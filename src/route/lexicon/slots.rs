//! The hash of terms, shared by the build and the program, and equal on all machines.

/// A term is at the slot of its hash, or in one of the next.
pub(crate) const SLOTS: usize = 8192;

/// FNV-1a.
pub(crate) fn hash(term: &str) -> usize {
    let hash = term.bytes().fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    (hash ^ (hash >> 16)) as usize % SLOTS
}
