//! Finds the repositories that the call of a webhook names.
//!
//! In: the body of an authenticated call. Out: names of its repositories, independent of the
//! protocol, of Git services and registries alike. Services write addresses in different fields; a
//! wrong one costs a needless poll.

use std::collections::BTreeSet;

use serde_json::Value;

/// Fields with an address of the repository.
const PLACES: [&str; 15] = [
    "/repository/clone_url",
    "/repository/ssh_url",
    "/repository/html_url",
    "/repository/git_url",
    "/repository/git_http_url",
    "/repository/git_ssh_url",
    "/repository/url",
    "/repository/homepage",
    "/repository/links/html/href",
    "/project/git_http_url",
    "/project/git_ssh_url",
    "/project/web_url",
    "/project/url",
    "/url",
    "/repository",
];

/// Fields with several addresses.
const LISTS: [&str; 2] = ["/repository/links/clone", "/urls"];

/// Fields with the name of an image or artifact, with or without a tag: of GitHub's packages and of
/// Quay.
const IMAGES: [&str; 3] =
    ["/package/package_version/package_url", "/registry_package/package_version/package_url", "/docker_url"];

/// Field with the changed artifacts of Harbor.
const RESOURCES: &str = "/event_data/resources";

/// Docker Hub names its repositories without a host.
const DOCKER_HUB: (&str, &str) = ("/repository/repo_name", "docker.io");

/// Other names of Docker Hub.
const DOCKER_HOSTS: [&str; 2] = ["index.docker.io", "registry-1.docker.io"];

/// Fields of a call of Azure, which names host and repository apart.
const AZURE: (&str, &str) = ("/request/host", "/target/repository");

/// The most names of one call.
const MAX_NAMES: usize = 32;

/// Names of the repositories that a call is about.
pub type RepositoryNames = BTreeSet<Box<str>>;

/// The repositories that the body of a call names, from any service; `None` if it is not JSON.
pub fn parse_call(body: &[u8]) -> Option<RepositoryNames> {
    serde_json::from_slice(body).ok().map(|body| repositories(&body))
}

fn repositories(body: &Value) -> RepositoryNames {
    let single = PLACES.iter().filter_map(|place| body.pointer(place)?.as_str());
    let lists = LISTS.iter().filter_map(|place| body.pointer(place)?.as_array()).flatten();
    let several = lists.filter_map(|one| one.as_str().or_else(|| one.get("href")?.as_str()));
    let git = single.chain(several).filter_map(repository_name);
    git.chain(artifacts(body)).take(MAX_NAMES).collect()
}

/// The names of repositories of registries.
fn artifacts(body: &Value) -> impl Iterator<Item = Box<str>> {
    let text = |place: &str| body.pointer(place).and_then(Value::as_str);
    let resources = body.pointer(RESOURCES).and_then(Value::as_array).into_iter().flatten();
    let images = resources.filter_map(|one| one.get("resource_url")?.as_str());
    let images = images.chain(IMAGES.iter().filter_map(|place| text(place))).map(str::to_owned);
    let hub = text(DOCKER_HUB.0).map(|name| format!("{}/{name}", DOCKER_HUB.1));
    let azure = text(AZURE.0).zip(text(AZURE.1)).map(|(host, name)| format!("{host}/{name}"));
    let images: Vec<String> = images.chain(hub).chain(azure).collect();
    images.into_iter().filter_map(|image| {
        // The tag follows a colon in the last part, a digest an `@`.
        let image = image.split('@').next().unwrap_or_default();
        let (path, last) = image.rsplit_once('/')?;
        let last = last.split(':').next().unwrap_or_default();
        repository_name(&format!("oci://{path}/{last}"))
    })
}

/// The name of a repository: host and path, so that all its addresses have the same name.
pub fn repository_name(address: &str) -> Option<Box<str>> {
    let rest = match address.split_once("://") {
        Some((_, rest)) => rest.split_once('/').map(|(host, path)| (host, path.to_owned())),
        None => address.split_once(':').map(|(host, path)| (host, path.to_owned())),
    };
    let (host, path) = rest?;
    let host = host.rsplit('@').next()?;
    let host = match host.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => host,
        _ => host,
    };
    let host = if DOCKER_HOSTS.contains(&host) { DOCKER_HUB.1 } else { host };
    let path = path.split(['?', '#']).next()?.trim_matches('/');
    let path = path.strip_suffix(".git").unwrap_or(path);
    (!host.is_empty() && !path.is_empty()).then(|| format!("{host}/{path}").to_lowercase().into())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_registry_names_its_repositories() {
        for (body, expect) in [
            (
                json!({"action": "published", "package": {"package_version": {"package_url": "ghcr.io/Org/shop:v1"}}}),
                "ghcr.io/org/shop",
            ),
            (
                json!({"registry_package": {"package_version": {"package_url": "ghcr.io/org/shop@sha256:1f"}}}),
                "ghcr.io/org/shop",
            ),
            (
                json!({"push_data": {"tag": "v1"}, "repository": {"repo_name": "org/shop", "name": "shop"}}),
                "docker.io/org/shop",
            ),
            (
                json!({"type": "PUSH_ARTIFACT", "event_data": {"resources": [
                    {"digest": "sha256:1f", "resource_url": "harbor.example.com:8443/team/shop:v1"}]}}),
                "harbor.example.com/team/shop",
            ),
            (json!({"docker_url": "quay.io/org/shop", "updated_tags": ["v1"]}), "quay.io/org/shop"),
            (
                json!({"action": "push", "target": {"repository": "team/shop", "tag": "v1"},
                    "request": {"host": "own.azurecr.io"}}),
                "own.azurecr.io/team/shop",
            ),
        ] {
            let names = parse_call(body.to_string().as_bytes()).unwrap();
            assert!(names.contains(expect), "{body}: {names:?}");
            assert_eq!(repository_name(&format!("oci://{expect}")).as_deref(), Some(expect));
            let other = format!("oci://{}#copy", expect.replace("docker.io", "index.docker.io"));
            assert_eq!(repository_name(&other).as_deref(), Some(expect));
        }
    }

    #[test]
    fn all_addresses_of_a_repository_have_one_name() {
        for address in [
            "https://git.example.com/Group/Shop.git",
            "https://user@git.example.com:8443/group/shop",
            "ssh://git@git.example.com:2222/group/shop.git",
            "git@git.example.com:group/shop.git",
            "git.example.com:/group/shop.git/",
            "https://git.example.com/group/shop/?x=1",
        ] {
            assert_eq!(repository_name(address).as_deref(), Some("git.example.com/group/shop"), "{address}");
        }
        for address in ["", "x", "https://", "https://host", "https://host/", ":path", "host:"] {
            assert_eq!(repository_name(address), None, "{address}");
        }
        assert_eq!(repository_name("https://[::1]:8080/a.git").as_deref(), Some("[::1]/a"));
    }

    #[test]
    fn every_service_s_place_is_read() {
        let check = |body: Value, expect: &[&str]| {
            let names = repositories(&body);
            assert_eq!(names.iter().map(|it| &**it).collect::<Vec<_>>(), expect, "{body}");
        };
        let github =
            json!({"clone_url": "https://h/a/b.git", "ssh_url": "git@h:a/b.git", "url": "https://api.h/x"});
        check(json!({"ref": "refs/heads/main", "repository": github}), &["api.h/x", "h/a/b"]);
        check(
            json!({"project": {"git_http_url": "https://h/a/b.git", "web_url": "https://h/a/b"}}),
            &["h/a/b"],
        );
        let bitbucket = json!({"links": {"html": {"href": "https://h/a/b"}, "clone": [{"href": "ssh://git@h:7999/a/b.git"}]}});
        check(json!({"repository": bitbucket}), &["h/a/b"]);
        check(json!({"url": "https://h/a/b.git"}), &["h/a/b"]);
        check(json!({"urls": ["https://h/a/b.git", "https://h/c", 1, null]}), &["h/a/b", "h/c"]);
        for nothing in
            [json!({}), json!([]), json!(1), json!({"repository": {"links": 1}}), json!({"urls": {}})]
        {
            check(nothing, &[]);
        }
    }
}
