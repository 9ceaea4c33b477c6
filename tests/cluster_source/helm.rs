//! Helm charts: what they come to is what `helm template` prints, the same input is rendered once, and helm runs in isolation.
//!
//! `helm/charts.rs` has the charts, compared with the real helm; `helm/refusals.rs` those that come to
//! nothing, `helm/command_line.rs` what is typed; `helm/fence.rs` programs in its place that want out, `helm/container.rs` the same
//! where namespaces are refused; `helm/inflated.rs` has charts in kustomizations (`helm/cases*.rs`), compared with the real kustomize; and
//! `helm/daemon.rs` and `helm/published.rs` a daemon on a real API server that follows a repository with a chart, or one that is
//! published elsewhere, `helm/ranges.rs` one without a digest, `helm/signed_charts.rs` one that is signed, `helm/values_from.rs` values in ConfigMaps and Secrets, and
//! `helm/dependencies.rs` what a chart needs and does not have.

pub(crate) mod cases;
pub(crate) mod cases_of_values;
pub(crate) mod cases_refused;
pub(crate) mod charts;
pub(crate) mod command_line;
pub(crate) mod container;
pub(crate) mod daemon;
pub(crate) mod decrypted;
pub(crate) mod dependencies;
pub(crate) mod fence;
pub(crate) mod inflated;
pub(crate) mod published;
pub(crate) mod ranges;
pub(crate) mod refusals;
pub(crate) mod signed_charts;
pub(crate) mod values_from;

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use moorline::helm::{Helm, HelmError, IsolationLevel};
use moorline::object::Object;
use moorline::render::helm::Capabilities;
use moorline::render::{RenderOptions, Rendered};
use moorline::tree::FileTree;

/// A helm of ours that starts this program, and its folder.
pub(crate) fn helm_of(program: &Path) -> (Helm, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let helm = Helm::new(program, env!("CARGO_BIN_EXE_moorline"), folder.path().join("work"));
    (helm.with_isolation(IsolationLevel::BestEffort), folder)
}

/// A program that is these lines of a shell.
pub(crate) fn script(folder: &Path, lines: &str) -> PathBuf {
    let place = folder.join("helm.sh");
    std::fs::write(&place, format!("#!/bin/sh\n{lines}\n")).unwrap();
    std::fs::set_permissions(&place, std::fs::Permissions::from_mode(0o755)).unwrap();
    place
}

/// Returns the objects of a chart at `chart`, or all problems.
pub(crate) async fn objects(
    helm: &Helm,
    tree: &FileTree,
    options: RenderOptions,
    server: Capabilities,
) -> Result<Vec<Object>, String> {
    let told = |problems: Vec<String>| problems.join("\n");
    match helm.render(tree.clone(), options, server).await {
        Ok(Rendered::Complete(complete)) => {
            Ok(complete.objects().iter().map(|packed| packed.object()).collect())
        }
        Ok(Rendered::Incomplete(incomplete)) => {
            Err(told(incomplete.problems.iter().map(|it| format!("{}: {it}", it.reason())).collect()))
        }
        Err(failure) => Err(format!("{}: {failure}", failure.reason())),
    }
}

#[tokio::test]
async fn without_helm_it_is_said_what_to_do() {
    let (helm, _folder) = helm_of(Path::new("/nowhere/helm"));
    let tree = FileTree::from_texts([("chart/Chart.yaml", "apiVersion: v2\nname: shop\nversion: 1.0.0\n")]);
    let options = RenderOptions { path: "chart".into(), ..RenderOptions::default() };
    let failure = helm.render(tree, options, Capabilities::default()).await.unwrap_err();
    assert!(matches!(failure, HelmError::Missing { .. }) && failure.is_permanent());
    let text = failure.to_string();
    assert!(text.contains("/nowhere/helm") && text.contains("image with helm"), "{text}");
}
