//! Prints each document of a YAML file as kubectl reads it: `read_as_kubectl FILE`.
//!
//! `mode: 0644` is printed as `mode: 420` and `enabled: yes` as `enabled: true`.

use std::process::ExitCode;

use moorline_yaml::{Dialect, read, write};

fn main() -> ExitCode {
    let Some(file) = std::env::args().nth(1) else {
        eprintln!("name a file: read_as_kubectl FILE");
        return ExitCode::from(2);
    };
    let bytes = match std::fs::read(&file) {
        Ok(bytes) => bytes,
        Err(error) => {
            eprintln!("{file}: {error}");
            return ExitCode::FAILURE;
        }
    };
    match read(&file, &bytes, Dialect::Kubectl) {
        Ok(documents) => {
            for document in documents {
                print!("---\n# {file}, line {}\n{}", document.line, write(&document.value));
            }
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
