//! Errors in the format and wording of Kubernetes.
//!
//! In: the subject of the request and the problem.
//! Out: [`StatusError`], which becomes the `Status` object that clients parse.

use std::borrow::Cow;

use serde_json::{Value, json};

/// A `Status` with `status: Failure`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct StatusError {
    pub(crate) code: u16,
    pub(crate) reason: Cow<'static, str>,
    pub(crate) message: String,
    pub(crate) details: Option<Box<Value>>,
    /// Seconds after which a retry makes sense.
    pub(crate) retry_after: Option<u64>,
    /// Token by which a list can continue at the newest revision when its own was dropped.
    pub(crate) next: Option<Box<str>>,
    /// Texts of `Warning` headers.
    pub(crate) warnings: Vec<String>,
}

/// Resource and object that an error is about.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ErrorSubject<'a> {
    pub(crate) group: &'a str,
    /// Plural name as in URLs, such as `deployments`.
    pub(crate) plural: &'a str,
    pub(crate) kind: &'a str,
    pub(crate) name: &'a str,
}

impl ErrorSubject<'_> {
    /// Returns `deployments.apps`, or `services` for the core group.
    fn resource(&self) -> String {
        qualified(self.plural, self.group)
    }

    fn details(&self, kind: &str) -> Value {
        let mut details = json!({});
        if !kind.is_empty() {
            details["kind"] = kind.into();
        }
        if !self.name.is_empty() {
            details["name"] = self.name.into();
        }
        if !self.group.is_empty() {
            details["group"] = self.group.into();
        }
        details
    }
}

fn qualified(word: &str, group: &str) -> String {
    if group.is_empty() { word.to_owned() } else { format!("{word}.{group}") }
}

impl StatusError {
    pub(crate) fn new(code: u16, reason: &'static str, message: String) -> Self {
        let (details, retry_after, next, warnings) = (None, None, None, Vec::new());
        Self { code, reason: Cow::Borrowed(reason), message, details, retry_after, next, warnings }
    }

    fn about(self, about: ErrorSubject<'_>) -> Self {
        Self { details: Some(Box::new(about.details(about.plural))), ..self }
    }

    /// The object does not exist.
    pub(crate) fn not_found(about: ErrorSubject<'_>) -> Self {
        let message = format!("{} {:?} not found", about.resource(), about.name);
        Self::new(404, "NotFound", message).about(about)
    }

    /// The path does not exist.
    pub(crate) fn no_such_path() -> Self {
        let message = "the server could not find the requested resource".to_owned();
        Self { details: Some(Box::new(json!({}))), ..Self::new(404, "NotFound", message) }
    }

    /// The object to create exists already.
    pub(crate) fn already_exists(about: ErrorSubject<'_>) -> Self {
        let message = format!("{} {:?} already exists", about.resource(), about.name);
        Self::new(409, "AlreadyExists", message).about(about)
    }

    /// The object is not in the state that the client expects.
    pub(crate) fn conflict(about: ErrorSubject<'_>, why: &str) -> Self {
        let message =
            format!("Operation cannot be fulfilled on {} {:?}: {why}", about.resource(), about.name);
        Self::new(409, "Conflict", message).about(about)
    }

    /// The object has another resourceVersion than the client expects.
    pub(crate) fn modified(about: ErrorSubject<'_>) -> Self {
        let why =
            "the object has been modified; please apply your changes to the latest version and try again";
        Self::conflict(about, why)
    }

    /// A write that kept losing against other writes.
    pub(crate) fn busy() -> Self {
        let why =
            "the object has been modified; please apply your changes to the latest version and try again";
        Self::new(409, "Conflict", format!("Operation cannot be fulfilled: {why}"))
    }

    /// An apply changes fields of other managers.
    pub(crate) fn field_conflicts(message: String, causes: Value) -> Self {
        Self { details: Some(Box::new(json!({"causes": causes}))), ..Self::new(409, "Conflict", message) }
    }

    /// Validation failed; `causes` are in the format of the response.
    pub(crate) fn invalid(about: ErrorSubject<'_>, causes: &[Value]) -> Self {
        let mut texts: Vec<String> = Vec::with_capacity(causes.len());
        for text in causes.iter().map(cause_text) {
            if !texts.contains(&text) {
                texts.push(text);
            }
        }
        let said = match texts.as_slice() {
            [one] => one.clone(),
            several => format!("[{}]", several.join(", ")),
        };
        let kind = qualified(about.kind, about.group);
        let mut details = about.details(about.kind);
        details["causes"] = causes.into();
        let message = format!("{kind} {:?} is invalid: {said}", about.name);
        Self { details: Some(Box::new(details)), ..Self::new(422, "Invalid", message) }
    }

    /// The request is malformed.
    pub(crate) fn bad_request(message: impl Into<String>) -> Self {
        Self::new(400, "BadRequest", message.into())
    }

    /// The patch cannot be applied.
    pub(crate) fn of_patch(code: u16, words: String) -> Self {
        let reason = match code {
            400 => "BadRequest",
            413 => "RequestEntityTooLarge",
            422 => "Invalid",
            _ => "",
        };
        let details = (code == 422).then(|| Box::new(json!({})));
        Self { details, ..Self::new(code, reason, words) }
    }

    /// The operation is forbidden for the given reason.
    pub(crate) fn forbidden(about: ErrorSubject<'_>, why: &str, causes: Option<Value>) -> Self {
        let message = format!("{} {:?} is forbidden: {why}", about.resource(), about.name);
        let mut refusal = Self::new(403, "Forbidden", message).about(about);
        if let (Some(causes), Some(details)) = (causes, &mut refusal.details) {
            details["causes"] = causes;
        }
        refusal
    }

    /// The requested revision has been dropped.
    pub(crate) fn expired(message: impl Into<String>) -> Self {
        Self::new(410, "Expired", message.into())
    }

    /// The path does not support the method.
    pub(crate) fn method_not_allowed() -> Self {
        let message = "the server does not allow this method on the requested resource".to_owned();
        Self { details: Some(Box::new(json!({}))), ..Self::new(405, "MethodNotAllowed", message) }
    }

    /// The request is for a container: none runs here.
    pub(crate) fn no_containers() -> Self {
        let message = "the sandbox runs no containers: logs, exec, attach and port-forward are not available";
        Self::new(501, "NotImplemented", message.to_owned())
    }

    /// The body has an unsupported media type.
    pub(crate) fn unsupported_media_type(accepted: &str) -> Self {
        let message = format!(
            "the body of the request was in an unknown format - accepted media types include: {accepted}"
        );
        Self::new(415, "UnsupportedMediaType", message)
    }

    /// The body is too large.
    pub(crate) fn too_large(most: usize) -> Self {
        Self::new(413, "RequestEntityTooLarge", format!("Request entity too large: limit is {most}"))
    }

    /// The server failed.
    pub(crate) fn internal(why: &str) -> Self {
        let details = json!({"causes": [{"message": why}]});
        Self {
            details: Some(Box::new(details)),
            ..Self::new(500, "InternalError", format!("Internal error occurred: {why}"))
        }
    }

    /// A 500 without a reason, as real servers return it for typed objects.
    pub(crate) fn failed(message: String) -> Self {
        Self::new(500, "", message)
    }

    /// Too many requests.
    pub(crate) fn too_many(seconds: u64) -> Self {
        let message = "Too many requests, please try again later.".to_owned();
        let details = json!({"retryAfterSeconds": seconds});
        Self {
            details: Some(Box::new(details)),
            retry_after: Some(seconds),
            ..Self::new(429, "TooManyRequests", message)
        }
    }

    /// Returns the `Status` object that is the body of the response.
    pub(crate) fn status(&self) -> Value {
        let mut status = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": self.message, "code": self.code,
        });
        if let Some(next) = &self.next {
            status["metadata"]["continue"] = (**next).into();
        }
        if !self.reason.is_empty() {
            status["reason"] = (*self.reason).into();
        }
        if let Some(details) = &self.details {
            status["details"] = (**details).clone();
        }
        status
    }
}

fn cause_text(cause: &Value) -> String {
    let text = |name: &str| cause[name].as_str().unwrap_or_default();
    match text("field") {
        "" => text("message").to_owned(),
        field => format!("{field}: {}", text("message")),
    }
}
