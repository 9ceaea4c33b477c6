//! Answers of a host of repositories about pull requests.
//!
//! In: the JSON of an answer.
//! Out: the open pull requests, the paths of their files, and comments. What is not as documented
//! is left out; texts of strangers are only names, numbers and paths.

use serde_json::Value;

use crate::selection::Service;

/// Most labels of one pull request that are read.
const MAX_LABELS: usize = 100;
/// Number of hex digits of a commit.
const COMMIT_DIGITS: usize = 40;
/// Beginning of the references that stand for a pull request without a branch.
const PULL_REFS: &str = "refs/pull/";

/// An open pull request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenRequest {
    /// Its number.
    pub number: u64,
    /// Its newest commit.
    pub head: Box<str>,
    /// The branch that it is to be merged into.
    pub base_branch: Box<str>,
    /// True if the commit was not pushed to a branch of the repository, or if that is not known.
    pub is_fork: bool,
    /// Its labels, which only maintainers set.
    pub labels: Vec<Box<str>>,
    /// The time of its last change, as the host writes it.
    pub updated: Option<Box<str>>,
}

/// A comment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostComment {
    /// Its number.
    pub id: u64,
    /// Its author.
    pub author: Box<str>,
    /// Its text.
    pub text: Box<str>,
}

/// Reads a page of open pull requests.
pub fn open_requests(service: Service, answer: &Value) -> Vec<OpenRequest> {
    items(answer).filter_map(|item| open_request(service, item)).collect()
}

fn open_request(service: Service, item: &Value) -> Option<OpenRequest> {
    let at = |pointer: &str| item.pointer(pointer);
    let text = |pointer: &str| at(pointer).and_then(Value::as_str);
    let (number, head, base, ends) = match service {
        Service::Gitlab => {
            ("/iid", "/sha", "/target_branch", (at("/source_project_id"), at("/target_project_id")))
        }
        _ => ("/number", "/head/sha", "/base/ref", (at("/head/repo/id"), at("/base/repo/id"))),
    };
    let is_commit =
        |text: &&str| text.len() == COMMIT_DIGITS && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    // A repository that was deleted has no id, and null is not the same as null.
    let is_same =
        ends.0.and_then(Value::as_u64).zip(ends.1.and_then(Value::as_u64)).is_some_and(|(a, b)| a == b);
    // With AGit, readers push to `refs/for/…`: such a commit has the repository and no branch.
    let has_branch = service != Service::Gitea
        || text("/head/label").is_some_and(|label| !label.is_empty())
            && text("/head/ref").is_some_and(|name| !name.is_empty() && !name.starts_with(PULL_REFS));
    let label = |label: &Value| label.as_str().or(label["name"].as_str()).map(Box::from);
    Some(OpenRequest {
        number: at(number)?.as_u64()?,
        head: text(head).filter(is_commit)?.into(),
        base_branch: text(base)?.into(),
        is_fork: !is_same || !has_branch,
        labels: at("/labels")
            .map(|all| items(all).filter_map(label).take(MAX_LABELS).collect())
            .unwrap_or_default(),
        updated: text("/updated_at").map(Box::from),
    })
}

/// Reads the paths of a page of files; those of a renamed file are both in it.
pub fn changed_files(service: Service, answer: &Value) -> Vec<Box<str>> {
    let keys = match service {
        Service::Gitlab => ["new_path", "old_path"],
        _ => ["filename", "previous_filename"],
    };
    let mut paths: Vec<Box<str>> = items(answer)
        .flat_map(|item| keys.map(|key| item[key].as_str()))
        .flatten()
        .filter(|path| !path.is_empty())
        .map(Box::from)
        .collect();
    paths.dedup();
    paths
}

/// Reads a page of comments.
pub fn comments(service: Service, answer: &Value) -> Vec<HostComment> {
    let read = |item: &Value| {
        Some(HostComment {
            id: item["id"].as_u64()?,
            author: user_name(
                service,
                item.get(if service == Service::Gitlab { "author" } else { "user" })?,
            )?,
            text: item["body"].as_str()?.into(),
        })
    };
    items(answer).filter_map(read).collect()
}

/// Reads the name of an account.
pub fn user_name(service: Service, account: &Value) -> Option<Box<str>> {
    let name = account.get(if service == Service::Gitlab { "username" } else { "login" })?.as_str()?;
    (!name.is_empty()).then(|| name.into())
}

impl HostComment {
    /// True for the comment of this author that begins with the marker. Anyone may write a marker,
    /// so the author counts as well.
    pub fn is_own(&self, author: &str, marker: &str) -> bool {
        *self.author == *author && self.text.lines().next().map(str::trim_end) == Some(marker)
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
        let lab_of = |source: Value| {
            let mut item = lab.clone();
            item["source_project_id"] = source;
            item
        };
        // Gitea: the branch, the reference, and the repository of the commit.
        let tea = |label: Value, name: Value| {
            let mut item = hub(json!({"id": 1}), json!({"id": 1}));
            item["head"]["label"] = label;
            item["head"]["ref"] = name;
            item
        };
        for (host, item, fork) in [
            (Service::Gitea, tea("feature".into(), "feature".into()), false),
            (Service::Gitea, tea("".into(), "refs/pull/7/head".into()), true),
            (Service::Gitea, tea("".into(), "feature".into()), true),
            (Service::Gitea, tea("feature".into(), "refs/pull/7/head".into()), true),
            (Service::Gitea, tea("feature".into(), "".into()), true),
            (Service::Gitea, tea("feature".into(), Value::Null), true),
            (Service::Gitea, tea(Value::Null, "feature".into()), true),
            (Service::Github, hub(one.clone(), one.clone()), false),
            (Service::Gitea, hub(json!({"id": 2}), one.clone()), true),
            (Service::Github, hub(Value::Null, one), true),
            (Service::Github, hub(Value::Null, Value::Null), true),
            (Service::Gitlab, lab.clone(), false),
            (Service::Gitlab, lab_of(json!(2)), true),
            (Service::Gitlab, lab_of(Value::Null), true),
        ] {
            let read = open_requests(host, &json!([item.clone()]));
            let [read] = read.as_slice() else { panic!("{item}") };
            assert_eq!(
                (read.number, &*read.head, &*read.base_branch, read.is_fork),
                (7, &*sha, "main", fork)
            );
            assert_eq!(&*read.labels[0], "plan");
        }
        for wrong in [
            json!({"iid": "7", "sha": sha, "target_branch": "main"}),
            json!({"iid": 7, "sha": "../x", "target_branch": "main"}),
            json!({"iid": 7, "target_branch": "main"}),
            json!("text"),
        ] {
            assert!(open_requests(Service::Gitlab, &json!([wrong])).is_empty());
        }
        assert!(open_requests(Service::Github, &json!({"message": "Not Found"})).is_empty());
        let files = json!([{"filename": "a"}, {"filename": "c", "previous_filename": "b"}, {"filename": 3}]);
        assert_eq!(changed_files(Service::Github, &files), ["a", "c", "b"].map(Box::<str>::from));
        let files = json!([{"new_path": "a", "old_path": "a"}, {"new_path": "c", "old_path": "b"}]);
        assert_eq!(changed_files(Service::Gitlab, &files), ["a", "c", "b"].map(Box::<str>::from));
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
        let own: Vec<u64> = comments(Service::Github, &page)
            .iter()
            .filter(|it| it.is_own("bot", marker))
            .map(|it| it.id)
            .collect();
        assert_eq!(own, [3]);
    }
}
