//! Literal status boards: Syncs in every state, with any number of literal objects.
//!
//! In: names and numbers.
//! Out: boards as `sync` would publish them, for tests and benches of the status page and its JSON.

use std::collections::BTreeMap;
use std::sync::Arc;

use moorline::api::{SyncName, SyncSpec, SyncStatus};
use moorline::desired::{DesiredSet, Scopes, build_desired_set};
use moorline::health::Health;
use moorline::object::ObjectId;
use moorline::observed::Drift;
use moorline::plan::{Change, Failure, FailureReason, Hold, Outcome};
use moorline::render::{RenderOptions, Rendered, render};
use moorline::report::board::{
    Activity, DaemonRole, HealthTable, ObjectList, Repair, SourceSummary, StatusBoard, SyncCard,
    describe_spec,
};
use moorline::tree::FileTree;
use serde_json::{Value, json};

/// A string that would run a script if it were not escaped.
pub(crate) const SCRIPT_INJECTION: &str = "\"><script>alert(1)</script>";

/// Commit of every card.
pub(crate) const COMMIT: &str = "1f0c9a7be2d1f0c9a7be2d1f0c9a7be2d1f0c9a7";

/// Desired set of these manifests, in a namespace `shop`.
pub(crate) fn set(manifests: &[Value]) -> Arc<DesiredSet> {
    let files: Vec<_> = manifests
        .iter()
        .map(|manifest| {
            let kind = manifest["kind"].as_str().unwrap().to_lowercase();
            let name = manifest["metadata"]["name"].as_str().unwrap();
            (format!("apps/{kind}-{name}.yaml"), manifest.to_string())
        })
        .collect();
    let tree = FileTree::from_texts(files.iter().map(|(path, text)| (path.as_str(), text.as_str())));
    let Rendered::Complete(complete) = render(&tree, &RenderOptions::default()) else {
        panic!("they are sound")
    };
    Arc::new(build_desired_set(complete, "shop", &Scopes::builtin()).unwrap())
}

/// A ConfigMap.
pub(crate) fn map(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"key": "value"}})
}

/// A ConfigMap with a text of several lines.
fn banner() -> Value {
    let mut map = map("banner");
    map["data"]["nginx.conf"] = json!(config_lines(8080));
    map
}

/// Lines of a configuration, one of which has this port.
pub(crate) fn config_lines(port: u16) -> String {
    let server = |at: u16| {
        let port = if at == 9 { port } else { 80 };
        format!("  location /p{at} {{ proxy_pass http://service-{at}.shop.svc.cluster.local:{port}; }}\n")
    };
    (0..20).map(server).collect()
}

/// A Deployment.
pub(crate) fn deployment(name: &str) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name},
        "spec": {"replicas": 2, "selector": {"matchLabels": {"app": name}}, "template": {
            "metadata": {"labels": {"app": name}},
            "spec": {"containers": [{"name": "web", "image": "registry.example/web:1"}]},
        }},
    })
}

pub(crate) fn id(text: &str) -> ObjectId {
    ObjectId::parse(text).unwrap()
}

/// A status with these conditions, each as type, status, reason and message.
pub(crate) fn status(conditions: &[(&str, &str, &str, &str)], more: Value) -> SyncStatus {
    let conditions: Vec<Value> = conditions
        .iter()
        .map(|(type_, status, reason, message)| {
            json!({"type": type_, "status": status, "reason": reason, "message": message,
                "lastTransitionTime": "2026-11-22T10:00:00Z"})
        })
        .collect();
    let revision = format!("main@{COMMIT}");
    let mut whole = json!({
        "conditions": conditions,
        "revision": {"seen": revision, "attempted": revision, "applied": revision, "healthy": revision},
        "objects": {"desired": 4, "applied": 4},
        "lastAppliedTime": "2026-11-22T11:58:00Z",
        "history": [{"revision": revision, "time": "2026-11-22T11:58:00Z", "result": "Applied", "duration": "1.2s",
            "subject": "Open the shop", "author": "Ada Lovelace", "changes": {"created": 3, "pruned": 1}}],
    });
    let Value::Object(more) = more else { panic!("a literal mapping") };
    more.into_iter().for_each(|(field, value)| whole[field] = value);
    serde_json::from_value(whole).unwrap()
}

/// Team of a Sync, as a label.
fn team(name: &str) -> &'static str {
    if name.len().is_multiple_of(2) { "blue" } else { "green" }
}

/// Spec with defaults.
fn spec() -> SyncSpec {
    serde_json::from_value(json!({"source": {"git": {"url": "https://github.com/example/fleet"}}})).unwrap()
}

/// A card; its dependencies are in its own namespace.
pub(crate) fn card(name: &str, depends_on: &[&str], status: SyncStatus, objects: ObjectList) -> SyncCard {
    let (namespace, name) = name.split_once('/').unwrap();
    SyncCard {
        name: SyncName::new(namespace, name),
        version: 0,
        source: Arc::new(SourceSummary {
            url: "https://github.com/example/fleet".into(),
            path: format!("clusters/prod/{name}").into(),
            reference: "branch main".into(),
            interval: "30s".into(),
            service_account: None,
            depends_on: depends_on.iter().map(|name| SyncName::new(namespace, name)).collect(),
            cluster: None,
            is_resource: true,
            labels: [("team".into(), team(name).into())].into(),
            words: describe_spec(&spec()),
        }),
        status: Arc::new(status),
        objects: Arc::new(objects),
        repairs: Arc::new([]),
        activities: Arc::new([]),
    }
}

/// Objects that are all as in Git.
pub(crate) fn committed(set: &Arc<DesiredSet>) -> ObjectList {
    let known: Vec<_> = set.objects().iter().filter(|it| it.id.kind() == "Deployment").collect();
    let known = known.iter().map(|object| (&object.id, Some(Health::Healthy)));
    ObjectList::new(Some(set), &BTreeMap::new(), &Arc::new(HealthTable::new(set, known)))
}

/// A board with one Sync of so many objects, of about ten kinds; some of them need attention.
pub(crate) fn many(count: usize) -> StatusBoard {
    let manifests: Vec<Value> = (0..count)
        .map(|at| match at % 4 {
            0 => deployment(&format!("application-{at:05}")),
            1 => map(&format!("application-{at:05}")),
            2 => json!({"apiVersion": "v1", "kind": "ServiceAccount",
                "metadata": {"name": format!("application-{at:05}")}}),
            _ => json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": format!("application-{at:05}")},
                "spec": {"ports": [{"port": 80}]}}),
        })
        .collect();
    let set = set(&manifests);
    let mut outcomes: BTreeMap<ObjectId, Outcome> =
        set.objects().iter().map(|object| (object.id.clone(), Outcome::Created)).collect();
    for object in set.objects().iter().step_by(50) {
        let failed = Failure {
            reason: FailureReason::QuotaExceeded,
            message: "the quota is used up".into(),
            manifest: false,
        };
        outcomes.insert(object.id.clone(), Outcome::Failed(failed));
    }
    let known: Vec<_> = set.objects().iter().filter(|it| it.id.kind() == "Deployment").collect();
    let known = known.iter().enumerate().map(|(at, object)| {
        let why = "Pod application-x: the container web waits: CrashLoopBackOff".to_owned();
        (&object.id, Some(if at % 30 == 0 { Health::Degraded { why } } else { Health::Healthy }))
    });
    let objects = ObjectList::new(Some(&set), &outcomes, &Arc::new(HealthTable::new(&set, known)));
    let ready =
        [("Ready", "False", "ApplyFailed", "Deployment.apps shop/application-00000: the quota is used up")];
    let mut board = StatusBoard::default();
    board.set_role(DaemonRole::Serving);
    board.update_card(card(
        "ops/many",
        &[],
        status(&ready, json!({"objects": {"desired": count, "applied": count}})),
        objects,
    ));
    board
}

/// A board with so many Syncs; every tenth one fails.
pub(crate) fn many_syncs(count: usize) -> StatusBoard {
    let mut board = StatusBoard::default();
    board.set_role(DaemonRole::Serving);
    let message = "Deployment.apps shop/web: the server rejected it: ".to_owned() + &"too long ".repeat(40);
    for at in 0..count {
        let applied = ("Ready", "True", "Applied", "4 objects are in sync with main@1f0c");
        let failed = ("Ready", "False", "ApplyFailed", message.as_str());
        let time = format!("2026-11-21T{:02}:{:02}:{:02}Z", at / 100, at % 100 / 10, at % 10);
        let status = status(&[if at % 10 == 0 { failed } else { applied }], json!({"lastAppliedTime": time}));
        let before = if at % 50 == 49 { format!("app-{:03}", at - 7) } else { String::new() };
        let depends_on: &[&str] = if before.is_empty() { &[] } else { &[&before] };
        let name = format!("team-{}/app-{at:03}", at % 7);
        board.update_card(card(&name, depends_on, status, ObjectList::default()));
    }
    board
}

/// A board with a Sync in every state.
pub(crate) fn board_with_every_state() -> StatusBoard {
    let mut board = StatusBoard::default();
    board.set_role(DaemonRole::Serving);
    let applied = ("Ready", "True", "Applied", "4 objects are in sync with main@1f0c");
    let healthy = ("Healthy", "True", "Healthy", "all objects that report health are healthy");
    let set = set(&[deployment("web"), map("settings"), banner(), secret()]);
    board.update_card(card("ops/base", &[], status(&[applied, healthy], json!({})), committed(&set)));
    board.update_card(card(
        "ops/database",
        &["base"],
        status(&[applied, healthy], json!({})),
        committed(&set),
    ));
    board.update_card(shop(&set));
    let told = format!("apps/web.yaml:12: mapping values are not allowed here {SCRIPT_INJECTION}");
    board.update_card(card(
        "ops/broken",
        &["shop", "database"],
        status(
            &[("Ready", "False", "ManifestInvalid", &told), ("Stalled", "True", "ManifestInvalid", &told)],
            json!({"problems": [{"reason": "ManifestInvalid", "file": "apps/web.yaml:12", "message": told}]}),
        ),
        committed(&set),
    ));
    let why = "Deployment.apps shop/web: 0 of 2 replicas are ready; Pod web-7f9c: the container web waits: ImagePullBackOff";
    board.update_card(card(
        "ops/unwell",
        &["base"],
        status(&[applied, ("Healthy", "False", "Degraded", why)], json!({})),
        unwell(&set),
    ));
    board.update_card(card(
        "ops/resting",
        &[],
        status(
            &[(
                "Ready",
                "False",
                "Suspended",
                "the Sync is suspended: the repository is not polled and nothing is applied",
            )],
            json!({}),
        ),
        committed(&set),
    ));
    board.update_card(card(
        "ops/working",
        &[],
        status(&[("Ready", "False", "Progressing", "the repository is being read")], json!({})),
        ObjectList::default(),
    ));
    board
}

fn secret() -> Value {
    json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "login"}, "stringData": {"password": "hunter2"}})
}

fn unwell(set: &Arc<DesiredSet>) -> ObjectList {
    let web = id("apps/Deployment|shop/web");
    let why = "0 of 2 replicas are ready; Pod web-7f9c: the container web waits: ImagePullBackOff (and 1 more like it)";
    let known = [(&web, Some(Health::Degraded { why: why.to_owned() }))];
    ObjectList::new(Some(set), &BTreeMap::new(), &Arc::new(HealthTable::new(set, known.into_iter())))
}

/// A Sync that waits for the approval of deletions, with drift that was repaired and drift that was
/// not.
fn shop(set: &Arc<DesiredSet>) -> SyncCard {
    let drift = || Drift {
        fields: vec!["spec.replicas".into(), "spec.template.spec.containers[name=web].image".into()],
        manager: Some("kubectl-edit".into()),
        time: Some("2026-11-22T11:40:00Z".into()),
    };
    let mut outcomes: BTreeMap<ObjectId, Outcome> = (0..12)
        .map(|at| {
            (
                id(&format!("/ConfigMap|shop/old-{at:02}")),
                Outcome::Held(Hold::PruneBudgetExceeded { prunes: 12, owned: 16 }),
            )
        })
        .collect();
    outcomes.insert(id("/ConfigMap|shop/banner"), Outcome::Updated(Change::Committed));
    outcomes.insert(id("apps/Deployment|shop/web"), Outcome::Held(Hold::DriftReported(Box::new(drift()))));
    let known = [(&id("apps/Deployment|shop/web"), Some(Health::Healthy))];
    let objects = ObjectList::new(Some(set), &outcomes, &Arc::new(HealthTable::new(set, known.into_iter())));
    let message = "no longer in Git, but 12 of 16 objects would be pruned; to delete them, annotate the Sync with moorline.dev/approve=6c1c8f7d2a90b3e4";
    let held = status(
        &[("Ready", "False", "PruneHeld", message)],
        json!({
            "approval": {"hash": "6c1c8f7d2a90b3e4", "objects": 12},
            "objects": {"desired": 4, "applied": 4, "held": 13, "drifted": 1},
            "problems": [
                {"object": "Deployment.apps shop/web", "file": "apps/deployment-web.yaml:1", "reason": "DriftReported",
                    "message": "spec.replicas and 1 more field were changed by kubectl-edit at 2026-11-22T11:40:00Z, and only reported"},
            ],
        }),
    );
    let deleted = Repair {
        repaired_at: serde_json::from_value(json!("2026-11-22T11:30:00Z")).unwrap(),
        id: id("/ConfigMap|shop/banner"),
        was_deleted: true,
        fields: Vec::new(),
        manager: None,
        changed_at: None,
    };
    let happened = |at: &str, reason: &str, text: &str| Activity {
        time: serde_json::from_value(json!(at)).unwrap(),
        reason: reason.to_owned(),
        text: text.to_owned(),
    };
    let happened = [
        happened(
            "2026-11-22T11:59:00Z",
            "Approved",
            "approved the deletion of 2 objects (approval 6c1c8f7d)",
        ),
        happened("2026-11-22T11:50:00Z", "Pruned", "no longer in Git, and deleted: ConfigMap shop/older"),
        happened(
            "2026-11-22T11:45:00Z",
            "SignatureMissing",
            &format!("main@2222 is not signed {SCRIPT_INJECTION}"),
        ),
        happened(
            "2026-11-22T11:20:00Z",
            "DriftRepaired",
            "ConfigMap shop/settings: data.key changed by kubectl-patch",
        ),
    ];
    let repair = Repair {
        repaired_at: serde_json::from_value(json!("2026-11-22T11:20:00Z")).unwrap(),
        id: id("/ConfigMap|shop/settings"),
        was_deleted: false,
        fields: vec!["data.key".into()],
        manager: Some("kubectl-patch".into()),
        changed_at: Some("2026-11-22T11:20:00Z".into()),
    };
    SyncCard {
        repairs: Arc::new([deleted, repair]),
        activities: Arc::new(happened),
        ..card("ops/shop", &["base"], held, objects)
    }
}
