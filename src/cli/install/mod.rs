//! `moorline install`: installs the daemon without helm.

mod apply;
mod image;
mod objects;

pub(super) use objects::daemon_rules;

use clap::Args;

use super::Streams;
use super::exit::Exit;
use super::operate::{namespace, on_cluster};
use crate::cluster::Force;
use crate::source::Address;
use crate::yaml;
use apply::apply_objects;
use image::image_reference;
use objects::{Grant, InstallValues, build_objects};

/// Image of a release, which its build sets.
const RELEASED: Option<&str> = option_env!("MOORLINE_IMAGE");

/// Note on a printed Sync.
const UNSERVED: &str = "note: in a cluster without the CustomResourceDefinition of Sync, kubectl does not know the Sync. Run \
    this before: moorline crd | kubectl apply --server-side -f - && \
    kubectl wait --for=condition=Established crd/syncs.moorline.dev";

/// Install the daemon in a cluster, without helm
///
/// Applies the objects of the Helm chart to the cluster of KUBECONFIG by server-side apply: the
/// namespace, the CustomResourceDefinition of Sync, the daemon and its permissions. With --dry-run
/// they are printed, and nothing is written. The chart has many more values: docs/install.md.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  moorline install --image example.com/moorline
  moorline install --image example.com/moorline --dry-run | kubectl apply --server-side -f -
  moorline install --image example.com/moorline --grant clusterAdmin --url https://example.com/shop.git
  moorline install --registry mirror.example.com/apps        from a copy in another registry

Exit codes: 0 installed, 1 an object could not be applied, 64 no image is set.")]
pub(super) struct InstallArgs {
    /// The namespace of the daemon; it is created
    #[arg(long, short, default_value = "moorline", value_parser = namespace)]
    namespace: String,

    /// The image of the daemon; without tag and digest, the tag is the version of this program
    #[arg(long, value_name = "IMAGE")]
    image: Option<String>,

    /// Registry that has a copy of the image; it replaces everything in front of the image's name
    #[arg(long, value_name = "HOST/PREFIX")]
    registry: Option<String>,

    /// Permissions of the daemon on the objects of Syncs
    #[arg(long, value_enum, default_value_t = Grant::None)]
    grant: Grant,

    /// Repository of a first Sync, named default
    #[arg(long)]
    url: Option<String>,

    /// Its folder of manifests [default: the whole repository]
    #[arg(long, requires = "url")]
    path: Option<String>,

    /// Print the objects instead of applying them; no cluster is needed
    #[arg(long)]
    dry_run: bool,

    /// Take over fields that other managers own, such as those of an earlier installation
    #[arg(long, conflicts_with = "dry_run")]
    force_conflicts: bool,
}

pub(super) fn run(arguments: &InstallArgs, streams: &mut Streams<'_>) -> anyhow::Result<Exit> {
    let image = match image_reference(arguments.image.as_deref().or(RELEASED), arguments.registry.as_deref())
    {
        Ok(image) => image,
        Err(why) => {
            streams.say(&format!("error: {why}"));
            return Ok(Exit::Usage);
        }
    };
    if let Some(Err(why)) = arguments.url.as_deref().map(Address::remote) {
        streams.say(&format!("error: --url: {why}"));
        return Ok(Exit::Usage);
    }
    let values = InstallValues {
        namespace: &arguments.namespace,
        image: &image,
        grant: arguments.grant,
        sync: arguments
            .url
            .as_deref()
            .map(|url| (url, arguments.path.as_deref().filter(|path| !path.is_empty()))),
    };
    let objects = build_objects(&values)?;
    if arguments.dry_run {
        for object in &objects {
            streams.data.write_all(b"---\n")?;
            streams.data.write_all(yaml::write(object).as_bytes())?;
        }
        if values.sync.is_some() {
            streams.say(UNSERVED);
        }
        return Ok(Exit::Done);
    }
    let force = if arguments.force_conflicts { Force::Yes } else { Force::No };
    on_cluster(async |connection| {
        let exit = apply_objects(connection, &objects, force, streams).await?;
        streams.say(&format!("to check the installation: moorline doctor -n {}", arguments.namespace));
        Ok(exit)
    })
}
