//! Generators to sets of parameters.
//!
//! In: the generators of a spec, and the files of every repository that they name, in the order of
//! [`git_generators`].
//! Out: [`ParameterSets`], or the first error. Every number of sets has a bound, which is checked
//! before sets are combined.

use moorline_api::{Generator, GitGenerator, ListGenerator, NestedGenerator, SyncSetSpec};
use moorline_core::tree::FileTree;
use serde_json::{Map, Value};

use crate::combine::{combine, merge};
use crate::git_parameters::parameters_of;

/// Maximum number of sets of parameters, and so of Syncs.
pub const MAX_SETS: usize = 500;

/// One set of parameters.
pub(crate) type Parameters = Map<String, Value>;

/// The sets of parameters of a whole spec. They exist only if every generator has answered.
#[derive(Debug, Clone, PartialEq)]
pub struct ParameterSets {
    sets: Vec<Parameters>,
    has_empty_generator: bool,
}

impl ParameterSets {
    /// Returns the sets.
    pub(crate) fn sets(&self) -> &[Parameters] {
        &self.sets
    }

    /// True if a generator gives no sets, as one with a wrong glob does.
    pub(crate) fn has_empty_generator(&self) -> bool {
        self.has_empty_generator
    }
}

/// Returns the generators that read a repository, in the order in which [`generate`] takes their
/// files.
pub fn git_generators(spec: &SyncSetSpec) -> Vec<&GitGenerator> {
    let mut found = Vec::new();
    for generator in &spec.generators {
        found.extend(&generator.git);
        let inner = generator.matrix.iter().flatten();
        let merged = generator.merge.iter().flat_map(|merge| &merge.generators);
        found.extend(inner.chain(merged).filter_map(|inner| inner.git.as_ref()));
    }
    found
}

/// Generates the sets of parameters; `files` has a tree for each of [`git_generators`].
///
/// # Errors
///
/// Returns the first generator that gives no complete answer, and the reason.
pub fn generate(spec: &SyncSetSpec, files: &[FileTree]) -> Result<ParameterSets, String> {
    if files.len() != git_generators(spec).len() {
        return Err("spec.generators: the files of a repository are missing".to_owned());
    }
    let (mut trees, mut all, mut has_empty_generator) = (files.iter(), Vec::new(), false);
    for (at, generator) in spec.generators.iter().enumerate() {
        let sets = of_generator(generator, &mut trees)
            .map_err(|problem| format!("spec.generators[{at}]: {problem}"))?;
        has_empty_generator |= sets.is_empty();
        all.extend(sets);
        within_bounds(all.len())?;
    }
    Ok(ParameterSets { sets: all, has_empty_generator })
}

fn of_generator<'a>(
    generator: &Generator,
    trees: &mut impl Iterator<Item = &'a FileTree>,
) -> Result<Vec<Parameters>, String> {
    match (&generator.list, &generator.git, &generator.matrix, &generator.merge) {
        (Some(list), None, None, None) => of_list(list),
        (None, Some(git), None, None) => of_git(git, trees),
        (None, None, Some(inner), None) => {
            let [first, second] = inner.as_slice() else {
                return Err("write two generators in matrix".to_owned());
            };
            let (first, second) = (of_nested(first, trees)?, of_nested(second, trees)?);
            within_bounds(first.len().saturating_mul(second.len()))?;
            combine(&first, &second)
        }
        (None, None, None, Some(merging)) => {
            let mut answers = Vec::new();
            for inner in &merging.generators {
                answers.push(of_nested(inner, trees)?);
            }
            merge(&merging.keys, answers)
        }
        _ => Err("write exactly one of list, git, matrix and merge".to_owned()),
    }
}

fn of_nested<'a>(
    generator: &NestedGenerator,
    trees: &mut impl Iterator<Item = &'a FileTree>,
) -> Result<Vec<Parameters>, String> {
    match (&generator.list, &generator.git) {
        (Some(list), None) => of_list(list),
        (None, Some(git)) => of_git(git, trees),
        (Some(_), Some(_)) | (None, None) => Err("write exactly one of list and git".to_owned()),
    }
}

fn of_list(list: &ListGenerator) -> Result<Vec<Parameters>, String> {
    within_bounds(list.elements.len())?;
    Ok(list.elements.clone())
}

fn of_git<'a>(
    git: &GitGenerator,
    trees: &mut impl Iterator<Item = &'a FileTree>,
) -> Result<Vec<Parameters>, String> {
    let tree = trees.next().ok_or("its files are missing")?;
    let sets = parameters_of(git, tree)?;
    within_bounds(sets.len())?;
    Ok(sets)
}

fn within_bounds(sets: usize) -> Result<(), String> {
    match sets <= MAX_SETS {
        true => Ok(()),
        false => Err(format!("{sets} sets of parameters are more than {MAX_SETS}: use several SyncSets")),
    }
}
