//! Redaction of values from Secrets.
//!
//! In: a desired object, and a path or message about it.
//! Out: the part of it that may be shown. Values of a Secret are never shown. Of an object that
//! contains a value of a Secret nothing is quoted: a key of a list item in a path may be that
//! value, and messages of servers and controllers may quote it.

use std::borrow::Cow;

/// Text in place of a message about an object that contains a value of a Secret.
pub const REDACTED: &str = "the message is hidden, because the object contains a secret value";

/// Cuts a path before the first step that may contain a value. The end of that step is unknown,
/// because the value may contain any character.
pub fn redact_path(path: &str) -> Cow<'_, str> {
    let is_place =
        |step: &str| step.split_once(']').is_some_and(|(at, _)| at.bytes().all(|byte| byte.is_ascii_digit()));
    let first = path.match_indices('[').find(|(at, _)| !is_place(&path[at + 1..]));
    match first {
        Some((at, _)) => format!("{}[…]", &path[..at]).into(),
        None => path.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::desired::DesiredSet;
    use moorline_api::{CanonicalForm, SpecHash};
    use moorline_core::object::ObjectId;

    #[test]
    fn an_object_that_is_wanted_no_more_stays_hidden() {
        let (nothing, digest) = (DesiredSet(Vec::new()), [7; 32]);
        let hides = |id: &str, form: Option<CanonicalForm>| {
            let recorded = form.map(|form| SpecHash { form, digest });
            nothing.is_redacted(&ObjectId::parse(id).unwrap(), recorded)
        };
        let keyed = Some(CanonicalForm::Keyed([1; 4]));
        assert!(hides("/Secret|shop/a", Some(CanonicalForm::V1)) && hides("/Secret|shop/a", None));
        assert!(hides("/ConfigMap|shop/a", keyed));
        assert!(!hides("/ConfigMap|shop/a", Some(CanonicalForm::V1)) && !hides("/ConfigMap|shop/a", None));
    }

    #[test]
    fn a_path_ends_where_a_value_may_begin() {
        assert_eq!(redact_path("spec.replicas"), "spec.replicas");
        assert_eq!(redact_path("spec.rules[0].host"), "spec.rules[0].host");
        assert_eq!(redact_path("spec.rules[12].tls[name=a].b"), "spec.rules[12].tls[…]");
        assert_eq!(redact_path("spec.list[\"[0]\"].b"), "spec.list[…]");
        assert_eq!(redact_path("spec[=1]"), "spec[…]");
        assert_eq!(redact_path("spec["), "spec[…]");
    }
}
