//! The request of a notification, for every service.
//!
//! In: a Notifier, a Sync, a record, and the content of the Secret.
//! Out: the request, or what the Secret lacks. A URL in a Secret must be below the one in the spec,
//! which admission policies have judged. Nothing of a Secret is in an error.

use moorline_api::NotificationRecord;
use moorline_identity::{ExchangeRequest, Method, SecretBytes, SecretText};
use serde_json::Value;

use crate::alertmanager::alerts;
use crate::cloud_events::{event_body, event_headers};
use crate::commit_status::CommitStatus;
use crate::pull_requests::PullRequestHost;
use crate::repository::host_of_url;
use crate::retry::AttemptResult;
use crate::selection::{CompiledNotifier, Service};
use crate::slack::slack_body;
use crate::subject::Subject;
use crate::teams::teams_body;
use crate::webhook::{signature, webhook_body};

/// Maximum number of bytes of an answer that is read for its words.
const MAX_WORDS: usize = 4096;
/// Words of GitLab's refusal of a status that the commit has already.
const ALREADY: &str = "Cannot transition status via";

/// Content of the Secret of a Notifier.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ServiceSecret {
    /// The key `token`.
    pub token: Option<SecretText>,
    /// The key `url`: the whole address.
    pub url: Option<SecretText>,
    /// The key `hmac`.
    pub hmac: Option<SecretBytes>,
}

/// Error of building a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RequestError {
    /// The Secret lacks a key.
    #[error("the Secret has no key {0}")]
    NoKey(&'static str),
    /// The address in the Secret is another one.
    #[error("the key url of the Secret is not below the url of the Notifier")]
    OtherUrl,
    /// The notification is about no commit.
    #[error("the notification is about no commit of a repository on this host")]
    NoCommit,
}

/// Returns the host that a Notifier sends to, in lower case and without a port.
pub fn needed_host(notifier: &CompiledNotifier) -> String {
    host_of_url(&notifier.target.url)
}

/// Builds the request of a record.
pub fn build_request(
    notifier: &CompiledNotifier,
    subject: &Subject,
    record: &NotificationRecord,
    secret: &ServiceSecret,
) -> Result<ExchangeRequest, RequestError> {
    let base = notifier.target.url.as_str();
    if notifier.service.is_commit_status() {
        let token = secret.token.as_ref().ok_or(RequestError::NoKey("token"))?;
        let status = CommitStatus::of_record(notifier, subject, record).ok_or(RequestError::NoCommit)?;
        let host =
            PullRequestHost { service: notifier.service, api: base, repository: &status.repository, token };
        let check = (&*status.commit, status.state);
        return Ok(host.set_check(check, (&status.context, &status.description), None));
    }
    let text = notifier.text(subject, record);
    let url = whole_url(base, secret.url.as_ref())?;
    let mut headers = Vec::new();
    if let Some(token) = &secret.token {
        headers.push(("authorization", SecretText::new(format!("Bearer {}", token.as_str()))));
    }
    let request = match notifier.service {
        Service::Teams => post_json(url, JSON, headers, &teams_body(subject, record, &text)),
        Service::Alertmanager => {
            let url = format!("{}/api/v2/alerts", url.trim_end_matches('/'));
            post_json(url, JSON, headers, &alerts(notifier, subject, record, &text))
        }
        Service::Webhook => {
            let key = secret.hmac.as_ref().ok_or(RequestError::NoKey("hmac"))?;
            let body = webhook_body(subject, record, &text);
            let signed = signature(key.as_bytes(), body.to_string().as_bytes());
            headers.push(("x-moorline-signature", SecretText::new(signed)));
            headers.push(("x-moorline-id", record.id.as_str().into()));
            post_json(url, JSON, headers, &body)
        }
        Service::CloudEvents => {
            headers.extend(event_headers(subject, record));
            post_json(url, JSON, headers, &event_body(subject, record, &text))
        }
        _ => post_json(url, JSON, headers, &slack_body(&text)),
    };
    Ok(request)
}

const JSON: &str = "application/json";

/// Returns the POST of a JSON body.
pub(crate) fn post_json(
    url: String,
    accept: &'static str,
    mut headers: Vec<(&'static str, SecretText)>,
    body: &Value,
) -> ExchangeRequest {
    headers.push(("accept", accept.into()));
    headers.push(("content-type", JSON.into()));
    ExchangeRequest { method: Method::Post, url, headers, body: SecretText::new(body.to_string()) }
}

/// Returns the address in the Secret, if it is below the URL in the spec, or that URL.
fn whole_url(base: &str, secret: Option<&SecretText>) -> Result<String, RequestError> {
    let Some(secret) = secret else { return Ok(base.to_owned()) };
    let secret = secret.as_str().trim();
    let rest = secret.strip_prefix(base.trim_end_matches('/')).ok_or(RequestError::OtherUrl)?;
    let path = rest.split('?').next().unwrap_or_default();
    let leaves = path.split('/').any(|part| part == ".." || part == ".") || path.contains(['%', '\\']);
    let is_below = rest.is_empty() || rest.starts_with(['/', '?']);
    let is_plain = rest.bytes().all(|byte| byte.is_ascii_graphic()) && !rest.contains('#');
    match is_below && is_plain && !leaves {
        true => Ok(secret.to_owned()),
        false => Err(RequestError::OtherUrl),
    }
}

/// Returns the result that an answer means. GitLab refuses a status that a commit has already.
pub fn read_answer(service: Service, result: AttemptResult, body: &[u8]) -> AttemptResult {
    let words = String::from_utf8_lossy(&body[..body.len().min(MAX_WORDS)]);
    match result {
        AttemptResult::Refused if service == Service::Gitlab && words.contains(ALREADY) => {
            AttemptResult::Accepted
        }
        result => result,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_host_is_as_a_secret_lists_it() {
        for (url, expect) in [
            ("https://hooks.slack.com", "hooks.slack.com"),
            ("https://Hooks.Slack.com", "hooks.slack.com"),
            ("https://hooks.slack.com.:8443/services", "hooks.slack.com"),
            ("https://a:b@Git.example.com/x", "git.example.com"),
            ("https://git.example.com?x=@other", "git.example.com"),
            ("https://[::1]:8443/x", "[::1]"),
            ("https://[::1]", "[::1]"),
            ("hooks.slack.com", ""),
        ] {
            let spec = serde_json::json!({"slack": {"url": url}, "transitions": ["Applied"]});
            let resource = serde_json::json!({
                "apiVersion": "moorline.dev/v1alpha1", "kind": "Notifier", "metadata": {"name": "a"}, "spec": spec,
            });
            let notifier = serde_json::from_value(resource).expect("a Notifier");
            let compiled = CompiledNotifier::compile(&notifier, "moorline").expect("a sound Notifier");
            assert_eq!(needed_host(&compiled), expect, "{url}");
        }
    }
}
