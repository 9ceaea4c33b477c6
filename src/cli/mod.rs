//! The command line: one file a verb. Data goes to standard output, everything else to standard error.

mod check;
mod completions;
pub mod exit;
mod manifests;
mod plan;
mod render;

use std::ffi::OsString;
use std::io::{self, Write};
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use exit::Exit;

/// Holds a Kubernetes cluster to a committed Git revision.
#[derive(Debug, Parser)]
#[command(name = "moorline", version, max_term_width = 100, subcommand_required = true)]
#[command(after_help = "Examples:
  moorline render examples/quickstart             what a folder of manifests comes to
  moorline check deploy/*.yaml                    is every manifest sound?
  moorline plan clusters/prod --against live/     what would change, and why")]
struct Arguments {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    Render(render::Arguments),
    Check(check::Arguments),
    Plan(plan::Arguments),
    Completions(completions::Arguments),
}

/// Where a verb writes: data to one side, words about it to the other.
struct Streams<'a> {
    data: &'a mut dyn Write,
    words: &'a mut dyn Write,
}

/// Runs the command line.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let arguments = match Arguments::try_parse_from(arguments) {
        Ok(arguments) => arguments,
        Err(error) => {
            // Help and version come as errors, too; they are what was asked for.
            let exit = if error.use_stderr() { Exit::Usage } else { Exit::Done };
            return error.print().map_or(Exit::Failure.into(), |()| exit.into());
        }
    };
    let (mut data, mut words) = (io::BufWriter::new(io::stdout().lock()), io::stderr().lock());
    let mut streams = Streams { data: &mut data, words: &mut words };
    let result = match &arguments.verb {
        Verb::Render(arguments) => render::run(arguments, &mut streams),
        Verb::Check(arguments) => check::run(arguments, &mut streams),
        Verb::Plan(arguments) => plan::run(arguments, &mut streams),
        Verb::Completions(arguments) => completions::run(arguments, &mut streams),
    };
    let result = result.and_then(|exit| Ok(data.flush().map(|()| exit)?));
    match result {
        Ok(exit) => exit.into(),
        Err(error) if is_broken_pipe(&error) => Exit::Done.into(),
        Err(error) => {
            // Nobody is left to tell if standard error is gone, too.
            let _ = writeln!(words, "error: {error:#}");
            Exit::Failure.into()
        }
    }
}

/// The reader of our output has enough, as `head` has: that is no failure.
fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    #[test]
    fn the_command_line_contradicts_itself_nowhere() {
        super::Arguments::command().debug_assert();
    }
}
