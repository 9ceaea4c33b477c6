//! Built-in kinds that Kubernetes 1.36 serves by default.
//!
//! In: `kubernetes.txt`, which `tests/sandbox/sandbox_kinds.rs` generates from the discovery
//! document of a real API server and compares with it.
//! Out: every [`Kind`], in that server's order of groups.

use std::sync::LazyLock;

/// A kind as discovery describes it.
#[derive(Debug)]
pub(crate) struct Kind {
    /// API group; empty for the core group.
    pub(crate) group: &'static str,
    /// Served versions, the preferred one first.
    pub(crate) versions: Vec<&'static str>,
    pub(crate) plural: &'static str,
    pub(crate) singular: &'static str,
    pub(crate) kind: &'static str,
    pub(crate) namespaced: bool,
    pub(crate) short_names: Vec<&'static str>,
    pub(crate) categories: Vec<&'static str>,
    pub(crate) verbs: Vec<&'static str>,
    pub(crate) subresources: Vec<Subresource>,
}

/// A subresource of a kind.
#[derive(Debug)]
pub(crate) struct Subresource {
    pub(crate) name: &'static str,
    /// Group and version of its body, if they differ from those of the kind.
    pub(crate) foreign: Option<(&'static str, &'static str)>,
    pub(crate) kind: &'static str,
    pub(crate) verbs: Vec<&'static str>,
}

static KINDS: LazyLock<Vec<Kind>> = LazyLock::new(|| read(include_str!("kubernetes.txt")));

/// Letters for verbs in the table, in the order of discovery.
const VERBS: [(char, &str); 8] = [
    ('c', "create"),
    ('d', "delete"),
    ('x', "deletecollection"),
    ('g', "get"),
    ('l', "list"),
    ('p', "patch"),
    ('u', "update"),
    ('w', "watch"),
];

/// Returns all built-in kinds; the kinds of one group are adjacent.
pub(crate) fn builtin_kinds() -> &'static [Kind] {
    &KINDS
}

/// Returns a built-in kind; Event exists in two groups.
pub(crate) fn find_kind(group: &str, kind: &str) -> Option<&'static Kind> {
    KINDS.iter().find(|it| it.group == group && it.kind == kind)
}

impl Kind {
    /// Returns a subresource by name.
    pub(crate) fn subresource(&self, name: &str) -> Option<&Subresource> {
        self.subresources.iter().find(|it| it.name == name)
    }

    /// Returns the group under which the objects are stored; it differs only for Events of
    /// `events.k8s.io`. All versions of a kind store the same objects.
    pub(crate) fn storage_group(&self) -> &'static str {
        match self.group {
            "events.k8s.io" => "",
            group => group,
        }
    }
}

fn read(text: &'static str) -> Vec<Kind> {
    let mut kinds = Vec::new();
    let (mut group, mut versions) = ("", "");
    for line in text.lines() {
        let mut words = line.split_whitespace();
        let mut word = || words.next().unwrap_or_default();
        if !line.starts_with(' ') {
            // Skips the keyword `group`.
            word();
            group = word();
            versions = word();
            continue;
        }
        kinds.push(Kind {
            group: if group == "core" { "" } else { group },
            versions: listed(versions),
            plural: word(),
            singular: word(),
            kind: word(),
            namespaced: word() == "n",
            short_names: listed(word()),
            categories: listed(word()),
            verbs: verbs(word()),
            subresources: words.filter_map(subresource).collect(),
        });
    }
    kinds
}

fn listed(words: &'static str) -> Vec<&'static str> {
    words.split(',').filter(|word| *word != "-").collect()
}

fn verbs(letters: &str) -> Vec<&'static str> {
    VERBS
        .iter()
        .filter(|(letter, _)| letters == "*" || letters.contains(*letter))
        .map(|(_, verb)| *verb)
        .collect()
}

/// Parses a subresource such as `scale=autoscaling/v1/Scale:gpu`.
fn subresource(word: &'static str) -> Option<Subresource> {
    let (name, rest) = word.split_once('=')?;
    let (kind, letters) = rest.split_once(':')?;
    let mut parts = kind.split('/');
    let (foreign, kind) = match (parts.next(), parts.next(), parts.next()) {
        (Some(group), Some(version), Some(kind)) => (Some((group, version)), kind),
        _ => (None, kind),
    };
    Some(Subresource { name, foreign, kind, verbs: verbs(letters) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_read_whole() {
        assert_eq!(builtin_kinds().len(), 67);
        let broken: Vec<_> =
            builtin_kinds().iter().filter(|it| it.kind.is_empty() || it.verbs.is_empty()).collect();
        assert!(broken.is_empty(), "{broken:?}");
    }

    #[test]
    fn kinds_are_as_the_server_tells_them() {
        let deployment = find_kind("apps", "Deployment").expect("Deployments are served");
        assert_eq!((deployment.plural, deployment.singular), ("deployments", "deployment"));
        assert_eq!(
            (&deployment.short_names[..], &deployment.categories[..]),
            (&["deploy"][..], &["all"][..])
        );
        assert_eq!(deployment.verbs.len(), 8);
        let scale = deployment.subresource("scale").expect("Deployments scale");
        assert_eq!((scale.foreign, scale.kind), (Some(("autoscaling", "v1")), "Scale"));
        assert_eq!(scale.verbs, ["get", "patch", "update"]);
        assert_eq!(deployment.subresource("status").expect("they have a status").foreign, None);
        assert_eq!(
            find_kind("autoscaling", "HorizontalPodAutoscaler").expect("served").versions,
            ["v2", "v1"]
        );
        assert_eq!(find_kind("", "Namespace").map(|it| it.namespaced), Some(false));
        assert_eq!(find_kind("", "Binding").expect("served").verbs, ["create"]);
        assert_eq!(find_kind("events.k8s.io", "Event").expect("served").storage_group(), "");
    }
}
