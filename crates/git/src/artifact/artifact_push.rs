//! Makes artifacts of folders, and folders of artifacts, for commands of a person.
//!
//! In: a folder of the local disk, or an artifact.
//! Out: an artifact in a registry, or files. The same files make the same digest: the archive has
//! the paths in order, and no times, owners or permissions of the disk.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::time::Instant;

use flate2::{Compression, GzBuilder};
use http::Method;
use serde_json::json;

use super::super::chart::Digest;
use super::super::credentials::Credentials;
use super::super::error::Error;
use super::super::hosts::HostPolicy;
use super::super::http::{Proxy, SharedNetwork};
use super::artifact_error::ArtifactError;
use super::artifact_reference::ArtifactReference;
use super::layer_download::{download_layers, find_layers};
use super::layer_files::visit_files;
use super::manifest::{CONFIG, CONTENT, MANIFEST, MAX_LAYER_BYTES, REVISION, SOURCE};
use super::registry_address::RegistryAddress;
use super::registry_client::{RegistryClient, RegistryRequest};
use super::tag_list::list_tags;
use moorline_core::tree::{MAX_FILE_BYTES, MAX_FILES};

/// Folder that is never a part of an artifact.
const GIT: &str = ".git";

/// Content of the configuration.
const NO_CONFIG: &[u8] = b"{}";

/// Size of a header in an archive; content is padded to a multiple of it.
const BLOCK: usize = 512;

/// A folder as the layer of an artifact.
#[derive(Debug)]
pub struct ArtifactFolder {
    layer: Vec<u8>,
    /// Number of its files.
    pub files: usize,
}

/// Origin that is written into an artifact.
#[derive(Debug, Clone, Default)]
pub struct ArtifactNotes {
    /// URL of the repository that it was made from.
    pub source: Option<String>,
    /// Revision of that repository, such as `main@sha1:1f0c…`.
    pub revision: Option<String>,
}

/// An artifact in a registry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PushedArtifact {
    /// Digest of its manifest.
    pub digest: Digest,
    /// Number of its files.
    pub files: usize,
}

impl ArtifactFolder {
    /// Packs the files below a folder. A link is refused, because no reader follows it.
    pub fn pack(folder: &Path) -> Result<Self, ArtifactError> {
        let mut paths = Vec::new();
        collect(folder, "", &mut paths)?;
        paths.sort();
        let mut packed = GzBuilder::new().write(Vec::new(), Compression::default());
        for path in &paths {
            let bytes = fs::read(folder.join(path)).map_err(|error| unreadable(path, &error))?;
            write_entry(&mut packed, path, &bytes).map_err(|error| unreadable(path, &error))?;
        }
        let end = packed.write_all(&[0; 2 * BLOCK]).and_then(|()| packed.finish());
        let layer = end.map_err(|error| unreadable("the folder", &error))?;
        match layer.len() as u64 > MAX_LAYER_BYTES {
            true => {
                Err(folder_error(format!("the folder is larger than {MAX_LAYER_BYTES} bytes once packed")))
            }
            false => Ok(Self { layer, files: paths.len() }),
        }
    }
}

/// Lists the files below a folder, by their paths.
fn collect(folder: &Path, below: &str, paths: &mut Vec<String>) -> Result<(), ArtifactError> {
    let shown = if below.is_empty() { "the folder" } else { below };
    for entry in fs::read_dir(folder).map_err(|error| unreadable(shown, &error))? {
        let entry = entry.map_err(|error| unreadable(shown, &error))?;
        let name = entry.file_name();
        let name =
            name.to_str().ok_or_else(|| folder_error(format!("{shown} has a name that is not UTF-8")))?;
        let path = if below.is_empty() { name.to_owned() } else { format!("{below}/{name}") };
        let found = fs::symlink_metadata(entry.path()).map_err(|error| unreadable(&path, &error))?;
        if name == GIT {
            continue;
        }
        if found.is_dir() {
            collect(&entry.path(), &path, paths)?;
        } else if !found.is_file() {
            return Err(folder_error(format!("{path} is a link or a device, which an artifact cannot have")));
        } else if found.len() > MAX_FILE_BYTES {
            return Err(folder_error(format!("{path} is larger than {MAX_FILE_BYTES} bytes")));
        } else {
            paths.push(path);
        }
        if paths.len() > MAX_FILES {
            return Err(folder_error(format!("the folder has more than {MAX_FILES} files")));
        }
    }
    Ok(())
}

/// Writes a file of an archive. A path that is too long for the header is written before it.
fn write_entry(output: &mut impl Write, path: &str, bytes: &[u8]) -> std::io::Result<()> {
    let short = path.len() <= 100;
    if !short {
        let record = format!(" path={path}\n");
        // The length counts its own digits.
        let length = (1..=4)
            .map(|digits| record.len() + digits)
            .find(|length| length.to_string().len() + record.len() == *length);
        let record = format!("{}{record}", length.unwrap_or_default());
        write_block(output, "path", b'x', record.as_bytes())?;
    }
    write_block(output, if short { path } else { "file" }, b'0', bytes)
}

fn write_block(output: &mut impl Write, name: &str, kind: u8, bytes: &[u8]) -> std::io::Result<()> {
    let mut header = [0; BLOCK];
    let mut field = |at: usize, text: &str| header[at..at + text.len()].copy_from_slice(text.as_bytes());
    field(0, name);
    field(100, "0000644");
    field(108, "0000000");
    field(116, "0000000");
    field(124, &format!("{:011o}", bytes.len()));
    field(136, "00000000000");
    field(257, "ustar\0");
    field(263, "00");
    header[156] = kind;
    header[148..156].fill(b' ');
    let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
    header[148..154].copy_from_slice(format!("{sum:06o}").as_bytes());
    header[154] = 0;
    output.write_all(&header)?;
    output.write_all(bytes)?;
    output.write_all(&vec![0; bytes.len().next_multiple_of(BLOCK) - bytes.len()])
}

/// Pushes a folder to a tag.
pub fn push_artifact(
    (address, tag): (&RegistryAddress, &str),
    folder: &ArtifactFolder,
    notes: &ArtifactNotes,
    (credentials, proxy): (&Credentials, Option<Proxy>),
    by: Instant,
) -> Result<PushedArtifact, Error> {
    let network = SharedNetwork::new(proxy, HostPolicy::allow_all()).into();
    let mut client = RegistryClient::new(address, credentials, &network)?;
    client.upload(&folder.layer, by)?;
    client.upload(NO_CONFIG, by)?;
    let entry = |media: &str, bytes: &[u8]| {
        let digest = Digest::hash(bytes).to_string();
        json!({"mediaType": media, "digest": digest, "size": bytes.len()})
    };
    let mut manifest = json!({
        "schemaVersion": 2,
        "mediaType": MANIFEST,
        "config": entry(CONFIG, NO_CONFIG),
        "layers": [entry(CONTENT, &folder.layer)],
    });
    for (name, text) in [(SOURCE, &notes.source), (REVISION, &notes.revision)] {
        if let Some(text) = text {
            manifest["annotations"][name] = json!(text);
        }
    }
    let manifest = manifest.to_string().into_bytes();
    let (url, media) = (client.url(&format!("/manifests/{tag}"))?, MANIFEST);
    let put = RegistryRequest { method: Method::PUT, url, media, body: Some(&manifest) };
    let answer = client.exchange(&put, by)?;
    match answer.http.status {
        201 | 200 => Ok(PushedArtifact { digest: Digest::hash(&manifest), files: folder.files }),
        _ => Err(client.failure(&answer, &format!("tag {tag}"))),
    }
}

impl RegistryClient {
    /// Uploads a blob, unless the registry has it.
    fn upload(&mut self, bytes: &[u8], by: Instant) -> Result<(), Error> {
        let digest = Digest::hash(bytes);
        if self.ask(Method::HEAD, &format!("/blobs/{digest}"), "*/*", by)?.http.status == 200 {
            return Ok(());
        }
        let media = "application/octet-stream";
        let url = self.url("/blobs/uploads")?.with_slash();
        let begin = RegistryRequest { method: Method::POST, url: url.clone(), media, body: Some(&[]) };
        let begun = self.exchange(&begin, by)?;
        if begun.http.status != 202 {
            return Err(self.failure(&begun, "place for uploads"));
        }
        let location = begun.http.location.as_deref().and_then(|location| {
            let mark = if location.contains('?') { '&' } else { '?' };
            url.resolve(&format!("{location}{mark}digest={digest}"))
        });
        let url = location.ok_or_else(|| self.unusable("names no valid URL for an upload"))?;
        let put = RegistryRequest { method: Method::PUT, url, media, body: Some(bytes) };
        let answer = self.exchange(&put, by)?;
        match answer.http.status {
            200..=204 => Ok(()),
            _ => Err(self.failure(&answer, "place for uploads")),
        }
    }
}

/// Writes the files of an artifact into a folder that is new or empty.
pub fn pull_artifact(
    (address, reference): (&RegistryAddress, &ArtifactReference),
    folder: &Path,
    (credentials, proxy): (&Credentials, Option<Proxy>),
    by: Instant,
) -> Result<PushedArtifact, Error> {
    let is_used = fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_some());
    if is_used {
        return Err(folder_error("the folder is not empty; name a new one".to_owned()).into());
    }
    let network = SharedNetwork::new(proxy, HostPolicy::allow_all()).into();
    let mut client = RegistryClient::new(address, credentials, &network)?;
    let digest = match reference {
        ArtifactReference::Digest(digest) => *digest,
        ArtifactReference::Tag(tag) => client.digest_of(tag, by)?,
        ArtifactReference::Semver(..) => {
            let tags = list_tags(&mut client, by)?;
            let none = || Error::NoReference { reference: reference.to_string().into(), nearest: None };
            client.digest_of(reference.best(tags.iter().map(String::as_str)).ok_or_else(none)?, by)?
        }
    };
    let (layers, _) = find_layers(&mut client, digest, by)?;
    let failed = |error: std::io::Error| unreadable(&folder.display().to_string(), &error);
    fs::create_dir_all(folder).map_err(failed)?;
    let packed = folder.join(".moorline-layer");
    let mut files = 0;
    let written = download_layers(&mut client, &layers, (&packed, MAX_LAYER_BYTES), by).and_then(|_| {
        visit_files(&packed, &layers, &mut |path, _, content| {
            files += 1;
            let place = folder.join(path);
            // The folder was empty, and archives and titles have no links and no `..`.
            let made =
                place.parent().map_or(Ok(()), fs::create_dir_all).and_then(|()| fs::File::create_new(&place));
            let mut file = made.map_err(|error| unreadable(path, &error))?;
            content(&mut |part| file.write_all(part).map_err(|error| unreadable(path, &error).into()))
        })
    });
    drop(fs::remove_file(&packed));
    written.map(|()| PushedArtifact { digest, files })
}

fn unreadable(path: &str, error: &std::io::Error) -> ArtifactError {
    folder_error(format!("{path}: {error}"))
}

fn folder_error(problem: String) -> ArtifactError {
    ArtifactError::Folder(problem.into())
}
