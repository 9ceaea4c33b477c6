//! Builds and parses paths of the status page.
//!
//! In: names. Out: paths in which every name is escaped, and the names of a path; external
//! addresses only if they are safe.

use std::fmt::Write as _;

use super::tabs::SyncTab;
use crate::api::SyncName;
use crate::object::ObjectId;

/// The target of a link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Link {
    text: String,
    external: bool,
}

impl Link {
    /// The overview.
    pub(crate) fn overview() -> Self {
        Self { text: "/".to_owned(), external: false }
    }

    /// The page of all clusters.
    pub(crate) fn clusters() -> Self {
        Self { text: "/clusters".to_owned(), external: false }
    }

    /// The page of a Sync.
    pub(crate) fn sync(name: &SyncName) -> Self {
        Self { text: format!("/syncs/{}/{}", part(&name.namespace), part(&name.name)), external: false }
    }

    /// A tab of a Sync.
    pub(crate) fn tab(name: &SyncName, tab: SyncTab) -> Self {
        let mut place = Self::sync(name);
        if !tab.segment().is_empty() {
            let _ = write!(place.text, "/{}", tab.segment());
        }
        place
    }

    /// The page of an object.
    pub(crate) fn object(name: &SyncName, id: &ObjectId) -> Self {
        let mut place = Self::sync(name);
        let or_none = |text: &str| if text.is_empty() { "-".to_owned() } else { part(text) };
        let namespace = id.namespace().unwrap_or_default();
        let (group, kind) = (or_none(id.group()), part(id.kind()));
        let _ = write!(place.text, "/objects/{group}/{kind}/{}/{}", or_none(namespace), part(id.name()));
        place
    }

    /// A page below this one.
    pub(crate) fn below(mut self, words: &[&str]) -> Self {
        words.iter().for_each(|word| {
            let _ = write!(self.text, "/{}", part(word));
        });
        self
    }

    /// An action on a Sync.
    pub(crate) fn action(name: &SyncName, action: &str) -> Self {
        Self::sync(name).below(&["actions", action])
    }

    /// The same page as JSON.
    pub(crate) fn json(&self) -> Self {
        let text = if self.text == "/" { "/syncs" } else { &self.text };
        Self { text: format!("/api/v1{text}"), external: false }
    }

    /// An anchor on the same page.
    pub(crate) fn anchor(name: &'static str) -> Self {
        Self { text: format!("#{name}"), external: false }
    }

    /// A file of the status page.
    pub(crate) fn file(path: &str) -> Self {
        Self { text: path.to_owned(), external: false }
    }

    /// An external address; `None` unless it is an http(s) URL, because a browser might run it.
    pub(crate) fn external(url: &str) -> Option<Self> {
        let rest = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"))?;
        let sound = !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_graphic());
        sound.then(|| Self { text: url.to_owned(), external: true })
    }

    /// Adds a query; empty values are left out.
    pub(crate) fn with_query(mut self, query: &[(&'static str, &str)]) -> Self {
        let mut between = '?';
        for (name, value) in query.iter().filter(|(_, value)| !value.is_empty()) {
            let _ = write!(self.text, "{between}{name}={}", part(value));
            between = '&';
        }
        self
    }

    /// Adds an anchor on the page.
    pub(crate) fn at(mut self, anchor: &'static str) -> Self {
        let _ = write!(self.text, "#{anchor}");
        self
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.text
    }

    pub(crate) fn is_external(&self) -> bool {
        self.external
    }
}

/// The object id in the last four segments of a path.
pub(crate) fn parse_object_id(parts: &[String]) -> Option<ObjectId> {
    let [group, kind, namespace, name] = parts else { return None };
    let or_empty = |text: &'_ str| if text == "-" { String::new() } else { text.to_owned() };
    ObjectId::new(&or_empty(group), kind, &or_empty(namespace), name).ok()
}

/// The unescaped segments of a path; `None` if one is not UTF-8.
pub(crate) fn path_segments(path: &str) -> Option<Vec<String>> {
    path.strip_prefix('/')?.split('/').map(|part| unescape(part, false)).collect()
}

/// The value of a name in a query.
pub(crate) fn query_value(query: &str, name: &str) -> Option<String> {
    let (_, value) = pairs(query).find(|(known, _)| *known == name)?;
    unescape(value, true)
}

/// All values of a name in a query, each of which may be several with commas between them.
pub(crate) fn query_values(query: &str, name: &str) -> Vec<String> {
    let values = pairs(query).filter(|(known, _)| *known == name);
    let values: Vec<String> = values.filter_map(|(_, value)| unescape(value, true)).collect();
    let parts = values.iter().flat_map(|value| value.split(','));
    parts.filter(|part| !part.is_empty()).map(str::to_owned).collect()
}

fn pairs(query: &str) -> impl Iterator<Item = (&str, &str)> {
    query.split('&').filter_map(|pair| pair.split_once('='))
}

fn unescape(text: &str, plus: bool) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => {
                let mut digit = || char::from(rest.next()?).to_digit(16);
                u8::try_from(digit()? * 16 + digit()?).ok()?
            }
            b'+' if plus => b' ',
            byte => byte,
        });
    }
    String::from_utf8(bytes).ok()
}

fn part(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => out.push(char::from(byte)),
            byte => {
                let _ = write!(out, "%{byte:02X}");
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_s_path_leads_back_to_it() {
        let sync = SyncName::new("ops", "shop");
        for (id, path) in [
            ("apps/Deployment|shop/web", "/syncs/ops/shop/objects/apps/Deployment/shop/web"),
            ("/Namespace|/shop", "/syncs/ops/shop/objects/-/Namespace/-/shop"),
            (
                "rbac.authorization.k8s.io/ClusterRole|/system:a|b é",
                "/syncs/ops/shop/objects/rbac.authorization.k8s.io/ClusterRole/-/system%3Aa%7Cb%20%C3%A9",
            ),
        ] {
            let id = ObjectId::parse(id).unwrap();
            let place = Link::object(&sync, &id);
            assert_eq!(place.as_str(), path);
            let parts = path_segments(path).unwrap();
            assert_eq!(parse_object_id(&parts[4..]), Some(id));
        }
        assert_eq!(path_segments("/a/%zz"), None);
        assert_eq!(path_segments("/a/%ff"), None);
        assert_eq!(path_segments("a"), None);
    }

    #[test]
    fn a_query_is_read_back() {
        let place = Link::overview().with_query(&[("q", "a b&c=d"), ("state", ""), ("page", "2")]);
        assert_eq!(place.as_str(), "/?q=a%20b%26c%3Dd&page=2");
        let asked = place.as_str().split_once('?').unwrap().1;
        assert_eq!(query_value(asked, "q").as_deref(), Some("a b&c=d"));
        assert_eq!(query_value("q=a+b", "q").as_deref(), Some("a b"));
        assert_eq!(query_value(asked, "state"), None);
        assert_eq!(query_values("k=a%2Cb&q=d&k=c&k=", "k"), ["a", "b", "c"]);
    }

    #[test]
    fn only_the_web_is_elsewhere() {
        assert!(Link::external("https://git.example/x").is_some());
        for bad in ["javascript:alert(1)", "//host/x", "https://", "https://a b", "HTTPS://a", "data:,x"] {
            assert_eq!(Link::external(bad), None, "{bad}");
        }
    }
}
