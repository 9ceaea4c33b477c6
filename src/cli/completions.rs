//! `moorline completions`: the script that teaches a shell our verbs and flags.

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use super::Streams;
use super::exit::Exit;

/// Print the completion script of a shell
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  source <(moorline completions bash)
  moorline completions zsh > \"${fpath[1]}/_moorline\"")]
pub(super) struct Arguments {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

pub(super) fn run(arguments: &Arguments, streams: &mut Streams<'_>) -> anyhow::Result<Exit> {
    // The generator panics where it cannot write; memory always takes the script, and a closed pipe is ours.
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut super::Arguments::command(), "moorline", &mut script);
    streams.data.write_all(&script)?;
    Ok(Exit::Done)
}
