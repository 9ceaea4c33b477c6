//! From manifests to desired objects: namespaces, scopes, switches, and hashes that mean something.

use moorline::desired::{DesiredSet, DesiredStateError, Scopes, build_desired_set};
use moorline::render::{RenderOptions, Rendered, render};
use moorline::tree::FileTree;

fn build(files: &[(&str, &str)]) -> Result<DesiredSet, Vec<DesiredStateError>> {
    let rendered = render(&FileTree::from_texts(files.iter().copied()), &RenderOptions::default());
    match rendered {
        Rendered::Complete(complete) => build_desired_set(complete, "shop", &Scopes::builtin()),
        Rendered::Incomplete(incomplete) => panic!("the files are sound: {:?}", incomplete.problems),
    }
}

fn sound(files: &[(&str, &str)]) -> DesiredSet {
    build(files).unwrap_or_else(|problems| panic!("{problems:?}"))
}

fn problems(text: &str) -> Vec<String> {
    let problems = build(&[("a.yaml", text)]).map(|_| ()).unwrap_err();
    problems.iter().map(ToString::to_string).collect()
}

fn hashes(set: &DesiredSet) -> Vec<(String, String)> {
    set.objects().iter().map(|object| (object.id.to_string(), object.hash.to_string())).collect()
}

#[test]
fn the_same_meaning_has_the_same_hash() {
    let plain = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n  labels: {x: '1'}\ndata:\n  mode: 0644\n  on: \"yes\"\n";
    let written_otherwise = "# a comment\nkind: \"ConfigMap\"\ndata: {\"true\": 'yes', mode: 420}\napiVersion: v1\nmetadata:\n    labels:\n        x: \"1\" # quoted\n    name: a\n    namespace: shop\n    creationTimestamp: null\nstatus: {}\n";
    let as_json = r#"{"metadata": {"name": "a", "labels": {"x": "1"}}, "data": {"true": "yes", "mode": 420.0}, "kind": "ConfigMap", "apiVersion": "v1"}"#;
    let other = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: b}\n";
    let expect = hashes(&sound(&[("a.yaml", plain), ("b.yaml", other)]));
    assert_eq!(hashes(&sound(&[("a.yaml", other), ("b.yaml", written_otherwise)])), expect);
    assert_eq!(hashes(&sound(&[("a.json", as_json), ("b.yaml", other)])), expect);
    assert_eq!(hashes(&sound(&[("a.yaml", &format!("{other}---\n{plain}"))])), expect);
}

#[test]
fn another_meaning_has_another_hash() {
    let of = |data: &str| {
        let text = format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: a}}\n{data}\n");
        sound(&[("a.yaml", &text)]).objects()[0].hash
    };
    let all = [
        "",
        "data: {}",
        "data: {a: b}",
        "data: {a: c}",
        "data: {a: 'null'}",
        "data: {a: null}",
        "data: {a: ''}",
    ];
    let distinct: std::collections::BTreeSet<_> = all.into_iter().map(of).collect();
    assert_eq!(distinct.len(), all.len());
}

/// An upgrade must not rewrite a cluster: if this fails, the canonical form has changed, and needs a version.
#[test]
fn the_first_canonical_form_stays_as_it_is() {
    let text = "apiVersion: v1\nkind: Secret\nmetadata:\n  name: s\n  uid: x\n  annotations: {moorline.dev/id: x}\nstringData: {user: adm\u{ed}n, ratio: '1.50'}\ntype: Opaque\n---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec: {replicas: 3, ratio: 0.1, big: 9007199254740993, template: {spec: {hostNetwork: false, list: [1, ~, '']}}}\n";
    let set = sound(&[("a.yaml", text)]);
    let forms: Vec<&str> =
        set.objects().iter().map(|object| std::str::from_utf8(&object.canonical).unwrap()).collect();
    assert_eq!(
        forms,
        [
            r#"{"apiVersion":"v1","data":{"ratio":"MS41MA==","user":"YWRtw61u"},"kind":"Secret","metadata":{"name":"s","namespace":"shop"},"type":"Opaque"}"#,
            r#"{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web","namespace":"shop"},"spec":{"big":9007199254740993,"ratio":0.1,"replicas":3,"template":{"spec":{"hostNetwork":false,"list":[1,null,""]}}}}"#,
        ]
    );
    let hashes: Vec<String> = set.objects().iter().map(|object| object.hash.to_string()).collect();
    assert_eq!(
        hashes,
        [
            "v1:9f0ef724bda39b02e89b4a1e8aed707e8141e8462ee3ac79eba628b33ebd680b",
            "v1:987c7a3a1c1797dab99ea24f2bea70c9ee01544bf2ec313fd32f928ad3765485",
        ]
    );
}

#[test]
fn namespaces_follow_the_scope_of_the_kind() {
    let of = |text: &str| {
        let set = sound(&[("a.yaml", text)]);
        let shown = |object: &moorline::desired::DesiredObject| format!("{} {:?}", object.id, object.scope);
        set.objects().iter().map(shown).collect::<Vec<_>>()
    };
    assert_eq!(
        of("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}"),
        ["ConfigMap shop/a Some(Namespaced)"]
    );
    assert_eq!(
        of("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: own}"),
        ["ConfigMap own/a Some(Namespaced)"]
    );
    assert_eq!(of("apiVersion: v1\nkind: Namespace\nmetadata: {name: a}"), ["Namespace a Some(Cluster)"]);
    assert_eq!(of("apiVersion: g.io/v1\nkind: Unknown\nmetadata: {name: a}"), ["Unknown.g.io a None"]);
    // A definition in the same set says what its kind is.
    let definition = |scope: &str| {
        format!(
            "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {{name: ks.g.io}}\nspec: {{group: g.io, scope: {scope}, names: {{kind: K, plural: ks}}}}\n---\napiVersion: g.io/v1\nkind: K\nmetadata: {{name: a}}\n"
        )
    };
    assert_eq!(of(&definition("Namespaced"))[1], "K.g.io shop/a Some(Namespaced)");
    assert_eq!(of(&definition("Cluster"))[1], "K.g.io a Some(Cluster)");
}

#[test]
fn an_error_that_depends_on_the_namespace_is_reported_with_its_place() {
    assert_eq!(
        problems(
            "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata:\n  name: a\n  namespace: b\n"
        ),
        [
            "a.yaml:5:3: ClusterRole.rbac.authorization.k8s.io is cluster-scoped and cannot be in namespace \"b\"; remove metadata.namespace"
        ]
    );
    assert_eq!(
        problems(
            "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\n---\napiVersion: v1\nkind: Pod\nmetadata: {name: a, namespace: shop}\n"
        ),
        [
            "a.yaml:5: Pod shop/a is written a second time; the first is at a.yaml:1 (an object that names no namespace goes to shop); remove one"
        ]
    );
}

#[test]
fn a_switch_that_would_not_switch_is_refused() {
    let with = |annotation: &str| {
        problems(&format!(
            "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n  annotations:\n    {annotation}\n"
        ))
    };
    assert_eq!(
        with("moorline.dev/purne: disabled"),
        ["a.yaml:6:5: there is no annotation moorline.dev/purne; did you mean moorline.dev/prune?"]
    );
    assert_eq!(
        with("moorline.dev/prune: 'false'"),
        ["a.yaml:6:5: annotation moorline.dev/prune must be \"disabled\" or absent, found \"false\""]
    );
    assert_eq!(
        with("argocd.argoproj.io/sync-wave: first"),
        [
            "a.yaml:6:5: annotation argocd.argoproj.io/sync-wave must be a whole number such as -1 or 10, found \"first\""
        ]
    );
    assert_eq!(
        with("moorline.dev/pause-until: tomorrow"),
        [
            "a.yaml:6:5: annotation moorline.dev/pause-until must be a time such as 2030-01-31T12:00:00Z, found \"tomorrow\""
        ]
    );
    assert_eq!(
        with("moorline.dev/approve: abc"),
        ["a.yaml:6:5: moorline.dev/approve belongs on a Sync; here it has no effect"]
    );
    assert_eq!(
        with("moorline.dev/moves-to: ops/new"),
        ["a.yaml:6:5: moorline.dev/moves-to belongs on a Sync; here it has no effect"]
    );
    let label = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n  labels:\n    moorline.dev/prune: disabled\n";
    assert_eq!(
        problems(label),
        ["a.yaml:6:5: moorline.dev/prune is an annotation; as a label it has no effect"]
    );
    let wave = |annotations: &str| {
        let text = format!(
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: a, annotations: {{{annotations}}}}}\n"
        );
        sound(&[("a.yaml", &text)]).objects()[0].annotations.wave
    };
    for time in ["2030-01-31T12:00:00Z", "2030-01-31T12:00:00.5+01:00"] {
        assert_eq!(wave(&format!("moorline.dev/pause-until: '{time}'")), 0);
    }
    assert_eq!(wave(""), 0);
    assert_eq!(wave("argocd.argoproj.io/sync-wave: '-5'"), -5);
    assert_eq!(wave("argocd.argoproj.io/sync-wave: '-5', moorline.dev/wave: '7'"), 7);
}
