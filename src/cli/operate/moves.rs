//! `moorline move`: names the Sync of another repository that takes over the objects of this one.

use anyhow::bail;
use clap::Args;
use serde_json::{Value, json};

use super::super::Streams;
use super::super::exit::Exit;
use super::{SyncTarget, on_cluster};
use crate::api::{INSTANCE_LABEL, MOVES_TO_ANNOTATION, SyncName, parse_moves_to};
use crate::cluster::SyncResource;

/// Move objects from a Sync to one of another repository
///
/// Objects removed from this Sync's repository wait until the other Sync has polled its own, and
/// are handed over unchanged if they are there. Push the files to the other repository first, then
/// remove them from this one.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  moorline move shop --to shop-next
  moorline move shop --to team/shop      a Sync of another namespace
  moorline move shop --done              end the move

Exit codes: 0 done, 1 a Sync does not exist or may not be changed.")]
pub(in super::super) struct MoveArgs {
    #[command(flatten)]
    target: SyncTarget,

    /// The Sync to which the objects are handed over: NAME, or NAMESPACE/NAME
    #[arg(long, required_unless_present = "done", conflicts_with = "done")]
    to: Option<String>,

    /// End the move: objects removed from the repository are pruned again
    #[arg(long)]
    done: bool,
}

pub(in super::super) fn run(arguments: &MoveArgs, streams: &mut Streams<'_>) -> anyhow::Result<Exit> {
    on_cluster(async |connection| {
        let name = arguments.target.of(&connection);
        let old = connection.sync(&name).await?;
        let patch = |to: Value| json!({"metadata": {"annotations": {MOVES_TO_ANNOTATION: to}}});
        let Some(text) = arguments.to.as_deref().filter(|text| !text.is_empty()) else {
            let said = match written(&old) {
                Some(to) => {
                    format!(
                        "{name} no longer moves to {}: objects removed from Git are pruned again",
                        display_move_target(to, &name)
                    )
                }
                None => format!("{name} does not move to another Sync"),
            };
            connection.change_sync(&name, patch(Value::Null)).await?;
            streams.say(&said);
            return Ok(Exit::Done);
        };
        let Some(to) = parse_moves_to(text, &name) else {
            bail!("--to {text:?} does not name another Sync than {name}: write NAME, or NAMESPACE/NAME");
        };
        let new = connection.sync(&to).await?;
        if instance(&old) != instance(&new) {
            bail!(
                "another daemon serves {to} ({INSTANCE_LABEL}), and objects are handed over only if one daemon serves both Syncs"
            );
        }
        connection.change_sync(&name, patch(to.to_string().into())).await?;
        streams
            .say(&format!("{name} moves to {to}: objects removed from Git are kept until that Sync has polled its repository"));
        streams.say(&format!(
            "push the files to the repository of {to}, then remove them from that of {name}; when all are moved: moorline move {} -n {} --done",
            name.name, name.namespace
        ));
        Ok(Exit::Done)
    })
}

/// The value of the annotation.
fn written(sync: &SyncResource) -> Option<&String> {
    sync.resource.metadata.annotations.as_ref()?.get(MOVES_TO_ANNOTATION)
}

/// The instance of the daemon that serves a Sync.
fn instance(sync: &SyncResource) -> Option<&str> {
    let labels = sync.resource.metadata.labels.as_ref()?;
    labels.get(INSTANCE_LABEL).map(String::as_str).filter(|instance| !instance.is_empty())
}

/// The Sync that a value names, or the quoted value if it names none.
pub(in super::super) fn display_move_target(text: &str, own: &SyncName) -> String {
    match parse_moves_to(text, own) {
        Some(to) => to.to_string(),
        None => format!("{text:?}, which does not name another Sync"),
    }
}
