//! Source of a Sync in text form, for the status page.
//!
//! In: the Sync as the API server has it, valid or not. Out: its summary. An invalid URL is
//! left out: the invalid part may be a password.

use std::collections::BTreeMap;

use serde::Deserialize as _;
use serde_json::Value;

use crate::api::{SyncName, SyncSpec};
use crate::controller::spec::ValidatedSpec;
use crate::report::board::{SourceSummary, SpecSentence, describe_spec, named_cluster};
use crate::source::{Address, LayerSelection, RegistryAddress};

/// Text for a source without a ref.
const MAIN: &str = "the repository's default branch";

/// Text for an artifact without a ref.
const LATEST: &str = "tag latest";

/// Most labels of a Sync that are kept.
const MAX_LABELS: usize = 32;

/// Returns the source of a Sync resource.
pub(crate) fn of_resource(name: &SyncName, sync: &Value) -> SourceSummary {
    let text = |pointer: &str| sync.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let is_artifact = sync.pointer("/spec/source/oci").is_some();
    let url = match is_artifact {
        true => {
            RegistryAddress::new(text("/spec/source/oci/url"), LayerSelection::default()).map(Address::from)
        }
        false => Address::local_or_remote(text("/spec/source/git/url")),
    };
    let url = url.map(|address| address.to_string());
    let place = if is_artifact { "/spec/source/oci/ref" } else { "/spec/source/git/ref" };
    let reference = sync.pointer(place).and_then(Value::as_object);
    let named = reference
        .into_iter()
        .flatten()
        .filter(|(kind, _)| *kind != "filter")
        .find_map(|(kind, value)| Some((kind, value.as_str()?)));
    let dependencies = sync.pointer("/spec/dependsOn").and_then(Value::as_array);
    let dependency = |one: &Value| {
        let namespace = one.get("namespace").and_then(Value::as_str).unwrap_or(&name.namespace);
        Some(SyncName::new(namespace, one.get("name")?.as_str()?))
    };
    let account = text("/spec/serviceAccountName");
    SourceSummary {
        url: url.unwrap_or_default().into(),
        path: text("/spec/path").into(),
        reference: match named {
            Some((kind, value)) => format!("{kind} {value}").into(),
            None if is_artifact => LATEST.into(),
            None => MAIN.into(),
        },
        interval: text("/spec/interval").into(),
        service_account: Some(account).filter(|account| !account.is_empty()).map(Into::into),
        depends_on: dependencies.into_iter().flatten().filter_map(dependency).collect(),
        cluster: named_cluster(&name.namespace, sync),
        is_resource: true,
        labels: labels(sync),
        words: sync.get("spec").map(words).unwrap_or_default(),
    }
}

/// Returns the labels of a resource.
fn labels(sync: &Value) -> BTreeMap<Box<str>, Box<str>> {
    let labels = sync.pointer("/metadata/labels").and_then(Value::as_object);
    let known = labels.into_iter().flatten().filter_map(|(key, value)| Some((key, value.as_str()?)));
    known.take(MAX_LABELS).map(|(key, value)| (key.as_str().into(), value.into())).collect()
}

/// Returns a spec in words; none if it is not valid.
fn words(spec: &Value) -> Box<[SpecSentence]> {
    SyncSpec::deserialize(spec).map(|spec| describe_spec(&spec)).unwrap_or_default()
}

/// Returns the source of a run without a Sync resource.
pub(crate) fn source_of_spec(valid_spec: &ValidatedSpec) -> SourceSummary {
    SourceSummary {
        url: valid_spec.address.to_string().into(),
        path: valid_spec.path.as_str().into(),
        reference: MAIN.into(),
        interval: format!("{} s", valid_spec.interval.as_secs()).into(),
        ..SourceSummary::default()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_source_of_a_sync_is_shown_without_its_login() {
        let follows = |url: &str| {
            let spec = json!({
                "source": {"git": {"url": url, "ref": {"branch": "main"}}}, "path": "a", "interval": "30s",
                "dependsOn": [{"name": "base"}, {"name": "crds", "namespace": "platform"}],
            });
            of_resource(&SyncName::new("ops", "shop"), &json!({"spec": spec}))
        };
        let sound = follows("https://host/path");
        assert_eq!((&*sound.url, &*sound.path, &*sound.reference), ("https://host/path", "a", "branch main"));
        assert_eq!(sound.depends_on, [SyncName::new("ops", "base"), SyncName::new("platform", "crds")]);
        assert!(sound.words.iter().any(|it| it.title == "Prune"), "{:?}", sound.words);
        let labelled = json!({"metadata": {"labels": {"team": "shop", "odd": 1}}});
        let labels = of_resource(&SyncName::new("a", "b"), &labelled).labels;
        assert_eq!(labels.into_iter().collect::<Vec<_>>(), [("team".into(), "shop".into())]);
        assert_eq!(&*follows("https://user:hunter2@host/path").url, "");
        let artifact = |source: Value| {
            of_resource(&SyncName::new("a", "b"), &json!({"spec": {"source": {"oci": source}}}))
        };
        let tagged = artifact(json!({"url": "oci://host/shop", "ref": {"filter": "^v", "semver": "1.x"}}));
        assert_eq!((&*tagged.url, &*tagged.reference), ("oci://host/shop", "semver 1.x"));
        assert_eq!(&*artifact(json!({"url": "oci://me:hunter2@host/shop"})).url, "");
        assert_eq!(&*artifact(json!({"url": "oci://host/shop"})).reference, LATEST);
        // Only the demo follows such an address; elsewhere it is reported as invalid, without its
        // value.
        assert_eq!(&*follows("file:///a/b").url, "/a/b");
        assert_eq!(&*of_resource(&SyncName::new("a", "b"), &json!({})).reference, MAIN);
    }
}
