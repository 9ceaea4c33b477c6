//! Overrides of closed windows, as annotations of a Sync.
//!
//! In: the annotations.
//! Out: [`WindowOverride`]: the plan that a person lets be applied now, and the reason.

use super::signer_of;

/// Annotation on a Sync: the plan that is applied although a window is closed.
pub const OVERRIDE_ANNOTATION: &str = "moorline.dev/override";

/// Annotation on a Sync: that plan, and the person who asked for it.
pub const OVERRIDE_BY_ANNOTATION: &str = "moorline.dev/override-by";

/// Annotation on a Sync: the reason of that person.
pub const OVERRIDE_REASON_ANNOTATION: &str = "moorline.dev/override-reason";

/// Maximum number of characters of a reason: anyone may have written it.
const MAX_REASON: usize = 256;

/// An override, as the annotations of a Sync have it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WindowOverride {
    /// The plan.
    pub hash: String,
    /// The person; none if the annotation does not name one for this plan.
    pub by: Option<String>,
    /// The reason; empty if there is none.
    pub reason: String,
}

impl WindowOverride {
    /// Reads the annotations of a Sync.
    pub fn of_annotations<'a>(annotation: impl Fn(&str) -> Option<&'a str>) -> Option<Self> {
        let hash = annotation(OVERRIDE_ANNOTATION).filter(|hash| !hash.is_empty())?.to_owned();
        let by = signer_of(annotation(OVERRIDE_BY_ANNOTATION).unwrap_or_default(), &hash);
        let reason = annotation(OVERRIDE_REASON_ANNOTATION).unwrap_or_default().trim();
        let reason = reason.chars().filter(|it| !it.is_control()).take(MAX_REASON).collect();
        Some(Self { hash, by, reason })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_override_names_a_person_for_its_own_plan() {
        let of = |by: &'static str| {
            let read = WindowOverride::of_annotations(|key| match key {
                OVERRIDE_ANNOTATION => Some("5c7d"),
                OVERRIDE_BY_ANNOTATION => Some(by),
                OVERRIDE_REASON_ANNOTATION => Some(" CVE\n "),
                _ => None,
            });
            read.map(|it| (it.by, it.reason))
        };
        assert_eq!(of("5c7d ada"), Some((Some("ada".to_owned()), "CVE".to_owned())));
        assert_eq!(of("5c7e ada"), Some((None, "CVE".to_owned())));
        assert_eq!(WindowOverride::of_annotations(|_| None), None);
    }
}
