//! Plans of pull requests: what a proposed commit would change in the cluster, as one comment.
//!
//! In: the base and the proposed commit of a Sync, rendered without Secrets, and its live objects.
//! Out: [`PullRequestPlan`], and the text of the comment, of one Sync or of several (`group.rs`).
//!
//! A pull request is the text of a stranger. What a plan shows of the cluster is decided in
//! `comparison.rs`: live values only of objects that this Sync owns, and only of fields that the
//! base sets. What a host interprets is made harmless in `markdown.rs`.

mod comment;
mod comparison;
mod group;
mod markdown;
mod plan_record;

pub use comment::{CommentSubject, comment, comment_marker, plan_summary, refusal_comment};
pub use comparison::{FieldChange, LiveView, ObjectChange, PlannedVerb, PullRequestPlan, compare};
pub use group::{GroupSubject, PlanSection, group_comment, group_marker};
pub use plan_record::{PlanRecord, record_of, with_record};
