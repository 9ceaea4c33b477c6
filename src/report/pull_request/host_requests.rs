//! Requests to a Git host about pull requests: GitHub, GitLab, and Gitea with Forgejo.
//!
//! In: a repository, the number of a pull request, and texts.
//! Out: [`HostRequest`]s without a login, which the sender adds. A list that has not changed is
//! answered by its ETag alone.

use serde_json::json;

/// Most entries of a page that is asked for. Gitea has 50 by default.
const PAGE: usize = 50;

/// Most characters of the description of a check, which is the limit of GitHub.
const MAX_DESCRIPTION: usize = 140;

/// Kind of a Git host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GitHost {
    /// GitHub.
    GitHub,
    /// GitLab.
    GitLab,
    /// Gitea or Forgejo.
    Gitea,
}

/// A repository on a Git host.
#[derive(Debug, Clone, Copy)]
pub struct PullRequestHost<'a> {
    /// The kind of the host.
    pub host: GitHost,
    /// Base of its API, such as `https://api.github.com` or `https://git.example.com/api/v1`.
    pub api: &'a str,
    /// The repository, as `owner/name`.
    pub repository: &'a str,
}

/// Method of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HostMethod {
    /// GET
    Get,
    /// POST
    Post,
    /// PATCH
    Patch,
    /// PUT
    Put,
}

/// A request without a login.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostRequest {
    /// The method.
    pub method: HostMethod,
    /// The URL.
    pub url: String,
    /// Headers, beside that of the login.
    pub headers: Vec<(&'static str, String)>,
    /// The body.
    pub body: Option<String>,
}

/// State of the check on a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CheckState {
    /// The plan is being made.
    Pending,
    /// There is a plan.
    Success,
    /// The commit cannot be rendered.
    Failure,
}

/// Returns the request for a page of the open pull requests, the ones that changed last first.
pub fn list_open(of: PullRequestHost<'_>, page: usize, etag: Option<&str>) -> HostRequest {
    let query = match of.host {
        GitHost::GitHub => {
            format!("pulls?state=open&sort=updated&direction=desc&per_page={PAGE}&page={page}")
        }
        GitHost::GitLab => {
            format!("merge_requests?state=opened&order_by=updated_at&sort=desc&per_page={PAGE}&page={page}")
        }
        GitHost::Gitea => format!("pulls?state=open&sort=recentupdate&limit={PAGE}&page={page}"),
    };
    let mut request = get(of, &query);
    // An ETag comes from the host; a header is one line.
    let etag = etag.filter(|etag| etag.bytes().all(|byte| byte.is_ascii_graphic() || byte == b' '));
    request.headers.extend(etag.map(|etag| ("if-none-match", etag.to_owned())));
    request
}

/// Returns the request for a page of the files of a pull request.
pub fn list_files(of: PullRequestHost<'_>, number: u64, page: usize) -> HostRequest {
    match of.host {
        GitHost::GitHub => get(of, &format!("pulls/{number}/files?per_page={PAGE}&page={page}")),
        GitHost::GitLab => get(of, &format!("merge_requests/{number}/diffs?per_page={PAGE}&page={page}")),
        GitHost::Gitea => get(of, &format!("pulls/{number}/files?limit={PAGE}&page={page}")),
    }
}

/// Returns the request for a page of the comments on a pull request.
pub fn list_comments(of: PullRequestHost<'_>, number: u64, page: usize) -> HostRequest {
    match of.host {
        GitHost::GitHub => get(of, &format!("issues/{number}/comments?per_page={PAGE}&page={page}")),
        GitHost::GitLab => get(
            of,
            &format!(
                "merge_requests/{number}/notes?sort=asc&order_by=created_at&per_page={PAGE}&page={page}"
            ),
        ),
        GitHost::Gitea => get(of, &format!("issues/{number}/comments?limit={PAGE}&page={page}")),
    }
}

/// Returns the request that writes a new comment.
pub fn create_comment(of: PullRequestHost<'_>, number: u64, text: &str) -> HostRequest {
    let path = match of.host {
        GitHost::GitHub | GitHost::Gitea => format!("issues/{number}/comments"),
        GitHost::GitLab => format!("merge_requests/{number}/notes"),
    };
    send(of, HostMethod::Post, &path, &json!({"body": text}))
}

/// Returns the request that replaces the text of a comment.
pub fn edit_comment(of: PullRequestHost<'_>, number: u64, comment: u64, text: &str) -> HostRequest {
    let (method, path) = match of.host {
        GitHost::GitHub | GitHost::Gitea => (HostMethod::Patch, format!("issues/comments/{comment}")),
        GitHost::GitLab => (HostMethod::Put, format!("merge_requests/{number}/notes/{comment}")),
    };
    send(of, method, &path, &json!({"body": text}))
}

/// Returns the request that sets the check on a commit. `context` is the name of the check.
pub fn set_check(
    of: PullRequestHost<'_>,
    (commit, state): (&str, CheckState),
    (context, description): (&str, &str),
    link: Option<&str>,
) -> HostRequest {
    let description: String = description.chars().take(MAX_DESCRIPTION).collect();
    let word = match (state, of.host) {
        (CheckState::Pending, _) => "pending",
        (CheckState::Success, _) => "success",
        (CheckState::Failure, GitHost::GitLab) => "failed",
        (CheckState::Failure, GitHost::GitHub | GitHost::Gitea) => "failure",
    };
    let name = if of.host == GitHost::GitLab { "name" } else { "context" };
    let mut body = json!({"state": word, name: context, "description": description});
    if let Some(link) = link {
        body["target_url"] = link.into();
    }
    send(of, HostMethod::Post, &format!("statuses/{commit}"), &body)
}

fn get(of: PullRequestHost<'_>, path: &str) -> HostRequest {
    HostRequest { method: HostMethod::Get, url: url(of, path), headers: headers(of.host), body: None }
}

fn send(of: PullRequestHost<'_>, method: HostMethod, path: &str, body: &serde_json::Value) -> HostRequest {
    let mut headers = headers(of.host);
    headers.push(("content-type", "application/json".to_owned()));
    HostRequest { method, url: url(of, path), headers, body: Some(body.to_string()) }
}

fn headers(host: GitHost) -> Vec<(&'static str, String)> {
    match host {
        GitHost::GitHub => vec![
            ("accept", "application/vnd.github+json".to_owned()),
            ("x-github-api-version", "2022-11-28".to_owned()),
        ],
        GitHost::GitLab | GitHost::Gitea => vec![("accept", "application/json".to_owned())],
    }
}

/// The URL of a path of the repository.
fn url(of: PullRequestHost<'_>, path: &str) -> String {
    let api = of.api.trim_end_matches('/');
    match of.host {
        GitHost::GitHub | GitHost::Gitea => format!("{api}/repos/{}/{path}", encoded(of.repository, true)),
        GitHost::GitLab => format!("{api}/projects/{}/{path}", encoded(of.repository, false)),
    }
}

/// Encodes a part of a URL; with `keeps_slash`, a slash is left as it is.
fn encoded(text: &str, keeps_slash: bool) -> String {
    let mut out = String::new();
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => out.push(char::from(byte)),
            b'/' if keeps_slash => out.push('/'),
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    const GITHUB: PullRequestHost<'_> =
        PullRequestHost { host: GitHost::GitHub, api: "https://api.github.com", repository: "shop/deploy" };
    const GITLAB: PullRequestHost<'_> = PullRequestHost {
        host: GitHost::GitLab,
        api: "https://gitlab.example.com/api/v4/",
        repository: "group/sub/deploy",
    };
    const GITEA: PullRequestHost<'_> = PullRequestHost {
        host: GitHost::Gitea,
        api: "https://git.example.com/api/v1",
        repository: "shop/deploy",
    };

    /// The request as it goes over the wire, without a login.
    fn wire(request: &HostRequest) -> String {
        let headers: String =
            request.headers.iter().map(|(name, value)| format!("{name}: {value}\n")).collect();
        let method = format!("{:?}", request.method).to_uppercase();
        format!("{method} {}\n{headers}\n{}", request.url, request.body.as_deref().unwrap_or_default())
    }

    const HUB: &str = "accept: application/vnd.github+json\nx-github-api-version: 2022-11-28\n";
    const PLAIN: &str = "accept: application/json\n";
    const JSON: &str = "content-type: application/json\n";

    #[test]
    fn each_host_is_read_by_the_requests_of_its_documentation() {
        for (request, expect) in [
            (
                list_open(GITHUB, 1, Some("W/\"ab\"")),
                format!(
                    "GET https://api.github.com/repos/shop/deploy/pulls?state=open&sort=updated&direction=desc&per_page=50&page=1\n{HUB}if-none-match: W/\"ab\"\n\n"
                ),
            ),
            (
                list_open(GITLAB, 2, None),
                format!(
                    "GET https://gitlab.example.com/api/v4/projects/group%2Fsub%2Fdeploy/merge_requests?state=opened&order_by=updated_at&sort=desc&per_page=50&page=2\n{PLAIN}\n"
                ),
            ),
            (
                list_open(GITEA, 1, Some("a\r\nx: y")),
                format!(
                    "GET https://git.example.com/api/v1/repos/shop/deploy/pulls?state=open&sort=recentupdate&limit=50&page=1\n{PLAIN}\n"
                ),
            ),
            (
                list_files(GITHUB, 7, 1),
                format!(
                    "GET https://api.github.com/repos/shop/deploy/pulls/7/files?per_page=50&page=1\n{HUB}\n"
                ),
            ),
            (
                list_files(GITLAB, 7, 1),
                format!(
                    "GET https://gitlab.example.com/api/v4/projects/group%2Fsub%2Fdeploy/merge_requests/7/diffs?per_page=50&page=1\n{PLAIN}\n"
                ),
            ),
            (
                list_files(GITEA, 7, 3),
                format!(
                    "GET https://git.example.com/api/v1/repos/shop/deploy/pulls/7/files?limit=50&page=3\n{PLAIN}\n"
                ),
            ),
            (
                list_comments(GITHUB, 7, 1),
                format!(
                    "GET https://api.github.com/repos/shop/deploy/issues/7/comments?per_page=50&page=1\n{HUB}\n"
                ),
            ),
            (
                list_comments(GITLAB, 7, 1),
                format!(
                    "GET https://gitlab.example.com/api/v4/projects/group%2Fsub%2Fdeploy/merge_requests/7/notes?sort=asc&order_by=created_at&per_page=50&page=1\n{PLAIN}\n"
                ),
            ),
        ] {
            assert_eq!(wire(&request), expect);
        }
        let odd = PullRequestHost { repository: "../a?b#c d", ..GITHUB };
        assert!(
            list_files(odd, 1, 1).url.starts_with("https://api.github.com/repos/../a%3Fb%23c%20d/pulls/")
        );
    }

    #[test]
    fn each_host_is_written_to_by_the_requests_of_its_documentation() {
        let commit = "1f0c9a77be2d1c3f4a5b6c7d8e9f0a1b2c3d4e5f";
        let check = |of, state| set_check(of, (commit, state), ("moorline/prod", "2 to create"), None);
        for (request, expect) in [
            (
                create_comment(GITHUB, 7, "a\n\"b\""),
                format!(
                    "POST https://api.github.com/repos/shop/deploy/issues/7/comments\n{HUB}{JSON}\n{{\"body\":\"a\\n\\\"b\\\"\"}}"
                ),
            ),
            (
                create_comment(GITLAB, 7, "a"),
                format!(
                    "POST https://gitlab.example.com/api/v4/projects/group%2Fsub%2Fdeploy/merge_requests/7/notes\n{PLAIN}{JSON}\n{{\"body\":\"a\"}}"
                ),
            ),
            (
                edit_comment(GITHUB, 7, 99, "a"),
                format!(
                    "PATCH https://api.github.com/repos/shop/deploy/issues/comments/99\n{HUB}{JSON}\n{{\"body\":\"a\"}}"
                ),
            ),
            (
                edit_comment(GITLAB, 7, 99, "a"),
                format!(
                    "PUT https://gitlab.example.com/api/v4/projects/group%2Fsub%2Fdeploy/merge_requests/7/notes/99\n{PLAIN}{JSON}\n{{\"body\":\"a\"}}"
                ),
            ),
            (
                edit_comment(GITEA, 7, 99, "a"),
                format!(
                    "PATCH https://git.example.com/api/v1/repos/shop/deploy/issues/comments/99\n{PLAIN}{JSON}\n{{\"body\":\"a\"}}"
                ),
            ),
            (
                check(GITHUB, CheckState::Failure),
                format!(
                    "POST https://api.github.com/repos/shop/deploy/statuses/{commit}\n{HUB}{JSON}\n{{\"context\":\"moorline/prod\",\"description\":\"2 to create\",\"state\":\"failure\"}}"
                ),
            ),
            (
                check(GITLAB, CheckState::Failure),
                format!(
                    "POST https://gitlab.example.com/api/v4/projects/group%2Fsub%2Fdeploy/statuses/{commit}\n{PLAIN}{JSON}\n{{\"description\":\"2 to create\",\"name\":\"moorline/prod\",\"state\":\"failed\"}}"
                ),
            ),
            (
                set_check(
                    GITEA,
                    (commit, CheckState::Success),
                    ("c", &"x".repeat(200)),
                    Some("https://host/"),
                ),
                format!(
                    "POST https://git.example.com/api/v1/repos/shop/deploy/statuses/{commit}\n{PLAIN}{JSON}\n{{\"context\":\"c\",\"description\":\"{}\",\"state\":\"success\",\"target_url\":\"https://host/\"}}",
                    "x".repeat(140)
                ),
            ),
        ] {
            assert_eq!(wire(&request), expect);
        }
    }
}
