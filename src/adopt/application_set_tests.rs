//! Tables: each field of an ApplicationSet and its effect, and what placeholders become.
//!
//! In: the fields of the schema of Argo CD 3.6, and literal ApplicationSets.
//! Out: none of the fields is unknown, and none has no effect but those that are listed so.

use super::field_tests::Effect::{Lost, Mapped, Nothing, Refused};
use super::field_tests::{Row, check, requested};
use super::*;

const URL: &str = "https://example.com/apps.git";

fn converted(spec: Value) -> Adoption {
    adopt_set(&json!({"metadata": {"name": "shop"}, "spec": spec}), &requested())
}

/// An ApplicationSet with these generators and this path, and more fields of its template's spec.
fn of(is_go: bool, generators: Value, path: &str, more: Value) -> Value {
    let mut template =
        json!({"source": {"repoURL": URL, "path": path}, "destination": {"namespace": "shop"}});
    for (field, value) in more.as_object().into_iter().flatten() {
        template[field] = value.clone();
    }
    json!({
        "goTemplate": is_go, "generators": generators,
        "template": {"metadata": {"name": "shop-one"}, "spec": template},
    })
}

fn element() -> Value {
    json!([{"list": {"elements": [{"env": "dev"}]}}])
}

#[test]
fn each_field_of_an_application_set_has_its_effect() {
    let list = |of: Value| json!([{"list": {"elements": [{"env": "dev"}]}, "clusters": null}, of]);
    let git = json!({"git": {"repoURL": URL, "directories": [{"path": "apps/*"}]}});
    let whole = |generators: &Value| of(false, generators.clone(), "apps", json!({}));
    let clusters = json!({"clusters": {"selector": {"matchLabels": {"env": "prod"}}}});
    let matrix = json!({"matrix": {"generators": [element()[0], git]}});
    let merge = json!({"merge": {"mergeKeys": ["env"], "generators": [element()[0], element()[0]]}});
    let inner = || json!([{"list": {"elements": [{"env": "b"}]}}, {"list": {"elements": [{"env": "c"}]}}]);
    let tables: Vec<(&str, Value, Vec<Row>)> = vec![
        ("spec", element(), of_spec(&list(git.clone()))),
        ("spec.generators[0]", element(), of_generator()),
        (
            "spec.generators[0].list",
            element(),
            vec![
                ("elements", json!([{"env": "prod"}]), Mapped),
                ("elements", json!([{"env": "{{x}}"}]), Refused),
                ("elementsYaml", json!("a"), Refused),
                ("template", json!({"spec": {"project": "a"}}), Refused),
            ],
        ),
        ("spec.generators[0].git", json!([git]), of_git()),
        (
            "spec.generators[0].clusters",
            json!([clusters]),
            vec![
                ("selector", json!({"matchLabels": {"env": "dev"}}), Mapped),
                ("selector", json!({}), Mapped),
                ("values", json!({"a": "b"}), Nothing),
                ("values", json!({"a": "{{x}}"}), Refused),
                ("flatList", json!(true), Refused),
                ("template", json!({"spec": {"project": "a"}}), Refused),
            ],
        ),
        (
            "spec.generators[0].matrix",
            json!([matrix]),
            vec![
                ("generators", inner(), Mapped),
                ("generators", json!([{"matrix": {"generators": inner()}}, inner()[0]]), Refused),
                ("generators", json!([inner()[0], {"plugin": {"a": "b"}}]), Refused),
                ("template", json!({"spec": {"project": "a"}}), Refused),
            ],
        ),
        (
            "spec.generators[0].merge",
            json!([merge]),
            vec![
                ("generators", inner(), Mapped),
                ("generators", json!([{"clusters": {"values": {"a": "b"}}}, inner()[0]]), Refused),
                ("mergeKeys", json!(["other"]), Mapped),
                ("template", json!({"spec": {"project": "a"}}), Refused),
            ],
        ),
        ("spec.template", element(), vec![("metadata", json!({"name": "a"}), Mapped)]),
        ("spec.template.metadata", element(), of_metadata()),
        ("spec.template.spec", element(), of_template()),
    ];
    for (place, generators, rows) in tables {
        check(place, &rows, |change| {
            let mut spec = whole(&generators);
            change(field_at(&mut spec, place));
            converted(spec)
        });
    }
    let policy: [Row; 6] = [
        ("preserveResourcesOnDeletion", json!(true), Mapped),
        ("applicationsSync", json!("sync"), Nothing),
        ("applicationsSync", json!("create-update"), Mapped),
        ("applicationsSync", json!("create-only"), Mapped),
        ("applicationsSync", json!("create-delete"), Lost),
        ("preserveResourcesOnDeletion", json!(false), Nothing),
    ];
    check("spec.syncPolicy", &policy, |change| {
        let mut spec = whole(&element());
        change(field_at(&mut spec, "spec.syncPolicy"));
        converted(spec)
    });
}

/// Returns the field at a place.
fn field_at<'a>(spec: &'a mut Value, place: &str) -> &'a mut Value {
    match place.strip_prefix("spec.generators[0]") {
        Some(inner) => inner.split('.').skip(1).fold(&mut spec["generators"][0], |at, part| &mut at[part]),
        None => place.split('.').skip(1).fold(spec, |at, part| &mut at[part]),
    }
}

fn of_spec(two: &Value) -> Vec<Row> {
    vec![
        ("goTemplate", json!(true), Nothing),
        ("goTemplateOptions", json!(["missingkey=error"]), Nothing),
        ("generators", two.clone(), Mapped),
        ("generators", json!([]), Refused),
        ("strategy", json!({"type": "AllAtOnce"}), Nothing),
        ("strategy", json!({"type": "RollingSync", "rollingSync": {"steps": []}}), Refused),
        ("strategy", json!({"type": "AllAtOnce", "deletionOrder": "Reverse"}), Refused),
        ("preservedFields", json!({"labels": ["a"]}), Nothing),
        ("applyNestedSelectors", json!(true), Nothing),
        ("ignoreApplicationDifferences", json!([{"jsonPointers": ["/spec"]}]), Lost),
        ("templatePatch", json!("spec: {}"), Refused),
    ]
}

fn of_metadata() -> Vec<Row> {
    vec![
        ("name", json!("other"), Mapped),
        ("name", json!("{{env | upper}}"), Refused),
        ("namespace", json!("team"), Lost),
        ("labels", json!({"a": "{{env}}"}), Mapped),
        ("labels", json!({"{{env}}": "a"}), Refused),
        ("annotations", json!({"a": "b"}), Mapped),
        ("finalizers", json!(["resources-finalizer.argocd.argoproj.io"]), Lost),
    ]
}

fn of_template() -> Vec<Row> {
    vec![
        ("destination", json!({"server": "https://far.example"}), Refused),
        ("destination.namespace", json!("{{env}}"), Mapped),
        ("source.repoURL", json!("https://example.com/{{env}}.git"), Refused),
        ("source.helm.values", json!("a: '{{env}}'"), Refused),
        ("syncPolicy", json!({"automated": {"prune": true}}), Mapped),
        ("project", json!("{{env}}"), Lost),
    ]
}

fn of_generator() -> Vec<Row> {
    vec![
        ("list", json!({"elements": [{"env": "prod"}]}), Mapped),
        ("scmProvider", json!({"github": {"organization": "a"}}), Refused),
        ("pullRequest", json!({"github": {"owner": "a"}}), Refused),
        ("clusterDecisionResource", json!({"configMapRef": "a"}), Refused),
        ("plugin", json!({"configMapRef": {"name": "a"}}), Refused),
        ("selector", json!({"matchLabels": {"a": "b"}}), Refused),
        ("matrix", json!({"generators": [element()[0], {"list": {"elements": [{"a": "b"}]}}]}), Mapped),
        ("merge", json!({"mergeKeys": ["env"], "generators": [element()[0], element()[0]]}), Mapped),
    ]
}

fn of_git() -> Vec<Row> {
    vec![
        ("repoURL", json!("https://example.com/other.git"), Mapped),
        ("repoURL", json!("ssh://git@example.com/apps.git"), Refused),
        ("revision", json!("main"), Mapped),
        ("revision", json!("{{env}}"), Refused),
        ("directories", json!([{"path": "other/*"}, {"path": "other/old", "exclude": true}]), Mapped),
        ("files", json!([{"path": "apps/*/config.json"}]), Mapped),
        ("requeueAfterSeconds", json!(300), Mapped),
        ("pathParamPrefix", json!("one"), Nothing),
        ("values", json!({"a": "b"}), Nothing),
        ("template", json!({"spec": {"project": "a"}}), Refused),
    ]
}

/// Form of the templates, generators, and the expected field or name.
type PlaceholderCase = (bool, Value, &'static str, Result<&'static str, &'static str>);

#[test]
fn placeholders_become_typed_expressions_or_are_refused() {
    let folders = || json!([{"git": {"repoURL": URL, "directories": [{"path": "apps/*"}]}}]);
    let prefixed =
        json!([{"git": {"repoURL": URL, "directories": [{"path": "*"}], "pathParamPrefix": "app"}}]);
    let files = || json!([{"git": {"repoURL": URL, "files": [{"path": "apps/x/config.json"}]}}]);
    let clusters = || json!([{"clusters": {"values": {"tier": "t-{{name}}"}}}]);
    let list = || json!([{"list": {"elements": [{"env": "dev", "n": 3, "a": {"b-c": "d", "in": "e"}}]}}]);
    let cases: Vec<PlaceholderCase> = vec![
        (false, folders(), "{{path}}", Ok("'./' + params.folder.path")),
        (false, folders(), "{{ path }}/prod", Ok("'./' + params.folder.path + '/prod'")),
        (false, folders(), "./{{path.basename}}/", Ok("'./' + params.folder.name")),
        (false, folders(), "{{path[1]}}", Ok("'./' + params.folder.parts[1]")),
        (true, folders(), "{{.path.path}}", Ok("'./' + params.folder.path")),
        (true, folders(), "{{index .path.segments 1}}", Ok("'./' + params.folder.parts[1]")),
        (true, folders(), "{{ .path.basename | upper }}", Err("is more than a name")),
        (true, folders(), "{{ if .a }}b{{ end }}", Err("is more than a name")),
        (false, folders(), "{{.path.path}}", Err("is more than a name")),
        (true, folders(), "{{.other}}", Err("no generator gives other")),
        (false, prefixed, "{{app.path.basename}}", Ok("'./' + params.folder.name")),
        (false, files(), "{{path}}", Ok("'./' + params.file.folder")),
        (false, files(), "{{path.filename}}", Ok("'./' + params.file.name")),
        (true, files(), "{{.app.image}}", Ok("'./' + string(params.app.image)")),
        (false, list(), "it's-{{env}}", Ok("'./it\\'s-' + params.env")),
        (false, list(), "{{n}}", Ok("'./' + string(params.n)")),
        (false, list(), "{{a.b-c}}/{{a.in}}", Ok("'./' + params.a['b-c'] + '/' + params.a['in']")),
        (false, list(), "{{unknown}}", Err("no generator gives unknown")),
        (false, list(), "{{env", Err("has no end")),
        (false, clusters(), "{{name}}", Ok("'./' + params.cluster.name")),
        (false, clusters(), "{{metadata.labels.a/b}}", Ok("'./' + params.cluster.labels['a/b']")),
        (
            true,
            json!([{"clusters": {}}]),
            "{{index .metadata.annotations \"a.b/c\"}}",
            Ok("'./' + params.cluster.annotations['a.b/c']"),
        ),
        (false, clusters(), "{{values.tier}}", Ok("'./' + ('t-' + params.cluster.name)")),
        (
            false,
            json!([{"matrix": {"generators": [folders()[0], files()[0]]}}]),
            "{{path}}",
            Err("several generators give path"),
        ),
    ];
    for (is_go, generators, path, expect) in cases {
        let found = converted(of(is_go, generators, path, json!({})));
        let field =
            found.sync["spec"]["set"].as_array().into_iter().flatten().find(|it| it["field"] == "/spec/path");
        match expect {
            Ok(cel) => {
                assert_eq!(found.refused, [], "{path}");
                assert_eq!(field.map(|it| it["value"].clone()), Some(json!(cel)), "{path}");
            }
            Err(why) => {
                let refused = found.refused.iter().find(|it| *it.field == *"spec.template.spec.source.path");
                assert!(refused.is_some_and(|it| it.why.contains(why)), "{path}: {:?}", found.refused);
            }
        }
    }
}

#[test]
fn a_whole_application_set_is_a_sync_set() {
    let clusters = json!({"clusters": {"selector": {"matchLabels": {"env": "prod"}}}});
    let extra = json!({"list": {"elements": [{"nameNormalized": "east", "values.tier": "gold"}]}});
    let generators = json!([{"merge": {"mergeKeys": ["nameNormalized"], "generators": [clusters, extra]}}]);
    let mut spec = of(
        false,
        generators,
        "apps/{{values.tier}}",
        json!({
            "destination": {"server": "{{server}}", "namespace": "shop-{{values.tier}}"}, "project": "default",
            "syncPolicy": {"automated": {"prune": true, "selfHeal": true}, "syncOptions": ["CreateNamespace=true"]},
        }),
    );
    spec["template"]["metadata"] = json!({"name": "shop-{{name}}", "labels": {"tier": "{{values.tier}}"}});
    spec["template"]["spec"]["source"]["helm"] = json!({
        "valueFiles": ["base.yaml", "{{name}}.yaml"], "valuesObject": {"a": {"b": "{{name}}-x", "c": 1}},
    });
    spec["syncPolicy"] = json!({"preserveResourcesOnDeletion": true});
    let found = converted(spec);
    assert_eq!(found.refused, []);
    let set = |field: &str, value: &str| json!({"field": field, "value": value});
    let expect = json!({
        "generators": [{"merge": {"keys": ["cluster.name"], "generators": [
            {"clusters": {"selector": {"matchLabels": {"env": "prod", "argocd.argoproj.io/secret-type": "cluster"}}}},
            {"list": {"elements": [{"cluster": {"name": "east"}, "values": {"tier": "gold"}}]}},
        ]}}],
        "name": "params.cluster.name",
        "onDelete": "Orphan",
        "template": {"spec": {
            "source": {"git": {"url": URL}}, "createNamespace": true, "prune": {"enabled": true},
            "drift": {"mode": "Repair"},
            "render": {"type": "Helm", "plain": {"recurse": false}, "helm": {"values": {"a": {"c": 1}}}},
        }},
        "set": [
            set("/metadata/labels/tier", "params.values.tier"),
            set("/spec/path", "'./apps/' + params.values.tier"),
            set("/spec/render/helm/releaseName", "'shop-' + params.cluster.name"),
            set("/spec/render/helm/values/a/b", "params.cluster.name + '-x'"),
            set("/spec/render/helm/valuesFiles", "['base.yaml', params.cluster.name + '.yaml']"),
            set("/spec/targetNamespace", "'shop-' + params.values.tier"),
            set("/spec/cluster/secretRef/name", "params.cluster.name"),
        ],
    });
    assert_eq!(found.sync["spec"], expect, "{:#}", found.sync["spec"]);
    // A cluster of a list is a literal, and the own one is no field of a Sync.
    for (server, is_refused) in [("https://kubernetes.default.svc", false), ("https://far.example", true)] {
        let list = json!([{"list": {"elements": [{"url": server}]}}]);
        let found = converted(of(false, list, "a", json!({"destination": {"server": "{{url}}"}})));
        let named = found.refused.iter().any(|it| *it.field == *"spec.template.spec.destination.server");
        assert_eq!(named, is_refused, "{server}: {:?}", found.refused);
    }
}
