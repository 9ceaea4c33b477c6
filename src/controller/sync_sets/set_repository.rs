//! The repository or registry of a generator: its address, and its login.
//!
//! In: a generator, and the cluster with the identity of its set.
//! Out: an open repository. It has the rules of that of a Sync: allowed hosts, and the right to
//! send the Secret.

use std::path::Path;
use std::sync::Arc;

use serde_json::{Value, json};
use tokio::sync::Notify;

use super::super::Context;
use super::super::resource::secrets::{WatchedSecret, follow};
use crate::api::{GitGenerator, SyncName, SyncSet, SyncSpec, TagGenerator};
use crate::cluster::{Cluster, SecretData};
use crate::controller::credentials::secret_permission::{SecretPermission, repository_login};
use crate::controller::reconcile_errors::source_error;
use crate::controller::spec::identity::login_owner;
use crate::controller::spec::{ValidatedSpec, validate_within};
use crate::report::{ErrorCause, ReconcileError};
use crate::source::{Credentials, Repository};

/// A source without a repository, for the identity of a set.
const NO_REPOSITORY: &str = "https://localhost/repository";

/// The repository of a generator.
pub(super) struct SetRepository {
    pub(super) valid_spec: ValidatedSpec,
    secret: Option<WatchedSecret>,
    permission: Option<Arc<SecretPermission>>,
    /// None until it is opened, and after its Secret has changed.
    repository: Option<Repository>,
}

impl SetRepository {
    /// Creates the repository of a valid source, without a request.
    pub(super) fn new(valid_spec: ValidatedSpec) -> Self {
        Self { valid_spec, secret: None, permission: None, repository: None }
    }

    /// Reads the Secret again before the next use.
    pub(super) fn close(&mut self) {
        self.repository = None;
    }

    /// Returns the repository if it is open.
    pub(super) fn opened(&self) -> Option<&Repository> {
        self.repository.as_ref()
    }

    /// Opens the repository, or confirms that its login may still be sent.
    pub(super) async fn open(
        &mut self,
        context: &Context,
        (cluster, name): (&Cluster, &SyncName),
        inputs_changed: &Arc<Notify>,
    ) -> Result<Repository, ReconcileError> {
        let repository = match &self.repository {
            Some(open) => open.clone(),
            None => self.open_now(context, (cluster, name), inputs_changed).await?,
        };
        if let Some(permission) = &self.permission {
            permission.holds(cluster, name).await?;
        }
        Ok(repository)
    }

    async fn open_now(
        &mut self,
        context: &Context,
        (cluster, name): (&Cluster, &SyncName),
        inputs_changed: &Arc<Notify>,
    ) -> Result<Repository, ReconcileError> {
        let credentials = match &self.valid_spec.secret {
            None => Credentials::default(),
            Some(secret) => {
                let known = self.secret.take();
                let place = (&*name.namespace, &**secret);
                let followed = self.secret.insert(follow(&context.cluster, place, inputs_changed, known));
                let data = followed.read(&context.cluster, name, inputs_changed).await?;
                let login = (&**secret, SecretData::clone(&data));
                repository_login(context, cluster, name, &self.valid_spec, login, &mut self.permission)
                    .await?
            }
        };
        let owner = login_owner(&self.valid_spec, &name.namespace);
        let repositories = &context.sources.repositories;
        let open = repositories.repository(&self.valid_spec.address, &owner, &credentials);
        let open = open.map_err(source_error)?.on_behalf_of(&name.namespace);
        Ok(self.repository.insert(open).clone())
    }
}

/// Source of a generator, as one of a Sync.
#[derive(Clone, Copy)]
pub(in crate::controller) enum GeneratorSource<'a> {
    /// No repository: for the identity of a set alone.
    None,
    Git(&'a GitGenerator),
    Tags(&'a TagGenerator),
}

impl GeneratorSource<'_> {
    fn source(self) -> Value {
        match self {
            Self::None => json!({"git": {"url": NO_REPOSITORY}}),
            Self::Git(git) => {
                json!({"git": {"url": git.url, "ref": git.reference, "secretRef": git.secret_ref}})
            }
            Self::Tags(tags) => json!({"oci": {"url": tags.url, "secretRef": tags.secret_ref}}),
        }
    }

    /// The field of a Sync, and the one of a generator.
    fn fields(self) -> (&'static str, &'static str) {
        match self {
            Self::None | Self::Git(_) => ("spec.source.git.", "spec.generators: git."),
            Self::Tags(_) => ("spec.source.oci.", "spec.generators: ociTags."),
        }
    }
}

/// Returns a valid spec of a Sync with the source of a generator, and the identity of the set.
pub(in crate::controller) fn validated(
    disk: Option<&Path>,
    name: &SyncName,
    set: &SyncSet,
    generator: GeneratorSource<'_>,
) -> Result<ValidatedSpec, ReconcileError> {
    let spec = json!({"source": generator.source(), "serviceAccountName": set.spec.service_account_name});
    let spec: SyncSpec = serde_json::from_value(spec)
        .map_err(|_| refused("a generator of spec.generators cannot be read".to_owned()))?;
    validate_within(name, &spec, disk).map_err(|refusal| {
        let (of_sync, of_generator) = generator.fields();
        let place = refusal.field.replace(of_sync, of_generator);
        refused(format!("{place}: {}", refusal.message))
    })
}

/// Returns the error of a spec that a person has to change.
pub(in crate::controller) fn refused(message: String) -> ReconcileError {
    ReconcileError { cause: ErrorCause::SpecInvalid, message, problems: Vec::new(), permanent: true }
}
