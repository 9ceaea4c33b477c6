//! Narrows the applied spec by the newest one while that one cannot be applied.
//!
//! In: the spec that is applied, and the newer one that is refused. Out: the applied spec, with
//! each field of the newer one that stops or narrows something. So suspending a Sync or disabling
//! pruning takes effect at once, even when the rest of the spec is invalid.

use serde_json::Value;
use sha2::{Digest, Sha256};

use super::verification::of_unsound;
use super::{ValidatedSpec, mounts};
use crate::api::{DeletionPolicy, SyncSpec};
use crate::object::GroupKind;
use crate::plan::DriftMode;

/// The fields of a spec, beside the source, that decide which objects a commit renders to.
const RENDER_FIELDS: [&str; 5] = ["path", "render", "targetNamespace", "createNamespace", "ignoreFields"];

/// Hashes the fields that decide what a commit renders to.
pub(crate) fn render_spec(spec: &SyncSpec) -> Box<str> {
    let mut spec = serde_json::to_value(spec).unwrap_or_default();
    // Signatures decide which version is used, and not what it renders to.
    if let Some(chart) = spec.pointer_mut("/render/helm/chart").and_then(Value::as_object_mut) {
        chart.remove("verify");
    }
    let mut hash = Sha256::new();
    let fields = RENDER_FIELDS.map(|field| spec.get(field));
    // A later field counts only where it is given: the hash is compared across versions.
    let later = spec.get("decryption").map(Some);
    for value in fields.into_iter().chain([spec.pointer("/source/git/submodules")]).chain(later) {
        hash.update(value.map(Value::to_string).unwrap_or_default());
        hash.update("\n");
    }
    hash.finalize().iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

impl ValidatedSpec {
    /// Returns the newer spec with all fields that decide the render taken from this one.
    pub(crate) fn rendered_as_before(&self, newer: &Self) -> Self {
        let before = self.clone();
        Self {
            address: before.address,
            reference: before.reference,
            secret: before.secret,
            identity: before.identity,
            submodules: before.submodules,
            mounts: before.mounts,
            path: before.path,
            options: before.options,
            chart: before.chart,
            chart_secret: before.chart_secret,
            chart_identity: before.chart_identity,
            chart_values: before.chart_values,
            values: before.values,
            decryption: before.decryption,
            target_namespace: before.target_namespace,
            create_namespace: before.create_namespace,
            ignore: before.ignore,
            ..newer.clone()
        }
    }

    /// Narrows this spec by a newer valid one whose render is refused.
    pub(crate) fn narrowed_by(&self, newer: &Self) -> Self {
        let orphans = newer.deletion == DeletionPolicy::Orphan;
        Self {
            suspend: newer.suspend,
            prune: self.prune && newer.prune,
            asks_first: newer.asks_first,
            protected: self.protected.union(&newer.protected).cloned().collect(),
            deletion: if orphans { newer.deletion } else { self.deletion },
            drift: newer.drift,
            service_account: newer.service_account.clone(),
            verify: newer.verify.clone(),
            chart_verify: newer.chart_verify.clone(),
            interval: newer.interval,
            timeout: newer.timeout,
            depends_on: newer.depends_on.clone(),
            health: newer.health.clone(),
            ..self.clone()
        }
    }

    /// Narrows this spec by a newer invalid one, by those of its fields that can be read. Returns
    /// none if it names another identity or other keys, because nothing may be written with the
    /// previous ones.
    pub(crate) fn narrowed_by_unsound(&self, newer: &Value) -> Option<Self> {
        let at = |pointer: &str| newer.pointer(pointer);
        let account = at("/serviceAccountName").map(|name| name.as_str().unwrap_or_default());
        if account != self.service_account.as_deref() {
            return None;
        }
        let (verify, chart_verify) = of_unsound(newer)?;
        if (&verify, &chart_verify) != (&self.verify, &self.chart_verify)
            || !mounts::have_same_keys(&self.mounts, at("/source/mounts"))
        {
            return None;
        }
        let flag = |pointer: &str, value: bool| at(pointer).and_then(Value::as_bool) == Some(value);
        let text = |pointer: &str| at(pointer).and_then(Value::as_str);
        let mode = text("/drift/mode");
        let protect = at("/prune/protect").and_then(Value::as_array).into_iter().flatten();
        let protected = protect.filter_map(Value::as_str).map(|text| match text.split_once('.') {
            Some((kind, group)) => GroupKind::new(group, kind),
            None => GroupKind::new("", text),
        });
        Some(Self {
            suspend: self.suspend || flag("/suspend", true),
            prune: self.prune && !flag("/prune/enabled", false),
            asks_first: self.asks_first || text("/approval/revisions") == Some("Required"),
            protected: self.protected.iter().cloned().chain(protected).collect(),
            deletion: match text("/deletionPolicy") {
                Some("Delete") => self.deletion,
                Some(_) | None => DeletionPolicy::Orphan,
            },
            drift: match mode {
                Some("Report") => DriftMode::Report,
                Some("Ignore") => DriftMode::Ignore,
                Some(_) | None => self.drift,
            },
            ..self.clone()
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::validate;
    use super::*;
    use crate::api::SyncName;

    fn of(spec: Value) -> (ValidatedSpec, Box<str>) {
        let mut whole = json!({"source": {"git": {"url": "https://host/path"}}, "path": "./app"});
        whole.as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
        let spec: SyncSpec = serde_json::from_value(whole).unwrap();
        (validate(&SyncName::new("ops", "shop"), &spec).unwrap(), render_spec(&spec))
    }

    #[test]
    fn only_fields_that_change_the_objects_change_the_hash() {
        let (_, plain) = of(json!({}));
        for same in
            [json!({"suspend": true}), json!({"interval": "5s"}), json!({"prune": {"enabled": false}})]
        {
            assert_eq!(of(same.clone()).1, plain, "{same}");
        }
        for other in [
            json!({"path": "./other"}),
            json!({"targetNamespace": "else"}),
            json!({"render": {"type": "Plain"}}),
            json!({"render": {"substitute": {"vars": {"a": "b"}}}}),
            json!({"decryption": {"sops": {"secretRef": {"name": "keys"}}}}),
        ] {
            assert_ne!(of(other.clone()).1, plain, "{other}");
        }
    }

    /// With another hash every upgraded daemon would drop its held revisions.
    #[test]
    fn the_hash_of_a_spec_is_the_same_in_every_version() {
        assert_eq!(&*of(json!({})).1, "cb571ea12040f56c");
    }

    #[test]
    fn a_refused_spec_stops_and_narrows_and_gives_nothing() {
        let (applied, _) =
            of(json!({"path": "./app", "deletionPolicy": "Delete", "prune": {"budget": {"count": 1}}}));
        let newer = json!({"path": "./gone", "suspend": true, "prune": {"enabled": false, "protect": ["ConfigMap"],
            "budget": {"count": 99}}, "drift": {"mode": "Report"}, "approval": {"revisions": "Required"}});
        let (sound, _) = of(newer.clone());
        let narrowed = applied.narrowed_by(&sound);
        let unsound = applied.narrowed_by_unsound(&newer).unwrap();
        for it in [&narrowed, &unsound] {
            assert_eq!((it.suspend, it.prune, it.drift), (true, false, DriftMode::Report));
            assert!(it.asks_first);
            assert!(it.protected.contains(&GroupKind::new("", "ConfigMap")));
            assert_eq!((it.deletion, it.budget), (DeletionPolicy::Orphan, applied.budget));
            assert_eq!(it.path, applied.path, "the objects are those of before");
        }
        // A wider spec widens nothing.
        let (wide, _) = of(json!({"path": "./gone", "deletionPolicy": "Delete"}));
        let (strict, _) = of(json!({"prune": {"enabled": false}}));
        let kept = strict.narrowed_by(&wide);
        assert_eq!((kept.prune, kept.deletion), (false, DeletionPolicy::Orphan));
        assert!(!applied.narrowed_by_unsound(&json!({"approval": 7})).unwrap().asks_first);
        assert!(narrowed.narrowed_by_unsound(&json!({"approval": 7})).unwrap().asks_first);
    }

    #[test]
    fn an_unsound_spec_that_asks_for_another_signature_keeps_nothing() {
        let signed = |mode: Value| {
            json!({"git": {"url": "https://host/path", "ref": {"tag": "v1"},
            "verify": {"mode": mode, "secretRef": {"name": "keys"}}}})
        };
        let (applied, _) = of(json!({"source": signed(json!("HEAD"))}));
        let newer = |mode: Value| applied.narrowed_by_unsound(&json!({"path": 7, "source": signed(mode)}));
        assert!(newer(json!("HEAD")).is_some());
        assert!([json!("TagAndHEAD"), json!("Tag"), json!(7)].into_iter().all(|mode| newer(mode).is_none()));
        let unnamed = json!({"path": 7, "source": {"git": {"verify": {"secretRef": {"name": "keys"}}}}});
        assert!(applied.narrowed_by_unsound(&unnamed).is_some(), "HEAD is the default");
    }

    #[test]
    fn an_unsound_spec_with_another_identity_keeps_nothing() {
        let (applied, _) = of(json!({"serviceAccountName": "deployer"}));
        let same = json!({"serviceAccountName": "deployer", "path": 7});
        assert!(applied.narrowed_by_unsound(&same).is_some());
        for newer in [
            json!({"path": 7}),
            json!({"serviceAccountName": "other"}),
            json!({"serviceAccountName": 7}),
            json!({"serviceAccountName": "deployer", "source": {"git": {"verify": {"mode": "HEAD"}}}}),
        ] {
            assert!(applied.narrowed_by_unsound(&newer).is_none(), "{newer}");
        }
    }
}
