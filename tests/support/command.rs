//! Runs the real binary in a folder of its own: the output of each stream, and the exit code.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A folder of files that is removed at the end of the test.
pub(crate) struct Folder(pub(crate) PathBuf);

impl Folder {
    pub(crate) fn new(test: &str, files: &[(&str, &[u8])]) -> Self {
        let root = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("cli-{test}-{}", std::process::id()));
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
    pub(crate) fn moorline(&self, arguments: &[&str]) -> Outcome {
        let output = Command::new(env!("CARGO_BIN_EXE_moorline"))
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
pub(crate) struct Outcome {
    pub(crate) code: i32,
    pub(crate) data: String,
    pub(crate) words: String,
}

impl Outcome {
    fn of(output: &Output) -> Self {
        Self {
            code: output.status.code().unwrap(),
            data: String::from_utf8(output.stdout.clone()).unwrap(),
            words: String::from_utf8(output.stderr.clone()).unwrap(),
        }
    }

    /// Checks the exit code and standard error; standard output must be empty.
    pub(crate) fn refused(&self, code: i32, words: &str) {
        assert_eq!((self.code, self.words.as_str(), self.data.as_str()), (code, words, ""));
    }
}

pub(crate) const CONFIG_MAP: &[u8] =
    b"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\ndata:\n  mode: 0644\n  on: text\n";
