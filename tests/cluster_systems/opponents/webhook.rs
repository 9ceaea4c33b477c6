//! An admission webhook on the loopback, whose answers the test says.
//!
//! In: a rule from an object to an answer. Out: a configuration for the API server, and a server behind it that can be
//! taken down and up again.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};

use super::ground::everywhere;
use moorline_test_support::authority::Authority;
use moorline_test_support::git_server::{GitServer, Reply};
use moorline_test_support::scene::Scene;

/// Outcome of a write.
pub(crate) enum Decision {
    Allow,
    Deny(&'static str),
    /// It is changed on its way: a JSON patch.
    Change(Value),
}

pub(crate) struct Webhook {
    server: GitServer,
    authority: String,
    down: Arc<AtomicBool>,
}

impl Webhook {
    /// Decides by the request of each review: its `object`, its `operation`, its `kind`.
    pub(crate) fn start(scene: &Scene, decide: impl Fn(&Value) -> Decision + Send + Sync + 'static) -> Self {
        let authority = Authority::new();
        let server = GitServer::start_with(scene.root.path(), Some(authority.server(None)));
        let down = Arc::<AtomicBool>::default();
        let is_down = down.clone();
        server.rule(move |asked| {
            if is_down.load(Ordering::Relaxed) {
                return Reply::Raw(503, "", Vec::new());
            }
            let review: Value = serde_json::from_slice(&asked.body).unwrap();
            let mut response = json!({"uid": review["request"]["uid"], "allowed": true});
            match decide(&review["request"]) {
                Decision::Allow => {}
                Decision::Deny(why) => {
                    response["allowed"] = false.into();
                    response["status"] = json!({"code": 403, "message": why});
                }
                Decision::Change(steps) => {
                    response["patchType"] = "JSONPatch".into();
                    response["patch"] = STANDARD.encode(steps.to_string()).into();
                }
            }
            let answer =
                json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response});
            Reply::Raw(200, "Content-Type: application/json\r\n", answer.to_string().into_bytes())
        });
        Self { server, authority: STANDARD.encode(&authority.pem), down }
    }

    pub(crate) fn goes_down(&self) {
        self.down.store(true, Ordering::Relaxed);
    }

    pub(crate) fn comes_back(&self) {
        self.down.store(false, Ordering::Relaxed);
    }

    /// Has the API server call it by this name for writes of these resources in the scene's namespace.
    pub(crate) async fn intercepts(
        &self,
        scene: &Scene,
        kind: &str,
        name: &str,
        group: &str,
        resources: &[&str],
    ) {
        let rule = json!({
            "apiGroups": [group], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"], "resources": resources,
        });
        let url = format!("https://localhost:{}/", self.server.port);
        let body = json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": kind,
            "metadata": {"name": scene.namespace},
            "webhooks": [{
                "name": name, "clientConfig": {"url": url, "caBundle": self.authority}, "sideEffects": "None",
                "admissionReviewVersions": ["v1"], "rules": [rule], "timeoutSeconds": 5,
                "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": scene.namespace}},
            }],
        });
        let all = everywhere(scene, "admissionregistration.k8s.io", "v1", kind);
        let by = PatchParams::apply("tests").force();
        all.patch(&scene.namespace, &by, &Patch::Apply(&body)).await.unwrap();
    }
}
