//! Addresses of the repositories that the generators of a set read, for webhooks.
//!
//! In: a spec.
//! Out: URLs of repositories and registries. A pull request generator names its repository and the
//! API of its host; webhooks name the repository alone.

use moorline_api::{PullRequestGenerator, SyncSetSpec};

use crate::generate::{git_generators, pull_request_generators, tag_generators};

/// Host part in front of the API of GitHub.
const API_HOST: &str = "api.";

/// Returns the addresses of all repositories.
pub fn repository_addresses(spec: &SyncSetSpec) -> Vec<String> {
    let git = git_generators(spec).into_iter().map(|generator| generator.url.clone());
    let tags = tag_generators(spec).into_iter().map(|generator| generator.url.clone());
    let pull_requests = pull_request_generators(spec).into_iter().filter_map(pull_request_address);
    git.chain(tags).chain(pull_requests).collect()
}

fn pull_request_address(generator: &PullRequestGenerator) -> Option<String> {
    let api = generator.github.as_ref().or(generator.gitlab.as_ref()).or(generator.gitea.as_ref())?;
    let (_, rest) = api.url.split_once("://")?;
    let host = rest.split('/').next().unwrap_or_default();
    let host = if generator.github.is_some() { host.strip_prefix(API_HOST).unwrap_or(host) } else { host };
    Some(format!("https://{host}/{}", generator.repository))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_generator_that_reads_a_repository_has_an_address() {
        let host = |url: &str| json!({"url": url, "secretRef": {"name": "token"}});
        let pulls = |service: &str, url: &str| json!({"pullRequests": {service: host(url), "repository": "team/shop"}});
        let git = json!({"git": {"url": "https://git.example.com/apps.git", "folders": {"include": ["*"]}}});
        let tags = json!({"ociTags": {"url": "oci://registry.example.com/shop", "semver": "1.x"}});
        let list = json!({"list": {"elements": [{"name": "a"}]}});
        for (generator, expect) in [
            (git.clone(), vec!["https://git.example.com/apps.git"]),
            (tags.clone(), vec!["oci://registry.example.com/shop"]),
            (list.clone(), vec![]),
            (pulls("github", "https://api.github.com"), vec!["https://github.com/team/shop"]),
            (pulls("github", "https://ghe.example.com/api/v3"), vec!["https://ghe.example.com/team/shop"]),
            (pulls("gitlab", "https://api.example.com/api/v4"), vec!["https://api.example.com/team/shop"]),
            (pulls("gitea", "http://127.0.0.1:3000/api/v1"), vec!["https://127.0.0.1:3000/team/shop"]),
            (
                json!({"matrix": [git, list, tags]}),
                vec!["https://git.example.com/apps.git", "oci://registry.example.com/shop"],
            ),
        ] {
            let spec =
                json!({"generators": [generator], "name": "'a'", "template": {"spec": {"source": {}}}});
            let spec: SyncSetSpec = serde_json::from_value(spec).unwrap();
            assert_eq!(repository_addresses(&spec), expect, "{generator}");
        }
    }
}
