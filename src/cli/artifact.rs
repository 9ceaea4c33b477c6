//! `moorline push` and `moorline pull`: folders as artifacts of a registry.
//!
//! In: a folder or an artifact. Out: the other one. The login is read from the file of logins that
//! docker writes.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use clap::Args;
use serde_json::json;

use super::Streams;
use super::exit::Exit;
use crate::source::{
    Address, ArtifactFolder, ArtifactNotes, ArtifactReference, Credentials, Digest, LayerSelection, Proxy,
    RegistryAddress, pull_artifact, push_artifact,
};

/// Longest time of a push or a pull.
const TIMEOUT: Duration = Duration::from_secs(600);

/// Tag without one in the URL.
const LATEST: &str = "latest";

/// Push a folder to a registry as an artifact
///
/// A Sync with `spec.source.oci` applies it, and so does Flux. The same files have the same digest,
/// at any time and on any machine; links are refused, and .git is left out. The login is that of
/// `docker login`, in DOCKER_CONFIG or ~/.docker/config.json.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  moorline push oci://registry.example.com/shop:v1.2.0 deploy/
  moorline push oci://registry.example.com/shop:main deploy/ --source \"$(git remote get-url origin)\" --revision \"$(git rev-parse HEAD)\"
  moorline push oci://localhost:5000/shop:dev deploy/ --plain-http")]
pub(super) struct PushArgs {
    /// Repository and tag, as oci://HOST/PATH:TAG; the tag defaults to latest
    url: String,

    /// The folder
    folder: PathBuf,

    /// URL of the repository that the files are from; the status of a Sync shows it
    #[arg(long, value_name = "URL")]
    source: Option<String>,

    /// Revision of that repository
    #[arg(long)]
    revision: Option<String>,

    #[command(flatten)]
    registry: RegistryArgs,

    /// Output format: the revision as a line, or JSON
    #[arg(long, short, value_enum, default_value_t = ArtifactFormat::Text)]
    output: ArtifactFormat,
}

/// Write the files of an artifact into a folder
///
/// The content is checked by its digest. The login is that of `docker login`, in DOCKER_CONFIG or
/// ~/.docker/config.json.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  moorline pull oci://registry.example.com/shop:v1.2.0 shop/
  moorline pull oci://registry.example.com/shop@sha256:DIGEST shop/")]
pub(super) struct PullArgs {
    /// The artifact, as oci://HOST/PATH:TAG or oci://HOST/PATH@sha256:DIGEST
    url: String,

    /// A new or empty folder
    folder: PathBuf,

    /// Media type of the layer, if the artifact has several
    #[arg(long, value_name = "TYPE")]
    media_type: Option<String>,

    #[command(flatten)]
    registry: RegistryArgs,

    /// Output format: the revision as a line, or JSON
    #[arg(long, short, value_enum, default_value_t = ArtifactFormat::Text)]
    output: ArtifactFormat,
}

#[derive(Debug, Args)]
struct RegistryArgs {
    /// Contact the registry over http, without a login
    #[arg(long)]
    plain_http: bool,

    /// A file with a certificate authority of the registry (PEM)
    #[arg(long, value_name = "FILE")]
    ca_file: Option<PathBuf>,

    /// A proxy, such as http://proxy:3128
    #[arg(long, value_name = "URL")]
    proxy: Option<String>,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum ArtifactFormat {
    Text,
    Json,
}

/// A repository, and the tag or digest in the URL of a command.
struct NamedArtifact {
    address: RegistryAddress,
    reference: ArtifactReference,
}

pub(super) fn push(arguments: &PushArgs, streams: &mut Streams<'_>) -> anyhow::Result<Exit> {
    let NamedArtifact { address, reference } =
        named(&arguments.url, &arguments.registry, LayerSelection::default())?;
    let ArtifactReference::Tag(tag) = &reference else {
        anyhow::bail!("an artifact is pushed to a tag: write oci://HOST/PATH:TAG");
    };
    let folder = ArtifactFolder::pack(&arguments.folder)?;
    let notes = ArtifactNotes { source: arguments.source.clone(), revision: arguments.revision.clone() };
    let (credentials, proxy) = access(&arguments.registry, &address)?;
    let pushed =
        push_artifact((&address, tag), &folder, &notes, (&credentials, proxy), Instant::now() + TIMEOUT)?;
    print(&address, &format!("{tag}@{}", pushed.digest), pushed.files, arguments.output, streams)
}

pub(super) fn pull(arguments: &PullArgs, streams: &mut Streams<'_>) -> anyhow::Result<Exit> {
    let media_type = arguments.media_type.as_deref().map(Into::into);
    let layer = LayerSelection { media_type, copies: false };
    let NamedArtifact { address, reference } = named(&arguments.url, &arguments.registry, layer)?;
    let (credentials, proxy) = access(&arguments.registry, &address)?;
    let by = Instant::now() + TIMEOUT;
    let pulled = pull_artifact((&address, &reference), &arguments.folder, (&credentials, proxy), by)?;
    let revision = match &reference {
        ArtifactReference::Tag(tag) => format!("{tag}@{}", pulled.digest),
        ArtifactReference::Semver(..) | ArtifactReference::Digest(_) => pulled.digest.to_string(),
    };
    print(&address, &revision, pulled.files, arguments.output, streams)
}

fn print(
    address: &RegistryAddress,
    revision: &str,
    files: usize,
    format: ArtifactFormat,
    streams: &mut Streams<'_>,
) -> anyhow::Result<Exit> {
    match format {
        ArtifactFormat::Text => writeln!(streams.data, "{revision}")?,
        ArtifactFormat::Json => {
            let url = address.to_string();
            let facts = json!({"url": url, "revision": revision, "files": files});
            serde_json::to_writer_pretty(&mut *streams.data, &facts).map_err(std::io::Error::from)?;
            writeln!(streams.data)?;
        }
    }
    Ok(Exit::Done)
}

/// Splits the tag or digest from the URL of a command.
fn named(url: &str, registry: &RegistryArgs, layer: LayerSelection) -> anyhow::Result<NamedArtifact> {
    let (front, last) = url.rsplit_once('/').unwrap_or(("", url));
    let (name, reference) = match (last.split_once('@'), last.split_once(':')) {
        (Some((name, digest)), _) => {
            let digest = digest.strip_prefix("sha256:").and_then(Digest::parse);
            let digest = digest.context("the digest has to be sha256: and 64 hex digits")?;
            // A tag before a digest is for people.
            (name.split_once(':').map_or(name, |(name, _)| name), ArtifactReference::Digest(digest))
        }
        (None, Some((name, tag))) => (name, ArtifactReference::tag(tag)?),
        (None, None) => (last, ArtifactReference::tag(LATEST)?),
    };
    let place = format!("{front}/{name}");
    let address = match registry.plain_http {
        true => RegistryAddress::plain(&place, layer),
        false => RegistryAddress::new(&place, layer),
    };
    Ok(NamedArtifact { address: address?, reference })
}

/// Returns the login for a registry, and the proxy.
fn access(
    registry: &RegistryArgs,
    address: &RegistryAddress,
) -> anyhow::Result<(Credentials, Option<Proxy>)> {
    let proxy = registry.proxy.as_deref().map(|proxy| Proxy::new(proxy, &[])).transpose()?;
    if registry.plain_http {
        return Ok((Credentials::default(), proxy));
    }
    let login = docker_config().and_then(|file| std::fs::read(file).ok());
    let credentials = match login {
        Some(json) => Credentials::of_docker_config(&json, &Address::from(address.clone()))
            .context("the file of docker's logins")?,
        None => Credentials::default(),
    };
    let authority = registry.ca_file.as_deref().map(read_authority).transpose()?;
    Ok((authority.into_iter().fold(credentials, Credentials::with_authority), proxy))
}

fn read_authority(file: &Path) -> anyhow::Result<Vec<u8>> {
    std::fs::read(file).with_context(|| format!("cannot read {}", file.display()))
}

/// Returns the file in which docker keeps logins.
fn docker_config() -> Option<PathBuf> {
    let folder = std::env::var_os("DOCKER_CONFIG").map(PathBuf::from);
    let home = || std::env::var_os("HOME").map(|home| Path::new(&home).join(".docker"));
    Some(folder.or_else(home)?.join("config.json"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_artifact_is_named_by_tag_or_digest() {
        let registry = RegistryArgs { plain_http: false, ca_file: None, proxy: None };
        let shown = |url: &str| {
            let found = named(url, &registry, LayerSelection::default()).ok()?;
            Some(format!("{} {}", found.address, found.reference))
        };
        let digest = format!("sha256:{}", "1f".repeat(32));
        let expect = Some(format!("oci://host:5000/a/b artifact {digest}"));
        assert_eq!(shown("oci://host:5000/a/b:v1").as_deref(), Some("oci://host:5000/a/b tag v1"));
        assert_eq!(shown("oci://host:5000/a/b").as_deref(), Some("oci://host:5000/a/b tag latest"));
        assert_eq!(shown(&format!("oci://host:5000/a/b@{digest}")), expect);
        assert_eq!(shown(&format!("oci://host:5000/a/b:v1@{digest}")), expect);
        for wrong in
            ["a", "oci://host", "host/a:v1", "oci://host/a:", "oci://host/a@sha256:1", "oci://host/a:b c"]
        {
            assert_eq!(shown(wrong), None, "{wrong}");
        }
    }
}
