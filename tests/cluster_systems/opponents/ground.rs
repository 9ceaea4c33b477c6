//! Opponents: writers of a Sync's objects beside it, and the results.
//!
//! In: a scene, and under which name somebody writes. Out: the writes, the time of the last one, and what the daemon
//! asked from then on. Opponents go to the API server itself, so that the proxy has seen the daemon's requests only.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use kube::api::{Api, ApiResource, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::core::GroupVersionKind;
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use moorline_test_support::daemon::until;
use moorline_test_support::fault_proxy::RecordedRequest;
use moorline_test_support::scene::Scene;
use moorline_test_support::under_load::under_load;

/// So long after the last move of an opponent the daemon may ask about objects and write statuses.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);
/// So long nothing may be asked until a test believes that nothing will be.
const SILENCE: Duration = Duration::from_millis(2000);

/// Somebody who writes under a name.
#[derive(Clone)]
pub(crate) struct Opponent {
    pub(crate) objects: Api<DynamicObject>,
    manager: &'static str,
    moved: Arc<Mutex<Instant>>,
}

impl Opponent {
    pub(crate) fn new(objects: &Api<DynamicObject>, manager: &'static str) -> Self {
        Self { objects: objects.clone(), manager, moved: Arc::new(Mutex::new(Instant::now())) }
    }

    fn moves(&self) {
        *self.moved.lock().unwrap() = Instant::now();
    }

    fn update(&self) -> PatchParams {
        PatchParams { field_manager: Some(self.manager.to_owned()), ..PatchParams::default() }
    }

    /// When it wrote last.
    pub(crate) fn moved(&self) -> Instant {
        *self.moved.lock().unwrap()
    }

    pub(crate) async fn merges(&self, name: &str, patch: Value) -> DynamicObject {
        self.moves();
        self.objects.patch(name, &self.update(), &Patch::Merge(&patch)).await.unwrap()
    }

    /// Merges lists of the server's own kinds by their keys.
    pub(crate) async fn edits(&self, name: &str, patch: Value) -> DynamicObject {
        self.moves();
        self.objects.patch(name, &self.update(), &Patch::Strategic(&patch)).await.unwrap()
    }

    /// A server-side apply by force.
    pub(crate) async fn applies(&self, name: &str, body: &Value) -> DynamicObject {
        self.moves();
        let by = PatchParams::apply(self.manager).force();
        self.objects.patch(name, &by, &Patch::Apply(body)).await.unwrap()
    }

    /// Reads the whole object, changes it, and puts it back.
    pub(crate) async fn rewrites(&self, name: &str, change: impl FnOnce(&mut Value)) {
        let mut live = self.live(name).await;
        change(&mut live);
        self.moves();
        let by = PostParams { field_manager: Some(self.manager.to_owned()), ..PostParams::default() };
        self.objects.replace(name, &by, &serde_json::from_value(live).unwrap()).await.unwrap();
    }

    pub(crate) async fn scales(&self, name: &str, replicas: i64) {
        self.moves();
        let patch = json!({"spec": {"replicas": replicas}});
        self.objects.patch_scale(name, &self.update(), &Patch::Merge(&patch)).await.unwrap();
    }

    pub(crate) async fn creates(&self, body: Value) {
        self.moves();
        let by = PostParams { field_manager: Some(self.manager.to_owned()), ..PostParams::default() };
        self.objects.create(&by, &serde_json::from_value(body).unwrap()).await.unwrap();
    }

    /// Writes the same again whenever the field is another, as one that watches does.
    pub(crate) fn insists(&self, name: &str, body: Value, place: &'static str) -> Going {
        let (this, name) = (self.clone(), name.to_owned());
        Going(tokio::spawn(async move {
            loop {
                let live = this.live(&name).await;
                if live.pointer(place) != body.pointer(place) {
                    this.applies(&name, &body).await;
                }
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }))
    }

    /// Does the same every so often, whatever is there; it receives the number of times.
    pub(crate) fn repeats(&self, every: Duration, act: impl AsyncRepeat) -> Going {
        let this = self.clone();
        Going(tokio::spawn(async move {
            for nth in 0.. {
                act.act(&this, nth).await;
                tokio::time::sleep(every).await;
            }
        }))
    }

    pub(crate) async fn live(&self, name: &str) -> Value {
        serde_json::to_value(self.objects.get(name).await.unwrap()).unwrap()
    }

    /// Waits until an object is as it should be.
    pub(crate) async fn until(&self, what: &str, name: &str, is: impl Fn(&Value) -> bool) -> Value {
        until(what, async || Some(self.live(name).await).filter(|live| is(live))).await
    }
}

/// Action that an opponent repeats.
pub(crate) trait AsyncRepeat: Send + 'static {
    fn act(&self, who: &Opponent, nth: usize) -> impl Future<Output = ()> + Send;
}

/// An opponent that goes on until this is dropped.
pub(crate) struct Going(JoinHandle<()>);

impl Drop for Going {
    fn drop(&mut self) {
        self.0.abort();
    }
}

pub(crate) fn deployments(scene: &Scene) -> Api<DynamicObject> {
    scene.dynamic("apps", "v1", "Deployment")
}

/// Objects without a namespace.
pub(crate) fn everywhere(scene: &Scene, group: &str, version: &str, kind: &str) -> Api<DynamicObject> {
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
    Api::all_with(scene.admin.clone(), &resource)
}

/// An object as a file.
pub(crate) fn file(object: &Value) -> (String, String) {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap();
    (format!("{}-{}.json", text("/kind"), text("/metadata/name")), object.to_string())
}

/// A Deployment that is paused, so that its controller writes a status and nothing else; `spec` comes on top.
pub(crate) fn web(name: &str, spec: Value) -> Value {
    let labels = json!({"app": name});
    let mut web = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name},
        "spec": {
            "paused": true, "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {
                "containers": [{"name": "web", "image": "example.com/web:1"}],
            }},
        },
    });
    for (field, value) in spec.as_object().unwrap() {
        web["spec"][field] = value.clone();
    }
    web
}

pub(crate) fn map(name: &str, data: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data})
}

/// The image of the first container of a template.
pub(crate) const IMAGE: &str = "/spec/template/spec/containers/0/image";

/// Defines a namespaced kind whose spec has a schema, with a status of its own, and waits until it is served.
pub(crate) async fn define(
    scene: &Scene,
    group: &str,
    version: &str,
    kind: &str,
    spec: Value,
) -> Api<DynamicObject> {
    let plural = format!("{}s", kind.to_lowercase());
    let status = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let schema = json!({"type": "object", "properties": {"spec": spec, "status": status}});
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.{group}")},
        "spec": {
            "group": group, "scope": "Namespaced", "names": {"kind": kind, "plural": plural},
            "versions": [{
                "name": version, "served": true, "storage": true, "schema": {"openAPIV3Schema": schema},
                "subresources": {"status": {}},
            }],
        },
    });
    let definitions = everywhere(scene, "apiextensions.k8s.io", "v1", "CustomResourceDefinition");
    let name = format!("{plural}.{group}");
    definitions.patch(&name, &PatchParams::apply("test").force(), &Patch::Apply(&definition)).await.unwrap();
    let objects = scene.dynamic(group, version, kind);
    until("the kind is served", async || objects.list(&ListParams::default()).await.ok()).await;
    objects
}

fn is_noise(asked: &RecordedRequest) -> bool {
    !asked.is_watch() && !asked.checks_server_identity() && !asked.reads_health()
}

fn shown(asked: &[RecordedRequest]) -> Vec<String> {
    let one = |one: &RecordedRequest| format!("{} {}?{} {}", one.method, one.path, one.query, one.text());
    asked.iter().map(one).collect()
}

/// Waits until nothing is asked about objects and no status written any more; that has to be so at the latest
/// [`PATIENCE`] after `moved`. Gives what was asked since the last call.
pub(crate) async fn quiet_after(scene: &Scene, moved: Instant, what: &str) -> Vec<RecordedRequest> {
    let mut noise: Vec<RecordedRequest> = Vec::new();
    loop {
        noise.extend(scene.proxy.take_requests().into_iter().filter(is_noise));
        let last = noise.last().map_or(moved, |asked| asked.at.max(moved));
        assert!(last.duration_since(moved) < under_load(PATIENCE), "{what}: {:?}", shown(&noise));
        if last.elapsed() > SILENCE {
            return noise;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// Returns the requests within a time.
pub(crate) async fn asked_within(scene: &Scene, time: Duration) -> Vec<RecordedRequest> {
    scene.proxy.take_requests();
    tokio::time::sleep(time).await;
    scene.proxy.take_requests().into_iter().filter(is_noise).collect()
}

/// Returns the number of writes of an object with this name.
pub(crate) fn writes(asked: &[RecordedRequest], name: &str) -> usize {
    let end = format!("/{name}");
    asked.iter().filter(|one| one.writes_object() && one.path.ends_with(&end)).count()
}

/// Waits until an Event tells of a repair of this field by this manager.
pub(crate) async fn until_told(scene: &Scene, words: &[&str]) {
    let events = scene.dynamic("events.k8s.io", "v1", "Event");
    until(&format!("an Event tells of {words:?}"), async || {
        let all = events.list(&ListParams::default()).await.unwrap();
        let notes = all.items.iter().filter(|event| event.data["reason"] == "DriftRepaired");
        let mut notes = notes.filter_map(|event| event.data["note"].as_str());
        notes.any(|note| words.iter().all(|word| note.contains(word))).then_some(())
    })
    .await;
}

/// Waits until the Sync says that it is contested; paths and managers, and the sentence.
pub(crate) async fn until_contested(scene: &Scene, sync: &str) -> (Vec<(String, String)>, String) {
    until(&format!("{sync} is contested"), async || {
        let status = scene.status(sync, "").await;
        let ready = status.pointer("/conditions/0")?;
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let contested = status["contested"].as_array()?;
        let each = contested.iter().map(|one| (text(&one["path"]), text(&one["manager"]))).collect();
        (ready["reason"] == "Contested").then(|| (each, text(&ready["message"])))
    })
    .await
}

/// A person who edits, and sees the edit repaired within a moment.
pub(crate) async fn assert_repaired(
    scene: &Scene,
    objects: &Api<DynamicObject>,
    name: &str,
    edit: Value,
    field: &str,
) {
    let person = Opponent::new(objects, "kubectl-edit");
    let pointer = format!("/{}", field.replace('.', "/"));
    let before = person.live(name).await.pointer(&pointer).cloned();
    person.merges(name, edit).await;
    person
        .until(&format!("{field} is repaired"), name, |live| live.pointer(&pointer) == before.as_ref())
        .await;
    until_told(scene, &[name, field, "changed by kubectl-edit"]).await;
    quiet_after(scene, person.moved(), "after a repair").await;
}
