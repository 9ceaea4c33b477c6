//! Finds the repositories that the call of a webhook names.
//!
//! In: the body of an authenticated call. Out: names of its repositories, independent of the
//! protocol. Services write addresses in different fields; a wrong one costs a needless poll.

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
    single.chain(several).filter_map(repository_name).take(MAX_NAMES).collect()
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
    let path = path.split(['?', '#']).next()?.trim_matches('/');
    let path = path.strip_suffix(".git").unwrap_or(path);
    (!host.is_empty() && !path.is_empty()).then(|| format!("{host}/{path}").to_lowercase().into())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

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
