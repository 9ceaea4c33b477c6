//! The webhook by which the versions of the kind Database are converted.
//!
//! In: a scene. Out: a [`Conversion`], with what a definition has to say to reach it. At first nobody is there.

use std::net::TcpListener;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use moorline_test_support::authority::Authority;
use moorline_test_support::conversion::answer;
use moorline_test_support::git_server::{GitServer, Reply};
use moorline_test_support::scene::Scene;

pub(crate) struct Conversion {
    port: u16,
    root: PathBuf,
    authority: Authority,
    server: Option<GitServer>,
    /// True if the server behind it does not answer any more.
    dies: Arc<Mutex<bool>>,
}

/// The field of a spec that the version calls otherwise.
fn field(version: &str) -> &'static str {
    if version.ends_with("/v1beta1") { "dbType" } else { "engine" }
}

fn convert(body: &[u8]) -> Reply {
    answer(body, |object, version| {
        let old = field(object["apiVersion"].as_str().unwrap());
        if let Some(engine) = object["spec"].as_object_mut().and_then(|spec| spec.remove(old)) {
            object["spec"][field(version)] = engine;
        }
    })
}

impl Conversion {
    /// A place where there will be a webhook.
    pub(crate) fn absent(scene: &Scene) -> Self {
        let port = TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap().port();
        let root = scene.root.path().to_owned();
        Self { port, root, authority: Authority::new(), server: None, dies: Arc::default() }
    }

    /// A webhook that converts.
    pub(crate) fn start(scene: &Scene) -> Self {
        let mut conversion = Self::absent(scene);
        conversion.comes();
        conversion
    }

    /// From now on it converts.
    pub(crate) fn comes(&mut self) {
        *self.dies.lock().unwrap() = false;
        let (port, root, tls, dies) = (self.port, &self.root, self.authority.server(None), &self.dies);
        self.server.get_or_insert_with(|| {
            let listener = TcpListener::bind(("127.0.0.1", port)).unwrap();
            let (server, dies) = (GitServer::start_on(listener, root, Some(tls)), dies.clone());
            server.rule(move |request| match *dies.lock().unwrap() {
                true => Reply::Raw(502, "", b"nobody is behind this".to_vec()),
                false => convert(&request.body),
            });
            server
        });
    }

    /// From now on it cannot convert.
    pub(crate) fn dies(&self) {
        *self.dies.lock().unwrap() = true;
    }

    /// Returns the number of requests since the last call.
    pub(crate) fn asked(&self) -> usize {
        self.server.as_ref().map_or(0, |server| server.requests().len())
    }

    /// Returns its address, as the address in a definition.
    pub(crate) fn url(&self) -> String {
        format!("https://localhost:{}/convert", self.port)
    }

    /// The `clientConfig` of a definition. No Service is reached from where the tests' API server runs.
    pub(crate) fn client(&self) -> Value {
        json!({"url": self.url(), "caBundle": STANDARD.encode(&self.authority.pem)})
    }

    /// The definition of the example, with this webhook in the place of its own.
    pub(crate) fn in_place(&self, definition: &str) -> String {
        let (before, rest) = definition.split_once("      clientConfig:\n").expect("a webhook");
        let (_, after) = rest.split_once("  versions:\n").expect("versions");
        format!("{before}      clientConfig: {}\n  versions:\n{after}", self.client())
    }
}
