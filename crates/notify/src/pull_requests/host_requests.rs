//! Requests to a host of repositories about pull requests: GitHub, GitLab, Gitea with Forgejo.
//!
//! In: a host, a repository, a token, the number of a pull request, and texts.
//! Out: requests. A list that has not changed is answered by its ETag alone.

use moorline_identity::{ExchangeRequest, Method, SecretText};
use serde_json::{Value, json};

use super::page_cursor::ListPage;
use crate::selection::Service;
use crate::text::cut;

/// Most files of a page that is asked for: as many as Gitea gives.
const PAGE: usize = 50;
/// Maximum number of characters of a description: GitHub refuses a longer one.
const MAX_DESCRIPTION: usize = 140;

/// A repository on a host, with the token for it.
#[derive(Debug, Clone, Copy)]
pub struct PullRequestHost<'a> {
    /// The kind of the host.
    pub service: Service,
    /// The URL of its API.
    pub api: &'a str,
    /// The repository, such as `group/name`.
    pub repository: &'a str,
    /// The token.
    pub token: &'a SecretText,
}

/// State of the check on a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CheckState {
    /// More follows.
    Pending,
    /// There is a plan, or the commit is applied.
    Success,
    /// The commit cannot be planned or applied.
    Failure,
}

impl PullRequestHost<'_> {
    /// The number of files that a full page has.
    pub const PAGE: usize = PAGE;

    /// Returns the request for the account of the token.
    pub fn user(self) -> ExchangeRequest {
        let url = format!("{}/user", self.api.trim_end_matches('/'));
        ExchangeRequest { method: Method::Get, url, headers: self.headers(), body: "".into() }
    }

    /// Returns the request for a page of the open pull requests, the ones that changed last first.
    pub fn list_open(self, ListPage { page, size }: ListPage, etag: Option<&str>) -> ExchangeRequest {
        let mut request = self.get(&match self.service {
            Service::Gitlab => format!(
                "merge_requests?state=opened&order_by=updated_at&sort=desc&per_page={size}&page={page}"
            ),
            Service::Gitea => format!("pulls?state=open&sort=recentupdate&limit={size}&page={page}"),
            _ => format!("pulls?state=open&sort=updated&direction=desc&per_page={size}&page={page}"),
        });
        // An ETag comes from the host; a header is one line.
        let etag = etag.filter(|etag| etag.bytes().all(|byte| byte.is_ascii_graphic() || byte == b' '));
        request.headers.extend(etag.map(|etag| ("if-none-match", etag.into())));
        request
    }

    /// Returns the request for a page of the files of a pull request.
    pub fn list_files(self, number: u64, page: usize) -> ExchangeRequest {
        self.get(&match self.service {
            Service::Gitlab => format!("merge_requests/{number}/diffs?per_page={PAGE}&page={page}"),
            Service::Gitea => format!("pulls/{number}/files?limit={PAGE}&page={page}"),
            _ => format!("pulls/{number}/files?per_page={PAGE}&page={page}"),
        })
    }

    /// Returns the request for a page of the comments on a pull request, the oldest first. Gitea
    /// has all of them in one answer.
    pub fn list_comments(self, number: u64, ListPage { page, size }: ListPage) -> ExchangeRequest {
        self.get(&match self.service {
            Service::Gitlab => format!(
                "merge_requests/{number}/notes?sort=asc&order_by=created_at&per_page={size}&page={page}"
            ),
            Service::Gitea => format!("issues/{number}/comments"),
            _ => format!("issues/{number}/comments?per_page={size}&page={page}"),
        })
    }

    /// Returns the request that writes a new comment.
    pub fn create_comment(self, number: u64, text: &str) -> ExchangeRequest {
        let path = match self.service {
            Service::Gitlab => format!("merge_requests/{number}/notes"),
            _ => format!("issues/{number}/comments"),
        };
        self.send(Method::Post, &path, &json!({"body": text}))
    }

    /// Returns the request that replaces the text of a comment.
    pub fn edit_comment(self, number: u64, comment: u64, text: &str) -> ExchangeRequest {
        let (method, path) = match self.service {
            Service::Gitlab => (Method::Put, format!("merge_requests/{number}/notes/{comment}")),
            _ => (Method::Patch, format!("issues/comments/{comment}")),
        };
        self.send(method, &path, &json!({"body": text}))
    }

    /// Returns the request that sets the check on a commit. `context` is the name of the check.
    pub fn set_check(
        self,
        (commit, state): (&str, CheckState),
        (context, description): (&str, &str),
        link: Option<&str>,
    ) -> ExchangeRequest {
        let word = match (state, self.service) {
            (CheckState::Pending, _) => "pending",
            (CheckState::Success, _) => "success",
            (CheckState::Failure, Service::Gitlab) => "failed",
            (CheckState::Failure, _) => "failure",
        };
        let name = if self.service == Service::Gitlab { "name" } else { "context" };
        let mut body =
            json!({"state": word, name: context, "description": cut(description, MAX_DESCRIPTION)});
        if let Some(link) = link {
            body["target_url"] = link.into();
        }
        self.send(Method::Post, &format!("statuses/{commit}"), &body)
    }

    fn get(self, path: &str) -> ExchangeRequest {
        ExchangeRequest { method: Method::Get, url: self.url(path), headers: self.headers(), body: "".into() }
    }

    fn send(self, method: Method, path: &str, body: &Value) -> ExchangeRequest {
        let mut headers = self.headers();
        headers.push(("content-type", "application/json".into()));
        ExchangeRequest { method, url: self.url(path), headers, body: SecretText::new(body.to_string()) }
    }

    fn headers(self) -> Vec<(&'static str, SecretText)> {
        let token = self.token.as_str();
        match self.service {
            Service::Gitlab => {
                vec![("private-token", token.into()), ("accept", "application/json".into())]
            }
            Service::Gitea => vec![
                ("authorization", SecretText::new(format!("token {token}"))),
                ("accept", "application/json".into()),
            ],
            _ => vec![
                ("authorization", SecretText::new(format!("Bearer {token}"))),
                ("x-github-api-version", "2022-11-28".into()),
                ("accept", "application/vnd.github+json".into()),
            ],
        }
    }

    /// Returns the URL of a path of the repository.
    fn url(self, path: &str) -> String {
        let (api, repository) = (self.api.trim_end_matches('/'), self.repository);
        match self.service {
            Service::Gitlab => format!("{api}/projects/{}/{path}", repository.replace('/', "%2F")),
            _ => format!("{api}/repos/{repository}/{path}"),
        }
    }
}
