//! `moorline completions`: prints the completion script of a shell.

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use super::Streams;
use super::exit::Exit;

/// Print the completion script of a shell
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  source <(moorline completions bash)
  moorline completions zsh > \"${fpath[1]}/_moorline\"")]
pub(super) struct CompletionsArgs {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

pub(super) fn run(arguments: &CompletionsArgs, streams: &mut Streams<'_>) -> anyhow::Result<Exit> {
    // The generator panics if it cannot write. Memory always takes the script, and the write to a
    // pipe that may be closed is ours.
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut super::CommandLine::command(), "moorline", &mut script);
    streams.data.write_all(&script)?;
    Ok(Exit::Done)
}
