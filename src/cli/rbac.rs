//! `moorline rbac`: prints the permissions that a Sync needs.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::bail;
use clap::Args;
use serde_json::{Value, json};

use super::exit::Exit;
use super::manifests::{self, Selection};
use super::operate::{inspect_existing, namespace, on_cluster, reading};
use super::sync_set_plan::look_up_set;
use super::sync_set_rights::{rights_of_set, rights_of_sets};
use super::{Streams, sanitize};
use crate::api::{SyncName, ValuesKind};
use crate::cluster::{Cluster, Connection};
use crate::controller::spec::Verification;
use crate::controller::spec::identity::cloud_accounts;
use crate::desired::{DesiredSet, Scope, Scopes};
use crate::metrics::Metrics;
use crate::object::{GroupKind, ObjectId};
use crate::rbac::{Permissions, PluralNames, RoleSubject, daemon_manifests, manifests as roles};
use crate::report::live_tree::{listed_kinds, plan_reads};
use crate::yaml;

/// Print the RBAC permissions that a Sync needs
///
/// Roles and bindings for the Sync's ServiceAccount, including the permissions that Roles among its
/// objects grant, because RBAC forbids granting permissions that one lacks. Rules that amount to
/// cluster-admin are marked. For a ServiceAccount other than the daemon's own, the output allows
/// the daemon to impersonate it. A SyncSet needs permission to write its Syncs: those of SyncSets
/// among the objects are printed, too.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  moorline rbac --sync shop -n team | kubectl apply -f -
  moorline rbac --sync-set apps -n team | kubectl apply -f -
  moorline rbac clusters/prod --service-account deployer -n shop --daemon moorline/moorline")]
pub(super) struct RbacArgs {
    /// A folder of manifests, or one file
    #[arg(required_unless_present_any = ["sync", "sync_set"], conflicts_with_all = ["sync", "sync_set"])]
    path: Option<PathBuf>,

    /// Permissions of this Sync of the cluster of KUBECONFIG, with its own repository
    #[arg(long, value_name = "NAME", conflicts_with_all = ["service_account", "target_namespace"])]
    sync: Option<String>,

    /// Permissions that this SyncSet of the cluster of KUBECONFIG needs to write its Syncs
    #[arg(long, value_name = "NAME", conflicts_with_all = ["sync", "service_account", "target_namespace", "console"])]
    sync_set: Option<String>,

    /// ServiceAccount of the Sync (spec.serviceAccountName) [default: the daemon's own]
    #[arg(long, value_name = "NAME")]
    service_account: Option<String>,

    /// The daemon's own ServiceAccount [default: moorline, in the namespace of its Lease]
    #[arg(long, value_parser = account, value_name = "NAMESPACE/NAME")]
    daemon: Option<SyncName>,

    /// The namespace of the Sync and of the ServiceAccount
    #[arg(long, short, value_parser = namespace)]
    namespace: Option<String>,

    /// Namespace of objects without one [default: that of the Sync]
    #[arg(long, value_name = "NAMESPACE", value_parser = namespace)]
    target_namespace: Option<String>,

    /// Add what the console reads for viewers: what the objects own, Events, and logs of Pods
    #[arg(long)]
    console: bool,

    #[command(flatten)]
    selection: Selection,
}

/// Namespace and ServiceAccount of the daemon, if neither a flag nor the Sync names them.
const DAEMON: &str = "moorline";

fn account(text: &str) -> Result<SyncName, &'static str> {
    let (namespace, name) = text.split_once('/').ok_or("write NAMESPACE/NAME, such as moorline/moorline")?;
    Ok(SyncName::new(namespace, name))
}

pub(super) fn run(arguments: &RbacArgs, streams: &mut Streams<'_>) -> anyhow::Result<Exit> {
    if let Some(set) = &arguments.sync_set {
        return on_cluster(async |connection| of_set(set, arguments, connection, streams).await);
    }
    match (&arguments.sync, &arguments.path) {
        (Some(sync), _) => on_cluster(async |connection| of_sync(sync, arguments, connection, streams).await),
        (None, Some(path)) => of_path(path, arguments, streams),
        (None, None) => bail!("name a folder of manifests, or a Sync with --sync"),
    }
}

fn of_path(path: &Path, arguments: &RbacArgs, streams: &mut Streams<'_>) -> anyhow::Result<Exit> {
    let Some(complete) = manifests::render_path(path, &arguments.selection, streams)? else {
        return Ok(Exit::Failure);
    };
    let daemon = arguments.daemon.clone().unwrap_or_else(|| SyncName::new(DAEMON, DAEMON));
    let namespace = arguments.namespace.as_deref().unwrap_or(&daemon.namespace);
    let target = arguments.target_namespace.as_deref().unwrap_or(namespace);
    let Some(desired) = manifests::desire(complete, target, &Scopes::builtin(), streams) else {
        return Ok(Exit::Failure);
    };
    // Several Syncs may share an account. Roles of one name would replace each other, and take away
    // permissions that another Sync needs.
    let account = arguments.service_account.as_deref();
    let parts = [namespace, account.unwrap_or(&daemon.name), &slug(path)];
    let role =
        ["moorline"].into_iter().chain(parts).filter(|part| !part.is_empty()).collect::<Vec<_>>().join("-");
    let who = SyncAccess {
        namespace,
        account,
        secrets: Vec::new(),
        identities: BTreeSet::new(),
        daemon: &daemon,
        role,
    };
    let plurals = PluralNames::default();
    let mut rights = Permissions::for_sync(&desired, plurals.clone());
    if account.is_some() {
        rights = rights.with_field_manager(namespace, None);
    }
    if arguments.console {
        rights = with_console(rights, (&desired, namespace), listed_kinds(), &plurals);
    }
    let mut documents = documents(&rights, &who, streams);
    documents.extend(rights_of_sets(&desired, &daemon)?);
    print(&documents, streams)
}

async fn of_set(
    set: &str,
    arguments: &RbacArgs,
    connection: Connection,
    streams: &mut Streams<'_>,
) -> anyhow::Result<Exit> {
    let name = SyncName::new(arguments.namespace.as_deref().unwrap_or(&connection.namespace), set);
    let daemon = arguments.daemon.clone().unwrap_or_else(|| SyncName::new(DAEMON, DAEMON));
    let set = look_up_set(&connection, &name).await?;
    print(&rights_of_set(&name, set.get("spec"), &daemon)?, streams)
}

/// Adds what the console reads with the permissions of the Sync. `served` are the kinds of a
/// namespace, beside those of the objects.
fn with_console(
    rights: Permissions,
    (desired, namespace): (&DesiredSet, &str),
    mut served: BTreeSet<GroupKind>,
    plurals: &PluralNames,
) -> Permissions {
    let ids: Vec<ObjectId> = desired.objects().iter().map(|object| object.id.clone()).collect();
    served.extend(ids.iter().map(ObjectId::group_kind));
    let plan = plan_reads(&ids, &served);
    let namespaces = ids.iter().filter_map(ObjectId::namespace).chain([namespace]);
    // The Sync may list its own kinds already.
    let owned = plan.lists.iter().filter(|list| !list.only_own);
    let lists = owned.map(|list| (&*list.namespace, &list.kind));
    rights.with_viewer_reads(lists, namespaces, plurals)
}

/// A path as a part of a resource name.
fn slug(path: &Path) -> String {
    let text = path.to_string_lossy().to_ascii_lowercase();
    let words = text.split(|it: char| !it.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join("-")
}

/// The accounts and Secrets of a Sync for which permissions are printed.
struct SyncAccess<'a> {
    /// The namespace of the Sync.
    namespace: &'a str,
    /// The ServiceAccount that acts for the Sync; the daemon's own if absent.
    account: Option<&'a str>,
    /// The Secrets that the Sync names.
    secrets: Vec<&'a str>,
    /// The ServiceAccounts whose tokens are exchanged at a cloud.
    identities: BTreeSet<&'a str>,
    daemon: &'a SyncName,
    /// The name of the roles.
    role: String,
}

async fn of_sync(
    sync: &str,
    arguments: &RbacArgs,
    connection: Connection,
    streams: &mut Streams<'_>,
) -> anyhow::Result<Exit> {
    let name = SyncName::new(arguments.namespace.as_deref().unwrap_or(&connection.namespace), sync);
    let seen = connection.sync(&name).await?;
    let metrics = Metrics::new()?;
    let cluster = reading(connection, &metrics);
    let inspected =
        inspect_existing(&cluster, &metrics, &seen, None, &arguments.selection.allowed_remotes()?).await?;
    let kinds = cluster.kinds();
    let plurals =
        PluralNames::from_discovery(kinds.iter().map(|(kind, served)| (kind.clone(), served.plural.clone())));
    // The Lease is in the namespace of the daemon.
    let lease = seen.status.held_by.as_deref().and_then(|lease| lease.split_once('/'));
    let there = || SyncName::new(lease.map_or(DAEMON, |(namespace, _)| namespace), DAEMON);
    let daemon = arguments.daemon.clone().unwrap_or_else(there);
    let valid_spec = &inspected.valid_spec;
    // The daemon can read all Secrets of its own namespace already.
    let mounts = || valid_spec.mounts.iter().map(|mount| &mount.source);
    let verified = [&valid_spec.verify, &valid_spec.chart_verify].into_iter();
    let verified = verified.chain(mounts().map(|source| &source.verify));
    let logins = [&valid_spec.secret, &valid_spec.chart_secret];
    let logins: BTreeSet<&str> = logins
        .into_iter()
        .chain(mounts().map(|source| &source.secret))
        .flatten()
        .map(|name| &**name)
        .collect();
    let keys = verified.flatten().filter_map(Verification::secret);
    let named = logins.iter().copied().chain(keys);
    let secrets = named.filter(|_| name.namespace != daemon.namespace).collect();
    let (account, role) =
        (valid_spec.service_account.as_deref(), format!("moorline-sync-{}-{}", name.namespace, name.name));
    // Without an account, the daemon exchanges tokens of its own.
    let of_daemon = (name.namespace == daemon.namespace).then_some(&*daemon.name);
    let identities: BTreeSet<&str> =
        cloud_accounts(valid_spec).filter_map(|named| named.or(account).or(of_daemon)).collect();
    let asked_for = identities.clone();
    let who = SyncAccess { namespace: &name.namespace, account, secrets, identities, daemon: &daemon, role };
    let mut rights = Permissions::for_sync(&inspected.desired, plurals.clone());
    if account.is_some() {
        rights = rights.with_field_manager(&name.namespace, Some(&name.name));
    }
    // The daemon sends a login only for an account that may read its Secret.
    let is_asked = account.is_some() && name.namespace != daemon.namespace;
    for secret in logins.into_iter().filter(|_| is_asked) {
        rights = rights.with_get(&name.namespace, "secrets", secret);
    }
    for other in asked_for.into_iter().filter(|named| account.is_some_and(|account| account != *named)) {
        rights = rights.with_token(&name.namespace, other);
    }
    for kind in [ValuesKind::ConfigMap, ValuesKind::Secret] {
        let named = valid_spec.values_sources().filter(|values| values.kind == kind);
        let named = named.map(|values| &*values.name);
        rights = rights.with_read(&name.namespace, kind.plural(), named);
    }
    let roots = [&valid_spec.verify, &valid_spec.chart_verify].into_iter();
    let roots = roots.chain(mounts().map(|source| &source.verify)).flatten();
    rights = rights.with_read(&name.namespace, "configmaps", roots.filter_map(Verification::config_map));
    if let Some(decryption) = &valid_spec.decryption {
        rights = rights.with_read(&name.namespace, "secrets", decryption.secret.as_deref());
    }
    if arguments.console {
        let served = kinds.iter().filter(|(_, served)| served.scope == Scope::Namespaced);
        let served = served.map(|(kind, _)| kind.clone()).collect();
        rights = with_console(rights, (&inspected.desired, &name.namespace), served, &plurals);
    }
    let mut roles = documents(&rights, &who, streams);
    roles.extend(rights_of_sets(&inspected.desired, &daemon)?);
    let namespaces = missing_namespaces(&cluster, &roles).await;
    let mut all: Vec<Document> = namespaces.iter().map(|name| namespace_of_roles(name)).collect();
    all.extend(roles);
    print(&all, streams)
}

/// Comment lines about a manifest, and the manifest.
pub(super) type Document = (Vec<String>, Value);

/// The namespaces that the cluster lacks and without which these manifests cannot be applied.
async fn missing_namespaces(cluster: &Cluster, documents: &[Document]) -> Vec<String> {
    let named = documents.iter().filter_map(|(_, document)| document["metadata"]["namespace"].as_str());
    let mut missing = Vec::new();
    for name in named.collect::<BTreeSet<_>>() {
        let Ok(id) = ObjectId::new("", "Namespace", "", name) else { continue };
        if matches!(cluster.objects().read_whole(&id, None).await, Ok(None)) {
            missing.push(name.to_owned());
        }
    }
    missing
}

fn namespace_of_roles(name: &str) -> Document {
    let manifest = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
    (vec!["The cluster does not have this namespace, and the roles below need it.".to_owned()], manifest)
}

fn documents(rights: &Permissions, who: &SyncAccess<'_>, streams: &mut Streams<'_>) -> Vec<Document> {
    for kind in &rights.guessed {
        streams.say(&format!(
            "note: no CustomResourceDefinition of {kind} is available, so its resource name is guessed"
        ));
    }
    let daemon = RoleSubject {
        name: who.daemon.name.clone(),
        namespace: who.daemon.namespace.clone(),
        role: format!("{}-daemon", who.role).into(),
    };
    let subject = match who.account {
        Some(account) => RoleSubject {
            name: account.into(),
            namespace: who.namespace.into(),
            role: who.role.as_str().into(),
        },
        None => RoleSubject { role: who.role.as_str().into(), ..daemon.clone() },
    };
    let of_daemon = daemon_manifests(who.account, &who.secrets, &who.identities, who.namespace, &daemon);
    roles(rights, &subject).into_iter().chain(of_daemon).collect()
}

fn print(documents: &[Document], streams: &mut Streams<'_>) -> anyhow::Result<Exit> {
    for (lines, document) in documents {
        streams.data.write_all(b"---\n")?;
        for line in lines {
            writeln!(streams.data, "# {}", sanitize(line))?;
        }
        streams.data.write_all(yaml::write(document).as_bytes())?;
    }
    Ok(Exit::Done)
}
