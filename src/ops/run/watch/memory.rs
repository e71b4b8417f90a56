//! What a watch holds of memory in a long day.

/// Lets all threads share one heap, of which glibc gives back what is free.
///
/// By default each thread that reads or writes the ledger gets a heap of its own and keeps in it the most that it ever
/// needed. With eight sessions and 300 messages that were 17 MB in place of 8 (`RssAnon`, debug build, 2 cores).
#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[expect(unsafe_code, reason = "glibc's allocator has no other way to be told")]
pub(super) fn share_one_heap() {
    // SAFETY: sets a limit inside the allocator; it reads and writes no memory of ours.
    unsafe { libc::mallopt(libc::M_ARENA_MAX, 1) };
}

#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub(super) fn share_one_heap() {}
