//! `spec.render.kustomize`: options over the kustomization that lies in Git.
//!
//! In: YAML.
//! Out: [`KustomizeSpec`], which the controller validates again.

#![expect(
    unreachable_pub,
    reason = "the derive of the schema copies each struct into a function, with its pub"
)]

use std::collections::BTreeMap;

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Options over the kustomization of the folder, as if they were written in it. With them, even with `{}`, a folder
/// without a kustomization is built as one of its manifests.
#[derive(Serialize, Deserialize, KubeSchema, Debug, Clone, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct KustomizeSpec {
    /// Patches, applied after those of the kustomization. Do not put passwords here: everyone who may read the Sync can
    /// read them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub patches: Vec<KustomizePatch>,

    /// Images with another name, tag or digest; each replaces the entry of the kustomization with the same name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub images: Vec<KustomizeImage>,

    /// Folders of components in the same repository, relative to `path`, added after those of the kustomization.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32), inner(length(min = 1, max = 1024)), extend("x-kubernetes-list-type" = "set"))]
    #[x_kube(validation = Rule::new(r"self.all(path, !path.matches(r'^/|//|[?#\s\\]|^[A-Za-z][-+.A-Za-z0-9]*:|^[^/]*@[^/]*:|^github[.]com/'))")
        .message("write folders of the same repository, relative to the path, such as ../components/tls: components are not fetched from URLs")
        .reason(Reason::FieldValueForbidden))]
    pub components: Vec<String>,

    /// Prefix of all names, in place of the one of the kustomization; references to them are changed as well.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 200))]
    #[x_kube(validation = Rule::new("self.matches('^[-.:A-Za-z0-9]+$')")
        .message("write letters, digits, -, . and :, such as staging-"))]
    pub name_prefix: Option<String>,

    /// Suffix of all names, in place of the one of the kustomization; references to them are changed as well.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 200))]
    #[x_kube(validation = Rule::new("self.matches('^[-.:A-Za-z0-9]+$')")
        .message("write letters, digits, -, . and :, such as -staging"))]
    pub name_suffix: Option<String>,

    /// Namespace of all namespaced objects, also of those that name another one, in place of the one of the
    /// kustomization. It is not created; targetNamespace is for objects that name none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63))]
    #[x_kube(validation = Rule::new(r"self.matches(r'^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')")
        .message("write the name of a namespace: lower-case letters, digits and -"))]
    pub namespace: Option<String>,

    /// Labels of all objects, in place of their own ones of the same key. Selectors and Pod templates stay unchanged.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 64))]
    #[x_kube(validation = Rule::new(r"self.all(key, size(key) <= 317 && key.matches(r'^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-._A-Za-z0-9]*[A-Za-z0-9])?$'))")
        .message("write keys of labels, such as team or example.com/team"),
        validation = Rule::new(r"self.all(key, self[key].matches(r'^([A-Za-z0-9]([-._A-Za-z0-9]*[A-Za-z0-9])?)?$'))")
        .message("write values of labels: letters, digits, -, _ and ., beginning and ending with a letter or digit"))]
    pub labels: BTreeMap<String, LabelText>,

    /// Annotations of all objects, in place of their own ones of the same key. Pod templates stay unchanged.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 64))]
    #[x_kube(validation = Rule::new(r"self.all(key, size(key) <= 317 && key.matches(r'^([A-Za-z0-9]([-A-Za-z0-9.]*[A-Za-z0-9])?/)?[A-Za-z0-9]([-._A-Za-z0-9]*[A-Za-z0-9])?$'))")
        .message("write keys of annotations, such as example.com/owner"))]
    pub annotations: BTreeMap<String, AnnotationText>,
}

/// A patch of objects.
#[derive(Serialize, Deserialize, JsonSchema, Debug, Clone, Default, PartialEq)]
pub struct KustomizePatch {
    /// A strategic merge patch, or a JSON patch (RFC 6902) as a list of operations; YAML or JSON.
    #[schemars(length(min = 1, max = 65536))]
    pub patch: String,

    /// The objects that are patched. A strategic merge patch without a target changes the object that it names; a JSON patch
    /// needs a target.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<PatchTarget>,
}

/// Selects objects: all given fields have to match. An empty target selects all objects.
#[derive(Serialize, Deserialize, JsonSchema, Debug, Clone, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct PatchTarget {
    /// Regular expression for the whole API group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub group: Option<String>,

    /// Regular expression for the whole API version, without the group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub version: Option<String>,

    /// Regular expression for the whole kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub kind: Option<String>,

    /// Regular expression for the whole name, before or after it is changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub name: Option<String>,

    /// Regular expression for the whole namespace, before or after it is changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub namespace: Option<String>,

    /// Label selector, such as `app=web,tier in (front, back)`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1024))]
    pub label_selector: Option<String>,

    /// Selector of annotations, written like a label selector.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1024))]
    pub annotation_selector: Option<String>,
}

/// Another name, tag or digest of an image.
#[derive(Serialize, Deserialize, KubeSchema, Debug, Clone, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("has(self.newName) || has(self.newTag) || has(self.digest)")
    .message("write at least one of newName, newTag and digest"))]
pub struct KustomizeImage {
    /// Name of the image in the manifests, without tag and digest; a regular expression.
    #[schemars(length(min = 1, max = 512))]
    pub name: String,

    /// The new name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 512))]
    #[x_kube(validation = Rule::new(r"!self.matches(r'[\s@]') && !self.contains('://')")
        .message("write the name of an image, such as registry.example.com/shop/web, without a tag and a digest"))]
    pub new_name: Option<String>,

    /// The new tag.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 128))]
    #[x_kube(validation = Rule::new("self.matches('^[A-Za-z0-9_][-.A-Za-z0-9_]*$')")
        .message("write a tag, such as v1.2.3"))]
    pub new_tag: Option<String>,

    /// The new digest, in place of a tag.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 256))]
    #[x_kube(validation = Rule::new("self.matches('^[A-Za-z0-9+._-]+:[0-9a-fA-F]{32,}$')")
        .message("write a digest, such as sha256: and 64 digits from 0 to f"))]
    pub digest: Option<String>,
}

/// The value of a label.
#[derive(Serialize, Deserialize, JsonSchema, Debug, Clone, Default, PartialEq)]
pub struct LabelText(#[schemars(length(max = 63))] pub String);

/// The value of an annotation.
#[derive(Serialize, Deserialize, JsonSchema, Debug, Clone, Default, PartialEq)]
pub struct AnnotationText(#[schemars(length(max = 4096))] pub String);
