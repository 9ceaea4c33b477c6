//! The tags of a set: the list of each registry.
//!
//! In: the `ociTags` generators of a set. Out: the selected tags of each repository, or an error: a
//! list that is not complete is no answer.

use std::sync::Arc;
use std::time::Instant;

use tokio::sync::Notify;

use super::super::Context;
use super::set_repository::{GeneratorSource, SetRepository, refused, validated};
use crate::api::{SyncName, SyncSet, TagGenerator};
use crate::cluster::Cluster;
use crate::controller::reconcile_errors::source_error;
use crate::report::ReconcileError;
use crate::source::{TagFilter, TagSelection, VersionRangeError};

/// The repository of an `ociTags` generator.
pub(super) struct SetTags {
    selection: TagSelection,
    repository: SetRepository,
}

impl SetTags {
    /// Creates the source of a generator, without a request.
    pub(super) fn new(
        context: &Context,
        name: &SyncName,
        set: &SyncSet,
        generator: &TagGenerator,
    ) -> Result<Self, ReconcileError> {
        let disk = context.process.disk();
        let valid_spec = validated(disk, name, set, GeneratorSource::Tags(generator))?;
        Ok(Self { selection: tag_selection(generator)?, repository: SetRepository::new(valid_spec) })
    }

    /// Reads the Secret again before the next list.
    pub(super) fn close(&mut self) {
        self.repository.close();
    }

    /// Lists the selected tags.
    pub(super) async fn list(
        &mut self,
        context: &Context,
        of: (&Cluster, &SyncName),
        inputs_changed: &Arc<Notify>,
        by: Instant,
    ) -> Result<Vec<String>, ReconcileError> {
        let open = self.repository.open(context, of, inputs_changed).await?;
        open.tags(self.selection.clone(), by).await.map_err(source_error)
    }
}

/// Returns the selection of a generator.
pub(in crate::controller) fn tag_selection(generator: &TagGenerator) -> Result<TagSelection, ReconcileError> {
    const FIELD: &str = "spec.generators: ociTags";
    let TagGenerator { url: _, secret_ref: _, semver, filter, newest } = generator;
    if semver.is_none() && filter.is_none() {
        return Err(refused(format!(
            "{FIELD}: write semver, filter or both: without them, every tag would become a Sync"
        )));
    }
    if newest.is_some() && semver.is_none() {
        return Err(refused(format!("{FIELD}.newest: write semver, too: newest counts versions")));
    }
    let range = semver.as_deref().map(str::parse).transpose();
    let range = range.map_err(|error: VersionRangeError| refused(format!("{FIELD}.semver: {error}")))?;
    let filter = match filter.as_deref().map(TagFilter::new) {
        None => None,
        Some(Some(filter)) => Some(filter),
        Some(None) => {
            return Err(refused(format!("{FIELD}.filter: write a regular expression such as ^pr-[0-9]+$")));
        }
    };
    Ok(TagSelection { range, filter, newest: newest.map(|newest| newest as usize) })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_selection_without_a_limit_is_refused_with_its_field() {
        for (rest, expect) in [
            (json!({"semver": ">=1.0.0", "newest": 3}), None),
            (json!({"filter": "^pr-[0-9]+$"}), None),
            (json!({"semver": "1.x", "filter": "^v"}), None),
            (json!({}), Some("ociTags: write semver, filter or both")),
            (json!({"filter": "^pr-", "newest": 3}), Some("ociTags.newest: write semver, too")),
            (json!({"semver": "newest"}), Some("ociTags.semver: ")),
            (json!({"filter": "("}), Some("ociTags.filter: write a regular expression")),
        ] {
            let mut generator = json!({"url": "oci://registry.example.com/shop"});
            generator.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
            let found = tag_selection(&serde_json::from_value(generator).unwrap());
            match expect {
                None => assert!(found.is_ok(), "{rest}: {found:?}"),
                Some(expect) => assert!(found.unwrap_err().message.contains(expect), "{rest}"),
            }
        }
    }
}
