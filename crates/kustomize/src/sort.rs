//! Order of the resulting objects.

use std::cmp::Ordering;

use super::error::{BuildError, ErrorClass};
use super::id::{Gvk, ResourceId};
use super::kustomization::Sorting;
use super::resource::Resource;
use super::resource_files;

/// Kinds that come first.
pub(super) const FIRST: [&str; 22] = [
    "Namespace",
    "ResourceQuota",
    "StorageClass",
    "CustomResourceDefinition",
    "ServiceAccount",
    "PodSecurityPolicy",
    "Role",
    "ClusterRole",
    "RoleBinding",
    "ClusterRoleBinding",
    "ConfigMap",
    "Secret",
    "Endpoints",
    "Service",
    "LimitRange",
    "PriorityClass",
    "PersistentVolume",
    "PersistentVolumeClaim",
    "Deployment",
    "StatefulSet",
    "CronJob",
    "PodDisruptionBudget",
];

/// Kinds that come last.
pub(super) const LAST: [&str; 2] = ["MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"];

/// Returns the rank of a kind: below zero for `first`, above zero for `last`, else zero.
pub(super) fn rank<T: AsRef<str>>(kind: &str, first: &[T], last: &[T]) -> i32 {
    let position = |list: &[T]| list.iter().rposition(|name| name.as_ref() == kind);
    let number = |at: usize| i32::try_from(at).unwrap_or(i32::MAX);
    match (position(last), position(first)) {
        (Some(at), _) => number(at).saturating_add(1),
        (None, Some(at)) => number(at) - number(first.len()),
        (None, None) => 0,
    }
}

/// Sorts the resources of a build.
pub(super) fn sort(resources: &mut [Resource], sorting: Option<&Sorting>) -> Result<(), BuildError> {
    let default = || (FIRST.map(str::to_owned).to_vec(), LAST.map(str::to_owned).to_vec());
    let (first, last) = match sorting {
        None => default(),
        Some(Sorting { order, legacy, at }) => match (order.as_str(), legacy) {
            ("legacy", Some(kinds)) => kinds.clone(),
            ("legacy", None) => default(),
            ("fifo", None) => return Ok(()),
            ("fifo", Some(_)) => {
                let text = "legacySortOptions have no effect with order: fifo; write order: legacy";
                return Err(at.error(ErrorClass::Field, text));
            }
            _ => return Err(at.error(ErrorClass::Field, "the order of sortOptions must be legacy or fifo")),
        },
    };
    check_null_namespaces(resources, |id| SortKey::of(id, &first, &last))?;
    resources.sort_by_cached_key(|resource| SortKey::of(&resource.id(), &first, &last));
    Ok(())
}

/// Refuses an object whose place depends on the spelling of a null: kustomize sorts by the text of
/// the null, `null` or `~`, and that text is not known here.
fn check_null_namespaces(
    resources: &[Resource],
    key: impl Fn(&ResourceId) -> SortKey,
) -> Result<(), BuildError> {
    let Some(unclear) = resources.iter().find(|resource| resource.has_null_namespace()) else {
        return Ok(());
    };
    let [none, null, tilde] = ["", "null", "~"].map(|text| {
        let id = |resource: &Resource| match resource.has_null_namespace() {
            true => ResourceId { namespace: text.to_owned(), ..resource.id() },
            false => resource.id(),
        };
        let mut order: Vec<usize> = (0..resources.len()).collect();
        order.sort_by_cached_key(|at| key(&id(&resources[*at])));
        order
    });
    if none == null && null == tilde {
        return Ok(());
    }
    let text = format!("the namespace of {} is null, which decides its place; leave it out", unclear.id());
    Err(resource_files::resource_error(&unclear.origin, text).with_class(ErrorClass::Unsupported))
}

/// Sort key of a resource.
#[derive(Debug, PartialEq, Eq)]
struct SortKey {
    rank: i32,
    /// A Namespace without a group comes before others, against the order of the texts.
    is_namespace: bool,
    has_group: bool,
    kind: String,
    rest: String,
}

impl SortKey {
    fn of(id: &ResourceId, first: &[String], last: &[String]) -> Self {
        let or = |text: &str, other: &str| if text.is_empty() { other.to_owned() } else { text.to_owned() };
        let Gvk { group, version, kind } = &id.gvk;
        let gvk = [or(kind, "[noKind]"), or(version, "[noVer]"), or(group, "[noGrp]")].join(".");
        Self {
            rank: rank(kind, first, last),
            is_namespace: kind == "Namespace",
            has_group: !group.is_empty(),
            kind: id.gvk.sort_text(),
            rest: format!("{gvk}|{}|{}", or(&id.namespace, "~X"), or(&id.name, "~N")),
        }
    }
}

impl Ord for SortKey {
    fn cmp(&self, other: &Self) -> Ordering {
        let kinds = match self.is_namespace && other.is_namespace && !(self.has_group && other.has_group) {
            true => other.kind.cmp(&self.kind),
            false => self.kind.cmp(&other.kind),
        };
        self.rank.cmp(&other.rank).then(kinds).then_with(|| self.rest.cmp(&other.rest))
    }
}

impl PartialOrd for SortKey {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

#[cfg(test)]
mod tests {
    use moorline_core::tree::FileTree;

    use crate::build;

    #[test]
    fn a_null_namespace_is_refused_only_where_it_decides_the_order() {
        let plugin = "transformers:\n- |\n  apiVersion: builtin\n  kind: NamespaceTransformer\n  \
                      metadata: {name: n, namespace: t5}\n  unsetOnly: true\n  \
                      fieldSpecs: [{path: metadata/namespace, create: true}]\n";
        let object = |name: &str, namespace: &str| {
            format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}, namespace: {namespace}}}\n")
        };
        let outcome = |others: &str| {
            let kustomization = format!("resources: [a.yaml, b.yaml]\n{plugin}");
            let files = [
                ("kustomization.yaml", kustomization.as_str()),
                ("a.yaml", &object("a", "null")),
                ("b.yaml", others),
            ];
            build(&FileTree::from_texts(files), "").map_err(|error| error.to_string())
        };
        let clear = object("b", "t5").replace("ConfigMap", "Secret");
        assert_eq!(outcome(&clear).map(|built| built.objects.len()), Ok(2));
        let refused = outcome(&object("b", "t5")).expect_err("the place is unknown");
        assert!(refused.contains("is null, which decides its place"), "{refused}");
    }
}
