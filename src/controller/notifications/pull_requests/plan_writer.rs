//! Writes a plan to the host: a status on the commit, and one comment that is edited later.
//!
//! In: a plan, and what stands on the host already. Out: no request for a plan that stands there.
//! The status comes first, so that a comment proves that both were written.

use super::host_client::{HostClient, VisitError};
use super::repository_state::PlanState;
use crate::api::PullRequestOptions;
use crate::notifications::pull_requests::{
    CheckState, PullRequestHost, comments, pages_of_comments, user_name,
};
use crate::notifications::{AttemptResult, Service, read_answer};
use crate::report::pull_request::{PlanRecord, record_of};

/// Statuses of a comment that is gone.
const GONE: [u16; 2] = [404, 410];

/// A plan that is to be written.
pub(super) struct PlanDraft {
    pub(super) number: u64,
    pub(super) record: PlanRecord,
    /// The first line of the comment.
    pub(super) marker: String,
    pub(super) text: String,
    pub(super) state: CheckState,
    /// The name of the status, and its text.
    pub(super) context: String,
    pub(super) description: String,
    pub(super) link: Option<String>,
}

/// Writes a plan, unless it stands there.
pub(super) async fn write_plan(
    client: &HostClient<'_>,
    (service, options): (Service, &PullRequestOptions),
    draft: &PlanDraft,
    (plan, user): (&mut PlanState, &mut Option<Box<str>>),
) -> Result<(), VisitError> {
    let wants_comment = options.comment != Some(false);
    let mut may_comment = wants_comment;
    if wants_comment && plan.comment.is_none() {
        may_comment = find_comment(client, service, (draft.number, &draft.marker), (plan, user)).await?;
    }
    if plan.written.as_ref() == Some(&draft.record) {
        return Ok(());
    }
    if options.check != Some(false) {
        set_check(client, service, draft).await?;
    }
    if may_comment {
        write_comment(client, draft, plan).await?;
    }
    plan.written = Some(draft.record.clone());
    Ok(())
}

/// Finds the comment of an earlier daemon; false if there are too many comments to know.
pub(super) async fn find_comment(
    client: &HostClient<'_>,
    service: Service,
    (number, marker): (u64, &str),
    (plan, user): (&mut PlanState, &mut Option<Box<str>>),
) -> Result<bool, VisitError> {
    let what = "the account of the token";
    let name = match user {
        Some(name) => name.clone(),
        None => {
            let answer = client.read(what, client.host().user()).await?;
            let name = user_name(service, &answer);
            name.ok_or_else(|| VisitError::new(format!("{what}: it has no name"), true))?
        }
    };
    *user = Some(name.clone());
    for page in 1..=pages_of_comments(service) {
        let answer = client.read("the comments", client.host().list_comments(number, page)).await?;
        if let Some(own) = comments(service, &answer).iter().find(|one| one.is_own(&name, marker)) {
            (plan.comment, plan.written) = (Some(own.id), record_of(&own.text));
            return Ok(true);
        }
        let is_full = answer.as_array().is_some_and(|items| items.len() >= PullRequestHost::PAGE);
        if !is_full || service == Service::Gitea {
            return Ok(true);
        }
    }
    tracing::warn!(number, "a pull request has too many comments: its plan is a status alone");
    Ok(false)
}

async fn set_check(client: &HostClient<'_>, service: Service, draft: &PlanDraft) -> Result<(), VisitError> {
    let what = "a status";
    let request = client.host().set_check(
        (&draft.record.head, draft.state),
        (&draft.context, &draft.description),
        draft.link.as_deref(),
    );
    let answer = client.write(what, request).await?;
    let result = AttemptResult::of_status(answer.status, answer.retry_after);
    // GitLab refuses a status that the commit has already.
    match read_answer(service, result, &answer.body) {
        AttemptResult::Accepted => Ok(()),
        _ => Err(VisitError::of_status(what, answer.status, answer.retry_after)),
    }
}

/// Edits the comment, or writes it if there is none.
async fn write_comment(
    client: &HostClient<'_>,
    draft: &PlanDraft,
    plan: &mut PlanState,
) -> Result<(), VisitError> {
    let what = "a comment";
    if let Some(id) = plan.comment {
        let answer = client.write(what, client.host().edit_comment(draft.number, id, &draft.text)).await?;
        match answer.status {
            200..300 => return Ok(()),
            // Somebody deleted it.
            status if GONE.contains(&status) => plan.comment = None,
            status => return Err(VisitError::of_status(what, status, answer.retry_after)),
        }
    }
    let answer = client.write(what, client.host().create_comment(draft.number, &draft.text)).await?;
    if !matches!(answer.status, 200..300) {
        return Err(VisitError::of_status(what, answer.status, answer.retry_after));
    }
    let body: serde_json::Value = serde_json::from_slice(&answer.body).unwrap_or_default();
    plan.comment = body["id"].as_u64();
    Ok(())
}
