//! Names of the people for whom the daemon changed a Sync, in annotations of the Sync.
//!
//! In: a value of the Sync that the person asked for, and the name.
//! Out: `VALUE NAME`. The value ties the name to one act: once another tool writes another value,
//! the name counts for nothing. The admission policy lets people write their own name only.

/// Annotation on a Sync: the value of the request annotation, and the person who requested it.
pub const REQUESTED_BY_ANNOTATION: &str = "moorline.dev/requested-by";

/// Annotation on a Sync: the hash of an approval, and the person who approved it.
pub const APPROVED_BY_ANNOTATION: &str = "moorline.dev/approved-by";

/// Annotation on a Sync: the generation that a change of `spec.suspend` led to, and the person who
/// suspended or resumed it.
pub const SUSPEND_BY_ANNOTATION: &str = "moorline.dev/suspend-by";

/// The most characters of a name: anyone may have written it.
const MAX_NAME: usize = 200;

/// The value of such an annotation.
pub fn signed_by(value: &str, name: &str) -> String {
    format!("{value} {name}")
}

/// The name in such an annotation, if it is about this value.
pub fn signer_of<'a>(annotation: &'a str, value: &str) -> Option<String> {
    let name: &'a str = annotation.strip_prefix(value)?.strip_prefix(' ')?;
    let name: String = name.chars().filter(|it| !it.is_control()).take(MAX_NAME).collect();
    (!value.is_empty() && !name.is_empty()).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_counts_for_its_own_value() {
        assert_eq!(signer_of(&signed_by("abc", "ada"), "abc").as_deref(), Some("ada"));
        assert_eq!(signer_of("abc oidc:ada of ops\n", "abc").as_deref(), Some("oidc:ada of ops"));
        for (annotation, value) in
            [("abc ada", "abd"), ("abc ada", "ab"), ("abc", "abc"), ("abc ", "abc"), (" ada", "")]
        {
            assert_eq!(signer_of(annotation, value), None, "{annotation}");
        }
    }
}
