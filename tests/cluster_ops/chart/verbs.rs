//! The verbs on Syncs: who may request, suspend, approve, override and roll back, beside `patch`. Every person tries every write on
//! the real API server.

use serde_json::{Value, json};

use super::release::Release;
use moorline_test_support::daemon::until;
use moorline_test_support::rest::{rule, user};

/// Writes by the verb that they take; without one, `patch` is enough.
const WRITES: [(&str, &str, &str); 12] = [
    ("sync", "requested-at", r#"{"metadata": {"annotations": {"moorline.dev/requested-at": "now"}}}"#),
    ("approve", "approve", r#"{"metadata": {"annotations": {"moorline.dev/approve": "abc"}}}"#),
    (
        "rollback",
        "hold-revision",
        r#"{"metadata": {"annotations": {"moorline.dev/hold-revision": "main@1"}}}"#,
    ),
    ("rollback", "hold-revision", r#"{"metadata": {"annotations": {"moorline.dev/hold-reason": "slow"}}}"#),
    ("rollback", "hold-revision", r#"{"metadata": {"annotations": {"moorline.dev/hold-by": null}}}"#),
    ("override", "override", r#"{"metadata": {"annotations": {"moorline.dev/override": "abc"}}}"#),
    ("override", "override", r#"{"metadata": {"annotations": {"moorline.dev/override-reason": "late"}}}"#),
    ("suspend", "spec.suspend", r#"{"spec": {"suspend": true}}"#),
    ("suspend", "spec.suspend", r#"{"spec": {"suspend": false}}"#),
    ("approve", "spec.approval.revisions", r#"{"spec": {"approval": {"revisions": "Automatic"}}}"#),
    ("", "", r#"{"spec": {"interval": "1m", "suspend": null}}"#),
    ("", "", r#"{"metadata": {"labels": {"a": "b"}}, "status": {"heldBy": "x"}}"#),
];

const VERBS: [&str; 5] = ["sync", "suspend", "approve", "override", "rollback"];

/// A merge patch of a Sync or a SyncSet as this person, which changes nothing: the refusal, if it is refused.
async fn write(release: &Release, who: &str, name: &str, patch: &str) -> Result<(), String> {
    let path = release.path("moorline.dev/v1alpha1", &format!("{name}?dryRun=All"));
    let request = http::Request::patch(path)
        .header("Content-Type", "application/merge-patch+json")
        .header("Impersonate-User", who)
        .body(patch.as_bytes().to_vec())
        .expect("a literal request");
    match release.admin.request_text(request).await {
        Ok(_) => Ok(()),
        Err(kube::Error::Api(status)) => Err(status.message.clone()),
        Err(error) => panic!("{error}"),
    }
}

/// Creates the Syncs: one that is as new, one that is suspended, and one that is held.
async fn create_syncs(release: &Release) {
    let syncs = release.path("moorline.dev/v1alpha1", "syncs");
    let held = json!({"moorline.dev/hold-revision": "main@0", "moorline.dev/hold-by": "eve"});
    let forced = json!({
        "moorline.dev/override": "5c7d", "moorline.dev/override-by": "5c7d ada",
        "moorline.dev/override-reason": "CVE",
    });
    for (name, suspend, annotations) in [
        ("plain", false, json!({})),
        ("resting", true, json!({})),
        ("held", false, held),
        ("forced", false, forced),
    ] {
        let sync = json!({
            "apiVersion": "moorline.dev/v1alpha1", "kind": "Sync",
            "metadata": {"name": name, "annotations": annotations},
            "spec": {
                "source": {"git": {"url": release.url()}}, "suspend": suspend,
                "approval": {"revisions": if name == "held" { "Required" } else { "Automatic" }},
            },
        });
        release.create(&syncs, sync).await.expect("a Sync");
    }
}

/// Gives a person rights in the namespace.
async fn grant(release: &Release, who: &str, rules: Value) {
    let rbac = "rbac.authorization.k8s.io/v1";
    let role = json!({"apiVersion": rbac, "kind": "Role", "metadata": {"name": who}, "rules": rules});
    let binding = json!({
        "apiVersion": rbac, "kind": "RoleBinding", "metadata": {"name": who}, "subjects": [user(who)],
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": who},
    });
    for (resource, object) in [("roles", role), ("rolebindings", binding)] {
        release.create(&release.path(rbac, resource), object).await.expect("a right");
    }
}

/// Nobody gives another reason in the name of the person who has overridden a window.
async fn check_reason_of_another(release: &Release) {
    for (reason, expect) in [("late", true), ("CVE", false)] {
        let patch = json!({"metadata": {"annotations": {"moorline.dev/override-reason": reason}}});
        let answer = write(release, "override", "syncs/forced", &patch.to_string()).await;
        assert_eq!(answer.is_err(), expect, "{reason}: {answer:?}");
        let told = "must end with the name of the user who writes it: override cannot write 5c7d ada";
        assert!(answer.err().is_none_or(|refused| refused.contains(told)), "{reason}");
    }
}

/// The Sync that a write changes.
fn written(patch: &str) -> &'static str {
    match () {
        () if patch.contains("hold-by") || patch.contains("approval") => "syncs/held",
        () if patch.contains("false") => "syncs/resting",
        () => "syncs/plain",
    }
}

/// The approval of a SyncSet takes a verb, and so does the mark that makes a Sync one of a SyncSet.
async fn removals_of_sets_take_the_verb(release: &Release) {
    let set = json!({
        "apiVersion": "moorline.dev/v1alpha1", "kind": "SyncSet", "metadata": {"name": "apps"},
        "spec": {
            "generators": [{"list": {"elements": [{"name": "a"}]}}], "name": "params.name",
            "template": {"spec": {"source": {"git": {"url": release.url()}}}},
        },
    });
    release.create(&release.path("moorline.dev/v1alpha1", "syncsets"), set).await.expect("a SyncSet");
    let both = rule("moorline.dev", &["syncs", "syncsets"], &["get", "patch"]);
    let approves = rule("moorline.dev", &["syncsets"], &["approve"]);
    let deletes = rule("moorline.dev", &["syncs"], &["delete"]);
    grant(release, "patcher", json!([both])).await;
    grant(release, "approver", json!([both, approves])).await;
    grant(release, "deleter", json!([both, deletes])).await;
    let approval = r#"{"metadata": {"annotations": {"moorline.dev/approve": "abc"}}}"#;
    let label = r#"{"metadata": {"labels": {"a": "b"}}}"#;
    let mark = r#"{"metadata": {"annotations": {"moorline.dev/sync-set": "apps/u/plain"}}}"#;
    until("the policy on SyncSets is in force", async || {
        write(release, "patcher", "syncsets/apps", approval).await.is_err().then_some(())
    })
    .await;
    for (who, name, patch, takes) in [
        ("patcher", "syncsets/apps", approval, "the verb approve on syncsets.moorline.dev"),
        ("approver", "syncsets/apps", approval, "-"),
        ("patcher", "syncsets/apps", label, "-"),
        ("patcher", "syncs/plain", mark, "takes the verb delete on syncs.moorline.dev"),
        ("deleter", "syncs/plain", mark, "-"),
    ] {
        match write(release, who, name, patch).await {
            Ok(()) => assert_eq!(takes, "-", "{who} may not: {patch}"),
            Err(refused) => assert!(refused.contains(takes), "{who}: {refused}"),
        }
    }
}

#[tokio::test]
async fn each_act_on_a_sync_takes_its_verb() {
    let Some(release) = Release::new("verbs").await else { return };
    release.helm(&["install", "moorline", release.chart()]).expect("it is installed");
    create_syncs(&release).await;
    let patch = rule("moorline.dev", &["syncs"], &["get", "patch"]);
    // A person for each verb, one with none, and one with all on another Sync.
    grant(&release, "none", json!([patch])).await;
    for verb in VERBS {
        let his = rule("moorline.dev", &["syncs"], &[verb]);
        grant(&release, verb, json!([patch, his])).await;
    }
    let mut other = rule("moorline.dev", &["syncs"], &VERBS);
    other["resourceNames"] = json!(["another"]);
    grant(&release, "elsewhere", json!([patch, other])).await;
    let daemon = format!("system:serviceaccount:{}:moorline", release.namespace);
    until("the policy is in force", async || {
        write(&release, "none", "syncs/plain", WRITES[0].2).await.is_err().then_some(())
    })
    .await;

    for who in [&["none", "elsewhere", &*daemon][..], &VERBS].concat() {
        for (verb, field, patch) in WRITES {
            let answer = write(&release, who, written(patch), patch).await;
            // The daemon acts for people on the page, where there is no override.
            let may = verb.is_empty() || who == verb || who == daemon && verb != "override";
            match answer {
                Ok(()) => assert!(may, "{who} may not: {patch}"),
                Err(refused) => {
                    let takes = format!("{field} takes the verb {verb} on syncs.moorline.dev");
                    assert!(!may && refused.contains(&takes) && refused.contains(who), "{who}: {refused}");
                }
            }
        }
    }
    removals_of_sets_take_the_verb(&release).await;
    check_reason_of_another(&release).await;
    // Nobody but the daemon writes the name of somebody else.
    let by = |name: &str| json!({"metadata": {"annotations": {"moorline.dev/hold-by": name}}}).to_string();
    let refused =
        write(&release, "rollback", "syncs/plain", &by("ada")).await.expect_err("the name of another");
    assert!(
        refused.contains("must be the name of the user who writes it: rollback cannot write ada"),
        "{refused}"
    );
    write(&release, "rollback", "syncs/plain", &by("rollback")).await.expect("his own name");
    let other = r#"{"metadata": {"annotations": {"moorline.dev/hold-revision": "main@2"}}}"#;
    let refused =
        write(&release, "rollback", "syncs/held", other).await.expect_err("another revision in her name");
    assert!(
        refused.contains("must be the name of the user who writes it: rollback cannot write eve"),
        "{refused}"
    );
    write(&release, &daemon, "syncs/plain", &by("ada")).await.expect("the daemon, for somebody");
    release.helm(&["upgrade", "moorline", release.chart(), "--set", "admission.verbs=false"]).expect("off");
    until("the policy is gone", async || write(&release, "none", "syncs/plain", WRITES[1].2).await.ok())
        .await;
    release.end().await;
}

#[tokio::test]
async fn people_with_the_roles_of_kubernetes_may_act() {
    let Some(release) = Release::new("people").await else { return };
    release.helm(&["install", "moorline", release.chart()]).expect("it is installed");
    let may = async |role: &str, verb: &str| -> bool {
        let binding = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {"name": role},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
            "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": role}],
        });
        let _ = release.create(&release.path("rbac.authorization.k8s.io/v1", "rolebindings"), binding).await;
        let review = json!({
            "apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
            "spec": {"user": role, "resourceAttributes": {"namespace": release.namespace, "verb": verb,
                "group": "moorline.dev", "resource": "syncs", "name": "shop"}},
        });
        let path = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
        let answer: Value = release.create(path, review).await.expect("an answer");
        answer["status"]["allowed"] == true
    };
    // The controller fills each role by itself.
    for (role, verb) in [("view", "get"), ("edit", "suspend"), ("admin", "rollback")] {
        until("the role is aggregated", async || may(role, verb).await.then_some(())).await;
    }
    for (verb, expect) in [
        ("get", [true, true, true]),
        ("sync", [false, true, true]),
        ("suspend", [false, true, true]),
        ("approve", [false, false, true]),
        ("rollback", [false, false, true]),
        ("own", [false, false, false]),
        ("create", [false, false, false]),
        ("patch", [false, false, false]),
    ] {
        for (role, expect) in ["view", "edit", "admin"].into_iter().zip(expect) {
            assert_eq!(may(role, verb).await, expect, "{role} {verb}");
        }
    }
    release.end().await;
}
