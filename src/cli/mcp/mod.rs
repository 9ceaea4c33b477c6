//! `moorline mcp`: answers a program that speaks the Model Context Protocol over standard input.
//!
//! In: lines of JSON-RPC 2.0. Out: one line for each request. The cluster is read with the rights
//! of the person, and never written to.

mod answers;
mod input;

use std::collections::VecDeque;
use std::io::BufReader;
use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use serde_json::json;
use tokio::sync::mpsc::{Receiver, channel};

use super::Streams;
use super::exit::Exit;
use super::operate::with_or_without_cluster;
use crate::cluster::{ConnectError, Connection};
use crate::mcp::{ErrorCode, RequestId, Session, Step, ToolCall, ToolSet, enclose, error, tool_result};
use input::{InputLine, MAX_LINE_BYTES, read_lines};

/// Lines that wait to be read.
const MAX_LINES: usize = 16;
/// Calls that wait for the one that runs.
const MAX_CALLS: usize = 64;
/// The longest time of a call.
const CALL_TIMEOUT: Duration = Duration::from_secs(120);

/// Answer an AI agent over standard input (Model Context Protocol)
///
/// Reads with your kubeconfig, and writes nothing: a change is a proposal, which you run yourself.
/// There is no tool that approves anything.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  moorline mcp            as the command of an MCP server in the settings of your agent
  moorline mcp --logs     also with the logs of Pods")]
pub(super) struct McpArgs {
    /// Allow the tool that reads logs of Pods, which may contain secrets
    #[arg(long)]
    logs: bool,
}

pub(super) fn run(arguments: &McpArgs, streams: &mut Streams<'_>) -> anyhow::Result<Exit> {
    let (sender, lines) = channel(MAX_LINES);
    // The thread ends with the input, or with the process.
    let reader = std::thread::Builder::new().name("mcp-input".to_owned());
    reader
        .spawn(move || read_lines(BufReader::new(std::io::stdin()), &sender))
        .context("cannot start the thread that reads")?;
    let tools = if arguments.logs { ToolSet::LocalWithLogs } else { ToolSet::Local };
    with_or_without_cluster(async |connection| {
        let served = Server { connection, session: Session::new(tools), waiting: VecDeque::new() };
        served.serve(lines, streams).await
    })
}

type Call = (RequestId, ToolCall, &'static str);

struct Server {
    connection: Result<Connection, ConnectError>,
    session: Session,
    waiting: VecDeque<Call>,
}

impl Server {
    /// Answers until the input ends and every call is answered.
    async fn serve(
        mut self,
        mut lines: Receiver<InputLine>,
        streams: &mut Streams<'_>,
    ) -> anyhow::Result<Exit> {
        let mut is_open = true;
        while is_open || !self.waiting.is_empty() {
            let Some((id, call, tool)) = self.waiting.pop_front() else {
                match lines.recv().await {
                    Some(line) => drop(self.take(line, None, streams)?),
                    None => is_open = false,
                }
                continue;
            };
            let connection = self.connection.as_ref().map(Clone::clone).map_err(ToString::to_string);
            let mut work = std::pin::pin!(run_call(&call, tool, connection));
            loop {
                tokio::select! {
                    line = lines.recv(), if is_open => match line {
                        None => is_open = false,
                        // The client no longer waits: the call is dropped and not answered.
                        Some(line) => if self.take(line, Some(&id), streams)? { break },
                    },
                    (text, failed) = &mut work => {
                        put(&tool_result(&id, &text, failed), streams)?;
                        break;
                    }
                }
            }
        }
        Ok(Exit::Done)
    }

    /// Handles a line; true if it cancels the running call.
    fn take(
        &mut self,
        line: InputLine,
        running: Option<&RequestId>,
        streams: &mut Streams<'_>,
    ) -> anyhow::Result<bool> {
        let step = match line {
            InputLine::Text(line) => self.session.handle(&line),
            InputLine::TooLong => {
                let message = format!("a line has at most {MAX_LINE_BYTES} bytes");
                Step::Answer(error(None, ErrorCode::InvalidRequest, &message))
            }
        };
        match step {
            Step::Nothing => {}
            Step::Answer(answer) => put(&answer, streams)?,
            Step::Cancel(id) => {
                self.waiting.retain(|(known, ..)| *known != id);
                return Ok(running == Some(&id));
            }
            Step::Call(id, call, tool) => {
                let is_known = running == Some(&id) || self.waiting.iter().any(|(known, ..)| *known == id);
                match call {
                    _ if is_known => {
                        put(&error(Some(&id), ErrorCode::InvalidRequest, "the id is in use"), streams)?;
                    }
                    _ if self.waiting.len() >= MAX_CALLS => {
                        put(&error(Some(&id), ErrorCode::Busy, "too many calls wait"), streams)?;
                    }
                    Err(problem) => {
                        let text = enclose(tool, &json!({"error": problem}));
                        put(&tool_result(&id, &text, true), streams)?;
                    }
                    Ok(call) => self.waiting.push_back((id, call, tool)),
                }
            }
        }
        Ok(false)
    }
}

/// Runs a call; returns the answer, and true if it failed.
async fn run_call(call: &ToolCall, tool: &str, connection: Result<Connection, String>) -> (String, bool) {
    let work = async {
        let answered = match (call, connection) {
            // A schema needs no cluster.
            (ToolCall::Schema(query), _) => answers::schema(query),
            (_, Ok(connection)) => answers::answer(call, &connection).await,
            (_, Err(problem)) => return Err(problem),
        };
        answered.map_err(|error| format!("{error:#}"))
    };
    let late = |_| Err(format!("no answer within {} s", CALL_TIMEOUT.as_secs()));
    match tokio::time::timeout(CALL_TIMEOUT, work).await.unwrap_or_else(late) {
        Ok(data) => (enclose(tool, &data), false),
        Err(problem) => (enclose(tool, &json!({"error": problem})), true),
    }
}

/// Writes a line to the client.
fn put(line: &str, streams: &mut Streams<'_>) -> anyhow::Result<()> {
    writeln!(streams.data, "{line}")?;
    Ok(streams.data.flush()?)
}
