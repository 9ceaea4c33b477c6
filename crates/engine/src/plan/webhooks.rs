//! Webhooks of the set that reject requests while no backend serves them.
//!
//! In: a set, and a request about one of its objects.
//! Out: [`GuardingWebhook`]s: the webhooks of the set that the API server calls for this request
//! and that fail closed, each with the workloads behind its Service. In doubt, as with match
//! conditions, a webhook does not count: the request is sent, and the API server decides. An object
//! that the backend may need to start is never guarded, which prevents deadlocks. A webhook outside
//! the set is recognized by the response to a request; this file only decides if the object may
//! wait for it.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Map, Value};

use super::order::Rank;
use crate::desired::{DesiredObject, DesiredSet};
use moorline_api::{SYNC_LABEL, SyncName};
use moorline_core::object::ObjectId;

const GROUP: &str = "admissionregistration.k8s.io";
/// Label that the API server sets on each namespace.
const NAME_LABEL: &str = "kubernetes.io/metadata.name";

/// The webhooks of a set that fail closed and have their backend in the set.
#[derive(Debug, Default)]
pub struct Webhooks(Vec<BackedWebhook>);

#[derive(Debug)]
struct BackedWebhook {
    configuration: ObjectId,
    said: WebhookSpec,
    backends: Vec<ObjectId>,
}

/// A request that is about to be sent.
#[derive(Debug, Clone, Copy)]
pub struct AdmissionRequest<'a> {
    /// The object.
    pub object: &'a DesiredObject,
    /// Plural resource name, as in URLs.
    pub plural: &'a str,
    /// True for a creation, false for an update.
    pub creates: bool,
    /// The Sync that sends it.
    pub owner: &'a SyncName,
}

/// A webhook that the API server calls for a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GuardingWebhook<'a> {
    /// Its name.
    pub webhook: &'a str,
    /// The workloads behind its Service; at least one.
    pub backends: &'a [ObjectId],
}

/// Readiness of a workload behind a webhook.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BackendState {
    /// One of its Pods is ready.
    Ready,
    /// None of its Pods is ready.
    NotReady,
    /// It is scaled to zero.
    ScaledToZero,
    /// The API server cannot reach it yet, although one of its Pods is ready.
    Unreached,
}

/// The hold of an object whose webhook has no ready backend.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnservedWebhook {
    /// The workload that serves the webhook, or the webhook's Service if the workload is unknown.
    pub backend: ObjectId,
    /// Name of the webhook.
    pub webhook: Box<str>,
    /// Readiness of the workload.
    pub state: BackendState,
}

impl Webhooks {
    /// Collects the webhooks of a set.
    pub fn from_set(desired: &DesiredSet) -> Self {
        let objects = desired.objects();
        let first = objects.partition_point(|object| object.id.as_str() < GROUP);
        let ours = objects[first..].iter().take_while(|object| object.id.as_str().starts_with(GROUP));
        let configurations = ours.filter(|object| object.id.kind().ends_with("WebhookConfiguration"));
        Self(configurations.flat_map(|object| of_configuration(object, desired)).collect())
    }

    /// True if the set has no such webhooks.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the webhooks that guard a request and whose configuration is in the cluster.
    pub fn guarding_webhooks<'a>(
        &'a self,
        request: AdmissionRequest<'_>,
        desired: &DesiredSet,
        is_there: impl Fn(&ObjectId) -> bool,
    ) -> Vec<GuardingWebhook<'a>> {
        let guards = |webhook: &&BackedWebhook| {
            webhook.said.is_asked(&request, desired)
                && webhook.backends.iter().all(|backend| may_wait(request.object, backend, desired))
                && is_there(&webhook.configuration)
        };
        let guardian =
            |it: &'a BackedWebhook| GuardingWebhook { webhook: &it.said.name, backends: &it.backends };
        self.0.iter().filter(guards).map(guardian).collect()
    }
}

/// Returns the readiness of a workload by its status; `live` is none if it does not exist.
pub fn backend_state(id: &ObjectId, live: Option<&Map<String, Value>>) -> BackendState {
    let at = |path: [&str; 2]| live.and_then(|live| live.get(path[0])?.get(path[1]));
    let number = |path| at(path).and_then(Value::as_i64);
    let ready = match id.kind() {
        "Pod" => {
            let conditions = at(["status", "conditions"]).and_then(Value::as_array);
            conditions.into_iter().flatten().any(|it| it["type"] == "Ready" && it["status"] == "True")
        }
        "DaemonSet" => number(["status", "numberReady"]).is_some_and(|ready| ready > 0),
        _ => number(["status", "readyReplicas"]).is_some_and(|ready| ready > 0),
    };
    match ready {
        true => BackendState::Ready,
        false if number(["spec", "replicas"]) == Some(0) => BackendState::ScaledToZero,
        false => BackendState::NotReady,
    }
}

/// True if an object may wait for the backend of a Service: the set contains no workload behind it,
/// or all of them start without the object.
pub fn may_wait_for_service(object: &DesiredObject, service: &ObjectId, desired: &DesiredSet) -> bool {
    let name = ServiceName {
        namespace: service.namespace().unwrap_or_default().into(),
        name: service.name().into(),
    };
    behind(&name, desired).iter().all(|backend| may_wait(object, backend, desired))
}

/// True if an object may wait for a backend: the backend starts without it, and is not applied
/// later.
fn may_wait(object: &DesiredObject, backend: &ObjectId, desired: &DesiredSet) -> bool {
    let rank = Rank::of(&object.id);
    let is_near = object.id.namespace().is_none_or(|namespace| Some(namespace) == backend.namespace());
    let is_needed = rank <= Rank::Workload && is_near;
    let is_later =
        desired.get(backend).is_none_or(|it| it.annotations.phase_wave() > object.annotations.phase_wave());
    !is_needed && !is_later && rank != Rank::Interception
}

fn of_configuration<'a>(
    object: &'a DesiredObject,
    desired: &'a DesiredSet,
) -> impl Iterator<Item = BackedWebhook> + 'a {
    let read = serde_json::from_value::<Configuration>(Value::Object(object.body()));
    let said = read.map(|configuration| configuration.webhooks).unwrap_or_default();
    said.into_iter().filter_map(|said| {
        let is_clear = *said.failure_policy != *"Ignore" && said.match_conditions.is_empty();
        let service = said.client_config.service.as_ref().filter(|_| is_clear)?;
        let backends = behind(service, desired);
        (!backends.is_empty()).then(|| BackedWebhook { configuration: object.id.clone(), said, backends })
    })
}

/// Returns the workloads of the set behind a Service of the set.
fn behind(service: &ServiceName, desired: &DesiredSet) -> Vec<ObjectId> {
    let id = ObjectId::new("", "Service", &service.namespace, &service.name).ok();
    let Some(service) = id.and_then(|id| desired.get(&id)) else { return Vec::new() };
    let selector = labels(service.body().get("spec").and_then(|spec| spec.get("selector")));
    if selector.is_empty() {
        return Vec::new();
    }
    let is_near =
        |object: &&DesiredObject| is_workload(&object.id) && object.id.namespace() == service.id.namespace();
    let is_selected = |object: &&DesiredObject| {
        let body = object.body();
        let template = body.get("spec").and_then(|spec| spec.get("template")?.get("metadata"));
        let metadata = if object.id.kind() == "Pod" { body.get("metadata") } else { template };
        let has = labels(metadata.and_then(|metadata| metadata.get("labels")));
        selector.iter().all(|(key, value)| has.get(key) == Some(value))
    };
    let objects = desired.objects().iter();
    objects.filter(is_near).filter(is_selected).map(|object| object.id.clone()).collect()
}

/// True for kinds that run permanent Pods.
fn is_workload(id: &ObjectId) -> bool {
    match id.group() {
        "apps" => ["DaemonSet", "Deployment", "ReplicaSet", "StatefulSet"].contains(&id.kind()),
        "" => ["Pod", "ReplicationController"].contains(&id.kind()),
        _ => false,
    }
}

fn labels(value: Option<&Value>) -> Labels {
    let all = value.and_then(Value::as_object).into_iter().flatten();
    all.filter_map(|(key, value)| Some((key.as_str().into(), value.as_str()?.into()))).collect()
}

fn labels_of(object: &DesiredObject) -> Labels {
    labels(object.body().get("metadata").and_then(|metadata| metadata.get("labels")))
}

type Labels = BTreeMap<Box<str>, Box<str>>;

#[derive(Deserialize, Default)]
#[serde(default)]
struct Configuration {
    webhooks: Vec<WebhookSpec>,
}

/// A webhook of a configuration.
#[derive(Debug, Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct WebhookSpec {
    name: Box<str>,
    rules: Vec<WebhookRule>,
    failure_policy: Box<str>,
    match_policy: Box<str>,
    match_conditions: Vec<Value>,
    namespace_selector: Selector,
    object_selector: Selector,
    client_config: ClientConfig,
}

#[derive(Debug, Deserialize, Default)]
#[serde(default)]
struct ClientConfig {
    service: Option<ServiceName>,
}

#[derive(Debug, Deserialize, Default)]
#[serde(default)]
struct ServiceName {
    namespace: Box<str>,
    name: Box<str>,
}

#[derive(Debug, Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct WebhookRule {
    api_groups: Vec<Box<str>>,
    api_versions: Vec<Box<str>>,
    operations: Vec<Box<str>>,
    resources: Vec<Box<str>>,
    scope: Box<str>,
}

#[derive(Debug, Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct Selector {
    match_labels: Labels,
    match_expressions: Vec<LabelRequirement>,
}

#[derive(Debug, Deserialize, Default)]
#[serde(default)]
struct LabelRequirement {
    key: Box<str>,
    operator: Box<str>,
    values: Vec<Box<str>>,
}

impl WebhookSpec {
    /// True if the API server calls this webhook for a request. If the set does not contain the
    /// namespace, only its name label is known.
    fn is_asked(&self, request: &AdmissionRequest<'_>, desired: &DesiredSet) -> bool {
        let object = request.object;
        self.rules.iter().any(|rule| rule.fits(request, &self.match_policy))
            && object.id.namespace().is_none_or(|namespace| {
                let id = ObjectId::new("", "Namespace", "", namespace).ok();
                let mut known = id.and_then(|id| desired.get(&id)).map(labels_of).unwrap_or_default();
                known.insert(NAME_LABEL.into(), namespace.into());
                self.namespace_selector.selects(&known)
            })
            && {
                let mut known = labels_of(object);
                known.insert(SYNC_LABEL.into(), request.owner.label().into());
                self.object_selector.selects(&known)
            }
    }
}

impl WebhookRule {
    fn fits(&self, request: &AdmissionRequest<'_>, policy: &str) -> bool {
        let id = &request.object.id;
        let has = |list: &[Box<str>], word: &str| list.iter().any(|it| **it == *"*" || **it == *word);
        // By default the server also calls it for requests in other versions.
        let version = policy != "Exact" || has(&self.api_versions, &request.object.version);
        let scope = match &*self.scope {
            "Cluster" => id.namespace().is_none(),
            "Namespaced" => id.namespace().is_some(),
            _ => true,
        };
        let names = |resource: &str| {
            let (resource, part) = resource.split_once('/').unwrap_or((resource, ""));
            (resource == "*" || resource == request.plural) && ["", "*"].contains(&part)
        };
        let operation = if request.creates { "CREATE" } else { "UPDATE" };
        scope
            && version
            && has(&self.api_groups, id.group())
            && has(&self.operations, operation)
            && self.resources.iter().any(|resource| names(resource))
    }
}

impl Selector {
    fn selects(&self, labels: &Labels) -> bool {
        self.match_labels.iter().all(|(key, value)| labels.get(key) == Some(value))
            && self.match_expressions.iter().all(|expression| expression.holds(labels))
    }
}

impl LabelRequirement {
    fn holds(&self, labels: &Labels) -> bool {
        let found = labels.get(&self.key);
        let is_in = found.is_some_and(|value| self.values.contains(value));
        match &*self.operator {
            "In" => is_in,
            "NotIn" => !is_in,
            "Exists" => found.is_some(),
            "DoesNotExist" => found.is_none(),
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::test_fixtures::{id, manifest, wanted};
    use serde_json::json;

    const WIDGET: &str = "example.com/Widget|a/x";

    fn webhook(change: impl FnOnce(&mut Value)) -> Value {
        let mut webhook = json!({
            "name": "check.example.com",
            "rules": [{"apiGroups": ["example.com"], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"],
                "resources": ["widgets"]}],
            "clientConfig": {"service": {"namespace": "ops", "name": "hook"}},
        });
        change(&mut webhook);
        let mut configuration =
            manifest("admissionregistration.k8s.io/ValidatingWebhookConfiguration|/check", 0);
        configuration["webhooks"] = json!([webhook]);
        configuration
    }

    fn service() -> Value {
        let mut service = manifest("/Service|ops/hook", 0);
        service["spec"] = json!({"selector": {"app": "hook"}});
        service
    }

    fn workload(text: &str, wave: i32) -> Value {
        let mut workload = manifest(text, wave);
        let labels = json!({"app": "hook", "tier": "back"});
        workload["metadata"]["labels"] = labels.clone();
        workload["spec"] = json!({"template": {"metadata": {"labels": labels}}});
        workload
    }

    const BACKEND: &str = "apps/Deployment|ops/hook";

    /// The backends that guard an object, in the set of these manifests.
    fn guards(manifests: &[Value], text: &str, plural: &str, creates: bool) -> Vec<String> {
        let set = wanted(manifests);
        let owner = SyncName::new("ops", "shop");
        let object = set.get(&id(text)).unwrap();
        let request = AdmissionRequest { object, plural, creates, owner: &owner };
        let webhooks = Webhooks::from_set(&set);
        let found = webhooks.guarding_webhooks(request, &set, |_| true);
        assert!(
            webhooks.guarding_webhooks(request, &set, |_| false).is_empty(),
            "the configuration is not there yet"
        );
        found.iter().flat_map(|it| it.backends).map(|backend| backend.name().to_owned()).collect()
    }

    #[track_caller]
    fn check(change: impl FnOnce(&mut Value), expect: bool) {
        let set = [webhook(change), service(), workload(BACKEND, 0), manifest(WIDGET, 0)];
        let found = guards(&set, WIDGET, "widgets", true);
        assert_eq!(found, if expect { vec!["hook"] } else { vec![] });
    }

    #[test]
    fn a_webhook_guards_the_requests_that_it_is_asked_about() {
        check(|_| {}, true);
        check(|it| it["failurePolicy"] = "Fail".into(), true);
        check(|it| it["failurePolicy"] = "Ignore".into(), false);
        check(|it| it["rules"][0]["apiGroups"] = json!(["*"]), true);
        check(|it| it["rules"][0]["apiGroups"] = json!(["other.com", ""]), false);
        check(|it| it["rules"][0]["operations"] = json!(["UPDATE", "DELETE"]), false);
        check(|it| it["rules"][0]["operations"] = json!(["*"]), true);
        check(|it| it["rules"][0]["resources"] = json!(["gadgets", "widgets/status"]), false);
        check(|it| it["rules"][0]["resources"] = json!(["*/*"]), true);
        check(|it| it["rules"][0]["resources"] = json!(["widgets/*"]), true);
        check(|it| it["rules"][0]["scope"] = "Cluster".into(), false);
        check(|it| it["rules"][0]["scope"] = "Namespaced".into(), true);
        check(|it| it["rules"] = json!([]), false);
        // It is also called for another version of the same kind, unless matchPolicy is Exact.
        check(|it| it["rules"][0]["apiVersions"] = json!(["v2"]), true);
        let exact = |it: &mut Value| {
            (it["rules"][0]["apiVersions"], it["matchPolicy"]) = (json!(["v2"]), "Exact".into());
        };
        check(exact, false);
        // Only the API server can evaluate these.
        check(|it| it["matchConditions"] = json!([{"name": "x", "expression": "true"}]), false);
        check(|it| it["clientConfig"] = json!({"url": "https://example.com"}), false);
    }

    #[test]
    fn selectors_are_read_as_far_as_the_set_says() {
        check(|it| it["namespaceSelector"] = json!({"matchLabels": {NAME_LABEL: "a"}}), true);
        check(|it| it["namespaceSelector"] = json!({"matchLabels": {NAME_LABEL: "b"}}), false);
        let expression = |operator: &str| json!({"matchExpressions": [{"key": "check", "operator": operator, "values": ["off"]}]});
        check(|it| it["namespaceSelector"] = expression("NotIn"), true);
        check(|it| it["namespaceSelector"] = expression("In"), false);
        check(|it| it["objectSelector"] = expression("Exists"), false);
        check(|it| it["objectSelector"] = expression("DoesNotExist"), true);
        check(|it| it["objectSelector"] = json!({"matchLabels": {SYNC_LABEL: "ops.shop"}}), true);
        let mut namespace = manifest("/Namespace|/a", 0);
        namespace["metadata"]["labels"] = json!({"check": "off"});
        let off = webhook(|it| it["namespaceSelector"] = expression("NotIn"));
        let set = [off, service(), workload(BACKEND, 0), manifest(WIDGET, 0), namespace];
        assert!(guards(&set, WIDGET, "widgets", true).is_empty());
    }

    #[test]
    fn a_change_is_another_operation_than_a_creation() {
        let only_new = webhook(|it| it["rules"][0]["operations"] = json!(["CREATE"]));
        let set = [only_new, service(), workload(BACKEND, 0), manifest(WIDGET, 0)];
        assert_eq!(guards(&set, WIDGET, "widgets", true), ["hook"]);
        assert!(guards(&set, WIDGET, "widgets", false).is_empty());
    }

    #[test]
    fn the_backends_are_the_workloads_behind_the_service() {
        let found = |more: Vec<Value>| {
            guards(&[vec![webhook(|_| {}), manifest(WIDGET, 0)], more].concat(), WIDGET, "widgets", true)
        };
        assert!(found(vec![]).is_empty(), "nobody in the set serves it");
        assert!(found(vec![workload(BACKEND, 0)]).is_empty(), "there is no Service");
        assert!(found(vec![service(), workload("apps/Deployment|other/hook", 0)]).is_empty());
        assert!(found(vec![service(), workload("batch/Job|ops/hook", 0)]).is_empty());
        let two = vec![service(), workload(BACKEND, 0), workload("apps/DaemonSet|ops/more", 0)];
        assert_eq!(found(two), ["more", "hook"]);
        assert_eq!(found(vec![service(), workload("/Pod|ops/pod", 0)]), ["pod"]);
        let mut without = service();
        without["spec"] = json!({});
        assert!(found(vec![without, workload(BACKEND, 0)]).is_empty());
    }

    #[test]
    fn nothing_waits_in_a_circle() {
        let everything = || {
            webhook(|it| {
                it["rules"] = json!([{"apiGroups": ["*"], "apiVersions": ["*"],
            "operations": ["*"], "resources": ["*/*"]}])
            })
        };
        let guarded = |text: &str, wave| {
            let base = vec![everything(), service(), workload(BACKEND, 1)];
            let more = base
                .iter()
                .any(|it| it["metadata"]["name"] == id(text).name() && it["kind"] == id(text).kind());
            let more = if more { vec![] } else { vec![manifest(text, wave)] };
            !guards(&[base, more].concat(), text, "any", true).is_empty()
        };
        for text in [
            BACKEND,
            "/Service|ops/hook",
            "/Namespace|/ops",
            "/Namespace|/a",
            "/Secret|ops/certificate",
            "/ConfigMap|ops/settings",
            "/ServiceAccount|ops/hook",
            "apps/Deployment|ops/other",
            "batch/Job|ops/certificate",
            "rbac.authorization.k8s.io/ClusterRole|/hook",
            "scheduling.k8s.io/PriorityClass|/high",
            "apiextensions.k8s.io/CustomResourceDefinition|/widgets.example.com",
            "apiregistration.k8s.io/APIService|/v1.example.com",
        ] {
            assert!(!guarded(text, 1), "{text}");
        }
        for text in [WIDGET, "example.com/Widget|ops/x", "/ConfigMap|a/x", "apps/Deployment|a/x"] {
            assert!(guarded(text, 1), "{text}");
            assert!(guarded(text, 2), "{text}");
            // The backend is applied later.
            assert!(!guarded(text, 0), "{text}");
        }
    }

    #[test]
    fn an_object_waits_for_a_service_unless_what_is_behind_it_needs_the_object() {
        let set = wanted(&[
            service(),
            workload(BACKEND, 1),
            manifest("/ConfigMap|ops/settings", 1),
            manifest(WIDGET, 1),
            manifest("example.com/Widget|a/early", 0),
        ]);
        let waits = |text: &str, service: &str| {
            may_wait_for_service(set.get(&id(text)).unwrap(), &id(&format!("/Service|{service}")), &set)
        };
        assert!(waits(WIDGET, "ops/hook"));
        assert!(!waits("/ConfigMap|ops/settings", "ops/hook"), "the backend may need it");
        assert!(!waits("example.com/Widget|a/early", "ops/hook"), "the backend comes later");
        assert!(waits("/ConfigMap|ops/settings", "ops/other"), "nobody in the set serves it");
        assert!(waits(BACKEND, "elsewhere/hook"));
    }

    #[test]
    fn a_backend_serves_when_one_of_its_pods_is_ready() {
        let check = |text: &str, live: Value, expect| {
            assert_eq!(backend_state(&id(text), live.as_object()), expect, "{text}: {live}");
        };
        check(BACKEND, json!({"status": {"readyReplicas": 1, "replicas": 3}}), BackendState::Ready);
        check(BACKEND, json!({"spec": {"replicas": 1}, "status": {"replicas": 1}}), BackendState::NotReady);
        check(BACKEND, json!({"spec": {"replicas": 0}, "status": {}}), BackendState::ScaledToZero);
        check(BACKEND, Value::Null, BackendState::NotReady);
        check("apps/DaemonSet|a/x", json!({"status": {"numberReady": 2}}), BackendState::Ready);
        let pod = |ready: &str| json!({"status": {"conditions": [{"type": "Ready", "status": ready}]}});
        check("/Pod|a/x", pod("True"), BackendState::Ready);
        check("/Pod|a/x", pod("False"), BackendState::NotReady);
    }
}
