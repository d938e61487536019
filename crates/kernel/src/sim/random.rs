//! Pseudorandom numbers that follow from a seed.

/// The `xorshift64*` generator (xorshift with a multiplication): small, fast, and good enough to
/// make choices with.
#[derive(Debug, Clone)]
pub(super) struct Random(u64);

impl Random {
    /// Creates a generator from a seed. Neighbouring seeds give unrelated sequences.
    pub(super) fn new(seed: u64) -> Self {
        let mixed = (seed ^ (seed >> 31)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        // The one state that the generator never leaves is 0.
        let mut random = Self((mixed ^ (mixed >> 29)).max(1));
        random.number();
        random
    }

    /// Returns the next number.
    pub(super) fn number(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// Returns a number below `end`; 0 if `end` is 0.
    pub(super) fn below(&mut self, end: u64) -> u64 {
        (self.number() >> 8).checked_rem(end).unwrap_or(0)
    }

    /// Returns an index into something of this length; 0 if it is empty.
    pub(super) fn index(&mut self, length: usize) -> usize {
        usize::try_from(self.below(length as u64)).unwrap_or(0)
    }

    /// Returns `true` with a probability of 1 in `times`.
    pub(super) fn once_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }

    /// Returns one of these, if there are any.
    pub(super) fn one_of(&mut self, choices: &[usize]) -> Option<usize> {
        choices.get(self.index(choices.len())).copied()
    }
}
