//! An injector of certificates: it writes the bundle of an authority into whatever asks for it.

use std::time::Instant;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kube::api::{Api, DeleteParams, DynamicObject};
use serde_json::{Value, json};

use super::ground::{Opponent, assert_repaired, everywhere, file, quiet_after, until_contested, writes};
use moorline_test_support::authority::Authority;
use moorline_test_support::scene::Scene;

/// One kind of objects into which bundles are injected.
struct Injected {
    object: Value,
    objects: Api<DynamicObject>,
    /// Place of the bundle.
    place: &'static str,
}

impl Injected {
    fn name(&self) -> &str {
        self.object["metadata"]["name"].as_str().unwrap()
    }

    /// The object as a file, asking for a bundle, with this one in Git.
    fn asking(&self, bundle: Option<&Value>) -> (String, String) {
        let mut object = self.object.clone();
        object["metadata"]["annotations"] = json!({"cert-manager.io/inject-ca-from": "shop/serving"});
        if let Some(bundle) = bundle {
            object.pointer_mut(self.place).unwrap()["caBundle"] = bundle.clone();
        }
        file(&object)
    }

    fn injector(&self) -> Opponent {
        Opponent::new(&self.objects, "cert-manager-cainjector")
    }

    async fn inject(&self, bundle: &str) -> Instant {
        let injector = self.injector();
        injector
            .rewrites(self.name(), |live| live.pointer_mut(self.place).unwrap()["caBundle"] = bundle.into())
            .await;
        injector.moved()
    }

    async fn assert_holds(&self, bundle: &str) {
        let live = self.injector().live(self.name()).await;
        assert_eq!(live.pointer(self.place).unwrap()["caBundle"], bundle, "{}", self.name());
    }
}

fn webhooks(scene: &Scene, kind: &str) -> Injected {
    let client = json!({"service": {"name": "hook", "namespace": scene.namespace}});
    let object = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": kind,
        "metadata": {"name": format!("{}-{}", kind.to_lowercase(), scene.namespace)},
        "webhooks": [{
            "name": "hook.example.com", "clientConfig": client, "sideEffects": "None", "failurePolicy": "Ignore",
            "admissionReviewVersions": ["v1"],
            "rules": [{"apiGroups": ["hooked.example.com"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["things"]}],
        }],
    });
    let objects = everywhere(scene, "admissionregistration.k8s.io", "v1", kind);
    Injected { object, objects, place: "/webhooks/0/clientConfig" }
}

fn definition(scene: &Scene) -> Injected {
    let schema = json!({"openAPIV3Schema": {"type": "object"}});
    let version = |name: &str, storage: bool| json!({"name": name, "served": true, "storage": storage, "schema": schema});
    let client = json!({"service": {"name": "convert", "namespace": scene.namespace}});
    let object = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.injected.example.com"},
        "spec": {
            "group": "injected.example.com", "scope": "Namespaced",
            "names": {"kind": "Thing", "plural": "things", "singular": "thing", "listKind": "ThingList"},
            "versions": [version("v1", true), version("v1beta1", false)],
            "conversion": {"strategy": "Webhook", "webhook": {"clientConfig": client, "conversionReviewVersions": ["v1"]}},
        },
    });
    let objects = everywhere(scene, "apiextensions.k8s.io", "v1", "CustomResourceDefinition");
    Injected { object, objects, place: "/spec/conversion/webhook/clientConfig" }
}

fn service(scene: &Scene) -> Injected {
    let object = json!({
        "apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
        "metadata": {"name": "v1.injected-service.example.com"},
        "spec": {
            "group": "injected-service.example.com", "version": "v1", "groupPriorityMinimum": 100, "versionPriority": 100,
            "service": {"name": "service", "namespace": scene.namespace},
        },
    });
    Injected {
        object,
        objects: everywhere(scene, "apiregistration.k8s.io", "v1", "APIService"),
        place: "/spec",
    }
}

#[tokio::test]
async fn bundles_that_an_object_asks_for_stay() {
    let Some(scene) = Scene::new("cainjector").await else { return };
    let all = [
        webhooks(&scene, "ValidatingWebhookConfiguration"),
        webhooks(&scene, "MutatingWebhookConfiguration"),
        definition(&scene),
        service(&scene),
    ];
    let git = |bundle: Option<&Value>| all.iter().map(|one| one.asking(bundle)).collect::<Vec<_>>();
    let (_daemon, _) = scene.applied(&git(Some(&json!("Cg=="))), json!({})).await;
    let [first, second, third] = [0, 1, 2].map(|_| STANDARD.encode(Authority::new().pem));
    scene.proxy.take_requests();
    let mut moved = Instant::now();
    for bundle in [&first, &second] {
        for one in &all {
            moved = one.inject(bundle).await;
        }
    }
    let asked = quiet_after(&scene, moved, "injected").await;
    for one in &all {
        assert!(writes(&asked, one.name()) <= 2, "{}: a look for each at most", one.name());
        one.assert_holds(&second).await;
    }
    for (word, bundle) in
        [("no", None), ("empty", Some(json!(""))), ("null", Some(Value::Null)), ("line", Some(json!("Cg==")))]
    {
        let commit = scene.push(&git(bundle.as_ref()));
        scene.nudge("shop", word).await;
        scene.until_ready("shop", &commit).await;
        for one in &all {
            one.assert_holds(&second).await;
        }
    }
    let service = &all[3];
    assert_repaired(
        &scene,
        &service.objects,
        service.name(),
        json!({"spec": {"versionPriority": 7}}),
        "spec.versionPriority",
    )
    .await;
    for one in &all {
        moved = one.inject(&third).await;
    }
    quiet_after(&scene, moved, "renewed").await;
    for one in &all {
        one.assert_holds(&third).await;
    }
    assert_eq!(scene.status("shop", "/contested").await, Value::Null);

    // Kinds of a server that is not there keep others from being deleted.
    service.objects.delete(service.name(), &DeleteParams::default()).await.unwrap();
}

#[tokio::test]
async fn a_bundle_that_nobody_asks_for_is_contested() {
    let Some(scene) = Scene::new("no-annotation").await else { return };
    let plain = webhooks(&scene, "ValidatingWebhookConfiguration");
    let mut object = plain.object.clone();
    object["webhooks"][0]["clientConfig"]["caBundle"] = "".into();
    let (_daemon, _) = scene.applied(&[file(&object)], json!({})).await;
    scene.proxy.take_requests();
    let bundle = STANDARD.encode(Authority::new().pem);
    let is_undone = |live: &Value| live.pointer(plain.place).unwrap()["caBundle"].is_null();
    for _ in 0..5 {
        plain.inject(&bundle).await;
        plain.injector().until("it is undone", plain.name(), is_undone).await;
    }
    let moved = plain.inject(&bundle).await;
    let (contested, _) = until_contested(&scene, "shop").await;
    let field = "webhooks[name=hook.example.com].clientConfig.caBundle";
    assert_eq!(contested, [(field.to_owned(), "cert-manager-cainjector".to_owned())]);
    let asked = quiet_after(&scene, moved, "contested").await;
    assert_eq!(writes(&asked, plain.name()), 5);
    plain.assert_holds(&bundle).await;
}
