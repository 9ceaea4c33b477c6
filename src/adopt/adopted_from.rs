//! Decides the fields that a Sync inherits from the tool it was adopted from.
//!
//! In: the annotation and the age of a Sync, and an entry of the managed fields of an object. Out:
//! true if that entry was left behind. A field has no owner any more if the tool that the Sync was
//! adopted from wrote it and has not written to the object since the Sync was created. A tool that
//! is still active has a younger entry, and keeps its fields.

use super::Tool;
use crate::fields::ManagedFieldsEntry;
use crate::object::ObjectId;

/// The tool that a Sync was adopted from, and the time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AdoptedFrom {
    tool: Tool,
    /// Creation time of the Sync by the clock of the API server, which also stamps the entries.
    since: Box<str>,
}

impl AdoptedFrom {
    /// Reads the annotation and the creation time of a Sync (RFC 3339, with seconds).
    pub fn from_annotation(adopted_from: &str, created: &str) -> Option<Self> {
        let id = ObjectId::parse(adopted_from)?;
        let tool = Tool::from_group(id.group()).filter(|tool| tool.kind() == id.kind())?;
        (!created.is_empty()).then(|| Self { tool, since: created.into() })
    }

    /// True for an entry that the tool has left behind. Times have one format, so they compare as
    /// texts.
    pub fn has_left_behind(&self, entry: &ManagedFieldsEntry) -> bool {
        self.tool.managers().contains(&&*entry.manager) && *entry.time <= *self.since
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_what_was_written_before_is_left_behind() {
        let created = "2026-01-02T03:04:05Z";
        let check = |from: &str, manager: &str, time: &str, expect: bool| {
            let entry =
                json!({"manager": manager, "operation": "Apply", "time": time, "fieldsV1": {"f:data": {}}});
            let entry = ManagedFieldsEntry::parse(entry.as_object().unwrap());
            let left =
                AdoptedFrom::from_annotation(from, created).is_some_and(|it| it.has_left_behind(&entry));
            assert_eq!(left, expect, "{from} {manager} {time}");
        };
        let argo = "argoproj.io/Application|argocd/shop";
        let flux = "kustomize.toolkit.fluxcd.io/Kustomization|flux-system/shop";
        check(argo, "argocd-controller", "2026-01-02T03:04:04Z", true);
        check(argo, "argocd-controller", created, true);
        check(argo, "argocd-controller", "2026-01-02T03:04:06Z", false);
        check(argo, "kustomize-controller", created, false);
        check(flux, "kustomize-controller", created, true);
        check(flux, "robot", created, false);
        check("argoproj.io/Workflow|argocd/shop", "argocd-controller", created, false);
        check("", "argocd-controller", created, false);
        assert_eq!(AdoptedFrom::from_annotation(argo, ""), None);
    }
}
