//! The variables of a Sync that are not in its spec.
//!
//! In: what the Sync names, and the cluster as the identity sees it that acts for the Sync: whoever may write a Sync must not read by it
//! what its ServiceAccount may not. Out: the wish with all of its variables, or why there are none.

use std::sync::Arc;

use super::inspect::is_of_the_daemon;
use super::prepare::of_failure;
use super::wish::{Values, Wish};
use crate::api::{SyncName, ValuesKind};
use crate::cluster::{Cluster, Texts};
use crate::render::{Seen, Variables};
use crate::report::Trouble;

/// Reads what is named once.
pub(super) async fn filled(cluster: &Cluster, name: &SyncName, wish: Wish) -> Result<Wish, Trouble> {
    let mut all = Vec::with_capacity(wish.values.len());
    for values in &wish.values {
        all.push(texts(cluster, name, values).await?);
    }
    Ok(with(wish, all.iter().map(Option::as_ref)))
}

/// The texts of one of the objects; none if it need not be there and is not.
pub(super) async fn texts(
    cluster: &Cluster,
    name: &SyncName,
    values: &Values,
) -> Result<Option<Texts>, Trouble> {
    if values.kind == ValuesKind::Secret && cluster.notary().is_place(&name.namespace, &values.name) {
        return Err(is_of_the_daemon(&values.name));
    }
    let found = cluster.texts(values.kind, &name.namespace, &values.name).await;
    let found = found.map_err(|failure| {
        let mut trouble = of_failure(&failure);
        if trouble.reason == "RightsMissing" {
            let grant = grant(name);
            trouble.message = format!(
                "spec.render.substitute.from names the {} {}, which may not be read: {}; {grant} grants it",
                values.kind.word(),
                values.name,
                trouble.message
            );
        }
        trouble
    })?;
    match found {
        Some(found) if found.holds_keys => Err(is_of_the_daemon(&values.name)),
        None if !values.optional => Err(Trouble {
            reason: "ValuesMissing",
            message: format!(
                "there is no {} {} in the namespace {}, which spec.render.substitute.from names; create it, or write optional: true",
                values.kind.word(),
                values.name,
                name.namespace
            ),
            problems: Vec::new(),
            lasting: false,
        }),
        found => Ok(found),
    }
}

/// Of an object that may be read and not watched: a change of it would be seen by nobody.
pub(super) fn unwatched(name: &SyncName, values: &Values) -> Trouble {
    let (kind, grant) = (values.kind.word(), grant(name));
    let message = format!(
        "spec.render.substitute.from names the {kind} {}, which may not be watched, so that nobody would see a change of it; {grant} grants it",
        values.name
    );
    Trouble { reason: "RightsMissing", message, problems: Vec::new(), lasting: false }
}

/// The command that gives the Sync its rights.
fn grant(name: &SyncName) -> String {
    format!("`moorline rbac --sync {} -n {} | kubectl apply -f -`", name.name, name.namespace)
}

/// The wish with these texts as variables, in the order in which they are named: the later wins, and what the Sync says itself over all.
pub(super) fn with<'a>(mut wish: Wish, all: impl Iterator<Item = Option<&'a Texts>>) -> Wish {
    let Some(own) = wish.options.variables.clone() else { return wish };
    let mut variables = Variables::default();
    for (values, texts) in wish.values.iter().zip(all) {
        let seen = match values.kind {
            ValuesKind::ConfigMap => Seen::ByAll,
            ValuesKind::Secret => Seen::ByNobody,
        };
        let texts = texts.map(|found| found.texts.as_slice()).unwrap_or_default();
        variables = variables.with(texts.iter().map(|(key, text)| (key, text)), seen);
    }
    wish.options.variables = Some(Arc::new(variables.under(&own)));
    wish
}
