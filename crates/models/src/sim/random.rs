//! Numbers that look random and follow from a seed.

/// SplitMix64: small, fast, and good enough to make choices with.
#[derive(Debug, Clone)]
pub(super) struct Random(u64);

impl Random {
    /// The sequence that belongs to a seed.
    pub(super) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next number.
    pub(super) fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `end`; 0 if `end` is 0.
    pub(super) fn below(&mut self, end: usize) -> usize {
        let number = self.number().checked_rem(end as u64).unwrap_or(0);
        usize::try_from(number).unwrap_or(0)
    }
}
