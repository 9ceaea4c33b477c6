//! Resources that a build has accumulated, each id once.
//!
//! In: resources of files, folders and generators. Out: [`Accumulator`], or an error if an id
//! exists twice.

use std::collections::{HashMap, HashSet};

use super::configuration::Configuration;
use super::error::{Built, ErrorClass, FieldLocation};
use super::id::ResourceId;
use super::kustomization::Var;
use super::resource::Resource;
use super::variables;

/// Resources accumulated so far, with the configuration and variables for them.
#[derive(Debug, Default)]
pub(super) struct Accumulator {
    pub(super) resources: Vec<Resource>,
    pub(super) configuration: Configuration,
    pub(super) variables: Vec<Var>,
}

impl Accumulator {
    /// Adds what another folder has accumulated; an error if an id exists in both.
    pub(super) fn merge(&mut self, other: Self, known: &mut ResourceIndex, at: &FieldLocation) -> Built<()> {
        known.add(&mut self.resources, other.resources, at)?;
        let merged = self.configuration.merge(&other.configuration);
        merged.map_err(|text| at.error(ErrorClass::Configuration, text))?;
        variables::merge(&mut self.variables, other.variables)
    }
}

/// Index of the resources by id.
pub(super) struct ResourceIndex(HashMap<ResourceId, usize>);

impl ResourceIndex {
    pub(super) fn of(resources: &[Resource]) -> Self {
        Self(resources.iter().enumerate().map(|(at, it)| (it.id().key(), at)).collect())
    }

    /// Adds resources; an error if an id exists already.
    pub(super) fn add(
        &mut self,
        resources: &mut Vec<Resource>,
        more: Vec<Resource>,
        at: &FieldLocation,
    ) -> Built<()> {
        for resource in more {
            let id = resource.id();
            if let Some(earlier) = self.0.insert(id.key(), resources.len()) {
                let (first, second) = (&resources[earlier].origin, &resource.origin);
                let text = format!("{id} is there twice: in {first} and in {second}");
                return Err(at.error(ErrorClass::Duplicate, text));
            }
            resources.push(resource);
        }
        Ok(())
    }
}

/// Replaces the resources after a step changed them, if their ids are still distinct.
pub(super) fn replace_resources(
    resources: &mut Vec<Resource>,
    changed: Vec<Resource>,
    at: &FieldLocation,
) -> Built<()> {
    // Kind and name mostly differ already; this check copies nothing.
    let mut names = HashSet::with_capacity(changed.len());
    if changed.iter().all(|resource| names.insert((resource.kind(), resource.name()))) {
        *resources = changed;
        return Ok(());
    }
    resources.clear();
    ResourceIndex::of(resources).add(resources, changed, at)
}
