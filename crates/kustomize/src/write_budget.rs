//! Bound on what the replacements of a build write: each may copy what the one before it wrote.

use super::error::ErrorClass;
use super::field_path::FieldPathError;

/// Number of bytes that the replacements of one build may still write.
#[derive(Debug)]
pub(super) struct WriteBudget(usize);

/// Number at the start.
const MAX_BYTES: usize = 64 * 1024 * 1024;

impl Default for WriteBudget {
    fn default() -> Self {
        Self(MAX_BYTES)
    }
}

impl WriteBudget {
    #[cfg(test)]
    pub(super) fn of(bytes: usize) -> Self {
        Self(bytes)
    }

    pub(super) fn spend(&mut self, bytes: usize) -> Result<(), FieldPathError> {
        let left = self.0.checked_sub(bytes);
        self.0 = left.ok_or_else(|| {
            FieldPathError::with_class(
                ErrorClass::Bound,
                format!("replacements write more than {MAX_BYTES} bytes"),
            )
        })?;
        Ok(())
    }
}
