//! Compares the version of an object that was read with the version that its watch reports.
//!
//! In: versions from a read and from a watch. Out: true if the object has changed since the read. A
//! change between the read and the first list of the watch is detected by that list.

/// Versions of an object; `Some(None)` where it did not exist.
#[derive(Debug, Default)]
pub(super) struct Versions {
    /// Version of the last read; none before it and while it is in progress.
    pub(super) read: Option<Option<Box<str>>>,
    /// Version that the watch reported last, if any.
    pub(super) watched: Option<Option<Box<str>>>,
}

impl Versions {
    /// True if both versions are known and differ.
    pub(super) fn is_another(&self) -> bool {
        matches!((&self.read, &self.watched), (Some(read), Some(watched)) if read != watched)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_two_versions_that_are_known_can_differ() {
        let version = |text: &str| Some(Some(Box::from(text)));
        for (read, watched, is_another) in [
            (None, None, false),
            (version("1"), None, false),
            (None, version("1"), false),
            (version("1"), version("1"), false),
            (version("1"), version("2"), true),
            (version("1"), Some(None), true),
            (Some(None), version("1"), true),
            (Some(None), Some(None), false),
        ] {
            let versions = Versions { read, watched };
            assert_eq!(versions.is_another(), is_another, "{versions:?}");
        }
    }
}
