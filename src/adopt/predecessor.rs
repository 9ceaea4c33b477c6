//! Whose fields a Sync inherits.
//!
//! In: the annotation and the age of a Sync, and an entry of the managed fields of an object. Out: whether that entry was left
//! behind. The rule in one sentence: a field belongs to nobody any more where the tool that the Sync was adopted from wrote
//! it, and has not written to the object since the Sync was made. Who still acts has an entry that is younger, and keeps it.

use super::Tool;
use crate::fields::Entry;
use crate::object::ObjectId;

/// Whom a Sync was adopted from, and when.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Predecessor {
    tool: Tool,
    /// When the Sync was made, by the clock of the API server, which stamps entries as well.
    since: Box<str>,
}

impl Predecessor {
    /// The predecessor of a Sync, by its annotation and its creation (RFC 3339, with seconds).
    pub fn of(adopted_from: &str, created: &str) -> Option<Self> {
        let id = ObjectId::parse(adopted_from)?;
        let tool = Tool::of_group(id.group()).filter(|tool| tool.kind() == id.kind())?;
        (!created.is_empty()).then(|| Self { tool, since: created.into() })
    }

    /// True for an entry that this tool has left behind. Times are of one form, so that they compare as texts.
    pub fn left(&self, entry: &Entry) -> bool {
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
            let entry = Entry::read(entry.as_object().unwrap());
            let left = Predecessor::of(from, created).is_some_and(|it| it.left(&entry));
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
        assert_eq!(Predecessor::of(argo, ""), None);
    }
}
