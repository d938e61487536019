//! Numbers that look random and follow from a seed.

/// Xorshift with a multiplication (`xorshift64*`): small, fast, and good enough to make choices
/// with.
#[derive(Debug, Clone)]
pub(super) struct Random(u64);

impl Random {
    /// The sequence that belongs to a seed. Seeds that are neighbours have nothing in common.
    pub(super) fn new(seed: u64) -> Self {
        let mixed = (seed ^ (seed >> 31)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        // The one state that it never leaves is 0.
        let mut random = Self((mixed ^ (mixed >> 29)).max(1));
        random.number();
        random
    }

    /// The next number.
    pub(super) fn number(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// A number below `end`; 0 if `end` is 0.
    pub(super) fn below(&mut self, end: u64) -> u64 {
        (self.number() >> 8).checked_rem(end).unwrap_or(0)
    }

    /// An index of something of this length.
    pub(super) fn index(&mut self, length: usize) -> usize {
        usize::try_from(self.below(length as u64)).unwrap_or(0)
    }

    /// True once in `times`.
    pub(super) fn once_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }

    /// One of these, if there is any.
    pub(super) fn one_of(&mut self, choices: &[usize]) -> Option<usize> {
        choices.get(self.index(choices.len())).copied()
    }
}
