//! The sandbox instead of the real control plane, for tests that run on both.
//!
//! In: `MOORLINE_TEST_PLANE=sandbox`.
//! Out: a control plane with the sandbox of this process as its API server, on a socket, with the
//! same users, kubeconfigs and audit log. The list of the tests that it cannot run is here.

use std::fs::File;
use std::io::Write as _;
use std::net::TcpListener;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use http::Method;
use moorline_sandbox::{ObservedRequest, Options, Sandbox};
use serde_json::json;

use super::audit::Request;
use super::control_plane::ControlPlane;
use super::credentials::Credentials;
use super::start::place;

/// Tests that only run on the real control plane, by name, with the reasons.
pub const ONLY_ON_A_REAL_SERVER: [(&str, &str); 11] = [
    ("a_claim_without_the_right_to_patch_asks_at_home_and_is_nothing_elsewhere", NO_RIGHTS),
    ("a_user_who_may_not_read_leases_sees_that_it_is_unknown", NO_RIGHTS),
    (
        "a_guarded_resource_waits_for_the_backend_of_its_webhook",
        "it asks no validating webhooks, and its Deployments have no Pods",
    ),
    ("a_resource_waits_for_the_webhook_of_another_sync", NO_VALIDATION),
    ("a_webhook_of_nobody_is_waited_for_for_a_minute", NO_VALIDATION),
    ("an_operator_in_the_shape_of_rabbitmq", NO_PODS),
    ("an_operator_in_the_shape_of_metallb", NO_PODS),
    ("an_operator_in_the_shape_of_cert_manager", NO_PODS),
    (
        "a_kind_that_never_comes_keeps_a_webhook_back_for_a_minute",
        "it serves a kind although another one has its short name",
    ),
    ("a_service_account_that_is_not_there", NO_RIGHTS),
    ("another_service_account_counts_at_once_also_with_a_path_that_is_missing", NO_RIGHTS),
];
const NO_VALIDATION: &str = "it asks no validating webhooks";
const NO_PODS: &str = "its Deployments have no Pods";
const NO_RIGHTS: &str = "everybody may do everything there";

/// The API server that the tests run on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Plane {
    Real,
    Sandbox,
    /// None: a run leaves out the tests that need one.
    Without,
}

/// Returns the API server that `MOORLINE_TEST_PLANE` asks for.
pub(crate) fn asked_for() -> Plane {
    match std::env::var("MOORLINE_TEST_PLANE").as_deref() {
        Ok("sandbox") => Plane::Sandbox,
        Ok("none") => Plane::Without,
        Ok("" | "real") | Err(_) => Plane::Real,
        Ok(other) => panic!("MOORLINE_TEST_PLANE is sandbox, real or none, not {other}"),
    }
}

/// Returns the reason for which a test is skipped, if the tests run on the sandbox.
pub(crate) fn skip_reason(test: &str) -> Option<&'static str> {
    let name = test.rsplit("::").next().unwrap_or(test);
    let listed = ONLY_ON_A_REAL_SERVER.iter().find(|(known, _)| *known == name);
    listed.map(|(_, why)| *why).filter(|_| asked_for() == Plane::Sandbox)
}

/// Starts the sandbox. It ends with the test process.
pub(crate) fn start() -> Result<ControlPlane, String> {
    let (directory, reaper) = place()?;
    let credentials = Arc::new(Credentials::write_into(&directory)?);
    let audit_log = directory.join("audit.log");
    let failed = |what: &str, error: std::io::Error| format!("{what}: {error}");
    let log = File::create(&audit_log).map_err(|error| failed("no audit log", error))?;
    let listener = TcpListener::bind(("127.0.0.1", 0)).map_err(|error| failed("no port", error))?;
    let address = listener.local_addr().map_err(|error| failed("no port", error))?;
    listener.set_nonblocking(true).map_err(|error| failed("no port", error))?;
    let users = Arc::clone(&credentials);
    thread::spawn(move || serve(listener, log, &users));
    Ok(ControlPlane {
        url: format!("http://{address}"),
        audit_log,
        directory,
        reaper,
        etcd: ("127.0.0.1", 0),
        api_server: (PathBuf::new(), Vec::new()),
        authority: String::new(),
        credentials,
        servers: Mutex::default(),
        namespaces: Mutex::default(),
    })
}

/// Serves the sandbox until the process ends. Nothing changes workloads, as without a kubelet.
fn serve(listener: TcpListener, log: File, users: &Arc<Credentials>) {
    // Fails if a provider is installed already, which is fine.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let sandbox = Sandbox::new(&Options::default());
        let (log, users) = (Mutex::new(log), Arc::clone(users));
        sandbox.tap(move |heard| {
            let user = users.user_of(heard.client).unwrap_or_default();
            let line = audit_line(&Request { user: user.to_owned(), ..request(heard) });
            let mut log = log.lock().unwrap_or_else(PoisonError::into_inner);
            log.write_all(line.as_bytes()).expect("the audit log can be written to");
        });
        let listener = tokio::net::TcpListener::from_std(listener).expect("a listener");
        sandbox.serve(listener).await.expect("the sandbox accepts connections");
    });
}

/// Formats a line of the audit log like the API server.
fn audit_line(request: &Request) -> String {
    let now = format!("{:.6}", jiff::Timestamp::now());
    let stage = if request.verb == "watch" { "ResponseStarted" } else { "ResponseComplete" };
    let line = json!({
        "stage": stage, "verb": request.verb, "requestURI": request.uri,
        "user": {"username": request.user},
        "objectRef": {
            "apiGroup": request.group, "resource": request.resource, "subresource": request.subresource,
            "namespace": request.namespace, "name": request.name,
        },
        "responseStatus": {"code": request.code},
        "requestReceivedTimestamp": now, "stageTimestamp": now,
    });
    format!("{line}\n")
}

/// Converts a request to the sandbox to the form of a real server's audit log.
pub fn request(heard: &ObservedRequest<'_>) -> Request {
    let (path, query) = heard.uri.split_once('?').unwrap_or((heard.uri, ""));
    let parts: Vec<&str> = path.trim_matches('/').split('/').collect();
    let (group, rest) = match *parts.as_slice() {
        ["api", _, ref rest @ ..] => ("", rest),
        ["apis", group, _, ref rest @ ..] => (group, rest),
        _ => ("", &[][..]),
    };
    let (namespace, rest) = match *rest {
        ["namespaces", namespace, ref rest @ ..] if !rest.is_empty() => (namespace, rest),
        ref rest => ("", rest),
    };
    let part = |at: usize| rest.get(at).copied().unwrap_or_default().to_owned();
    let (resource, name, subresource) = (part(0), part(1), part(2));
    let is_watch = query.split('&').any(|it| matches!(it, "watch=true" | "watch=1"));
    let method = heard.method.as_str().to_ascii_lowercase();
    let verb = match (heard.method, resource.is_empty(), name.is_empty()) {
        (&Method::GET, false, true) if is_watch => "watch",
        (&Method::GET, false, true) => "list",
        (&Method::POST, false, _) => "create",
        (&Method::PUT, false, _) => "update",
        (&Method::DELETE, false, true) => "deletecollection",
        _ => &method,
    };
    Request {
        user: heard.client.to_owned(),
        verb: verb.to_owned(),
        group: group.to_owned(),
        resource,
        subresource,
        namespace: namespace.to_owned(),
        name,
        uri: heard.uri.to_owned(),
        code: heard.code,
        ..Request::default()
    }
}
