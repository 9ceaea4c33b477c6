//! From one file's bytes to the manifests in it: which documents are manifests, lists flattened, places kept.
//!
//! In: bytes from the tree. Out: [`Manifest`]s (a body and where it stands), or the problems that keep the
//! file from being read. A place inside a document is found by reading the file again, and only when a
//! message needs it: good files pay nothing for good messages.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::problem::{Place, Problem};
use moorline_core::object::Origin;
use moorline_core::tree::{FileTree, Room};
use moorline_yaml::{self as yaml, Dialect, Step};

/// The dialect of plain directories: what `kubectl apply -f` reads.
pub(super) const DIALECT: Dialect = Dialect::Kubectl;

/// After this many problems the rest of a file is not looked at: each costs a second reading of the file.
pub(super) const MAX_PROBLEMS_PER_FILE: usize = 20;

/// The way to a field from the root of its object.
pub type FieldPath<'a> = [Step<'a>];

/// A body that says it is an object.
#[derive(Debug)]
pub(super) struct Manifest {
    pub(super) body: Map<String, Value>,
    pub(super) origin: Origin,
}

/// The manifests of one file.
#[derive(Debug)]
pub(super) enum FileContent {
    /// Manifests, and what is in the place of one and is none, in the order of the file.
    Manifests(Vec<Result<Manifest, Problem>>),
    /// No document has `apiVersion` or `kind`: values files, workflows, and the like.
    NoManifests,
}

/// Reads one file.
pub(super) fn read(file: &str, bytes: &[u8], room: &Room) -> Result<FileContent, Problem> {
    let name: Arc<str> = file.into();
    named(values(file, bytes, room)?, (bytes, room), |_| name.clone())
}

/// Reads text whose parts come from several files; `file` says from which a line does.
pub(super) fn read_parts(
    bytes: &[u8],
    file: impl Fn(u32) -> Arc<str>,
    room: &Room,
) -> Result<FileContent, Problem> {
    let documents = values("", bytes, room).map_err(|problem| match problem {
        // Read again for the sake of the name only.
        Problem::Unreadable(error) => values(&file(error.line()), bytes, room).err().unwrap_or(error.into()),
        problem => problem,
    });
    named(documents?, (bytes, room), file)
}

/// The documents of a file; a render that is stopped says so, and not what it has read.
fn values(file: &str, bytes: &[u8], room: &Room) -> Result<Vec<yaml::Document>, Problem> {
    let read = yaml::read_while(file, bytes, DIALECT, &|| room.is_open());
    read.map_err(|error| room.goes_on().err().map_or_else(|| error.into(), Problem::from))
}

fn named(
    documents: Vec<yaml::Document>,
    (bytes, room): (&[u8], &Room),
    file: impl Fn(u32) -> Arc<str>,
) -> Result<FileContent, Problem> {
    if !documents.iter().any(|document| claims_to_be_an_object(&document.value)) {
        return Ok(FileContent::NoManifests);
    }
    let mut reading = Reading { bytes, room, found: Vec::with_capacity(documents.len()), wrong: 0 };
    for document in documents {
        let (file, line) = (file(document.line), document.line);
        let origin = Origin { file, document: document.index, line, item: None };
        reading.collect(document.value, origin, None);
    }
    Ok(FileContent::Manifests(reading.found))
}

fn claims_to_be_an_object(value: &Value) -> bool {
    value.get("apiVersion").is_some() || value.get("kind").is_some()
}

/// A file being taken apart.
struct Reading<'a> {
    bytes: &'a [u8],
    room: &'a Room,
    found: Vec<Result<Manifest, Problem>>,
    wrong: usize,
}

impl Reading<'_> {
    /// Adds the object in `value`, or every object in the list that it is.
    fn collect(&mut self, value: Value, origin: Origin, listed_as: Option<(&str, &str)>) {
        if self.wrong >= MAX_PROBLEMS_PER_FILE {
            return;
        }
        let Value::Object(mut body) = value else {
            let (place, found) = (place_in((self.bytes, self.room), &origin, &[]), kind_of(&value));
            return self.refuse(Problem::NotAMapping { place, found });
        };
        if let (Some((api_version, kind)), false, false) =
            (listed_as, body.contains_key("apiVersion"), body.contains_key("kind"))
        {
            body.insert("apiVersion".into(), api_version.into());
            body.insert("kind".into(), kind.into());
        }
        let Some(items) = take_items(&mut body) else {
            return self.found.push(Ok(Manifest { body, origin }));
        };
        if origin.item.is_some() {
            // No tool writes lists into lists, and an origin has no room for them.
            let place = place_in((self.bytes, self.room), &origin, &[Step::Key("items")]);
            return self.refuse(Problem::NestedList { place });
        }
        let item_type = item_type(&body);
        let item_type = item_type.as_ref().map(|(version, kind)| (version.as_str(), kind.as_str()));
        for (at, item) in (0..).zip(items) {
            self.collect(item, Origin { item: Some(at), ..origin.clone() }, item_type);
        }
    }

    fn refuse(&mut self, problem: Problem) {
        self.wrong += 1;
        self.found.push(Err(problem));
    }
}

/// The items, if this is a list: a kind that ends in `List` beside a sequence called `items`.
fn take_items(body: &mut Map<String, Value>) -> Option<Vec<Value>> {
    let kind = body.get("kind")?.as_str()?;
    let is_list = kind.ends_with("List") && body.get("apiVersion")?.is_string();
    let empty_list = kind == "List" && matches!(body.get("items"), None | Some(Value::Null));
    match (is_list, body.get_mut("items")) {
        (true, Some(Value::Array(items))) => Some(std::mem::take(items)),
        (true, _) if empty_list => Some(Vec::new()),
        _ => None,
    }
}

/// What items of a typed list are when they do not say it themselves, as in a `ConfigMapList`.
fn item_type(list: &Map<String, Value>) -> Option<(String, String)> {
    let kind = list.get("kind")?.as_str()?.strip_suffix("List")?;
    let version = list.get("apiVersion")?.as_str()?;
    (!kind.is_empty()).then(|| (version.to_owned(), kind.to_owned()))
}

/// The place of a field of an object, from the tree it was read from.
pub(super) fn place(tree: &FileTree, origin: &Origin, path: &FieldPath<'_>) -> Place {
    match tree.read(tree.hidden(&origin.file)) {
        Ok(bytes) => place_in((&bytes, tree.room()), origin, path),
        Err(_) => Place { file: origin.file.to_string(), line: origin.line, column: 1 },
    }
}

/// The place of a field of an object, given the bytes of its file; after a stop, which nobody waits for, where the object begins.
pub(super) fn place_in((bytes, room): (&[u8], &Room), origin: &Origin, path: &FieldPath<'_>) -> Place {
    let mut steps = Vec::with_capacity(path.len() + 2);
    if let Some(item) = origin.item {
        steps.extend([Step::Key("items"), Step::Item(item as usize)]);
    }
    steps.extend_from_slice(path);
    let position = room.is_open().then(|| yaml::locate(bytes, DIALECT, origin.document, &steps)).flatten();
    let (line, column) = position.map_or((origin.line, 1), |found| (found.line, found.column));
    Place { file: origin.file.to_string(), line, column }
}

/// What a value is, in the words of YAML.
pub(super) fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "empty",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a sequence",
        Value::Object(_) => "a mapping",
    }
}
