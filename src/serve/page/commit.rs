//! Writes revisions for people, with a link to the commit.
//!
//! In: a revision such as `main@1f0c…` and the address of its repository. Out: a short text, and
//! the web page of the commit for hosts that are known, or whose names say which software runs
//! there. Other hosts get no link.

use crate::api::{split_chart, split_mounts};

use super::html::Html;
use super::routes::Link;

/// The number of characters of a short commit id or digest.
const SHORT: usize = 8;

/// Writes a revision; `none` for an empty one.
pub(crate) fn write_revision(html: &mut Html, url: &str, revision: &str) {
    if revision.is_empty() {
        return html.element("span", &[("class", "quiet")], "none");
    }
    let (name, commit) = split(revision);
    html.open("span", &[("class", "revision"), ("title", revision)]);
    if !name.is_empty() {
        html.text(name);
        html.text(" ");
    }
    let short = short_id(commit);
    match commit_link(url, commit) {
        Some(place) => {
            html.open_link(&place, &[]);
            html.element("code", &[], short);
            html.close();
        }
        None => html.element("code", &[], short),
    }
    if let (_, Some(chart)) = split_chart(revision) {
        html.text(" ");
        html.text(chart.split_once('@').map_or(chart, |(chart, _)| chart));
    }
    for (path, mounted) in split_mounts(revision).1 {
        let id = mounted.rsplit_once('@').map_or(mounted, |(_, id)| id);
        html.text(" ");
        html.text(path);
        html.text(" ");
        html.element("code", &[], short_id(id));
    }
    html.close();
}

/// Returns the first digits of a commit or digest.
fn short_id(id: &str) -> &str {
    let digits = id.strip_prefix("sha256:").unwrap_or(id);
    digits.get(..SHORT).unwrap_or(digits)
}

/// Splits a revision into the name of the ref, which may be empty, and the commit. A chart and
/// mounts are left out.
pub(crate) fn split(revision: &str) -> (&str, &str) {
    let (revision, _) = split_chart(revision);
    revision.rsplit_once('@').unwrap_or(("", revision))
}

/// The web page of a commit.
pub(crate) fn commit_link(url: &str, commit: &str) -> Option<Link> {
    let is_commit = commit.len() >= 40 && commit.bytes().all(|byte| byte.is_ascii_hexdigit());
    let (scheme, rest) = match url.split_once("://")? {
        // An ssh host usually serves its pages over https; the ssh port does not apply there.
        ("ssh", rest) => ("https", rest.split_once('@').map_or(rest, |(_, rest)| rest)),
        ("https", rest) => ("https", rest),
        ("http", rest) => ("http", rest),
        _ => return None,
    };
    let (host, path) = rest.split_once('/')?;
    let host = if scheme == "https" && url.starts_with("ssh") { host.split(':').next()? } else { host };
    let path = path.trim_start_matches("~/").trim_matches('/').trim_end_matches(".git");
    let name = host.split(':').next().unwrap_or(host);
    let is = |word: &str| name.split(['.', '-']).any(|part| part == word);
    let middle = match () {
        () if is("github") => "commit",
        () if is("gitlab") => "-/commit",
        () if is("bitbucket") && name.ends_with("bitbucket.org") => "commits",
        () if is("gitea") || is("forgejo") || is("codeberg") => "commit",
        () => return None,
    };
    is_commit.then_some(())?;
    Link::external(&format!("{scheme}://{host}/{path}/{middle}/{commit}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_commit_is_linked_where_it_is_known_how() {
        let commit = "1f0c".repeat(10);
        for (url, expect) in [
            ("https://github.com/a/b", Some("https://github.com/a/b/commit/")),
            ("https://github.com/a/b.git", Some("https://github.com/a/b/commit/")),
            ("ssh://git@github.com/a/b.git", Some("https://github.com/a/b/commit/")),
            ("ssh://git@gitlab.example.com:2222/a/b/c", Some("https://gitlab.example.com/a/b/c/-/commit/")),
            ("https://bitbucket.org/a/b", Some("https://bitbucket.org/a/b/commits/")),
            ("http://gitea.local:3000/a/b", Some("http://gitea.local:3000/a/b/commit/")),
            ("https://codeberg.org/a/b", Some("https://codeberg.org/a/b/commit/")),
            ("https://git.example.com/a/b", None),
            ("/srv/repository", None),
        ] {
            let expect = expect.map(|front| format!("{front}{commit}"));
            assert_eq!(commit_link(url, &commit).map(|place| place.as_str().to_owned()), expect, "{url}");
        }
        assert_eq!(commit_link("https://github.com/a/b", "main"), None);
    }

    #[test]
    fn a_revision_is_short_and_whole_in_its_title() {
        let mut html = Html::default();
        let commit = "1f0c".repeat(10);
        write_revision(&mut html, "https://git.example.com/a", &format!("main@{commit}"));
        assert_eq!(
            html.finish(),
            format!("<span class=\"revision\" title=\"main@{commit}\">main <code>1f0c1f0c</code></span>")
        );
        let mut html = Html::default();
        write_revision(&mut html, "https://git.example.com/a", &format!("{commit}+a/b/:main@{commit}"));
        assert!(html.finish().ends_with("<code>1f0c1f0c</code> a/b <code>1f0c1f0c</code></span>"));
        let (mut html, digest) = (Html::default(), "1f0c".repeat(16));
        write_revision(&mut html, "oci://registry.example.com/a", &format!("v1@sha256:{digest}"));
        assert_eq!(
            html.finish(),
            format!("<span class=\"revision\" title=\"v1@sha256:{digest}\">v1 <code>1f0c1f0c</code></span>")
        );
    }
}
