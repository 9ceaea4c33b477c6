//! Runs the real binary in a folder of its own: the output of each stream, and the exit code.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};

use super::places;

/// A folder of files that is removed at the end of the test.
pub struct Folder(pub PathBuf);

impl Folder {
    pub fn new(test: &str, files: &[(&str, &[u8])]) -> Self {
        let root = places::temporary().join(format!("cli-{test}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&root);
        fs::create_dir_all(&root).unwrap();
        for (path, bytes) in files {
            let path = root.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, bytes).unwrap();
        }
        Self(root)
    }

    /// Runs `moorline` in the folder.
    pub fn moorline(&self, arguments: &[&str]) -> Outcome {
        let output = Command::new(places::moorline())
            .args(arguments)
            .current_dir(&self.0)
            .env_remove("NO_COLOR")
            .output()
            .unwrap();
        Outcome::of(&output)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[derive(Debug)]
pub struct Outcome {
    pub code: i32,
    pub data: String,
    pub words: String,
}

impl Outcome {
    pub fn of(output: &Output) -> Self {
        Self {
            code: output.status.code().unwrap(),
            data: String::from_utf8(output.stdout.clone()).unwrap(),
            words: String::from_utf8(output.stderr.clone()).unwrap(),
        }
    }

    /// Checks the exit code and standard error; standard output must be empty.
    pub fn refused(&self, code: i32, words: &str) {
        assert_eq!((self.code, self.words.as_str(), self.data.as_str()), (code, words, ""));
    }
}

pub const CONFIG_MAP: &[u8] =
    b"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\ndata:\n  mode: 0644\n  on: text\n";
