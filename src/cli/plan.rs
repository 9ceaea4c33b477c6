//! `moorline plan`: prints what a sync would change, and why.

use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};

use anyhow::bail;
use clap::{Args, ValueEnum};
use serde_json::Value;

use super::Streams;
use super::exit::Exit;
use super::manifests::{self, Selection};
use super::operate::moves::display_move_target;
use super::operate::{inspect_existing, namespace, on_cluster, reading};
use super::plan_hash::plan_hash;
use super::pull_request_plan;
use super::sync_set_plan;
use crate::api::{APPROVE_ANNOTATION, MOVES_TO_ANNOTATION, SyncName, SyncStatus};
use crate::cluster::{Cluster, Connection, SyncResource, live_objects};
use crate::controller::inspect::Inspected;
use crate::desired::{DesiredSet, Scope, Scopes};
use crate::metrics::Metrics;
use crate::name_rules;
use crate::object::{Object, ObjectId};
use crate::plan::{
    ColourMode, DetailLevel, Difference, Plan, Policy, Preview, PruneGuard, Style, created_bodies,
    deletes_others, format_plan, plan, plan_document, preview,
};
use crate::render;
use crate::source::{AllowList, directory};
use crate::yaml;

/// Show what a sync would do, and why
///
/// Decides with the same function as the daemon, and writes nothing.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  moorline plan --sync shop -n team                      changes of its next commit
  moorline plan --sync shop -n team --revision v1.4.0    changes of another revision
  moorline plan --sync shop -n team --pull-request 7     a pull request, without Secrets
  moorline plan --sync-set apps -n team                  the Syncs of a SyncSet
  moorline plan clusters/prod --against cluster --namespace moorline --name prod
  moorline plan clusters/prod --against cluster --show-all           with new objects in full
  moorline plan clusters/prod --against live/ --output json | jq '.held'

Live objects in a folder are as `kubectl get -o yaml --show-managed-fields` prints them.
Exit codes: 0 nothing to do, 1 failure, 2 changes, 3 nothing to write but something held.")]
pub(super) struct PlanArgs {
    /// A folder of manifests, or one file
    #[arg(required_unless_present_any = ["sync", "sync_set"], conflicts_with_all = ["sync", "sync_set"], requires = "against")]
    path: Option<PathBuf>,

    /// Compare with the `cluster` of KUBECONFIG, or with a folder of live objects
    #[arg(long, value_name = "DIR", conflicts_with = "sync")]
    against: Option<PathBuf>,

    /// Plan this Sync of the cluster of KUBECONFIG, with its own repository
    #[arg(long, value_name = "NAME", conflicts_with_all = ["name", "target_namespace"])]
    sync: Option<String>,

    /// Preview each Sync of this SyncSet; with --show-all also the plan of each
    #[arg(long, value_name = "NAME", conflicts_with_all = ["sync", "against", "name", "target_namespace"])]
    sync_set: Option<String>,

    /// Plan this commit, branch or tag in place of the Sync's own revision
    #[arg(long, value_name = "REVISION", requires = "sync")]
    revision: Option<String>,

    /// Plan this pull request, without Secrets, as the comment that it gets
    #[arg(long, value_name = "NUMBER", requires = "sync", conflicts_with = "revision")]
    pull_request: Option<u64>,

    /// Name of the cluster in that comment
    #[arg(long, value_name = "NAME", default_value = "cluster", requires = "pull_request")]
    cluster_name: String,

    /// Name of the Sync that owns the objects
    #[arg(long, default_value = "default", value_parser = name)]
    name: String,

    /// Namespace of the Sync [default with a cluster: that of the kubeconfig]
    #[arg(long, short, value_parser = namespace)]
    namespace: Option<String>,

    /// Namespace of objects without one [default: that of the Sync]
    #[arg(long, value_name = "NAMESPACE", value_parser = namespace)]
    target_namespace: Option<String>,

    #[command(flatten)]
    selection: Selection,

    /// Show new objects in full, and every field and line of a change
    #[arg(long)]
    show_all: bool,

    /// Output format
    #[arg(long, short, value_enum, default_value_t = PlanFormat::Text)]
    output: PlanFormat,

    /// Use of colours
    #[arg(long, value_enum, default_value_t = Colour::Auto)]
    color: Colour,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum PlanFormat {
    Text,
    Json,
    Yaml,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(super) enum Colour {
    Auto,
    Always,
    Never,
}

pub(super) fn run(arguments: &PlanArgs, streams: &mut Streams<'_>) -> anyhow::Result<Exit> {
    if let (Some(number), Some(sync)) = (arguments.pull_request, &arguments.sync) {
        let place = (arguments.namespace.as_deref(), arguments.cluster_name.as_str());
        return pull_request_plan::run((number, sync), place, streams);
    }
    if let Some(set) = &arguments.sync_set {
        let place = (arguments.namespace.as_deref(), arguments.show_all);
        return sync_set_plan::run(set, place, &arguments.selection.allowed_remotes()?, streams);
    }
    match (&arguments.sync, &arguments.path, &arguments.against) {
        (Some(sync), _, _) => {
            on_cluster(async |connection| of_sync(sync, arguments, connection, streams).await)
        }
        (None, Some(path), Some(against)) if against.as_os_str() == "cluster" => {
            on_cluster(async |connection| on_live(path, arguments, connection, streams).await)
        }
        (None, Some(path), Some(against)) => in_folder(path, against, arguments, streams),
        (None, _, _) => bail!("name a folder of manifests with --against, or a Sync with --sync"),
    }
}

/// Plans manifests of a folder against live objects of a folder.
fn in_folder(
    path: &Path,
    against: &Path,
    arguments: &PlanArgs,
    streams: &mut Streams<'_>,
) -> anyhow::Result<Exit> {
    let Some(complete) = manifests::render_path(path, &arguments.selection, streams)? else {
        return Ok(Exit::Failure);
    };
    let (tree, inside) = directory::read(against, render::is_read)?;
    let live = match render::dump(&tree, &inside) {
        Ok(dump) => {
            manifests::print_skipped(&dump.skipped, streams);
            dump.objects
        }
        Err(problems) => {
            manifests::print_problems(&problems, streams);
            return Ok(Exit::Failure);
        }
    };
    if live.is_empty() {
        streams.say("note: no live objects found; the plan is for an empty cluster");
    }
    let own = arguments.namespace.as_deref().unwrap_or("default");
    let target = arguments.target_namespace.as_deref().unwrap_or(own);
    let Some(desired) = manifests::desire(complete, target, &scopes(&live), streams) else {
        return Ok(Exit::Failure);
    };
    let owner = SyncName::new(own, &arguments.name);
    let (plan, preview) = decide(&desired, &live, &owner, Policy::default(), &[]);
    show(plan, preview, &desired, arguments, streams)
}

/// Plans manifests of a folder against a cluster.
async fn on_live(
    path: &Path,
    arguments: &PlanArgs,
    connection: Connection,
    streams: &mut Streams<'_>,
) -> anyhow::Result<Exit> {
    let Some(complete) = manifests::render_path(path, &arguments.selection, streams)? else {
        return Ok(Exit::Failure);
    };
    let own = arguments.namespace.clone().unwrap_or_else(|| connection.namespace.to_string());
    let target = arguments.target_namespace.as_deref().unwrap_or(&own);
    let cluster = reading(connection, &Metrics::new()?);
    cluster.discovery().ensure().await?;
    let Some(desired) = manifests::desire(complete, target, &cluster.kinds().scopes(), streams) else {
        return Ok(Exit::Failure);
    };
    let owner = SyncName::new(&own, &arguments.name);
    let live = read_live_objects(&cluster, &owner, &desired, &[]).await?;
    let (plan, preview) = decide(&desired, &live, &owner, Policy::default(), &[]);
    show(plan, preview, &desired, arguments, streams)
}

/// Plans a Sync of a cluster, at its own revision or another.
async fn of_sync(
    sync: &str,
    arguments: &PlanArgs,
    connection: Connection,
    streams: &mut Streams<'_>,
) -> anyhow::Result<Exit> {
    let owner = SyncName::new(arguments.namespace.as_deref().unwrap_or(&connection.namespace), sync);
    let seen = connection.sync(&owner).await?;
    if seen.resource.data.pointer("/spec/decryption").is_some() && !arguments.selection.decrypt {
        bail!(
            "{owner} decrypts files; add --decrypt to plan it, with the keys in the Secret that it names (no value is printed)"
        );
    }
    let metrics = Metrics::new()?;
    let cluster = reading(connection, &metrics);
    let at = arguments.revision.as_deref();
    let planned =
        plan_existing(&cluster, &metrics, &seen, at, &arguments.selection.allowed_remotes()?).await?;
    streams.say(&format!("note: this is the plan for {}", planned.inspected.revision));
    let annotations = seen.resource.metadata.annotations.as_ref();
    if let Some(to) = annotations.and_then(|all| all.get(MOVES_TO_ANNOTATION)) {
        let to = display_move_target(to, &owner);
        streams.say(&format!(
            "note: {owner} moves to {to}: objects pruned here are handed over if that Sync claims them"
        ));
    }
    match &planned.approval {
        Some(hash) => streams.say(&format!(
            "note: it waits for approval: moorline approve {sync} -n {} --hash {hash}",
            owner.namespace
        )),
        None => streams.say(&format!("note: the hash of this plan is {}", planned.hash(&owner))),
    }
    show(planned.plan, planned.preview, &planned.inspected.desired, arguments, streams)
}

/// The plan of a Sync of a cluster.
pub(super) struct PlannedSync {
    pub(super) inspected: Inspected,
    /// The hash that approves the revision, if it waits for approval.
    approval: Option<String>,
    plan: Plan,
    preview: Preview,
}

impl PlannedSync {
    /// The plan as JSON.
    pub(super) fn document(&self) -> Value {
        plan_document(&self.plan, &self.preview.differences)
    }

    /// The hash by which a person recognises this plan: the one that approves it, if it waits for
    /// approval.
    pub(super) fn hash(&self, owner: &SyncName) -> String {
        let of_plan = || plan_hash(owner, &self.inspected.revision.to_string(), &self.document());
        self.approval.clone().unwrap_or_else(of_plan)
    }
}

/// Plans a Sync as the daemon would, at its own revision or another.
pub(super) async fn plan_existing(
    cluster: &Cluster,
    metrics: &Metrics,
    seen: &SyncResource,
    at: Option<&str>,
    allowed: &AllowList,
) -> anyhow::Result<PlannedSync> {
    let inspected = inspect_existing(cluster, metrics, seen, at, allowed).await?;
    let annotations = seen.resource.metadata.annotations.as_ref();
    let approved = annotations.and_then(|all| all.get(APPROVE_ANNOTATION)).cloned();
    let live = read_live_objects(cluster, &seen.name, &inspected.desired, &[]).await?;
    let status = seen.resource.data.get("status").cloned().map(serde_json::from_value);
    let status: SyncStatus = status.and_then(Result::ok).unwrap_or_default();
    let revision = Some(inspected.revision.to_string());
    let asked = status.approvals.iter().find(|asked| asked.revision == revision);
    let approval = asked.map(|asked| asked.hash.clone());
    let unproven = status.problems.iter().filter(|problem| problem.reason == UNPROVEN);
    let unproven: Vec<String> = unproven.filter_map(|problem| problem.object.clone()).collect();
    let policy = inspected.policy(approved, &status);
    let (plan, preview) = decide(&inspected.desired, &live, &seen.name, policy, &unproven);
    Ok(PlannedSync { inspected, approval, plan, preview })
}

/// Reads the objects of a Sync, those that it would adopt, and `others`.
pub(super) async fn read_live_objects(
    cluster: &Cluster,
    owner: &SyncName,
    desired: &DesiredSet,
    others: &[ObjectId],
) -> anyhow::Result<Vec<Object>> {
    let (mut kinds, _) = cluster.discover_labelled_kinds(owner).await?;
    kinds.extend(desired.objects().iter().map(|object| object.id.group_kind()));
    let others = others.iter().filter(|id| desired.get(id).is_none());
    let wanted = desired.objects().iter().map(|object| &object.id).chain(others);
    Ok(live_objects(cluster, owner, &kinds, wanted).await?)
}

/// The reason of problems about missing proofs in a status: only the daemon can check proofs.
const UNPROVEN: &str = "Unproven";

fn show(
    plan: Plan,
    preview: Preview,
    desired: &DesiredSet,
    arguments: &PlanArgs,
    streams: &mut Streams<'_>,
) -> anyhow::Result<Exit> {
    if preview.assumed_entries {
        streams.say("note: live objects have no managed fields, so those with Moorline's identity are assumed to be applied by it; use kubectl with --show-managed-fields");
    }
    let mut differences = preview.differences;
    if arguments.show_all {
        differences.extend(created_bodies(&plan, desired));
    }
    print(&plan, &differences, arguments, streams)?;
    Ok(exit(&plan))
}

/// Decides the plan as the daemon would do now.
pub(super) fn decide(
    desired: &DesiredSet,
    live: &[Object],
    owner: &SyncName,
    policy: Policy,
    unproven: &[String],
) -> (Plan, Preview) {
    let mut preview = preview(desired, live, owner);
    preview.mark_unproven(unproven);
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    let now = i64::try_from(now.as_millis()).unwrap_or(i64::MAX);
    let takes = |object: &&Object| deletes_others(&object.id.group_kind(), &object.body);
    let guarded =
        live.iter().filter(takes).map(|object| (object.id.clone(), PruneGuard::CascadingDelete)).collect();
    (plan(desired, &preview.observed, &Policy { now, guards: guarded, ..policy }), preview)
}

/// The exit code of a command that prints this plan.
pub(super) fn exit(plan: &Plan) -> Exit {
    match (plan.writes_nothing(), plan.held.is_empty()) {
        (false, _) => Exit::Changes,
        (true, false) => Exit::Held,
        (true, true) => Exit::Done,
    }
}

fn print(
    plan: &Plan,
    differences: &BTreeMap<ObjectId, Vec<Difference>>,
    arguments: &PlanArgs,
    streams: &mut Streams<'_>,
) -> anyhow::Result<()> {
    let extent = if arguments.show_all { DetailLevel::All } else { DetailLevel::Brief };
    let style = Style { paint: arguments.color.paint(), extent };
    match arguments.output {
        PlanFormat::Text => streams.data.write_all(format_plan(plan, differences, style).as_bytes())?,
        PlanFormat::Json => writeln!(streams.data, "{:#}", plan_document(plan, differences))?,
        PlanFormat::Yaml => {
            streams.data.write_all(yaml::write(&plan_document(plan, differences)).as_bytes())?
        }
    }
    Ok(())
}

/// Scopes of Kubernetes' own kinds, of the kinds that live definitions define, and of those that
/// have live objects.
fn scopes(live: &[Object]) -> Scopes {
    let mut scopes = Scopes::builtin();
    live.iter().for_each(|object| scopes.record_definition(object));
    for object in live {
        if scopes.get(object.id.group(), object.id.kind()).is_none() {
            let scope = object.id.namespace().map_or(Scope::Cluster, |_| Scope::Namespaced);
            scopes.insert(object.id.group_kind(), scope);
        }
    }
    scopes
}

fn name(text: &str) -> Result<String, &'static str> {
    name_rules::sync_name(text).map_or_else(|| Ok(text.to_owned()), Err)
}

impl Colour {
    pub(super) fn paint(self) -> ColourMode {
        let wanted = match self {
            Self::Always => true,
            Self::Never => false,
            Self::Auto => std::env::var_os("NO_COLOR").is_none() && std::io::stdout().is_terminal(),
        };
        if wanted { ColourMode::Colours } else { ColourMode::Plain }
    }
}
