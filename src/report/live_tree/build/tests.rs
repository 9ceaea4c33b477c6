//! Trees as tables: objects with their owners, and the expected levels.

use serde_json::json;

use super::*;
use crate::api::SyncName;
use crate::report::live_tree::{EventList, EventSelection, PodName};

/// A listed object: `id@uid`, then its owners as `kind/name@uid`, with `*` before the controller.
fn listed(text: &str) -> ListedObject {
    let mut words = text.split_whitespace();
    let (id, uid) = words.next().unwrap().split_once('@').unwrap();
    let owners = words.map(|word| {
        let (named, uid) = word.trim_start_matches('*').split_once('@').unwrap();
        let (kind, name) = named.split_once('/').unwrap();
        OwnerReference {
            uid: uid.into(),
            kind: kind.into(),
            name: name.into(),
            controls: word.starts_with('*'),
        }
    });
    ListedObject {
        owners: owners.collect(),
        id: ObjectId::parse(id).unwrap(),
        uid: uid.into(),
        created: None,
        deleting: false,
        health: None,
        pod: None,
    }
}

fn root(text: &str) -> RootObject {
    let (id, uid) = text.split_once('@').unwrap();
    RootObject { id: ObjectId::parse(id).unwrap(), uid: Some(uid.into()), hidden: false }
}

fn built(roots: &[&str], objects: &[&str]) -> LiveTree {
    let roots = roots.iter().map(|text| root(text)).collect();
    let objects = objects.iter().map(|text| listed(text)).collect();
    build_tree(roots, objects, Vec::new(), Timestamp::UNIX_EPOCH)
}

/// The tree in one line, with brackets around what is owned.
fn drawn(tree: &LiveTree) -> String {
    fn draw(tree: &LiveTree, at: usize, out: &mut String) {
        let node = &tree.nodes[at];
        out.push_str(node.id.name());
        if !node.owned.is_empty() {
            out.push('(');
            for (nth, below) in node.owned.iter().enumerate() {
                assert_eq!(tree.nodes[*below].owner, Some(at));
                out.push_str(if nth > 0 { " " } else { "" });
                draw(tree, *below, out);
            }
            out.push(')');
        }
    }
    let mut out = Vec::new();
    for at in 0..tree.roots {
        let mut one = String::new();
        draw(tree, at, &mut one);
        out.push(one);
    }
    out.join(" ")
}

const WEB: &str = "apps/Deployment|shop/web@d";
const SET: &str = "apps/ReplicaSet|shop/web-1@r *Deployment/web@d";
const POD: &str = "/Pod|shop/web-1-a@p *ReplicaSet/web-1@r";

#[test]
fn an_object_stands_below_its_owner() {
    for (roots, objects, expect) in [
        (&[WEB][..], &[SET, POD][..], "web(web-1(web-1-a))"),
        // The order of the lists does not matter; what nobody owns is not there.
        (&[WEB], &[POD, "/Pod|shop/alone@x", SET], "web(web-1(web-1-a))"),
        // Without the ReplicaSets there is no way to the Pod.
        (&[WEB], &[POD], "web"),
        // An owner of another uid, kind, name or namespace is none.
        (&[WEB], &["/Pod|shop/a@p Deployment/web@other"], "web"),
        (&[WEB], &["/Pod|shop/a@p StatefulSet/web@d"], "web"),
        (&[WEB], &["/Pod|shop/a@p Deployment/api@d"], "web"),
        (&[WEB], &["/Pod|bank/a@p Deployment/web@d"], "web"),
        // An object of the cluster may own objects of any namespace.
        (&["example.org/Zone|/eu@z"], &["/Pod|bank/a@p Zone/eu@z"], "eu(a)"),
        // The controller comes before other owners, in any order of the list.
        (
            &["/ConfigMap|shop/c@c", WEB],
            &["apps/ReplicaSet|shop/s@r ConfigMap/c@c *Deployment/web@d"],
            "c web(s)",
        ),
        // If the controller is not in the tree, another owner is enough.
        (&["/ConfigMap|shop/c@c"], &["/Pod|shop/a@p *Deployment/gone@g ConfigMap/c@c"], "c(a)"),
        // An object of the Sync stays one, also if another one owns it. A circle ends.
        (&[WEB, "apps/ReplicaSet|shop/web-1@r"], &[SET, POD], "web web-1(web-1-a)"),
        (&[WEB], &["/A|shop/a@a A/b@b Deployment/web@d", "/A|shop/b@b *A/a@a"], "web(a(b))"),
    ] {
        assert_eq!(drawn(&built(roots, objects)), expect, "{roots:?} {objects:?}");
    }
}

#[test]
fn an_object_that_a_viewer_may_not_see_hands_on_what_it_owns() {
    let tree = built(&[WEB, "/Service|shop/web@s"], &[SET, POD]);
    let of_kind = |kind: &'static str| move |node: &LiveNode| node.id.kind() == kind;
    for (kind, expect) in [
        ("ReplicaSet", "web(web-1-a) web"),
        ("Pod", "web(web-1) web"),
        // Objects of the Sync stay.
        ("Deployment", "web(web-1(web-1-a)) web"),
    ] {
        assert_eq!(drawn(&tree.without(of_kind(kind))), expect, "{kind}");
    }
}

#[test]
fn a_tree_is_bounded_and_says_so() {
    let levels: Vec<String> =
        (1..=MAX_DEPTH + 1).map(|at| format!("/A|shop/a{at}@{at} *A/a{}@{}", at - 1, at - 1)).collect();
    let levels: Vec<&str> = levels.iter().map(String::as_str).collect();
    let tree = built(&["/A|shop/a0@0"], &levels);
    assert_eq!(tree.nodes.len(), MAX_DEPTH + 1);
    assert!(tree.left_out[0].kind.starts_with("1 or more"), "{:?}", tree.left_out);
    let pods: Vec<String> =
        (0..MAX_NODES).map(|at| format!("/Pod|shop/p{at}@p{at} *Deployment/web@d")).collect();
    let pods: Vec<&str> = pods.iter().map(String::as_str).collect();
    let tree = built(&[WEB], &pods);
    assert_eq!((tree.nodes.len(), tree.left_out.len()), (MAX_NODES, 1));
}

#[test]
fn what_may_hold_a_secret_hides_its_texts_and_those_of_what_it_owns() {
    let body = json!({
        "metadata": {"name": "web-1-a", "namespace": "shop", "uid": "p", "creationTimestamp": "2026-11-22T11:00:00Z",
            "ownerReferences": [{"kind": "Deployment", "name": "web", "uid": "d", "controller": true}]},
        "spec": {"containers": [{"name": "web", "image": "hunter2"}]},
        "status": {"phase": "Pending", "containerStatuses": [{"name": "web", "ready": false,
            "state": {"waiting": {"reason": "ErrImagePull", "message": "no image hunter2"}}}]},
    });
    let read = |whole| read_listed(&GroupKind::new("", "Pod"), body.as_object().unwrap(), whole).unwrap();
    assert_eq!((read(false).health, read(false).pod), (None, None), "metadata have no health");
    let tree = |hidden| {
        let roots = vec![RootObject { hidden, ..root(WEB) }];
        build_tree(roots, vec![read(true)], Vec::new(), Timestamp::UNIX_EPOCH)
    };
    let event = json!({"metadata": {"namespace": "shop"}, "message": "hunter2", "reason": "Failed", "count": 3,
        "lastTimestamp": "2026-11-22T11:30:00Z", "involvedObject": {"kind": "Pod", "namespace": "shop",
        "name": "web-1-a", "uid": "p", "apiVersion": "v1"}});
    let other =
        json!({"reason": "Other", "involvedObject": {"kind": "Pod", "namespace": "shop", "name": "x"}});
    let of_sync = json!({"reason": "Applied", "eventTime": "2026-11-22T12:00:00.5Z", "note": "ok",
        "regarding": {"kind": "Sync", "namespace": "ops", "name": "shop", "apiVersion": "moorline.dev/v1alpha1"}});
    let events = |tree: &LiveTree| {
        let all = [&event, &other, &of_sync].into_iter().filter_map(Value::as_object);
        let sync = SyncName::new("ops", "shop");
        let selection = EventSelection::new(&sync, tree);
        let found = all.filter_map(|event| selection.select(event)).collect();
        EventList::new(found, Vec::new(), Timestamp::UNIX_EPOCH).events
    };
    let open = tree(false);
    let pod = PodName { namespace: "shop".into(), name: "web-1-a".into() };
    let (node, containers) = open.pod(&pod).unwrap();
    assert_eq!((node.health, &*containers.containers[0].image), (ObjectHealth::Degraded, "hunter2"));
    assert_eq!(open.owners(node).map(|owner| owner.id.name()).collect::<Vec<_>>(), ["web"]);
    let shown: Vec<_> =
        events(&open).into_iter().map(|it| (it.reason, it.message, it.count, it.node)).collect();
    assert_eq!(
        shown,
        [("Applied".into(), "ok".into(), 1, None), ("Failed".into(), "hunter2".into(), 3, Some(1))]
    );
    let closed = tree(true);
    assert_eq!(closed.nodes[1].health, ObjectHealth::Degraded);
    assert!(!format!("{closed:?} {:?}", events(&closed)).contains("hunter2"));
}
