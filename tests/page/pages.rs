//! Every command of the pages of `docs/` is run, or is in the list of those that cannot be, with the reason.
//!
//! In: the pages. Out: walks through those that tell a person what to do, on the real control plane with the real kubectl and
//! helm; and for the others that their blocks are known.

pub(crate) mod page;
pub(crate) mod walk;

use std::path::Path;

use page::{Block, blocks, links, read};
use walk::Walk;

/// The pages whose blocks are typed in order, each by a test below.
const WALKED: [&str; 3] = ["docs/getting-started.md", "docs/operations.md", "docs/recipes.md"];

/// Blocks that are not typed: the page, their first line, and why.
const LEFT_OUT: [(&str, &str, &str); 45] = [
    (
        "docs/clusters.md",
        "kubectl create secret generic east-kubeconfig -n moorline --from-file=kubeconfig=east.yaml",
        "it needs the kubeconfig of another cluster; src/controller/targets has a test with two sandboxes",
    ),
    (
        "docs/clusters.md",
        "moorline delete shop-east -n moorline --abandon-cluster",
        "it is for a cluster that is gone for ever; src/controller/targets has a test with two sandboxes",
    ),
    (
        "docs/console-rights.md",
        "moorline console -n shop    # prints an address",
        "it goes on until it is ended; tests/cluster_ops/chart/local_console.rs opens its page",
    ),
    (
        "docs/artifacts.md",
        "oras push registry.example.com/team/shop:main deployment.yaml service.yaml config/",
        "it needs oras, and the reader's registry; crates/git/tests/sources/artifact_layers.rs has such layers",
    ),
    (
        "docs/artifacts.md",
        "cosign sign --key cosign.key registry.example.com/team/shop@sha256:3f1c...",
        "it needs cosign, and the reader's registry; crates/cosign/tests has signatures that it made",
    ),
    (
        "docs/mounts.md",
        "moorline render clusters/prod --mount vendor/base=../base --mount vendor/dashboards=../dashboards",
        "the folders are the reader's own; src/cli/mount_flags.rs does the same with folders of its own",
    ),
    (
        "docs/recipes.md",
        "moorline move shop --to shop-next -n moorline",
        "it pushes to two repositories; tests/alone/moves_across.rs moves objects between two",
    ),
    (
        "docs/demo.md",
        "moorline demo",
        "it goes on until it is ended; tests/page/demo.rs walks through its story",
    ),
    (
        "docs/sandbox.md",
        "moorline sandbox",
        "it goes on until it is ended; tests/page/demo.rs asks it by kubectl",
    ),
    (
        "docs/getting-started.md",
        "cargo install --locked --path .                     # the program moorline, for you",
        "rebuilds what the tests have built, and needs a registry; tests/cli/image.rs has the image",
    ),
    (
        "docs/simulation.md",
        "make simulation                                                        # six fixed stories and 60 random ones",
        "it takes minutes, and `make test` ends with it",
    ),
    (
        "docs/page.md",
        "kubectl port-forward -n moorline deployment/moorline 8081   # then open http://localhost:8081/",
        "there is no kubelet here that could forward a port; tests/page/page.rs asks the page of a daemon itself",
    ),
    (
        "docs/console.md",
        "token=$(kubectl create token robot -n shop --audience moorline-console)",
        "the console is the reader's own; tests/page/page.rs asks one with such a token",
    ),
    (
        "docs/adopt.md",
        "moorline adopt application/shop -n argocd --undo",
        "tests/cluster_prune/adopt.rs takes over and gives back an Application that a scripted Argo CD holds",
    ),
    (
        "docs/adopt.md",
        "moorline adopt applicationset/apps -n argocd",
        "no ApplicationSet is served here; src/adopt/application_set_tests.rs converts them",
    ),
    (
        "docs/kustomize.md",
        "moorline render apps/shop --kustomize sync.yaml   # with the options of this Sync; or of a file with the content of spec.render.kustomize",
        "the folder is the reader's own; tests/kustomize_cli.rs does the same with folders of its own",
    ),
    (
        "docs/kustomize.md",
        "moorline render overlays/prod                     # the objects of the folder",
        "the folders are the reader's own; tests/kustomize_cli.rs does the same with folders of its own",
    ),
    (
        "docs/substitution.md",
        "moorline render apps/shop --var CLUSTER_NAME=shop-1 --var REPLICAS=3   # without a cluster; also plan and check",
        "the folder is the reader's own; tests/cluster_source/substitution.rs does the same with a folder of its own",
    ),
    (
        "docs/helm.md",
        "moorline render chart --values chart/prod.yaml   # the objects of the chart",
        "the chart is the reader's own; tests/cluster_source/helm/command_line.rs does the same with one of its own",
    ),
    (
        "docs/install.md",
        "helm install moorline charts/moorline -n moorline --create-namespace --set image.repository=IMAGE \\",
        "the image and the repository are the reader's own; tests/cluster_ops/install.rs installs the chart with values of its own",
    ),
    (
        "docs/install.md",
        "moorline install --image registry.example.com/moorline --grant clusterAdmin --url URL --path PATH",
        "the repository is the reader's own; tests/cluster_ops/install_without_helm.rs installs with one of its own",
    ),
    (
        "docs/install.md",
        "moorline crd | kubectl apply --server-side -f -",
        "the repository is the reader's own; tests/cluster_ops/install_without_helm.rs types these lines with one of its own",
    ),
    (
        "docs/install.md",
        "MOORLINE_URL=URL sh config/install.sh 0.1.0   # checks the checksum, then installs to ~/.local/bin or to MOORLINE_BIN",
        "no release is published; tests/cli/published/install_script.rs serves one on the loopback",
    ),
    (
        "docs/install.md",
        "make dist                                                        # static binaries for amd64 and arm64",
        "it takes many minutes, and the registry is the reader's own; crates/xtask/tests/packing makes images of a small binary",
    ),
    (
        "docs/versions.md",
        "moorline version     # of this program, of the daemon, of the CRD and of Kubernetes",
        "tests/cluster_ops/doctor.rs asks for the versions beside a daemon",
    ),
    (
        "docs/cli.md",
        "moorline render clusters/prod                        # objects as YAML documents, or --output json",
        "one line for each command, with folders of the reader's own; tests/cli/cli.rs and others run the commands",
    ),
    (
        "docs/cli.md",
        "moorline status --fleet --context east,west",
        "it needs the kubeconfigs of two clusters; tests/cli/fleet.rs compares what it prints for several",
    ),
    (
        "docs/cli.md",
        "moorline plan clusters/prod --against live/",
        "the folders are the reader's own; tests/cli/cli_plan.rs plans folders of its own",
    ),
    (
        "docs/journal.md",
        "moorline audit --since 1h --sync shop/web journal.jsonl",
        "the file is the reader's own; tests/cluster_apply/journal.rs reads and verifies one of a daemon",
    ),
    ("docs/events.md", "kubectl describe sync shop", "tests/page/history.rs reads the same Events"),
    (
        "docs/repositories.md",
        "moorline sync shop -n moorline   # poll now; with kubectl alone: kubectl annotate --overwrite sync/shop \
         moorline.dev/requested-at=\"$(date)\"",
        "docs/getting-started.md syncs a Sync",
    ),
    (
        "docs/repositories.md",
        "ssh-keyscan example.com > known_hosts   # compare its keys with what the server's owner publishes",
        "the host is the reader's own; tests/cluster_source/source_sshd.rs reads a repository over ssh",
    ),
    (
        "docs/artifacts.md",
        "moorline push oci://registry.example.com/team/shop:main deploy/ --source \"$(git remote get-url origin)\" --revision \"$(git rev-parse HEAD)\"",
        "the registry is the reader's own; tests/cli/artifacts.rs pushes to one of its own and pulls from it",
    ),
    (
        "docs/artifacts.md",
        "kubectl create secret docker-registry registry -n moorline --docker-server=registry.example.com --docker-username=me \
         --docker-password=\"$TOKEN\"",
        "the registry is the reader's own; tests/cluster_source/artifacts.rs has such a Secret",
    ),
    (
        "docs/webhooks.md",
        "printf %s dockerhub | openssl dgst -sha256 -hmac \"$SECRET\"",
        "src/serve/webhooks/signature.rs makes the same token",
    ),
    (
        "docs/signed-commits.md",
        "kubectl create secret generic signers -n moorline --from-file=ann=ann.pub --from-file=bob=bob.asc   # public keys, \
         ssh or OpenPGP",
        "the keys are the reader's own; docs/recipes.md makes such a Secret",
    ),
    (
        "docs/decryption.md",
        "age-keygen -o keys.txt                              # prints the recipient, age1...",
        "the programs age and sops are the reader's own; tests/cluster_source/decryption.rs makes such files and Secrets",
    ),
    (
        "docs/decryption.md",
        "moorline render apps/shop --decrypt                                # prints the values",
        "the folder is the reader's own; tests/cli/decrypt.rs decrypts files of its own",
    ),
    (
        "docs/pull-requests.md",
        "moorline plan --sync shop -n moorline --pull-request 7 --cluster-name prod",
        "tests/cluster_rollout/pull_requests.rs plans one",
    ),
    (
        "docs/approval.md",
        "moorline status shop -n moorline",
        "tests/cluster_rollout/rollback/ask_first.rs runs it",
    ),
    ("docs/windows.md", "moorline windows", "tests/cluster_source/change_windows.rs has such windows"),
    ("docs/prune.md", "moorline approve shop -n moorline", "docs/recipes.md approves"),
    (
        "docs/moving-objects.md",
        "moorline move shop --to shop-next -n moorline",
        "tests/alone/moves_across.rs moves objects between two repositories",
    ),
    (
        "docs/rollback.md",
        "moorline rollback shop --reason \"checkout fails\" -n moorline   # to the revision that was applied before",
        "tests/cluster_rollout/rollback/by_hand.rs holds a Sync and releases it",
    ),
    ("docs/rollback.md", "git revert HEAD", "the repository is the reader's own"),
];

fn is_left_out(page: &str, block: &Block) -> bool {
    LEFT_OUT.iter().any(|(known, first, _)| *known == page && *first == block.first())
}

#[tokio::test(flavor = "multi_thread")]
async fn getting_started_starts() {
    let page = "docs/getting-started.md";
    let Some(mut walk) = Walk::new(page).await else { return };
    walk.through(&blocks(&read(page)), |block| is_left_out(page, block)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn operations_operates() {
    let page = "docs/operations.md";
    let Some(mut walk) = Walk::new(page).await else { return };
    walk.served().await;
    walk.through(&blocks(&read(page)), |block| is_left_out(page, block)).await;
    walk.ends().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_recipes_are_sound() {
    let page = "docs/recipes.md";
    let Some(mut walk) = Walk::new(page).await else { return };
    walk.served().await;
    let all = blocks(&read(page));
    for block in all.iter().filter(|block| block.language == "yaml") {
        walk.taken(block).await;
    }
    walk.through(&all, |block| is_left_out(page, block)).await;
    walk.ends().await;
}

#[test]
fn every_command_is_run_or_known_not_to_be() {
    let mut unknown = Vec::new();
    for page in all() {
        if WALKED.contains(&page.as_str()) {
            continue;
        }
        let typed = blocks(&read(&page)).into_iter().filter(Block::is_typed);
        let loose = typed.filter(|block| !is_left_out(&page, block));
        unknown.extend(loose.map(|block| format!("{page}:{}: {}", block.line, block.first())));
    }
    assert!(
        unknown.is_empty(),
        "no test runs these, and LEFT_OUT has no reason why:\n{}",
        unknown.join("\n")
    );
    for (page, first, why) in LEFT_OUT {
        let known = blocks(&read(page)).iter().any(|block| block.is_typed() && block.first() == first);
        assert!(known && !why.is_empty(), "{page} has no block that begins with {first}");
    }
}

#[test]
fn every_test_of_the_capabilities_is_there() {
    let page = read("docs/capabilities.md");
    let named: Vec<&str> = page.split("cargo test --test ").skip(1).collect();
    assert!(named.len() > 20, "{named:?}");
    for rest in named {
        let command = rest.split('`').next().unwrap_or_default();
        let file = command.trim_end_matches("::").replace(' ', "/").replace("::", "/");
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/{file}.rs"));
        assert!(file.exists(), "docs/capabilities.md names the test {command}, which is not there");
    }
}

#[test]
fn every_link_leads_somewhere() {
    let others = [
        "README.md",
        "README.ko.md",
        "ARCHITECTURE.md",
        "CONTRIBUTING.md",
        "SECURITY.md",
        "CHANGELOG.md",
        "CODE_OF_CONDUCT.md",
        "docs/getting-started.ko.md",
    ];
    for page in all().into_iter().chain(others.map(str::to_owned)) {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(&page);
        let folder = folder.parent().expect("a folder");
        for link in links(&read(&page)) {
            assert!(folder.join(&link).exists(), "{page} links to {link}, which is not there");
        }
    }
}

/// The pages of `docs/`; those in Korean have the blocks of the others.
fn all() -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs");
    let names = std::fs::read_dir(folder).expect("docs/").map(|entry| entry.expect("an entry").file_name());
    let mut pages: Vec<String> = names
        .map(|name| format!("docs/{}", name.to_string_lossy()))
        .filter(|name| name.ends_with(".md") && !name.ends_with(".ko.md"))
        .collect();
    pages.sort();
    pages
}
