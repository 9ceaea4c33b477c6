//! Reads the manifests of one file: selects the documents, flattens lists, keeps positions.
//!
//! In: bytes from the tree. Out: [`Manifest`]s (a body and its origin), or the problems of the
//! file. The position of a field is found by parsing the file again, and only when a message needs
//! it, so valid files do not pay for good messages.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::problem::Problem;
use moorline_core::object::Origin;
use moorline_core::position::SourcePosition;
use moorline_core::tree::{FileTree, MemoryLimit};
use moorline_yaml::{self as yaml, Dialect, Step, type_name};

/// Dialect of plain directories, the one that `kubectl apply -f` reads.
pub(super) const DIALECT: Dialect = Dialect::Kubectl;

/// Number of problems after which the rest of a file is not checked: each costs a second reading of
/// the file.
pub(super) const MAX_PROBLEMS_PER_FILE: usize = 20;

/// Path of a field from the root of its object.
pub type FieldPath<'a> = [Step<'a>];

/// A document that has `apiVersion` or `kind`, with its origin.
#[derive(Debug)]
pub(super) struct Manifest {
    pub(super) body: Map<String, Value>,
    pub(super) origin: Origin,
}

/// Contents of one file.
#[derive(Debug)]
pub(super) enum FileContent {
    /// Manifests and problems, in the order of the file.
    Manifests(Vec<Result<Manifest, Problem>>),
    /// No document has `apiVersion` or `kind`: values files, workflows and the like.
    NoManifests,
}

/// Reads one file.
pub(super) fn read(file: &str, bytes: &[u8], memory_limit: &MemoryLimit) -> Result<FileContent, Problem> {
    let name: Arc<str> = file.into();
    split_documents(values(file, bytes, memory_limit)?, (bytes, memory_limit), |_| name.clone())
}

/// Reads a text whose parts come from several files; `file` returns the file of a line.
pub(super) fn read_parts(
    bytes: &[u8],
    file: impl Fn(u32) -> Arc<str>,
    memory_limit: &MemoryLimit,
) -> Result<FileContent, Problem> {
    let documents = values("", bytes, memory_limit).map_err(|problem| match problem {
        // Reads again only to get the file's name into the error.
        Problem::Unreadable(error) => {
            values(&file(error.line()), bytes, memory_limit).err().unwrap_or(error.into())
        }
        problem => problem,
    });
    split_documents(documents?, (bytes, memory_limit), file)
}

/// Reads the documents of a file; a cancelled render returns its cancellation, not an error of the
/// file.
fn values(file: &str, bytes: &[u8], memory_limit: &MemoryLimit) -> Result<Vec<yaml::Document>, Problem> {
    let read = yaml::read_while(file, bytes, DIALECT, &|| memory_limit.is_running());
    read.map_err(|error| memory_limit.check_running().err().map_or_else(|| error.into(), Problem::from))
}

fn split_documents(
    documents: Vec<yaml::Document>,
    (bytes, memory_limit): (&[u8], &MemoryLimit),
    file: impl Fn(u32) -> Arc<str>,
) -> Result<FileContent, Problem> {
    if !documents.iter().any(|document| claims_to_be_an_object(&document.value)) {
        return Ok(FileContent::NoManifests);
    }
    let mut reading = Reading { bytes, memory_limit, found: Vec::with_capacity(documents.len()), wrong: 0 };
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

/// State of splitting one file into manifests.
struct Reading<'a> {
    bytes: &'a [u8],
    memory_limit: &'a MemoryLimit,
    found: Vec<Result<Manifest, Problem>>,
    wrong: usize,
}

impl Reading<'_> {
    /// Adds the object in `value`, or every object in it if it is a list.
    fn collect(&mut self, value: Value, origin: Origin, listed_as: Option<(&str, &str)>) {
        if self.wrong >= MAX_PROBLEMS_PER_FILE {
            return;
        }
        let Value::Object(mut body) = value else {
            let (place, found) =
                (position_in((self.bytes, self.memory_limit), &origin, &[]), type_name(&value));
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
            // No tool writes nested lists, and an origin cannot express them.
            let place = position_in((self.bytes, self.memory_limit), &origin, &[Step::Key("items")]);
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

/// Takes the items of a list: a kind that ends in `List` with a sequence `items`.
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

/// Returns the type of the items of a typed list, such as a `ConfigMapList`, for items without a
/// type.
fn item_type(list: &Map<String, Value>) -> Option<(String, String)> {
    let kind = list.get("kind")?.as_str()?.strip_suffix("List")?;
    let version = list.get("apiVersion")?.as_str()?;
    (!kind.is_empty()).then(|| (version.to_owned(), kind.to_owned()))
}

/// Returns the position of a field of an object, with the file from the tree.
pub(super) fn position_of(tree: &FileTree, origin: &Origin, path: &FieldPath<'_>) -> SourcePosition {
    match tree.read(tree.parse_display_path(&origin.file)) {
        Ok(bytes) => position_in((&bytes, tree.memory_limit()), origin, path),
        Err(_) => SourcePosition { file: origin.file.to_string(), line: origin.line, column: 1 },
    }
}

/// Returns the position of a field, given the bytes of its file. After a cancellation it is the
/// start of the object, because nothing will show it.
pub(super) fn position_in(
    (bytes, memory_limit): (&[u8], &MemoryLimit),
    origin: &Origin,
    path: &FieldPath<'_>,
) -> SourcePosition {
    let mut steps = Vec::with_capacity(path.len() + 2);
    if let Some(item) = origin.item {
        steps.extend([Step::Key("items"), Step::Item(item as usize)]);
    }
    steps.extend_from_slice(path);
    let position =
        memory_limit.is_running().then(|| yaml::locate(bytes, DIALECT, origin.document, &steps)).flatten();
    let (line, column) = position.map_or((origin.line, 1), |found| (found.line, found.column));
    SourcePosition { file: origin.file.to_string(), line, column }
}
