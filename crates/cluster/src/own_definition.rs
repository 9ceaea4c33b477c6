//! The definition of `Sync` in the cluster, which the daemon brings up to date where it may.
//!
//! In: the definition that this program was built with. Out: how the cluster's compares with it, after an apply if
//! need be. Where a Sync applies the definition, the daemon leaves it to that Sync. Nothing depends on it: where the daemon
//! may not write it, what is there is served. A definition of a newer program stays: two daemons of different age must not take turns.

use serde_json::Value;

use super::Cluster;
use super::apply::APPLY;
use super::wire::{Call, Failure};
use moorline_api::{MANAGER_PREFIX, SyncName, VERSION_ANNOTATION};
use moorline_metrics::Class;

/// Who applies the definition.
const MANAGER: &str = "moorline-crd";
/// Where it is.
const PLACE: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/syncs.moorline.dev";
/// What has to be the same.
const PARTS: [&str; 2] = ["/spec/versions", "/spec/names/shortNames"];

/// How the definition of the cluster compares with ours.
#[derive(Debug, Clone, PartialEq)]
pub enum Definition {
    /// It says the same.
    Same,
    /// It said something else, and says the same now.
    Applied,
    /// A Sync applies it: the definition is as that Sync's repository says.
    OfSync(Box<str>),
    /// It is of a newer program.
    Newer(Box<str>),
    /// It says something else, and may not be changed.
    Other(Failure),
    /// There is none, or it may not be read.
    Unseen(Failure),
}

impl Cluster {
    /// Brings the definition of `Sync` up to date, if it is there and older.
    pub async fn define_syncs(&self, own: &Value) -> Definition {
        let live = match self.0.wire.send(Call::new(Class::Verify, "get", PLACE.to_owned())).await {
            Ok(reply) => match reply.json::<Value>() {
                Ok(live) => live,
                Err(failure) => return Definition::Unseen(failure),
            },
            Err(failure) => return Definition::Unseen(failure),
        };
        if let Some(newer) = newer(&live, own) {
            return Definition::Newer(newer.into());
        }
        if is_same(&live, own) {
            return Definition::Same;
        }
        if let Some(sync) = self.applying(&live).await {
            return Definition::OfSync(sync);
        }
        let uri = format!("{PLACE}?fieldManager={MANAGER}&force=true");
        let call = Call::new(Class::Object, "patch", uri).content(APPLY, own.to_string().into_bytes());
        match self.0.wire.send(call).await {
            Ok(_) => Definition::Applied,
            Err(failure) => Definition::Other(failure),
        }
    }

    /// The Sync that applies the definition, as namespace/name. The entry of a Sync that is gone stays behind where it left the
    /// definition, and holds nobody off. One of which nobody knows whether it is there holds the daemon off.
    async fn applying(&self, live: &Value) -> Option<Box<str>> {
        for sync in syncs(live) {
            let Some((namespace, name)) = sync.split_once('/') else { return Some(sync.into()) };
            match self.standing(&SyncName::new(namespace, name)).await {
                Ok(None) => {}
                Ok(Some(_)) | Err(_) => return Some(sync.into()),
            }
        }
        None
    }
}

/// The version of the program whose definition this is, if it is newer than ours.
fn newer<'a>(live: &'a Value, own: &Value) -> Option<&'a str> {
    let of = |definition: &'a Value| definition["metadata"]["annotations"][VERSION_ANNOTATION].as_str();
    let there = of(live)?;
    let ours = own["metadata"]["annotations"][VERSION_ANNOTATION].as_str()?;
    (numbers(there)? > numbers(ours)?).then_some(there)
}

/// The Syncs that have applied the definition, as namespace/name.
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
