//! GET: one object, or a list of them.
//!
//! In: which, how they are selected, how many, and in which form. Out: the answer as text. The text of an object is the
//! one that is stored, where its version and form are the ones that are wanted.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::answer::Answer;
use super::ask::{Ask, Form};
use super::convert;
use super::refusal::Refusal;
use super::select::Selector;
use super::served::{Origin, Resource};
use super::state::State;
use super::store::{Key, Stored};
use super::table::{self, Include};
use super::write::Target;

/// Which objects, and in which form.
#[derive(Debug, Clone)]
pub(crate) struct View {
    pub(crate) resource: Arc<Resource>,
    pub(crate) version: usize,
    pub(crate) namespace: Option<Box<str>>,
    pub(crate) selector: Selector,
    pub(crate) form: Form,
    pub(crate) include: Include,
}

impl View {
    /// What a request wants to see of the objects of a target.
    pub(crate) fn new(target: &Target, ask: &Ask) -> Result<Self, Refusal> {
        let known: Vec<&str> = target.served().selectable.iter().map(|path| &**path).collect();
        let selector = Selector::read(ask.query("labelSelector"), ask.query("fieldSelector"), &known)?;
        Ok(Self {
            resource: target.resource.clone(),
            version: target.version,
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

    /// True if the object is wanted.
    pub(crate) fn fits(&self, stored: &Stored) -> bool {
        self.namespace.as_ref().is_none_or(|namespace| *namespace == stored.key.namespace)
            && self.selector.fits(stored)
    }

    /// One object as text.
    pub(crate) fn write(&self, stored: &Stored, now: Timestamp, out: &mut Vec<u8>) -> Result<(), Refusal> {
        match self.form {
            Form::Metadata => {
                out.extend(br#"{"apiVersion":"meta.k8s.io/v1","kind":"PartialObjectMetadata","metadata":"#);
                out.extend(stored.metadata());
                out.push(b'}');
            }
            Form::Whole if self.is_as_stored(stored) => out.extend(stored.text()),
            Form::Whole => out.extend(self.body(stored)?.to_string().into_bytes()),
            Form::Table => {
                let mut table = self.table(&[&self.body(stored)?], now);
                table["metadata"] = json!({"resourceVersion": stored.revision.to_string()});
                out.extend(table.to_string().into_bytes());
            }
        }
        Ok(())
    }

    /// True if the stored text is the answer.
    fn is_as_stored(&self, stored: &Stored) -> bool {
        !self.resource.is_older(stored.revision)
            && self.resource.stored_version() == self.version
            && self.resource.builtin().is_none_or(|kind| kind.home() == kind.group)
    }

    fn body(&self, stored: &Stored) -> Result<Value, Refusal> {
        convert::read(&self.resource, self.version, stored)
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
    /// One object.
    pub(crate) fn get(&self, target: &Target, ask: &Ask) -> Result<Answer, Refusal> {
        let view = View::new(target, ask)?;
        let stored = self.store.get(&target.resource.home, &target.key);
        let stored = stored.ok_or_else(|| Refusal::not_found(target.about()))?;
        let mut text = Vec::with_capacity(1024);
        view.write(stored, self.clock.now(), &mut text)?;
        Ok(Answer::text(200, text))
    }

    /// A list, or the next page of one.
    pub(crate) fn list(&mut self, target: &Target, ask: &Ask) -> Result<Answer, Refusal> {
        let view = View::new(target, ask)?;
        let (found, revision) = match ask.query("continue") {
            Some(token) => self.rest_of(token)?,
            None => (self.found(&view), self.store.revision()),
        };
        self.not_ahead(ask, revision)?;
        let limit = ask.query("limit").and_then(|text| text.parse().ok()).filter(|limit| *limit > 0);
        let (page, rest) = found.split_at(limit.unwrap_or(found.len()).min(found.len()));
        let mut metadata = json!({"resourceVersion": revision.to_string()});
        if view.form == Form::Whole && view.resource.builtin().is_none() {
            metadata["continue"] = "".into();
        }
        if !rest.is_empty() {
            metadata["continue"] = self.store.open(rest.to_vec(), revision).to_string().into();
            if view.selector.is_empty() {
                metadata["remainingItemCount"] = rest.len().into();
            }
        }
        let now = self.clock.now();
        if view.form == Form::Table {
            let bodies = page.iter().map(|stored| view.body(stored)).collect::<Result<Vec<_>, _>>()?;
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
                Form::Whole if view.is_as_stored(stored) && view.resource.builtin().is_some() => {
                    stored.write_untyped(&mut text);
                }
                Form::Whole if view.resource.builtin().is_some() => {
                    let mut body = view.body(stored)?;
                    if let Some(fields) = body.as_object_mut() {
                        fields.retain(|name, _| name != "apiVersion" && name != "kind");
                    }
                    text.extend(body.to_string().into_bytes());
                }
                Form::Whole | Form::Metadata | Form::Table => view.write(stored, now, &mut text)?,
            }
        }
        text.extend(b"]}");
        Ok(Answer::text(200, text))
    }

    /// The objects that a view shows.
    pub(crate) fn found(&self, view: &View) -> Vec<Arc<Stored>> {
        let home = &view.resource.home;
        // One name in one namespace is looked up, not looked for.
        if let Some(name) = view.selector.name()
            && (view.namespace.is_some() || !view.resource.namespaced)
        {
            let key = Key::new(view.namespace.as_deref().unwrap_or_default(), name);
            return self.store.get(home, &key).filter(|one| view.fits(one)).cloned().into_iter().collect();
        }
        let all = self.store.all(home, view.namespace.as_deref());
        all.filter(|stored| view.selector.is_empty() || view.fits(stored)).cloned().collect()
    }

    fn rest_of(&self, token: &str) -> Result<(Vec<Arc<Stored>>, u64), Refusal> {
        let number = token.parse().map_err(|_| {
            Refusal::bad_request(
                "invalid continue token: continue key is not valid: illegal base64 data at input byte 0",
            )
        })?;
        let rest = self.store.rest(number);
        let (rest, revision) = rest.ok_or_else(|| {
            Refusal::expired(
                "The provided continue parameter is too old to display a consistent list result. You can start a new list without the continue parameter.",
            )
        })?;
        Ok((rest.to_vec(), revision))
    }

    /// Nobody may ask for what is yet to come.
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
        Err(Refusal { code: 504, reason: "Timeout", message, details: Some(details), retry_after: Some(1) })
    }
}
