//! Tests against the results of Kustomize 5.8.1.

use super::{Remote, split, values, without_password};

/// A repository, a path and a reference.
type Parts = (&'static str, &'static str, &'static str);

/// Entries, and the repository, path and reference that kustomize finds in them.
#[rustfmt::skip]
const RECORDED: &[(&str, Option<Parts>)] = &[
    ("https://git.example.com/org/repo", Some(("https://git.example.com/org/repo", "", ""))),
    ("https://git.example.com/org/repo/", Some(("https://git.example.com/org/repo", "", ""))),
    ("https://git.example.com/org/repo/deploy/prod", Some(("https://git.example.com/org/repo", "deploy/prod", ""))),
    ("https://git.example.com/org/repo//deploy?ref=v1", Some(("https://git.example.com/org/repo", "deploy", "v1"))),
    ("https://git.example.com/a/b/c//deploy?ref=v1&timeout=90s&submodules=false", Some(("https://git.example.com/a/b/c", "deploy", "v1"))),
    ("https://git.example.com/a/b/c.git/deploy?version=v1", Some(("https://git.example.com/a/b/c.git", "deploy", "v1"))),
    ("https://git.example.com/a/b?version=v1&ref=v2", Some(("https://git.example.com/a/b", "", "v2"))),
    ("https://git.example.com/a/b?ref=a%2Fb&x=y", Some(("https://git.example.com/a/b", "", "a/b"))),
    ("https://git.example.com/a/b?ref=a+b", Some(("https://git.example.com/a/b", "", "a b"))),
    ("https://git.example.com/a/b?ref=", Some(("https://git.example.com/a/b", "", ""))),
    ("https://git.example.com/a/b?ref=v1?x=2", Some(("https://git.example.com/a/b", "", "v1?x=2"))),
    ("https://git.example.com/a", None),
    ("https://git.example.com/a/", Some(("https://git.example.com/a/", "", ""))),
    ("https://git.example.com", None),
    ("https://git.example.com/", None),
    ("https:///a/b", Some(("https:///a/b", "", ""))),
    ("https://me@git.example.com/org/project/_git/repo/deploy?ref=v1", Some(("https://me@git.example.com/org/project/_git/repo", "deploy", "v1"))),
    ("https://git.example.com/org/_git/repo//deploy", Some(("https://git.example.com/org/_git/repo", "deploy", ""))),
    ("https://git.example.com/pages.github.io/repo", Some(("https://git.example.com/pages.git", "hub.io/repo", ""))),
    ("https://git.example.com/a/b/../../c", None),
    ("https://git.example.com/a/b//../c", None),
    ("https://git.example.com/a/b//c/../../d", None),
    ("https://git.example.com/a/b//c/../d", Some(("https://git.example.com/a/b", "c/../d", ""))),
    ("https://git.example.com/a/b///c", Some(("https://git.example.com/a/b", "c", ""))),
    ("HTTPS://Git.example.com/A/B", Some(("https://Git.example.com/A/B", "", ""))),
    ("https://git.example.com:8443/a/b", Some(("https://git.example.com:8443/a/b", "", ""))),
    ("git::https://git.example.com/a/b?ref=v1", Some(("https://git.example.com/a/b", "", "v1"))),
    ("GIT::https://git.example.com/a/b", Some(("https://git.example.com/a/b", "", ""))),
    ("git::git.example.com/a/b", None),
    ("git@git.example.com:org/repo.git//deploy?ref=v1", Some(("git@git.example.com:org/repo.git", "deploy", "v1"))),
    ("git@git.example.com:org/repo", Some(("git@git.example.com:org/repo", "", ""))),
    ("git@git.example.com/org/repo", Some(("git@git.example.com/org/repo", "", ""))),
    ("me@git.example.com:org/repo/deploy", Some(("me@git.example.com:org/repo", "deploy", ""))),
    ("ssh://git@git.example.com/org/repo.git?ref=v1", Some(("ssh://git@git.example.com/org/repo.git", "", "v1"))),
    ("ssh://git.example.com:22/org/repo", Some(("ssh://git.example.com:22/org/repo", "", ""))),
    ("github.com/org/repo", Some(("https://github.com/org/repo", "", ""))),
    ("github.com/org/repo/deploy?ref=v1", Some(("https://github.com/org/repo", "deploy", "v1"))),
    ("GitHub.com/org/repo", Some(("https://github.com/org/repo", "", ""))),
    ("github.com:org/repo", Some(("https://github.com/org/repo", "", ""))),
    ("git@github.com:org/repo.git", Some(("git@github.com:org/repo.git", "", ""))),
    ("git@github.com/org/repo", Some(("git@github.com:org/repo", "", ""))),
    ("http://github.com/org/repo", Some(("https://github.com/org/repo", "", ""))),
    ("https://me@github.com/org/repo", Some(("me@github.com:org/repo", "", ""))),
    ("https://www.github.com/org/repo", Some(("https://www.github.com/org/repo", "", ""))),
    ("ssh://git@github.com/org/repo", Some(("git@github.com:org/repo", "", ""))),
    ("ssh://git@github.com:org/repo", None),
    ("github.com", None),
    ("git.example.com/org/repo", None),
    ("file:///srv/repo", Some(("file:///srv/repo", "", ""))),
    ("file:///srv/repo.git//deploy", Some(("file:///srv/repo.git", "deploy", ""))),
    ("/srv/repo", None),
    ("../base", None),
    ("base", None),
    ("base.git", None),
    ("a@b/c/d", Some(("a@b/c/d", "", ""))),
    ("a@b", None),
    ("./me@host:org/repo", None),
    ("host:org/repo", None),
    ("ftp://host/org/repo", None),
    ("https://user:secret@git.example.com/a/b", Some(("https://user:secret@git.example.com/a/b", "", ""))),
    ("https://raw.example.com/org/repo/main/x.yaml", Some(("https://raw.example.com/org/repo", "main/x.yaml", ""))),
    ("https://git.example.com/a/b#c", Some(("https://git.example.com/a/b#c", "", ""))),
    ("https://git.example.com/a/b.git", Some(("https://git.example.com/a/b.git", "", ""))),
    ("https://git.example.com/a/b.gitx/c", Some(("https://git.example.com/a/b.git", "x/c", ""))),
    ("https://git.example.com/a//b", Some(("https://git.example.com/a", "b", ""))),
    ("https://git.example.com//a/b", Some(("https://git.example.com//a", "b", ""))),
    ("", None),
];

#[test]
fn entries_are_taken_apart_as_the_tool_does() {
    for (text, expect) in RECORDED {
        let found = split(text).map(|(repository, path, query)| {
            let values = values(query).unwrap();
            let value = |name: &str| values.get(name).filter(|value| !value.is_empty()).cloned();
            (repository, path, value("ref").or_else(|| value("version")).unwrap_or_default())
        });
        let found =
            found.as_ref().map(|(repository, path, reference)| (&**repository, &**path, &**reference));
        assert_eq!(found, *expect, "{text}");
    }
}

#[test]
fn only_what_needs_no_login_and_is_a_folder_is_fetched() {
    let check = |text: &str, expect: Option<Result<(&str, &str), &str>>| {
        let found = Remote::parse(text);
        match (&found, expect) {
            (None, None) => {}
            (Some(Ok(remote)), Some(Ok((name, path)))) => {
                assert_eq!((&*remote.name(), &*remote.path), (name, path), "{text}")
            }
            (Some(Err(refused)), Some(Err(part))) => {
                assert!(refused.0.contains(part), "{text}: {}", refused.0)
            }
            _ => panic!("{text}: {found:?}"),
        }
    };
    check("https://host/a/b//c?ref=v1", Some(Ok(("https://host/a/b?ref=v1", "c"))));
    check("https://host/a/b?version=v1&timeout=3s", Some(Ok(("https://host/a/b?ref=v1", ""))));
    check("github.com/a/b/c", Some(Ok(("https://github.com/a/b", "c"))));
    check("git@host:a/b", Some(Err("uses ssh")));
    check("github.com:a/b", Some(Ok(("https://github.com/a/b", ""))));
    check("ssh://host/a/b", Some(Err("uses ssh")));
    check("file:///srv/a", Some(Err("disk")));
    check("https://me@host/a/b", Some(Err("user or a password")));
    check("https://me:planted@host/a/b", Some(Err("user or a password")));
    check("https://host/a/b/main/c.yaml", Some(Err("single file")));
    check("https://host/a/b?ref=%zz", Some(Err("query")));
    check("https://host/a/b?ref=a;b=c", Some(Err("query")));
    check("https://host/a", Some(Err("not a URL of a folder")));
    check("ftp://host/a/b", Some(Err("not a URL of a folder")));
    check("../base?ref=v1", Some(Err("not a URL of a folder")));
    check("../base", None);
    check("base.git/x", None);
}

#[test]
fn what_may_be_a_password_is_not_shown() {
    assert_eq!(without_password("https://me:planted@host/a/b@c?ref=x"), "https://…@host/a/b@c?ref=x");
    assert_eq!(without_password("git::https://planted@host/a"), "git::https://…@host/a");
    assert_eq!(without_password("https://host/a@b"), "https://host/a@b");
    assert_eq!(without_password("git@host:a/b"), "git@host:a/b");
}
