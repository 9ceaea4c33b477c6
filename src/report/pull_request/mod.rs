//! Plans of pull requests: what a proposed commit would change in the cluster, as one comment.
//!
//! In: the base and the proposed commit of a Sync, rendered without Secrets, and its live objects.
//! Out: [`PullRequestPlan`], the text of the comment, and the requests of the Git host.
//!
//! A pull request is the text of a stranger. What a plan shows of the cluster is decided in
//! `comparison.rs`: live values only of objects that this Sync owns, and only of fields that the
//! base sets. What a host interprets is made harmless in `markdown.rs`.

mod comment;
mod comparison;
mod host_answers;
mod host_requests;
mod markdown;

pub use comment::{CommentSubject, MAX_COMMENT_BYTES, comment, comment_marker, refusal_comment};
pub use comparison::{FieldChange, LiveView, ObjectChange, PlannedVerb, PullRequestPlan, compare};
pub use host_answers::{HostComment, OpenRequest, changed_files, comments, open_requests};
pub use host_requests::{
    CheckState, GitHost, HostMethod, HostRequest, PullRequestHost, create_comment, edit_comment,
    list_comments, list_files, list_open, set_check,
};
