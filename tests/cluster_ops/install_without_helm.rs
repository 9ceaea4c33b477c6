//! `moorline install`: the same objects as the chart's, without helm.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::chart::programs::{CHART, Helm, command, documents, find, run, text};
use crate::chart::release::Release;
use crate::chart::rendered::by_name;
use moorline_test_support::command::Folder;
use moorline_test_support::credentials::{ADMIN, TENANT};
use moorline_test_support::rest::send_request;
use moorline_test_support::scene::config_map;
use moorline_test_support::under_load::under_load;

/// The rendered chart that is part of the program.
const MANIFESTS: &str = "src/cli/install/manifests.yaml";

/// Its first line.
const HEAD: &str = "# Rendered by helm from charts/moorline. Do not edit: \
    MOORLINE_WRITE_DOCS=1 cargo test --test cluster_ops install_without_helm:: writes it.\n";

/// Time limit that the project sets itself, from the command to the first Sync.
const BAR: Duration = Duration::from_secs(5);

/// Renders the chart with every object that a flag of `moorline install` can ask for, and with names for the values.
fn rendered(helm: &Helm) -> String {
    let template = |more: &[&str]| {
        let mut command = helm.command();
        let command =
            command.args(["template", "moorline", CHART, "--namespace", "RELEASE_NAMESPACE", "--set"]);
        let command = command.arg("image.repository=IMAGE_REPOSITORY,image.tag=IMAGE_TAG").args(more);
        run(command).unwrap_or_else(|error| panic!("{error}"))
    };
    let whole = template(&["--set", "rbac.grant=clusterAdmin,sync.url=SYNC_URL,sync.path=SYNC_PATH"]);
    let grant = template(&["--set", "rbac.grant=namespaceAdmin", "--show-only", "templates/grant.yaml"]);
    format!("{HEAD}{whole}{grant}")
}

#[test]
fn the_manifests_of_the_program_are_the_chart_s() {
    let Some(helm) = Helm::here() else { return };
    let rendered = rendered(&helm);
    if std::env::var_os("MOORLINE_WRITE_DOCS").is_some() {
        std::fs::write(Path::new(env!("CARGO_MANIFEST_DIR")).join(MANIFESTS), &rendered).expect("a file");
    }
    // Other versions of helm differ in blank lines.
    let same = documents(MANIFESTS, &text(MANIFESTS)) == documents("rendered", &rendered);
    assert!(
        same,
        "{MANIFESTS} is not what the chart renders; write it with\n\n    \
         MOORLINE_WRITE_DOCS=1 cargo test --test cluster_ops install_without_helm::\n"
    );
}

#[test]
fn the_command_prints_what_helm_renders() {
    let Some(helm) = Helm::here() else { return };
    let digest = format!("sha256:{}", "0a".repeat(32));
    let by_digest = format!("a.example/team/moorline@{digest}");
    let digest_values = format!("image.repository=mirror:5000/apps/moorline,image.digest={digest}");
    let version = env!("CARGO_PKG_VERSION");
    let check = |namespace: &str, flags: &[&str], values: &str| {
        let printed = Command::new(env!("CARGO_BIN_EXE_moorline"))
            .args(["install", "--dry-run"])
            .args(flags)
            .env("KUBECONFIG", "/nowhere")
            .output()
            .expect("it runs");
        assert!(printed.status.success(), "{flags:?}: {}", String::from_utf8_lossy(&printed.stderr));
        let mut own = documents("printed", &String::from_utf8_lossy(&printed.stdout));
        let first = own.remove(0);
        assert_eq!((&first["kind"], &first["metadata"]), (&json!("Namespace"), &json!({"name": namespace})));
        let mut template = helm.command();
        let template =
            template.args(["template", "moorline", CHART, "--include-crds", "--namespace", namespace]);
        let expect = run(template.args(["--set", values])).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(by_name(own), by_name(documents("rendered", &expect)), "{flags:?}");
    };
    let image = ["--image", "a.example/moorline"];
    let with = |more: &[&'static str]| [&image, more].concat();
    check("moorline", &image, "image.repository=a.example/moorline");
    check("ops-1", &with(&["-n", "ops-1", "--grant", "none"]), "image.repository=a.example/moorline");
    check(
        "moorline",
        &with(&["--grant", "clusterAdmin", "--url", "https://a.example/b.git"]),
        "image.repository=a.example/moorline,rbac.grant=clusterAdmin,sync.url=https://a.example/b.git",
    );
    check(
        "team",
        &with(&[
            "--namespace",
            "team",
            "--grant",
            "namespaceAdmin",
            "--url",
            "git@a.example:b.git",
            "--path",
            "c/d",
        ]),
        "image.repository=a.example/moorline,rbac.grant=namespaceAdmin,sync.url=git@a.example:b.git,sync.path=c/d",
    );
    check(
        "moorline",
        &["--image", "a.example:5000/moorline:main"],
        "image.repository=a.example:5000/moorline,image.tag=main",
    );
    check("moorline", &["--image", &by_digest, "--registry", "mirror:5000/apps/"], &digest_values);
    let by_version = format!("image.repository=mirror/moorline,image.tag={version}");
    check("moorline", &["--registry", "mirror"], &by_version);
}

#[test]
fn an_installation_without_an_image_says_what_to_set() {
    let folder = Folder::new("install", &[]);
    let check = |arguments: &[&str], words: &str| {
        folder.moorline(&[&["install", "--dry-run"], arguments].concat()).refused(64, words);
    };
    check(
        &[],
        "error: no image is set: make the image with `make dist image`, push it to a registry that the cluster pulls from, \
         and say where it is with --image registry.example.com/moorline\n",
    );
    check(
        &["--registry", "https://a.example"],
        "error: --registry https://a.example: leave out the protocol, as in registry.example.com/moorline\n",
    );
    let local =
        folder.moorline(&["install", "--dry-run", "--image", "a.example/b", "--url", "/srv/repository"]);
    assert!(local.code == 64 && local.words.starts_with("error: --url: "), "{}", local.words);
    let alone = folder.moorline(&["install", "--image", "a.example/b", "--path", "c"]);
    assert!(alone.code == 64 && alone.words.contains("--url <URL>"), "{}", alone.words);
}

/// The values of the install below.
fn flags(url: &str) -> [&str; 6] {
    ["--grant", "namespaceAdmin", "--url", url, "--path", "app"]
}

#[tokio::test]
async fn a_cluster_is_installed_and_synced_without_helm() {
    let Some(release) = Release::new("no-helm").await else { return };
    release.without_definition().await;
    let commit = release.push("app/a.json", &config_map("a", "one"));
    let url = release.url();
    let begun = Instant::now();
    let said = release.install_without_helm(&flags(&url));
    assert!(said.starts_with("created    CustomResourceDefinition syncs.moorline.dev\n"), "{said}");
    assert!(said.contains(&format!("created    Sync {}/default\n", release.namespace)), "{said}");
    assert!(
        said.ends_with("\n26 objects: 25 created, 1 unchanged\n"),
        "the namespace is there already: {said}"
    );
    let daemon = release.daemon().await;
    crate::chart::until_ready(&release, "default", &commit).await;
    let taken = begun.elapsed();
    assert!(taken < under_load(BAR), "{taken:?}");

    // Once more: nothing is written.
    let again = release.install_without_helm(&flags(&url));
    assert!(again.ends_with("\n26 objects: 26 unchanged\n"), "{again}");
    // The fields of somebody else stay until they are taken over by name.
    let deployment = release.path("apps/v1", "deployments/moorline?fieldManager=hands");
    send_request(&release.admin, "PATCH", &deployment, json!({"spec": {"replicas": 2}}))
        .await
        .expect("an edit");
    let sync = release.path("moorline.dev/v1alpha1", "syncs/default");
    let image = ["install", "--image", "registry.example.com/moorline"];
    let refused = release.moorline(ADMIN, &image);
    let part = "hands owns these fields: if they are from an earlier installation, add --force-conflicts";
    assert!(refused.code == 1 && refused.words.contains(part), "{}", refused.words);
    let forced = release.install_without_helm(&["--force-conflicts"]);
    assert!(forced.contains(&format!("changed    Deployment {}/moorline\n", release.namespace)), "{forced}");
    // A user who may not write is sent to somebody who may.
    let refused = release.moorline(TENANT, &image);
    let part = "an administrator of the cluster has to run this";
    assert!(refused.code == 1 && refused.words.contains(part), "{}", refused.words);
    drop(daemon);
    release.uninstall_without_helm().await;
    for kept in [release.path("v1", "secrets/moorline-key"), sync] {
        assert!(release.get(&kept).await.is_some(), "{kept} stays");
    }
    release.end().await;
}

#[tokio::test]
async fn an_older_program_does_not_install_over_a_newer_one() {
    let Some(release) = Release::new("no-helm-older").await else { return };
    release.without_definition().await;
    let mut newer = moorline::api::definition().expect("the definition");
    newer["metadata"]["annotations"]["moorline.dev/version"] = "99.0.0".into();
    let place = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    release.create(place, newer).await.expect("the definition of a newer program");
    let refused = release.moorline(ADMIN, &["install", "--image", "registry.example.com/moorline"]);
    let part = "this cluster has the definition of Moorline 99.0.0, and this is ";
    assert!(refused.code == 1 && refused.words.contains(part), "{}", refused.words);
    assert_eq!(
        (refused.data.as_str(), release.get(&release.path("apps/v1", "deployments/moorline")).await),
        ("", None)
    );
    release.without_definition().await;
    release.end().await;
}

/// The lines of a page that let kubectl apply what is printed.
fn lines_for_kubectl(page: &str) -> Vec<String> {
    let begin = "moorline crd | kubectl apply --server-side -f -\n";
    let at = page.find(begin).expect("the page brings the definition");
    let block = page[at..].split("```").next().unwrap_or_default();
    block.lines().map(str::to_owned).collect()
}

/// The lines of docs/install.md, each once, as typed into a shell.
#[tokio::test]
async fn kubectl_applies_what_is_printed() {
    let Some(kubectl) = find("kubectl") else { return };
    let Some(release) = Release::new("no-helm-kubectl").await else { return };
    release.without_definition().await;
    let path = [kubectl.as_path(), Path::new(env!("CARGO_BIN_EXE_moorline"))]
        .map(|program| program.parent().expect("a folder").to_owned());
    let path = path.into_iter().chain(["/usr/bin".into(), "/bin".into()]);
    let path = std::env::join_paths(path).expect("a PATH");
    let of_sync = format!("--url {} --path app -n {}", release.url(), release.namespace);
    let mut taken = String::new();
    for line in lines_for_kubectl(&text("docs/install.md")) {
        let line = line.replace("--url URL", &of_sync);
        let mut shell = command(Path::new("/bin/sh"));
        let shell = shell.args(["-ec", &line]).env("PATH", &path);
        taken = run(shell.env("KUBECONFIG", release.plane.kubeconfig_file(ADMIN)))
            .unwrap_or_else(|error| panic!("{line}: {error}"));
    }
    assert!(taken.contains("deployment.apps/moorline serverside-applied"), "{taken}");
    assert!(taken.contains("sync.moorline.dev/default serverside-applied"), "{taken}");
    let live = release.get(&release.path("moorline.dev/v1alpha1", "syncs/default")).await;
    assert_eq!(live.map(|it| it["spec"]["path"].clone()), Some(Value::from("app")));
    release.uninstall_without_helm().await;
    release.end().await;
}
