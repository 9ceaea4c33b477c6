//! Tests: permissions for a repository, as a person would write them.

use serde_json::{Value, json};

use super::*;
use crate::desired::build_desired_set;
use moorline_core::object::GroupKind;
use moorline_core::tree::FileTree;
use moorline_render::{RenderOptions, Rendered, render};

fn set(objects: &[Value]) -> DesiredSet {
    let file = |(at, object): (usize, &Value)| (format!("{at}.json"), object.to_string());
    let files: Vec<_> = objects.iter().enumerate().map(file).collect();
    let tree = FileTree::from_texts(files.iter().map(|(path, text)| (path.as_str(), text.as_str())));
    let Rendered::Complete(complete) = render(&tree, &RenderOptions::default()) else {
        panic!("it is sound")
    };
    build_desired_set(complete, "shop", &Scopes::builtin()).unwrap()
}

/// The rules as short text: `everywhere: get,list x.group[name]`.
fn shown(objects: &[Value]) -> Vec<String> {
    let rights = Permissions::for_sync(&set(objects), PluralNames::default());
    let everywhere = rights.cluster.iter().map(|rule| ("everywhere", rule));
    let places = rights.namespaces.iter();
    let places = places.flat_map(|(place, rules)| rules.iter().map(move |rule| (&**place, rule)));
    let join = |words: &BTreeSet<Box<str>>| words.iter().map(|it| &**it).collect::<Vec<_>>().join(",");
    let line = |(place, rule): (&str, &PolicyRule)| {
        let verbs = join(&rule.verbs).replace("create,delete,get,list,patch,watch", "all");
        let names = if rule.names.is_empty() { String::new() } else { format!("[{}]", join(&rule.names)) };
        format!("{place}: {verbs} {}.{}{names}", join(&rule.resources), join(&rule.groups))
    };
    everywhere.chain(places).map(line).collect()
}

fn object(api: &str, kind: &str, name: &str) -> Value {
    json!({"apiVersion": api, "kind": kind, "metadata": {"name": name}})
}

fn with(mut object: Value, field: &str, value: Value) -> Value {
    object[field] = value;
    object
}

#[test]
fn objects_need_what_is_done_with_them_and_no_more() {
    let web = with(object("apps/v1", "Deployment", "web"), "spec", json!({"replicas": 2}));
    let places = "everywhere: get,list,watch namespaces.[shop]";
    assert_eq!(shown(&[object("v1", "ConfigMap", "a")]), [places, "shop: all configmaps."]);
    assert_eq!(
        shown(&[object("v1", "ConfigMap", "a"), object("v1", "Secret", "b"), web]),
        [
            places,
            "shop: all configmaps,secrets.",
            "shop: list pods.",
            "shop: all deployments.apps",
            "shop: list replicasets.apps",
            "shop: get,list,watch horizontalpodautoscalers.autoscaling",
        ]
    );
    assert_eq!(
        shown(&[object("v1", "PersistentVolumeClaim", "data")]),
        [places, "everywhere: get storageclasses.storage.k8s.io", "shop: all persistentvolumeclaims."]
    );
    assert_eq!(shown(&[object("v1", "Namespace", "x")]), ["everywhere: all namespaces."]);
}

#[test]
fn who_scales_with_keda_is_looked_at_where_the_server_has_it() {
    let web = with(object("apps/v1", "Deployment", "web"), "spec", json!({"replicas": 2}));
    let served = [(GroupKind::new("keda.sh", "ScaledObject"), "scaledobjects".into())];
    let rights = Permissions::for_sync(&set(&[web]), PluralNames::from_discovery(served.into_iter()));
    assert!(
        rights.namespaces["shop"].contains(&PolicyRule::for_resource("keda.sh", "scaledobjects", &LOOK)),
        "{rights:?}"
    );
}

#[test]
fn a_definition_names_its_resource_and_others_are_guessed() {
    let names = json!({"kind": "Octopus", "plural": "octopodes"});
    let spec = json!({"group": "sea.example.com", "scope": "Namespaced", "names": names, "versions": []});
    let definition =
        object("apiextensions.k8s.io/v1", "CustomResourceDefinition", "octopodes.sea.example.com");
    let octopus = object("sea.example.com/v1", "Octopus", "a");
    let known = [with(definition, "spec", spec), octopus.clone()];
    assert!(shown(&known).contains(&"shop: all octopodes.sea.example.com".to_owned()), "{:?}", shown(&known));
    assert!(Permissions::for_sync(&set(&known), PluralNames::default()).guessed.is_empty());
    let rights = Permissions::for_sync(&set(&[octopus]), PluralNames::default());
    assert_eq!(rights.guessed.into_iter().collect::<Vec<_>>(), ["Octopus.sea.example.com".into()]);
}

#[test]
fn whoever_creates_a_role_must_hold_it() {
    let rules = json!([{"apiGroups": ["batch"], "resources": ["jobs"], "verbs": ["create"]}]);
    let role = with(object("rbac.authorization.k8s.io/v1", "Role", "runs"), "rules", rules);
    let binds = |name: &str| {
        let to = json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name});
        with(object("rbac.authorization.k8s.io/v1", "RoleBinding", "a"), "roleRef", to)
    };
    let all = shown(&[role, binds("runs")]);
    assert!(all.contains(&"shop: create jobs.batch".to_owned()), "{all:?}");
    assert!(!all.iter().any(|line| line.contains("bind ")), "{all:?}");
    let all = shown(&[binds("elsewhere")]);
    assert!(all.contains(&"shop: bind roles.rbac.authorization.k8s.io[elsewhere]".to_owned()), "{all:?}");
    let aggregated = json!({"clusterRoleSelectors": []});
    let role = object("rbac.authorization.k8s.io/v1", "ClusterRole", "all");
    let all = shown(&[with(role, "aggregationRule", aggregated)]);
    assert!(all.contains(&"everywhere: * *.*".to_owned()), "{all:?}");
}

#[test]
fn what_amounts_to_cluster_admin_is_marked() {
    let marked = |rule: PolicyRule, namespace| escalation_reason(&rule, namespace).is_some();
    let pods = PolicyRule::for_resource("", "pods", &["create"]);
    assert!(marked(pods.clone(), None) && marked(pods.clone(), Some("kube-system")));
    assert!(!marked(pods, Some("shop")));
    assert!(marked(PolicyRule::for_resource("*", "*", &["*"]), None));
    assert!(!marked(PolicyRule::for_resource("", "configmaps", &ALL), None));
    assert!(!marked(PolicyRule::for_resource("", "secrets", &ALL), Some("shop")));
    assert!(marked(PolicyRule::for_resource("", "secrets", &ALL), None));
    let bind = PolicyRule::for_resource("rbac.authorization.k8s.io", "clusterroles", &["bind"]);
    assert!(marked(bind.clone(), None));
    assert!(marked(bind.clone().with_names(["cluster-admin"]), None));
    assert!(!marked(bind.with_names(["view"]), None));
}

#[test]
fn syncs_in_git_take_the_verbs_of_what_they_set() {
    let child = |annotations: Value, spec: Value| {
        json!({"apiVersion": "moorline.dev/v1alpha1", "kind": "Sync",
            "metadata": {"name": "child", "namespace": "team", "annotations": annotations}, "spec": spec})
    };
    let of = |annotations: Value, spec: Value| {
        let shown = shown(&[child(annotations, spec)]).into_iter();
        let verbs = shown.filter(|line| line.starts_with("team: ") && line.contains("[child]"));
        verbs.collect::<Vec<_>>().concat()
    };
    assert_eq!(of(json!({}), json!({"path": "./a"})), "");
    assert_eq!(of(json!({}), json!({"suspend": false})), "team: suspend syncs.moorline.dev[child]");
    assert_eq!(
        of(json!({"moorline.dev/requested-at": "1"}), json!({"suspend": true})),
        "team: suspend,sync syncs.moorline.dev[child]"
    );
    assert_eq!(
        of(json!({"moorline.dev/approve": "1", "moorline.dev/hold-reason": "a"}), json!({})),
        "team: approve,rollback syncs.moorline.dev[child]"
    );
}
