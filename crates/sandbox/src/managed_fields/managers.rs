//! The managers of an object: their fields and the time of their last write.
//!
//! In: `managedFields`.
//! Out: [`Managers`], and `managedFields` again, in the order of the server. Apply and Update under
//! one name are two managers; a manager without fields is dropped.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde_json::{Map, Value};

use moorline_managed_fields::{FieldSet, Operation};

/// Maximum number of Update entries; the oldest are merged into one.
const MAX_UPDATES: usize = 10;

/// Manager name of the merged entry.
const ANCIENT: &str = "ancient-changes";

/// Identity of a manager. An applier has one identity for all versions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ManagerIdentity<'a> {
    pub(super) manager: &'a str,
    pub(super) operation: Operation,
    /// Empty for appliers.
    version: &'a str,
    pub(super) subresource: &'a str,
}

/// Fields of a manager.
#[derive(Debug, Clone)]
pub(super) struct ManagerEntry<'a> {
    pub(super) fields: LazyFieldSet<'a>,
    pub(super) api_version: &'a str,
    /// RFC 3339 with seconds; `None` if unknown.
    pub(super) time: Option<&'a str>,
}

/// Field set in its serialized form; parsed only when it is needed, because most writes do not
/// touch the fields of other managers.
#[derive(Debug, Clone, Default)]
pub(super) struct LazyFieldSet<'a> {
    written: Option<&'a Value>,
    /// Parsed set; replaces the serialized one if present.
    known: Option<FieldSet>,
}

/// All managers of an object.
#[derive(Debug, Clone, Default)]
pub(super) struct Managers<'a>(pub(super) BTreeMap<ManagerIdentity<'a>, ManagerEntry<'a>>);

impl<'a> LazyFieldSet<'a> {
    pub(super) fn known(fields: FieldSet) -> Self {
        Self { written: None, known: Some(fields) }
    }

    /// Returns the serialized form, if the set has not changed.
    pub(super) fn unchanged(&self) -> Option<&'a Value> {
        self.written.filter(|_| self.known.is_none())
    }

    /// Returns the fields as a set.
    pub(super) fn set(&self) -> Cow<'_, FieldSet> {
        match &self.known {
            Some(set) => Cow::Borrowed(set),
            None => Cow::Owned(self.written.map(FieldSet::parse).unwrap_or_default()),
        }
    }

    /// Returns the fields as a mutable set.
    pub(super) fn set_mut(&mut self) -> &mut FieldSet {
        let written = self.written.take();
        self.known.get_or_insert_with(|| written.map(FieldSet::parse).unwrap_or_default())
    }

    pub(super) fn is_empty(&self) -> bool {
        match (&self.known, self.written) {
            (Some(set), _) => set.is_empty(),
            (None, written) => written.and_then(Value::as_object).is_none_or(Map::is_empty),
        }
    }

    /// Returns the intersection with another set.
    pub(super) fn shared_with(&self, other: &FieldSet) -> FieldSet {
        match self.unchanged() {
            Some(fields) if !other.shares_fields_with(fields) => FieldSet::default(),
            _ => self.set().intersect(other),
        }
    }

    /// Removes the fields of another set.
    pub(super) fn take_off(&mut self, other: &FieldSet) {
        match self.unchanged() {
            Some(fields) if !other.shares_fields_with(fields) => {}
            _ => self.set_mut().subtract(other),
        }
    }

    fn text(self) -> Value {
        match (self.known, self.written) {
            (None, Some(fields)) => fields.clone(),
            (known, _) => known.unwrap_or_default().to_fields_v1(),
        }
    }
}

impl<'a> ManagerIdentity<'a> {
    pub(super) fn new(
        manager: &'a str,
        operation: Operation,
        api_version: &'a str,
        subresource: &'a str,
    ) -> Self {
        let manager = if manager.is_empty() { "unknown" } else { manager };
        let version = match operation {
            Operation::Apply => "",
            Operation::Update => api_version,
        };
        Self { manager, operation, version, subresource }
    }

    /// Returns the text by which the server identifies and sorts managers.
    pub(super) fn text(&self) -> String {
        let mut text = String::from("{");
        if !self.manager.is_empty() {
            text += &format!("\"manager\":{},", Value::from(self.manager));
        }
        text += &format!("\"operation\":\"{}\"", word(self.operation));
        if !self.version.is_empty() {
            text += &format!(",\"apiVersion\":{}", Value::from(self.version));
        }
        if !self.subresource.is_empty() {
            text += &format!(",\"subresource\":{}", Value::from(self.subresource));
        }
        text + "}"
    }
}

fn word(operation: Operation) -> &'static str {
    match operation {
        Operation::Apply => "Apply",
        Operation::Update => "Update",
    }
}

impl<'a> Managers<'a> {
    /// Parses `managedFields` of a live object, which this server wrote; returns the error of the
    /// server if they are invalid.
    pub(super) fn read(entries: Option<&'a Value>) -> Result<Self, String> {
        let mut managers = BTreeMap::new();
        for (at, entry) in entries.and_then(Value::as_array).into_iter().flatten().enumerate() {
            let text = |name: &str| entry.get(name).and_then(Value::as_str).unwrap_or_default();
            let operation = match text("operation") {
                "Apply" => Operation::Apply,
                "Update" => Operation::Update,
                _ => return Err("operation must be `Apply` or `Update`".to_owned()),
            };
            let api_version = text("apiVersion");
            if api_version.is_empty() {
                return Err("apiVersion must not be empty".to_owned());
            }
            match text("fieldsType") {
                "FieldsV1" => {}
                "" => return Err(format!("missing fieldsType in managed fields entry {at}")),
                other => return Err(format!("invalid fieldsType {other:?} in managed fields entry {at}")),
            }
            let owned = ManagerEntry {
                fields: LazyFieldSet { written: entry.get("fieldsV1"), known: None },
                api_version,
                time: Some(text("time")).filter(|time| !time.is_empty()),
            };
            let manager = text("manager");
            let identity = ManagerIdentity {
                manager,
                ..ManagerIdentity::new(manager, operation, api_version, text("subresource"))
            };
            managers.insert(identity, owned);
        }
        Ok(Self(managers))
    }

    /// Serializes the managers as `managedFields`; `None` if there are none.
    pub(super) fn written(self) -> Option<Value> {
        let mut entries: Vec<(ManagerIdentity<'_>, ManagerEntry<'_>)> = self.0.into_iter().collect();
        entries.sort_by(|(one, owned), (other, others)| {
            let key = |identity: &ManagerIdentity<'_>| word(identity.operation);
            key(one)
                .cmp(key(other))
                .then_with(|| owned.time.cmp(&others.time))
                .then_with(|| one.manager.cmp(other.manager))
                .then_with(|| owned.api_version.cmp(others.api_version))
                .then_with(|| one.subresource.cmp(other.subresource))
        });
        let entries: Vec<Value> =
            entries.into_iter().map(|(identity, owned)| entry(identity, owned)).collect();
        (!entries.is_empty()).then_some(Value::Array(entries))
    }

    /// Parses the managers of a request, which may come from any client.
    pub(super) fn read_request(entries: &'a Value) -> Result<Self, String> {
        let mut managers = Self::read(Some(entries))?;
        for owned in managers.0.values_mut() {
            owned.fields.set_mut();
        }
        Ok(managers)
    }

    /// Drops managers without fields.
    pub(super) fn drop_empty(&mut self) {
        self.0.retain(|_, owned| !owned.fields.is_empty());
    }

    /// Merges the oldest updates of each version into one entry until there are few enough.
    pub(super) fn cap_updates(&mut self) {
        let is_update = |identity: &&ManagerIdentity<'_>| identity.operation == Operation::Update;
        let mut updates: Vec<ManagerIdentity<'a>> = self.0.keys().filter(is_update).copied().collect();
        let mut count = updates.len();
        if count <= MAX_UPDATES {
            return;
        }
        updates.sort_by_cached_key(|it| (self.0.get(it).and_then(|owned| owned.time), it.text()));
        let mut first_of: BTreeMap<&str, ManagerIdentity<'a>> = BTreeMap::new();
        for identity in updates {
            if count <= MAX_UPDATES {
                return;
            }
            let Some(version) = self.0.get(&identity).map(|owned| owned.api_version) else {
                continue;
            };
            let bucket = ManagerIdentity::new(ANCIENT, Operation::Update, version, "");
            let Some(first) = first_of.get(version) else {
                first_of.insert(version, identity);
                continue;
            };
            if !self.0.contains_key(&bucket)
                && let Some(owned) = self.0.remove(first)
            {
                self.0.insert(bucket, owned);
            }
            let Some(owned) = self.0.remove(&identity) else { continue };
            count -= 1;
            if let Some(ancient) = self.0.get_mut(&bucket) {
                ancient.fields.set_mut().add(owned.fields.set().into_owned());
                ancient.time = owned.time;
            }
        }
    }
}

fn entry(identity: ManagerIdentity<'_>, owned: ManagerEntry<'_>) -> Value {
    let mut entry = Map::new();
    let mut text = |name: &str, text: &str| {
        if !text.is_empty() {
            entry.insert(name.to_owned(), text.into());
        }
    };
    text("manager", identity.manager);
    text("operation", word(identity.operation));
    text("subresource", identity.subresource);
    text("apiVersion", owned.api_version);
    text("time", owned.time.unwrap_or_default());
    text("fieldsType", "FieldsV1");
    entry.insert("fieldsV1".to_owned(), owned.fields.text());
    Value::Object(entry)
}
