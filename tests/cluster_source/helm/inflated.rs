//! Charts in kustomizations come to what `kustomize build --enable-helm` makes of them, or are refused.
//!
//! In: small trees, whose folder `overlay` is built. Out: the objects in their order, compared with what was recorded of kustomize 5.8.1
//! with the helm of `make tools` in `tests/helm/inflated.json` (`tests/kustomize/record.sh`).

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use moorline::helm::Helm;
use moorline::render::{RenderOptions, SourceType, build_kustomization};
use moorline::tree::FileTree;
use moorline::yaml::{Dialect, read};
use serde_json::{Value, json};

use super::cases::{Case, PLACES};
use super::cases_of_values::VALUED;
use super::cases_refused;
use super::helm_of;
use moorline_test_support::programs::find;

const RECORDED: &str = "tests/helm/inflated.json";
const REFUSED: &str = "refused";

fn cases() -> impl Iterator<Item = &'static Case> {
    [PLACES, VALUED, cases_refused::REFUSED].into_iter().flatten()
}

/// The version of Kubernetes that the recorded helm has by itself.
const RECORDED_VERSION: &str = "\"v1.35.0\"";

/// The recorded objects, with the version of Kubernetes that this helm has by itself.
fn recorded(program: &Path) -> BTreeMap<String, Value> {
    let place = Path::new(env!("CARGO_MANIFEST_DIR")).join(RECORDED);
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("templates")).unwrap();
    let chart = "apiVersion: v2\nname: a\nversion: 1.0.0\n";
    std::fs::write(folder.path().join("Chart.yaml"), chart).unwrap();
    let template = "own: {{ .Capabilities.KubeVersion.Version }}\n";
    std::fs::write(folder.path().join("templates/a.yaml"), template).unwrap();
    let output = Command::new(program).arg("template").arg(folder.path()).output().unwrap();
    let printed = String::from_utf8(output.stdout).unwrap();
    let own = printed.lines().find_map(|line| line.strip_prefix("own: ")).unwrap();
    let recorded = std::fs::read_to_string(place).unwrap();
    serde_json::from_str(&recorded.replace(RECORDED_VERSION, &format!("\"{own}\""))).unwrap()
}

/// The objects of a case, or why there are none.
async fn built(helm: &Helm, case: &Case) -> Result<Value, String> {
    let options =
        RenderOptions { path: "overlay".into(), kind: SourceType::Kustomize, ..RenderOptions::default() };
    let printed = helm.render_kustomization("", case.tree(), options).await;
    let (tree, _) = printed.map_err(|failure| failure.to_string())?;
    let objects = build_kustomization(&tree, "overlay").map_err(|fault| fault.to_string())?;
    Ok(objects.into_iter().map(Value::Object).collect())
}

#[tokio::test]
async fn charts_of_kustomizations_come_to_what_the_tool_makes_of_them() {
    let Some(program) = find("helm") else { return };
    let program = std::path::absolute(program).unwrap();
    let (helm, _folder) = helm_of(&program);
    let recorded = recorded(&program);
    let mut wrong = Vec::new();
    for case in cases() {
        let expected = recorded.get(case.name).unwrap_or_else(|| panic!("{} was not recorded", case.name));
        let found = built(&helm, case).await;
        let differs = match (&found, case.refused) {
            (Ok(found), None) => found != expected,
            (Err(told), Some(refused)) => !told.contains(refused) || *expected != json!(REFUSED),
            (Err(_), None) | (Ok(_), Some(_)) => true,
        };
        if differs {
            wrong.push(format!("{}: {found:#?}\nexpected {expected:#}", case.name));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

/// Asks the real tool about every case, if it is named.
#[test]
fn the_answers_are_recorded() {
    let Some(tool) = std::env::var_os("MOORLINE_RECORD_KUSTOMIZE") else { return };
    let helm = std::path::absolute(find("helm").expect("a helm")).unwrap();
    let mut all = BTreeMap::new();
    for case in cases() {
        let place = tempfile::tempdir().unwrap();
        for (path, entry) in case.tree().entries() {
            let moorline::tree::TreeEntry::File(bytes) = entry else { continue };
            let path = place.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, bytes).unwrap();
        }
        let mut command = Command::new(&tool);
        command
            .args(["build", "--enable-helm", "--helm-command"])
            .arg(&helm)
            .arg(place.path().join("overlay"));
        // There is no way to the net.
        for name in ["HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"] {
            command.env(name, "http://127.0.0.1:9");
        }
        let output = command.output().unwrap();
        let answer: Value = match output.status.success() {
            true => {
                let documents = read("output", &output.stdout, Dialect::Kustomize).unwrap();
                documents.into_iter().map(|document| document.value).collect()
            }
            false => {
                println!("{}: {}", case.name, String::from_utf8_lossy(&output.stderr).trim());
                json!(REFUSED)
            }
        };
        all.insert(case.name, answer);
    }
    let text = serde_json::to_string_pretty(&all).unwrap() + "\n";
    std::fs::write(Path::new(env!("CARGO_MANIFEST_DIR")).join(RECORDED), text).unwrap();
}

impl Case {
    fn tree(&self) -> FileTree {
        FileTree::from_texts(self.files.iter().copied())
    }
}
