//! One condition of a status.
//!
//! In: an item of `conditions`.
//! Out: [`Condition`], and its reason and message as part of a sentence.

use serde_json::Value;

use crate::message::quote;

/// A condition as its controller wrote it. Missing fields are empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Condition<'a> {
    /// Value of `type`.
    pub(super) kind: &'a str,
    status: &'a str,
    /// Machine-readable reason in CamelCase.
    pub(super) reason: &'a str,
    message: &'a str,
    /// Generation that the condition was computed for, if it has one.
    observed: Option<u64>,
}

impl<'a> Condition<'a> {
    /// Reads a condition from JSON; `None` if it has no type.
    pub(super) fn from_value(value: &'a Value) -> Option<Self> {
        let text = |field: &str| value.get(field).and_then(Value::as_str);
        Some(Self {
            kind: text("type")?,
            status: text("status").unwrap_or_default(),
            reason: text("reason").unwrap_or_default(),
            message: text("message").unwrap_or_default(),
            observed: value.get("observedGeneration").and_then(Value::as_u64),
        })
    }

    pub(super) fn is_true(&self) -> bool {
        self.status == "True"
    }

    pub(super) fn is_false(&self) -> bool {
        self.status == "False"
    }

    /// True if the condition was computed for an older generation than the object has.
    pub(super) fn is_stale(&self, generation: Option<u64>) -> bool {
        self.observed.zip(generation).is_some_and(|(observed, generation)| observed < generation)
    }

    /// Reason and message, as far as they exist: `reason: message`.
    pub(super) fn reason_and_message(&self) -> String {
        match (self.reason, self.message) {
            ("", "") => format!("{} is {}", self.kind, self.status_or_unknown()),
            ("", message) => quote(message),
            (reason, "") => quote(reason),
            (reason, message) => format!("{}: {}", quote(reason), quote(message)),
        }
    }

    /// `Ready is False (reason: message)`.
    pub(super) fn describe(&self) -> String {
        match (self.reason, self.message) {
            ("", "") => self.reason_and_message(),
            _ => format!(
                "{} is {} ({})",
                quote(self.kind),
                self.status_or_unknown(),
                self.reason_and_message()
            ),
        }
    }

    /// True if the reason indicates a failure and not an operation in progress.
    pub(super) fn reason_is_failure(&self) -> bool {
        const ENDS: [&str; 4] = ["Failed", "Failure", "Error", "Errors"];
        const BEGINS: [&str; 4] = ["Failed", "Error", "Invalid", "Err"];
        ENDS.iter().any(|end| self.reason.ends_with(end))
            || BEGINS.iter().any(|begin| begins_with_word(self.reason, begin))
    }

    fn status_or_unknown(&self) -> &'static str {
        match self.status {
            "True" => "True",
            "False" => "False",
            _ => "Unknown",
        }
    }
}

/// True if a reason begins with a whole CamelCase part: `Err` begins `ErrImagePull`, but not
/// `Errand`.
fn begins_with_word(reason: &str, word: &str) -> bool {
    reason.strip_prefix(word).is_some_and(|rest| !rest.starts_with(|next: char| next.is_ascii_lowercase()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_condition_becomes_a_sentence() {
        let check = |condition: Value, sentence: &str| {
            assert_eq!(Condition::from_value(&condition).unwrap().describe(), sentence, "{condition}");
        };
        check(json!({"type": "Ready", "status": "False"}), "Ready is False");
        check(json!({"type": "Ready"}), "Ready is Unknown");
        check(json!({"type": "Ready", "status": "False", "reason": "Waits"}), "Ready is False (Waits)");
        check(json!({"type": "Ready", "status": "True", "message": "a\nb"}), "Ready is True (a b)");
        check(json!({"type": "A", "status": 1, "reason": "R", "message": "m."}), "A is Unknown (R: m)");
        assert_eq!(Condition::from_value(&json!({"status": "True"})), None);
        assert_eq!(Condition::from_value(&json!("Ready")), None);
    }

    #[test]
    fn some_reasons_are_failures() {
        let check = |reason: &str, expect: bool| {
            let condition = json!({"type": "Ready", "reason": reason});
            assert_eq!(Condition::from_value(&condition).unwrap().reason_is_failure(), expect, "{reason}");
        };
        for reason in
            ["BuildFailed", "ReconcileError", "InvalidSpec", "FailedMount", "ErrorOccurred", "ErrImagePull"]
        {
            check(reason, true);
        }
        for reason in ["", "Progressing", "Errand", "DoesNotExist", "Failing", "Invalidated"] {
            check(reason, false);
        }
    }
}
