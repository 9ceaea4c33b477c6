//! `spec.render`: settings that turn the files of a folder into objects.
//!
//! In: YAML.
//! Out: [`RenderSpec`], which the controller validates again and converts for the renderer.

#![expect(
    unreachable_pub,
    reason = "the derive of the schema copies each struct into a function, with its pub"
)]

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{HelmSpec, KustomizeSpec, SubstituteSpec, yes};

/// Options for rendering the files to objects.
#[derive(Serialize, Deserialize, KubeSchema, Debug, Clone, Default, PartialEq)]
#[x_kube(validation = Rule::new("!has(self.helm) || self.type == 'Auto' || self.type == 'Helm'")
    .message("helm is valid only for type Helm: remove it, or change the type"),
    validation = Rule::new("!has(self.kustomize) || (self.type != 'Helm' && !has(self.helm))")
    .message("kustomize is not valid for a Helm chart: remove it, or remove helm and the type Helm"))]
pub struct RenderSpec {
    /// Type of the folder: Auto detects a Helm chart, then a kustomization, and otherwise reads plain manifests.
    #[serde(default, rename = "type")]
    pub kind: RenderType,

    /// Options for a folder of plain manifests.
    #[serde(default)]
    pub plain: PlainSpec,

    /// Options that are added to the kustomization of the folder. With type Auto, a folder without one gets a generated
    /// kustomization, of its manifests and the kustomizations in its subfolders. With type Plain, a folder always gets one, of its
    /// manifests only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kustomize: Option<KustomizeSpec>,

    /// Options for a Helm chart. If it is set, a folder without a chart is refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub helm: Option<HelmSpec>,

    /// Variables in manifests, such as `${CLUSTER_NAME}`, and their values. If it is absent, texts of this form are not changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub substitute: Option<SubstituteSpec>,
}

/// Type of a folder.
#[derive(Serialize, Deserialize, JsonSchema, Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum RenderType {
    /// A Helm chart if the folder is one, else a kustomization if the folder has one, else plain manifests.
    #[default]
    Auto,
    /// Plain manifests. A kustomization among them is refused.
    Plain,
    /// A kustomization, which is built as kustomize builds it, without running kustomize. Remote bases need the setting remoteBases.
    Kustomize,
    /// A Helm chart, with the charts that it needs in its folder `charts`. It is rendered by helm, which the image variant with
    /// helm has.
    Helm,
}

/// Options for a folder of plain manifests.
#[derive(Serialize, Deserialize, KubeSchema, Debug, Clone, PartialEq)]
pub struct PlainSpec {
    /// Also read subfolders of the path.
    #[serde(default = "yes")]
    pub recurse: bool,

    /// Only files that match one of these globs, relative to the path, are read; all if there are none. `*` stays in
    /// a folder, `**` does not.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), inner(length(min = 1, max = 256)), extend("x-kubernetes-list-type" = "set"))]
    #[x_kube(validation = Rule::new(r"self.all(glob, !glob.matches(r'^/|(^|/)[.][.](/|$)|[*]{3}'))")
        .message("write globs relative to the path, such as *.yaml or base/**: no / in front, no .. and no *** in it"))]
    pub include: Vec<String>,

    /// Files that match one of these globs, relative to the path, are not read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), inner(length(min = 1, max = 256)), extend("x-kubernetes-list-type" = "set"))]
    #[x_kube(validation = Rule::new(r"self.all(glob, !glob.matches(r'^/|(^|/)[.][.](/|$)|[*]{3}'))")
        .message("write globs relative to the path, such as tests/** or values.yaml: no / in front, no .. and no *** in it"))]
    pub exclude: Vec<String>,
}

impl Default for PlainSpec {
    fn default() -> Self {
        Self { recurse: yes(), include: Vec::new(), exclude: Vec::new() }
    }
}
