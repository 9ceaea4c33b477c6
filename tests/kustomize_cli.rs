//! Kustomizations on the command line: how a folder is read, how far it may reach, the comparison with the real tool, and the Syncs of a
//! repository.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Output};

const MAP: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n";

fn write(folder: &Path, files: &[(&str, &str)]) {
    for (path, text) in files {
        let place = folder.join(path);
        fs::create_dir_all(place.parent().unwrap()).unwrap();
        fs::write(place, text).unwrap();
    }
}

fn moorline(folder: &Path, arguments: &[&str]) -> (i32, String, String) {
    let run = Command::new(env!("CARGO_BIN_EXE_moorline")).args(arguments).current_dir(folder).output();
    let Output { status, stdout, stderr } = run.unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (status.code().unwrap(), text(stdout), text(stderr))
}

#[test]
fn a_folder_is_read_as_what_it_holds_unless_it_is_said() {
    let folder = tempfile::tempdir().unwrap();
    write(
        folder.path(),
        &[
            ("app/kustomization.yaml", "namePrefix: my-\nresources: [a.yaml]\n"),
            ("app/a.yaml", MAP),
            ("plain/a.yaml", MAP),
        ],
    );
    let (code, data, words) = moorline(folder.path(), &["render", "app", "--verbose"]);
    assert_eq!((code, words.as_str()), (0, "app is read as a kustomization\n"));
    assert!(data.contains("name: my-a"), "{data}");
    let (code, _, words) = moorline(folder.path(), &["render", "plain", "--verbose"]);
    assert_eq!((code, words.as_str()), (0, "plain is read as plain manifests\n"));
    let (code, _, words) = moorline(folder.path(), &["render", "app", "--type", "plain"]);
    assert_eq!(code, 1);
    assert!(words.contains("app/kustomization.yaml: a kustomization among plain manifests"), "{words}");
}

#[test]
fn options_of_a_sync_are_put_over_a_folder() {
    let folder = tempfile::tempdir().unwrap();
    let options = "kustomize: {namePrefix: my-, components: [../parts/tls]}";
    let sync = |options: &str| {
        format!(
            "apiVersion: moorline.dev/v1alpha1\nkind: Sync\nmetadata: {{name: shop, namespace: moorline}}\nspec: {{source: {{git: {{url: 'https://example.com/shop.git'}}}}, path: ./app, render: {{{options}}}}}\n"
        )
    };
    write(
        folder.path(),
        &[
            ("app/a.yaml", MAP),
            (
                "parts/tls/kustomization.yaml",
                "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\nnameSuffix: -tls\n",
            ),
            ("sync.yaml", &sync(options)),
            ("none.yaml", &sync("")),
            ("clusters/sync.yaml", &sync("kustomize: {components: [../absent]}")),
            ("options.yaml", "patches:\n- patch: 'kind: ['\n"),
            ("typo.yaml", "namePrefx: my-\n"),
            ("bad.yaml", "namePrefix: 'a b'\n"),
        ],
    );
    let render = |file: &str| moorline(folder.path(), &["render", "app", "--verbose", "--kustomize", file]);
    let (code, data, words) = render("sync.yaml");
    assert_eq!((code, words.as_str()), (0, "app is read as a kustomization\n"));
    assert!(data.contains("name: my-a-tls"), "{data}");
    let (code, data, words) = render("none.yaml");
    assert_eq!((code, words.as_str()), (0, "app is read as plain manifests\n"));
    assert!(data.contains("name: a\n"), "{data}");
    for (file, expect) in [
        ("options.yaml", "error: spec.render.kustomize.patches[0]:1:8: "),
        ("typo.yaml", "there is no field spec.render.kustomize.namePrefx; did you mean namePrefix?"),
        ("bad.yaml", "spec.render.kustomize.namePrefix: write letters"),
    ] {
        let (code, _, words) = render(file);
        assert!(code != 0 && words.contains(expect), "{file}: {words}");
    }
    // The Syncs among rendered objects are checked with their own options.
    let (code, _, words) = moorline(folder.path(), &["render", "clusters"]);
    assert!(code == 1 && words.contains("spec.render.kustomize.components[0]: there is no"), "{words}");
}

#[test]
fn nothing_is_read_beyond_the_repository_or_the_root_that_is_named() {
    let folder = tempfile::tempdir().unwrap();
    write(
        folder.path(),
        &[
            ("base/kustomization.yaml", "resources: [a.yaml]\n"),
            ("base/a.yaml", MAP),
            ("repository/app/kustomization.yaml", "resources: [../../base]\n"),
            ("repository/near/kustomization.yaml", "resources: [../app2]\n"),
            ("repository/app2/kustomization.yaml", "resources: [a.yaml]\n"),
            ("repository/app2/a.yaml", MAP),
        ],
    );
    fs::create_dir(folder.path().join("repository/.git")).unwrap();
    let (code, _, words) = moorline(folder.path(), &["render", "repository/app"]);
    assert_eq!(code, 1);
    assert!(
        words.contains("repository/app/kustomization.yaml:1:13: ../../base is outside of the repository"),
        "{words}"
    );
    let (code, data, _) = moorline(folder.path(), &["render", "repository/near"]);
    assert_eq!((code, data.contains("name: a")), (0, true), "a folder may climb within the repository");
    let (code, data, words) = moorline(folder.path(), &["render", "repository/app", "--root", "."]);
    assert_eq!((code, data.contains("name: a")), (0, true), "{words}");
    let (code, _, words) = moorline(folder.path(), &["render", "base", "--root", "repository"]);
    assert_eq!(code, 1);
    assert!(words.contains("is not inside"), "{words}");
}

#[test]
fn what_another_tool_makes_is_compared_folder_by_folder() {
    let folder = tempfile::tempdir().unwrap();
    write(
        folder.path(),
        &[
            ("repository/same/kustomization.yaml", "resources: [a.yaml]\n"),
            ("repository/same/a.yaml", MAP),
            ("repository/other/kustomization.yaml", "namePrefix: my-\nresources: [a.yaml]\n"),
            ("repository/other/a.yaml", MAP),
            ("repository/wrong/kustomization.yaml", "no: field\n"),
            ("tool/kustomize", "#!/bin/sh\ncase $2 in *wrong) exit 1;; esac\ncat \"$2/a.yaml\"\n"),
        ],
    );
    let tool = folder.path().join("tool/kustomize");
    fs::set_permissions(&tool, fs::Permissions::from_mode(0o755)).unwrap();
    let (tool, path) = (tool.to_str().unwrap(), "repository");
    let (code, data, words) = moorline(folder.path(), &["render", path, "--check-against", tool]);
    assert_eq!((code, data.as_str()), (1, "equal 1, refused 0, different 1, built by neither 1\n"));
    assert_eq!(words, "different: repository/other: v1 ConfigMap  a is missing\n");
    let (code, data, words) =
        moorline(folder.path(), &["render", "repository/same", "--check-against", tool]);
    assert_eq!((code, words.as_str()), (0, ""));
    assert_eq!(data, "equal 1, refused 0, different 0, built by neither 0\n");
}

#[test]
fn a_difference_names_the_field_and_both_values() {
    let folder = tempfile::tempdir().unwrap();
    let map = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n  annotations: {example.com/x: b}\ndata: {k: [1, {v: two}]}\n";
    let secret = "apiVersion: v1\nkind: Secret\nmetadata:\n  name: a\nstringData: {password: hidden}\n";
    write(
        folder.path(),
        &[
            ("here/kustomization.yaml", "resources: [a.yaml]\n"),
            ("here/a.yaml", map),
            ("annotation/kustomization.yaml", "resources: [a.yaml]\n"),
            ("annotation/a.yaml", map),
            ("secret/kustomization.yaml", "resources: [a.yaml]\n"),
            ("secret/a.yaml", secret),
            ("none/kustomization.yaml", "resources: []\n"),
            ("tool/here", &map.replace("two", "three")),
            ("tool/annotation", &map.replace("{example.com/x: b}", "{}")),
            ("tool/secret", &secret.replace("hidden", "other")),
            ("tool/none", ""),
            ("tool/kustomize", "#!/bin/sh\ncat \"$(dirname \"$0\")/$(basename \"$2\")\"\n"),
        ],
    );
    let tool = folder.path().join("tool/kustomize");
    fs::set_permissions(&tool, fs::Permissions::from_mode(0o755)).unwrap();
    let compared =
        |path| moorline(folder.path(), &["render", path, "--check-against", tool.to_str().unwrap()]);
    let (code, _, words) = compared("here");
    assert_eq!(code, 1);
    assert_eq!(
        words,
        "different: here: v1 ConfigMap  a: data.k[1].v is \"two\" here and \"three\" in the tool's output\n"
    );
    let (_, _, words) = compared("annotation");
    assert_eq!(
        words,
        "different: annotation: v1 ConfigMap  a: metadata.annotations[example.com/x] is \"b\" here and missing in the tool's output\n"
    );
    // Values of Secrets are never shown.
    let (_, _, words) = compared("secret");
    assert!(words.contains("stringData.password is another value that is not shown here"), "{words}");
    assert!(!words.contains("hidden") && !words.contains("other\""), "{words}");
    let (code, data, _) = compared("none");
    assert_eq!((code, data.as_str()), (0, "equal 1, refused 0, different 0, built by neither 0\n"));
}

#[test]
fn a_kustomization_without_objects_prints_none_and_is_never_a_plan() {
    let folder = tempfile::tempdir().unwrap();
    write(
        folder.path(),
        &[
            ("app/kustomization.yaml", "resources: [../none]\n"),
            ("none/kustomization.yaml", "resources: []\n"),
            ("empty/kustomization.yaml", ""),
        ],
    );
    let (code, data, words) = moorline(folder.path(), &["render", "app"]);
    assert_eq!((code, data.as_str()), (0, ""));
    assert_eq!(
        words,
        "note: the kustomization in app renders no objects; a Sync of it keeps its applied objects (NoManifests)\n"
    );
    let (code, data, _) = moorline(folder.path(), &["render", "app", "--output", "json"]);
    assert_eq!((code, data.as_str()), (0, "[]\n"));
    // A file that says nothing is refused, as the tool refuses it.
    let (code, _, words) = moorline(folder.path(), &["render", "empty"]);
    assert!(code == 1 && words.contains("empty/kustomization.yaml:1:1: it is empty"), "{words}");
    // Nothing is checked or planned by it.
    let (code, _, words) = moorline(folder.path(), &["check", "app"]);
    assert!(code == 1 && words.contains("the kustomization in app has no objects"), "{words}");
}

#[test]
fn a_variable_that_is_not_substituted_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let map = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: ${APP}-settings\n";
    write(folder.path(), &[("app/kustomization.yaml", "resources: [a.yaml]\n"), ("app/a.yaml", map)]);
    let (code, _, words) = moorline(folder.path(), &["render", "app"]);
    assert_eq!(code, 1);
    assert!(
        words.contains(
            "; the variable APP is not substituted: give it a value with spec.render.substitute, or with --var APP=VALUE"
        ),
        "{words}"
    );
    let (code, data, words) = moorline(folder.path(), &["render", "app", "--var", "APP=shop"]);
    assert!(code == 0 && data.contains("name: shop-settings"), "{words}");
}

#[test]
fn an_object_is_explained_by_the_files_and_steps_that_made_it() {
    let folder = tempfile::tempdir().unwrap();
    let deployment = "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: web\nspec:\n  replicas: 1\n  selector: {matchLabels: {app: web}}\n  template:\n    metadata: {labels: {app: web}}\n    spec:\n      containers: [{name: web, image: example.com/web}]\n      volumes: [{name: a, configMap: {name: settings}}]\n";
    let overlay = "namespace: shop\nresources:\n- ../base\npatches:\n- path: more.yaml\nimages:\n- name: example.com/web\n  newTag: v2\nconfigMapGenerator:\n- name: settings\n  literals: [password=hidden]\n";
    write(
        folder.path(),
        &[
            ("base/kustomization.yaml", "resources: [web.yaml]\n"),
            ("base/web.yaml", deployment),
            ("prod/kustomization.yaml", overlay),
            (
                "prod/more.yaml",
                "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: web\nspec:\n  replicas: 3\n",
            ),
            ("plain/a.yaml", MAP),
        ],
    );
    let explain = |path: &str, object: &str| moorline(folder.path(), &["render", path, "--explain", object]);
    let (code, data, words) = explain("prod", "deployment/web");
    assert_eq!((code, words.as_str()), (0, ""));
    assert_eq!(
        data,
        "Deployment.apps shop/web
  written at base/web.yaml:1
  resources (web.yaml) at base/kustomization.yaml:1:13
  resources (../base) at prod/kustomization.yaml:3:3
  patches (more.yaml) at prod/kustomization.yaml:5:3
    spec.replicas
  namespace at prod/kustomization.yaml:1:1
    metadata.namespace
  images at prod/kustomization.yaml:7:3
    spec.template.spec.containers[0].image
  names of others at prod/kustomization.yaml:1:1
    spec.template.spec.volumes[0].configMap.name
"
    );
    // The name of what a generator made has a hash in it, and is shown to anyone who does not know it. Values never are.
    let (code, _, words) = explain("prod", "ConfigMap/settings");
    assert_eq!(code, 1);
    let name = words.trim_end().rsplit('/').next().unwrap().to_owned();
    assert!(
        words.starts_with("error: no such object; available objects:\n  ConfigMap shop/settings-"),
        "{words}"
    );
    let (code, data, _) = explain("prod", &format!("ConfigMap/shop/{name}"));
    assert_eq!(code, 0);
    assert!(data.contains("  configMapGenerator at prod/kustomization.yaml:10:3\n"), "{data}");
    assert!(data.contains("  hash of the content at"), "{data}");
    assert!(!data.contains("hidden"), "{data}");

    let (code, data, _) = explain("plain", "configmap/a");
    assert_eq!((code, data.as_str()), (0, "ConfigMap a\n  written at plain/a.yaml:1\n"));
    let (code, _, words) = explain("plain", "a");
    assert_eq!(code, 64);
    assert!(words.contains("write Kind/name, Kind.group/name or Kind/namespace/name"), "{words}");
}

/// A repository with a Sync that follows `apps/shop`, and with the given fields and files beside that.
fn repository(spec: &str, files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let sync = format!(
        "apiVersion: moorline.dev/v1alpha1\nkind: Sync\nmetadata: {{name: shop, namespace: ops}}\nspec:\n  source: {{git: {{url: https://git.example.com/shop/deploy.git}}}}\n{spec}"
    );
    write(folder.path(), &[("clusters/prod/shop.yaml", &sync), ("apps/shop/a.yaml", MAP)]);
    write(folder.path(), files);
    let made = git2::Repository::init(folder.path()).unwrap();
    made.remote("origin", "https://git.example.com/shop/deploy").unwrap();
    folder
}

#[test]
fn syncs_in_the_repository_are_checked_with_what_they_follow() {
    let check = |spec: &str, files: &[(&str, &str)]| {
        let folder = repository(spec, files);
        let (code, data, words) = moorline(folder.path(), &["render", "clusters/prod"]);
        assert_eq!(code == 0, !data.is_empty(), "nothing is printed if anything is wrong");
        let (checked, _, same) = moorline(folder.path(), &["check", "clusters/prod"]);
        assert_eq!((checked, &same), (code, &words));
        (code, words)
    };
    let sound = "  path: apps/shop\n";
    assert_eq!(check(sound, &[]), (0, String::new()));
    let at = "error: clusters/prod/shop.yaml:1: Sync.moorline.dev ops/shop: ";
    let (code, words) = check("  path: apps/shpo\n", &[]);
    assert_eq!((code, words), (1, format!("{at}spec.path: apps/shpo is not in this repository\n")));
    #[cfg(unix)]
    {
        let folder = repository("  path: evil\n", &[]);
        std::os::unix::fs::symlink("/", folder.path().join("evil")).unwrap();
        let (code, _, words) = moorline(folder.path(), &["render", "clusters/prod"]);
        assert_eq!((code, words), (1, format!("{at}spec.path: evil is outside of the repository\n")));
    }
    let (_, words) = check("  path: apps/shop\n  prune: {enabled: true, protct: [Secret]}\n", &[]);
    assert_eq!(words, format!("{at}spec.prune.protct is not a field of a Sync; did you mean protect?\n"));
    let (_, words) = check("  path: apps/shop\n  interval: often\n", &[]);
    assert!(words.starts_with(&format!("{at}spec.interval: ")), "{words}");
    let (_, words) =
        check(sound, &[("apps/shop/b.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: B_}\n")]);
    assert!(words.starts_with("error: apps/shop/b.yaml:3:"), "{words}");
    assert!(words.ends_with(&format!("{at}its source cannot be applied\n")), "{words}");
    let (_, words) = check(sound, &[("apps/shop/kustomization.yaml", "resources: [c.yaml]\n")]);
    assert!(words.starts_with("error: apps/shop/kustomization.yaml:1:13: "), "{words}");

    // Variables are put in; where their values are is known only in the cluster.
    let named = [("apps/shop/b.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: '${NAME}'}\n")];
    let substitute = |what: &str| format!("{sound}  render: {{substitute: {{{what}}}}}\n");
    assert_eq!(check(&substitute("vars: {NAME: b}"), &named), (0, String::new()));
    let (code, words) = check(&substitute("vars: {OTHER: b}"), &named);
    assert!(code == 1 && words.starts_with("error: apps/shop/b.yaml:3:"), "{words}");
    let (code, words) = check(&substitute("from: [{kind: Secret, name: values}]"), &named);
    assert!(code == 0 && words.contains("which are not known here"), "{words}");

    // A Sync among what a Sync follows counts as well, and one that follows itself ends.
    let inner = "apiVersion: moorline.dev/v1alpha1\nkind: Sync\nmetadata: {name: inner, namespace: ops}\nspec:\n  source: {git: {url: https://git.example.com/shop/deploy.git}}\n  path: ";
    let (code, words) = check(sound, &[("apps/shop/inner.yaml", &format!("{inner}nowhere\n"))]);
    assert_eq!(code, 1);
    assert!(
        words.contains("apps/shop/inner.yaml:1: Sync.moorline.dev ops/inner: spec.path: nowhere"),
        "{words}"
    );
    assert_eq!(check(sound, &[("apps/shop/inner.yaml", &format!("{inner}apps\n"))]), (0, String::new()));
}

#[test]
fn what_another_repository_holds_is_not_looked_at() {
    let remotes = [
        (Some("git@git.example.com:shop/deploy.git"), true),
        (Some("https://git.example.com/other"), false),
        (None, false),
    ];
    for (remote, is_ours) in remotes {
        let folder = repository("  path: nowhere\n", &[]);
        let repository = git2::Repository::open(folder.path()).unwrap();
        match remote {
            Some(url) => repository.remote_set_url("origin", url).unwrap(),
            None => repository.remote_delete("origin").unwrap(),
        }
        let (code, _, words) = moorline(folder.path(), &["render", "clusters/prod"]);
        assert_eq!(code, i32::from(is_ours), "{words}");
        assert_eq!(words.contains("follows another repository, which is not checked"), !is_ours, "{words}");
    }
}
