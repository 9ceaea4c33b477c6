//! Annotations and labels, also of other tools, that protect an object from deletion.
//!
//! In: the annotations and labels of a live object.
//! Out: the key that protects it, if any. A person who set one for Argo CD, Flux or Helm before a
//! Sync adopted the object meant every GitOps tool.

/// Argo CD's sync options of an object, separated by commas.
const ARGO_OPTIONS: &str = "argocd.argoproj.io/sync-options";

/// The options that protect it from deletion, permanently or until a person agrees.
const ARGO_KEEPS: [&str; 4] = ["Prune=false", "Prune=confirm", "Delete=false", "Delete=confirm"];

/// Flux's key for the same purpose, as an annotation or as a label.
const FLUX_PRUNE: &str = "kustomize.toolkit.fluxcd.io/prune";

/// Helm's annotation, which Argo CD obeys as well.
const HELM_POLICY: &str = "helm.sh/resource-policy";

/// Returns the annotation or label that tells Moorline, Argo CD, Flux or Helm not to delete the
/// object.
pub fn deletion_protection_key<'a>(
    annotation: impl Fn(&str) -> Option<&'a str>,
    label: impl Fn(&str) -> Option<&'a str>,
) -> Option<&'static str> {
    let by_us = annotation(super::PRUNE_ANNOTATION) == Some("disabled");
    let options = annotation(ARGO_OPTIONS).unwrap_or_default();
    let by_argo = options.split(',').any(|option| ARGO_KEEPS.contains(&option.trim()));
    let by_flux = [annotation(FLUX_PRUNE), label(FLUX_PRUNE)];
    let by_flux = by_flux.into_iter().flatten().any(|value| value.eq_ignore_ascii_case("disabled"));
    let by_helm = annotation(HELM_POLICY).is_some_and(|value| value.trim().eq_ignore_ascii_case("keep"));
    let each = [
        (by_us, super::PRUNE_ANNOTATION),
        (by_argo, ARGO_OPTIONS),
        (by_flux, FLUX_PRUNE),
        (by_helm, HELM_POLICY),
    ];
    each.into_iter().find_map(|(asks, key)| asks.then_some(key))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_asked_to_keep_an_object_is_heard() {
        for (key, value, expect) in [
            (ARGO_OPTIONS, "Prune=false", true),
            (ARGO_OPTIONS, "ServerSideApply=true, Prune=confirm", true),
            (ARGO_OPTIONS, "Delete=false", true),
            (ARGO_OPTIONS, "Prune=true,Replace=true", false),
            (FLUX_PRUNE, "Disabled", true),
            (FLUX_PRUNE, "enabled", false),
            (HELM_POLICY, "keep", true),
            (HELM_POLICY, "delete", false),
            (super::super::PRUNE_ANNOTATION, "disabled", true),
        ] {
            let at = |asked: &str| (asked == key).then_some(value);
            assert_eq!(deletion_protection_key(at, |_| None), expect.then_some(key), "{key}: {value}");
        }
        assert!(deletion_protection_key(|_| None, |key| (key == FLUX_PRUNE).then_some("disabled")).is_some());
        assert_eq!(deletion_protection_key(|_| None, |_| None), None);
    }
}
