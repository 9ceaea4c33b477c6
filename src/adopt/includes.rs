//! Converts the repositories that a GitRepository includes to mounts.
//!
//! In: `spec.include` of a GitRepository, and the GitRepositories that it names. Out:
//! `spec.source.mounts` of a Sync, or the reason why its files would be in other places.

use serde_json::{Value, json};

use super::sync_builder::{SyncBuilder, is_set, text};
use super::{OldResource, RequestedSync, flux};

/// Settings of an included repository that do not change its files.
const TIMING: [&str; 2] = ["GitRepository spec.interval", "GitRepository spec.suspend"];

pub(super) fn convert_includes(old: &OldResource<'_>, draft: &mut SyncBuilder) {
    let includes = old.repository.and_then(|repository| repository.pointer("/spec/include"));
    let includes = includes.and_then(Value::as_array).into_iter().flatten();
    let mut mounts = Vec::new();
    for (at, include) in includes.enumerate() {
        let place = format!("GitRepository spec.include[{at}]");
        match mount(old, include, &place, draft) {
            Ok(mount) => mounts.push(mount),
            Err(why) => draft.refuse(place, why),
        }
    }
    if !mounts.is_empty() {
        draft.spec["source"]["mounts"] = mounts.into();
    }
}

/// Converts one included repository, whose files all lie in one folder.
fn mount(
    old: &OldResource<'_>,
    include: &Value,
    place: &str,
    draft: &mut SyncBuilder,
) -> Result<Value, String> {
    let name = text(include, "/repository/name");
    let found = old.included.iter().find(|repository| text(repository, "/metadata/name") == name);
    let Some(repository) = found else {
        return Err(format!("there is no GitRepository {name}, so that its files are not known"));
    };
    if !["", ".", "./", "/"].contains(&text(include, "/fromPath")) {
        return Err("a mount has all files of its repository: leave fromPath out, and name the folder where the files are used".to_owned());
    }
    if is_set(&repository["spec"]["include"]) {
        return Err(format!("{name} includes others itself: include those here, too"));
    }
    let to = Some(text(include, "/toPath")).filter(|to| !to.is_empty()).unwrap_or(name);
    let folder = to.trim_start_matches("./").trim_matches('/');
    if !is_folder(folder) {
        return Err(
            "it becomes a folder: name one in toPath, of letters, digits, dots, dashes and underscores"
                .to_owned(),
        );
    }
    let mut inner = SyncBuilder::new(RequestedSync { sync: draft.requested.sync.clone(), secret: None });
    flux::repository(&OldResource { repository: Some(repository), included: &[], ..old.clone() }, &mut inner);
    if let Some(refused) = inner.refused.first() {
        return Err(format!(
            "{} of {name} cannot be converted: write the Sync by hand, with the login in spec.source.mounts[].git.secretRef",
            refused.field
        ));
    }
    for lost in inner.lost.iter().filter(|lost| !TIMING.contains(&&*lost.field)) {
        draft.mark_lost(format!("{place}: {}", lost.field), &*lost.why);
    }
    Ok(json!({"path": folder, "git": inner.spec["source"]["git"]}))
}

/// True for a path that can be the folder of a mount.
fn is_folder(path: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    let is_name = |part: &str| part.bytes().all(is_plain) && !part.trim_matches('.').is_empty();
    path.split('/').all(is_name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::adopt::Tool;
    use crate::adopt::tests::old;
    use crate::api::SyncName;

    fn converted(includes: Value, included: &[Value]) -> SyncBuilder {
        let body = json!({"metadata": {"name": "shop", "namespace": "moorline"}});
        let repository = json!({"metadata": {"name": "shop", "namespace": "moorline"},
            "spec": {"url": "https://example.com/shop.git", "include": includes}});
        let old = OldResource { repository: Some(&repository), included, ..old(Tool::Flux, &body) };
        let sync = SyncName::new("moorline", "shop");
        let mut draft = SyncBuilder::new(RequestedSync { sync, secret: None });
        flux::repository(&old, &mut draft);
        draft
    }

    fn base(namespace: &str, spec: Value) -> Value {
        let mut spec = spec;
        spec["url"] = "https://example.com/base.git".into();
        json!({"metadata": {"name": "base", "namespace": namespace}, "spec": spec})
    }

    #[test]
    fn included_repositories_are_mounted() {
        let login = json!({"ref": {"tag": "v1"}, "secretRef": {"name": "login"}, "interval": "1s"});
        let git = json!({"url": "https://example.com/base.git", "ref": {"tag": "v1"}, "secretRef": {"name": "login"}});
        for (include, folder) in [
            (json!({}), "base"),
            (json!({"toPath": "./vendor/base/"}), "vendor/base"),
            (json!({"fromPath": "./", "toPath": "a"}), "a"),
        ] {
            let mut include = include;
            include["repository"] = json!({"name": "base"});
            let draft = converted(json!([include]), &[base("moorline", login.clone())]);
            assert_eq!((&draft.refused[..], &draft.lost[..]), (&[][..], &[][..]), "{include}");
            assert_eq!(draft.spec["source"]["mounts"], json!([{"path": folder, "git": git}]));
            assert_eq!(draft.spec["source"]["git"]["url"], "https://example.com/shop.git");
        }
    }

    #[test]
    fn an_include_that_would_lie_elsewhere_is_refused() {
        let near = base("moorline", json!({}));
        for (include, included) in [
            (json!({}), None),
            (json!({"fromPath": "deploy"}), Some(near.clone())),
            (json!({"toPath": "."}), Some(near.clone())),
            (json!({"toPath": "../a"}), Some(near)),
            (json!({}), Some(base("moorline", json!({"include": [{"repository": {"name": "c"}}]})))),
            (json!({}), Some(base("flux-system", json!({"secretRef": {"name": "login"}})))),
        ] {
            let mut include = include;
            include["repository"] = json!({"name": "base"});
            let draft = converted(json!([include]), &included.into_iter().collect::<Vec<_>>());
            let fields: Vec<&str> = draft.refused.iter().map(|remark| &*remark.field).collect();
            assert_eq!(fields, ["GitRepository spec.include[0]"], "{include}");
            assert_eq!(draft.spec["source"].get("mounts"), None);
        }
    }
}
