//! `SHA256SUMS`: the checksums of the files of a release, in the form of `sha256sum`.

use std::collections::BTreeMap;
use std::path::Path;

use super::archive::sha256;

/// Name of the file.
pub(crate) const FILE: &str = "SHA256SUMS";

/// Writes the checksums of all files of a folder.
pub(crate) fn write(folder: &Path) -> Result<(), String> {
    let text: String = of(folder)?.iter().map(|(name, checksum)| format!("{checksum}  {name}\n")).collect();
    std::fs::write(folder.join(FILE), text).map_err(|error| format!("{FILE}: {error}"))
}

/// Reads the checksums that a folder lists.
pub(crate) fn read(folder: &Path) -> Result<BTreeMap<String, String>, String> {
    let path = folder.join(FILE);
    let text = std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    let line = |line: &str| {
        let (checksum, name) =
            line.split_once("  ").ok_or_else(|| format!("{FILE}: {line:?} is no checksum"))?;
        Ok((name.to_owned(), checksum.to_owned()))
    };
    text.lines().map(line).collect()
}

/// Compares the files of a folder with the checksums that it lists, and returns how many there are.
pub(crate) fn verify(folder: &Path) -> Result<usize, String> {
    let (listed, found) = (read(folder)?, of(folder)?);
    let mut wrong = Vec::new();
    for (name, checksum) in &listed {
        match found.get(name) {
            None => wrong.push(format!("{name}: missing")),
            Some(other) if other != checksum => {
                wrong.push(format!("{name}: its checksum is {other}, not {checksum}"))
            }
            Some(_) => {}
        }
    }
    wrong.extend(
        found.keys().filter(|name| !listed.contains_key(*name)).map(|name| format!("{name}: not listed")),
    );
    if wrong.is_empty() { Ok(listed.len()) } else { Err(wrong.join("\n")) }
}

fn of(folder: &Path) -> Result<BTreeMap<String, String>, String> {
    let shown = |error: std::io::Error| format!("{}: {error}", folder.display());
    let mut checksums = BTreeMap::new();
    for entry in std::fs::read_dir(folder).map_err(shown)? {
        let entry = entry.map_err(shown)?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if entry.file_type().map_err(shown)?.is_file() && name != FILE {
            checksums.insert(name, sha256(&std::fs::read(entry.path()).map_err(shown)?));
        }
    }
    Ok(checksums)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_was_changed_added_or_lost_is_named() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).expect("a file");
        file("one.tar.gz", "one");
        file("two.tar.gz", "two");
        write(folder.path()).expect("checksums");
        assert_eq!(verify(folder.path()), Ok(2));
        file("one.tar.gz", "another");
        file("three.tar.gz", "three");
        std::fs::remove_file(folder.path().join("two.tar.gz")).expect("a file that is gone");
        let wrong = verify(folder.path()).expect_err("three faults");
        assert!(wrong.contains("one.tar.gz: its checksum is"), "{wrong}");
        assert!(
            wrong.contains("two.tar.gz: missing") && wrong.contains("three.tar.gz: not listed"),
            "{wrong}"
        );
    }
}
