//! `moorline render --check-against helm`: compares our rendering of a chart with helm's own.
//!
//! In: a chart, its flags, and a helm. Out: one line, with the first difference. Our run is
//! isolated and reads only the file tree; the other is the command that a person would type.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::Context as _;
use serde_json::{Map, Value};

use super::exit::Exit;
use super::kustomize_comparison::difference;
use super::local_helm::LocalHelm;
use super::manifests::Selection;
use super::remote_bases::RemoteBases;
use super::repository_root;
use super::{Streams, manifests};
use crate::render::{RenderOptions, Rendered, SourceType};
use crate::yaml::{self, Dialect};

/// True if the program is a helm.
pub(super) fn is_helm(program: &Path) -> bool {
    program.file_name().is_some_and(|name| name.to_string_lossy().starts_with("helm"))
}

/// Compares the chart in a folder.
pub(super) fn compare_chart(
    path: &Path,
    selection: &Selection,
    program: &Path,
    streams: &mut Streams<'_>,
) -> anyhow::Result<Exit> {
    let mut options =
        RenderOptions { kind: SourceType::Helm, helm: selection.chart.options(), ..RenderOptions::default() };
    let around = (selection.root.as_deref(), selection.chart.values.as_slice());
    let tree = repository_root::read_tree(
        path,
        around,
        &mut options,
        &mut RemoteBases::new(selection.allowed_remotes()?),
    )?;
    let ours: Vec<Map<String, Value>> = match LocalHelm::with_program(program)?.render(tree, options)? {
        Rendered::Complete(complete) => complete.objects().iter().map(|it| it.object().body).collect(),
        Rendered::Incomplete(incomplete) => {
            manifests::print_problems(&incomplete.problems, streams);
            return Ok(Exit::Failure);
        }
    };
    let count = match ours.len() {
        1 => "1 object".to_owned(),
        more => format!("{more} objects"),
    };
    let output =
        Command::new(program).args(selection.chart.helm_command_line(path)).stdin(Stdio::null()).output();
    let output = output.with_context(|| format!("{} cannot be run", program.display()))?;
    if !output.status.success() {
        streams.say(&format!("different: {}: {count} here, but helm fails", path.display()));
        return Ok(Exit::Failure);
    }
    let documents = yaml::read("helm's output", &output.stdout, Dialect::Kubectl)?;
    let theirs: Vec<Value> = documents.into_iter().map(|document| document.value).collect();
    match difference(&ours, &theirs) {
        None => {
            writeln!(streams.data, "equal: {count}")?;
            Ok(Exit::Done)
        }
        Some(what) => {
            streams.say(&format!("different: {}: {what}", path.display()));
            Ok(Exit::Failure)
        }
    }
}
