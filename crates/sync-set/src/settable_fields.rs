//! Fields that `spec.set` may set: none names a host, a Secret, a cluster or an account.
//!
//! In: a JSON pointer. Out: true for a field of the list. A field of a later version of the Sync is
//! a literal until it is listed here.

/// The fields, with `*` for one name and `**` for one or more.
const FIELDS: &[&str] = &[
    "/metadata/annotations/*",
    "/metadata/labels/*",
    "/spec/approval/revisions",
    "/spec/conflicts",
    "/spec/createNamespace",
    "/spec/deletionPolicy",
    "/spec/dependsOn",
    "/spec/drift/extraFields",
    "/spec/drift/mode",
    "/spec/health/timeout",
    "/spec/health/wait",
    "/spec/interval",
    "/spec/path",
    "/spec/prune/budget/count",
    "/spec/prune/budget/percent",
    "/spec/prune/enabled",
    "/spec/render/helm/chart/version",
    "/spec/render/helm/namespace",
    "/spec/render/helm/releaseName",
    "/spec/render/helm/values/**",
    "/spec/render/helm/valuesFiles",
    "/spec/render/kustomize/annotations/*",
    "/spec/render/kustomize/labels/*",
    "/spec/render/kustomize/namePrefix",
    "/spec/render/kustomize/nameSuffix",
    "/spec/render/kustomize/namespace",
    "/spec/render/substitute/vars/*",
    "/spec/rollback/onFailure",
    "/spec/source/git/ref/branch",
    "/spec/source/git/ref/commit",
    "/spec/source/git/ref/semver",
    "/spec/source/git/ref/tag",
    "/spec/source/oci/ref/digest",
    "/spec/source/oci/ref/semver",
    "/spec/source/oci/ref/tag",
    "/spec/suspend",
    "/spec/targetNamespace",
    "/spec/timeout",
];

/// True if an expression may set the field.
pub fn is_settable(pointer: &str) -> bool {
    let names: Vec<&str> = pointer.split('/').collect();
    // Labels and annotations of ours are instructions of people.
    let is_ours = pointer.starts_with("/metadata/") && pointer.contains("/moorline.dev~1");
    !is_ours && FIELDS.iter().any(|field| fits(&field.split('/').collect::<Vec<_>>(), &names))
}

fn fits(field: &[&str], names: &[&str]) -> bool {
    match (field, names) {
        ([], []) => true,
        (["**"], [first, ..]) => !first.is_empty(),
        (["*", field @ ..], [name, names @ ..]) => !name.is_empty() && fits(field, names),
        ([own, field @ ..], [name, names @ ..]) => own == name && fits(field, names),
        ([], _) | (_, []) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_secrets_and_accounts_are_literals() {
        for (pointer, expect) in [
            ("/spec/path", true),
            ("/spec/targetNamespace", true),
            ("/spec/render/substitute/vars/tier", true),
            ("/spec/render/helm/values/a/b", true),
            ("/metadata/labels/team", true),
            ("/metadata/labels/moorline.dev~1instance", false),
            ("/metadata/annotations/moorline.dev~1approve", false),
            ("/spec/serviceAccountName", false),
            ("/spec/cluster/secretRef/name", false),
            ("/spec/source", false),
            ("/spec/source/git", false),
            ("/spec/source/git/url", false),
            ("/spec/source/git/ref", false),
            ("/spec/source/git/secretRef/name", false),
            ("/spec/source/git/serviceAccountName", false),
            ("/spec/source/mounts/0/git/url", false),
            ("/spec/render/substitute", false),
            ("/spec/render/substitute/from", false),
            ("/spec/render/helm/chart/url", false),
            ("/spec/render/helm/values", false),
            ("/spec/render/helm/values/", false),
            ("/spec/render/kustomize/components", false),
            ("/spec/decryption/sops/secretRef/name", false),
            ("/spec", false),
            ("", false),
        ] {
            assert_eq!(is_settable(pointer), expect, "{pointer}");
        }
    }
}
