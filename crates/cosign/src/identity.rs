//! Identities that may sign: the issuer of a login, and the person or workflow that logged in.
//!
//! In: texts of a policy, and the names in a certificate.
//! Out: true if they fit. An expression must fit the whole text, unlike one of cosign.

use std::fmt;

use regex::{Regex, RegexBuilder};

/// Largest compiled expression, in bytes.
const MAX_EXPRESSION_BYTES: usize = 256 * 1024;

/// A text or expression that a name must fit.
#[derive(Debug, Clone)]
pub struct Pattern {
    text: Box<str>,
    expression: Option<Regex>,
}

/// An expression that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` must be a regular expression, and not too large a one")]
pub struct PatternError(Box<str>);

impl Pattern {
    /// Creates a pattern that one text fits.
    pub fn text(text: &str) -> Self {
        Self { text: text.into(), expression: None }
    }

    /// Creates a pattern from a regular expression, which must fit from the first character to the
    /// last.
    pub fn expression(text: &str) -> Result<Self, PatternError> {
        // Alone first: an expression with a closing parenthesis too many must not end the group.
        let compile = |text: &str| RegexBuilder::new(text).size_limit(MAX_EXPRESSION_BYTES).build();
        let anchored = compile(text).and_then(|_| compile(&format!(r"\A(?:{text})\z")));
        match anchored {
            Ok(expression) => Ok(Self { text: text.into(), expression: Some(expression) }),
            Err(_) => Err(PatternError(crate::error::shown(text))),
        }
    }

    fn fits(&self, name: &str) -> bool {
        self.expression.as_ref().map_or(*self.text == *name, |expression| expression.is_match(name))
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.expression {
            None => out.write_str(&self.text),
            Some(_) => write!(out, "/{}/", self.text),
        }
    }
}

/// An identity that may sign.
#[derive(Debug, Clone)]
pub struct Identity {
    /// The service that vouches for the subject, such as that of a CI.
    pub issuer: Pattern,
    /// The subject, such as the address of a person or the URL of a workflow.
    pub subject: Pattern,
}

impl Identity {
    /// True if a certificate has this issuer, and one of the subjects fits.
    pub(crate) fn fits(&self, issuer: &str, subjects: &[String]) -> bool {
        !issuer.is_empty()
            && self.issuer.fits(issuer)
            && subjects.iter().any(|subject| self.subject.fits(subject))
    }
}

impl fmt::Display for Identity {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} of {}", self.subject, self.issuer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_expression_fits_from_end_to_end() {
        let pattern = Pattern::expression("https://ci/org/.*|x").unwrap();
        assert!(pattern.fits("https://ci/org/repo") && pattern.fits("x"));
        for name in ["ahttps://ci/org/repo", "xy", "https://ci/org/repo\nx", ""] {
            assert!(!pattern.fits(name), "{name}");
        }
        for wrong in ["a)|(b", "(", &"a{1000}".repeat(1000)] {
            assert!(Pattern::expression(wrong).is_err());
        }
        assert!(Pattern::text("a.c").fits("a.c") && !Pattern::text("a.c").fits("abc"));
    }

    #[test]
    fn issuer_and_subject_must_fit_both() {
        let identity = Identity { issuer: Pattern::text("i"), subject: Pattern::expression("s+").unwrap() };
        assert_eq!(identity.to_string(), "/s+/ of i");
        let subjects = ["x".to_owned(), "ss".to_owned()];
        assert!(identity.fits("i", &subjects));
        assert!(
            !identity.fits("j", &subjects) && !identity.fits("i", &subjects[..1]) && !identity.fits("i", &[])
        );
        let anybody = Identity { issuer: Pattern::text(""), subject: Pattern::expression(".*").unwrap() };
        assert!(!anybody.fits("", &subjects), "a certificate without an issuer");
    }
}
