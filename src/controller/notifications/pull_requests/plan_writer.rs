//! Writes plans to the host: statuses on the commit, and one comment that is edited later.
//!
//! In: plans, and the texts that the host has. Out: requests, but none for a text that it has.
//! The statuses come first, so that a comment proves that both were written.

use super::host_client::{ErrorReach, HostClient, VisitError};
use super::repository_state::{CommentState, OpenState, PlanCheck};
use crate::api::PullRequestOptions;
use crate::notifications::pull_requests::{PageCursor, comments, user_name};
use crate::notifications::{AttemptResult, Service, read_answer};
use crate::report::pull_request::{GroupSubject, group_comment, group_marker, record_of};

/// Statuses of a comment that is gone.
const GONE: [u16; 2] = [404, 410];
/// Most comments that are searched.
const MAX_COMMENTS: usize = 512;

/// Writes the plans of a pull request, unless the host has them already.
pub(super) async fn write_plans(
    client: &HostClient<'_>,
    (service, options): (Service, &PullRequestOptions),
    subject: GroupSubject<'_>,
    (open, user): (&mut OpenState, &mut Option<Box<str>>),
) -> Result<(), VisitError> {
    let (number, head) = (open.request.number, open.request.head.clone());
    let sections = open.sections();
    if sections.is_empty() || !open.is_allowed {
        return Ok(());
    }
    let subject = GroupSubject { head: &head, ..subject };
    let (text, record) = group_comment(&subject, &sections);
    let mut may_comment = options.comment != Some(false);
    let comment = &mut open.comment;
    if may_comment && comment.id.is_none() {
        let marker = group_marker(&subject);
        may_comment = find_comment(client, service, (number, &marker), (comment, user)).await?;
    }
    let is_written = comment.written.as_ref() == Some(&record);
    let is_of_earlier = std::mem::take(&mut comment.is_of_earlier) && is_written;
    let mut refused = None;
    for (name, plan) in &mut open.plans {
        let drawn = plan.drawn.as_ref().map(|drawn| &drawn.check).filter(|check| check.head == head);
        let Some(check) = drawn.filter(|check| plan.check.as_ref() != Some(check)) else { continue };
        if options.check != Some(false) && !is_of_earlier {
            let context = format!("moorline/plan/{}/{name}", subject.cluster);
            match set_check(client, service, &context, check).await {
                Err(error) if error.reach != ErrorReach::Visit => {
                    refused.get_or_insert(error);
                    continue;
                }
                result => result?,
            }
        }
        plan.check = Some(check.clone());
    }
    if may_comment && !is_written {
        write_comment(client, (number, &text), &mut open.comment).await?;
    }
    open.comment.written = Some(record);
    // The comment is written also if a status is refused.
    refused.map_or(Ok(()), Err)
}

/// Finds the comment of an earlier daemon; false if there are too many comments to know.
pub(super) async fn find_comment(
    client: &HostClient<'_>,
    service: Service,
    (number, marker): (u64, &str),
    (comment, user): (&mut CommentState, &mut Option<Box<str>>),
) -> Result<bool, VisitError> {
    let what = "the account of the token";
    let name = match user {
        Some(name) => name.clone(),
        None => {
            // Nothing can be written without it.
            let answer = client.read(what, client.host().user()).await.map_err(VisitError::of_visit)?;
            let name = user_name(service, &answer);
            name.ok_or_else(|| VisitError::new(format!("{what}: it has no name"), true))?
        }
    };
    *user = Some(name.clone());
    let mut pages = PageCursor::new(MAX_COMMENTS);
    while let Some(page) = pages.next_page() {
        let answer = match client.read("the comments", client.host().list_comments(number, page)).await {
            Err(error) if error.reach == ErrorReach::Length && service == Service::Gitea => break,
            // Others may write long comments.
            Err(error) if error.reach == ErrorReach::Length => {
                pages.halve();
                continue;
            }
            answer => answer?,
        };
        if let Some(own) = comments(service, &answer).iter().find(|one| one.is_own(&name, marker)) {
            (comment.id, comment.written) = (Some(own.id), record_of(&own.text));
            (comment.is_of_earlier, comment.is_searched) = (true, true);
            return Ok(true);
        }
        pages.read(answer.as_array().map_or(0, Vec::len));
        if pages.is_at_end() || service == Service::Gitea {
            comment.is_searched = true;
            return Ok(true);
        }
    }
    comment.is_searched = true;
    tracing::warn!(number, "a pull request has too many comments: its plan is a status alone");
    Ok(false)
}

async fn set_check(
    client: &HostClient<'_>,
    service: Service,
    context: &str,
    check: &PlanCheck,
) -> Result<(), VisitError> {
    let what = "a status";
    let request = client.host().set_check(
        (&check.head, check.state),
        (context, &check.description),
        check.link.as_deref(),
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
    (number, text): (u64, &str),
    comment: &mut CommentState,
) -> Result<(), VisitError> {
    let what = "a comment";
    if let Some(id) = comment.id {
        let answer = client.write(what, client.host().edit_comment(number, id, text)).await?;
        match answer.status {
            200..300 => return Ok(()),
            // Somebody deleted it.
            status if GONE.contains(&status) => comment.id = None,
            status => return Err(VisitError::of_status(what, status, answer.retry_after)),
        }
    }
    let answer = client.write(what, client.host().create_comment(number, text)).await?;
    if !matches!(answer.status, 200..300) {
        return Err(VisitError::of_status(what, answer.status, answer.retry_after));
    }
    let body: serde_json::Value = serde_json::from_slice(&answer.body).unwrap_or_default();
    comment.id = body["id"].as_u64();
    Ok(())
}
