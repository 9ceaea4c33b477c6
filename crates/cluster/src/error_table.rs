//! Classifies failed writes: the one closed table of error reasons.
//!
//! In: a failure and the object that was written.
//! Out: an [`ErrorClass`]: a reason for conditions and metrics, when a retry can succeed, and a
//! message for people. API server messages about Secrets quote their values, so only the field
//! names of such a message are passed on.

use std::time::Duration;

use moorline_engine::plan::FailureReason;

use crate::api_error::{ApiError, ApiStatus};

/// Condition under which another attempt can succeed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RetryWhen {
    /// The cluster has to change: retried with growing delays, without end.
    ClusterChanges,
    /// The manifest has to change: retried on new input, and every few minutes.
    ManifestChanges,
}

/// Classification of a failed write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ErrorClass {
    /// Reason for conditions, Events and metrics.
    pub reason: FailureReason,
    /// Condition for a successful retry.
    pub retry_when: RetryWhen,
    /// A message for people.
    pub message: String,
    /// Delay that the server asks for before a retry.
    pub retry_after: Option<Duration>,
}

/// A row that depends on the server's message: status, part of the message, reason, retry
/// condition.
type Row = (u16, &'static str, FailureReason, RetryWhen);

/// Rows where the message is more specific than the status. The first match counts.
const BY_SENTENCE: [Row; 13] = [
    (403, "because it is being terminated", FailureReason::NamespaceTerminating, RetryWhen::ClusterChanges),
    (403, "exceeded quota", FailureReason::QuotaExceeded, RetryWhen::ClusterChanges),
    (403, "failed quota", FailureReason::QuotaExceeded, RetryWhen::ClusterChanges),
    (403, "violates PodSecurity", FailureReason::PodSecurity, RetryWhen::ManifestChanges),
    (404, "namespaces \"", FailureReason::NamespaceMissing, RetryWhen::ClusterChanges),
    (500, "failed calling webhook", FailureReason::WebhookFailed, RetryWhen::ClusterChanges),
    (500, "failed to call webhook", FailureReason::WebhookFailed, RetryWhen::ClusterChanges),
    (500, "conversion webhook for ", FailureReason::ConversionFailed, RetryWhen::ClusterChanges),
    (500, "failed to create typed patch object", FailureReason::SchemaMismatch, RetryWhen::ManifestChanges),
    (500, "failed to convert new object", FailureReason::SchemaMismatch, RetryWhen::ManifestChanges),
    (500, "request is too large", FailureReason::TooLarge, RetryWhen::ManifestChanges),
    (
        500,
        "failed to create manager for existing fields",
        FailureReason::SchemaMismatch,
        RetryWhen::ManifestChanges,
    ),
    (422, "until a storage migration ensures", FailureReason::VersionStored, RetryWhen::ManifestChanges),
];

/// Denials by admission webhooks and policies, with any status: prefix of the message, the part
/// that follows the name, and our reason. The rest is free text of the author and is not
/// interpreted.
const DENIED: [(&str, &str, FailureReason); 2] = [
    ("admission webhook \"", " denied the request", FailureReason::WebhookDenied),
    ("ValidatingAdmissionPolicy '", "' denied request", FailureReason::PolicyDenied),
];

/// Message of the chart's policy on field managers: the verb `own` on the Sync is missing.
const NOT_OWNER: &str = "denied request: the field manager moorline/";

/// The same for a Secret, where the server's message is not repeated.
const NOT_OWNER_OF_SECRET: &str = "the policy on field managers requires the verb own on this Sync, which is missing; the message is not \
     repeated for a Secret";

/// True if one of our messages reports a denial by the chart's policy on field managers.
pub fn is_missing_own_permission(message: &str) -> bool {
    is_by_managers(message) || message == NOT_OWNER_OF_SECRET
}

/// True if the message is a denial by the chart's policy on field managers.
fn is_by_managers(sentence: &str) -> bool {
    sentence.contains("ValidatingAdmissionPolicy '") && sentence.contains(NOT_OWNER)
}

/// Rows decided by the status alone. Other statuses of 500 and above are server errors.
const BY_STATUS: [(u16, FailureReason, RetryWhen); 10] = [
    (400, FailureReason::BadRequest, RetryWhen::ManifestChanges),
    (401, FailureReason::Unauthorized, RetryWhen::ClusterChanges),
    (403, FailureReason::Forbidden, RetryWhen::ClusterChanges),
    (404, FailureReason::KindMissing, RetryWhen::ClusterChanges),
    (405, FailureReason::NotSupported, RetryWhen::ManifestChanges),
    (409, FailureReason::Conflict, RetryWhen::ClusterChanges),
    (413, FailureReason::TooLarge, RetryWhen::ManifestChanges),
    (415, FailureReason::NotSupported, RetryWhen::ManifestChanges),
    (422, FailureReason::Invalid, RetryWhen::ManifestChanges),
    (429, FailureReason::Throttled, RetryWhen::ClusterChanges),
];

/// Messages that say that a field may not change once it is set.
const IMMUTABLE: [&str; 12] = [
    "field is immutable",
    "is immutable after creation",
    "Value is immutable",
    "cannot change roleRef",
    "updates to parameters are forbidden",
    "updates to provisioner are forbidden",
    "updates to reclaimPolicy are forbidden",
    "updates to volumeBindingMode is forbidden",
    "may not change once set",
    "may not be changed in an update",
    "updates to statefulset spec for fields other than",
    "pod updates may not change fields other than",
];

/// Returns all rows for the documentation: status, part of the message, reason, retry condition.
pub fn table() -> Vec<[String; 4]> {
    let who = |remedy: RetryWhen| match remedy {
        RetryWhen::ClusterChanges => "the cluster".to_owned(),
        RetryWhen::ManifestChanges => "the manifest".to_owned(),
    };
    let row = |code: String, says: String, reason: FailureReason, remedy| {
        [code, says, reason.to_string(), who(remedy)]
    };
    let mut rows = vec![
        row("none".into(), "no connection".into(), FailureReason::Unreachable, RetryWhen::ClusterChanges),
        row("none".into(), "no answer in time".into(), FailureReason::Timeout, RetryWhen::ClusterChanges),
    ];
    let policy = format!("`ValidatingAdmissionPolicy ...{NOT_OWNER}`");
    rows.push(row("403".into(), policy, FailureReason::Forbidden, RetryWhen::ClusterChanges));
    rows.extend(DENIED.iter().map(|(who, says, reason)| {
        row(
            "any".into(),
            format!("`{} ...{}`", who.trim_end_matches(['\'', '"', ' ']), says.trim_start_matches('\'')),
            *reason,
            RetryWhen::ManifestChanges,
        )
    }));
    let fixed = "only about immutable fields".to_owned();
    rows.push(row("422".into(), fixed, FailureReason::Immutable, RetryWhen::ManifestChanges));
    rows.extend(BY_SENTENCE.iter().map(|(code, says, reason, remedy)| {
        row(code.to_string(), format!("`{}`", says.trim()), *reason, *remedy)
    }));
    rows.extend(
        BY_STATUS.iter().map(|(code, reason, remedy)| row(code.to_string(), String::new(), *reason, *remedy)),
    );
    rows.push(row("other".into(), String::new(), FailureReason::ServerError, RetryWhen::ClusterChanges));
    rows
}

/// Classifies a failed write. `hides` suppresses the server's message, for objects with secret
/// values.
pub fn classify_error(failure: &ApiError, hides: bool) -> ErrorClass {
    let plain = |reason| ErrorClass {
        reason,
        retry_when: RetryWhen::ClusterChanges,
        message: failure.to_string(),
        retry_after: None,
    };
    match failure {
        ApiError::Unreachable(_) => plain(FailureReason::Unreachable),
        ApiError::Timeout(_) => plain(FailureReason::Timeout),
        ApiError::InvalidResponse(_) => plain(FailureReason::InvalidResponse),
        ApiError::UnknownKind(_) => plain(FailureReason::KindMissing),
        ApiError::NotLeader => plain(FailureReason::NotLeader),
        ApiError::Superseded => plain(FailureReason::Superseded),
        ApiError::Refused(refusal) => {
            let (reason, remedy) = meaning(refusal);
            let mut message = if hides { without_values(refusal) } else { sentence(refusal) };
            if reason == FailureReason::ConversionFailed {
                // The server names the webhook only where it could not be reached at all.
                message.push_str(
                    "; the webhook is configured in spec.conversion of the CustomResourceDefinition",
                );
            }
            ErrorClass { reason, retry_when: remedy, message, retry_after: refusal.retry_after }
        }
    }
}

/// A webhook that the API server could not call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnreachableWebhook<'a> {
    /// Name of the webhook.
    pub webhook: &'a str,
    /// Namespace and name of its Service, if it has one.
    pub service: Option<(&'a str, &'a str)>,
}

/// Returns the webhook that could not be called, if that is why the write failed. The URL in the
/// message is the only place where the API server names the webhook's Service.
pub fn unreachable_webhook(failure: &ApiError) -> Option<UnreachableWebhook<'_>> {
    let ApiError::Refused(refusal) = failure else { return None };
    if meaning(refusal).0 != FailureReason::WebhookFailed {
        return None;
    }
    let (_, rest) = refusal.message.split_once("failed calling webhook \"")?;
    let (webhook, rest) = rest.split_once('"')?;
    let host = rest.split_once("\"https://").and_then(|(_, rest)| rest.split([':', '/', '?', '"']).next());
    let mut labels = host.unwrap_or_default().split('.');
    let service = match (labels.next(), labels.next(), labels.next(), labels.next()) {
        (Some(name), Some(namespace), Some("svc"), None) => Some((namespace, name)),
        _ => None,
    };
    Some(UnreachableWebhook { webhook, service })
}

/// True if the chart's policy on field managers denied the write.
fn is_by_policy(refusal: &ApiStatus) -> bool {
    refusal.code == 403 && is_by_managers(&refusal.message)
}

fn meaning(refusal: &ApiStatus) -> (FailureReason, RetryWhen) {
    if is_by_policy(refusal) {
        return (FailureReason::Forbidden, RetryWhen::ClusterChanges);
    }
    // Checked first: a webhook may deny with a message that looks like the server's own.
    let says = |text: &str| refusal.message.find(text);
    let denied =
        DENIED.iter().find(|(who, no, _)| says(who).is_some_and(|at| says(no).is_some_and(|no| at < no)));
    if let Some((_, _, reason)) = denied {
        return (*reason, RetryWhen::ManifestChanges);
    }
    if is_immutable(refusal) {
        return (FailureReason::Immutable, RetryWhen::ManifestChanges);
    }
    let sentence = BY_SENTENCE
        .iter()
        .find(|(code, part, ..)| *code == refusal.code && refusal.message.contains(part))
        .map(|(_, _, reason, remedy)| (*reason, *remedy));
    let status = BY_STATUS
        .iter()
        .find(|(code, ..)| *code == refusal.code)
        .map(|(_, reason, remedy)| (*reason, *remedy));
    sentence.or(status).unwrap_or((FailureReason::ServerError, RetryWhen::ClusterChanges))
}

/// True if every problem is about an immutable field, so that recreating the object would help.
fn is_immutable(refusal: &ApiStatus) -> bool {
    let says = |text: &str| IMMUTABLE.iter().any(|part| text.contains(part));
    refusal.code == 422
        && match refusal.causes.is_empty() {
            true => says(&refusal.message),
            false => refusal.causes.iter().all(|cause| says(&cause.message)),
        }
}

/// Maximum number of characters of a server message that are passed on.
const MAX_SENTENCE: usize = 600;

fn sentence(refusal: &ApiStatus) -> String {
    if refusal.message.is_empty() {
        return format!("the API server returned status {}", refusal.code);
    }
    let mut text: String = refusal.message.chars().take(MAX_SENTENCE).collect();
    if text.len() < refusal.message.len() {
        text.push('…');
    }
    text
}

/// Returns the reason and the field names only, for objects with secret values.
fn without_values(refusal: &ApiStatus) -> String {
    if is_by_policy(refusal) {
        return NOT_OWNER_OF_SECRET.to_owned();
    }
    let fields: Vec<&str> =
        refusal.causes.iter().map(|cause| &*cause.field).filter(|field| !field.is_empty()).collect();
    let place = match fields.is_empty() {
        true => String::new(),
        false => format!(" at {}", fields.join(", ")),
    };
    let word = if refusal.reason.is_empty() { "an error" } else { &*refusal.reason };
    format!("the API server returned {} {word}{place}; the message is not shown for a Secret", refusal.code)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api_error::StatusCause;

    fn refused(code: u16, message: &str, causes: &[(&str, &str)]) -> ApiError {
        let causes = causes
            .iter()
            .map(|(field, message)| StatusCause {
                reason: "FieldValueInvalid".into(),
                message: (*message).into(),
                field: (*field).into(),
            })
            .collect();
        let refusal =
            ApiStatus { code, reason: "R".into(), message: message.into(), causes, retry_after: None };
        ApiError::Refused(Box::new(refusal))
    }

    fn check(failure: &ApiError, reason: FailureReason, remedy: RetryWhen) {
        let found = classify_error(failure, false);
        assert_eq!((found.reason, found.retry_when), (reason, remedy), "{failure}");
    }

    #[test]
    fn each_answer_says_who_has_to_change() {
        use RetryWhen::{ClusterChanges, ManifestChanges};
        check(&ApiError::Unreachable("x".into()), FailureReason::Unreachable, ClusterChanges);
        check(&ApiError::Timeout(Duration::from_secs(1)), FailureReason::Timeout, ClusterChanges);
        check(&ApiError::NotLeader, FailureReason::NotLeader, ClusterChanges);
        check(&ApiError::Superseded, FailureReason::Superseded, ClusterChanges);
        for (code, reason, remedy) in BY_STATUS {
            check(&refused(code, "", &[]), reason, remedy);
        }
        for (code, part, reason, remedy) in BY_SENTENCE {
            check(&refused(code, &format!("so {part} it is"), &[]), reason, remedy);
        }
        check(
            &refused(400, "admission webhook \"a.b\" denied the request: no", &[]),
            FailureReason::WebhookDenied,
            ManifestChanges,
        );
        check(&refused(503, "", &[]), FailureReason::ServerError, ClusterChanges);
        check(&refused(599, "what", &[]), FailureReason::ServerError, ClusterChanges);
    }

    #[test]
    fn the_right_to_own_the_sync_is_known_to_be_missing_for_a_secret_too() {
        let no = "secrets \"a\" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: the field manager \
             moorline/ops/shop is for whoever may own that Sync";
        for hides in [false, true] {
            let found = classify_error(&refused(403, no, &[]), hides);
            assert_eq!(
                (found.reason, found.retry_when),
                (FailureReason::Forbidden, RetryWhen::ClusterChanges)
            );
            assert!(is_missing_own_permission(&found.message), "{}", found.message);
            assert_eq!(found.message.contains("moorline/ops/shop"), !hides, "{}", found.message);
        }
        assert!(!is_missing_own_permission(
            &classify_error(&refused(403, "secrets \"a\" is forbidden", &[]), true).message
        ));
        // A webhook may return any text.
        let echo = format!("admission webhook \"a.b\" denied the request: {NOT_OWNER_OF_SECRET}");
        assert!(!is_missing_own_permission(&classify_error(&refused(403, &echo, &[]), false).message));
    }

    #[test]
    fn only_what_cannot_change_at_all_is_immutable() {
        let immutable = ("spec.selector", "Invalid value: {}: field is immutable");
        check(&refused(422, "x", &[immutable]), FailureReason::Immutable, RetryWhen::ManifestChanges);
        check(
            &refused(422, "x", &[immutable, ("spec.replicas", "Invalid value: -1")]),
            FailureReason::Invalid,
            RetryWhen::ManifestChanges,
        );
        check(
            &refused(400, "field is immutable", &[]),
            FailureReason::BadRequest,
            RetryWhen::ManifestChanges,
        );
        // The same text from a policy means something else; recreating the object would not help.
        let no = "secrets \"a\" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: field is immutable";
        check(
            &refused(422, no, &[("", "field is immutable")]),
            FailureReason::PolicyDenied,
            RetryWhen::ManifestChanges,
        );
        let no = "admission webhook \"a.b\" denied the request: field is immutable";
        check(
            &refused(422, no, &[("", "field is immutable")]),
            FailureReason::WebhookDenied,
            RetryWhen::ManifestChanges,
        );
    }

    #[test]
    fn a_webhook_that_could_not_be_called_is_known_with_its_service() {
        let check = |code, message: &str, expect: Option<(&str, Option<(&str, &str)>)>| {
            let failure = refused(code, message, &[]);
            let found = unreachable_webhook(&failure).map(|found| (found.webhook, found.service));
            assert_eq!(found, expect, "{message}");
        };
        let begin = "Internal error occurred: failed calling webhook \"a.b\": failed to call webhook: Post";
        let hook = Some(("a.b", Some(("ops", "hook"))));
        let no_endpoints = "no endpoints available for service \"hook\"";
        check(500, &format!("{begin} \"https://hook.ops.svc:443/x?timeout=1s\": {no_endpoints}"), hook);
        check(500, &format!("{begin} \"https://hook.ops.svc:443?timeout=1s\": EOF"), hook);
        check(500, &format!("{begin} \"https://localhost:9/x?timeout=1s\": EOF"), Some(("a.b", None)));
        check(500, &format!("{begin} \"https://hook.ops.svc.example.com/x\": EOF"), Some(("a.b", None)));
        check(500, "failed calling webhook \"a.b\": the answer is nothing", Some(("a.b", None)));
        check(500, "failed to call webhook: EOF", None);
        check(
            403,
            &format!("admission webhook \"x\" denied the request: {begin} \"https://a.b.svc/\""),
            None,
        );
    }

    #[test]
    fn nothing_about_a_secret_is_quoted() {
        let failure = refused(422, "data.token: Invalid value: \"hunter2\"", &[("data.token", "hunter2")]);
        let told = classify_error(&failure, true);
        assert!(!told.message.contains("hunter2") && told.message.contains("data.token"), "{}", told.message);
    }
}
