//! `moorline adopt applicationset/NAME`: the SyncSet that an Argo CD ApplicationSet becomes.
//!
//! In: the ApplicationSet. Out: the SyncSet as text or as a document, and how to hand the
//! Applications over. Nothing is written: the controller of the ApplicationSet restores and deletes
//! Applications, so each of them is adopted by itself.

use anyhow::bail;
use serde_json::json;

use super::super::Streams;
use super::super::exit::Exit;
use super::super::operate::write;
use super::inputs::is_served;
use super::output::{remarks, told};
use super::{AdoptArgs, ProposalFormat, SYNCS};
use crate::adopt::{RequestedSync, Tool, adopt_set};
use crate::api::SyncName;
use crate::cluster::{Connection, ThirdPartyKind};
use crate::yaml;

/// The kind of an ApplicationSet.
const KIND: ThirdPartyKind<'static> =
    ThirdPartyKind { group: "argoproj.io", version: "v1alpha1", kind: "ApplicationSet" };

/// Prints the SyncSet that replaces an ApplicationSet.
pub(super) async fn propose_set(
    connection: &Connection,
    name: &str,
    arguments: &AdoptArgs,
    streams: &mut Streams<'_>,
) -> anyhow::Result<Exit> {
    let namespace = arguments.namespace.as_deref().unwrap_or(Tool::ArgoCd.namespace());
    let hand_over = hand_over(name, namespace);
    if arguments.apply || arguments.undo {
        bail!("an ApplicationSet is only shown as a SyncSet, and nothing was changed; {hand_over}");
    }
    let Some(live) = connection.third_party_object(KIND, namespace, name).await? else {
        is_served(connection, KIND).await?;
        bail!("there is no ApplicationSet {name} in the namespace {namespace}: name its namespace with -n");
    };
    let set = SyncName::new(
        arguments.sync_namespace.as_deref().unwrap_or(SYNCS),
        arguments.sync.as_deref().unwrap_or(name),
    );
    let wanted = RequestedSync { sync: set.clone(), secret: arguments.secret.clone() };
    let adoption = adopt_set(&live, &wanted);
    match arguments.output {
        ProposalFormat::Text => {
            let mut out = format!("The SyncSet {set} replaces the ApplicationSet {namespace}/{name}:\n\n");
            yaml::write(&adoption.sync).lines().for_each(|line| out.push_str(&format!("  {line}\n")));
            remarks(&mut out, "Not carried over", '-', &adoption.lost);
            remarks(&mut out, "Refused", '!', &adoption.refused);
            write(&out, streams)?;
        }
        ProposalFormat::Yaml => {
            let (lost, refused) = (told(&adoption.lost), told(&adoption.refused));
            let whole = json!({"syncSet": adoption.sync, "lost": lost, "refused": refused});
            streams.data.write_all(yaml::write(&whole).as_bytes())?;
            streams.data.flush()?;
        }
    }
    if !adoption.refused.is_empty() {
        bail!("the ApplicationSet {namespace}/{name} cannot become a SyncSet; see Refused for what to do");
    }
    streams.say(&format!("note: nothing was changed; {hand_over}"));
    Ok(Exit::Changes)
}

/// Returns how the objects get from the Applications to the Syncs of the set.
fn hand_over(name: &str, namespace: &str) -> String {
    format!(
        "to hand over: set spec.syncPolicy.applicationsSync: create-only on the ApplicationSet, whose controller would restore or delete its Applications; adopt these one after another with moorline adopt application/NAME -n {namespace} --apply; create the SyncSet; delete the adopted Syncs, whose objects stay and are taken up by those of the SyncSet; at last kubectl delete applicationset {name} -n {namespace} --cascade=orphan, and the Applications"
    )
}
