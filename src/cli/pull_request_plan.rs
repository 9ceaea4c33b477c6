//! `moorline plan --pull-request`: the plan of a pull request, as the comment that it gets.
//!
//! In: a Sync of the cluster, and the number of a pull request. Out: Markdown on standard output.
//! A proposed commit is the text of a stranger: it is rendered without Secrets, and the plan shows
//! of the cluster only that which `report/pull_request/comparison.rs` allows.

use anyhow::{anyhow, bail};

use super::Streams;
use super::exit::Exit;
use super::local_helm::LocalHelm;
use super::operate::{on_cluster, reading};
use super::temporary_folder::TemporaryFolder;
use crate::api::{SyncName, SyncStatus};
use crate::cluster::Cluster;
use crate::controller::inspect::pull_request::{
    InspectedPullRequest, has_hidden_values, hosts_of, read_live_view, render_pull_request,
    spec_for_strangers,
};
use crate::metrics::Metrics;
use crate::report::pull_request::{CommentSubject, LiveView, PlannedVerb, comment, compare, refusal_comment};
use crate::source::Repositories;

/// Prints the plan of a pull request of a Sync.
pub(super) fn run(
    (number, sync): (u64, &str),
    (namespace, cluster_name): (Option<&str>, &str),
    streams: &mut Streams<'_>,
) -> anyhow::Result<Exit> {
    on_cluster(async |connection| {
        let owner = SyncName::new(namespace.unwrap_or(&connection.namespace), sync);
        let seen = connection.sync(&owner).await?;
        let whole = serde_json::to_value(&seen.resource)?;
        let valid_spec = spec_for_strangers(&owner, &whole).map_err(|error| anyhow!("{}", error.message))?;
        let metrics = Metrics::new()?;
        let cluster = reading(connection, &metrics);
        let folder = TemporaryFolder::new()?;
        let repositories = Repositories::new(folder.path(), None, hosts_of(&valid_spec.address)?)?;
        let helm = LocalHelm::find()?;
        let base = seen.status.revision.as_ref().and_then(|revision| revision.applied.as_deref());
        let with = (&repositories, &helm.helm, &metrics);
        let inspected = render_pull_request(&cluster, with, &owner, (valid_spec, base), number).await;
        let inspected = inspected.map_err(|error| anyhow!("{}", error.message))?;
        let cluster = (&cluster, &owner, &seen.status, has_hidden_values(&whole));
        print_plan(&inspected, cluster, cluster_name, streams).await
    })
}

async fn print_plan(
    inspected: &InspectedPullRequest,
    (cluster, owner, status, hides_values): (&Cluster, &SyncName, &SyncStatus, bool),
    cluster_name: &str,
    streams: &mut Streams<'_>,
) -> anyhow::Result<Exit> {
    let (base, head) = (inspected.base.to_string(), inspected.head.commit.to_string());
    let subject = CommentSubject {
        cluster: cluster_name,
        namespace: &owner.namespace,
        sync: &owner.name,
        base: &base,
        head: &head,
        link: None,
    };
    let (text, exit) = match &inspected.head_set {
        Ok(head_set) => {
            let live = LiveView { hides_values, ..view(inspected, cluster, owner, status).await? };
            let plan = compare(&inspected.base_set, head_set, &live);
            let writes = plan.changes.iter().any(|change| is_write(change.verb));
            (comment(&subject, &plan), if writes { Exit::Changes } else { Exit::Done })
        }
        Err(error) if error.permanent => {
            let problems = match error.problems.is_empty() {
                true => vec![error.message.clone()],
                false => error.problems.clone(),
            };
            (refusal_comment(&subject, &problems), Exit::Failure)
        }
        Err(error) => bail!("{}", error.message),
    };
    streams.data.write_all(text.as_bytes())?;
    streams.data.flush()?;
    Ok(exit)
}

/// Reads what a plan may use of the cluster.
async fn view(
    inspected: &InspectedPullRequest,
    cluster: &Cluster,
    owner: &SyncName,
    status: &SyncStatus,
) -> anyhow::Result<LiveView> {
    let sets = (&*inspected.base_set, inspected.head_set.as_deref().ok());
    let scope = status.scope.clone().unwrap_or_default();
    let (kinds, _) = cluster.discover_labelled_kinds(owner).await?;
    Ok(read_live_view((cluster, owner), sets, (&inspected.valid_spec, &scope), kinds).await?)
}

/// True if an object with this verb is written.
const fn is_write(verb: PlannedVerb) -> bool {
    !matches!(verb, PlannedVerb::Keep | PlannedVerb::Hold)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn some_verbs_write() {
        let verbs = [PlannedVerb::Keep, PlannedVerb::Hold, PlannedVerb::Adopt, PlannedVerb::Create];
        assert_eq!(verbs.map(is_write), [false, false, true, true]);
    }
}
