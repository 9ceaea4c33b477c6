//! Builds a Sync from an old resource.
//!
//! In: the fields that the converters of Application and Kustomization find. Out: a spec, and
//! remarks about fields that are missing from it. Parts that both kinds share, such as the
//! repository, are converted here.

use serde_json::{Value, json};

use super::{FieldRemark, RequestedSync};

/// A Sync that is being built.
#[derive(Debug)]
pub(super) struct SyncBuilder {
    pub(super) requested: RequestedSync,
    pub(super) spec: Value,
    pub(super) lost: Vec<FieldRemark>,
    pub(super) refused: Vec<FieldRemark>,
}

/// The text at a JSON pointer, or an empty one.
pub(super) fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// True for a field that is set: it exists, and is neither empty nor false.
pub(super) fn is_set(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(yes) => *yes,
        Value::Number(_) => true,
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Object(fields) => fields.values().any(is_set),
    }
}

impl SyncBuilder {
    pub(super) fn new(wanted: RequestedSync) -> Self {
        Self { requested: wanted, spec: json!({}), lost: Vec::new(), refused: Vec::new() }
    }

    /// Records a field that is not carried over.
    pub(super) fn mark_lost(&mut self, field: impl Into<Box<str>>, why: impl Into<Box<str>>) {
        self.lost.push(FieldRemark { field: field.into(), why: why.into() });
    }

    /// Records a field without which the Sync would apply other objects.
    pub(super) fn refuse(&mut self, field: impl Into<Box<str>>, why: impl Into<Box<str>>) {
        self.refused.push(FieldRemark { field: field.into(), why: why.into() });
    }

    /// Refuses each of these fields that is set.
    pub(super) fn refuse_each(&mut self, old: &Value, place: &str, fields: &[(&str, &str)]) {
        for (field, why) in fields.iter().filter(|(field, _)| is_set(&old[*field])) {
            self.refuse(format!("{place}.{field}"), *why);
        }
    }

    /// Records each of these fields that is set as lost.
    pub(super) fn mark_each_lost(&mut self, old: &Value, place: &str, fields: &[(&str, &str)]) {
        for (field, why) in fields.iter().filter(|(field, _)| is_set(&old[*field])) {
            self.mark_lost(format!("{place}.{field}"), *why);
        }
    }

    /// Records each set field as lost that is not one of these.
    pub(super) fn mark_unknown_lost(&mut self, old: &Value, place: &str, known: &[&str]) {
        let fields = old.as_object().into_iter().flatten();
        let unknown = fields.filter(|(field, value)| is_set(value) && !known.contains(&field.as_str()));
        for (field, _) in unknown {
            let why = "Moorline does not know this field: find out whether the Sync can do without it";
            self.mark_lost(format!("{place}.{field}"), why);
        }
    }

    /// Sets the repository. A login in the URL is kept out of the Sync and of everything that is
    /// printed.
    pub(super) fn url(&mut self, field: &str, url: &str, login: &str) {
        let (url, has_login) = without_login(url);
        self.spec["source"]["git"]["url"] = url.clone().into();
        let secret = self.requested.secret.clone();
        if let Some(secret) = &secret {
            self.spec["source"]["git"]["secretRef"] = json!({"name": secret});
            return;
        }
        let namespace = self.requested.sync.namespace.clone();
        let is_ssh = url.starts_with("ssh://") || !url.contains("://");
        let form =
            if is_ssh { "ssh-privatekey and known_hosts" } else { "username and password, or bearerToken" };
        let make = format!(
            "create a Secret in {namespace} with the keys {form}, and pass its name with --secret; Moorline copies no credentials"
        );
        if is_ssh {
            self.refuse(field, format!("over ssh the repository needs credentials: {make}"));
        } else if has_login {
            self.refuse(field, format!("the URL has credentials in it, which belong in a Secret: {make}"));
        } else if !login.is_empty() {
            self.refuse(field, format!("{login}: {make}"));
        }
    }

    /// Sets the folder in the repository.
    pub(super) fn path(&mut self, path: &str) {
        let inside = path.trim_start_matches("./").trim_matches('/');
        let inside = if inside == "." { "" } else { inside };
        self.spec["path"] = format!("./{inside}").into();
    }
}

/// Removes user and password from a URL; true if there were any. Over ssh the user is a part of the
/// address.
pub(super) fn without_login(url: &str) -> (String, bool) {
    for scheme in ["https://", "http://"] {
        let rest = url.strip_prefix(scheme);
        let (login, host) = match rest.map(|rest| rest.split_at(rest.find('/').unwrap_or(rest.len()))) {
            Some((authority, path)) => match authority.rsplit_once('@') {
                Some((_, host)) => (true, format!("{scheme}{host}{path}")),
                None => (false, url.to_owned()),
            },
            None => continue,
        };
        return (host, login);
    }
    // A password before the host is secret and must not be printed.
    match url.strip_prefix("ssh://").and_then(|rest| rest.split_once('@')) {
        Some((login, rest)) if login.contains(':') => {
            let user = login.split(':').next().unwrap_or_default();
            (format!("ssh://{user}@{rest}"), true)
        }
        _ => (url.to_owned(), false),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logins_stay_out_of_urls() {
        for (url, expect, login) in [
            ("https://example.com/a.git", "https://example.com/a.git", false),
            ("https://me:planted@example.com/a.git", "https://example.com/a.git", true),
            ("https://planted@example.com", "https://example.com", true),
            ("https://example.com/@a", "https://example.com/@a", false),
            ("https://me:pl@nted@example.com/a", "https://example.com/a", true),
            ("git@example.com:a/b.git", "git@example.com:a/b.git", false),
            ("ssh://git@example.com/a", "ssh://git@example.com/a", false),
            ("ssh://git:planted@example.com/a", "ssh://git@example.com/a", true),
        ] {
            assert_eq!(without_login(url), (expect.to_owned(), login), "{url}");
        }
    }
}
