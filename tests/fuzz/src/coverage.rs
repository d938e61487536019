//! Code that an input reached: the compiler's own counters, where it was told to count.

#![cfg_attr(
    guided,
    expect(
        unsafe_code,
        reason = "the counters are memory of the compiler's runtime"
    )
)]

/// Code that was ever reached, and how often: a counter and the class of its count, as one bit.
pub(crate) struct Coverage {
    seen: Vec<u8>,
}

impl Coverage {
    pub(crate) fn new() -> Self {
        Self {
            seen: vec![0; counters().len()],
        }
    }

    /// Whether there are counters at all.
    pub(crate) fn is_guided(&self) -> bool {
        !self.seen.is_empty()
    }

    /// Places that were reached at least once.
    pub(crate) fn reached(&self) -> usize {
        self.seen.iter().filter(|bits| **bits != 0).count()
    }

    /// Runs it, and says whether it reached a place it never did, or much more often than before.
    pub(crate) fn is_new(&mut self, run: impl FnOnce()) -> bool {
        reset();
        run();
        let mut new = false;
        for (seen, count) in self.seen.iter_mut().zip(counters()) {
            let bit = class(*count);
            new |= *seen & bit != bit;
            *seen |= bit;
        }
        new
    }
}

/// A bit for how often: never, 1, 2, 3, up to 7, 15, 31, 127, more.
fn class(count: u64) -> u8 {
    match count {
        0 => 0,
        1 => 1,
        2 => 2,
        3 => 4,
        4..8 => 8,
        8..16 => 16,
        16..32 => 32,
        32..128 => 64,
        _ => 128,
    }
}

#[cfg(guided)]
unsafe extern "C" {
    fn __llvm_profile_begin_counters() -> *const u64;
    fn __llvm_profile_end_counters() -> *const u64;
    fn __llvm_profile_reset_counters();
}

#[cfg(guided)]
fn counters() -> &'static [u64] {
    // SAFETY: both come from the runtime that `-C instrument-coverage` links, and bound one array
    // of counters that lives as long as the program. Only the one thread that fuzzes counts while
    // it is looked at; a count that another thread changes meanwhile is a wrong number at worst.
    unsafe {
        let begin = __llvm_profile_begin_counters();
        let end = __llvm_profile_end_counters();
        let length = (end.addr() - begin.addr()) / size_of::<u64>();
        std::slice::from_raw_parts(begin, length)
    }
}

#[cfg(guided)]
fn reset() {
    // SAFETY: it sets the counters to nought, which nobody borrows now.
    unsafe { __llvm_profile_reset_counters() }
}

#[cfg(not(guided))]
fn counters() -> &'static [u64] {
    &[]
}

#[cfg(not(guided))]
fn reset() {}
