//! The Model Context Protocol without its transport: messages, sessions, tools and answers.
//!
//! In: messages of a client, and the statuses of Syncs. Out: answers. `moorline mcp` serves it over
//! standard input, and the console over HTTP (`src/serve/mcp.rs`). No tool changes anything.

mod envelope;
mod message;
mod proposal;
mod session;
mod sync_answers;
mod tools;

pub(crate) use envelope::enclose;
pub(crate) use message::{ErrorCode, RequestId, error};
pub(crate) use proposal::propose;
pub(crate) use session::{PROTOCOLS, Session, Step, tool_result};
pub(crate) use sync_answers::{history, is_ready, summary, why};
pub(crate) use tools::{
    ListQuery, LogQuery, PlanQuery, ProposalQuery, SchemaQuery, SyncQuery, ToolCall, ToolSet,
};
