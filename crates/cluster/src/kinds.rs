//! Kinds that a server serves: their paths, versions and verbs.
//!
//! In: the two responses of aggregated discovery.
//! Out: [`Kinds`]. A group whose server is down is marked stale, so that its kinds are not taken
//! for deleted.

use std::collections::{BTreeSet, HashMap};

use serde::Deserialize;

use crate::api_client::{ApiClient, ApiRequest};
use crate::api_error::{ApiError, ApiStatus};
use moorline_core::object::{GroupKind, ObjectId};
use moorline_engine::desired::{AUTOSCALERS, Scope, Scopes};
use moorline_metrics::RequestClass;

/// The server's message for a path that it does not serve.
const NO_RESOURCE: &str = "could not find the requested resource";

const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList";

/// All kinds that can be applied and listed.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Kinds {
    kinds: HashMap<GroupKind, ServedKind>,
    stale: BTreeSet<Box<str>>,
}

/// One served kind.
#[derive(Debug, Clone, PartialEq)]
pub struct ServedKind {
    /// Plural name in URLs, such as `deployments`.
    pub plural: Box<str>,
    /// Namespaced or cluster-scoped.
    pub scope: Scope,
    /// Served versions, the preferred one first.
    pub versions: Vec<Box<str>>,
    /// True if it can be watched.
    pub watchable: bool,
    /// Versions with a scale subresource.
    pub scale_versions: Vec<Box<str>>,
    /// True if the kind has a status subresource.
    pub has_status: bool,
}

impl Kinds {
    /// Runs discovery.
    pub(super) async fn discover(wire: &ApiClient) -> Result<Self, ApiError> {
        let mut kinds = Self::default();
        for uri in ["/api", "/apis"] {
            let reply = wire
                .send(ApiRequest::new(RequestClass::Verify, "discover", uri.into()).accept(AGGREGATED))
                .await?;
            let list: GroupList = reply.json()?;
            list.items.into_iter().for_each(|group| kinds.add(group));
        }
        Ok(kinds)
    }

    /// Returns a kind, if it is served.
    pub fn get(&self, kind: &GroupKind) -> Option<&ServedKind> {
        self.kinds.get(kind)
    }

    /// True if every kind of autoscaler is served.
    pub fn has_all_autoscalers(&self) -> bool {
        AUTOSCALERS.iter().all(|(group, kind)| self.get(&GroupKind::new(group, kind)).is_some())
    }

    /// Iterates over all kinds that can be listed.
    pub fn iter(&self) -> impl Iterator<Item = (&GroupKind, &ServedKind)> {
        self.kinds.iter()
    }

    /// True if the server of this group does not answer, so that its kinds are unknown.
    pub fn is_stale(&self, group: &str) -> bool {
        self.stale.contains(group)
    }

    /// Returns every served group version, and every kind of it, as Helm's capabilities list them.
    pub fn api_versions(&self) -> BTreeSet<String> {
        let mut all = BTreeSet::new();
        for (kind, served) in &self.kinds {
            for version in &served.versions {
                let version = match &*kind.group {
                    "" => version.to_string(),
                    group => format!("{group}/{version}"),
                };
                all.insert(format!("{version}/{}", kind.kind));
                all.insert(version);
            }
        }
        all
    }

    /// Returns the scope of every kind.
    pub fn scopes(&self) -> Scopes {
        let mut scopes = Scopes::default();
        self.kinds.iter().for_each(|(kind, served)| scopes.insert(kind.clone(), served.scope));
        scopes
    }

    /// Returns the path of an object in a version.
    pub(super) fn path(&self, id: &ObjectId, version: &str) -> Option<String> {
        let served = self.get(&id.group_kind())?;
        let collection = served.collection(id.group(), version, id.namespace());
        Some(format!("{collection}/{}", escape(id.name())))
    }

    /// Replaces a 404 by a clear message if the kind is served, but not in the requested version.
    pub(super) fn explain(&self, id: &ObjectId, version: &str, failure: ApiError) -> ApiError {
        let (kind, ApiError::Refused(refusal)) = (id.group_kind(), &failure) else { return failure };
        let Some(served) = self.get(&kind).filter(|it| !it.versions.iter().any(|known| &**known == version))
        else {
            return failure;
        };
        if refusal.code != 404 || !refusal.message.contains(NO_RESOURCE) || served.versions.is_empty() {
            return failure;
        }
        let named = |version: &str| match &*kind.group {
            "" => version.to_owned(),
            group => format!("{group}/{version}"),
        };
        let serves: Vec<String> = served.versions.iter().map(|version| named(version)).collect();
        let message = format!(
            "{} {} is not served; the server has {}",
            named(version),
            kind.kind,
            serves.join(" and ")
        );
        ApiError::Refused(Box::new(ApiStatus { message: message.into(), ..ApiStatus::clone(refusal) }))
    }

    fn add(&mut self, group: Group) {
        for version in group.versions {
            if version.freshness.as_deref() == Some("Stale") {
                self.stale.insert(group.metadata.name.clone());
            }
            for resource in version.resources {
                let can = |verb: &str| resource.verbs.iter().any(|known| &**known == verb);
                if !can("patch") || !can("list") {
                    continue;
                }
                let Some(kind) = resource.response_kind else { continue };
                let scope = match resource.scope.as_ref() {
                    "Namespaced" => Scope::Namespaced,
                    _ => Scope::Cluster,
                };
                let watchable = can("watch");
                let has = |name: &str| resource.subresources.iter().any(|it| &*it.subresource == name);
                let (scales, reports) = (has("scale"), has("status"));
                let known = self.kinds.entry(GroupKind::new(&group.metadata.name, &kind.kind));
                let known = known.or_insert(ServedKind {
                    plural: resource.resource,
                    scope,
                    versions: Vec::new(),
                    watchable,
                    scale_versions: Vec::new(),
                    has_status: reports,
                });
                known.versions.push(version.version.clone());
                known.scale_versions.extend(scales.then(|| version.version.clone()));
            }
        }
    }
}

impl ServedKind {
    /// Path of all objects of the kind, or of those in a namespace.
    pub(super) fn collection(&self, group: &str, version: &str, namespace: Option<&str>) -> String {
        let root = match group {
            "" => format!("/api/{version}"),
            group => format!("/apis/{group}/{version}"),
        };
        match namespace {
            Some(namespace) => format!("{root}/namespaces/{namespace}/{}", self.plural),
            None => format!("{root}/{}", self.plural),
        }
    }

    /// The version in which the kind is watched.
    pub(super) fn preferred(&self) -> &str {
        self.versions.first().map_or("v1", |version| version)
    }
}

/// Percent-encodes a name as a path segment. Most Kubernetes names need no encoding; RBAC names may
/// contain `:`, which stays.
pub(super) fn escape(name: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~:".contains(&byte);
    name.bytes().fold(String::with_capacity(name.len()), |text, byte| match plain(byte) {
        true => text + char::from(byte).encode_utf8(&mut [0; 4]),
        false => text + &format!("%{byte:02X}"),
    })
}

#[derive(Deserialize)]
struct GroupList {
    #[serde(default)]
    items: Vec<Group>,
}

#[derive(Deserialize)]
struct Group {
    #[serde(default)]
    metadata: Name,
    #[serde(default)]
    versions: Vec<Version>,
}

#[derive(Default, Deserialize)]
struct Name {
    #[serde(default)]
    name: Box<str>,
}

#[derive(Deserialize)]
struct Version {
    version: Box<str>,
    #[serde(default)]
    resources: Vec<Resource>,
    freshness: Option<Box<str>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Resource {
    resource: Box<str>,
    response_kind: Option<ResponseKind>,
    #[serde(default)]
    scope: Box<str>,
    #[serde(default)]
    verbs: Vec<Box<str>>,
    #[serde(default)]
    subresources: Vec<Subresource>,
}

#[derive(Deserialize)]
struct Subresource {
    #[serde(default)]
    subresource: Box<str>,
}

#[derive(Deserialize)]
struct ResponseKind {
    #[serde(default)]
    kind: Box<str>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_removed_version_is_named_with_those_that_are_served() {
        let answer = r#"{"items": [{"metadata": {"name": "policy"}, "versions": [{"version": "v1", "resources": [
            {"resource": "poddisruptionbudgets", "responseKind": {"kind": "PodDisruptionBudget"},
             "scope": "Namespaced", "verbs": ["patch", "list"]}]}]}]}"#;
        let list: GroupList = serde_json::from_str(answer).unwrap();
        let mut kinds = Kinds::default();
        list.items.into_iter().for_each(|group| kinds.add(group));
        let id = ObjectId::new("policy", "PodDisruptionBudget", "shop", "web").unwrap();
        let check = |version: &str, code: u16, message: &str, expect: &str| {
            let refusal = ApiStatus {
                code,
                reason: "NotFound".into(),
                message: message.into(),
                causes: Vec::new(),
                retry_after: None,
            };
            let told = kinds.explain(&id, version, ApiError::Refused(Box::new(refusal)));
            let ApiError::Refused(told) = told else { panic!("{told:?}") };
            assert_eq!((told.code, &*told.message), (code, expect));
        };
        let missing = "the server could not find the requested resource";
        let told = "policy/v1beta1 PodDisruptionBudget is not served; the server has policy/v1";
        check("v1beta1", 404, missing, told);
        check("v1", 404, missing, missing);
        check("v1beta1", 404, "namespaces \"shop\" not found", "namespaces \"shop\" not found");
        check("v1beta1", 403, missing, missing);
    }

    #[test]
    fn a_stale_group_is_known_to_be_missing() {
        let answer = r#"{"items": [
            {"metadata": {"name": "apps"}, "versions": [{"version": "v1", "freshness": "Current", "resources": [
                {"resource": "deployments", "responseKind": {"group": "", "version": "", "kind": "Deployment"},
                 "scope": "Namespaced", "verbs": ["create", "list", "patch", "watch"],
                 "subresources": [{"subresource": "scale", "verbs": ["get", "patch", "update"]}]}]}]},
            {"metadata": {"name": "down.example.com"}, "versions": [{"version": "v1", "freshness": "Stale"}]}
        ]}"#;
        let list: GroupList = serde_json::from_str(answer).unwrap();
        let mut kinds = Kinds::default();
        list.items.into_iter().for_each(|group| kinds.add(group));
        let web = ObjectId::new("apps", "Deployment", "shop", "web").unwrap();
        assert_eq!(kinds.path(&web, "v1").unwrap(), "/apis/apps/v1/namespaces/shop/deployments/web");
        assert!(kinds.is_stale("down.example.com") && !kinds.is_stale("apps"));
        assert_eq!(kinds.get(&web.group_kind()).unwrap().scale_versions, [Box::from("v1")]);
    }

    #[test]
    fn a_name_cannot_leave_its_part_of_the_path() {
        assert_eq!(escape("system:node.a-b"), "system:node.a-b");
        assert_eq!(escape("a?b/c%"), "a%3Fb%2Fc%25");
    }
}
