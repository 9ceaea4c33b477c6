//! The commit status API of GitLab.
//!
//! In: the URL of the API, a [`CommitStatus`], and a token with the scope api.
//! Out: the request.

use moorline_identity::{ExchangeRequest, SecretText};
use serde_json::json;

use crate::commit_status::{CommitState, CommitStatus};
use crate::request::post_json;

/// Words of GitLab's refusal of a status that the commit has already.
pub(crate) const ALREADY: &str = "Cannot transition status via";

/// Returns the request that sets a status.
pub(crate) fn gitlab_status(api: &str, status: &CommitStatus, token: &SecretText) -> ExchangeRequest {
    let state = match status.state {
        CommitState::Pending => "pending",
        CommitState::Success => "success",
        CommitState::Failure => "failed",
    };
    let project = status.repository.replace('/', "%2F");
    let url = format!("{}/projects/{project}/statuses/{}", api.trim_end_matches('/'), status.commit);
    let body = json!({"state": state, "name": status.context, "description": status.description});
    let headers = vec![("private-token", SecretText::new(token.as_str().to_owned()))];
    post_json(url, "application/json", headers, &body)
}
