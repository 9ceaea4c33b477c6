//! Answers the calls of tools from the cluster of KUBECONFIG.
//!
//! In: a call. Out: a value with texts of other people, which the envelope marks. Everything is
//! read with the rights of the person, and nothing is written.

use anyhow::{Context as _, anyhow, bail};
use serde_json::{Value, json};

use crate::api::SyncName;
use crate::cli::explanation::ObjectQuery;
use crate::cli::operate::reading;
use crate::cli::plan::{PlannedSync, plan_existing};
use crate::cli::schema::{find_document, list_documents};
use crate::cluster::{Connection, SyncResource};
use crate::mcp::{
    ListQuery, LogQuery, PlanQuery, ProposalQuery, SchemaQuery, SyncQuery, ToolCall, history, is_ready,
    propose, summary, why,
};
use crate::metrics::Metrics;
use crate::object::ObjectId;
use crate::report::waiting;
use crate::source::AllowList;

/// The most lines of a log.
const MAX_LOG_LINES: u32 = 200;
/// The most bytes of a log.
const MAX_LOG_BYTES: usize = 32 * 1024;
/// Bytes that a server may send beyond the limit that it was given.
const LOG_SLACK: usize = 4096;

/// Answers a call.
pub(super) async fn answer(call: &ToolCall, connection: &Connection) -> anyhow::Result<Value> {
    match call {
        ToolCall::ListSyncs(query) => list_syncs(query, connection).await,
        ToolCall::Why(query) => {
            let sync = find(query, connection).await?;
            Ok(why(&sync.name, &sync.status, is_suspended(&sync)))
        }
        ToolCall::History(query) => {
            let sync = find(query, connection).await?;
            Ok(history(&sync.name, &sync.status))
        }
        ToolCall::Plan(query) => {
            if query.object.is_some() {
                bail!("`object` is an argument of diff");
            }
            let sync = find(&of_plan(query), connection).await?;
            plan_document(&sync, query.revision.as_deref(), connection).await
        }
        ToolCall::Diff(query) => diff(query, connection).await,
        ToolCall::Schema(query) => schema(query),
        ToolCall::Logs(query) => logs(query, connection).await,
        ToolCall::Propose(query) => proposal(query, connection).await,
    }
}

fn of_plan(query: &PlanQuery) -> SyncQuery {
    SyncQuery { name: query.name.clone(), namespace: query.namespace.clone() }
}

async fn find(query: &SyncQuery, connection: &Connection) -> anyhow::Result<SyncResource> {
    let namespace = query.namespace.as_deref().unwrap_or(&connection.namespace);
    Ok(connection.sync(&SyncName::new(namespace, &query.name)).await?)
}

async fn list_syncs(query: &ListQuery, connection: &Connection) -> anyhow::Result<Value> {
    let all = connection.syncs(query.namespace.as_deref()).await?;
    let shown = all.iter().filter(|sync| !query.not_ready || !is_ready(&sync.status));
    let rows: Vec<Value> = shown.map(|sync| summary(&sync.name, &sync.status, is_suspended(sync))).collect();
    Ok(json!({"total": all.len(), "syncs": rows}))
}

fn is_suspended(sync: &SyncResource) -> bool {
    sync.resource.data["spec"]["suspend"].as_bool().unwrap_or_default()
}

async fn planned(
    sync: &SyncResource,
    revision: Option<&str>,
    connection: &Connection,
) -> anyhow::Result<PlannedSync> {
    if sync.resource.data.pointer("/spec/decryption").is_some() {
        bail!("{} decrypts files, so only a person can plan it: moorline plan --decrypt", sync.name);
    }
    let metrics = Metrics::new()?;
    let cluster = reading(connection.clone(), &metrics);
    let none = AllowList::new("--allow-remote", std::iter::empty())?;
    plan_existing(&cluster, &metrics, sync, revision, &none).await
}

async fn plan_document(
    sync: &SyncResource,
    revision: Option<&str>,
    connection: &Connection,
) -> anyhow::Result<Value> {
    let found = planned(sync, revision, connection).await?;
    Ok(json!({
        "sync": sync.name.to_string(), "revision": found.inspected.revision.to_string(),
        "planHash": found.hash(&sync.name), "plan": found.document(),
    }))
}

async fn diff(query: &PlanQuery, connection: &Connection) -> anyhow::Result<Value> {
    let object =
        query.object.as_deref().map(ObjectQuery::parse).transpose().map_err(|error| anyhow!(error))?;
    let sync = find(&of_plan(query), connection).await?;
    let found = planned(&sync, query.revision.as_deref(), connection).await?;
    let document = found.document();
    let stages = document["stages"].as_array().into_iter().flatten();
    let steps = stages.flat_map(|stage| stage["steps"].as_array().into_iter().flatten());
    let held = document["held"].as_array().into_iter().flatten();
    let is_asked = |step: &&Value| {
        object.as_ref().is_none_or(|object| id_of(step).is_some_and(|id| object.matches(&id)))
    };
    let shown: Vec<Value> = steps.chain(held).filter(is_asked).cloned().collect();
    Ok(json!({
        "sync": sync.name.to_string(), "revision": found.inspected.revision.to_string(), "objects": shown,
    }))
}

/// The object of a step of the plan's document.
fn id_of(step: &Value) -> Option<ObjectId> {
    let text = |field: &str| step[field].as_str().unwrap_or_default();
    ObjectId::new(text("group"), text("kind"), text("namespace"), text("name")).ok()
}

/// Returns a schema, or a part of it.
pub(super) fn schema(query: &SchemaQuery) -> anyhow::Result<Value> {
    let Some(name) = &query.name else { return Ok(list_documents()) };
    let document = find_document(name).context("there is no such schema; without a name they are listed")?;
    let mut schema = document.schema();
    for step in query.field.iter().flat_map(|path| path.split('.')) {
        let inner = if step == "items" { schema["items"].clone() } else { Value::Null };
        let found = if inner.is_null() { schema["properties"][step].clone() } else { inner };
        // A list is looked through on the way to a field of its entries.
        let found = if found.is_null() { schema["items"]["properties"][step].clone() } else { found };
        if found.is_null() {
            bail!("the schema has no such field");
        }
        schema = found;
    }
    Ok(schema)
}

async fn logs(query: &LogQuery, connection: &Connection) -> anyhow::Result<Value> {
    let mut path = format!(
        "/api/v1/namespaces/{}/pods/{}/log?tailLines={MAX_LOG_LINES}&limitBytes={MAX_LOG_BYTES}",
        query.namespace, query.pod
    );
    if let Some(container) = &query.container {
        path.push_str(&format!("&container={container}"));
    }
    if query.previous {
        path.push_str("&previous=true");
    }
    let text = connection
        .look_up_text(&path, MAX_LOG_BYTES + LOG_SLACK)
        .await
        .map_err(|cause| anyhow!("{cause}"))?;
    let lines: Vec<&str> = text.lines().collect();
    Ok(json!({"pod": query.pod, "namespace": query.namespace, "lines": lines}))
}

async fn proposal(query: &ProposalQuery, connection: &Connection) -> anyhow::Result<Value> {
    let asked = SyncQuery { name: query.name.clone(), namespace: query.namespace.clone() };
    let sync = find(&asked, connection).await?;
    let proposal = propose(query, &sync.name).map_err(|missing| anyhow!(missing))?;
    let planned = match proposal.has_plan {
        true => Some(plan_document(&sync, query.revision.as_deref(), connection).await?),
        false => None,
    };
    Ok(proposal.document(planned, &json!(waiting(&sync.status))))
}
