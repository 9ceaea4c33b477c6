//! Chooses the layers of an artifact that hold its files.
//!
//! In: the layers in a manifest.
//! Out: the only layer that is meant; or several, as `oras push` makes them, if each has the path
//! of its file or folder as its title. Otherwise a refusal says what a person can do.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use super::super::chart::Digest;
use super::archive_files::{shown, sound_path};
use super::artifact_error::ArtifactError;
use super::manifest::{CONTENT, MAX_LAYER_BYTES};
use super::registry_address::LayerSelection;

/// Maximum number of layers that are read together; each is a request.
const MAX_LAYERS: usize = 1000;

/// Annotation of a layer with the path of its file or folder.
const TITLE: &str = "org.opencontainers.image.title";

/// Annotation of a layer that is the archive of a folder, with the value `true`.
const UNPACK: &str = "io.deis.oras.content.unpack";

/// Maximum number of media types in a message.
const MAX_SHOWN: usize = 5;

/// Advice for layers that nothing tells apart.
const ADVICE: &str = "push the files by moorline push or oras push, which name them";

/// A layer in a manifest.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct LayerEntry {
    pub(super) digest: Digest,
    pub(super) size: u64,
    pub(super) media_type: Box<str>,
    pub(super) place: LayerPlace,
    /// Its first byte in the file of all layers.
    pub(super) start: u64,
    /// True if an earlier layer has the same content, and thus the same start.
    pub(super) is_repeated: bool,
}

/// Place of the files of a layer.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum LayerPlace {
    /// The only layer: an archive, or a file of this name.
    Only(Box<str>),
    /// A file at this path.
    File(Box<str>),
    /// An archive of the folder at this path; the root is empty.
    Folder(Box<str>),
}

impl LayerEntry {
    /// Returns the end of its bytes in the file of all layers.
    pub(super) fn end(&self) -> u64 {
        self.start.saturating_add(self.size)
    }
}

/// Returns the layers with the files.
pub(super) fn choose_layers(
    layers: &[Value],
    wanted: &LayerSelection,
) -> Result<Vec<LayerEntry>, ArtifactError> {
    match candidates(layers, wanted.media_type.as_deref())?.as_slice() {
        [only] => {
            let name = file_name(title(only).unwrap_or_default(), media_type(only)).into();
            let place = if wanted.copies { LayerPlace::File(name) } else { LayerPlace::Only(name) };
            read_layers(vec![(only, place)])
        }
        several => read_layers(titled(several, wanted)?),
    }
}

/// Returns the layers of a media type; or those of Flux, if there is only one; or else all.
fn candidates<'a>(layers: &'a [Value], wanted: Option<&str>) -> Result<Vec<&'a Value>, ArtifactError> {
    let is_of = |media: &str| layers.iter().filter(|layer| media_type(layer) == media).collect::<Vec<_>>();
    if layers.is_empty() {
        return refuse("has no layer");
    }
    match wanted.map(is_of) {
        Some(found) if found.is_empty() => {
            let types = types(&layers.iter().map(media_type).collect::<Vec<_>>());
            refuse(format!("has no layer of the media type in layer.mediaType; its layers are of {types}"))
        }
        Some(found) => Ok(found),
        None => match is_of(CONTENT) {
            found if found.len() == 1 => Ok(found),
            _ => Ok(layers.iter().collect()),
        },
    }
}

/// Returns several layers with their places, if each has one.
fn titled<'a>(
    layers: &[&'a Value],
    wanted: &LayerSelection,
) -> Result<Vec<(&'a Value, LayerPlace)>, ArtifactError> {
    if !layers.iter().all(|layer| title(layer).is_some()) {
        return refuse(untitled(layers, wanted));
    }
    if layers.len() > MAX_LAYERS {
        return refuse(format!("has {} layers; {MAX_LAYERS} are allowed", layers.len()));
    }
    let mut paths = HashSet::new();
    let place = |layer: &&'a Value| {
        let title = title(layer).unwrap_or_default();
        let path = sound_path(title).map_err(|problem| {
            ArtifactError::Manifest(format!("has a layer whose title {} is {problem}", shown(title)).into())
        })?;
        if !paths.insert(path.clone()) {
            return refuse(format!(
                "has two layers with the path {}",
                shown(path.as_deref().unwrap_or(title))
            ));
        }
        let is_folder = layer["annotations"][UNPACK] == "true" && !wanted.copies;
        match path {
            path if is_folder => Ok((*layer, LayerPlace::Folder(path.unwrap_or_default()))),
            Some(path) => Ok((*layer, LayerPlace::File(path))),
            None => refuse(format!("has a layer whose title {} names no file", shown(title))),
        }
    };
    layers.iter().map(place).collect()
}

/// Returns the problem of several layers that do not all have titles.
fn untitled(layers: &[&Value], wanted: &LayerSelection) -> String {
    let all: Vec<&str> = layers.iter().map(|layer| media_type(layer)).collect();
    let alone = |media: &&str| all.iter().filter(|other| other == &media).count() == 1;
    let single: Vec<&str> = all.iter().copied().filter(alone).collect();
    match &wanted.media_type {
        Some(_) => format!(
            "has several layers of the media type in layer.mediaType, and not each has the annotation {TITLE}; {ADVICE}"
        ),
        None if single.is_empty() => format!(
            "has {} layers of {}, and not each has the annotation {TITLE}; {ADVICE}",
            all.len(),
            types(&all)
        ),
        None => format!(
            "has {} layers, and not each has the annotation {TITLE}; choose one by layer.mediaType: {}",
            all.len(),
            types(&single)
        ),
    }
}

/// Reads digests and sizes, and gives each content its place in the file of all layers.
fn read_layers(chosen: Vec<(&Value, LayerPlace)>) -> Result<Vec<LayerEntry>, ArtifactError> {
    let (mut total, mut end, mut starts) = (0_u64, 0, HashMap::new());
    let mut found = Vec::new();
    for (layer, place) in chosen {
        let digest = layer["digest"].as_str().and_then(Digest::parse);
        let Some(digest) = digest else { return refuse("has a layer without a SHA-256") };
        let Some(size) = layer["size"].as_u64() else { return refuse("has a layer without a size") };
        total = total.saturating_add(size);
        if total > MAX_LAYER_BYTES {
            return refuse(format!("has layers of {total} bytes or more; {MAX_LAYER_BYTES} are allowed"));
        }
        let earlier = starts.get(&(digest, size)).copied();
        let start = earlier.unwrap_or(end);
        if earlier.is_none() {
            starts.insert((digest, size), start);
            end += size;
        }
        let media_type = media_type(layer).into();
        found.push(LayerEntry { digest, size, media_type, place, start, is_repeated: earlier.is_some() });
    }
    Ok(found)
}

/// Returns the name of the only layer, if it is a file: its title, or one by its media type.
fn file_name(title: &str, media_type: &str) -> String {
    let is_plain = !title.is_empty()
        && title.len() <= 255
        && ![".", ".."].contains(&title)
        && title.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-+".contains(&byte));
    match is_plain {
        true => title.to_owned(),
        false if media_type.contains("json") => "layer.json".to_owned(),
        false => "layer.yaml".to_owned(),
    }
}

fn media_type(layer: &Value) -> &str {
    layer["mediaType"].as_str().unwrap_or_default()
}

fn title(layer: &Value) -> Option<&str> {
    layer["annotations"][TITLE].as_str().filter(|title| !title.is_empty())
}

/// Returns media types for a message, each once.
fn types(all: &[&str]) -> String {
    let mut seen = HashSet::new();
    let once = all.iter().filter(|media| seen.insert(**media)).take(MAX_SHOWN);
    once.map(|media| shown(media)).collect::<Vec<_>>().join(", ")
}

fn refuse<T>(problem: impl Into<std::borrow::Cow<'static, str>>) -> Result<T, ArtifactError> {
    Err(ArtifactError::Manifest(problem.into()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn digest(text: &str) -> String {
        Digest::hash(text.as_bytes()).to_string()
    }

    fn layer(media: &str, name: &str) -> Value {
        json!({"mediaType": media, "digest": digest(name), "size": 3})
    }

    fn named(title: &str, unpack: &str) -> Value {
        let mut named = layer("a/one", title);
        named["annotations"] = json!({TITLE: title, UNPACK: unpack});
        named
    }

    fn all(layers: &[Value], wanted: Option<&str>, copies: bool) -> Result<Vec<LayerEntry>, String> {
        let wanted = LayerSelection { media_type: wanted.map(Into::into), copies };
        choose_layers(layers, &wanted).map_err(|error| error.to_string())
    }

    fn chosen(layers: &[Value], wanted: Option<&str>) -> Result<String, String> {
        match all(layers, wanted, false)?.as_slice() {
            [only] => Ok(only.digest.to_string()),
            several => Err(format!("{} layers", several.len())),
        }
    }

    #[test]
    fn one_layer_is_chosen_or_a_person_is_asked() {
        let (one, two, content) = (layer("a/one", "1"), layer("a/two", "2"), layer(CONTENT, "3"));
        assert_eq!(chosen(std::slice::from_ref(&one), None), Ok(digest("1")));
        assert_eq!(chosen(&[one.clone(), two.clone()], Some("a/two")), Ok(digest("2")));
        assert_eq!(chosen(&[one.clone(), content.clone()], None), Ok(digest("3")));
        let huge = |size: u64| json!({"mediaType": "a/b", "digest": digest("1"), "size": size});
        for (layers, wanted, part) in [
            (vec![], None, "no layer"),
            (vec![one.clone()], Some("a/two"), "its layers are of a/one"),
            (vec![one.clone(), two.clone()], None, "choose one by layer.mediaType: a/one, a/two"),
            // Only a type that one layer has can be chosen.
            (vec![one.clone(), two, one.clone()], None, "choose one by layer.mediaType: a/two"),
            (vec![one.clone(), one.clone()], Some("a/one"), "several layers"),
            (vec![one.clone(), one.clone()], None, "has 2 layers of a/one, and not each has the annotation"),
            (vec![one, named("a.yaml", "")], None, "push the files by moorline push or oras push"),
            (vec![content.clone(), content], None, "has 2 layers"),
            (vec![json!({"mediaType": "a/b", "digest": "sha512:1", "size": 1})], None, "SHA-256"),
            (vec![json!({"mediaType": "a/b", "digest": digest("1")})], None, "without a size"),
            (vec![json!({"mediaType": "a/b", "digest": digest("1"), "size": -1})], None, "without a size"),
            (vec![huge(1 << 40)], None, "are allowed"),
        ] {
            let problem = chosen(&layers, wanted).unwrap_err();
            assert!(problem.contains(part), "{part}: {problem}");
        }
    }

    #[test]
    fn layers_with_titles_are_all_chosen() {
        let (file, folder) = (named("./a.yaml", ""), named("sub", "true"));
        let both = [file.clone(), folder];
        let places = |copies| -> Vec<LayerPlace> {
            let found = all(&both, None, copies).unwrap();
            found.into_iter().map(|layer| layer.place).collect()
        };
        let file_at = |path: &str| LayerPlace::File(path.into());
        assert_eq!(places(false), [file_at("a.yaml"), LayerPlace::Folder("sub".into())]);
        assert_eq!(places(true), [file_at("a.yaml"), file_at("sub")]);
        assert_eq!(all(&both, Some("a/one"), false).unwrap().len(), 2, "the media type of both");
        let root = all(&[file.clone(), named(".", "true")], None, false).unwrap();
        assert_eq!(root[1].place, LayerPlace::Folder("".into()));
        let mut huge = named("b.yaml", "");
        huge["size"] = json!(MAX_LAYER_BYTES - 2);
        let many: Vec<Value> = (0..=MAX_LAYERS).map(|at| named(&at.to_string(), "")).collect();
        for (layers, part) in [
            (vec![file.clone(), named("../b.yaml", "")], "title ../b.yaml is a path that leads elsewhere"),
            (vec![file.clone(), named("/b.yaml", "true")], "title /b.yaml is a path that leads elsewhere"),
            (vec![file.clone(), named(&"b/".repeat(70), "")], "more than 64 folders"),
            (vec![file.clone(), named(".", "")], "names no file"),
            (vec![file.clone(), named("a.yaml", "true")], "two layers with the path a.yaml"),
            (vec![file, huge], "are allowed"),
            (many, "has 1001 layers; 1000 are allowed"),
        ] {
            let problem = all(&layers, None, false).unwrap_err();
            assert!(problem.contains(part), "{part}: {problem}");
        }
    }

    #[test]
    fn equal_layers_have_one_place() {
        let mut again = named("b.yaml", "");
        again["digest"] = json!(digest("a.yaml"));
        let found = all(&[named("a.yaml", ""), again, named("c.yaml", "")], None, false).unwrap();
        let places: Vec<_> = found.iter().map(|layer| (layer.start, layer.is_repeated)).collect();
        assert_eq!(places, [(0, false), (0, true), (3, false)]);
    }

    #[test]
    fn a_file_has_a_safe_name() {
        assert_eq!(file_name("deploy.yaml", "text/yaml"), "deploy.yaml");
        for title in ["", "..", "a/b", "/etc/passwd", "a\nb", &"a".repeat(256)] {
            assert_eq!(file_name(title, "text/yaml"), "layer.yaml", "{title}");
        }
        assert_eq!(file_name("", "application/json"), "layer.json");
    }
}
