//! The managers of an object: who owns which fields, and since when.
//!
//! In: `managedFields`. Out: [`Managers`], and `managedFields` again, in the server's order. What Apply and Update wrote
//! under one name is told apart; a manager that owns nothing is none.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::fields::{FieldSet, Operation};

/// More entries of updates are not kept: the oldest become one.
const MAX_UPDATES: usize = 10;

/// The name under which the oldest updates are kept.
const ANCIENT: &str = "ancient-changes";

/// Who a manager is. An applier is the same in every version.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Identity {
    pub(super) manager: String,
    pub(super) operation: Operation,
    /// Empty for appliers.
    version: String,
    pub(super) subresource: String,
}

/// What a manager owns.
#[derive(Debug, Clone)]
pub(super) struct Owned {
    pub(super) fields: FieldSet,
    pub(super) api_version: String,
    /// RFC 3339, with seconds; none if it is not known.
    pub(super) time: Option<String>,
}

/// All managers of an object.
#[derive(Debug, Clone, Default)]
pub(super) struct Managers(pub(super) BTreeMap<Identity, Owned>);

impl Identity {
    pub(super) fn new(manager: &str, operation: Operation, api_version: &str, subresource: &str) -> Self {
        let manager = if manager.is_empty() { "unknown" } else { manager };
        let version = match operation {
            Operation::Apply => "",
            Operation::Update => api_version,
        };
        Self {
            manager: manager.to_owned(),
            operation,
            version: version.to_owned(),
            subresource: subresource.to_owned(),
        }
    }

    /// The text by which the server knows and sorts managers.
    pub(super) fn text(&self) -> String {
        let mut text = String::from("{");
        if !self.manager.is_empty() {
            text += &format!("\"manager\":{},", Value::from(self.manager.as_str()));
        }
        text += &format!("\"operation\":\"{}\"", word(self.operation));
        if !self.version.is_empty() {
            text += &format!(",\"apiVersion\":{}", Value::from(self.version.as_str()));
        }
        if !self.subresource.is_empty() {
            text += &format!(",\"subresource\":{}", Value::from(self.subresource.as_str()));
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

impl Managers {
    /// Reads `managedFields`; the words of the server if they cannot be understood.
    pub(super) fn read(entries: Option<&Value>) -> Result<Self, String> {
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
            let owned = Owned {
                fields: entry.get("fieldsV1").map(FieldSet::parse).unwrap_or_default(),
                api_version: api_version.to_owned(),
                time: Some(text("time")).filter(|time| !time.is_empty()).map(str::to_owned),
            };
            let manager = text("manager");
            let identity = Identity {
                manager: manager.to_owned(),
                ..Identity::new(manager, operation, api_version, text("subresource"))
            };
            managers.insert(identity, owned);
        }
        Ok(Self(managers))
    }

    /// The managers as `managedFields`; none where nobody owns anything.
    pub(super) fn written(self) -> Option<Value> {
        let mut entries: Vec<(Identity, Owned)> = self.0.into_iter().collect();
        entries.sort_by(|(one, owned), (other, others)| {
            let key = |identity: &Identity| word(identity.operation);
            key(one)
                .cmp(key(other))
                .then_with(|| owned.time.cmp(&others.time))
                .then_with(|| one.manager.cmp(&other.manager))
                .then_with(|| owned.api_version.cmp(&others.api_version))
                .then_with(|| one.subresource.cmp(&other.subresource))
        });
        let entries: Vec<Value> =
            entries.into_iter().map(|(identity, owned)| entry(identity, owned)).collect();
        (!entries.is_empty()).then_some(Value::Array(entries))
    }

    /// What anybody owns.
    pub(super) fn all(&self) -> FieldSet {
        let mut all = FieldSet::default();
        for owned in self.0.values() {
            all.add(owned.fields.clone());
        }
        all
    }

    /// Takes those off who own nothing.
    pub(super) fn drop_empty(&mut self) {
        self.0.retain(|_, owned| !owned.fields.is_empty());
    }

    /// Makes one entry a version of the oldest updates, as long as there are too many.
    pub(super) fn cap_updates(&mut self) {
        let is_update = |identity: &Identity| identity.operation == Operation::Update;
        let mut updates: Vec<Identity> = self.0.keys().filter(|it| is_update(it)).cloned().collect();
        let mut count = updates.len();
        if count <= MAX_UPDATES {
            return;
        }
        updates.sort_by_cached_key(|it| (self.0.get(it).and_then(|owned| owned.time.clone()), it.text()));
        let mut first_of: BTreeMap<String, Identity> = BTreeMap::new();
        for identity in updates {
            if count <= MAX_UPDATES {
                return;
            }
            let Some(version) = self.0.get(&identity).map(|owned| owned.api_version.clone()) else {
                continue;
            };
            let bucket = Identity::new(ANCIENT, Operation::Update, &version, "");
            let Some(first) = first_of.get(&version) else {
                first_of.insert(version, identity);
                continue;
            };
            if !self.0.contains_key(&bucket)
                && let Some(owned) = self.0.remove(first)
            {
                self.0.insert(bucket.clone(), owned);
            }
            let Some(owned) = self.0.remove(&identity) else { continue };
            count -= 1;
            if let Some(ancient) = self.0.get_mut(&bucket) {
                ancient.fields.add(owned.fields);
                ancient.time = owned.time;
            }
        }
    }
}

fn entry(identity: Identity, owned: Owned) -> Value {
    let mut entry = Map::new();
    let mut text = |name: &str, text: String| {
        if !text.is_empty() {
            entry.insert(name.to_owned(), Value::String(text));
        }
    };
    text("manager", identity.manager);
    text("operation", word(identity.operation).to_owned());
    text("subresource", identity.subresource);
    text("apiVersion", owned.api_version);
    text("time", owned.time.unwrap_or_default());
    text("fieldsType", "FieldsV1".to_owned());
    entry.insert("fieldsV1".to_owned(), owned.fields.written());
    Value::Object(entry)
}
