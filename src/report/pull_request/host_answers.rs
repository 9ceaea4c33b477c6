//! Answers of a Git host about pull requests.
//!
//! In: the JSON of an answer.
//! Out: the open pull requests, the paths of their files, and comments. What is not as documented
//! is left out; texts of strangers are only names, numbers and paths.

use serde_json::Value;

use super::host_requests::GitHost;

/// Most labels of one pull request that are read.
const MAX_LABELS: usize = 100;

/// An open pull request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenRequest {
    /// Its number.
    pub number: u64,
    /// Its newest commit.
    pub head: String,
    /// The branch that it is to be merged into.
    pub base_branch: String,
    /// True if the commit is in another repository, or if that is not known.
    pub is_fork: bool,
    /// Its labels, which only maintainers set.
    pub labels: Vec<String>,
}

/// A comment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostComment {
    /// Its number.
    pub id: u64,
    /// Its author.
    pub author: String,
    /// Its text.
    pub text: String,
}

/// Reads a page of open pull requests.
pub fn open_requests(host: GitHost, answer: &Value) -> Vec<OpenRequest> {
    items(answer).filter_map(|item| open_request(host, item)).collect()
}

fn open_request(host: GitHost, item: &Value) -> Option<OpenRequest> {
    let at = |pointer: &str| item.pointer(pointer);
    let text = |pointer: &str| at(pointer).and_then(Value::as_str);
    let (number, head, base, ends) = match host {
        GitHost::GitHub | GitHost::Gitea => {
            ("/number", "/head/sha", "/base/ref", (at("/head/repo/id"), at("/base/repo/id")))
        }
        GitHost::GitLab => {
            ("/iid", "/sha", "/target_branch", (at("/source_project_id"), at("/target_project_id")))
        }
    };
    let is_commit = |text: &&str| text.len() == 40 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    // A repository that was deleted has no id, and null is not the same as null.
    let is_same =
        ends.0.and_then(Value::as_u64).zip(ends.1.and_then(Value::as_u64)).is_some_and(|(a, b)| a == b);
    let label = |label: &Value| label.as_str().or(label["name"].as_str()).map(str::to_owned);
    Some(OpenRequest {
        number: at(number)?.as_u64()?,
        head: text(head).filter(is_commit)?.to_owned(),
        base_branch: text(base)?.to_owned(),
        is_fork: !is_same,
        labels: at("/labels")
            .map(|all| items(all).filter_map(label).take(MAX_LABELS).collect())
            .unwrap_or_default(),
    })
}

/// Reads the paths of a page of files; those of a renamed file are both in it.
pub fn changed_files(host: GitHost, answer: &Value) -> Vec<String> {
    let keys = match host {
        GitHost::GitHub | GitHost::Gitea => ["filename", "previous_filename"],
        GitHost::GitLab => ["new_path", "old_path"],
    };
    let mut paths: Vec<String> = items(answer)
        .flat_map(|item| keys.map(|key| item[key].as_str().map(str::to_owned)))
        .flatten()
        .filter(|path| !path.is_empty())
        .collect();
    paths.dedup();
    paths
}

/// Reads a page of comments.
pub fn comments(host: GitHost, answer: &Value) -> Vec<HostComment> {
    let author = if host == GitHost::GitLab { "/author/username" } else { "/user/login" };
    let read = |item: &Value| {
        Some(HostComment {
            id: item["id"].as_u64()?,
            author: item.pointer(author)?.as_str()?.to_owned(),
            text: item["body"].as_str()?.to_owned(),
        })
    };
    items(answer).filter_map(read).collect()
}

impl HostComment {
    /// True for the comment of this author that begins with the marker. Anyone may write a marker,
    /// so the author counts as well.
    pub fn is_own(&self, author: &str, marker: &str) -> bool {
        self.author == author && self.text.lines().next().map(str::trim_end) == Some(marker)
    }
}

fn items(answer: &Value) -> impl Iterator<Item = &Value> {
    answer.as_array().into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn pull_requests_are_read_as_each_host_writes_them() {
        let sha = "1f0c".repeat(10);
        let hub = |head: Value, base: Value| {
            json!({"number": 7, "title": "x", "labels": [{"name": "plan"}, {"name": "b"}],
                "head": {"sha": sha, "repo": head}, "base": {"ref": "main", "repo": base}})
        };
        let one = json!({"id": 1});
        let lab = json!({"iid": 7, "sha": sha, "target_branch": "main", "labels": ["plan"],
            "source_project_id": 1, "target_project_id": 1});
        for (host, item, fork) in [
            (GitHost::GitHub, hub(one.clone(), one.clone()), false),
            (GitHost::Gitea, hub(json!({"id": 2}), one.clone()), true),
            (GitHost::GitHub, hub(Value::Null, one), true),
            (GitHost::GitHub, hub(Value::Null, Value::Null), true),
            (GitHost::GitLab, lab, false),
        ] {
            let read = open_requests(host, &json!([item.clone()]));
            let [read] = read.as_slice() else { panic!("{item}") };
            assert_eq!(
                (read.number, &*read.head, &*read.base_branch, read.is_fork),
                (7, &*sha, "main", fork)
            );
            assert_eq!(read.labels[0], "plan");
        }
        for wrong in [
            json!({"iid": "7", "sha": sha, "target_branch": "main"}),
            json!({"iid": 7, "sha": "../x", "target_branch": "main"}),
            json!({"iid": 7, "target_branch": "main"}),
            json!("text"),
        ] {
            assert!(open_requests(GitHost::GitLab, &json!([wrong])).is_empty());
        }
        assert!(open_requests(GitHost::GitHub, &json!({"message": "Not Found"})).is_empty());
        let files = json!([{"filename": "a"}, {"filename": "c", "previous_filename": "b"}, {"filename": 3}]);
        assert_eq!(changed_files(GitHost::GitHub, &files), ["a", "c", "b"]);
        let files = json!([{"new_path": "a", "old_path": "a"}, {"new_path": "c", "old_path": "b"}]);
        assert_eq!(changed_files(GitHost::GitLab, &files), ["a", "c", "b"]);
    }

    #[test]
    fn only_a_comment_of_the_own_account_is_edited() {
        let marker = "<!-- moorline-plan: c/n/s -->";
        let page = json!([
            {"id": 1, "user": {"login": "eve"}, "body": format!("{marker}\nmine")},
            {"id": 2, "user": {"login": "bot"}, "body": format!("see\n{marker}")},
            {"id": 3, "user": {"login": "bot"}, "body": format!("{marker}\r\nplan")},
            {"id": 4, "user": null, "body": marker},
        ]);
        let own: Vec<u64> = comments(GitHost::GitHub, &page)
            .iter()
            .filter(|it| it.is_own("bot", marker))
            .map(|it| it.id)
            .collect();
        assert_eq!(own, [3]);
    }
}
