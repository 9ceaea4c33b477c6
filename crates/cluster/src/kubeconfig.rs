//! Reads kubeconfigs as kubectl does.
//!
//! In: the files that KUBECONFIG names, or the one in the home directory. Out: one kubeconfig, with
//! paths that begin at the root, in which the first file that sets a value wins. Errors name the
//! file and the line, and quote no value: a kubeconfig holds credentials.

use std::borrow::Cow;
use std::fs;
use std::io::ErrorKind;
use std::path::{MAIN_SEPARATOR, Path, PathBuf};

use kube::config::{AuthInfo, Cluster, Context, Kubeconfig, NamedAuthInfo, NamedCluster, NamedContext};
use moorline_yaml::{Dialect, Document, Position, Step, expectation, locate};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::connect::ConnectError;

/// Reads the files that KUBECONFIG names; none if it names no file.
pub(crate) fn read_named() -> Result<Option<Kubeconfig>, ConnectError> {
    let value = std::env::var_os("KUBECONFIG").unwrap_or_default();
    let files: Vec<PathBuf> =
        std::env::split_paths(&value).filter(|file| !file.as_os_str().is_empty()).collect();
    if files.is_empty() { Ok(None) } else { read(&existing(files)?).map(Some) }
}

/// Leaves the files out that do not exist: kubectl reads a list of which some are missing.
fn existing(mut files: Vec<PathBuf>) -> Result<Vec<PathBuf>, ConnectError> {
    let is_missing =
        |file: &PathBuf| matches!(fs::metadata(file), Err(error) if error.kind() == ErrorKind::NotFound);
    let named = files.iter().map(|file| file.display().to_string()).collect::<Vec<_>>().join(", ");
    files.retain(|file| !is_missing(file));
    match files.is_empty() {
        true => Err(ConnectError::Nothing(format!("no file exists that KUBECONFIG names: {named}"))),
        false => Ok(files),
    }
}

/// Reads the file in the home directory.
pub(crate) fn read_default() -> Result<Kubeconfig, ConnectError> {
    let home = std::env::home_dir();
    let home = home.ok_or_else(|| ConnectError::Nothing("there is no home directory".to_owned()))?;
    let file = home.join(".kube").join("config");
    match fs::metadata(&file) {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            Err(ConnectError::Nothing(format!("{}: {error}", file.display())))
        }
        _ => read(&[file]),
    }
}

/// Reads files, and merges them as kubectl does.
fn read(files: &[PathBuf]) -> Result<Kubeconfig, ConnectError> {
    files.iter().try_fold(Kubeconfig::default(), |merged, file| {
        read_file(file)?.into_iter().try_fold(merged, |merged, part| {
            let merged = Kubeconfig::merge(merged, part);
            merged.map_err(|error| unusable(format!("{}: {error}", file.display())))
        })
    })
}

/// Reads the documents of a file.
fn read_file(path: &Path) -> Result<Vec<Kubeconfig>, ConnectError> {
    let name = path.display().to_string();
    let bytes = fs::read(path).map_err(|error| unusable(format!("{name}: {error}")))?;
    let text = decoded(&bytes).ok_or_else(|| unusable(format!("{name}: it is no valid UTF-16")))?;
    let documents =
        moorline_yaml::read(&name, &text, Dialect::Kubectl).map_err(|error| unusable(error.to_string()))?;
    let folder = path.parent().unwrap_or(Path::new(""));
    let read = |document: &Document| {
        let mut kubeconfig: Kubeconfig = deserialize(&document.value)
            .map_err(|error| unusable(explain(&name, &text, document, error.to_string())))?;
        resolve_paths(&mut kubeconfig, folder);
        Ok(kubeconfig)
    };
    documents.iter().map(read).collect()
}

fn unusable(why: String) -> ConnectError {
    ConnectError::Kubeconfig(why)
}

fn deserialize<T: DeserializeOwned>(value: &Value) -> Result<T, serde_json::Error> {
    T::deserialize(value)
}

/// Converts UTF-16, which shells of Windows write, to UTF-8; None if it is broken.
fn decoded(bytes: &[u8]) -> Option<Cow<'_, [u8]>> {
    let (units, unit): (_, fn([u8; 2]) -> u16) = match bytes {
        [0xff, 0xfe, units @ ..] => (units, u16::from_le_bytes),
        [0xfe, 0xff, units @ ..] => (units, u16::from_be_bytes),
        _ => return Some(Cow::Borrowed(bytes)),
    };
    let (units, rest) = units.as_chunks();
    let text = String::from_utf16(&units.iter().copied().map(unit).collect::<Vec<_>>()).ok()?;
    rest.is_empty().then(|| Cow::Owned(text.into_bytes()))
}

/// Makes the paths of a kubeconfig independent of the current directory: those of a file begin at
/// its folder. A program without a separator is looked up in PATH.
fn resolve_paths(kubeconfig: &mut Kubeconfig, folder: &Path) {
    for cluster in kubeconfig.clusters.iter_mut().filter_map(|named| named.cluster.as_mut()) {
        resolve(&mut cluster.certificate_authority, folder);
    }
    for user in kubeconfig.auth_infos.iter_mut().filter_map(|named| named.auth_info.as_mut()) {
        for path in [&mut user.client_certificate, &mut user.client_key, &mut user.token_file] {
            resolve(path, folder);
        }
        let program = user.exec.as_mut().map(|exec| &mut exec.command);
        if let Some(program) = program.filter(|path| path.iter().any(|path| path.contains(MAIN_SEPARATOR))) {
            resolve(program, folder);
        }
    }
}

fn resolve(path: &mut Option<String>, folder: &Path) {
    let resolved = path.as_deref().and_then(|path| folder.join(path).to_str().map(str::to_owned));
    if resolved.is_some() {
        *path = resolved;
    }
}

/// Says where a document is no kubeconfig, and what is expected there; `error` is that of all.
fn explain(file: &str, text: &[u8], document: &Document, error: String) -> String {
    let (path, error) = find_fault(&document.value).unwrap_or((Vec::new(), error));
    let place = locate(text, Dialect::Kubectl, document.index, &path);
    let Position { line, column } = place.unwrap_or(Position { line: document.line, column: 1 });
    let mut field = String::new();
    for step in &path {
        match step {
            Step::Key(key) if field.is_empty() => field.push_str(key),
            Step::Key(key) => field.extend([".", key]),
            Step::Item(index) => field.push_str(&format!("[{index}]")),
        }
    }
    let expected = expectation(&error).unwrap_or_else(|| "another value is expected".to_owned());
    let field = if field.is_empty() { "the file".to_owned() } else { field };
    format!("{file}:{line}:{column}: {field}: {expected}")
}

/// A field because of which a document is no kubeconfig, and the message of serde.
type Fault<'a> = (Vec<Step<'a>>, String);

fn find_fault(document: &Value) -> Option<Fault<'_>> {
    in_list::<NamedCluster, Cluster>(document, "clusters", "cluster")
        .or_else(|| in_list::<NamedAuthInfo, AuthInfo>(document, "users", "user"))
        .or_else(|| in_list::<NamedContext, Context>(document, "contexts", "context"))
        .or_else(|| in_map::<Kubeconfig>(document))
}

/// Finds the fault in a list of `T`, each of which has an `I` in a field.
fn in_list<'a, T: DeserializeOwned, I: DeserializeOwned>(
    document: &'a Value,
    list: &'a str,
    field: &'a str,
) -> Option<Fault<'a>> {
    let items = document[list].as_array()?.iter().enumerate();
    items.filter_map(|(index, item)| Some((index, item, in_map::<T>(item)?))).next().map(
        |(index, item, (inner, error))| {
            let deeper = match inner[..] {
                [Step::Key(key)] if key == field => in_map::<I>(&item[field]),
                _ => None,
            };
            let (deeper, error) = deeper.unwrap_or((Vec::new(), error));
            ([vec![Step::Key(list), Step::Item(index)], inner, deeper].concat(), error)
        },
    )
}

/// Finds the fault of a value that is no `T`: the field that alone is none, if there is one.
fn in_map<T: DeserializeOwned>(value: &Value) -> Option<Fault<'_>> {
    let error = deserialize::<T>(value).err()?.to_string();
    let Some(fields) = value.as_object() else { return Some((Vec::new(), error)) };
    let fault = fields.keys().find_map(|key| {
        let alone = fields.iter().filter(|(other, _)| *other == key);
        let found = error_of::<T>(alone).filter(|found| {
            // Fields that have to be there may be among the others.
            let others = || error_of::<T>(fields.iter().filter(|(other, _)| *other != key));
            !found.starts_with("missing field") || others().as_ref() != Some(&error)
        })?;
        Some((vec![Step::Key(key)], found))
    });
    Some(fault.unwrap_or((Vec::new(), error)))
}

fn error_of<'a, T: DeserializeOwned>(
    fields: impl Iterator<Item = (&'a String, &'a Value)>,
) -> Option<String> {
    let map = fields.map(|(key, value)| (key.clone(), value.clone())).collect();
    Some(deserialize::<T>(&Value::Object(map)).err()?.to_string())
}

#[cfg(test)]
mod tests;
