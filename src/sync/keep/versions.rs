//! Which version of an object was read, and which one its watch tells.
//!
//! In: versions from a read and from a watch. Out: true if the object is another one than was read. A change between the read
//! and the first list of the watch is seen by that list.

/// The versions of an object; `Some(None)` where it was not there.
#[derive(Debug, Default)]
pub(super) struct Versions {
    /// As it was read; nothing before that, and while it is being read.
    pub(super) read: Option<Option<Box<str>>>,
    /// As the watch tells it, if it has told anything since.
    pub(super) told: Option<Option<Box<str>>>,
}

impl Versions {
    /// True if it was seen to be another one than was read.
    pub(super) fn is_another(&self) -> bool {
        matches!((&self.read, &self.told), (Some(read), Some(told)) if read != told)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_two_versions_that_are_known_can_differ() {
        let version = |text: &str| Some(Some(Box::from(text)));
        for (read, told, is_another) in [
            (None, None, false),
            (version("1"), None, false),
            (None, version("1"), false),
            (version("1"), version("1"), false),
            (version("1"), version("2"), true),
            (version("1"), Some(None), true),
            (Some(None), version("1"), true),
            (Some(None), Some(None), false),
        ] {
            let versions = Versions { read, told };
            assert_eq!(versions.is_another(), is_another, "{versions:?}");
        }
    }
}
