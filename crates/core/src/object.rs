//! One Kubernetes object as it was written down: its JSON body, its identity, and the place it came from.
//!
//! In: bodies that the renderers have checked. Out: [`Object`], and [`ObjectId`], the name by which every
//! later station speaks of it. An id holds no version, because two versions of a kind are one object.

use std::fmt;
use std::sync::Arc;

use serde_json::{Map, Value};

/// An object as rendered, with the place it was read from.
#[derive(Debug, Clone, PartialEq)]
pub struct Object {
    /// Group, kind, namespace (as written, so possibly none) and name.
    pub id: ObjectId,
    /// The API version within the group, such as `v1`.
    pub version: Box<str>,
    /// The whole body, `apiVersion` and `kind` included.
    pub body: Map<String, Value>,
    /// Where the object was written.
    pub origin: Origin,
}

impl Object {
    /// The value of an annotation, if it is present and a string.
    pub fn annotation(&self, key: &str) -> Option<&str> {
        self.metadata("annotations")?.get(key)?.as_str()
    }

    /// The value of a label, if it is present and a string.
    pub fn label(&self, key: &str) -> Option<&str> {
        self.metadata("labels")?.get(key)?.as_str()
    }

    /// The field `metadata.<field>`.
    pub fn metadata(&self, field: &str) -> Option<&Value> {
        self.body.get("metadata")?.get(field)
    }

    /// `apiVersion` as Kubernetes writes it: `group/version`, or the version alone in the core group.
    pub fn api_version(&self) -> String {
        match self.id.group() {
            "" => self.version.to_string(),
            group => format!("{group}/{}", self.version),
        }
    }
}

/// The place of a document in a repository.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Origin {
    /// The file's path, as the reader should see it.
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
    /// A group and kind from their texts.
    pub fn new(group: &str, kind: &str) -> Self {
        Self { group: group.into(), kind: kind.into() }
    }
}

impl fmt::Display for GroupKind {
    /// `Deployment.apps`, and `Service` in the core group, as kubectl writes them.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &*self.group {
            "" => f.write_str(&self.kind),
            group => write!(f, "{}.{group}", self.kind),
        }
    }
}

/// Group, kind, namespace and name of one object in one cluster; cheap to clone.
///
/// The text `<group>/<Kind>|<namespace>/<name>` is kept as one shared string: it is the identity that is
/// annotated on objects, it compares in one step, and 50,000 ids cost 50,000 allocations and no more.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectId(Arc<str>);

/// Why a group, kind, namespace or name cannot be part of an [`ObjectId`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{part} {text:?} {problem}")]
pub struct IdError {
    /// Which part is wrong: `group`, `kind`, `namespace` or `name`.
    pub part: &'static str,
    /// What was written.
    pub text: String,
    /// What is wrong with it.
    pub problem: &'static str,
}

impl ObjectId {
    /// An id from its parts; `namespace` is empty for none.
    pub fn new(group: &str, kind: &str, namespace: &str, name: &str) -> Result<Self, IdError> {
        let refuse = |part, text: &str, problem| Err(IdError { part, text: text.to_owned(), problem });
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
        // A name may hold '|' (it comes last), but never '/': the API server puts it into a URL path.
        if name.contains('/') {
            return refuse("name", name, "contains '/'");
        }
        Ok(Self(format!("{group}/{kind}|{namespace}/{name}").into()))
    }

    /// Reads the text that [`ObjectId::as_str`] gives.
    pub fn parse(text: &str) -> Option<Self> {
        let (group, rest) = text.split_once('/')?;
        let (kind, rest) = rest.split_once('|')?;
        let (namespace, name) = rest.split_once('/')?;
        Self::new(group, kind, namespace, name).ok()
    }

    /// `<group>/<Kind>|<namespace>/<name>`, with nothing before `/` for the core group and for no namespace.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The API group, empty for the core group.
    pub fn group(&self) -> &str {
        self.split().0
    }

    /// The kind.
    pub fn kind(&self) -> &str {
        self.split().1
    }

    /// The namespace, if there is one.
    pub fn namespace(&self) -> Option<&str> {
        Some(self.split().2).filter(|namespace| !namespace.is_empty())
    }

    /// The name.
    pub fn name(&self) -> &str {
        self.split().3
    }

    /// The group and kind as a value of their own.
    pub fn group_kind(&self) -> GroupKind {
        GroupKind::new(self.group(), self.kind())
    }

    /// True for the kind given.
    pub fn is(&self, group: &str, kind: &str) -> bool {
        self.group() == group && self.kind() == kind
    }

    /// The same object in another namespace; empty for none.
    pub fn in_namespace(&self, namespace: &str) -> Result<Self, IdError> {
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
    /// `Deployment.apps shop/web`, `Service shop/web`, `Namespace shop`.
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
        let part = |id: Result<ObjectId, IdError>| id.unwrap_err().part;
        assert_eq!(part(ObjectId::new("", "", "", "a")), "kind");
        assert_eq!(part(ObjectId::new("", "K", "", "")), "name");
        assert_eq!(part(ObjectId::new("a/b", "K", "", "a")), "group");
        assert_eq!(part(ObjectId::new("", "K|", "", "a")), "kind");
        assert_eq!(part(ObjectId::new("", "K", "n/m", "a")), "namespace");
        assert_eq!(part(ObjectId::new("", "K", "", "a/b")), "name");
        assert_eq!(ObjectId::parse("apps/Deployment"), None);
    }
}
