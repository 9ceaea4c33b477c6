//! Tasks of the repository: `cargo xtask TASK`.
//!
//! In: the command line. Out: what the task makes or finds, and an exit code: 1 if the task found a
//! fault, 2 if it could not run, 64 if the command line is wrong.

mod arguments;
mod packaging;
mod same_tokens;

use std::process::ExitCode;

use arguments::Arguments;

const USAGE: &str = "cargo xtask TASK

  same-tokens BASE    prove that a change left the code as it is, but for comments, names or positions
  dist                build the static binary of a target, and pack it
  pack                pack a binary that exists: tarball, list of components, licences, checksums
  image               assemble the images as OCI layouts
  chart               pack the chart, with the image of a release as default
  chart-readme        write the README of the chart from its values
  ways-in             write the krew manifest and the Homebrew formula for the tarballs in dist/
  site                make the documentation as a site
  checksums           write the checksums of the files of dist/
  verify              compare the files of dist/ with their checksums

`cargo xtask TASK --help` prints the options of a task.";

/// Failure of a task.
#[derive(Debug)]
enum Failure {
    /// The command line is wrong.
    Usage(String),
    /// The task ran, and found a fault.
    Found(String),
    /// The task could not run to its end.
    Broken(String),
}

impl From<String> for Failure {
    fn from(reason: String) -> Self {
        Self::Broken(reason)
    }
}

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let task = arguments.next().unwrap_or_default();
    let arguments = Arguments::new(arguments);
    let result = match task.as_str() {
        "same-tokens" => same_tokens::run(arguments),
        "dist" => packaging::dist(arguments),
        "pack" => packaging::pack(arguments),
        "image" => packaging::image(arguments),
        "chart" => packaging::chart(arguments),
        "chart-readme" => packaging::chart_readme(arguments),
        "ways-in" => packaging::ways_in(arguments),
        "site" => packaging::site(arguments),
        "checksums" => packaging::checksums(arguments),
        "verify" => packaging::verify(arguments),
        "--help" | "-h" | "help" => {
            println!("{USAGE}");
            Ok(())
        }
        other => Err(Failure::Usage(format!("{other:?} is no task\n\n{USAGE}"))),
    };
    let (reason, code) = match result {
        Ok(()) => return ExitCode::SUCCESS,
        Err(Failure::Found(reason)) => (reason, 1),
        Err(Failure::Broken(reason)) => (reason, 2),
        Err(Failure::Usage(reason)) => (reason, 64),
    };
    eprintln!("{reason}");
    ExitCode::from(code)
}
