//! The repositories of a set: logins, polls and files.
//!
//! In: the generators of a set, and the cluster with its identity.
//! Out: a revision of each repository, and the files of all of them. A repository has the rules of
//! that of a Sync: allowed hosts, and the right to send the Secret.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use serde_json::json;
use tokio::sync::Notify;

use super::super::Context;
use super::super::resource::secrets::{WatchedSecret, follow};
use crate::api::{GitGenerator, SyncName, SyncSet, SyncSpec};
use crate::cluster::{Cluster, SecretData};
use crate::controller::credentials::secret_permission::{SecretPermission, repository_login};
use crate::controller::reconcile_errors::source_error;
use crate::controller::spec::identity::login_owner;
use crate::controller::spec::{ValidatedSpec, validate_within};
use crate::report::{ErrorCause, ReconcileError};
use crate::source::{Credentials, FileSelection, ObjectIds, ReadLimits, Repository, Revision};
use crate::sync_set::{read_folders, select_files};
use crate::tree::FileTree;

/// A source without a repository, for the identity of a set.
const NO_REPOSITORY: &str = "https://localhost/repository";

/// The repository of a generator.
pub(super) struct SetSource {
    generator: GitGenerator,
    valid_spec: ValidatedSpec,
    secret: Option<WatchedSecret>,
    permission: Option<Arc<SecretPermission>>,
    /// None until it is opened, and after its Secret has changed.
    repository: Option<Repository>,
}

impl SetSource {
    /// Creates the source of a generator, without a request.
    pub(super) fn new(
        context: &Context,
        name: &SyncName,
        set: &SyncSet,
        generator: &GitGenerator,
    ) -> Result<Self, ReconcileError> {
        let valid_spec = validated(context.process.disk(), name, set, Some(generator))?;
        let generator = generator.clone();
        Ok(Self { generator, valid_spec, secret: None, permission: None, repository: None })
    }

    /// Returns the URL.
    pub(super) fn url(&self) -> &str {
        &self.generator.url
    }

    /// Reads the Secret again before the next poll.
    pub(super) fn close(&mut self) {
        self.repository = None;
    }

    /// Finds the newest revision.
    pub(super) async fn poll(
        &mut self,
        context: &Context,
        (cluster, name): (&Cluster, &SyncName),
        inputs_changed: &Arc<Notify>,
        by: Instant,
    ) -> Result<Revision, ReconcileError> {
        let repository = match &self.repository {
            Some(open) => open.clone(),
            None => self.open(context, (cluster, name), inputs_changed).await?,
        };
        if let Some(permission) = &self.permission {
            permission.holds(cluster, name).await?;
        }
        repository.resolve(&self.valid_spec.reference, by).await.map_err(source_error)
    }

    async fn open(
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

    /// Reads the files of a revision that the generator selects.
    pub(super) async fn read(&self, revision: &Revision, by: Instant) -> Result<FileTree, ReconcileError> {
        let Some(repository) = &self.repository else { return Err(closed()) };
        read_selected(repository, &self.generator, revision, by).await
    }
}

/// Reads the files of a revision that a generator selects.
pub(in crate::controller) async fn read_selected(
    repository: &Repository,
    generator: &GitGenerator,
    revision: &Revision,
    by: Instant,
) -> Result<FileTree, ReconcileError> {
    let folders = read_folders(generator);
    let folders: Vec<&str> = folders.iter().map(String::as_str).collect();
    let generator = generator.clone();
    let choose = move |tree: &FileTree| FileSelection::Only(select_files(&generator, tree));
    let within = ReadLimits { choose: Arc::new(choose), ..ReadLimits::default() };
    let earlier = ObjectIds::default();
    let read = repository.read_changed(revision, (&folders, &[]), &earlier, &within, by).await;
    Ok(read.map_err(source_error)?.snapshot.ok_or_else(closed)?.files)
}

fn closed() -> ReconcileError {
    let message = "the repository is read again".to_owned();
    ReconcileError { cause: ErrorCause::Progressing, message, problems: Vec::new(), permanent: false }
}

/// Returns a valid spec of a Sync with the source of a generator, and the identity of the set.
pub(in crate::controller) fn validated(
    disk: Option<&Path>,
    name: &SyncName,
    set: &SyncSet,
    generator: Option<&GitGenerator>,
) -> Result<ValidatedSpec, ReconcileError> {
    let url = generator.map_or(NO_REPOSITORY, |generator| &generator.url);
    let mut spec =
        json!({"source": {"git": {"url": url}}, "serviceAccountName": set.spec.service_account_name});
    if let Some(generator) = generator {
        spec["source"]["git"]["ref"] = json!(generator.reference);
        spec["source"]["git"]["secretRef"] = json!(generator.secret_ref);
    }
    let refuse = |message: String| ReconcileError {
        cause: ErrorCause::SpecInvalid,
        message,
        problems: Vec::new(),
        permanent: true,
    };
    let spec: SyncSpec = serde_json::from_value(spec)
        .map_err(|_| refuse("a Git generator of spec.generators cannot be read".to_owned()))?;
    validate_within(name, &spec, disk).map_err(|refusal| {
        let place = refusal.field.replace("spec.source.git.", "spec.generators: git.");
        refuse(format!("{place}: {}", refusal.message))
    })
}
