//! Updates references to objects whose names changed.
//!
//! In: all resources of a build, and the fields that refer to objects. A field changes if its text
//! is the former name of exactly one object; kind, namespace, prefixes and suffixes decide between
//! several.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value};

use super::configuration::FieldSpec;
use super::configuration::References;
use super::error::{BuildError, ErrorClass};
use super::field_spec::{CreatedValue, change_fields};
use super::id::{Gvk, NO_NAMESPACE, ResourceId};
use super::resource::Resource;
use super::resource_files;
use super::transformers::FIELDS_OF_A_LOOK;

/// A possible target of a reference; a copy, because the objects change in the meantime.
#[derive(Debug)]
struct Candidate {
    id: ResourceId,
    is_clustered: bool,
    namespace: String,
    earlier: Vec<ResourceId>,
    first_namespace: String,
    prefixes: Vec<String>,
    suffixes: Vec<String>,
}

/// The object with the reference.
#[derive(Debug)]
struct Referrer {
    id: ResourceId,
    is_clustered: bool,
    /// Namespaces of the ServiceAccounts to which it binds a role.
    bound: HashSet<String>,
    role: Option<Gvk>,
    prefixes: Vec<String>,
    suffixes: Vec<String>,
}

/// Candidates by each of their names.
#[derive(Debug)]
struct Candidates {
    all: Vec<Candidate>,
    by_name: HashMap<String, Vec<usize>>,
    /// The same, by their first namespace.
    by_first_namespace: HashMap<String, Vec<usize>>,
}

/// Counts work before it is done.
type Look<'a> = dyn Fn(usize, usize) -> Result<(), BuildError> + 'a;

/// Updates every field that refers to an object by a former name.
pub(super) fn update_references(
    resources: &mut [Resource],
    references: &[References],
    look: &Look<'_>,
) -> Result<(), BuildError> {
    let fields: usize = references.iter().map(|reference| reference.fields.len()).sum();
    look(resources.len(), fields / FIELDS_OF_A_LOOK)?;
    resources.iter().try_for_each(check_subjects)?;
    resources.iter().filter(|one| one.kind().ends_with("RoleBinding")).try_for_each(check_role)?;
    // Runs even if no name has changed: kustomize refuses fields that it cannot walk.
    let mut candidates = Candidates::of(resources);
    for (at, resource) in resources.iter_mut().enumerate() {
        let first = resource.first_id().gvk;
        let gvk = resource.gvk();
        for reference in references {
            for spec in reference.fields.iter().filter(|spec| first.is_selected(&spec.gvk)) {
                let referrer = Referrer::of(resource);
                let ask = ReferenceField {
                    candidates: &candidates,
                    referrer: &referrer,
                    target: &reference.target,
                    path: &spec.path,
                    look,
                };
                let spec = FieldSpec { gvk: gvk.clone(), path: spec.path.clone(), create: false };
                let mut change = |value: &mut Value| ask.change(value);
                let done = change_fields(&mut resource.body, &spec, CreatedValue::Nothing, &mut change);
                done.map_err(|text| {
                    let text = format!("{}: {text}", resource.id());
                    resource_files::resource_error(&resource.origin, text).with_class(ErrorClass::Reference)
                })?;
            }
        }
        candidates.renew(at, resource);
    }
    Ok(())
}

impl Candidates {
    fn of(resources: &[Resource]) -> Self {
        let all: Vec<Candidate> = resources.iter().map(Candidate::of).collect();
        let mut by_name: HashMap<String, Vec<usize>> = HashMap::new();
        for (at, candidate) in all.iter().enumerate() {
            for id in &candidate.earlier {
                let known = by_name.entry(id.name.clone()).or_default();
                if known.last() != Some(&at) {
                    known.push(at);
                }
            }
        }
        let mut by_first_namespace: HashMap<String, Vec<usize>> = HashMap::new();
        for (at, candidate) in all.iter().enumerate() {
            by_first_namespace.entry(candidate.first_namespace.clone()).or_default().push(at);
        }
        Self { all, by_name, by_first_namespace }
    }

    /// Updates a candidate: a reference field may be the name of the object itself.
    fn renew(&mut self, at: usize, resource: &Resource) {
        let id = resource.id();
        if self.all[at].id != id {
            self.all[at] = Candidate::of(resource);
        }
    }
}

impl Candidate {
    fn of(resource: &Resource) -> Self {
        let id = resource.id();
        Self {
            is_clustered: id.gvk.is_cluster_scoped(),
            namespace: id.namespace().to_owned(),
            earlier: resource.former_ids().collect(),
            first_namespace: resource.first_id().namespace().to_owned(),
            prefixes: resource.prefixes.clone(),
            suffixes: resource.suffixes.clone(),
            id,
        }
    }
}

impl Referrer {
    fn of(resource: &Resource) -> Self {
        let id = resource.id();
        Self {
            is_clustered: id.gvk.is_cluster_scoped(),
            bound: bound_namespaces(resource),
            role: role(resource),
            prefixes: resource.prefixes.clone(),
            suffixes: resource.suffixes.clone(),
            id,
        }
    }

    fn may_see(&self, candidate: &Candidate) -> bool {
        self.is_clustered
            || candidate.is_clustered
            || candidate.namespace == self.id.namespace()
            || self.bound.contains(&candidate.id.namespace)
    }

    fn is_beside(&self, candidate: &Candidate) -> bool {
        self.is_clustered
            || candidate.is_clustered
            || candidate.id.gvk.kind == "ServiceAccount"
            || candidate.namespace == self.id.namespace()
    }

    fn is_named_alike(&self, candidate: &Candidate, even_if_none: bool) -> bool {
        let alike = |ours: &[String], theirs: &[String]| {
            (even_if_none && (ours.is_empty() || theirs.is_empty())) || end_alike(ours, theirs)
        };
        alike(&candidate.prefixes, &self.prefixes) && alike(&candidate.suffixes, &self.suffixes)
    }
}

fn end_alike(one: &[String], other: &[String]) -> bool {
    let (short, long) = if one.len() <= other.len() { (one, other) } else { (other, one) };
    if short.is_empty() { long.is_empty() } else { long.ends_with(short) }
}

fn bound_namespaces(resource: &Resource) -> HashSet<String> {
    let subjects = resource.body.get("subjects").and_then(Value::as_array);
    let subjects = subjects.filter(|_| resource.kind() == "RoleBinding").into_iter().flatten();
    let accounts =
        subjects.filter(|subject| subject.get("kind").and_then(Value::as_str) == Some("ServiceAccount"));
    accounts.filter_map(|account| account.get("namespace")?.as_str().map(str::to_owned)).collect()
}

/// Checks that the namespace of a RoleBinding's ServiceAccount is a text or missing.
fn check_subjects(resource: &Resource) -> Result<(), BuildError> {
    if resource.kind() != "RoleBinding" || resource.first_id().gvk.group != "rbac.authorization.k8s.io" {
        return Ok(());
    }
    let subjects = resource.body.get("subjects").and_then(Value::as_array);
    let is_wrong = |subject: &Value| match (subject.get("namespace"), subject.get("kind")) {
        _ if !subject.is_object() => true,
        (Some(namespace), Some(Value::String(kind))) => kind == "ServiceAccount" && !namespace.is_string(),
        (Some(_), Some(_)) => true,
        (None, _) | (_, None) => false,
    };
    match subjects.into_iter().flatten().any(is_wrong) {
        false => Ok(()),
        true => {
            let text = format!(
                "{}: the namespace of a subject is not a string; correct it, or leave it out",
                resource.id()
            );
            Err(resource_files::resource_error(&resource.origin, text).with_class(ErrorClass::Reference))
        }
    }
}

/// Returns the group and kind in `roleRef`, as texts: kustomize compares the text of a null or a
/// number, and an empty one with everything. None if one is missing.
fn role(resource: &Resource) -> Option<Gvk> {
    let role = resource.body.get("roleRef")?;
    let text = |field: &str| {
        Some(match role.get(field)? {
            Value::String(text) => text.clone(),
            Value::Null => resource.spelling.null_text().unwrap_or("null").to_owned(),
            Value::Array(_) | Value::Object(_) => String::new(),
            number => number.to_string(),
        })
    };
    Some(Gvk { group: text("apiGroup")?, version: String::new(), kind: text("kind")? })
}

/// Checks that the text of a null in `roleRef` is known.
fn check_role(resource: &Resource) -> Result<(), BuildError> {
    let role = resource.body.get("roleRef");
    let is_null = |field: &str| role.and_then(|role| role.get(field)).is_some_and(Value::is_null);
    match (is_null("apiGroup") || is_null("kind")) && resource.spelling.null_text().is_none() {
        false => Ok(()),
        true => {
            let text = format!(
                "{}: roleRef has a null, and the object writes null in two ways; write null everywhere",
                resource.id()
            );
            Err(resource_files::resource_error(&resource.origin, text).with_class(ErrorClass::Reference))
        }
    }
}

/// One field of one referring object.
struct ReferenceField<'a> {
    candidates: &'a Candidates,
    referrer: &'a Referrer,
    target: &'a Gvk,
    path: &'a str,
    look: &'a Look<'a>,
}

impl<'a> ReferenceField<'a> {
    /// Counts candidates that are compared for one name.
    fn count(&self, candidates: usize) -> Result<(), String> {
        (self.look)(candidates, 1).map_err(|refusal| refusal.text().to_owned())
    }

    fn change(&self, value: &mut Value) -> Result<(), String> {
        match value {
            Value::Array(items) => items.iter_mut().try_for_each(|item| match item {
                Value::Array(_) => Err("a list is in the list of names".to_owned()),
                item => self.change(item),
            }),
            Value::Object(map) => self.change_mapping(map),
            Value::String(name) => {
                let all = self.candidates.by_name.get(name.as_str()).map_or(&[][..], Vec::as_slice);
                self.count(all.len())?;
                let found = self.choose(all.iter().map(|at| &self.candidates.all[*at]), name, false)?;
                if let Some(found) = found {
                    name.clone_from(&found.id.name);
                }
                Ok(())
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => Ok(()),
        }
    }

    fn change_mapping(&self, map: &mut Map<String, Value>) -> Result<(), String> {
        let Some(name) = map.get("name") else { return Err("it has no name".to_owned()) };
        let Some(name) = name.as_str().map(str::to_owned) else { return Ok(()) };
        let namespace = map.get("namespace").map(|namespace| namespace.as_str().unwrap_or_default());
        let all = self.candidates.by_name.get(&name).map_or(&[][..], Vec::as_slice);
        self.count(all.len())?;
        let all = || all.iter().map(|at| &self.candidates.all[*at]);
        let found = match namespace {
            None => self.choose(all(), &name, true)?,
            Some(NO_NAMESPACE) => None,
            Some(namespace) => {
                // Candidates that were first in this namespace; those that are in it now count only
                // if there are none.
                let were_there = self.candidates.by_first_namespace.get(namespace);
                let visible = |at: &usize| self.referrer.may_see(&self.candidates.all[*at]);
                let mut unseen = were_there.into_iter().flatten().enumerate();
                let seen = unseen.find(|(_, at)| visible(at)).map(|(count, _)| count);
                let any_was = seen.is_some();
                self.count(seen.unwrap_or_else(|| were_there.map_or(0, Vec::len)))?;
                let fits = move |candidate: &&Candidate| match any_was {
                    true => candidate.first_namespace == namespace,
                    false => candidate.namespace == namespace,
                };
                self.choose(all().filter(fits), &name, true)?
            }
        };
        if let Some(found) = found {
            map.insert("name".into(), found.id.name.as_str().into());
            if !found.id.namespace.is_empty() {
                map.insert("namespace".into(), found.id.namespace.as_str().into());
            }
        }
        Ok(())
    }

    /// Returns the single target; none if there is none.
    fn choose(
        &self,
        candidates: impl Iterator<Item = &'a Candidate>,
        name: &str,
        with_namespace: bool,
    ) -> Result<Option<&'a Candidate>, String> {
        let referrer = self.referrer;
        let role = referrer.role.as_ref().filter(|_| self.path.ends_with("roleRef/name"));
        let was_selected =
            |candidate: &Candidate, gvk: &Gvk| candidate.earlier.iter().any(|id| id.gvk.is_selected(gvk));
        let mut found: Vec<&Candidate> = candidates
            .filter(|candidate| referrer.may_see(candidate))
            .filter(|candidate| candidate.earlier.iter().any(|id| id.name == name))
            .filter(|candidate| was_selected(candidate, self.target))
            .filter(|candidate| role.is_none_or(|role| was_selected(candidate, role)))
            .filter(|candidate| referrer.is_beside(candidate))
            .collect();
        if found.len() > 1 {
            found.retain(|candidate| referrer.is_named_alike(candidate, true));
        }
        if found.len() > 1 {
            found.retain(|candidate| referrer.is_named_alike(candidate, false));
        }
        let Some((first, others)) = found.split_first() else { return Ok(None) };
        let is_same = |other: &&Candidate| {
            other.id.name == first.id.name && (!with_namespace || other.id.namespace == first.id.namespace)
        };
        match others.iter().all(is_same) {
            true => Ok(Some(first)),
            false => {
                let ids: Vec<String> = found.iter().map(|candidate| candidate.id.to_string()).collect();
                Err(format!("the name {name} could be that of {}", ids.join(", or ")))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use moorline_core::tree::FileTree;

    use crate::build;

    /// Builds a ClusterRoleBinding with this `roleRef.apiGroup`; returns the name of its role.
    fn role_of(group: &str, labels: &str) -> Result<String, String> {
        let role = "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: reader}\n";
        let binding = format!(
            "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding\nmetadata:\n  name: bind\n  \
             labels: {labels}\nroleRef:\n  kind: ClusterRole\n  name: reader\n  apiGroup: {group}\n"
        );
        let by = "namePrefix: my-\nresources: [r.yaml, b.yaml]\n";
        let files = [("kustomization.yaml", by), ("r.yaml", role), ("b.yaml", &*binding)];
        let built = build(&FileTree::from_texts(files), "").map_err(|error| error.to_string())?;
        let names = built.objects.iter().filter_map(|it| it.body.get("roleRef")?.get("name")?.as_str());
        Ok(names.collect())
    }

    #[test]
    fn a_null_group_of_a_role_is_refused_where_its_spelling_is_not_known() {
        assert_eq!(role_of("null", "{}").as_deref(), Ok("reader"));
        assert_eq!(role_of("", "{}").as_deref(), Ok("my-reader"));
        let refusal = role_of("", "~").unwrap_err();
        assert!(refusal.contains("writes null in two ways"), "{refusal}");
    }
}
