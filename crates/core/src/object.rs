//! One Kubernetes object as written in Git: its JSON body, its identity, and its position in a
//! file.
//!
//! In: bodies that the renderers have validated.
//! Out: [`Object`] and [`ObjectId`], the identity that all later steps use. An id holds no API
//! version, because two versions of a kind are one object.

use std::fmt;
use std::sync::Arc;

use serde_json::{Map, Value};

/// A rendered object with the position that it was read from.
#[derive(Debug, Clone, PartialEq)]
pub struct Object {
    /// Group, kind, namespace (as written, so possibly none) and name.
    pub id: ObjectId,
    /// The API version within the group, such as `v1`.
    pub version: Box<str>,
    /// The whole body, `apiVersion` and `kind` included.
    pub body: Map<String, Value>,
    /// Position in the repository where the object is written.
    pub origin: Origin,
}

impl Object {
    /// Returns the value of an annotation if it is present and a string.
    pub fn annotation(&self, key: &str) -> Option<&str> {
        self.metadata("annotations")?.get(key)?.as_str()
    }

    /// Returns the value of a label if it is present and a string.
    pub fn label(&self, key: &str) -> Option<&str> {
        self.metadata("labels")?.get(key)?.as_str()
    }

    /// Returns the field `metadata.<field>`.
    pub fn metadata(&self, field: &str) -> Option<&Value> {
        self.body.get("metadata")?.get(field)
    }

    /// Returns `apiVersion` as Kubernetes writes it: `group/version`, or only the version in the
    /// core group.
    pub fn api_version(&self) -> String {
        match self.id.group() {
            "" => self.version.to_string(),
            group => format!("{group}/{}", self.version),
        }
    }
}

/// Position of a document in a repository.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Origin {
    /// Path of the file, as it is shown to users.
    pub file: Arc<str>,
    /// The document's position in the file, from 0.
    pub document: u32,
    /// The line on which the document begins, from 1.
    pub line: u32,
    /// For an item of a `List`: its position in `items`, from 0.
    pub item: Option<u32>,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)?;
        match self.item {
            Some(item) => write!(f, " (item {item})"),
            None => Ok(()),
        }
    }
}

/// The group and kind of an object; the core group is the empty string.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupKind {
    /// The API group, empty for the core group.
    pub group: Box<str>,
    /// The kind, such as `Deployment`.
    pub kind: Box<str>,
}

impl GroupKind {
    /// Creates a group and kind from their texts.
    pub fn new(group: &str, kind: &str) -> Self {
        Self { group: group.into(), kind: kind.into() }
    }
}

impl fmt::Display for GroupKind {
    /// Formats as kubectl does: `Deployment.apps`, and `Service` in the core group.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &*self.group {
            "" => f.write_str(&self.kind),
            group => write!(f, "{}.{group}", self.kind),
        }
    }
}

/// Group, kind, namespace and name of one object in one cluster; cheap to clone.
///
/// The text `<group>/<Kind>|<namespace>/<name>` is kept as one shared string: it is the identity in
/// the annotation, it compares in one step, and 50,000 ids cost 50,000 allocations and no more.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectId(Arc<str>);

/// A group, kind, namespace or name that cannot be part of an [`ObjectId`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{part} {text:?} {problem}")]
pub struct ObjectIdError {
    /// The invalid part: `group`, `kind`, `namespace` or `name`.
    pub part: &'static str,
    /// The invalid text.
    pub text: String,
    /// The rule that it breaks.
    pub problem: &'static str,
}

impl ObjectId {
    /// Creates an id from its parts; `namespace` is empty for cluster-scoped objects.
    pub fn new(group: &str, kind: &str, namespace: &str, name: &str) -> Result<Self, ObjectIdError> {
        let refuse = |part, text: &str, problem| Err(ObjectIdError { part, text: text.to_owned(), problem });
        if kind.is_empty() {
            return refuse("kind", kind, "is empty");
        }
        if name.is_empty() {
            return refuse("name", name, "is empty");
        }
        for (part, text) in [("group", group), ("kind", kind), ("namespace", namespace)] {
            if text.contains(['/', '|']) {
                return refuse(part, text, "contains '/' or '|'");
            }
        }
        // A name may contain '|' (it comes last) but never '/': the API server puts it into a URL
        // path.
        if name.contains('/') {
            return refuse("name", name, "contains '/'");
        }
        Ok(Self(format!("{group}/{kind}|{namespace}/{name}").into()))
    }

    /// Parses the text that [`ObjectId::as_str`] returns.
    pub fn parse(text: &str) -> Option<Self> {
        let (group, rest) = text.split_once('/')?;
        let (kind, rest) = rest.split_once('|')?;
        let (namespace, name) = rest.split_once('/')?;
        Self::new(group, kind, namespace, name).ok()
    }

    /// Returns `<group>/<Kind>|<namespace>/<name>`; group and namespace may be empty.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the API group, empty for the core group.
    pub fn group(&self) -> &str {
        self.split().0
    }

    /// Returns the kind.
    pub fn kind(&self) -> &str {
        self.split().1
    }

    /// Returns the namespace, if there is one.
    pub fn namespace(&self) -> Option<&str> {
        Some(self.split().2).filter(|namespace| !namespace.is_empty())
    }

    /// Returns the name.
    pub fn name(&self) -> &str {
        self.split().3
    }

    /// Returns group and kind as a [`GroupKind`].
    pub fn group_kind(&self) -> GroupKind {
        GroupKind::new(self.group(), self.kind())
    }

    /// True if the object is of this kind.
    pub fn is_kind(&self, group: &str, kind: &str) -> bool {
        self.group() == group && self.kind() == kind
    }

    /// Returns the id of the same object in another namespace; empty for none.
    pub fn in_namespace(&self, namespace: &str) -> Result<Self, ObjectIdError> {
        Self::new(self.group(), self.kind(), namespace, self.name())
    }

    fn split(&self) -> (&str, &str, &str, &str) {
        let (group, rest) = self.0.split_once('/').unwrap_or_default();
        let (kind, rest) = rest.split_once('|').unwrap_or_default();
        let (namespace, name) = rest.split_once('/').unwrap_or_default();
        (group, kind, namespace, name)
    }
}

impl fmt::Display for ObjectId {
    /// Formats for people: `Deployment.apps shop/web`, `Service shop/web`, `Namespace shop`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (group, kind, namespace, name) = self.split();
        f.write_str(kind)?;
        if !group.is_empty() {
            write!(f, ".{group}")?;
        }
        match namespace {
            "" => write!(f, " {name}"),
            namespace => write!(f, " {namespace}/{name}"),
        }
    }
}

impl fmt::Debug for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_gives_back_its_parts() {
        let check = |group: &str, kind: &str, namespace: &str, name: &str, text: &str, shown: &str| {
            let id = ObjectId::new(group, kind, namespace, name).unwrap();
            assert_eq!(id.as_str(), text);
            assert_eq!(id.to_string(), shown);
            assert_eq!((id.group(), id.kind(), id.name()), (group, kind, name));
            assert_eq!(id.namespace().unwrap_or_default(), namespace);
            assert_eq!(ObjectId::parse(text), Some(id));
        };
        check("apps", "Deployment", "shop", "web", "apps/Deployment|shop/web", "Deployment.apps shop/web");
        check("", "Namespace", "", "shop", "/Namespace|/shop", "Namespace shop");
        check("g", "K", "n", "a|b:c", "g/K|n/a|b:c", "K.g n/a|b:c");
    }

    #[test]
    fn an_id_that_could_be_read_in_two_ways_is_refused() {
        let part = |id: Result<ObjectId, ObjectIdError>| id.unwrap_err().part;
        assert_eq!(part(ObjectId::new("", "", "", "a")), "kind");
        assert_eq!(part(ObjectId::new("", "K", "", "")), "name");
        assert_eq!(part(ObjectId::new("a/b", "K", "", "a")), "group");
        assert_eq!(part(ObjectId::new("", "K|", "", "a")), "kind");
        assert_eq!(part(ObjectId::new("", "K", "n/m", "a")), "namespace");
        assert_eq!(part(ObjectId::new("", "K", "", "a/b")), "name");
        assert_eq!(ObjectId::parse("apps/Deployment"), None);
    }
}
