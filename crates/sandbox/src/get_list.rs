//! GET: one object or a list.
//!
//! In: the target, the selectors, the page size and the representation.
//! Out: the response. The stored text of an object is sent unchanged if it has the requested
//! version and representation.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::convert::{self, ConversionCache};
use super::select::Selector;
use super::state::ServerState;
use super::store::{Key, StoredObject};
use super::table::{self, RowObject};
use super::write::RequestTarget;
use crate::request::{ApiRequest, Representation};
use crate::resource_registry::{Origin, Resource};
use crate::response::ApiResponse;
use crate::status_error::StatusError;

/// Selection of objects and their representation.
#[derive(Debug, Clone)]
pub(crate) struct ListView {
    pub(crate) resource: Arc<Resource>,
    pub(crate) version: usize,
    api_version: Box<str>,
    pub(crate) namespace: Option<Box<str>>,
    pub(crate) selector: Selector,
    pub(crate) form: Representation,
    pub(crate) include: RowObject,
}

impl ListView {
    /// Builds the view that a request asks for.
    pub(crate) fn new(target: &RequestTarget, ask: &ApiRequest) -> Result<Self, StatusError> {
        let known: Vec<&str> = target.served().selectable.iter().map(|path| &**path).collect();
        let selector = Selector::read(ask.query("labelSelector"), ask.query("fieldSelector"), &known)?;
        Ok(Self {
            resource: target.resource.clone(),
            version: target.version,
            api_version: target.api_version().into(),
            namespace: Some(target.key.namespace.clone()).filter(|namespace| !namespace.is_empty()),
            selector,
            form: ask.form(),
            include: match ask.query("includeObject") {
                Some("None") => RowObject::None,
                Some("Object") => RowObject::Object,
                _ => RowObject::Metadata,
            },
        })
    }

    /// True if the view selects the object.
    pub(crate) fn selects(&self, stored: &StoredObject) -> bool {
        self.namespace.as_ref().is_none_or(|namespace| *namespace == stored.key.namespace)
            && self.selector.fits(stored)
    }

    /// Returns the object in the version of this view.
    pub(crate) fn to_view_version(
        &self,
        conversions: &ConversionCache,
        stored: &Arc<StoredObject>,
    ) -> Result<Arc<StoredObject>, StatusError> {
        if !self.resource.is_older(stored.revision) && stored.api_version() == &*self.api_version {
            return Ok(stored.clone());
        }
        let body = convert::read_stored(conversions, &self.resource, self.version, stored)?;
        Ok(Arc::new(stored.with_body(body)))
    }

    /// Returns all objects in the version of this view; their missing conversions are collected for
    /// one call of the webhook.
    fn all_shown(
        &self,
        conversions: &ConversionCache,
        stored: &[Arc<StoredObject>],
    ) -> Result<Vec<Arc<StoredObject>>, StatusError> {
        let shown: Vec<_> = stored.iter().map(|stored| self.to_view_version(conversions, stored)).collect();
        shown.into_iter().collect()
    }

    /// True if selectors must be evaluated after conversion, because the fields may differ between
    /// versions.
    pub(crate) fn selects_shown(&self) -> bool {
        self.resource.builtin().is_none() && !self.selector.is_empty()
    }

    /// Writes one converted object as text.
    pub(crate) fn write(&self, stored: &StoredObject, now: Timestamp, out: &mut Vec<u8>) {
        match self.form {
            Representation::Metadata => {
                out.extend(br#"{"apiVersion":"meta.k8s.io/v1","kind":"PartialObjectMetadata","metadata":"#);
                out.extend(stored.metadata());
                out.push(b'}');
            }
            Representation::Whole => out.extend(stored.text()),
            Representation::Table => {
                let mut table = self.table(&[&stored.body()], now);
                table["metadata"] = json!({"resourceVersion": stored.revision.to_string()});
                out.extend(table.to_string().into_bytes());
            }
        }
    }

    fn table(&self, objects: &[&Value], now: Timestamp) -> Value {
        let none = json!([]);
        let columns = match &self.resource.origin {
            Origin::Builtin(_) => None,
            Origin::Definition { .. } => {
                Some(self.resource.versions[self.version].columns.as_ref().unwrap_or(&none))
            }
        };
        table::table(&self.resource.group, &self.resource.kind, columns, objects, self.include, now)
    }
}

impl ServerState {
    /// Answers a GET of one object.
    pub(crate) fn get(&self, target: &RequestTarget, ask: &ApiRequest) -> Result<ApiResponse, StatusError> {
        let view = ListView::new(target, ask)?;
        let stored = self.store.get(&target.resource.storage_key, &target.key);
        let stored = stored.ok_or_else(|| StatusError::not_found(target.about()))?;
        let shown = view.to_view_version(&self.conversions, stored)?;
        let mut text = Vec::with_capacity(1024);
        view.write(&shown, self.clock.now(), &mut text);
        Ok(ApiResponse::text(200, text))
    }

    /// Answers a list, or the next page of one.
    pub(crate) fn list(
        &mut self,
        target: &RequestTarget,
        ask: &ApiRequest,
    ) -> Result<ApiResponse, StatusError> {
        let view = ListView::new(target, ask)?;
        if ask.query("continue").is_some() && ask.query("resourceVersion").is_some_and(|it| it != "0") {
            return Err(StatusError::bad_request(
                "specifying resource version is not allowed when using continue",
            ));
        }
        self.check_not_in_future(ask, self.store.revision())?;
        let (found, revision) = self.remaining_objects(&view, ask)?;
        let limit = ask.query("limit").and_then(|text| text.parse().ok()).filter(|limit| *limit > 0);
        let (page, rest) = found.split_at(limit.unwrap_or(found.len()).min(found.len()));
        let mut metadata = json!({"resourceVersion": revision.to_string()});
        if view.form == Representation::Whole && view.resource.builtin().is_none() {
            metadata["continue"] = "".into();
        }
        if !rest.is_empty() {
            if let Some(last) = page.last() {
                metadata["continue"] = self.token(&view, ask, last, rest, revision).into();
            }
            if view.selector.is_empty() {
                metadata["remainingItemCount"] = rest.len().into();
            }
        }
        let (page, now) = (view.all_shown(&self.conversions, page)?, self.clock.now());
        if view.form == Representation::Table {
            let bodies: Vec<Value> = page.iter().map(|stored| stored.body()).collect();
            let mut whole = view.table(&bodies.iter().collect::<Vec<_>>(), now);
            whole["metadata"] = metadata;
            return Ok(ApiResponse::json(200, &whole));
        }
        let (version, kind) = match view.form {
            Representation::Metadata => ("meta.k8s.io/v1".to_owned(), "PartialObjectMetadataList".to_owned()),
            Representation::Whole | Representation::Table => {
                (target.api_version(), format!("{}List", target.resource.kind))
            }
        };
        let head = format!(r#"{{"apiVersion":"{version}","kind":"{kind}","metadata":{metadata},"items":["#);
        let mut text = head.into_bytes();
        for (at, stored) in page.iter().enumerate() {
            if at > 0 {
                text.push(b',');
            }
            match view.form {
                Representation::Whole if view.resource.builtin().is_some() => stored.write_untyped(&mut text),
                Representation::Whole | Representation::Metadata | Representation::Table => {
                    view.write(stored, now, &mut text)
                }
            }
        }
        text.extend(b"]}");
        Ok(ApiResponse::text(200, text))
    }

    /// Returns the objects that a view selects.
    pub(crate) fn find_objects(&self, view: &ListView) -> Result<Vec<Arc<StoredObject>>, StatusError> {
        let home = &view.resource.storage_key;
        // Exactly one name in one namespace: look it up instead of scanning.
        if let Some(name) = view.selector.name()
            && (view.namespace.is_some() || !view.resource.namespaced)
        {
            let key = Key::new(view.namespace.as_deref().unwrap_or_default(), name);
            return Ok(self
                .store
                .get(home, &key)
                .filter(|one| view.selects(one))
                .cloned()
                .into_iter()
                .collect());
        }
        let all = self.store.all(home, view.namespace.as_deref());
        if view.selects_shown() {
            return self.filter_objects(view, all.cloned().collect());
        }
        Ok(all.filter(|stored| view.selector.is_empty() || view.selects(stored)).cloned().collect())
    }

    /// Returns those of the given objects that a view selects.
    pub(crate) fn filter_objects(
        &self,
        view: &ListView,
        all: Vec<Arc<StoredObject>>,
    ) -> Result<Vec<Arc<StoredObject>>, StatusError> {
        let mut shown = if view.selects_shown() { view.all_shown(&self.conversions, &all)? } else { all };
        shown.retain(|stored| view.selects(stored));
        Ok(shown)
    }

    /// Refuses a request for a future resourceVersion.
    pub(crate) fn check_not_in_future(&self, ask: &ApiRequest, revision: u64) -> Result<(), StatusError> {
        let text = ask.query("resourceVersion").unwrap_or("0");
        let wanted = text.parse::<u64>().map_err(|_| {
            let why = format!(
                "resourceVersion: Invalid value: {text:?}: strconv.ParseUint: parsing {text:?}: invalid syntax"
            );
            match ask.is_watch() {
                true => StatusError::failed(why),
                false => StatusError::bad_request(format!("invalid resource version: {why}")),
            }
        })?;
        if wanted <= revision {
            return Ok(());
        }
        let message = format!("Too large resource version: {wanted}, current: {revision}");
        let details = json!({"causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}], "retryAfterSeconds": 1});
        Err(StatusError {
            retry_after: Some(1),
            details: Some(Box::new(details)),
            ..StatusError::new(504, "Timeout", message)
        })
    }
}
