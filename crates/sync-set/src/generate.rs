//! Generators to sets of parameters.
//!
//! In: the generators of a spec, and the answers of their sources: files, Secrets, tags
//! and pull requests.
//! Out: [`ParameterSets`], or the first error. Every number of sets has a bound, which is checked
//! before sets are combined.

use std::slice::Iter;

use moorline_api::{
    ClusterGenerator, Generator, GitGenerator, ListGenerator, NestedGenerator, PullRequestGenerator,
    SyncSetSpec, TagGenerator,
};
use moorline_core::tree::FileTree;
use serde_json::json;

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

/// Answers of the sources of a spec.
#[derive(Debug, Clone, Default)]
pub struct SourceAnswers {
    /// The files for each of [`git_generators`].
    pub files: Vec<FileTree>,
    /// The Secrets for each of [`cluster_generators`].
    pub secrets: Vec<Vec<ListedSecret>>,
    /// The tags for each of [`tag_generators`].
    pub tags: Vec<Vec<String>>,
    /// The pull requests for each of [`pull_request_generators`].
    pub pull_requests: Vec<Vec<PullRequest>>,
}

impl SourceAnswers {
    /// True if all lists but the files are the same.
    pub fn lists_the_same(&self, other: &Self) -> bool {
        let Self { files: _, secrets, tags, pull_requests } = self;
        (secrets, tags, pull_requests) == (&other.secrets, &other.tags, &other.pull_requests)
    }
}

/// An open pull request that a generator selects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PullRequest {
    /// Its number.
    pub number: u64,
    /// The commit that counts.
    pub commit: String,
    /// The branch that it is to be merged into.
    pub target_branch: String,
}

/// Answers of the sources that are not used yet.
struct UnusedAnswers<'a> {
    files: Iter<'a, FileTree>,
    secrets: Iter<'a, Vec<ListedSecret>>,
    tags: Iter<'a, Vec<String>>,
    pull_requests: Iter<'a, Vec<PullRequest>>,
}

/// Returns the generators that read a repository.
pub fn git_generators(spec: &SyncSetSpec) -> Vec<&GitGenerator> {
    leaves(spec).filter_map(|leaf| leaf.git).collect()
}

/// Returns the generators that list Secrets.
pub fn cluster_generators(spec: &SyncSetSpec) -> Vec<&ClusterGenerator> {
    leaves(spec).filter_map(|leaf| leaf.clusters).collect()
}

/// Returns the generators that list tags.
pub fn tag_generators(spec: &SyncSetSpec) -> Vec<&TagGenerator> {
    leaves(spec).filter_map(|leaf| leaf.tags).collect()
}

/// Returns the generators that list pull requests.
pub fn pull_request_generators(spec: &SyncSetSpec) -> Vec<&PullRequestGenerator> {
    leaves(spec).filter_map(|leaf| leaf.pull_requests).collect()
}

/// The fields of a generator that have no generators inside. At most one of them is given.
struct Leaf<'a> {
    list: Option<&'a ListGenerator>,
    git: Option<&'a GitGenerator>,
    clusters: Option<&'a ClusterGenerator>,
    tags: Option<&'a TagGenerator>,
    pull_requests: Option<&'a PullRequestGenerator>,
}

impl Leaf<'_> {
    /// Number of fields that are given.
    fn count(&self) -> usize {
        let Self { list, git, clusters, tags, pull_requests } = self;
        let given =
            [list.is_some(), git.is_some(), clusters.is_some(), tags.is_some(), pull_requests.is_some()];
        given.into_iter().filter(|is_given| *is_given).count()
    }
}

fn leaves(spec: &SyncSetSpec) -> impl Iterator<Item = Leaf<'_>> {
    spec.generators.iter().flat_map(|generator| {
        let inner = generator.matrix.iter().flatten();
        let merged = generator.merge.iter().flat_map(|merge| &merge.generators);
        std::iter::once(outer_leaf(generator)).chain(inner.chain(merged).map(inner_leaf))
    })
}

fn outer_leaf(generator: &Generator) -> Leaf<'_> {
    let Generator { list, git, clusters, oci_tags, pull_requests, matrix: _, merge: _ } = generator;
    Leaf {
        list: list.as_ref(),
        git: git.as_ref(),
        clusters: clusters.as_ref(),
        tags: oci_tags.as_ref(),
        pull_requests: pull_requests.as_ref(),
    }
}

fn inner_leaf(generator: &NestedGenerator) -> Leaf<'_> {
    let NestedGenerator { list, git, clusters, oci_tags, pull_requests } = generator;
    Leaf {
        list: list.as_ref(),
        git: git.as_ref(),
        clusters: clusters.as_ref(),
        tags: oci_tags.as_ref(),
        pull_requests: pull_requests.as_ref(),
    }
}

/// Generates the sets of parameters. Each kind of answer is in the order of its generators.
///
/// # Errors
///
/// Returns the first generator that gives no complete answer, and the reason.
pub fn generate(spec: &SyncSetSpec, answers: &SourceAnswers) -> Result<ParameterSets, String> {
    for (answers, generators, missing) in [
        (answers.files.len(), git_generators(spec).len(), "the files of a repository are missing"),
        (answers.secrets.len(), cluster_generators(spec).len(), "a list of Secrets is missing"),
        (answers.tags.len(), tag_generators(spec).len(), "a list of tags is missing"),
        (
            answers.pull_requests.len(),
            pull_request_generators(spec).len(),
            "a list of pull requests is missing",
        ),
    ] {
        if answers != generators {
            return Err(format!("spec.generators: {missing}"));
        }
    }
    let SourceAnswers { files, secrets, tags, pull_requests } = answers;
    let mut answers = UnusedAnswers {
        files: files.iter(),
        secrets: secrets.iter(),
        tags: tags.iter(),
        pull_requests: pull_requests.iter(),
    };
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

fn of_generator(generator: &Generator, answers: &mut UnusedAnswers<'_>) -> Result<Vec<Parameters>, String> {
    const ONE: &str = "write exactly one of list, git, clusters, ociTags, pullRequests, matrix and merge";
    let leaf = outer_leaf(generator);
    match (&generator.matrix, &generator.merge) {
        (Some(inner), None) if leaf.count() == 0 => {
            let [first, second] = inner.as_slice() else {
                return Err("write two generators in matrix".to_owned());
            };
            let (first, second) = (of_nested(first, answers)?, of_nested(second, answers)?);
            within_bounds(first.len().saturating_mul(second.len()))?;
            combine(&first, &second)
        }
        (None, Some(merging)) if leaf.count() == 0 => {
            let mut found = Vec::new();
            for inner in &merging.generators {
                found.push(of_nested(inner, answers)?);
            }
            merge(&merging.keys, found)
        }
        (None, None) => of_leaf(&leaf, answers).unwrap_or_else(|| Err(ONE.to_owned())),
        _ => Err(ONE.to_owned()),
    }
}

fn of_nested(
    generator: &NestedGenerator,
    answers: &mut UnusedAnswers<'_>,
) -> Result<Vec<Parameters>, String> {
    of_leaf(&inner_leaf(generator), answers).unwrap_or_else(|| {
        Err("write exactly one of list, git, clusters, ociTags and pullRequests".to_owned())
    })
}

/// Returns the sets of one generator; none if not exactly one is given.
fn of_leaf(leaf: &Leaf<'_>, answers: &mut UnusedAnswers<'_>) -> Option<Result<Vec<Parameters>, String>> {
    if leaf.count() != 1 {
        return None;
    }
    let of_list = leaf.list.map(of_list);
    let of_git = leaf.git.map(|git| of_git(git, answers));
    let of_clusters = leaf.clusters.map(|clusters| of_clusters(clusters, answers));
    let of_tags = leaf.tags.map(|_| of_tags(answers));
    let of_pulls = leaf.pull_requests.map(|_| of_pull_requests(answers));
    of_list.or(of_git).or(of_clusters).or(of_tags).or(of_pulls)
}

fn of_list(list: &ListGenerator) -> Result<Vec<Parameters>, String> {
    within_bounds(list.elements.len())?;
    Ok(list.elements.iter().cloned().map(Parameters::of_values).collect())
}

fn of_git(git: &GitGenerator, answers: &mut UnusedAnswers<'_>) -> Result<Vec<Parameters>, String> {
    let tree = answers.files.next().ok_or("its files are missing")?;
    let sets = git_parameters::parameters_of(git, tree)?;
    within_bounds(sets.len())?;
    Ok(sets.into_iter().map(Parameters::of_values).collect())
}

fn of_clusters(
    clusters: &ClusterGenerator,
    answers: &mut UnusedAnswers<'_>,
) -> Result<Vec<Parameters>, String> {
    let secrets = answers.secrets.next().ok_or("its Secrets are missing")?;
    within_bounds(secrets.len())?;
    Ok(cluster_parameters::parameters_of(clusters, secrets))
}

fn of_tags(answers: &mut UnusedAnswers<'_>) -> Result<Vec<Parameters>, String> {
    let tags = answers.tags.next().ok_or("its tags are missing")?;
    within_bounds(tags.len())?;
    let values = |tag: &String| [("tag".to_owned(), json!({"name": tag}))].into_iter().collect();
    Ok(tags.iter().map(|tag| Parameters::of_values(values(tag))).collect())
}

fn of_pull_requests(answers: &mut UnusedAnswers<'_>) -> Result<Vec<Parameters>, String> {
    let found = answers.pull_requests.next().ok_or("its pull requests are missing")?;
    within_bounds(found.len())?;
    let values = |PullRequest { number, commit, target_branch }: &PullRequest| {
        let pull = json!({"number": number, "commit": commit, "targetBranch": target_branch});
        [("pull".to_owned(), pull)].into_iter().collect()
    };
    Ok(found.iter().map(|pull| Parameters::of_values(values(pull))).collect())
}

fn within_bounds(sets: usize) -> Result<(), String> {
    match sets <= MAX_SETS {
        true => Ok(()),
        false => Err(format!("{sets} sets of parameters are more than {MAX_SETS}: use several SyncSets")),
    }
}
