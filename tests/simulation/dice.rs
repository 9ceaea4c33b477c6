//! Random numbers of one seed, for the actions of the world.
//!
//! In: a seed. Out: numbers, the same ones for the same seed.

/// A source of chance.
#[derive(Debug, Clone)]
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed ^ 0x6d6f_6f72_6c69_6e65)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound.max(1)
    }

    /// One of some.
    pub(crate) fn of<'a, T>(&mut self, some: &'a [T]) -> &'a T {
        &some[self.below(some.len() as u64) as usize]
    }
}
