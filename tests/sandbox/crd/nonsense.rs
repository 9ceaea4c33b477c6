//! Specs that make no sense, each with what the API server says and the field that `wish` names.

use serde_json::{Value, json};

/// Secret text in bad specs that no message contains.
pub(crate) const SECRET: &str = "planted";

/// One bad spec: what is written over a good one, what the server says, and which field `wish` names.
pub(crate) struct Bad {
    pub(crate) over: Value,
    pub(crate) server: &'static str,
    pub(crate) field: &'static str,
}

pub(crate) fn bad(over: Value, server: &'static str, field: &'static str) -> Bad {
    Bad { over, server, field }
}

pub(crate) fn git(over: Value) -> Value {
    json!({"source": {"git": over}})
}

pub(crate) fn url(url: &str) -> Value {
    git(json!({"url": url}))
}

pub(crate) fn reference(reference: Value) -> Value {
    git(json!({"ref": reference}))
}

pub(crate) fn bad_sources() -> Vec<Bad> {
    const URL: &str = "spec.source.git.url";
    const REF: &str = "spec.source.git.ref";
    vec![
        bad(url("https://user:planted@host/a"), "put them into a Secret (username, password)", URL),
        bad(url("https://planted@host/a"), "leave user, password and token out of the URL", URL),
        bad(url("http://user:planted@host/a"), "put them into a Secret (username, password)", URL),
        bad(url("ssh://git:planted@host/a"), "put a key into a Secret (ssh-privatekey, known_hosts)", URL),
        bad(url("git:planted@host:a"), "ssh://user@host/path or user@host:path", URL),
        bad(url("file:///srv/planted"), "other URLs and local paths are not supported", URL),
        bad(url("/srv/planted"), "other URLs and local paths are not supported", URL),
        bad(url("./planted"), "write https://host/path", URL),
        bad(url("../planted"), "write https://host/path", URL),
        bad(url("git://host/a"), "write https://host/path", URL),
        bad(url("host:a"), "write https://host/path", URL),
        bad(url("https://host/a?token=planted"), "remove spaces, the query (?) and the fragment (#)", URL),
        bad(url("https://host/a b"), "remove spaces", URL),
        bad(url("https://host"), "write the path of a repository behind the host", URL),
        bad(url("https:///a"), "write the path of a repository behind the host", URL),
        bad(url("https://host/a/../b"), "without .. in it", URL),
        bad(url("git@host:../b"), "without .. in it", URL),
        bad(url("https://host/a/.%2E/b"), "without codes for dots", URL),
        bad(url(""), "should be at least 1 chars long", URL),
        bad(
            url(&format!("https://user:planted@host/{}", "a".repeat(2048))),
            "may not be more than 2048",
            URL,
        ),
        bad(
            json!({
                "source": {"git": {"url": "http://user:planted@host/a", "secretRef": {"name": "a"}, "ref": {}}},
                "createNamespace": true,
            }),
            "spec.createNamespace: ",
            "spec.createNamespace",
        ),
        bad(
            git(json!({"url": "http://host/a", "secretRef": {"name": "login"}})),
            "use https:// in the URL: with plain http",
            URL,
        ),
        bad(
            git(json!({"secretRef": {"name": "Login"}})),
            "write the name of a Secret",
            "spec.source.git.secretRef.name",
        ),
        bad(git(json!({"secretRef": {}})), "Required value", "spec.source"),
        bad(
            reference(json!({"branch": "main", "tag": "v1"})),
            "write exactly one of branch, tag, semver and commit",
            REF,
        ),
        bad(reference(json!({})), "write exactly one of branch, tag, semver and commit", REF),
        bad(reference(json!({"branch": "a b"})), "write the name of a branch", "spec.source.git.ref.branch"),
        bad(reference(json!({"branch": "a/.b"})), "write the name of a branch", "spec.source.git.ref.branch"),
        bad(reference(json!({"tag": "a..b"})), "write the name of a tag", "spec.source.git.ref.tag"),
        bad(reference(json!({"tag": "v1.lock"})), "write the name of a tag", "spec.source.git.ref.tag"),
        bad(
            reference(json!({"semver": ">=1.0; rm"})),
            "write a range of versions",
            "spec.source.git.ref.semver",
        ),
        bad(
            reference(json!({"semver": "latest"})),
            "write a range of versions",
            "spec.source.git.ref.semver",
        ),
        bad(reference(json!({"commit": "0123abc"})), "write all 40 hex digits", "spec.source.git.ref.commit"),
    ]
}

fn helm(over: Value) -> Value {
    json!({"render": {"helm": over}})
}

/// A published chart with this instead of what is right.
fn chart(over: Value) -> Value {
    let digest = format!("sha256:{}", "0".repeat(64));
    let mut chart =
        json!({"url": "https://charts.example.com", "name": "shop", "version": "1.2.3", "digest": digest});
    for (key, value) in over.as_object().into_iter().flatten() {
        chart[key] = value.clone();
    }
    chart.as_object_mut().into_iter().for_each(|fields| fields.retain(|_, value| !value.is_null()));
    json!({"chart": chart})
}

pub(crate) fn bad_charts() -> Vec<Bad> {
    vec![
        bad(
            json!({"render": {"type": "Kustomize", "helm": {"skipCrds": true}}}),
            "helm is valid only for type Helm",
            "spec.render.helm",
        ),
        bad(helm(json!({"releaseName": "Shop"})), "write lower-case letters", "spec.render.helm.releaseName"),
        bad(helm(json!({"namespace": "a.b"})), "write the name of a namespace", "spec.render.helm.namespace"),
        bad(
            helm(json!({"valuesFiles": ["a.yaml", "https://example.com/planted"]})),
            "values files are not fetched from URLs",
            "spec.render.helm.valuesFiles[1]",
        ),
        bad(
            helm(json!({"kubeVersion": "newest"})),
            "write a Kubernetes version",
            "spec.render.helm.kubeVersion",
        ),
        bad(
            helm(chart(json!({"name": null}))),
            "write the name of a chart in a repository",
            "spec.render.helm.chart",
        ),
        bad(
            helm(chart(json!({"url": "oci://example.com/shop"}))),
            "write the name of a chart in a repository",
            "spec.render.helm.chart",
        ),
        bad(
            helm(chart(json!({"url": "https://me:planted@example.com"}))),
            "write https://host/path",
            "spec.render.helm.chart.url",
        ),
        bad(helm(chart(json!({"version": ">=1"}))), "write one version", "spec.render.helm.chart.version"),
        bad(helm(chart(json!({"digest": "sha256:0"}))), "64", "spec.render.helm.chart.digest"),
        bad(helm(json!({"values": "planted"})), "must be of type object", "spec.render"),
    ]
}

pub(crate) fn bad_renders_and_prunes() -> Vec<Bad> {
    const PATH: &str = "write a path inside the repository";
    vec![
        bad(json!({"path": "../up"}), PATH, "spec.path"),
        bad(json!({"path": "a/../../up"}), PATH, "spec.path"),
        bad(json!({"path": "./.."}), PATH, "spec.path"),
        bad(json!({"path": "/etc"}), PATH, "spec.path"),
        bad(json!({"path": ""}), "should be at least 1 chars long", "spec.path"),
        bad(
            json!({"render": {"plain": {"include": ["/a"]}}}),
            "globs relative to the path",
            "spec.render.plain.include[0]",
        ),
        bad(
            json!({"render": {"plain": {"exclude": ["a", "a***"]}}}),
            "globs relative to the path",
            "spec.render.plain.exclude[1]",
        ),
        bad(json!({"targetNamespace": "a.b"}), "write the name of a namespace", "spec.targetNamespace"),
        bad(
            json!({"createNamespace": true}),
            "set targetNamespace to the namespace to create",
            "spec.createNamespace",
        ),
        bad(
            json!({"prune": {"budget": {"percent": 101}}}),
            "less than or equal to 100",
            "spec.prune.budget.percent",
        ),
        bad(
            json!({"prune": {"budget": {"percent": -1}}}),
            "greater than or equal to 0",
            "spec.prune.budget.percent",
        ),
        bad(
            json!({"prune": {"budget": {"count": -1}}}),
            "greater than or equal to 0",
            "spec.prune.budget.count",
        ),
        bad(
            json!({"prune": {"protect": ["Sec ret"]}}),
            "write Kind for the core group",
            "spec.prune.protect[0]",
        ),
        bad(
            json!({"prune": {"protect": ["A", "Cluster."]}}),
            "write Kind for the core group",
            "spec.prune.protect[1]",
        ),
        bad(
            json!({"prune": {"protect": ["apps/Deployment"]}}),
            "write Kind for the core group",
            "spec.prune.protect[0]",
        ),
    ]
}

pub(crate) fn bad_variables() -> Vec<Bad> {
    vec![
        bad(
            json!({"render": {"substitute": {"vars": {"a.b": "c"}}}}),
            "name variables with letters, digits and _",
            "spec.render.substitute.vars",
        ),
        bad(
            json!({"render": {"substitute": {"vars": {"A": "a".repeat(4097)}}}}),
            "may not be more than 4096",
            "spec.render.substitute.vars",
        ),
        bad(
            json!({"render": {"substitute": {"from": [{"kind": "Secret", "name": "Keys"}]}}}),
            "write the name of a ConfigMap or Secret",
            "spec.render.substitute.from[0].name",
        ),
        bad(
            json!({"render": {"substitute": {"from": [{"kind": "Pod", "name": "a"}]}}}),
            "supported values: \"ConfigMap\", \"Secret\"",
            "spec.render",
        ),
    ]
}

pub(crate) fn bad_switches() -> Vec<Bad> {
    let long = "a".repeat(400);
    vec![
        bad(
            json!({"deletionPolicy": "Keep"}),
            "supported values: \"Orphan\", \"Delete\"",
            "spec.deletionPolicy",
        ),
        bad(
            json!({"drift": {"mode": "repair"}}),
            "supported values: \"Repair\", \"Report\", \"Ignore\"",
            "spec.drift",
        ),
        bad(
            json!({"drift": {"extraFields": "Delete"}}),
            "supported values: \"Keep\", \"Report\", \"Remove\"",
            "spec.drift",
        ),
        bad(
            json!({"conflicts": "Steal"}),
            "supported values: \"Force\", \"Yield\", \"Fail\"",
            "spec.conflicts",
        ),
        bad(json!({"interval": "1s"}), "write a duration from 5s to 24h", "spec.interval"),
        bad(json!({"interval": "25h"}), "write a duration from 5s to 24h", "spec.interval"),
        bad(json!({"interval": "30"}), "write a duration from 5s to 24h", "spec.interval"),
        bad(json!({"interval": "1.5h"}), "write a duration from 5s to 24h", "spec.interval"),
        bad(json!({"interval": 30}), "must be of type string", "spec.interval"),
        bad(json!({"timeout": "5 minutes"}), "write a duration from 5s to 24h", "spec.timeout"),
        bad(
            json!({"serviceAccountName": "Deployer"}),
            "write the name of a ServiceAccount",
            "spec.serviceAccountName",
        ),
        bad(
            json!({"ignoreFields": [{"paths": ["spec.replicas"]}]}),
            "write JSON pointers",
            "spec.ignoreFields[0].paths",
        ),
        bad(
            json!({"ignoreFields": [{"paths": ["/a~2"]}]}),
            "write JSON pointers",
            "spec.ignoreFields[0].paths",
        ),
        bad(
            json!({"ignoreFields": [{"paths": ["/spec/"]}]}),
            "write JSON pointers",
            "spec.ignoreFields[0].paths",
        ),
        bad(
            json!({"ignoreFields": [{"paths": []}]}),
            "should have at least 1 items",
            "spec.ignoreFields[0].paths",
        ),
        bad(
            json!({"ignoreFields": [{"paths": ["/kind"]}]}),
            "they identify the object",
            "spec.ignoreFields[0].paths",
        ),
        bad(json!({"suspend": "yes"}), "must be of type boolean", "spec.suspend"),
        bad(json!({"serviceAccountName": long}), "may not be more than 253", "spec.serviceAccountName"),
    ]
}

pub(crate) fn bad_dependencies() -> Vec<Bad> {
    vec![
        bad(
            json!({"dependsOn": [{"name": "Infra"}]}),
            "write the name of a Sync, such as infrastructure",
            "spec.dependsOn[0].name",
        ),
        bad(
            json!({"dependsOn": [{"name": "infra", "namespace": "Team"}]}),
            "write the name of a namespace: lower-case letters, digits and -, such as infra",
            "spec.dependsOn[0].namespace",
        ),
        bad(
            json!({"dependsOn": [{"name": "bad"}]}),
            "name another Sync in dependsOn: a Sync cannot depend on itself",
            "spec.dependsOn[0].name",
        ),
    ]
}
