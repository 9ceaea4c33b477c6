//! `moorline plan`: what would change, and why.

use std::io::IsTerminal;
use std::path::PathBuf;

use anyhow::bail;
use clap::{Args, ValueEnum};

use super::Streams;
use super::exit::Exit;
use super::manifests::{self, Selection};
use crate::api::SyncName;
use crate::desired::{Scope, Scopes, desired};
use crate::object::Object;
use crate::plan::{Paint, Plan, Policy, Preview, document, explain, plan, preview};
use crate::render;
use crate::source::directory;
use crate::yaml;

/// Show what a sync would do, and why
///
/// Decides with the same function as the daemon, and writes nothing.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  kubectl get deploy,svc,cm --all-namespaces --show-managed-fields -o yaml > live/objects.yaml
  moorline plan clusters/prod --against live/ --namespace moorline --name prod
  moorline plan clusters/prod --against live/ --output json | jq '.held'

Exit codes: 0 nothing to do, 1 failure, 2 changes, 3 nothing to write but something held.")]
pub(super) struct Arguments {
    /// A folder of manifests, or one file
    path: PathBuf,

    /// A folder of live objects, as `kubectl get -o yaml` prints them
    #[arg(long, value_name = "DIR")]
    against: PathBuf,

    /// The name of the Sync that owns the objects
    #[arg(long, default_value = "default", value_parser = name)]
    name: String,

    /// The namespace of the Sync
    #[arg(long, short, default_value = "default", value_parser = namespace)]
    namespace: String,

    /// The namespace of objects that name none; the Sync's own if absent
    #[arg(long, value_name = "NAMESPACE", value_parser = namespace)]
    target_namespace: Option<String>,

    #[command(flatten)]
    selection: Selection,

    /// How the plan is printed
    #[arg(long, short, value_enum, default_value_t = Format::Text)]
    output: Format,

    /// When colours are used
    #[arg(long, value_enum, default_value_t = Colour::Auto)]
    color: Colour,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Format {
    Text,
    Json,
    Yaml,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Colour {
    Auto,
    Always,
    Never,
}

pub(super) fn run(arguments: &Arguments, streams: &mut Streams<'_>) -> anyhow::Result<Exit> {
    if arguments.against.as_os_str() == "cluster" {
        bail!(
            "--against cluster: a live cluster cannot be asked yet; give a folder of live objects (a folder called cluster is ./cluster)"
        );
    }
    let Some(complete) = manifests::read(&arguments.path, &arguments.selection, streams)? else {
        return Ok(Exit::Failure);
    };
    let (tree, inside) = directory::read(&arguments.against, render::is_read)?;
    let live = match render::dump(&tree, &inside) {
        Ok(dump) => {
            manifests::tell_skipped(&dump.skipped, streams);
            dump.objects
        }
        Err(problems) => {
            manifests::tell(&problems, streams);
            return Ok(Exit::Failure);
        }
    };
    if live.is_empty() {
        streams.say("note: there is no live object; the plan is for an empty cluster");
    }
    let target = arguments.target_namespace.as_deref().unwrap_or(&arguments.namespace);
    let desired = match desired(complete, target, &scopes(&live)) {
        Ok(desired) => desired,
        Err(problems) => {
            manifests::tell(&problems, streams);
            return Ok(Exit::Failure);
        }
    };
    let owner = SyncName::new(&arguments.namespace, &arguments.name);
    let preview = preview(&desired, &live, &owner);
    if preview.assumed_entries {
        streams.say("note: live objects come without managed fields, so that Moorline applied those with its identity is assumed; kubectl prints them with --show-managed-fields");
    }
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    let now = i64::try_from(now.as_millis()).unwrap_or(i64::MAX);
    let plan = plan(&desired, &preview.observed, &Policy { now, ..Policy::default() });
    print(&plan, &preview, arguments, streams)?;
    Ok(match (plan.is_quiet(), plan.held.is_empty()) {
        (false, _) => Exit::Changes,
        (true, false) => Exit::Held,
        (true, true) => Exit::Done,
    })
}

fn print(
    plan: &Plan,
    preview: &Preview,
    arguments: &Arguments,
    streams: &mut Streams<'_>,
) -> anyhow::Result<()> {
    let differences = &preview.differences;
    match arguments.output {
        Format::Text => {
            streams.data.write_all(explain(plan, differences, arguments.color.paint()).as_bytes())?;
        }
        Format::Json => writeln!(streams.data, "{:#}", document(plan, differences))?,
        Format::Yaml => streams.data.write_all(yaml::write(&document(plan, differences)).as_bytes())?,
    }
    Ok(())
}

/// Kubernetes' own kinds, those that live definitions define, and those of which there are live objects.
fn scopes(live: &[Object]) -> Scopes {
    let mut scopes = Scopes::builtin();
    live.iter().for_each(|object| scopes.learn(object));
    for object in live {
        if scopes.of(object.id.group(), object.id.kind()).is_none() {
            let scope = object.id.namespace().map_or(Scope::Cluster, |_| Scope::Namespaced);
            scopes.insert(object.id.group_kind(), scope);
        }
    }
    scopes
}

fn namespace(text: &str) -> Result<String, &'static str> {
    render::namespace_rule(text).map_or_else(|| Ok(text.to_owned()), Err)
}

fn name(text: &str) -> Result<String, &'static str> {
    render::sync_name_rule(text).map_or_else(|| Ok(text.to_owned()), Err)
}

impl Colour {
    fn paint(self) -> Paint {
        let wanted = match self {
            Self::Always => true,
            Self::Never => false,
            Self::Auto => std::env::var_os("NO_COLOR").is_none() && std::io::stdout().is_terminal(),
        };
        if wanted { Paint::Colours } else { Paint::Plain }
    }
}
