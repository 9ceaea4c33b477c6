//! Counts the decrypted files that a build reads, so that its caller knows which objects have their
//! values.
//!
//! In: each read of such a file. Out: true for an object that certainly has values of it alone, and
//! true for a build in which they may be in any object.

use std::cell::Cell;

/// Reads of decrypted files.
#[derive(Debug, Default)]
pub(super) struct DecryptedReads {
    reads: Cell<usize>,
    /// Reads for objects that are known to have the values.
    claimed: Cell<usize>,
    /// The build copies values between objects.
    copies: Cell<bool>,
}

impl DecryptedReads {
    /// Counts a read.
    pub(super) fn add(&self) {
        self.reads.set(self.reads.get() + 1);
    }

    /// Number of reads so far.
    pub(super) fn count(&self) -> usize {
        self.reads.get()
    }

    /// Assigns the reads since a count to the objects that were made of them; true if there are
    /// any.
    pub(super) fn claim_since(&self, before: usize) -> bool {
        let new = self.reads.get() - before;
        self.claimed.set(self.claimed.get() + new);
        new > 0
    }

    /// Notes that the build copies values between objects.
    pub(super) fn copies_values(&self) {
        self.copies.set(true);
    }

    /// True if any object may have a value of a decrypted file.
    pub(super) fn spread(&self) -> bool {
        let (reads, claimed) = (self.reads.get(), self.claimed.get());
        reads > claimed || claimed > 0 && self.copies.get()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_spread_unless_each_read_belongs_to_an_object() {
        let reads = DecryptedReads::default();
        reads.copies_values();
        assert!(!reads.spread(), "nothing was decrypted");
        reads.add();
        assert!(reads.claim_since(0) && reads.spread(), "a replacement may have copied it");
        let reads = DecryptedReads::default();
        assert!(!reads.claim_since(0));
        reads.add();
        assert!(reads.claim_since(0) && !reads.spread());
        reads.add();
        assert!(reads.spread(), "a patch, or a file of values");
    }
}
