//! Values that only one server can know, replaced by what both must agree on.
//!
//! In: an answer. Out: the same, with uids, revisions, times and addresses as their places in the order of appearance.

use std::collections::HashMap;

use serde_json::Value;

/// Values that only one server knows, in the order in which it was given.
#[derive(Default, Clone)]
pub struct Known {
    seen: HashMap<String, usize>,
    counts: HashMap<&'static str, usize>,
    /// The last uid and revision that were given, for requests that name them.
    last: HashMap<&'static str, String>,
}

impl Known {
    /// Values for both servers, by the names that requests have for it.
    pub fn of(told: &[(&'static str, String)]) -> Self {
        Self { last: told.iter().cloned().collect(), ..Self::default() }
    }

    /// Replaces what only this server knows.
    pub fn replace(&mut self, value: &mut Value) {
        match value {
            Value::Object(fields) => {
                any_order(fields);
                // Labels may name it, too.
                if let Some(uid) = fields.get_mut("uid") {
                    self.name("uid", uid);
                }
                *fields = std::mem::take(fields)
                    .into_iter()
                    .map(|(name, value)| (self.quoted(&name), value))
                    .collect();
                // The revision of a list or a bookmark counts what happens elsewhere, too.
                let is_object = fields.contains_key("name") || fields.contains_key("uid");
                for (name, value) in fields {
                    let kind = match name.as_str() {
                        "resourceVersion" if !is_object => {
                            self.last.insert("list", value.as_str().unwrap_or_default().to_owned());
                            *value = "R".into();
                            continue;
                        }
                        "uid" => continue,
                        "resourceVersion" => "revision",
                        "clusterIP" | "clusterIPs" => "address",
                        "nodePort" | "healthCheckNodePort" => "port",
                        "time" | "creationTimestamp" | "deletionTimestamp" | "lastTransitionTime"
                        | "lastUpdateTime" => {
                            if value.is_string() {
                                *value = "T".into();
                            }
                            continue;
                        }
                        "continue" => "continue",
                        // Documentation, which the sandbox leaves out.
                        "columnDefinitions" => {
                            let columns = value.as_array_mut().into_iter().flatten();
                            columns.for_each(|column| column["description"] = "".into());
                            continue;
                        }
                        _ => {
                            self.replace(value);
                            continue;
                        }
                    };
                    self.name(kind, value);
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.replace(item)),
            Value::String(text) => *text = self.quoted(text),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    /// Messages quote what was named before; cells of tables are ages.
    fn quoted(&self, text: &str) -> String {
        let mut text = text.to_owned();
        if text.len() < 4 && text.strip_suffix('s').is_some_and(|age| age.parse::<u8>().is_ok()) {
            return "AGE".to_owned();
        }
        let mut named: Vec<_> = self.seen.iter().filter(|(known, _)| known.len() > 20).collect();
        named.sort_unstable();
        for (known, number) in named {
            text = text.replace(known.as_str(), &format!("uid#{number}"));
        }
        for before in ["ResourceVersion in record (", "too old resource version: 1 ("] {
            if let Some((start, rest)) = text.split_once(before)
                && let Some((_, end)) = rest.split_once(')')
            {
                text = format!("{start}{before}R){end}");
            }
        }
        if let Some((start, rest)) = text.split_once("expected response.uid=\"")
            && let Some((_, end)) = rest.split_once('"')
        {
            text = format!("{start}expected response.uid=\"U\"{end}");
        }
        if let Some((start, _)) = text.split_once(" (possibly because of") {
            text = start.to_owned();
        }
        if let Some((start, end)) = text.split_once("have the same UID: ") {
            let end = end.split_once(" != ").map_or("", |(_, end)| end);
            text = format!("{start}have the same UID: U != {end}");
        }
        if let Some((start, _)) = text.split_once("is missing in '{") {
            text = format!("{start}is missing in OBJECT");
        }
        // A patched object is quoted in the order of Go's fields.
        if let Some((start, rest)) = text.split_once("Invalid value: \"{")
            && let Some((_, end)) = rest.rsplit_once("}\": ")
        {
            text = format!("{start}Invalid value: OBJECT: {end}");
        }
        if let Some(number) = self.seen.get(&text).filter(|_| text.parse::<std::net::IpAddr>().is_ok()) {
            return format!("address#{number}");
        }
        text
    }

    fn name(&mut self, kind: &'static str, value: &mut Value) {
        let text = match value {
            Value::String(text) => text.clone(),
            Value::Number(number) => number.to_string(),
            Value::Array(items) => return items.iter_mut().for_each(|item| self.name(kind, item)),
            Value::Null | Value::Bool(_) | Value::Object(_) => return self.replace(value),
        };
        if matches!(text.as_str(), "" | "0" | "None") {
            return;
        }
        self.last.insert(kind, text.clone());
        let counts = &mut self.counts;
        let number = *self.seen.entry(text).or_insert_with(|| {
            let count = counts.entry(kind).or_default();
            *count += 1;
            *count
        });
        *value = format!("{kind}#{number}").into();
    }

    /// Text with what was given last in the place of `$uid`, `$revision` and `$list`.
    pub fn filled(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for (kind, last) in &self.last {
            text = text.replace(&format!("${kind}"), last);
        }
        text
    }
}

/// The problems of a custom resource are in any order; managers stand in that of their seconds.
fn any_order(fields: &mut serde_json::Map<String, Value>) {
    if let Some(Value::Array(managers)) = fields.get_mut("managedFields") {
        managers.sort_by_key(|it| {
            ["operation", "manager", "subresource", "apiVersion"].map(|name| it[name].to_string())
        });
    }
    if let Some(Value::Array(causes)) = fields.get_mut("causes") {
        causes.sort_by_key(Value::to_string);
    }
    if let Some(Value::String(message)) = fields.get_mut("message")
        && let Some((start, end)) = message.split_once(" is invalid: [")
    {
        let mut words: Vec<&str> = end.trim_end_matches(']').split(", ").collect();
        words.sort_unstable();
        *message = format!("{start} is invalid: [{}", words.join(", "));
    }
}
