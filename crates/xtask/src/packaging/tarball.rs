//! Tarball of a target: the program, its licences and its completions.

use std::path::Path;
use std::process::Command;

use super::archive::{self, Archive};
use super::checkout::{Checkout, output};
use super::targets::Target;

/// Scripts of completions: shell, and path in the tarball.
const COMPLETIONS: [(&str, &str); 3] = [
    ("bash", "completions/moorline.bash"),
    ("fish", "completions/moorline.fish"),
    ("zsh", "completions/_moorline"),
];

/// Content of a tarball.
pub(crate) struct Content<'a> {
    pub(crate) target: &'a Target,
    pub(crate) program: &'a [u8],
    /// Licence texts of the packages in the program.
    pub(crate) licences: &'a str,
    /// Completion scripts by their paths.
    pub(crate) completions: &'a [(&'static str, String)],
}

/// Packs the tarball.
pub(crate) fn pack(checkout: &Checkout, content: &Content<'_>) -> Result<Vec<u8>, String> {
    let folder = content.target.stem(&checkout.version);
    let own =
        |name: &str| std::fs::read(checkout.root.join(name)).map_err(|error| format!("{name}: {error}"));
    let mut archive = Archive::new(checkout.time);
    archive.folder(&folder)?;
    archive.file(&format!("{folder}/LICENSE"), 0o644, &own("LICENSE")?)?;
    archive.file(&format!("{folder}/README.md"), 0o644, &own("README.md")?)?;
    archive.file(&format!("{folder}/THIRD-PARTY-LICENSES.txt"), 0o644, content.licences.as_bytes())?;
    archive.folder(&format!("{folder}/completions"))?;
    for (path, script) in content.completions {
        archive.file(&format!("{folder}/{path}"), 0o644, script.as_bytes())?;
    }
    archive.file(&format!("{folder}/moorline"), 0o755, content.program)?;
    archive::gzip(&archive.finish()?)
}

/// Asks a program that runs on this machine for its completion scripts. They are the same for all
/// targets.
pub(crate) fn completions(program: &Path) -> Result<Vec<(&'static str, String)>, String> {
    let script = |shell: &str| output(Command::new(program).args(["completions", shell]));
    COMPLETIONS.iter().map(|(shell, path)| Ok((*path, script(shell)? + "\n"))).collect()
}
