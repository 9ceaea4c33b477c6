//! Generators to sets of parameters.
//!
//! In: the generators of a spec, the files of every repository that they name, in the order of
//! [`git_generators`], and the Secrets that they select, in the order of [`cluster_generators`].
//! Out: [`ParameterSets`], or the first error. Every number of sets has a bound, which is checked
//! before sets are combined.

use std::slice::Iter;

use moorline_api::{ClusterGenerator, Generator, GitGenerator, ListGenerator, NestedGenerator, SyncSetSpec};
use moorline_core::tree::FileTree;

use crate::cluster_parameters::{self, ListedSecret};
use crate::combine::{combine, merge};
use crate::git_parameters;
use crate::parameters::Parameters;

/// Maximum number of sets of parameters, and so of Syncs.
pub const MAX_SETS: usize = 500;

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

/// Answers of the sources that are not used yet.
struct Answers<'a> {
    files: Iter<'a, FileTree>,
    secrets: Iter<'a, Vec<ListedSecret>>,
}

/// Returns the generators that read a repository, in the order in which [`generate`] takes their
/// files.
pub fn git_generators(spec: &SyncSetSpec) -> Vec<&GitGenerator> {
    leaves(spec).filter_map(|(_, git, _)| git).collect()
}

/// Returns the generators that list Secrets, in the order in which [`generate`] takes them.
pub fn cluster_generators(spec: &SyncSetSpec) -> Vec<&ClusterGenerator> {
    leaves(spec).filter_map(|(_, _, clusters)| clusters).collect()
}

/// A generator that has no generators inside: a list, a repository, or clusters.
type Leaf<'a> = (Option<&'a ListGenerator>, Option<&'a GitGenerator>, Option<&'a ClusterGenerator>);

fn leaves(spec: &SyncSetSpec) -> impl Iterator<Item = Leaf<'_>> {
    spec.generators.iter().flat_map(|generator| {
        let inner = generator.matrix.iter().flatten();
        let merged = generator.merge.iter().flat_map(|merge| &merge.generators);
        std::iter::once(outer_leaf(generator)).chain(inner.chain(merged).map(inner_leaf))
    })
}

fn outer_leaf(generator: &Generator) -> Leaf<'_> {
    (generator.list.as_ref(), generator.git.as_ref(), generator.clusters.as_ref())
}

fn inner_leaf(generator: &NestedGenerator) -> Leaf<'_> {
    (generator.list.as_ref(), generator.git.as_ref(), generator.clusters.as_ref())
}

/// Generates the sets of parameters; `files` has a tree for each of [`git_generators`], and
/// `secrets` a list for each of [`cluster_generators`].
///
/// # Errors
///
/// Returns the first generator that gives no complete answer, and the reason.
pub fn generate(
    spec: &SyncSetSpec,
    files: &[FileTree],
    secrets: &[Vec<ListedSecret>],
) -> Result<ParameterSets, String> {
    if files.len() != git_generators(spec).len() {
        return Err("spec.generators: the files of a repository are missing".to_owned());
    }
    if secrets.len() != cluster_generators(spec).len() {
        return Err("spec.generators: a list of Secrets is missing".to_owned());
    }
    let mut answers = Answers { files: files.iter(), secrets: secrets.iter() };
    let (mut all, mut has_empty_generator) = (Vec::new(), false);
    for (at, generator) in spec.generators.iter().enumerate() {
        let sets = of_generator(generator, &mut answers)
            .map_err(|problem| format!("spec.generators[{at}]: {problem}"))?;
        has_empty_generator |= sets.is_empty();
        all.extend(sets);
        within_bounds(all.len())?;
    }
    Ok(ParameterSets { sets: all, has_empty_generator })
}

fn of_generator(generator: &Generator, answers: &mut Answers<'_>) -> Result<Vec<Parameters>, String> {
    match (outer_leaf(generator), &generator.matrix, &generator.merge) {
        ((None, None, None), Some(inner), None) => {
            let [first, second] = inner.as_slice() else {
                return Err("write two generators in matrix".to_owned());
            };
            let (first, second) = (of_nested(first, answers)?, of_nested(second, answers)?);
            within_bounds(first.len().saturating_mul(second.len()))?;
            combine(&first, &second)
        }
        ((None, None, None), None, Some(merging)) => {
            let mut found = Vec::new();
            for inner in &merging.generators {
                found.push(of_nested(inner, answers)?);
            }
            merge(&merging.keys, found)
        }
        (leaf, None, None) => of_leaf(leaf, answers)
            .unwrap_or_else(|| Err("write exactly one of list, git, clusters, matrix and merge".to_owned())),
        _ => Err("write exactly one of list, git, clusters, matrix and merge".to_owned()),
    }
}

fn of_nested(generator: &NestedGenerator, answers: &mut Answers<'_>) -> Result<Vec<Parameters>, String> {
    of_leaf(inner_leaf(generator), answers)
        .unwrap_or_else(|| Err("write exactly one of list, git and clusters".to_owned()))
}

/// Returns the sets of one list, repository or selection of clusters; none for another number.
fn of_leaf(leaf: Leaf<'_>, answers: &mut Answers<'_>) -> Option<Result<Vec<Parameters>, String>> {
    match leaf {
        (Some(list), None, None) => Some(of_list(list)),
        (None, Some(git), None) => Some(of_git(git, answers)),
        (None, None, Some(clusters)) => Some(of_clusters(clusters, answers)),
        _ => None,
    }
}

fn of_list(list: &ListGenerator) -> Result<Vec<Parameters>, String> {
    within_bounds(list.elements.len())?;
    Ok(list.elements.iter().cloned().map(Parameters::of_values).collect())
}

fn of_git(git: &GitGenerator, answers: &mut Answers<'_>) -> Result<Vec<Parameters>, String> {
    let tree = answers.files.next().ok_or("its files are missing")?;
    let sets = git_parameters::parameters_of(git, tree)?;
    within_bounds(sets.len())?;
    Ok(sets.into_iter().map(Parameters::of_values).collect())
}

fn of_clusters(clusters: &ClusterGenerator, answers: &mut Answers<'_>) -> Result<Vec<Parameters>, String> {
    let secrets = answers.secrets.next().ok_or("its Secrets are missing")?;
    within_bounds(secrets.len())?;
    Ok(cluster_parameters::parameters_of(clusters, secrets))
}

fn within_bounds(sets: usize) -> Result<(), String> {
    match sets <= MAX_SETS {
        true => Ok(()),
        false => Err(format!("{sets} sets of parameters are more than {MAX_SETS}: use several SyncSets")),
    }
}
