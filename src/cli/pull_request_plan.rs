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
use crate::cluster::{Cluster, live_objects};
use crate::controller::inspect_pull_request::{
    InspectedPullRequest, has_hidden_values, hosts_of, render_pull_request, spec_for_strangers,
};
use crate::metrics::Metrics;
use crate::object::{Object, ObjectId};
use crate::observed::{Observed, Ownership};
use crate::report::pull_request::{CommentSubject, LiveView, PlannedVerb, comment, compare, refusal_comment};
use crate::source::Repositories;

/// Most objects of others that are looked up by name.
const MAX_LOOKED_UP: usize = 500;

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

/// Reads what a plan may use: the own objects of the Sync, and the existence of others in its kinds
/// and namespaces.
async fn view(
    inspected: &InspectedPullRequest,
    cluster: &Cluster,
    owner: &SyncName,
    status: &SyncStatus,
) -> anyhow::Result<LiveView> {
    let valid_spec = &inspected.valid_spec;
    let scope = status.scope.clone().unwrap_or_default();
    let is_in_scope = |id: &&ObjectId| {
        let is_kind = scope.kinds.iter().any(|kind| *kind == id.group_kind().to_string());
        is_kind && id.namespace().is_none_or(|of| scope.namespaces.iter().any(|known| known == of))
    };
    let head = inspected.head_set.as_ref().ok();
    let ids = || head.into_iter().flat_map(|set| set.objects()).map(|object| &object.id);
    let asked =
        ids().filter(|id| inspected.base_set.get(id).is_none()).filter(is_in_scope).take(MAX_LOOKED_UP);
    // The kinds of the base only: those of the proposed commit come from a stranger.
    let (mut kinds, _) = cluster.discover_labelled_kinds(owner).await?;
    kinds.extend(inspected.base_set.objects().iter().map(|object| object.id.group_kind()));
    let read = live_objects(cluster, owner, &kinds, asked).await?;
    let mut live =
        LiveView { protected: valid_spec.protected.clone(), prunes: valid_spec.prune, ..LiveView::default() };
    for object in read {
        place(&mut live, object, owner);
    }
    Ok(live)
}

/// Adds a live object to the part of the cluster that its owner decides.
fn place(live: &mut LiveView, object: Object, owner: &SyncName) {
    match Observed::from_object(&object, owner).ownership {
        Ownership::Ours => drop(live.owned.insert(object.id.clone(), object.body)),
        Ownership::OtherSync(_) => drop(live.other_syncs.insert(object.id)),
        Ownership::Copy | Ownership::Unowned => drop(live.others.insert(object.id)),
    }
}

/// True if an object with this verb is written.
const fn is_write(verb: PlannedVerb) -> bool {
    !matches!(verb, PlannedVerb::Keep | PlannedVerb::Hold)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::api::ID_ANNOTATION;
    use crate::object::Origin;

    #[test]
    fn the_owner_of_an_object_decides_what_a_plan_says_of_it() {
        let place_of = |identity: Option<&str>| {
            let Value::Object(body) = json!({"metadata": {"annotations": {ID_ANNOTATION: identity}}}) else {
                unreachable!("a literal mapping")
            };
            let id = ObjectId::new("", "ConfigMap", "shop", "a").unwrap();
            let origin = Origin { file: "live".into(), document: 0, line: 1, item: None };
            let mut live = LiveView::default();
            let object = Object { id, version: "v1".into(), body, origin };
            place(&mut live, object, &SyncName::new("ops", "web"));
            (live.owned.len(), live.other_syncs.len(), live.others.len())
        };
        for (identity, expect) in [
            (Some("ops/web|/ConfigMap|shop/a"), (1, 0, 0)),
            (Some("ops/api|/ConfigMap|shop/a"), (0, 1, 0)),
            (Some("ops/web|/ConfigMap|shop/b"), (0, 0, 1)),
            (None, (0, 0, 1)),
        ] {
            assert_eq!(place_of(identity), expect, "{identity:?}");
        }
        let verbs = [PlannedVerb::Keep, PlannedVerb::Hold, PlannedVerb::Adopt, PlannedVerb::Create];
        assert_eq!(verbs.map(is_write), [false, false, true, true]);
    }
}
