//! `moorline render`: prints the objects of a folder of manifests.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use serde_json::Value;

use super::chart_comparison::{compare_chart, is_helm};
use super::exit::Exit;
use super::manifests::{self, Selection};
use super::{Streams, explanation};
use super::{kustomize_comparison, nested_syncs};
use crate::render::Complete;
use crate::yaml;

/// Print the objects that a folder renders to
///
/// A Helm chart is rendered by helm, from PATH or MOORLINE_HELM; a kustomization is built as by
/// kustomize. Otherwise, all .yaml, .yml and .json files below PATH are read as by `kubectl
/// apply -f`. Lists are flattened, and objects keep their order. Syncs among the objects are
/// checked together with their folders in this repository. If there are problems, only these are
/// printed.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  moorline render examples/quickstart
  moorline render clusters/prod --output json | jq '.[].kind'
  moorline render overlays/prod --explain Deployment/web
  moorline render overlays/prod --check-against kubectl
  moorline render apps/shop --var CLUSTER_NAME=shop-1 --var REPLICAS=3
  moorline render charts/shop --values values/prod.yaml
  moorline render clusters/prod --exclude 'tests/**' | kubectl apply --server-side -f -")]
pub(super) struct RenderArgs {
    /// A folder of manifests, or one file
    path: PathBuf,

    #[command(flatten)]
    selection: Selection,

    /// Print only the origin of this object and the steps that changed it; as Kind/name,
    /// Kind.group/name or Kind/namespace/name
    #[arg(long, value_name = "OBJECT", value_parser = explanation::ObjectQuery::parse, conflicts_with = "check_against")]
    explain: Option<explanation::ObjectQuery>,

    /// Output format: YAML documents, or one JSON array
    #[arg(long, short, value_enum, default_value_t = RenderFormat::Yaml)]
    output: RenderFormat,

    /// Only compare the kustomizations below PATH with the output of kubectl or kustomize, or the
    /// chart in PATH with that of helm
    #[arg(long, value_name = "PROGRAM")]
    check_against: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum RenderFormat {
    Yaml,
    Json,
}

pub(super) fn run(arguments: &RenderArgs, streams: &mut Streams<'_>) -> anyhow::Result<Exit> {
    if let Some(program) = &arguments.check_against {
        if is_helm(program) {
            return compare_chart(&arguments.path, &arguments.selection, program, streams);
        }
        return kustomize_comparison::compare_all(
            &arguments.path,
            arguments.selection.root.as_deref(),
            program,
            streams,
        );
    }
    let (tree, options) = manifests::read_files(&arguments.path, &arguments.selection, streams)?;
    if let Some(name) = &arguments.explain {
        return explanation::explain((&tree, &options), name, streams);
    }
    let rendered = manifests::render_quietly(&tree, &options)?;
    if let Some(path) = rendered.empty_kustomization() {
        streams.say(&format!(
            "note: the kustomization in {path} renders no objects; a Sync of it keeps its applied objects (NoManifests)"
        ));
        return print(&[], arguments.output, streams);
    }
    let Some(complete) = manifests::print_render_problems(rendered, streams) else {
        return Ok(Exit::Failure);
    };
    if !nested_syncs::check_nested_syncs(
        &arguments.path,
        &arguments.selection,
        complete.objects(),
        None,
        streams,
    )? {
        return Ok(Exit::Failure);
    }
    let (_, objects) = Complete::into_parts(complete);
    let bodies: Vec<Value> = objects.into_iter().map(|object| Value::Object(object.object().body)).collect();
    print(&bodies, arguments.output, streams)
}

fn print(bodies: &[Value], format: RenderFormat, streams: &mut Streams<'_>) -> anyhow::Result<Exit> {
    match format {
        RenderFormat::Yaml => bodies.iter().try_for_each(|body| {
            streams.data.write_all(b"---\n")?;
            streams.data.write_all(yaml::write(body).as_bytes())
        })?,
        RenderFormat::Json => {
            serde_json::to_writer_pretty(&mut *streams.data, bodies).map_err(std::io::Error::from)?;
            writeln!(streams.data)?;
        }
    }
    Ok(Exit::Done)
}
