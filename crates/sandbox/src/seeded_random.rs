//! Reproducible random numbers: the same seed gives the same sequence.
//!
//! In: a seed.
//! Out: numbers, name suffixes and uids. Not secure: nothing secret may depend on them.

/// Pseudo-random number generator.
#[derive(Debug, Clone)]
pub(crate) struct SeededRandom(u64);

impl SeededRandom {
    /// Returns a generator with the given seed.
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Returns the next number.
    pub(crate) fn next(&mut self) -> u64 {
        // SplitMix64: an odd step, and two rounds of mixing.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Returns a number below `bound`.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        if bound == 0 { 0 } else { self.next() % bound }
    }

    /// True in `cases` of a thousand calls, on average.
    pub(crate) fn in_thousand(&mut self, cases: u16) -> bool {
        cases > 0 && self.below(1000) < u64::from(cases)
    }

    /// Returns a uid in the format of Kubernetes.
    pub(crate) fn uid(&mut self) -> String {
        let (high, low) = (self.next(), self.next());
        let parts =
            (high >> 32, high >> 16 & 0xffff, high & 0x0fff, low >> 48 & 0x3fff, low & 0xffff_ffff_ffff);
        format!("{:08x}-{:04x}-4{:03x}-{:04x}-{:012x}", parts.0, parts.1, parts.2, parts.3 | 0x8000, parts.4)
    }

    /// Returns the suffix of a generated name: five characters without vowels, so that no words
    /// arise.
    pub(crate) fn suffix(&mut self) -> String {
        const LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
        (0..5).map(|_| char::from(LETTERS[self.below(LETTERS.len() as u64) as usize])).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_the_same_again() {
        let uids = |seed| (0..3).map(|_| SeededRandom::new(seed).uid()).collect::<Vec<_>>();
        assert_eq!(uids(1), uids(1));
        assert_ne!(uids(1), uids(2));
        let uid = SeededRandom::new(7).uid();
        assert_eq!((uid.len(), &uid[14..15]), (36, "4"));
    }

    #[test]
    fn chances_are_about_what_they_say() {
        let mut chance = SeededRandom::new(3);
        let hits = (0..10_000).filter(|_| chance.in_thousand(250)).count();
        assert!((2300..2700).contains(&hits), "{hits}");
        assert!(!chance.in_thousand(0) && chance.in_thousand(1000));
    }
}
