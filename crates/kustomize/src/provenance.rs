//! Annotations of `buildMetadata`: origin of an object, and transformers that processed it.
//!
//! In: the path from the outermost kustomization to a file. Out: annotations as kustomize writes
//! them. As in kustomize they are present during the build, where patches and selectors see them.
//! Annotations with these keys from other authors are refused.

use serde_json::{Map, Value};

use super::error::{BuildError, ErrorClass};
use super::remote::Remote;
use super::resource::Resource;
use super::resource_files;

/// Annotation with the origin of an object.
pub(super) const ORIGIN: &str = "config.kubernetes.io/origin";
/// Annotation with the transformers that processed an object.
pub(super) const CHANGES: &str = "alpha.config.kubernetes.io/transformations";

/// A position as written: a path from the outermost kustomization, or from the root of another
/// repository.
#[derive(Debug, Clone, Default)]
pub(super) struct SourcePath {
    path: String,
    repository: String,
    reference: String,
}

/// The annotations that were written here, to detect changes by others.
#[derive(Debug, Clone, Default)]
pub(super) struct WrittenAnnotations {
    source: SourcePath,
    origin: String,
    changes: String,
}

impl SourcePath {
    /// Returns the position of an entry, relative to this one.
    pub(super) fn append(&self, entry: &str) -> Self {
        let Some(Ok(remote)) = Remote::parse(entry) else {
            return Self { path: join_paths(&self.path, entry), ..self.clone() };
        };
        // Kustomize names the folder into which it would have cloned the repository.
        let path = if remote.path.is_empty() { "notCloned".to_owned() } else { join_paths("", &remote.path) };
        Self { path, repository: remote.repository, reference: remote.reference.unwrap_or_default() }
    }

    fn text(&self) -> Option<String> {
        lines(&[("path", &self.path), ("repo", &self.repository), ("ref", &self.reference)])
    }

    /// Annotation text of a plugin that is configured in this file.
    fn by(&self, configured: [(&str, &str); 4]) -> Option<String> {
        let places = [("repo", &*self.repository), ("ref", &*self.reference), ("configuredIn", &*self.path)];
        let by: String = lines(&configured)?.lines().map(|line| format!("  {line}\n")).collect();
        Some(format!("{}configuredBy:\n{by}", lines(&places)?))
    }

    /// Annotation text of a transformer behind a field of a kustomization.
    pub(super) fn by_field(&self, kustomization: &str, kind: &str) -> Option<String> {
        let name = kustomization.rsplit('/').next().unwrap_or_default();
        let file = Self { path: join_paths(&self.path, name), ..self.clone() };
        file.by([("apiVersion", "builtin"), ("kind", kind), ("name", ""), ("namespace", "")])
    }
}

/// Annotation text of a generator or transformer plugin; none if its object has no origin.
pub(super) fn by_plugin(plugin: &Resource) -> Option<String> {
    plugin.texts("annotations")?.get(ORIGIN)?;
    plugin.marks.source.by([
        ("apiVersion", plugin.api_version()),
        ("kind", plugin.kind()),
        ("name", plugin.name()),
        ("namespace", &*plugin.namespace()),
    ])
}

/// Records the file of an object.
pub(super) fn record_origin(resource: &mut Resource, source: &SourcePath) -> Result<(), BuildError> {
    let text = source.text().ok_or_else(|| unsupported_style(resource))?;
    resource.marks.source = source.clone();
    // The other annotations stay as they are written.
    insert(resource, ORIGIN, &text);
    resource.marks.origin = text;
    Ok(())
}

/// Records the generator of an object.
pub(super) fn record_generator(
    resource: &mut Resource,
    source: &SourcePath,
    mark: Option<String>,
) -> Result<(), BuildError> {
    let mark = mark.ok_or_else(|| unsupported_style(resource))?;
    if resource.texts("annotations").is_some_and(|it| it.contains_key(ORIGIN)) {
        return Err(written_by_others(resource, ORIGIN));
    }
    resource.marks.source = SourcePath { path: String::new(), ..source.clone() };
    set_origin(resource, mark)
}

/// Records a transformer that processed these objects, with or without changes.
pub(super) fn record_transformer(resources: &mut [Resource], mark: Option<&str>) -> Result<(), BuildError> {
    for resource in resources {
        let mark = mark.ok_or_else(|| unsupported_style(resource))?;
        let text = |key| resource.texts("annotations").and_then(|it| it.get(key));
        match text(ORIGIN) {
            None => set_origin(resource, mark.to_owned())?,
            Some(origin) if *origin != resource.marks.origin => {
                return Err(written_by_others(resource, ORIGIN));
            }
            Some(_) => {
                let mut all = match text(CHANGES) {
                    None => String::new(),
                    Some(changes) if *changes == resource.marks.changes => resource.marks.changes.clone(),
                    Some(_) => return Err(written_by_others(resource, CHANGES)),
                };
                for (at, line) in mark.lines().enumerate() {
                    all.push_str(if at == 0 { "- " } else { "  " });
                    all.push_str(line);
                    all.push('\n');
                }
                set(resource, CHANGES, &all)?;
                resource.marks.changes = all;
            }
        }
    }
    Ok(())
}

/// Lets a generated object replace another: recorded changes are kept, and on a merge the origin as
/// well.
pub(super) fn take_over(made: &mut Resource, old: &Resource, merges: bool) -> Result<(), BuildError> {
    if made.marks.origin.is_empty() {
        return Ok(());
    }
    made.marks.changes = old.marks.changes.clone();
    match old.texts("annotations").and_then(|it| it.get(ORIGIN)) {
        Some(origin) if merges && *origin == old.marks.origin => {
            made.marks.source = old.marks.source.clone();
            set_origin(made, old.marks.origin.clone())
        }
        Some(_) if merges => Err(written_by_others(old, ORIGIN)),
        _ => Ok(()),
    }
}

fn set_origin(resource: &mut Resource, text: String) -> Result<(), BuildError> {
    set(resource, ORIGIN, &text)?;
    resource.marks.origin = text;
    Ok(())
}

fn set(resource: &mut Resource, key: &str, text: &str) -> Result<(), BuildError> {
    // All annotations become texts when kustomize writes one of them.
    resource.convert_to_texts("annotations")?;
    insert(resource, key, text);
    Ok(())
}

fn insert(resource: &mut Resource, key: &str, text: &str) {
    resource.spelling.set_text(&format!("annotations/{key}"), text);
    let Some(metadata) = resource.metadata_mut() else { return };
    let annotations = metadata.entry("annotations").or_insert(Value::Null);
    if !annotations.is_object() {
        *annotations = Value::Object(Map::new());
    }
    if let Some(annotations) = annotations.as_object_mut() {
        annotations.insert(key.to_owned(), text.into());
    }
}

fn unsupported_style(resource: &Resource) -> BuildError {
    let text = format!(
        "buildMetadata: the origin of {} has a path or name that YAML must quote, which is not supported; rename it",
        resource.id()
    );
    resource_files::resource_error(&resource.origin, text).with_class(ErrorClass::Unsupported)
}

fn written_by_others(resource: &Resource, key: &str) -> BuildError {
    let text = format!(
        "buildMetadata: the annotation {key} of {} was written by hand, which is not supported; remove it",
        resource.id()
    );
    resource_files::resource_error(&resource.origin, text).with_class(ErrorClass::Unsupported)
}

/// Formats fields as YAML without the empty ones; none if the style of a value is unknown.
fn lines(fields: &[(&str, &str)]) -> Option<String> {
    let mut text = String::new();
    for (key, value) in fields.iter().filter(|(_, value)| !value.is_empty()) {
        match (is_plain(value), is_word(value)) {
            (true, _) => text.push_str(&format!("{key}: {value}\n")),
            (false, true) => text.push_str(&format!("{key}: \"{value}\"\n")),
            (false, false) => return None,
        }
    }
    Some(text)
}

/// True if YAML of every version reads the unquoted text as this text.
fn is_plain(text: &str) -> bool {
    let mut characters = text.chars();
    let starts = match characters.next() {
        Some('.' | '/') => text.chars().any(|it| it.is_ascii_alphabetic()),
        // With two letters and no base prefix, it is not a number.
        Some(first) if first.is_ascii_digit() => {
            let letters = text.chars().filter(char::is_ascii_alphabetic).count();
            letters >= 2 && !text.chars().nth(1).is_some_and(|it| "xobXOB".contains(it))
        }
        Some(first) => first.is_ascii_alphabetic(),
        None => false,
    };
    let known = |it: char| it.is_ascii_alphanumeric() || "./_-:@+=".contains(it);
    // A colon is special in YAML unless a slash follows; times of day contain it as well.
    let colons = text.split(':').skip(1).all(|rest| rest.starts_with('/'));
    starts
        && colons
        && text.chars().all(known)
        && !is_word(text)
        && !text.starts_with(".i")
        && !text.starts_with(".n")
}

/// True if some version of YAML reads the text as a boolean or null, so that kustomize quotes it.
fn is_word(text: &str) -> bool {
    const WORDS: [&str; 9] = ["y", "n", "yes", "no", "on", "off", "true", "false", "null"];
    let (lower, upper) = (text.to_ascii_lowercase(), text.to_ascii_uppercase());
    let is_title = text.get(1..).is_some_and(|rest| rest == &lower[1..]);
    WORDS.contains(&lower.as_str()) && (text == lower || text == upper || is_title)
}

/// Joins two paths and resolves `..` where possible.
fn join_paths(first: &str, second: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in first.split('/').chain(second.split('/')) {
        match part {
            "" | "." => {}
            ".." if parts.last().is_some_and(|last| *last != "..") => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    if parts.is_empty() { ".".to_owned() } else { parts.join("/") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_in_another_repository_names_it() {
        let folder =
            SourcePath::default().append("../base").append("https://example.com/group/it//deep/er?ref=v1");
        let file = folder.append("../a.yaml");
        assert_eq!(
            file.text().as_deref(),
            Some("path: deep/a.yaml\nrepo: https://example.com/group/it\nref: v1\n")
        );
        let mark = folder
            .by_field("https://example.com/group/it at 1f0c/deep/er/kustomization.yml", "LabelTransformer");
        let expect = "repo: https://example.com/group/it\nref: v1\nconfiguredIn: deep/er/kustomization.yml\n\
                      configuredBy:\n  apiVersion: builtin\n  kind: LabelTransformer\n";
        assert_eq!(mark.as_deref(), Some(expect));
    }

    #[test]
    fn a_text_that_yaml_quotes_is_not_guessed() {
        for (text, plain) in [
            ("a.yaml", true),
            ("../../b/c", true),
            ("https://example.com/a", true),
            ("1f0c9aa", true),
            ("12e5", false),
            ("0x1f", false),
            ("1.50", false),
            ("2001-12-14", false),
            ("yes", false),
            ("On", false),
            ("..", false),
            (".inf", false),
            ("a b", false),
            ("a#", false),
            ("a:", false),
            ("", false),
        ] {
            assert_eq!(is_plain(text), plain, "{text}");
        }
    }
}
