//! Stub; replaced.

/// Whether this daemon may write.
#[derive(Debug, Clone, Default)]
pub struct Permit;

impl Permit {
    /// Without election.
    pub fn always() -> Self {
        Self
    }
    /// Asked at each send.
    pub fn may_write(&self) -> bool {
        true
    }
}
