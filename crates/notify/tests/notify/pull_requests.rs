//! The requests about pull requests, byte by byte, as the documentation of each host has them.

use moorline_identity::{ExchangeRequest, SecretText};
use moorline_notify::Service;
use moorline_notify::pull_requests::{CheckState, ListPage, PullRequestHost};

const COMMIT: &str = "1f0c9a77be2d1c3f4a5b6c7d8e9f0a1b2c3d4e5f";
const HUB: &str =
    "authorization: Bearer t0k\nx-github-api-version: 2022-11-28\naccept: application/vnd.github+json\n";
const LAB: &str = "private-token: t0k\naccept: application/json\n";
const TEA: &str = "authorization: token t0k\naccept: application/json\n";
const JSON: &str = "content-type: application/json\n";

/// The request as it goes over the wire.
fn wire(request: &ExchangeRequest) -> String {
    let headers: String =
        request.headers.iter().map(|(name, value)| format!("{name}: {}\n", value.as_str())).collect();
    let method = format!("{:?}", request.method).to_uppercase();
    format!("{method} {}\n{headers}\n{}", request.url, request.body.as_str())
}

#[test]
fn each_host_gets_the_requests_of_its_documentation() {
    let token = SecretText::new("t0k".to_owned());
    let host = |service, api, repository| PullRequestHost { service, api, repository, token: &token };
    let hub = host(Service::Github, "https://api.github.com", "shop/deploy");
    let lab = host(Service::Gitlab, "https://gitlab.example.com/api/v4/", "group/sub/deploy");
    let tea = host(Service::Gitea, "https://git.example.com/api/v1", "shop/deploy");
    let at = |page| ListPage { page, size: 32 };
    let check = |of: PullRequestHost<'_>, state, link| {
        of.set_check((COMMIT, state), ("moorline/plan/p/n/s", "2 to create"), link)
    };
    let (of_hub, of_tea) =
        ("https://api.github.com/repos/shop/deploy", "https://git.example.com/api/v1/repos/shop/deploy");
    let of_lab = "https://gitlab.example.com/api/v4/projects/group%2Fsub%2Fdeploy";
    for (request, expect) in [
        (hub.user(), format!("GET https://api.github.com/user\n{HUB}\n")),
        (lab.user(), format!("GET https://gitlab.example.com/api/v4/user\n{LAB}\n")),
        (tea.user(), format!("GET https://git.example.com/api/v1/user\n{TEA}\n")),
        (
            hub.list_open(at(1), Some("W/\"ab\"")),
            format!(
                "GET {of_hub}/pulls?state=open&sort=updated&direction=desc&per_page=32&page=1\n{HUB}if-none-match: W/\"ab\"\n\n"
            ),
        ),
        (
            lab.list_open(at(2), None),
            format!(
                "GET {of_lab}/merge_requests?state=opened&order_by=updated_at&sort=desc&per_page=32&page=2\n{LAB}\n"
            ),
        ),
        (
            tea.list_open(at(1), Some("a\r\nx: y")),
            format!("GET {of_tea}/pulls?state=open&sort=recentupdate&limit=32&page=1\n{TEA}\n"),
        ),
        (hub.list_files(7, 1), format!("GET {of_hub}/pulls/7/files?per_page=50&page=1\n{HUB}\n")),
        (lab.list_files(7, 1), format!("GET {of_lab}/merge_requests/7/diffs?per_page=50&page=1\n{LAB}\n")),
        (tea.list_files(7, 3), format!("GET {of_tea}/pulls/7/files?limit=50&page=3\n{TEA}\n")),
        (hub.list_comments(7, at(1)), format!("GET {of_hub}/issues/7/comments?per_page=32&page=1\n{HUB}\n")),
        (
            lab.list_comments(7, at(1)),
            format!(
                "GET {of_lab}/merge_requests/7/notes?sort=asc&order_by=created_at&per_page=32&page=1\n{LAB}\n"
            ),
        ),
        (tea.list_comments(7, at(1)), format!("GET {of_tea}/issues/7/comments\n{TEA}\n")),
        (
            hub.create_comment(7, "a\n\"b\""),
            format!("POST {of_hub}/issues/7/comments\n{HUB}{JSON}\n{{\"body\":\"a\\n\\\"b\\\"\"}}"),
        ),
        (
            lab.create_comment(7, "a"),
            format!("POST {of_lab}/merge_requests/7/notes\n{LAB}{JSON}\n{{\"body\":\"a\"}}"),
        ),
        (
            tea.create_comment(7, "a"),
            format!("POST {of_tea}/issues/7/comments\n{TEA}{JSON}\n{{\"body\":\"a\"}}"),
        ),
        (
            hub.edit_comment(7, 99, "a"),
            format!("PATCH {of_hub}/issues/comments/99\n{HUB}{JSON}\n{{\"body\":\"a\"}}"),
        ),
        (
            lab.edit_comment(7, 99, "a"),
            format!("PUT {of_lab}/merge_requests/7/notes/99\n{LAB}{JSON}\n{{\"body\":\"a\"}}"),
        ),
        (
            tea.edit_comment(7, 99, "a"),
            format!("PATCH {of_tea}/issues/comments/99\n{TEA}{JSON}\n{{\"body\":\"a\"}}"),
        ),
        (
            check(hub, CheckState::Failure, None),
            format!(
                "POST {of_hub}/statuses/{COMMIT}\n{HUB}{JSON}\n{{\"context\":\"moorline/plan/p/n/s\",\"description\":\"2 to create\",\"state\":\"failure\"}}"
            ),
        ),
        (
            check(lab, CheckState::Failure, Some("https://host/")),
            format!(
                "POST {of_lab}/statuses/{COMMIT}\n{LAB}{JSON}\n{{\"description\":\"2 to create\",\"name\":\"moorline/plan/p/n/s\",\"state\":\"failed\",\"target_url\":\"https://host/\"}}"
            ),
        ),
        (
            check(tea, CheckState::Success, None),
            format!(
                "POST {of_tea}/statuses/{COMMIT}\n{TEA}{JSON}\n{{\"context\":\"moorline/plan/p/n/s\",\"description\":\"2 to create\",\"state\":\"success\"}}"
            ),
        ),
    ] {
        assert_eq!(wire(&request), expect);
    }
}
