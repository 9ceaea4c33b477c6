//! Options of the caller over the outermost kustomization.
//!
//! In: the folder of a build, [`KustomizeOptions`], and the resources if its kustomization is
//! generated. Out: the outermost kustomization with the options in it, as if they were written
//! there: a prefix, suffix or namespace replaces the written one, an image replaces the one of the
//! same name, patches and components follow the written ones. Labels and annotations are set on
//! the finished objects.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::BuiltObject;
use super::build_trace::StepRecord;
use super::error::{Built, ErrorClass, FieldLocation};
use super::files::{Files, Folder};
use super::kustomization::{self, Image, Kustomization, Patch};
use super::node::LocatedText;
use super::remote::Remote;
use super::select::Selector;

/// Start of a build: a folder, and what the caller adds to it.
#[derive(Debug, Clone, Copy)]
pub struct BuildRoot<'a> {
    /// Path of the folder in the tree.
    pub path: &'a str,
    /// Options over its kustomization.
    pub options: Option<&'a KustomizeOptions>,
    /// Resources of a generated kustomization, relative to the folder; none reads the folder's own
    /// one.
    pub generated: Option<&'a [String]>,
}

impl<'a> From<&'a str> for BuildRoot<'a> {
    fn from(path: &'a str) -> Self {
        Self { path, options: None, generated: None }
    }
}

impl<'a> From<&'a String> for BuildRoot<'a> {
    fn from(path: &'a String) -> Self {
        path.as_str().into()
    }
}

/// Options over a kustomization.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KustomizeOptions {
    /// The field that holds the options, for messages, such as `spec.render.kustomize`.
    pub field: Box<str>,
    /// Patches, after those of the kustomization.
    pub patches: Vec<PatchOption>,
    /// Images, each in place of the one with the same name.
    pub images: Vec<ImageOption>,
    /// Folders of components, relative to the folder of the build.
    pub components: Vec<String>,
    /// Prefix of names; empty keeps the one of the kustomization.
    pub name_prefix: String,
    /// Suffix of names; empty keeps the one of the kustomization.
    pub name_suffix: String,
    /// Namespace of all objects; empty keeps the one of the kustomization.
    pub namespace: String,
    /// Labels of the finished objects, without selectors and templates.
    pub labels: BTreeMap<String, String>,
    /// Annotations of the finished objects, without templates.
    pub annotations: BTreeMap<String, String>,
}

/// An inline patch.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PatchOption {
    /// A strategic merge patch or a JSON patch, as YAML or JSON.
    pub patch: String,
    /// The objects that it changes; none for the object that a merge patch names.
    pub target: Option<PatchTarget>,
}

/// Selector of objects; each text but the selectors is a regular expression over the whole value.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PatchTarget {
    /// API group.
    pub group: String,
    /// API version.
    pub version: String,
    /// Kind.
    pub kind: String,
    /// Name.
    pub name: String,
    /// Namespace.
    pub namespace: String,
    /// Label selector.
    pub label_selector: String,
    /// Selector of annotations.
    pub annotation_selector: String,
}

/// Another name, tag or digest of an image.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ImageOption {
    /// Name of the image in the manifests.
    pub name: String,
    /// New name; empty keeps the name.
    pub new_name: String,
    /// New tag.
    pub new_tag: String,
    /// New digest.
    pub digest: String,
}

/// True for a path of a component: relative, and no URL of another repository.
pub fn is_component_path(path: &str) -> bool {
    !path.is_empty() && !path.starts_with('/') && !path.contains('\n') && Remote::parse(path).is_none()
}

impl BuildRoot<'_> {
    /// Returns the outermost kustomization.
    pub(super) fn kustomization(&self, files: &Files<'_>, folder: &Folder) -> Built<Kustomization> {
        let mut outer = match self.generated {
            Some(resources) => {
                // The result depends on every file of the folder, and on new ones.
                files.record_path(&folder.path);
                self.generate(folder, resources)
            }
            None => {
                let (file, bytes) = files.kustomization(folder, &FieldLocation::file(self.path))?;
                kustomization::read(&file, &files.display_path(&file), &bytes, &|| files.is_awaited())?
            }
        };
        if let Some(options) = self.options {
            options.add_to(&mut outer)?;
        }
        Ok(outer)
    }

    fn generate(&self, folder: &Folder, resources: &[String]) -> Kustomization {
        let entry = |resource: &String| {
            let path = match folder.path.as_str() {
                "" => resource.clone(),
                folder => format!("{folder}/{resource}"),
            };
            LocatedText { text: format!("./{resource}"), at: FieldLocation::file(&path) }
        };
        let at = match self.options {
            Some(options) => options.location(),
            None => FieldLocation::file(&folder.path),
        };
        Kustomization { at, resources: resources.iter().map(entry).collect(), ..Kustomization::default() }
    }
}

impl KustomizeOptions {
    fn location(&self) -> FieldLocation {
        FieldLocation::option(&self.field)
    }

    /// Adds the options to a kustomization, as if they were written in it.
    fn add_to(&self, outer: &mut Kustomization) -> Built<()> {
        let at = self.location();
        for (index, path) in self.components.iter().enumerate() {
            let at = at.key("components").item(index);
            if !is_component_path(path) {
                let text = "the path of a component is relative to the folder, and in the same repository";
                return Err(at.error(ErrorClass::Restricted, text));
            }
            outer.components.push(LocatedText { text: path.clone(), at });
        }
        let patches = self.patches.iter().enumerate();
        outer.patches.extend(patches.map(|(index, patch)| patch.to_patch(at.key("patches").item(index))));
        for (index, image) in self.images.iter().enumerate() {
            let image = image.to_image(at.key("images").item(index));
            match outer.images.iter_mut().find(|written| written.name == image.name) {
                Some(written) => *written = image,
                None => outer.images.push(image),
            }
        }
        let texts = [
            ("namespace", &self.namespace, &mut outer.namespace),
            ("namePrefix", &self.name_prefix, &mut outer.name_prefix),
            ("nameSuffix", &self.name_suffix, &mut outer.name_suffix),
        ];
        for (name, text, written) in texts.into_iter().filter(|(_, text, _)| !text.is_empty()) {
            written.clone_from(text);
            outer.from_options.push((name, at.key(name)));
        }
        Ok(())
    }

    /// Sets labels and annotations on the finished objects.
    pub(super) fn finish(&self, objects: &mut [BuiltObject], files: &Files<'_>, traced: bool) -> Built<()> {
        let at = self.location();
        for (name, texts) in [("labels", &self.labels), ("annotations", &self.annotations)] {
            let at = at.key(name);
            let bytes: usize = texts.iter().map(|(key, text)| key.len() + text.len()).sum();
            files.reserve((bytes as u64).saturating_mul(objects.len() as u64), &at)?;
            for object in objects.iter_mut().filter(|_| !texts.is_empty()) {
                let fields = set_texts(&mut object.body, name, texts);
                if traced && !fields.is_empty() {
                    object.notes.push(StepRecord { step: name.to_owned(), at: at.clone(), fields });
                }
            }
        }
        Ok(())
    }
}

/// Sets entries of a mapping in the metadata; returns the changed fields. A value of another type
/// stays, because the check of the object names it.
fn set_texts(body: &mut Map<String, Value>, name: &str, texts: &BTreeMap<String, String>) -> Vec<String> {
    let metadata = body.entry("metadata").or_insert_with(|| Value::Object(Map::new()));
    let Some(metadata) = metadata.as_object_mut() else { return Vec::new() };
    let entries = metadata.entry(name).or_insert(Value::Null);
    if entries.is_null() {
        *entries = Value::Object(Map::new());
    }
    let Some(entries) = entries.as_object_mut() else { return Vec::new() };
    let mut changed = Vec::new();
    for (key, text) in texts {
        if entries.get(key).and_then(Value::as_str) != Some(text) {
            changed.push(format!("metadata.{name}[{key:?}]"));
        }
        entries.insert(key.clone(), Value::String(text.clone()));
    }
    changed
}

impl PatchOption {
    fn to_patch(&self, at: FieldLocation) -> Patch {
        Patch {
            target: self.target.as_ref().map(|target| target.to_selector(at.key("target"))),
            at,
            path: String::new(),
            patch: self.patch.clone(),
            allow_name_change: false,
            allow_kind_change: false,
        }
    }
}

impl PatchTarget {
    fn to_selector(&self, at: FieldLocation) -> Selector {
        let Self { group, version, kind, name, namespace, label_selector, annotation_selector } =
            self.clone();
        Selector {
            at,
            group,
            version,
            kind,
            name,
            namespace,
            annotations: annotation_selector,
            labels: label_selector,
        }
    }
}

impl ImageOption {
    fn to_image(&self, at: FieldLocation) -> Image {
        let Self { name, new_name, new_tag, digest } = self.clone();
        Image { name, new_name, new_tag, digest, tag_suffix: String::new(), at }
    }
}
