//! Outputs of programs for files of the tree, and charts that were fetched for it: inputs of
//! kustomizations with charts.
//!
//! In: a request, which is a digest of everything that the output depends on, and the output.
//! Out: the same tree with the output. An output can also be read as a file, under the names that
//! messages show; a file of the repository takes precedence over it.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::FileTree;

/// Outputs and charts.
#[derive(Debug, Clone, Default)]
pub(super) struct ProgramOutputs {
    answers: BTreeMap<[u8; 32], Arc<[u8]>>,
    names: BTreeMap<Box<str>, Arc<[u8]>>,
    /// Charts that were fetched, by their digests.
    charts: BTreeMap<Box<str>, FileTree>,
}

impl ProgramOutputs {
    /// Returns the output that is readable under a name.
    pub(super) fn by_name(&self, name: &str) -> Option<Arc<[u8]>> {
        self.names.get(name).cloned()
    }
}

impl FileTree {
    /// Returns the tree with an output and the names under which it is shown.
    pub fn with_output(
        mut self,
        question: [u8; 32],
        names: impl IntoIterator<Item = String>,
        answer: &Arc<[u8]>,
    ) -> Self {
        let names: Vec<Box<str>> =
            names.into_iter().map(|name| self.parse_display_path(&name).into()).collect();
        let printed = Arc::make_mut(&mut self.printed);
        printed.names.extend(names.into_iter().map(|name| (name, answer.clone())));
        printed.answers.insert(question, answer.clone());
        self
    }

    /// Returns the tree with a fetched chart of this digest.
    pub fn with_chart(mut self, digest: &str, chart: Self) -> Self {
        Arc::make_mut(&mut self.printed).charts.insert(digest.into(), chart);
        self
    }

    /// Returns the chart with this digest, if it was fetched.
    pub fn chart(&self, digest: &str) -> Option<&Self> {
        self.printed.charts.get(digest)
    }

    /// Returns the output for a request, if there is one.
    pub fn output(&self, question: &[u8; 32]) -> Option<Arc<[u8]>> {
        self.printed.answers.get(question).cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_printed_is_found_by_its_question_and_read_by_its_names() {
        let tree = FileTree::from_texts([("a.yaml", "of the repository")]).with_display_prefix("over/there");
        let answer: Arc<[u8]> = b"printed"[..].into();
        let names = ["over/there/a.yaml", "over/there/b.yaml (printed)"].map(str::to_owned);
        let tree = tree.with_output([1; 32], names, &answer);
        assert_eq!(tree.output(&[1; 32]), Some(answer.clone()));
        assert_eq!(tree.output(&[2; 32]), None);
        assert_eq!(tree.read(tree.parse_display_path("over/there/b.yaml (printed)")), Ok(answer));
        assert_eq!(tree.read("a.yaml").as_deref(), Ok(&b"of the repository"[..]));
        assert!(!tree.is_file("b.yaml (printed)"), "it is no file of the repository");
    }
}
