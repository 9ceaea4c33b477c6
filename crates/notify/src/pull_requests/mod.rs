//! Pull requests on a host of repositories: its requests, its answers, and decisions about them.
//!
//! In: a Notifier with `pullRequests`, a repository, and the answers of its host.
//! Out: requests (`host_requests.rs`), what the answers say (`host_answers.rs`), the permission of
//! a maintainer for a fork (`label_gate.rs`), the pages of a list (`page_cursor.rs`), and
//! the Syncs that a change touches (`touched.rs`).

mod host_answers;
mod host_requests;
mod label_gate;
mod page_cursor;
mod touched;

pub use host_answers::{HostComment, OpenRequest, changed_files, comments, open_requests, user_name};
pub use host_requests::{CheckState, PullRequestHost};
pub use label_gate::LabelGate;
pub use page_cursor::{ListPage, PageCursor};
pub use touched::touches;
