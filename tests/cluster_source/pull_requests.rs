//! Plans of pull requests by the daemon: one comment that is edited, on each host; what a fork gets;
//! and the time from a webhook to the comment.

mod host;
mod limits;

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use moorline::report::pull_request::{GroupSubject, group_marker};
use moorline_test_support::daemon::{Daemon, until, until_within};
use moorline_test_support::rest::send_request;
use moorline_test_support::scene::{Scene, config_map, many};
use moorline_test_support::under_load::under_load;
use serde_json::{Value, json};

use host::{BOT, BROKEN, Host, Proposal};

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
/// The Syncs; the last one has its plan in the comment of another one's host.
const SYNCS: [&str; 4] = ["github", "gitlab", "gitea", "both"];
const SECRET: &str = "planted-webhook-secret";
/// Objects of the large Sync.
const LARGE: usize = 1000;
/// Time from a webhook to the comment, on a machine that may be busy with other tests.
const PATIENCE: Duration = Duration::from_secs(30);
/// Time limit that the project sets itself, from the webhook to the comment.
const PLAN_BAR: Duration = Duration::from_secs(5);

async fn create(scene: &Scene, path: &str, object: Value) {
    let uri = format!("{}?fieldManager=tests&force=true", path.replace("NS", &scene.namespace));
    let request = http::Request::patch(uri).header("Content-Type", "application/apply-patch+yaml");
    let request = request.body(object.to_string().into_bytes()).unwrap();
    scene.admin.request::<Value>(request).await.unwrap();
}

/// Creates the kind and the Secret, and serves the hosts.
async fn set_up(scene: &Scene, hosts: &[Host]) {
    let answering = hosts.to_vec();
    scene.git.rule(move |request| {
        answering
            .iter()
            .find_map(|host| host.answer(request))
            .unwrap_or(moorline_test_support::git_server::Reply::Git)
    });
    let definition = moorline::api::notifier_definition().unwrap();
    create(scene, &format!("{DEFINITIONS}/notifiers.moorline.dev"), definition).await;
    until("Notifiers are served", async || {
        let path = "/apis/moorline.dev/v1alpha1/notifiers";
        send_request(&scene.admin, "GET", path, json!(null)).await.ok()
    })
    .await;
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "host"},
        "stringData": {"token": "planted-token"},
    });
    create(scene, "/api/v1/namespaces/NS/secrets/host", secret).await;
    std::os::unix::fs::symlink(".", scene.root.path().join("team")).unwrap();
}

/// Creates the Notifier of a host for some Syncs.
async fn notifier(scene: &Scene, service: &str, syncs: &[&str]) {
    let url = format!("http://127.0.0.1:{}/{service}", scene.git.port);
    let notifier = json!({
        "apiVersion": "moorline.dev/v1alpha1", "kind": "Notifier", "metadata": {"name": service},
        "spec": {
            service: {"url": url, "secretRef": {"name": "host"}}, "transitions": ["Failed"],
            "syncs": {"names": syncs}, "pullRequests": {"label": "plan"},
        },
    });
    create(scene, &format!("/apis/moorline.dev/v1alpha1/namespaces/NS/notifiers/{service}"), notifier).await;
}

/// Pushes files as a pull request, and returns its commit.
fn propose(scene: &Scene, number: u64, files: &[(&str, &str)]) -> String {
    scene.work.git(&["checkout", "-q", "-B", "proposal", "main"]);
    let head = scene.work.commit(files);
    scene.work.git(&["push", "-q", "-f", "origin", &format!("HEAD:refs/pull/{number}/head")]);
    scene.work.git(&["checkout", "-q", "main"]);
    head
}

/// A kustomization with a chart from elsewhere.
fn elsewhere(scene: &Scene) -> String {
    let repo = format!("http://127.0.0.1:{}/charts", scene.git.port);
    json!({
        "metadata": {"annotations": {"moorline.dev/digest.web-1.2.3": format!("sha256:{}", "1".repeat(64))}},
        "helmCharts": [{"name": "web", "version": "1.2.3", "repo": repo}],
    })
    .to_string()
}

/// A pointer of Git LFS.
fn pointer() -> String {
    format!("version https://git-lfs.github.com/spec/v1\noid sha256:{}\nsize 12\n", "2".repeat(64))
}

fn daemon(scene: &Scene) -> Daemon {
    let secret = scene.root.path().join("webhook-secret");
    std::fs::write(&secret, SECRET).unwrap();
    let secret = secret.display().to_string();
    scene.daemon_with(&["--leader-election=false", "--cluster-name", "lab", "--webhook-secret-file", &secret])
}

/// Sends the webhook of a pull request, as GitLab does.
fn call(scene: &Scene, daemon: &Daemon) {
    let url = scene.git.url("team/repository.git");
    let body = json!({"object_kind": "merge_request", "project": {"git_http_url": url}}).to_string();
    let mut stream = TcpStream::connect(daemon.address().unwrap()).unwrap();
    let length = body.len();
    let head = format!(
        "POST /hooks/gitlab HTTP/1.1\r\nHost: a\r\nX-Gitlab-Token: {SECRET}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(format!("{head}{body}").as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 202"), "{answer}");
}

/// Sends a webhook, and waits until each host was asked twice more: what the first visit does is
/// done then.
async fn visit_twice(scene: &Scene, daemon: &Daemon, hosts: &[Host]) {
    for _ in 0..2 {
        let lists = |host: &Host| {
            let state = host.state.lock().unwrap();
            state
                .heard
                .iter()
                .filter(|(_, path, _)| path.ends_with("pulls") || path.ends_with("requests"))
                .count()
        };
        let before: Vec<usize> = hosts.iter().map(lists).collect();
        call(scene, daemon);
        until("each host is asked", async || {
            hosts.iter().zip(&before).all(|(host, before)| lists(host) > *before).then_some(())
        })
        .await;
    }
}

/// Four open pull requests: the files of the first cannot be read, the second touches all Syncs,
/// the third none, the fourth is of a fork.
struct Proposals {
    broken: Proposal,
    touching: Proposal,
    beside: Proposal,
    fork: Proposal,
}

impl Proposals {
    fn new(scene: &Scene, all: &[(&str, &str)]) -> Self {
        let proposal = |number, head, files: &[&'static str], is_fork| {
            let (labels, files) = (Vec::new(), files.to_vec());
            Proposal { number, head, is_fork, labels, files }
        };
        let paths = ["github/github.json", "gitlab/gitlab.json", "gitea/gitea.json", "both/both.json"];
        let beside = propose(scene, 8, &[("other/a.json", "x: [")]);
        Self {
            broken: proposal(BROKEN, "0".repeat(40), &[], false),
            touching: proposal(7, propose(scene, 7, all), &paths, false),
            beside: proposal(8, beside, &["other/a.json"], false),
            fork: proposal(9, propose(scene, 9, all), &paths, true),
        }
    }

    fn show(&self, hosts: &[Host]) {
        let open = [&self.broken, &self.touching, &self.beside, &self.fork].map(Proposal::clone);
        hosts.iter().for_each(|host| host.set_open(&open));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pull_request_has_one_comment_that_is_edited() {
    let scene = Scene::on_sandbox("plans").await;
    let hosts = ["github", "gitlab", "gitea"].map(Host::new);
    set_up(&scene, &hosts).await;
    let files = |value: &str| SYNCS.map(|name| (format!("{name}/{name}.json"), config_map(name, value)));
    let first = scene.push(&files("1"));
    let daemon_of_scene = daemon(&scene);
    for name in SYNCS {
        let url = scene.git.url("team/repository.git");
        scene.sync(name, json!({"path": name, "source": {"git": {"url": url}}})).await;
        scene.until_ready(name, &first).await;
    }
    let all = files("2");
    let all: Vec<(&str, &str)> = all.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    let mut proposals = Proposals::new(&scene, &all);
    proposals.show(&hosts);
    for host in &hosts {
        // A stranger has the marker as well.
        let of =
            GroupSubject { cluster: "lab", namespace: &scene.namespace, notifier: host.service, head: "" };
        host.state.lock().unwrap().comments.push((7, "eve".to_owned(), group_marker(&of)));
        notifier(&scene, host.service, host.syncs()).await;
    }
    for host in &hosts {
        until(&format!("{} has the comment", host.service), async || host.comments(7).first().cloned()).await;
    }
    visit_twice(&scene, &daemon_of_scene, &hosts).await;
    hosts.iter().for_each(|host| check_first(&scene, host, &first, &proposals.touching.head));
    edit(&scene, &daemon_of_scene, &hosts, &mut proposals).await;
    restart(&scene, daemon_of_scene, &hosts, proposals).await;
}

/// Checks the first comment and the status, and that nothing is asked for afterwards but the list.
fn check_first(scene: &Scene, host: &Host, base: &str, head: &str) {
    let [text] = &*host.comments(7) else { panic!("{:?}", host.comments(7)) };
    let part = format!("Against `main@{base}`: **1 to update**, 0 as before.");
    assert!(text.contains(&part) && text.contains("`data.key`: `1` → `2`"), "{text}");
    assert!(text.contains(&format!("### Plan of `{head}` on `lab`")), "{text}");
    let syncs = host.syncs();
    assert_eq!(text.matches("#### Sync").count(), syncs.len(), "{text}");
    assert!(host.comments(8).is_empty() && host.comments(9).is_empty());
    let name = if host.service == "gitlab" { "name" } else { "context" };
    let expect = |sync: &&str| {
        let context = format!("moorline/plan/lab/{}/{sync}", scene.namespace);
        let body = json!({"state": "success", name: context, "description": "1 to update, 0 as before"});
        (head.to_owned(), body)
    };
    let expect: Vec<_> = syncs.iter().map(expect).collect();
    assert_eq!(host.state.lock().unwrap().statuses, expect);
    assert_eq!(host.state.lock().unwrap().comments.len(), 2);
    let heard = host.heard();
    let (_, after) = heard.split_at(heard.iter().rposition(|(.., status)| *status != 304).unwrap() + 1);
    assert!(!after.is_empty() && after.iter().all(|(method, ..)| method == "GET"), "{heard:?}");
    assert_eq!(heard.iter().filter(|(method, ..)| method != "GET").count(), syncs.len() + 1, "{heard:?}");
}

/// Pushes a commit that cannot be rendered, and gives the fork its label.
async fn edit(scene: &Scene, daemon: &Daemon, hosts: &[Host; 3], proposals: &mut Proposals) {
    let bad = hosts.clone().map(|host| format!("{0}/{0}.json", host.service));
    let mut bad: Vec<(&str, &str)> = bad.iter().map(|path| (path.as_str(), "a: [`@all`")).collect();
    // Nor is a file of Git LFS, which may be on another host.
    let pointer = pointer();
    bad[0].1 = &pointer;
    // A chart from elsewhere is not fetched.
    let chart = elsewhere(scene);
    bad[2] = ("gitea/kustomization.yaml", &chart);
    proposals.touching.head = propose(scene, 7, &bad);
    proposals.fork.labels.push("plan");
    scene.git.requests();
    proposals.show(hosts);
    visit_twice(scene, daemon, hosts).await;
    for host in hosts {
        let [text] = &*host.comments(7) else { panic!("{:?}", host.comments(7)) };
        let head = &proposals.touching.head;
        assert!(text.contains("This commit cannot be planned:") && text.contains(head), "{text}");
        assert_eq!(text.contains("a chart that comes from elsewhere"), host.service == "gitea", "{text}");
        assert_eq!(text.contains("a file of Git LFS that comes"), host.service == "github", "{text}");
        let statuses = host.state.lock().unwrap().statuses.clone();
        let state = if host.service == "gitlab" { "failed" } else { "failure" };
        assert!(statuses.iter().any(|(on, body)| on == head && body["state"] == state));
        // The label allows the commit of the fork that was seen without it.
        let [text] = &*host.comments(9) else { panic!("{:?}", host.comments(9)) };
        assert!(text.contains(&proposals.fork.head), "{text}");
    }
    let asked = scene.git.requests();
    assert!(
        asked.iter().all(|request| !["charts", "info/lfs"].iter().any(|part| request.path.contains(part))),
        "{asked:?}"
    );
}

/// Pushes to the fork after the label, and restarts the daemon: nothing is written.
async fn restart(scene: &Scene, ended: Daemon, hosts: &[Host; 3], mut proposals: Proposals) {
    let labelled =
        std::mem::replace(&mut proposals.fork.head, propose(scene, 9, &[("github/github.json", "{}")]));
    proposals.show(hosts);
    visit_twice(scene, &ended, hosts).await;
    hosts.iter().for_each(|host| drop(host.heard()));
    ended.signal("KILL");
    drop(ended);
    let daemon = daemon(scene);
    until("it listens", async || daemon.address()).await;
    for host in hosts {
        until("it has read the comments", async || {
            let state = host.state.lock().unwrap();
            state.heard.iter().any(|(_, path, _)| path.contains("/9/")).then_some(())
        })
        .await;
    }
    visit_twice(scene, &daemon, hosts).await;
    for host in hosts {
        let heard = host.heard();
        assert!(heard.iter().all(|(method, ..)| method == "GET"), "{heard:?}");
        assert_eq!((host.comments(7).len(), host.comments(9).len()), (1, 1));
        assert!(host.comments(9)[0].contains(&labelled));
        let users = heard.iter().filter(|(_, path, _)| path == "user").count();
        assert_eq!(users, 1, "{heard:?}");
        assert_ne!(host.state.lock().unwrap().comments[0].1, BOT, "the comment of a stranger stays");
    }
    refuse(scene, &daemon, hosts, proposals).await;
}

/// Refuses the spec of a Sync: it has no plan with what it might use before.
async fn refuse(scene: &Scene, daemon: &Daemon, hosts: &[Host; 3], mut proposals: Proposals) {
    let rule = json!({"group": "apps", "kind": "Deployment", "healthy": "object.status.replicas >"});
    scene.patch_sync("github", json!({"spec": {"health": {"rules": [rule]}}})).await;
    scene.until_reason("github", "SpecInvalid").await;
    let files = ["github", "gitlab"].map(|name| (format!("{name}/{name}.json"), config_map(name, "3")));
    let files: Vec<_> = files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    proposals.touching.head = propose(scene, 7, &files);
    let head = proposals.touching.head.clone();
    proposals.show(hosts);
    visit_twice(scene, daemon, &hosts[1..2]).await;
    let has_head = |host: &Host| host.comments(7)[0].contains(&head);
    assert_eq!([&hosts[0], &hosts[1]].map(has_head), [false, true]);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_plan_of_a_thousand_objects_stands_within_seconds() {
    let scene = Scene::on_sandbox("large-plan").await;
    let host = Host::new("github");
    set_up(&scene, std::slice::from_ref(&host)).await;
    let commit = scene.push(&many(LARGE, "1"));
    let daemon = daemon(&scene);
    let url = scene.git.url("team/repository.git");
    scene.sync("large", json!({"source": {"git": {"url": url}}})).await;
    scene.until_ready("large", &commit).await;
    notifier(&scene, "github", &["large"]).await;
    until("the list is read", async || (!host.heard().is_empty()).then_some(())).await;

    let head = propose(&scene, 7, &[("a-3.json", &config_map("a-3", "2"))]);
    let files = vec!["a-3.json"];
    host.set_open(&[Proposal { number: 7, head, is_fork: false, labels: Vec::new(), files }]);
    tokio::time::sleep(Duration::from_secs(2)).await;
    let begun = Instant::now();
    call(&scene, &daemon);
    let text = until_within(PATIENCE, "the comment stands", async || host.comments(7).first().cloned()).await;
    let took = begun.elapsed();
    assert!(text.contains(&format!("**1 to update**, {} as before.", LARGE - 1)), "{text}");
    check_pages(&scene, &daemon, &host).await;
    println!("the plan of {LARGE} objects stood after {took:?}");
    assert!(took < under_load(PLAN_BAR), "{took:?}");
}

/// Closes a pull request of the third page, and waits until its page was read again.
async fn check_pages(scene: &Scene, daemon: &Daemon, host: &Host) {
    let fork = |number| {
        let head = "0".repeat(40);
        Proposal { number, head, is_fork: true, labels: Vec::new(), files: Vec::new() }
    };
    let mut open: Vec<Proposal> = (100..140).map(fork).collect();
    for closed in 0..2 {
        open.truncate(open.len() - closed);
        host.set_open(&open);
        host.heard();
        call(scene, daemon);
        until("the last page is read", async || {
            let heard = host.heard();
            heard
                .iter()
                .any(|(_, path, status)| path.ends_with("pulls?page=3") && *status == 200)
                .then_some(())
        })
        .await;
    }
}
