//! The command line, one file for each verb. Data goes to standard output, the rest to standard
//! error.

mod adopt;
mod artifact;
mod audit;
mod chart_comparison;
mod chart_flags;
mod check;
mod completions;
mod console;
mod crd;
mod crd_update;
mod demo;
mod doctor;
mod election;
pub mod exit;
mod explanation;
mod gpg;
mod helm_isolation;
mod install;
mod installation;
mod journal_start;
mod kustomize_comparison;
mod kustomize_options;
mod listeners;
mod local_helm;
pub mod logs;
mod manifests;
mod mcp;
mod mount_flags;
mod nested_syncs;
mod operate;
mod own_keys;
mod own_ssh_keys;
mod plan;
mod plan_hash;
mod proof_keys;
mod pull_request_plan;
mod rbac;
mod remote_bases;
mod render;
mod repository_root;
mod repository_url;
mod run;
mod sandbox;
pub mod schema;
mod schema_check;
mod server_check;
mod setting_flags;
mod settings_file;
mod signals;
mod sources;
mod sync_set_plan;
mod sync_set_rights;
mod temporary_folder;
mod version;

use std::ffi::OsString;
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand};

use crate::sanitize::sanitize;
use exit::Exit;

/// Keeps a Kubernetes cluster in sync with Git.
#[derive(Debug, Parser)]
#[command(name = "moorline", version, max_term_width = 100, subcommand_required = true)]
#[command(after_help = "Examples:
  moorline render examples/quickstart             print the objects of a folder
  moorline check deploy/*.yaml                    validate manifests
  moorline plan clusters/prod --against live/     show what would change, and why")]
struct CommandLine {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    Render(render::RenderArgs),
    Check(check::CheckArgs),
    Plan(plan::PlanArgs),
    Run(run::RunArgs),
    Install(install::InstallArgs),
    Doctor(doctor::DoctorArgs),
    Status(operate::status::StatusArgs),
    Sync(operate::sync::SyncArgs),
    Approve(operate::approve::ApproveArgs),
    Override(operate::overrides::OverrideArgs),
    Windows(operate::windows::WindowsArgs),
    Suspend(operate::suspend::Suspend),
    Resume(operate::suspend::Resume),
    Rollback(operate::rollback::RollbackArgs),
    Release(operate::rollback::ReleaseArgs),
    Move(operate::moves::MoveArgs),
    Delete(operate::delete::DeleteArgs),
    Events(operate::events::EventsArgs),
    Console(console::ConsoleArgs),
    Audit(audit::AuditArgs),
    Mcp(mcp::McpArgs),
    Crd(crd::CrdArgs),
    Rbac(rbac::RbacArgs),
    Schema(schema::SchemaArgs),
    Adopt(adopt::AdoptArgs),
    Push(artifact::PushArgs),
    Pull(artifact::PullArgs),
    Demo(demo::DemoArgs),
    Sandbox(sandbox::SandboxArgs),
    Completions(completions::CompletionsArgs),
    Version(version::VersionArgs),
    #[command(hide = true)]
    Fence(crate::cli::helm_isolation::FenceArgs),
    #[command(hide = true)]
    FenceInside(crate::cli::helm_isolation::FenceInsideArgs),
}

/// Output of a verb: data on standard output, messages on standard error.
struct Streams<'a> {
    data: &'a mut dyn Write,
    messages: &'a mut dyn Write,
}

impl Streams<'_> {
    /// Prints a message. A failure to print does not affect the exit code.
    fn say(&mut self, line: &str) {
        let _ = writeln!(self.messages, "{}", sanitize(line));
    }
}

/// A stream that may be closed by its reader, as `head` does. Later output is dropped, and the exit
/// code stays the same: it is about manifests, not about readers.
struct ClosablePipe<W>(Option<W>);

impl<W: Write> ClosablePipe<W> {
    fn attempt<T>(&mut self, gone: T, write: impl FnOnce(&mut W) -> io::Result<T>) -> io::Result<T> {
        match self.0.as_mut().map(write) {
            Some(Err(error)) if error.kind() == io::ErrorKind::BrokenPipe => {
                self.0 = None;
                Ok(gone)
            }
            Some(result) => result,
            None => Ok(gone),
        }
    }
}

impl<W: Write> Write for ClosablePipe<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.attempt(bytes.len(), |stream| stream.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.attempt((), W::flush)
    }
}

/// The command line under the name of the binary: kubectl runs `kubectl-moorline` as a plugin.
fn command(called: Option<&OsString>) -> clap::Command {
    let plugin =
        called.is_some_and(|path| Path::new(path).file_stem().is_some_and(|name| name == "kubectl-moorline"));
    match plugin {
        true => CommandLine::command().bin_name("kubectl moorline"),
        false => CommandLine::command(),
    }
}

/// Runs the command line.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    let parsed = command(arguments.first()).try_get_matches_from(arguments);
    let arguments = match parsed.and_then(|matches| CommandLine::from_arg_matches(&matches)) {
        Ok(arguments) => arguments,
        Err(error) => {
            // clap returns help and version as errors, too; they were requested, so they succeed.
            let exit = if error.use_stderr() { Exit::Usage } else { Exit::Done };
            let _ = error.print();
            return exit.into();
        }
    };
    let mut data = io::BufWriter::new(ClosablePipe(Some(io::stdout().lock())));
    // Not locked: the daemon's threads log to it, and would block for ever.
    let mut words = io::stderr();
    let mut streams = Streams { data: &mut data, messages: &mut words };
    let result = match &arguments.verb {
        Verb::Render(arguments) => render::run(arguments, &mut streams),
        Verb::Check(arguments) => check::run(arguments, &mut streams),
        Verb::Plan(arguments) => plan::run(arguments, &mut streams),
        Verb::Run(arguments) => run::run(arguments, &mut streams),
        Verb::Install(arguments) => install::run(arguments, &mut streams),
        Verb::Doctor(arguments) => doctor::run(arguments, &mut streams),
        Verb::Status(arguments) => operate::status::run(arguments, &mut streams),
        Verb::Sync(arguments) => operate::sync::run(arguments, &mut streams),
        Verb::Approve(arguments) => operate::approve::run(arguments, &mut streams),
        Verb::Override(arguments) => operate::overrides::run(arguments, &mut streams),
        Verb::Windows(arguments) => operate::windows::run(arguments, &mut streams),
        Verb::Suspend(arguments) => operate::suspend::suspend(arguments, &mut streams),
        Verb::Resume(arguments) => operate::suspend::resume(arguments, &mut streams),
        Verb::Rollback(arguments) => operate::rollback::run(arguments, &mut streams),
        Verb::Release(arguments) => operate::rollback::release(arguments, &mut streams),
        Verb::Move(arguments) => operate::moves::run(arguments, &mut streams),
        Verb::Delete(arguments) => operate::delete::run(arguments, &mut streams),
        Verb::Events(arguments) => operate::events::run(arguments, &mut streams),
        Verb::Console(arguments) => console::run(arguments, &mut streams),
        Verb::Audit(arguments) => audit::run(arguments, &mut streams),
        Verb::Mcp(arguments) => mcp::run(arguments, &mut streams),
        Verb::Crd(arguments) => crd::run(arguments, &mut streams),
        Verb::Rbac(arguments) => rbac::run(arguments, &mut streams),
        Verb::Schema(arguments) => schema::run(arguments, &mut streams),
        Verb::Adopt(arguments) => adopt::run(arguments, &mut streams),
        Verb::Push(arguments) => artifact::push(arguments, &mut streams),
        Verb::Pull(arguments) => artifact::pull(arguments, &mut streams),
        Verb::Demo(arguments) => demo::run(arguments, &mut streams),
        Verb::Sandbox(arguments) => sandbox::run(arguments, &mut streams),
        Verb::Completions(arguments) => completions::run(arguments, &mut streams),
        Verb::Version(arguments) => version::run(arguments, &mut streams),
        // These replace the process, or end with the exit code of the other program.
        Verb::Fence(arguments) => return crate::cli::helm_isolation::run(arguments, &mut streams),
        Verb::FenceInside(arguments) => return crate::cli::helm_isolation::run_inside(arguments),
    };
    match result.and_then(|exit| Ok(streams.data.flush().map(|()| exit)?)) {
        Ok(exit) => exit.into(),
        Err(error) => {
            streams.say(&format!("error: {error:#}"));
            Exit::Failure.into()
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    #[test]
    fn the_command_line_contradicts_itself_nowhere() {
        super::CommandLine::command().debug_assert();
    }
}
