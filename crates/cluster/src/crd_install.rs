//! Updates a CustomResourceDefinition of ours, where the daemon may.
//!
//! In: the definition that this program was built with.
//! Out: how the cluster's definition compares with it, after an apply if necessary. If a Sync
//! applies the definition, the daemon leaves it to that Sync. Nothing depends on the update:
//! without the right to write, the existing definition is served. A definition of a newer program
//! stays, because two daemons of different versions would overwrite each other endlessly.

use serde_json::Value;

use super::Cluster;
use super::apply::APPLY;
use crate::api_client::ApiRequest;
use crate::api_error::ApiError;
use moorline_api::{MANAGER_PREFIX, SyncName, VERSION_ANNOTATION};
use moorline_metrics::RequestClass;

/// Field manager of the definition.
const MANAGER: &str = "moorline-crd";
/// Path of all definitions.
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
/// Parts that are compared.
const PARTS: [&str; 2] = ["/spec/versions", "/spec/names/shortNames"];

/// Comparison of the cluster's definition with ours.
#[derive(Debug, Clone, PartialEq)]
pub enum CrdInstallResult {
    /// It is the same.
    UpToDate,
    /// It was different, and has been updated.
    Applied,
    /// A Sync applies it: it follows that Sync's repository.
    AppliedBySync(Box<str>),
    /// It is of a newer program.
    Newer(Box<str>),
    /// It is different, and may not be changed.
    NotUpdated(ApiError),
    /// It does not exist, or may not be read.
    Unreadable(ApiError),
}

/// Updates a definition if it exists and is older.
///
/// # Guarantees
///
/// A definition of a newer program or one that a Sync applies is not changed. Conflicting
/// fields are taken over.
///
/// # Cancellation
///
/// Dropping the future leaves open whether the definition was written.
///
/// # Errors
///
/// None: failures are variants of the result.
pub async fn install_crd(cluster: &Cluster, own: &Value) -> CrdInstallResult {
    let place = format!("{DEFINITIONS}/{}", own["metadata"]["name"].as_str().unwrap_or_default());
    let read = ApiRequest::new(RequestClass::Verify, "get", place.clone());
    let live = match cluster.0.wire.send(read).await {
        Ok(reply) => match reply.json::<Value>() {
            Ok(live) => live,
            Err(failure) => return CrdInstallResult::Unreadable(failure),
        },
        Err(failure) => return CrdInstallResult::Unreadable(failure),
    };
    if let Some(newer) = newer(&live, own) {
        return CrdInstallResult::Newer(newer.into());
    }
    if is_same(&live, own) {
        return CrdInstallResult::UpToDate;
    }
    if let Some(sync) = applying_sync(cluster, &live).await {
        return CrdInstallResult::AppliedBySync(sync);
    }
    let uri = format!("{place}?fieldManager={MANAGER}&force=true");
    let call =
        ApiRequest::new(RequestClass::Object, "patch", uri).content(APPLY, own.to_string().into_bytes());
    match cluster.0.wire.send(call).await {
        Ok(_) => CrdInstallResult::Applied,
        Err(failure) => CrdInstallResult::NotUpdated(failure),
    }
}

/// Returns the Sync that applies the definition, as `namespace/name`. The managedFields entry
/// of a deleted Sync may remain and does not count. If the Sync cannot be read, it counts.
async fn applying_sync(cluster: &Cluster, live: &Value) -> Option<Box<str>> {
    for sync in syncs(live) {
        let Some((namespace, name)) = sync.split_once('/') else { return Some(sync.into()) };
        match cluster.syncs().read_live(&SyncName::new(namespace, name)).await {
            Ok(None) => {}
            Ok(Some(_)) | Err(_) => return Some(sync.into()),
        }
    }
    None
}

/// Comparison of two definitions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CrdComparison {
    /// They are the same.
    Same,
    /// The cluster's definition is of a newer program, with this version.
    Newer(Box<str>),
    /// The cluster's definition is another one.
    Different,
}

/// Compares the cluster's definition with ours.
pub fn compare_definitions(live: &Value, own: &Value) -> CrdComparison {
    match newer(live, own) {
        Some(version) => CrdComparison::Newer(version.into()),
        None if is_same(live, own) => CrdComparison::Same,
        None => CrdComparison::Different,
    }
}

/// Returns the program version of this definition, if it is newer than ours.
fn newer<'a>(live: &'a Value, own: &Value) -> Option<&'a str> {
    let of = |definition: &'a Value| definition["metadata"]["annotations"][VERSION_ANNOTATION].as_str();
    let there = of(live)?;
    let ours = own["metadata"]["annotations"][VERSION_ANNOTATION].as_str()?;
    (numbers(there)? > numbers(ours)?).then_some(there)
}

/// Returns the Syncs that have applied the definition, as `namespace/name`.
fn syncs(live: &Value) -> impl Iterator<Item = &str> {
    let entries = live["metadata"]["managedFields"].as_array();
    let managers = entries.into_iter().flatten().filter(|entry| entry["operation"] == "Apply");
    managers.filter_map(|entry| entry["manager"].as_str()?.strip_prefix(MANAGER_PREFIX))
}

fn numbers(version: &str) -> Option<Vec<u64>> {
    version.split('.').map(|number| number.parse().ok()).collect()
}

fn is_same(live: &Value, own: &Value) -> bool {
    PARTS.iter().all(|part| live.pointer(part) == own.pointer(part))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_definition_of_a_sync_is_known_by_its_manager() {
        let check = |manager: &str, operation: &str, expect: Option<&str>| {
            let entries = json!([{"manager": manager, "operation": operation}]);
            let live = json!({"metadata": {"managedFields": entries}});
            assert_eq!(syncs(&live).next(), expect, "{manager}");
        };
        check("moorline/moorline/self", "Apply", Some("moorline/self"));
        check("moorline/moorline/self", "Update", None);
        check("moorline-crd", "Apply", None);
        check("kubectl", "Apply", None);
        assert_eq!(syncs(&json!({"metadata": {}})).next(), None);
    }

    #[test]
    fn definitions_are_compared_by_version_and_content() {
        let of = |version: &str, names: &str| json!({"metadata": {"annotations": {VERSION_ANNOTATION: version}}, "spec": {"versions": names}});
        let own = of("0.2.0", "a");
        assert_eq!(compare_definitions(&of("0.1.0", "a"), &own), CrdComparison::Same);
        assert_eq!(compare_definitions(&of("0.2.0", "b"), &own), CrdComparison::Different);
        assert_eq!(compare_definitions(&of("0.3.0", "a"), &own), CrdComparison::Newer("0.3.0".into()));
    }

    #[test]
    fn a_newer_definition_is_known_by_its_number() {
        let of = |version: &str| json!({"metadata": {"annotations": {VERSION_ANNOTATION: version}}});
        let check = |live: Value, expect: Option<&str>| assert_eq!(newer(&live, &of("0.10.0")), expect);
        check(of("0.10.1"), Some("0.10.1"));
        check(of("1.0.0"), Some("1.0.0"));
        check(of("0.10.0"), None);
        check(of("0.9.7"), None);
        check(of("nonsense"), None);
        check(json!({"metadata": {}}), None);
    }
}
