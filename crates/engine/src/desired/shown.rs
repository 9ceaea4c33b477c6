//! What may be shown of an object.
//!
//! In: an object that should exist, and a path or a sentence about it. Out: the same as it may be told. Of a Secret no value is shown, and
//! nothing else is of an object into which a value from one went: what names an item of a list in a path may be that value, and what
//! a server or a controller says of the object may quote it.

use std::borrow::Cow;

use super::{DesiredObject, DesiredSet};
use moorline_api::{CanonicalForm, SpecHash};
use moorline_core::object::ObjectId;

/// Instead of what is said of such an object.
pub const UNTOLD: &str = "what is said of it is not repeated, because a value from a Secret went into it";

impl DesiredSet {
    /// True if nothing may be told of the values of this object. Of one that is not wanted any more the kind says it, and the hash
    /// that was recorded on it: it is made with a key where a value from a Secret went into the object.
    pub fn hides(&self, id: &ObjectId, recorded: Option<SpecHash>) -> bool {
        let was_secret = || recorded.is_some_and(|hash| matches!(hash.form, CanonicalForm::Keyed(_)));
        self.get(id).map_or_else(|| id.is("", "Secret") || was_secret(), |wanted| wanted.secret)
    }

    /// True for an object that is no Secret, and holds a value from one.
    pub fn is_tainted(&self, id: &ObjectId) -> bool {
        self.get(id).is_some_and(DesiredObject::is_tainted)
    }
}

impl DesiredObject {
    /// True for an object that is no Secret, and holds a value from one.
    pub fn is_tainted(&self) -> bool {
        self.secret && !self.id.is("", "Secret")
    }

    /// A path to one of its fields, as it may be told.
    pub fn shows<'a>(&self, path: &'a str) -> Cow<'a, str> {
        if self.is_tainted() { veiled(path) } else { path.into() }
    }
}

/// A path up to the first step that may be a value. Where that step ends, only what is hidden could tell.
pub fn veiled(path: &str) -> Cow<'_, str> {
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

    #[test]
    fn an_object_that_is_wanted_no_more_stays_hidden() {
        let (nothing, digest) = (DesiredSet(Vec::new()), [7; 32]);
        let hides = |id: &str, form: Option<CanonicalForm>| {
            let recorded = form.map(|form| SpecHash { form, digest });
            nothing.hides(&ObjectId::parse(id).unwrap(), recorded)
        };
        let keyed = Some(CanonicalForm::Keyed([1; 4]));
        assert!(hides("/Secret|shop/a", Some(CanonicalForm::V1)) && hides("/Secret|shop/a", None));
        assert!(hides("/ConfigMap|shop/a", keyed));
        assert!(!hides("/ConfigMap|shop/a", Some(CanonicalForm::V1)) && !hides("/ConfigMap|shop/a", None));
    }

    #[test]
    fn a_path_ends_where_a_value_may_begin() {
        assert_eq!(veiled("spec.replicas"), "spec.replicas");
        assert_eq!(veiled("spec.rules[0].host"), "spec.rules[0].host");
        assert_eq!(veiled("spec.rules[12].tls[name=a].b"), "spec.rules[12].tls[…]");
        assert_eq!(veiled("spec.list[\"[0]\"].b"), "spec.list[…]");
        assert_eq!(veiled("spec[=1]"), "spec[…]");
        assert_eq!(veiled("spec["), "spec[…]");
    }
}
