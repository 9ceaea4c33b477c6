//! `moorline adopt`: moves the objects of an Argo CD Application, a Flux Kustomization or a Flux
//! HelmRelease to a Sync, and back; shows an ApplicationSet as a SyncSet (`application_set.rs`).
//!
//! The mapping itself is in `adopt/`. Here the resources are read (`inputs.rs`), the proposal is
//! made (`proposal.rs`), printed (`output.rs`), applied (`apply.rs`) and undone (`undo.rs`).
//! Nothing is ever deleted but the Sync, by `--undo`.

mod application_set;
mod apply;
mod inputs;
mod output;
mod proposal;
mod release_inputs;
mod source_inputs;
mod undo;

use std::time::Duration;

use anyhow::bail;
use clap::{Args, ValueEnum};

use super::Streams;
use super::exit::Exit;
use super::operate::{namespace, on_cluster, reading};
use super::plan::Colour;
use crate::adopt::{RequestedSync, Tool};
use crate::api::SyncName;
use crate::cluster::{ApiError, while_busy};
use crate::metrics::Metrics;
use crate::name_rules;
use inputs::{AdoptionInputs, gather};
use proposal::propose;

/// Move the objects of an Argo CD Application or a Flux resource to a Sync
///
/// Shows the Sync, the fields that are not carried over, and the plan. Writes nothing without
/// --apply. Objects are never deleted or recreated.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  moorline adopt application/shop -n argocd               what would change
  moorline adopt application/shop -n argocd --apply       do it
  moorline adopt kustomization/shop --sync-namespace team
  moorline adopt helmrelease/shop -n apps --apply         the same for a HelmRelease; helm's release is kept
  moorline adopt kustomization/shop --undo                undo it; the objects stay unchanged
  moorline adopt applicationset/apps -n argocd            the SyncSet that an ApplicationSet becomes; writes nothing

Exit codes: 0 done, or nothing to do; 1 failure; without --apply also 2 changes, 3 nothing to write but something held.")]
pub(super) struct AdoptArgs {
    /// application/NAME, applicationset/NAME, kustomization/NAME or helmrelease/NAME
    #[arg(value_name = "KIND/NAME", value_parser = subject)]
    subject: AdoptionTarget,

    /// Its namespace [default: argocd or flux-system]
    #[arg(long, short, value_parser = namespace)]
    namespace: Option<String>,

    /// Namespace of the Sync [default: moorline, or the namespace of a ServiceAccount in use]
    #[arg(long, value_name = "NAMESPACE", value_parser = namespace)]
    sync_namespace: Option<String>,

    /// Name of the Sync [default: the same name]
    #[arg(long, value_name = "NAME", value_parser = sync_name)]
    sync: Option<String>,

    /// Secret with the repository login, in the namespace of the Sync
    #[arg(long, value_name = "NAME")]
    secret: Option<String>,

    /// Stop the old tool, create the Sync, and wait until it is applied
    #[arg(long)]
    apply: bool,

    /// Delete the Sync, and restart the old tool
    #[arg(long, conflicts_with_all = ["apply", "secret", "sync", "sync_namespace", "output"])]
    undo: bool,

    /// Time to wait, in seconds
    #[arg(long, default_value_t = 300)]
    timeout: u64,

    /// Output format
    #[arg(long, short, value_enum, default_value_t = ProposalFormat::Text)]
    output: ProposalFormat,

    /// Use of colours
    #[arg(long, value_enum, default_value_t = Colour::Auto)]
    color: Colour,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ProposalFormat {
    Text,
    Yaml,
}

/// A resource of another tool, as named on the command line.
#[derive(Debug, Clone)]
struct AdoptionTarget {
    /// None for an ApplicationSet of Argo CD.
    tool: Option<Tool>,
    name: String,
}

/// Default namespace of Syncs that act with the daemon's rights, as the README installs it.
const SYNCS: &str = "moorline";

fn subject(text: &str) -> Result<AdoptionTarget, &'static str> {
    let said = "write application/NAME, applicationset/NAME, kustomization/NAME or helmrelease/NAME";
    let (kind, name) = text.split_once('/').ok_or(said)?;
    let tool = match kind.to_ascii_lowercase().as_str() {
        "app" | "application" | "applications" | "applications.argoproj.io" | "application.argoproj.io" => {
            Some(Tool::ArgoCd)
        }
        "appset"
        | "applicationset"
        | "applicationsets"
        | "applicationsets.argoproj.io"
        | "applicationset.argoproj.io" => None,
        "ks"
        | "kustomization"
        | "kustomizations"
        | "kustomizations.kustomize.toolkit.fluxcd.io"
        | "kustomization.kustomize.toolkit.fluxcd.io" => Some(Tool::Flux),
        "hr"
        | "helmrelease"
        | "helmreleases"
        | "helmreleases.helm.toolkit.fluxcd.io"
        | "helmrelease.helm.toolkit.fluxcd.io" => Some(Tool::FluxHelm),
        _ => return Err(said),
    };
    if name.is_empty() || name.contains('/') {
        return Err(said);
    }
    Ok(AdoptionTarget { tool, name: name.to_owned() })
}

fn sync_name(text: &str) -> Result<String, &'static str> {
    name_rules::sync_name(text).map_or_else(|| Ok(text.to_owned()), Err)
}

pub(super) fn run(arguments: &AdoptArgs, streams: &mut Streams<'_>) -> anyhow::Result<Exit> {
    on_cluster(async |connection| {
        let AdoptionTarget { tool, name } = &arguments.subject;
        let Some(tool) = tool else {
            return application_set::propose_set(&connection, name, arguments, streams).await;
        };
        let namespace = arguments.namespace.as_deref().unwrap_or(tool.namespace());
        let gathered = gather(&connection, *tool, namespace, name).await?;
        let metrics = Metrics::new()?;
        let cluster = reading(connection.clone(), &metrics);
        if arguments.undo {
            return undo::undo(&connection, &cluster, &gathered, arguments.timeout, streams).await;
        }
        let wanted = wanted(arguments, &gathered)?;
        let read = async || propose(&connection, &cluster, &metrics, &gathered, &wanted).await;
        let proposal = while_busy(busy_wait, read).await?;
        match arguments.output {
            ProposalFormat::Text => {
                crate::cli::adopt::output::text(&proposal, arguments.color.paint(), streams)?
            }
            ProposalFormat::Yaml => crate::cli::adopt::output::yaml(&proposal, streams)?,
        }
        match (proposal.plan(), arguments.apply) {
            _ if !proposal.adoption.refused.is_empty() => {
                let what = gathered.display_name();
                bail!("{what} cannot be adopted, and nothing was changed; see Refused for what to do");
            }
            (Some(_), true) => {
                crate::cli::adopt::apply::apply_proposal(&connection, &proposal, arguments.timeout, streams)
                    .await
            }
            (Some(plan), false) => Ok(super::plan::exit(plan)),
            (None, _) => bail!("there is no plan, and nothing was changed"),
        }
    })
}

/// The wait that the API server asks for, if an error says that it is busy.
fn busy_wait(error: &anyhow::Error) -> Option<Duration> {
    let refusal = error.chain().find_map(|cause| match cause.downcast_ref() {
        Some(ApiError::Refused(status)) => Some(status),
        Some(_) | None => None,
    });
    refusal.filter(|status| status.code == 429).map(|status| status.retry_after.unwrap_or_default())
}

/// Decides the name of the Sync and the Secret of its repository.
fn wanted(arguments: &AdoptArgs, gathered: &AdoptionInputs) -> anyhow::Result<RequestedSync> {
    let before = gathered.record.as_ref().and_then(|former| former.sync_name());
    // A ServiceAccount belongs to the namespace of its Sync, so the Sync must be created there.
    let near = gathered.original.pointer("/spec/serviceAccountName").map(|_| &*gathered.namespace);
    let namespace = arguments.sync_namespace.as_deref();
    let namespace = namespace.or(before.as_ref().map(|sync| &*sync.namespace)).or(near).unwrap_or(SYNCS);
    let name =
        arguments.sync.as_deref().or(before.as_ref().map(|sync| &*sync.name)).unwrap_or(&gathered.name);
    let sync = SyncName::new(namespace, name);
    if let Some(rule) = name_rules::sync_name(name) {
        bail!("the name of a Sync {rule}: choose one with --sync");
    }
    match before {
        Some(before) if before != sync => bail!(
            "{} was already adopted by the Sync {before}: omit --sync and --sync-namespace, or undo that adoption first",
            gathered.display_name()
        ),
        _ => Ok(RequestedSync { sync, secret: arguments.secret.clone() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_resource_is_named_as_kubectl_names_it() {
        for (text, expect) in [
            ("application/shop", Some((Some(Tool::ArgoCd), "shop"))),
            ("applications.argoproj.io/shop", Some((Some(Tool::ArgoCd), "shop"))),
            ("Kustomization/shop", Some((Some(Tool::Flux), "shop"))),
            ("kustomizations.kustomize.toolkit.fluxcd.io/shop", Some((Some(Tool::Flux), "shop"))),
            ("helmrelease/shop", Some((Some(Tool::FluxHelm), "shop"))),
            ("helmreleases.helm.toolkit.fluxcd.io/shop", Some((Some(Tool::FluxHelm), "shop"))),
            ("applicationset/shop", Some((None, "shop"))),
            ("helmchart/shop", None),
            ("application/", None),
            ("application/a/b", None),
            ("shop", None),
        ] {
            let found = subject(text).ok();
            assert_eq!(found.as_ref().map(|it| (it.tool, &*it.name)), expect, "{text}");
        }
    }
}
