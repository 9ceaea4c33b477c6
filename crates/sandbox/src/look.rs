//! GET: one object or a list.
//!
//! In: the target, the selectors, the page size and the representation.
//! Out: the response. The stored text of an object is sent unchanged if it has the requested
//! version and representation.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::answer::Answer;
use super::ask::{Ask, Form};
use super::convert::{self, Conversions};
use super::refusal::Refusal;
use super::select::Selector;
use super::served::{Origin, Resource};
use super::state::State;
use super::store::{Key, Stored};
use super::table::{self, Include};
use super::write::Target;

/// Selection of objects and their representation.
#[derive(Debug, Clone)]
pub(crate) struct View {
    pub(crate) resource: Arc<Resource>,
    pub(crate) version: usize,
    api_version: Box<str>,
    pub(crate) namespace: Option<Box<str>>,
    pub(crate) selector: Selector,
    pub(crate) form: Form,
    pub(crate) include: Include,
}

impl View {
    /// Builds the view that a request asks for.
    pub(crate) fn new(target: &Target, ask: &Ask) -> Result<Self, Refusal> {
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
                Some("None") => Include::None,
                Some("Object") => Include::Object,
                _ => Include::Metadata,
            },
        })
    }

    /// True if the view selects the object.
    pub(crate) fn fits(&self, stored: &Stored) -> bool {
        self.namespace.as_ref().is_none_or(|namespace| *namespace == stored.key.namespace)
            && self.selector.fits(stored)
    }

    /// Returns the object in the version of this view.
    pub(crate) fn shown(
        &self,
        conversions: &Conversions,
        stored: &Arc<Stored>,
    ) -> Result<Arc<Stored>, Refusal> {
        if !self.resource.is_older(stored.revision) && stored.api_version() == &*self.api_version {
            return Ok(stored.clone());
        }
        let body = convert::read(conversions, &self.resource, self.version, stored)?;
        Ok(Arc::new(stored.again(body)))
    }

    /// Returns all objects in the version of this view; their missing conversions are collected for
    /// one call of the webhook.
    fn all_shown(
        &self,
        conversions: &Conversions,
        stored: &[Arc<Stored>],
    ) -> Result<Vec<Arc<Stored>>, Refusal> {
        let shown: Vec<_> = stored.iter().map(|stored| self.shown(conversions, stored)).collect();
        shown.into_iter().collect()
    }

    /// True if selectors must be evaluated after conversion, because the fields may differ between
    /// versions.
    pub(crate) fn selects_shown(&self) -> bool {
        self.resource.builtin().is_none() && !self.selector.is_empty()
    }

    /// Writes one converted object as text.
    pub(crate) fn write(&self, stored: &Stored, now: Timestamp, out: &mut Vec<u8>) {
        match self.form {
            Form::Metadata => {
                out.extend(br#"{"apiVersion":"meta.k8s.io/v1","kind":"PartialObjectMetadata","metadata":"#);
                out.extend(stored.metadata());
                out.push(b'}');
            }
            Form::Whole => out.extend(stored.text()),
            Form::Table => {
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

impl State {
    /// Answers a GET of one object.
    pub(crate) fn get(&self, target: &Target, ask: &Ask) -> Result<Answer, Refusal> {
        let view = View::new(target, ask)?;
        let stored = self.store.get(&target.resource.home, &target.key);
        let stored = stored.ok_or_else(|| Refusal::not_found(target.about()))?;
        let shown = view.shown(&self.conversions, stored)?;
        let mut text = Vec::with_capacity(1024);
        view.write(&shown, self.clock.now(), &mut text);
        Ok(Answer::text(200, text))
    }

    /// Answers a list, or the next page of one.
    pub(crate) fn list(&mut self, target: &Target, ask: &Ask) -> Result<Answer, Refusal> {
        let view = View::new(target, ask)?;
        if ask.query("continue").is_some() && ask.query("resourceVersion").is_some_and(|it| it != "0") {
            return Err(Refusal::bad_request(
                "specifying resource version is not allowed when using continue",
            ));
        }
        self.not_ahead(ask, self.store.revision())?;
        let (found, revision) = self.listed(&view, ask)?;
        let limit = ask.query("limit").and_then(|text| text.parse().ok()).filter(|limit| *limit > 0);
        let (page, rest) = found.split_at(limit.unwrap_or(found.len()).min(found.len()));
        let mut metadata = json!({"resourceVersion": revision.to_string()});
        if view.form == Form::Whole && view.resource.builtin().is_none() {
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
        if view.form == Form::Table {
            let bodies: Vec<Value> = page.iter().map(|stored| stored.body()).collect();
            let mut whole = view.table(&bodies.iter().collect::<Vec<_>>(), now);
            whole["metadata"] = metadata;
            return Ok(Answer::json(200, &whole));
        }
        let (version, kind) = match view.form {
            Form::Metadata => ("meta.k8s.io/v1".to_owned(), "PartialObjectMetadataList".to_owned()),
            Form::Whole | Form::Table => (target.api_version(), format!("{}List", target.resource.kind)),
        };
        let head = format!(r#"{{"apiVersion":"{version}","kind":"{kind}","metadata":{metadata},"items":["#);
        let mut text = head.into_bytes();
        for (at, stored) in page.iter().enumerate() {
            if at > 0 {
                text.push(b',');
            }
            match view.form {
                Form::Whole if view.resource.builtin().is_some() => stored.write_untyped(&mut text),
                Form::Whole | Form::Metadata | Form::Table => view.write(stored, now, &mut text),
            }
        }
        text.extend(b"]}");
        Ok(Answer::text(200, text))
    }

    /// Returns the objects that a view selects.
    pub(crate) fn found(&self, view: &View) -> Result<Vec<Arc<Stored>>, Refusal> {
        let home = &view.resource.home;
        // Exactly one name in one namespace: look it up instead of scanning.
        if let Some(name) = view.selector.name()
            && (view.namespace.is_some() || !view.resource.namespaced)
        {
            let key = Key::new(view.namespace.as_deref().unwrap_or_default(), name);
            return Ok(self
                .store
                .get(home, &key)
                .filter(|one| view.fits(one))
                .cloned()
                .into_iter()
                .collect());
        }
        let all = self.store.all(home, view.namespace.as_deref());
        if view.selects_shown() {
            return self.selected(view, all.cloned().collect());
        }
        Ok(all.filter(|stored| view.selector.is_empty() || view.fits(stored)).cloned().collect())
    }

    /// Returns those of the given objects that a view selects.
    pub(crate) fn selected(&self, view: &View, all: Vec<Arc<Stored>>) -> Result<Vec<Arc<Stored>>, Refusal> {
        let mut shown = if view.selects_shown() { view.all_shown(&self.conversions, &all)? } else { all };
        shown.retain(|stored| view.fits(stored));
        Ok(shown)
    }

    /// Refuses a request for a future resourceVersion.
    pub(crate) fn not_ahead(&self, ask: &Ask, revision: u64) -> Result<(), Refusal> {
        let text = ask.query("resourceVersion").unwrap_or("0");
        let wanted = text.parse::<u64>().map_err(|_| {
            let why = format!(
                "resourceVersion: Invalid value: {text:?}: strconv.ParseUint: parsing {text:?}: invalid syntax"
            );
            match ask.is_watch() {
                true => Refusal::failed(why),
                false => Refusal::bad_request(format!("invalid resource version: {why}")),
            }
        })?;
        if wanted <= revision {
            return Ok(());
        }
        let message = format!("Too large resource version: {wanted}, current: {revision}");
        let details = json!({"causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}], "retryAfterSeconds": 1});
        Err(Refusal {
            retry_after: Some(1),
            details: Some(Box::new(details)),
            ..Refusal::new(504, "Timeout", message)
        })
    }
}
