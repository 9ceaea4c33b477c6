//! The commit status API of Gitea and Forgejo.
//!
//! In: the URL of the API, a [`CommitStatus`], and a token that may write the repository.
//! Out: the request.

use moorline_identity::{ExchangeRequest, SecretText};
use serde_json::json;

use crate::commit_status::{CommitState, CommitStatus};
use crate::request::post_json;

/// Returns the request that sets a status.
pub(crate) fn gitea_status(api: &str, status: &CommitStatus, token: &SecretText) -> ExchangeRequest {
    let state = match status.state {
        CommitState::Pending => "pending",
        CommitState::Success => "success",
        CommitState::Failure => "failure",
    };
    let url = format!("{}/repos/{}/statuses/{}", api.trim_end_matches('/'), status.repository, status.commit);
    let body = json!({"state": state, "context": status.context, "description": status.description});
    let headers = vec![("authorization", SecretText::new(format!("token {}", token.as_str())))];
    post_json(url, "application/json", headers, &body)
}
