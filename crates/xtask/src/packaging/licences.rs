//! Licence texts of everything that is compiled into the program.
//!
//! In: the packages with their folders. Out: one text that lists each package with its licence, and
//! then each licence text once, with the packages that it came with.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::{Path, PathBuf};

use super::dependencies::{Package, Packages};

/// Beginnings of the names of files that hold a licence or a notice.
const NAMES: [&str; 6] = ["license", "licence", "copying", "notice", "unlicense", "copyright"];
/// Number of folders below a package in which they are looked for: libraries in C lie deeper than
/// the package.
const DEPTH: usize = 3;
/// Largest licence text; what is larger is source that has such a name.
const LARGEST: u64 = 256 * 1024;

/// Writes the file of licences.
pub(crate) fn text(packages: &Packages) -> Result<String, String> {
    let mut texts: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut list = String::new();
    for package in packages.values().filter(|package| !package.is_own()) {
        if package.licence.is_empty() {
            return Err(format!("{} {} declares no licence", package.name, package.version));
        }
        let found = texts_of(package)?;
        let note = if found.is_empty() { "; its archive holds no licence text" } else { "" };
        _ = writeln!(list, "{} {}: {}{note}", package.name, package.version, package.licence);
        for text in found {
            texts.entry(text).or_default().insert(format!("{} {}", package.name, package.version));
        }
    }
    let mut file = format!("Moorline contains these packages.\n\n{list}");
    for (text, packages) in texts {
        let packages: Vec<String> = packages.into_iter().collect();
        _ = write!(file, "\n{}\nLicence text of {}\n\n{text}\n", "-".repeat(100), packages.join(", "));
    }
    Ok(file)
}

/// Licence texts in the folder of a package, in the order of their paths.
fn texts_of(package: &Package) -> Result<Vec<String>, String> {
    let mut files = Vec::new();
    find(&package.folder, DEPTH, &mut files)?;
    files.sort();
    let read = |path: &PathBuf| std::fs::read(path).map_err(|error| format!("{}: {error}", path.display()));
    files.iter().map(|path| read(path).map(|bytes| normalised(&String::from_utf8_lossy(&bytes)))).collect()
}

fn find(folder: &Path, depth: usize, files: &mut Vec<PathBuf>) -> Result<(), String> {
    let shown = |error: std::io::Error| format!("{}: {error}", folder.display());
    for entry in std::fs::read_dir(folder).map_err(shown)? {
        let entry = entry.map_err(shown)?;
        let kind = entry.file_type().map_err(shown)?;
        let name = entry.file_name().to_string_lossy().to_lowercase();
        if kind.is_dir()
            && depth > 0
            && !["tests", "benches", "examples", "fuzz", "target"].contains(&name.as_str())
        {
            find(&entry.path(), depth - 1, files)?;
        } else if kind.is_file()
            && NAMES.iter().any(|known| name.starts_with(known))
            && !is_source(&name)
            && entry.metadata().map_err(shown)?.len() <= LARGEST
        {
            files.push(entry.path());
        }
    }
    Ok(())
}

fn is_source(name: &str) -> bool {
    [".rs", ".c", ".h", ".py", ".sh", ".toml", ".json", ".hbs"].iter().any(|ending| name.ends_with(ending))
}

/// The text without differences that nobody sees: ends of lines, and white space at their ends.
fn normalised(text: &str) -> String {
    let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    lines.join("\n").trim_matches('\n').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(folder: &Path, name: &str, licence: &str) -> (String, Package) {
        std::fs::create_dir_all(folder.join(name)).expect("a folder");
        let package = Package {
            name: name.into(),
            version: "1.0.0".into(),
            licence: licence.into(),
            folder: folder.join(name),
            checksum: Some("abc".into()),
            needs: BTreeSet::new(),
        };
        (package.url(), package)
    }

    #[test]
    fn equal_texts_are_written_once_and_libraries_in_c_are_found() {
        let folder = tempfile::tempdir().expect("a folder");
        let packages = ["one", "two", "bare"].map(|name| package(folder.path(), name, "MIT"));
        let write = |path: &str, text: &str| {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
            std::fs::write(path, text).expect("a file");
        };
        write("one/LICENSE-MIT", "Permission is granted \r\nto all\n");
        write("two/LICENSE", "Permission is granted\nto all");
        write("two/library/src/COPYING", "the library's own");
        write("two/src/license.rs", "fn no_licence() {}");
        let text = text(&packages.into_iter().collect()).expect("all declare a licence");
        assert_eq!(text.matches("Permission is granted\nto all").count(), 1, "{text}");
        assert!(text.contains("Licence text of one 1.0.0, two 1.0.0"), "{text}");
        assert!(text.contains("the library's own") && !text.contains("no_licence"), "{text}");
        assert!(text.contains("bare 1.0.0: MIT; its archive holds no licence text"), "{text}");
    }

    #[test]
    fn a_package_without_a_licence_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let packages = [package(folder.path(), "one", "")].into_iter().collect();
        assert!(text(&packages).expect_err("no licence").contains("one 1.0.0 declares no licence"));
    }
}
