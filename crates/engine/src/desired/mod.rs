//! The desired state: every object of a complete render in canonical form, with its hash.
//!
//! In: a [`Complete`] render, the target namespace, and the scopes of kinds.
//! Out: a [`DesiredSet`], or all problems. There is no other constructor of a non-empty
//! [`DesiredSet`], so an incomplete render can never lead to a prune.

mod annotations;
mod autoscaling;
mod ca_bundle;
mod canonical;
mod derived_sets;
mod error;
mod hook;
mod ignore;
mod keyed_hash;
mod redaction;
mod scope;

use std::sync::Arc;

use serde_json::{Map, Value};

pub use annotations::AnnotationSwitches;
pub use autoscaling::{
    AUTOSCALERS, ReplicaCount, ReplicaPaths, parse_replica_paths, scale_target, select_autoscaled,
};
pub use error::DesiredStateError;
pub use hook::{DeletePhase, Hook, Phase, PhaseWave, RolloutFilter, have_same_base_name};
pub use ignore::{IgnoreRule, IgnoredFields};
pub use keyed_hash::{HashKeys, HashMatch, SetDigest};
pub use redaction::{REDACTED, redact_path};
use scope::defines_kind;
pub use scope::{Scope, Scopes};

use moorline_api::{CanonicalForm, SpecHash};
use moorline_core::name_rules;
use moorline_core::object::{Object, ObjectId, Origin};
use moorline_render::Complete;
use moorline_yaml::Step;

/// All objects that should exist, each once, sorted by id.
#[derive(Debug)]
pub struct DesiredSet(Vec<DesiredObject>);

/// One object that should exist.
#[derive(Debug, Clone)]
pub struct DesiredObject {
    /// Its id, in the namespace in which it is applied.
    pub id: ObjectId,
    /// The API version within the group.
    pub version: Box<str>,
    /// Scope of the kind; none while neither a server nor a definition has reported it.
    pub scope: Option<Scope>,
    /// Its annotation switches.
    pub annotations: AnnotationSwitches,
    /// Hash of the canonical form, for comparisons in memory; [`DesiredObject::recorded_hash`] is
    /// written.
    pub hash: SpecHash,
    /// Keys of the recorded hash.
    pub hash_keys: HashKeys,
    /// Canonical form: the object as applied, without our own label and annotations.
    pub canonical: Arc<[u8]>,
    /// Position in Git.
    pub origin: Origin,
    /// Fields that are ignored and therefore missing in `canonical`.
    pub ignored: Option<Arc<IgnoredFields>>,
    /// True for a Secret, and for an object that contains a value of one.
    pub contains_secret: bool,
    /// The object as it is created, if that has more fields than later applies.
    pub created_as: Option<Arc<Self>>,
}

impl DesiredObject {
    /// Parses the canonical form.
    pub fn body(&self) -> Map<String, Value> {
        canonical::parse_canonical(&self.canonical)
    }

    /// Returns the object without content. Applying it sets our label and annotations and changes
    /// no other field.
    pub fn without_content(&self) -> Self {
        let mut body = self.body();
        body.retain(|field, _| ["apiVersion", "kind", "metadata"].contains(&field.as_str()));
        if let Some(Value::Object(metadata)) = body.get_mut("metadata") {
            metadata.retain(|field, _| ["name", "namespace"].contains(&field.as_str()));
        }
        let canonical = canonical::canonical_form(body, &self.id).into();
        Self { canonical, ignored: None, created_as: None, ..self.clone() }
    }

    /// True for an object that is no Secret and contains a value of one.
    pub fn is_tainted(&self) -> bool {
        self.contains_secret && !self.id.is_kind("", "Secret")
    }

    /// Returns a path to one of its fields as it may be shown.
    pub fn display_path<'a>(&self, path: &'a str) -> std::borrow::Cow<'a, str> {
        if self.is_tainted() { redact_path(path) } else { path.into() }
    }
}

/// Builds the desired set. Objects of namespaced kinds without a namespace go to `namespace`.
pub fn build_desired_set(
    rendered: Complete,
    namespace: &str,
    scopes: &Scopes,
) -> Result<DesiredSet, Vec<DesiredStateError>> {
    if let Some(rule) = name_rules::namespace(namespace) {
        return Err(vec![DesiredStateError::BadNamespace { namespace: namespace.to_owned(), rule }]);
    }
    let mut scopes = scopes.clone();
    let definitions = rendered.objects().iter().filter(|object| defines_kind(&object.id));
    definitions.for_each(|object| scopes.record_definition(&object.object()));
    let mut problems = Vec::new();
    let mut objects = Vec::with_capacity(rendered.objects().len());
    let (rendered, packed) = rendered.into_parts();
    for object in packed {
        if !rendered.is_awaited() {
            return Err(vec![DesiredStateError::Stopped]);
        }
        if problems.len() >= MAX_PROBLEMS {
            break;
        }
        let (tainted, known) = (object.contains_secret, problems.len());
        let mut object = object.object();
        let scope = scopes.get(object.id.group(), object.id.kind());
        let set = rendered.set_namespace();
        if scope == Some(Scope::Cluster) && set.is_some() && object.id.namespace() == set {
            leave_namespace(&mut object);
        }
        let placed = place_in_scope(&object, scope, namespace)
            .map_err(|problem| problem(rendered.place(&object.origin, &NAMESPACE)));
        let switches = AnnotationSwitches::read(
            &object,
            |field, key| rendered.place(&object.origin, &entry(field, key)),
            &mut problems,
        );
        if tainted {
            problems[known..].iter_mut().for_each(DesiredStateError::redact_texts);
        }
        match placed {
            Ok(id) => {
                let mut object = desired_object(object, id, scope, switches);
                if tainted {
                    (object.contains_secret, object.hash_keys) = (true, HashKeys::Missing);
                }
                objects.push(object);
            }
            Err(problem) => problems.push(problem),
        }
    }
    objects.sort_by(|a, b| a.id.cmp(&b.id).then_with(|| a.origin.cmp(&b.origin)));
    problems.extend(objects.windows(2).filter(|pair| pair[0].id == pair[1].id).map(|pair| {
        let (first, second) = (pair[0].origin.clone(), pair[1].origin.clone());
        DesiredStateError::Duplicate {
            id: pair[0].id.clone(),
            namespace: namespace.to_owned(),
            first,
            second,
        }
    }));
    hook::mix_set_hash_into_hooks(&mut objects);
    match problems.is_empty() {
        true => Ok(DesiredSet(objects)),
        false => Err(problems),
    }
}

/// Maximum number of problems that are reported: each costs another read of a file.
const MAX_PROBLEMS: usize = 20;

const NAMESPACE: [Step<'static>; 2] = [Step::Key("metadata"), Step::Key("namespace")];

fn entry<'a>(field: &'a str, key: &'a str) -> [Step<'a>; 3] {
    [Step::Key("metadata"), Step::Key(field), Step::Key(key)]
}

fn desired_object(
    object: Object,
    id: ObjectId,
    scope: Option<Scope>,
    switches: AnnotationSwitches,
) -> DesiredObject {
    let Object { id: _, version, body, origin } = object;
    let canonical: Arc<[u8]> = canonical::canonical_form(body, &id).into();
    let hash = SpecHash { form: CanonicalForm::V1, digest: canonical::digest(&canonical) };
    let empty = crate::desired::ca_bundle::find_empty_bundles(&id, &canonical);
    let secret = id.is_kind("", "Secret");
    let hash_keys = if secret { HashKeys::Missing } else { HashKeys::NotNeeded };
    let mut object = DesiredObject {
        id,
        version,
        scope,
        annotations: switches,
        hash,
        hash_keys,
        canonical,
        origin,
        ignored: None,
        contains_secret: secret,
        created_as: None,
    };
    if !empty.is_empty() {
        ignore::ignore_paths(&mut object, empty);
    }
    object
}

/// Removes the namespace that kustomize sets on a cluster-scoped object of a kind that it does not
/// know.
fn leave_namespace(object: &mut Object) {
    if let Ok(id) = object.id.in_namespace("") {
        object.id = id;
    }
    if let Some(metadata) = object.body.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("namespace");
    }
}

/// Returns the id under which an object is applied, by the scope of its kind.
fn place_in_scope(
    object: &Object,
    scope: Option<Scope>,
    namespace: &str,
) -> Result<ObjectId, impl FnOnce(moorline_core::position::SourcePosition) -> DesiredStateError> {
    let written = object.id.namespace();
    match (scope, written) {
        (Some(Scope::Cluster), Some(written)) => {
            let (kind, namespace) = (object.id.group_kind(), written.to_owned());
            Err(move |place| DesiredStateError::NamespaceOnClusterScoped { place, kind, namespace })
        }
        // A valid namespace never makes an id invalid, and this one was validated.
        (Some(Scope::Namespaced), None) => Ok(object.id.in_namespace(namespace).unwrap_or(object.id.clone())),
        (Some(_), _) | (None, _) => Ok(object.id.clone()),
    }
}

impl DesiredSet {
    /// Returns the objects, sorted by id.
    pub fn objects(&self) -> &[DesiredObject] {
        &self.0
    }

    /// Returns the object with this id.
    pub fn get(&self, id: &ObjectId) -> Option<&DesiredObject> {
        self.index_of(id).map(|at| &self.0[at])
    }

    /// Returns the index of this id in [`DesiredSet::objects`].
    pub fn index_of(&self, id: &ObjectId) -> Option<usize> {
        self.0.binary_search_by(|object| object.id.cmp(id)).ok()
    }

    /// Returns a digest of the ids and contents of all objects.
    pub fn digest(&self) -> SetDigest {
        let parts =
            self.0.iter().flat_map(|object| [object.id.as_str().as_bytes(), b"\0", &object.hash.digest]);
        let digest = canonical::digest(&parts.collect::<Vec<_>>().concat());
        SetDigest::of(SpecHash { form: CanonicalForm::V1, digest }, &self.0)
    }

    /// True if some objects are applied only after others are healthy.
    pub fn has_ordering(&self) -> bool {
        let turn = |object: &DesiredObject| object.annotations.phase_wave();
        self.0.iter().any(|object| object.annotations.hook.is_some())
            || self.0.windows(2).any(|pair| turn(&pair[0]) != turn(&pair[1]))
    }

    /// True if the set has no objects.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the number of objects.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns the empty set, which no complete render produces. A plan prunes nothing for it: an
    /// empty set is more likely a mistake than intended.
    pub fn empty() -> Self {
        Self(Vec::new())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use moorline_core::object::GroupKind;
    use moorline_core::tree::FileTree;
    use moorline_render::{RenderOptions, Rendered, render};

    fn desired_of(manifests: &[Value]) -> Result<DesiredSet, Vec<DesiredStateError>> {
        let files: Vec<_> =
            manifests.iter().enumerate().map(|(at, it)| (format!("{at}.json"), it.to_string())).collect();
        let tree = FileTree::from_texts(files.iter().map(|(path, text)| (path.as_str(), text.as_str())));
        let Rendered::Complete(complete) = render(&tree, &RenderOptions::default()) else {
            panic!("the manifests are sound")
        };
        build_desired_set(complete, "shop", &Scopes::builtin())
    }

    fn manifest(api_version: &str, kind: &str, metadata: Value) -> Value {
        json!({"apiVersion": api_version, "kind": kind, "metadata": metadata})
    }

    #[test]
    fn an_object_goes_where_its_scope_says() {
        let check = |manifest: Value, expect: &str, scope| {
            let set = desired_of(&[manifest]).unwrap();
            assert_eq!((set.objects()[0].id.as_str(), set.objects()[0].scope), (expect, scope));
        };
        let (cluster, namespaced) = (Some(Scope::Cluster), Some(Scope::Namespaced));
        check(manifest("v1", "ConfigMap", json!({"name": "a"})), "/ConfigMap|shop/a", namespaced);
        check(
            manifest("v1", "ConfigMap", json!({"name": "a", "namespace": "b"})),
            "/ConfigMap|b/a",
            namespaced,
        );
        check(manifest("v1", "Namespace", json!({"name": "a"})), "/Namespace|/a", cluster);
        // The scope is unknown, so the object stays as written.
        check(manifest("g.io/v1", "Odd", json!({"name": "a"})), "g.io/Odd|/a", None);
        check(manifest("g.io/v1", "Odd", json!({"name": "a", "namespace": "b"})), "g.io/Odd|b/a", None);
    }

    #[test]
    fn a_definition_at_hand_is_as_good_as_discovery() {
        let spec = json!({"group": "example.com", "scope": "Namespaced", "names": {"kind": "Widget"}});
        let mut crd = manifest(
            "apiextensions.k8s.io/v1",
            "CustomResourceDefinition",
            json!({"name": "widgets.example.com"}),
        );
        crd["spec"] = spec;
        let set = desired_of(&[manifest("example.com/v1", "Widget", json!({"name": "a"})), crd]).unwrap();
        let widget = set.objects().iter().find(|object| object.id.kind() == "Widget").unwrap();
        assert_eq!(widget.id.as_str(), "example.com/Widget|shop/a");
        assert_eq!(widget.id.group_kind(), GroupKind::new("example.com", "Widget"));
    }

    #[test]
    fn every_problem_is_found() {
        let problems = desired_of(&[
            manifest("v1", "Namespace", json!({"name": "a", "namespace": "b"})),
            manifest("v1", "ConfigMap", json!({"name": "a"})),
            manifest("v1", "ConfigMap", json!({"name": "a", "namespace": "shop"})),
            manifest("v1", "Secret", json!({"name": "a", "annotations": {"moorline.dev/wave": "x"}})),
        ]);
        let reasons: Vec<_> = problems.unwrap_err().iter().map(DesiredStateError::reason).collect();
        assert_eq!(reasons, ["ManifestInvalid", "AnnotationInvalid", "DuplicateObject"]);
    }

    #[test]
    fn the_hash_is_of_what_is_meant() {
        let hash =
            |metadata: Value| desired_of(&[manifest("v1", "ConfigMap", metadata)]).unwrap().objects()[0].hash;
        let plain = hash(json!({"name": "a"}));
        assert_eq!(plain, hash(json!({"name": "a", "namespace": "shop"})));
        assert_eq!(plain, hash(json!({"name": "a", "annotations": {"moorline.dev/id": "copied"}})));
        assert_ne!(plain, hash(json!({"name": "a", "namespace": "b"})));
        assert_ne!(plain, hash(json!({"name": "a", "labels": {"a": "b"}})));
    }

    #[test]
    fn the_digest_is_of_all_objects_wherever_they_are_written() {
        let map = |metadata: Value| manifest("v1", "ConfigMap", metadata);
        let digest = |all: &[Value]| desired_of(all).unwrap().digest().hash;
        let (a, b) = (map(json!({"name": "a"})), map(json!({"name": "b"})));
        assert_eq!(digest(&[a.clone(), b.clone()]), digest(&[b.clone(), a.clone()]));
        assert_ne!(digest(&[a.clone(), b]), digest(std::slice::from_ref(&a)));
        assert_ne!(digest(&[map(json!({"name": "a", "labels": {"a": "b"}}))]), digest(&[a]));
    }
}
