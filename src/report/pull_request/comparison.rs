//! Compares the base and the proposed commit of a pull request with the cluster.
//!
//! In: both desired sets, rendered without Secrets, and what may be known of the cluster.
//! Out: [`PullRequestPlan`].
//!
//! The author of a pull request chooses the names of objects and the paths of fields. So nothing of
//! the cluster is looked up by a name or a path that the base does not have, but the existence of
//! an object in the kinds and namespaces of this Sync.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use crate::desired::{DesiredObject, DesiredSet};
use crate::object::{GroupKind, ObjectId};
use crate::plan::{Difference, compare_bodies};

/// Most fields of one object in a plan; the rest is counted.
const MAX_FIELDS: usize = 20;

/// Part of the cluster that a plan may use.
#[derive(Debug, Clone, Default)]
pub struct LiveView {
    /// The objects that this Sync owns, by their identity annotation.
    pub owned: BTreeMap<ObjectId, Map<String, Value>>,
    /// Objects without a Sync that exist, in the kinds and namespaces of this Sync.
    pub others: BTreeSet<ObjectId>,
    /// The same of other Syncs.
    pub other_syncs: BTreeSet<ObjectId>,
    /// Kinds whose objects are deleted only with approval.
    pub protected: BTreeSet<GroupKind>,
    /// Objects that are no longer in Git are deleted.
    pub prunes: bool,
    /// Live objects may hold values of Secrets that were not rendered: no live value is shown.
    pub hides_values: bool,
}

/// Verb of an object in a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum PlannedVerb {
    /// It is deleted.
    Prune,
    /// It is deleted after an approval.
    PruneByApproval,
    /// It stays in the cluster, and is no longer in Git.
    Keep,
    /// It belongs to another Sync, and stays as it is.
    Hold,
    /// It exists, and belongs to no Sync.
    Adopt,
    /// It is created.
    Create,
    /// It is changed.
    Update,
}

/// An object that a pull request changes.
#[derive(Debug, Clone, PartialEq)]
pub struct ObjectChange {
    /// The object.
    pub id: ObjectId,
    /// The change.
    pub verb: PlannedVerb,
    /// Its fields, of an update alone.
    pub fields: Vec<FieldChange>,
    /// The number of fields that are left out.
    pub more: usize,
}

/// A field that a pull request changes.
#[derive(Debug, Clone, PartialEq)]
pub struct FieldChange {
    /// Its path.
    pub path: String,
    /// Its value in the base and in the proposed commit; none if values must not be shown.
    pub values: Option<(Option<Value>, Option<Value>)>,
    /// Its live value, where others changed it since the base was applied.
    pub live: Option<Value>,
}

/// Plan of a pull request.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PullRequestPlan {
    /// The changes, deletions first.
    pub changes: Vec<ObjectChange>,
    /// The number of objects that stay as they are.
    pub same: usize,
}

/// Compares the proposed commit with the base.
pub fn compare(base: &DesiredSet, head: &DesiredSet, live: &LiveView) -> PullRequestPlan {
    let mut plan = PullRequestPlan::default();
    for wanted in head.objects() {
        let change = match base.get(&wanted.id) {
            None => Some(new_object(&wanted.id, live)),
            Some(before) => changed_object(before, wanted, live),
        };
        plan.same += usize::from(change.is_none());
        plan.changes.extend(change);
    }
    let gone = base.objects().iter().filter(|object| head.get(&object.id).is_none());
    plan.changes.extend(gone.filter_map(|object| removed_object(&object.id, live)));
    plan.changes.sort_by(|a, b| (a.verb, &a.id).cmp(&(b.verb, &b.id)));
    plan
}

/// Returns the change of an object that only the proposed commit has. One that this Sync owns
/// already was added by an earlier commit.
fn new_object(id: &ObjectId, live: &LiveView) -> ObjectChange {
    let verb = match () {
        () if live.owned.contains_key(id) => PlannedVerb::Update,
        () if live.other_syncs.contains(id) => PlannedVerb::Hold,
        () if live.others.contains(id) => PlannedVerb::Adopt,
        () => PlannedVerb::Create,
    };
    whole(id, verb)
}

/// Returns the change of an object that only the base has; none if it is not in the cluster.
fn removed_object(id: &ObjectId, live: &LiveView) -> Option<ObjectChange> {
    live.owned.get(id)?;
    let verb = match () {
        () if !live.prunes => PlannedVerb::Keep,
        () if live.protected.contains(&id.group_kind()) => PlannedVerb::PruneByApproval,
        () => PlannedVerb::Prune,
    };
    Some(whole(id, verb))
}

fn whole(id: &ObjectId, verb: PlannedVerb) -> ObjectChange {
    ObjectChange { id: id.clone(), verb, fields: Vec::new(), more: 0 }
}

/// Returns the change of an object that both have; none if both are the same.
fn changed_object(before: &DesiredObject, wanted: &DesiredObject, live: &LiveView) -> Option<ObjectChange> {
    if before.hash == wanted.hash {
        return None;
    }
    let (base, head) = (before.body(), wanted.body());
    let found = compare_bodies(&base, &head);
    let hides = before.contains_secret || wanted.contains_secret || wanted.id.is_kind("", "Secret");
    let drift = match live.owned.get(&wanted.id).filter(|_| !hides && !live.hides_values) {
        Some(live) => drift_from(&base, live),
        None => BTreeMap::new(),
    };
    let more = found.len().saturating_sub(MAX_FIELDS);
    let fields = found.into_iter().take(MAX_FIELDS).map(|field| field_change(field, hides, &drift)).collect();
    Some(ObjectChange { id: wanted.id.clone(), verb: PlannedVerb::Update, fields, more })
}

fn field_change(found: Difference, hides: bool, drift: &BTreeMap<String, Value>) -> FieldChange {
    let Difference { path, live: before, desired: after, .. } = found;
    let live = drift.get(&path).filter(|_| !hides).cloned();
    FieldChange { values: (!hides).then_some((before, after)), live, path }
}

/// Returns the live values of single fields that the base sets with another value. Lists and maps
/// are left out, because the live ones may hold more than the base does; and so are fields with a
/// variable, because their live value is that of the variable.
fn drift_from(base: &Map<String, Value>, live: &Map<String, Value>) -> BTreeMap<String, Value> {
    let is_single = |value: &Value| !value.is_object() && !value.is_array();
    compare_bodies(live, base)
        .into_iter()
        .filter_map(|field| {
            let (live, base) = field.live.zip(field.desired)?;
            let is_shown = is_single(&live) && is_single(&base) && !has_variable(&base);
            is_shown.then_some((field.path, live))
        })
        .collect()
}

/// True for a text with a variable that is not substituted here.
fn has_variable(value: &Value) -> bool {
    value.as_str().is_some_and(|text| text.contains('$'))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::comment::{MAX_COMMENT_BYTES, comment_marker};
    use super::super::{CommentSubject, comment, refusal_comment};
    use super::*;
    use crate::desired::{Scopes, build_desired_set};
    use crate::plan::Policy;
    use crate::render::{RenderOptions, Rendered, render};
    use crate::tree::FileTree;

    fn set(objects: &[Value]) -> DesiredSet {
        let texts: Vec<String> = objects.iter().map(Value::to_string).collect();
        let names: Vec<String> = (0..texts.len()).map(|at| format!("{at}.json")).collect();
        let files = names.iter().map(String::as_str).zip(texts.iter().map(String::as_str));
        let rendered = render(&FileTree::from_texts(files), &RenderOptions::default());
        let Rendered::Complete(complete) = rendered else { panic!("the manifests are sound") };
        build_desired_set(complete, "shop", &Scopes::builtin()).unwrap()
    }

    fn object(kind: &str, name: &str, fields: Value) -> Value {
        let mut whole =
            json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": name, "namespace": "shop"}});
        whole.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        whole
    }

    fn map(name: &str, data: Value) -> Value {
        object("ConfigMap", name, json!({"data": data}))
    }

    fn live(owned: &[Value], others: &[&str]) -> LiveView {
        let body = |object: &Value| object.as_object().unwrap().clone();
        let id = |object: &Value| {
            let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap();
            ObjectId::parse(&format!("/{}|shop/{}", text("/kind"), text("/metadata/name"))).unwrap()
        };
        LiveView {
            owned: owned.iter().map(|object| (id(object), body(object))).collect(),
            others: others.iter().filter_map(|text| ObjectId::parse(text)).collect(),
            other_syncs: BTreeSet::from([ObjectId::parse("/ConfigMap|shop/claimed").unwrap()]),
            protected: Policy::default().protected,
            prunes: true,
            hides_values: false,
        }
    }

    fn text(base: &[Value], head: &[Value], live: &LiveView) -> String {
        let subject = CommentSubject {
            cluster: "prod",
            namespace: "moorline",
            sync: "shop",
            base: "main@1f0c",
            head: "8c5d",
            link: Some("https://moorline.example/syncs/moorline/shop"),
        };
        comment(&subject, &compare(&set(base), &set(head), live))
    }

    #[test]
    fn a_plan_says_what_the_commit_changes() {
        let base = [
            map("web", json!({"colour": "red", "size": "1", "mode": "${MODE}"})),
            map("old", json!({})),
            map("gone-already", json!({})),
            object("PersistentVolumeClaim", "data", json!({})),
            map("same", json!({})),
        ];
        let head = [
            map("web", json!({"colour": "blue", "shape": "round", "mode": "fast"})),
            map("new", json!({})),
            map("theirs", json!({})),
            map("claimed", json!({})),
            map("same", json!({})),
        ];
        let owned = [
            map("web", json!({"colour": "green", "size": "1", "mode": "secret", "other": "o"})),
            map("old", json!({})),
            object("PersistentVolumeClaim", "data", json!({})),
        ];
        let told = text(&base, &head, &live(&owned, &["/ConfigMap|shop/theirs"]));
        let expect = "<!-- moorline-plan: prod/moorline/shop 2a8e44a728b6ba6a -->
### Plan of Sync `moorline/shop` on `prod`

`8c5d` against `main@1f0c`: **1 to create, 1 to adopt, 1 to update, 1 to prune, 1 to prune by approval, 1 held (another Sync owns it)**, 1 as before.


**Prune**

- `ConfigMap shop/old`

**Prune, after an approval**

- `PersistentVolumeClaim shop/data`

**Held: another Sync owns it**

- `ConfigMap shop/claimed`

**Adopt**

- `ConfigMap shop/theirs`

**Create**

- `ConfigMap shop/new`

**Update**

- `ConfigMap shop/web`
  - `data.colour`: `red` → `blue` (live: `green`)
  - `data.mode`: `${MODE}` → `fast`
  - `data.shape`: (none) → `round`
  - `data.size`: `1` → (none)

[The Sync](https://moorline.example/syncs/moorline/shop)

_Rendered without Secrets: variables stand by their names, and encrypted values are not decrypted._
";
        assert_eq!(told, expect);
        let quiet = text(&base[4..], &head[4..], &live(&owned, &[]));
        assert!(quiet.contains("**nothing changes**, 1 as before."), "{quiet}");
        let kept = LiveView { prunes: false, ..live(&owned, &[]) };
        assert!(text(&base[1..2], &head[4..], &kept).contains("1 no longer in Git**"));
    }

    /// Each row is a try to learn something of the cluster: live values are all `LIVE`.
    #[test]
    fn a_stranger_learns_nothing_of_the_cluster() {
        let secret = |value: &str| object("Secret", "key", json!({"stringData": {"password": value}}));
        let live_map = map("web", json!({"set": "LIVE", "unset": "LIVE", "variable": "LIVE"}));
        let live_secret = object("Secret", "key", json!({"data": {"password": "LIVE"}}));
        let list = |kind: &str, name: &str, items: Value| object(kind, name, json!({"rules": items}));
        let live_role = list("Role", "r", json!([{"verbs": ["LIVE"]}, {"verbs": ["LIVE"]}]));
        let owned = [live_map, live_secret, live_role];
        let others = ["/ConfigMap|shop/theirs", "/Secret|shop/theirs"];
        let role = |items: Value| {
            let mut role = list("Role", "r", items);
            role["apiVersion"] = "rbac.authorization.k8s.io/v1".into();
            role
        };
        for (what, base, head) in [
            ("a field that the base does not set", map("web", json!({})), map("web", json!({"unset": "x"}))),
            (
                "a field with a variable",
                map("web", json!({"variable": "${A}"})),
                map("web", json!({"variable": "x"})),
            ),
            (
                "a field with a part of a variable",
                map("web", json!({"variable": "a-${A}"})),
                map("web", json!({"variable": "x"})),
            ),
            ("a Secret", secret("old"), secret("new")),
            ("the same Secret as another kind", secret("old"), map("key", json!({"password": "x"}))),
            ("an object of others", map("web", json!({})), map("theirs", json!({"set": "x"}))),
            (
                "a Secret of others",
                map("web", json!({})),
                object("Secret", "theirs", json!({"stringData": {"a": "x"}})),
            ),
            ("a list", role(json!([{"verbs": ["get"]}])), role(json!([{"verbs": ["list"]}]))),
            (
                "a list that becomes a map",
                map("web", json!({"set": "x"})),
                map("web", json!({"set": "x", "b": "c"})),
            ),
        ] {
            let told = text(&[base], &[head], &live(&owned, &others));
            assert!(!told.contains("LIVE"), "{what}: {told}");
        }
        let told = text(&[secret("OLD")], &[secret("NEW")], &live(&owned, &[]));
        assert!(!told.contains("OLD") && !told.contains("NEW"), "{told}");
        assert!(told.contains("password`: values are not shown"), "{told}");
        // Outside of the kinds and namespaces of the Sync nothing is looked up.
        let elsewhere = [
            map("web", json!({})),
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "theirs", "namespace": "kube-system"}}),
        ];
        assert!(
            text(&[map("web", json!({}))], &elsewhere, &live(&owned, &others)).contains("**1 to create**")
        );
    }

    #[test]
    fn what_a_stranger_wrote_stays_text() {
        let hostile = [
            map("web", json!({"@org/everyone": "`<img src=https://host/x>`\n<!-- moorline-plan: a/b/c -->"})),
            map("web2", json!({"\u{202e}key": "a\u{200b}b"})),
        ];
        let told = text(&[map("web", json!({})), map("web2", json!({}))], &hostile, &live(&[], &[]));
        let outside = |told: &str| {
            // Everything between two fences of the same length is text.
            let mut rest = String::new();
            let mut left = told;
            while let Some(at) = left.find('`') {
                rest.push_str(&left[..at]);
                let fence = left[at..].len() - left[at..].trim_start_matches('`').len();
                let inner = &left[at + fence..];
                let ends = |it: &str| {
                    let mut from = 0;
                    while let Some(found) = it[from..].find('`') {
                        let run = it[from + found..].len() - it[from + found..].trim_start_matches('`').len();
                        if run == fence {
                            return from + found;
                        }
                        from += found + run;
                    }
                    panic!("an open code span: {it}")
                };
                left = &inner[ends(inner) + fence..];
            }
            rest + left
        };
        let outside = outside(&told);
        for bad in ["@org", "<img", "host/x", "\u{202e}", "\u{200b}"] {
            assert!(!outside.contains(bad), "{bad:?} in {outside}");
        }
        assert!(!told.contains('\u{202e}') && !told.contains('\u{200b}'));
        assert_eq!(outside.matches("<!--").count(), 1, "{outside}");
        assert!(told.starts_with("<!-- moorline-plan: prod/moorline/shop "));

        let subject = |cluster, link| CommentSubject {
            cluster,
            namespace: "a--b",
            sync: "c -->",
            base: "x",
            head: "y",
            link: Some(link),
        };
        let marker = comment_marker(&subject("--> <b>@x", "https://host/"));
        assert!(
            marker.starts_with("<!-- moorline-plan: -b-x/a-b/c- ") && marker.ends_with(" -->"),
            "{marker}"
        );
        // Names that look the same here have other markers.
        let (long, longer) = ("x".repeat(80), "x".repeat(81));
        for (one, other) in [("a--b", "a-b"), ("a b", "a-b"), (&long, &longer), ("c/a-", "c")] {
            let markers = [one, other].map(|cluster| comment_marker(&subject(cluster, "")));
            assert_ne!(markers[0], markers[1], "{one} {other}");
        }
        let refused = refusal_comment(
            &subject("c", "javascript:alert(1)"),
            &["a.yaml:3: `@all` is invalid".to_owned()],
        );
        assert!(
            refused.contains("- ``a.yaml:3: `@all` is invalid``") && !refused.contains("javascript"),
            "{refused}"
        );
        let refused =
            refusal_comment(&subject("c", "https://host/) [x](https://evil/"), &vec!["x".to_owned(); 30]);
        assert!(!refused.contains("evil") && refused.contains("- and 20 more"), "{refused}");
    }

    #[test]
    fn a_large_plan_is_cut_below_the_limit_of_the_host() {
        let many: Vec<Value> = (0..1000)
            .map(|at| {
                let data: Map<String, Value> =
                    (0..30).map(|key| (format!("key-{key}"), "ö".repeat(200).into())).collect();
                map(&format!("web-{at}"), Value::Object(data))
            })
            .collect();
        let before: Vec<Value> = (0..1000).map(|at| map(&format!("web-{at}"), json!({}))).collect();
        let told = text(&before, &many, &live(&[], &[]));
        assert!(told.len() <= MAX_COMMENT_BYTES, "{}", told.len());
        assert!(told.contains("**1000 to update**") && told.contains("and 10 fields more"));
        let shown = told.matches("- `ConfigMap shop/").count();
        assert!(told.contains(&format!("And {} objects more.", 1000 - shown)), "{shown}");
        assert!(told.contains("[The Sync](https://moorline.example/") && shown >= 5, "{shown}");
    }
}
