//! The repository of the demo, and the Syncs that follow it.
//!
//! In: a temporary folder, or the address of the user's own repository. Out: [`DemoSetup`]; its
//! Syncs, applied; and a poll request for every new commit.

use std::path::Path;

use anyhow::Context as _;
use serde_json::{Value, json};

use super::daemon::NAMESPACE;
use crate::api::REQUEST_ANNOTATION;
use crate::cli::temporary_folder::TemporaryFolder;
use crate::sandbox::Sandbox;
use crate::source::{DemoRepository, RefWatch};

/// The files of the shop, as they are in `examples/shop`.
const SHOP: [(&str, &str); 6] = [
    ("base/shop.yaml", include_str!("../../../examples/shop/base/shop.yaml")),
    ("apps/web.yaml", include_str!("../../../examples/shop/apps/web.yaml")),
    ("apps/cart.yaml", include_str!("../../../examples/shop/apps/cart.yaml")),
    ("apps/catalog.yaml", include_str!("../../../examples/shop/apps/catalog.yaml")),
    ("apps/payment.yaml", include_str!("../../../examples/shop/apps/payment.yaml")),
    ("apps/search.yaml", include_str!("../../../examples/shop/apps/search.yaml")),
];

/// API path of the Syncs.
const SYNCS: &str = "/apis/moorline.dev/v1alpha1/namespaces/moorline/syncs";

/// A repository and its Syncs.
pub(super) struct DemoSetup {
    repository: Option<DemoRepository>,
    url: String,
    syncs: Vec<Value>,
}

impl DemoSetup {
    /// Creates the repository of the example shop.
    pub(super) fn example_shop(scratch: &TemporaryFolder) -> anyhow::Result<Self> {
        let workshop = DemoRepository::new(&scratch.path().join("shop"))?;
        workshop.commit("The shop opens", &SHOP, &[])?;
        let url = format!("file://{}", workshop.path().display());
        let base = sync("shop-base", &url, "base", json!({"createNamespace": true}));
        let apps = sync("shop", &url, "apps", json!({"dependsOn": [{"name": "shop-base"}]}));
        Ok(Self { repository: Some(workshop), url, syncs: vec![base, apps] })
    }

    /// Follows the user's own repository.
    pub(super) fn from_url(url: &str, path: &str) -> Self {
        let local = Path::new(url).canonicalize().ok().filter(|_| !url.contains("://"));
        let url = local.map_or_else(|| url.to_owned(), |path| format!("file://{}", path.display()));
        let mut one = sync("demo", &url, path, json!({"createNamespace": true}));
        one["spec"]["targetNamespace"] = "demo".into();
        Self { repository: None, url, syncs: vec![one] }
    }

    /// The folder of the repository, if the demo created it.
    pub(super) fn folder(&self) -> Option<String> {
        self.repository.as_ref().map(|workshop| workshop.path().display().to_string())
    }

    /// Commits to the shop.
    pub(super) fn commit(
        &self,
        message: &str,
        write: &[(&str, &str)],
        remove: &[&str],
    ) -> anyhow::Result<String> {
        let workshop = self.repository.as_ref().context("the repository is not ours")?;
        Ok(workshop.commit(message, write, remove)?)
    }

    /// The original content of a file of the shop.
    pub(super) fn original_file(path: &str) -> &'static str {
        SHOP.iter().find(|(known, _)| *known == path).map_or("", |(_, text)| text)
    }

    /// Applies the Syncs to the server.
    pub(super) fn apply_syncs(&self, sandbox: &Sandbox) -> anyhow::Result<()> {
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}});
        sandbox.apply("/api/v1/namespaces", &namespace, "demo")?;
        for sync in &self.syncs {
            sandbox.apply(SYNCS, sync, "demo")?;
        }
        Ok(())
    }

    /// Requests a poll of all Syncs after every commit to a repository on this disk; never returns.
    pub(super) async fn poll_on_commit(&self, sandbox: &Sandbox) {
        let path = self.url.strip_prefix("file://").map(Path::new);
        if let Some(Ok(watch)) = path.map(RefWatch::new) {
            for count in 1u64.. {
                watch.changed().await;
                let now =
                    json!({"metadata": {"annotations": {REQUEST_ANNOTATION: format!("commit {count}")}}});
                for sync in &self.syncs {
                    let name = sync["metadata"]["name"].as_str().unwrap_or_default();
                    // A Sync that was deleted by the user needs no request.
                    let _ = sandbox.merge(&format!("{SYNCS}/{name}"), &now, "demo");
                }
            }
        }
        std::future::pending().await
    }
}

fn sync(name: &str, url: &str, path: &str, also: Value) -> Value {
    let mut sync = json!({
        "apiVersion": "moorline.dev/v1alpha1", "kind": "Sync",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {
            "source": {"git": {"url": url}}, "path": path, "interval": "5s", "targetNamespace": "shop",
            "prune": {"enabled": true},
        },
    });
    for (field, value) in also.as_object().into_iter().flatten() {
        sync["spec"][field] = value.clone();
    }
    sync
}
