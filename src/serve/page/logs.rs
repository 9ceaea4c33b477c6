//! The page of a log: the last lines of a container, and links to other parts of it.
//!
//! In: a query, and text that [`super::LogText`] made. Out: a page, or the reason why there is no
//! log, with the command of kubectl for it.

use std::time::Duration;

use super::html::Html;
use super::live_route::LiveView;
use super::routes::query_value;
use super::{layout, tree};
use crate::duration;
use crate::report::board::{StatusBoard, SyncCard};
use crate::report::live_tree::{ContainerRole, PodName, PodSummary};

/// The most lines of a log that is not followed.
pub const MAX_LINES: usize = 2000;
/// The most bytes of a log that is not followed.
pub const MAX_BYTES: usize = 1 << 20;
/// The longest time back.
const MAX_SINCE: Duration = Duration::from_secs(7 * 24 * 3600);
/// The times back that the page offers.
const OFFERED: [&str; 3] = ["10m", "1h", "24h"];

/// The part of a log that a viewer asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogSelection {
    /// The container.
    pub container: String,
    /// True for the run before the current one.
    pub previous: bool,
    /// True to continue as the container writes.
    pub follow: bool,
    /// The time back, as text and in seconds, if given.
    pub since: Option<(String, u64)>,
}

/// The text of a log, or the reason why there is none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LogContent<'a> {
    /// Its last lines; true if older ones are missing.
    Read(&'a str, bool),
    /// The viewer has not signed in.
    SignInNeeded,
    /// The viewer may not read it.
    Forbidden,
    /// It was not read.
    NotRead(&'a str),
}

impl LogSelection {
    /// Parses a query; the container has to be one of the Pod, by default the first main one.
    pub fn parse(query: &str, pod: &PodSummary) -> Option<Self> {
        let get = |name| query_value(query, name).unwrap_or_default();
        let asked = get("container");
        let is_it = |container: &&crate::report::live_tree::ContainerSummary| match asked.as_str() {
            "" => container.role == ContainerRole::Main,
            asked => *container.name == *asked,
        };
        let container = pod.containers.iter().find(is_it)?.name.to_string();
        let is_set = |name| matches!(get(name).as_str(), "true" | "1");
        let since = get("since");
        let seconds = duration::parse(&since).map(|time| time.min(MAX_SINCE).as_secs().max(1));
        Some(Self {
            container,
            previous: is_set("previous"),
            follow: is_set("follow"),
            since: seconds.map(|seconds| (since, seconds)),
        })
    }

    /// The command that shows the same.
    pub fn command(&self, pod: &PodName) -> String {
        let mut command = format!("kubectl logs -n {} {} -c {}", pod.namespace, pod.name, self.container);
        for (flag, is_set) in [(" --previous", self.previous), (" --follow", self.follow)] {
            command.push_str(if is_set { flag } else { "" });
        }
        if let Some((since, _)) = &self.since {
            command.push_str(&format!(" --since={since}"));
        }
        command
    }
}

/// Renders a log.
pub fn logs_page(
    board: &StatusBoard,
    card: &SyncCard,
    (pod, summary): (&PodName, &PodSummary),
    asked: &LogSelection,
    content: &LogContent<'_>,
) -> String {
    let name = card.name.to_string();
    let mut html = tree::begin(board, card, &name, &format!("Log of {pod}"));
    html.open("section", &[("id", "log")]);
    html.element("h1", &[], &format!("Log of {}", asked.container));
    html.open("p", &[("class", "quiet")]);
    html.text("Pod ");
    html.link(&LiveView::Pod(pod.clone()).link(&card.name), &[], &pod.to_string());
    html.close();
    match content {
        LogContent::Read(text, is_cut) => {
            choices(&mut html, card, (pod, summary), asked);
            if *is_cut {
                let bound =
                    format!("Only the last {MAX_LINES} lines, and of them the last 1 MiB, are shown.");
                html.element("p", &[("class", "quiet")], &bound);
            }
            if text.is_empty() {
                html.element("p", &[], "The container has written nothing here.");
            } else {
                html.open("pre", &[("tabindex", "0"), ("role", "region"), ("aria-label", "Log")]);
                html.text(text);
                html.close();
            }
        }
        LogContent::SignInNeeded => refusal(&mut html, "Sign in to read logs.", &asked.command(pod)),
        LogContent::Forbidden => {
            let text = format!("You may not get pods/log in the namespace {}.", pod.namespace);
            refusal(&mut html, &text, &asked.command(pod));
        }
        LogContent::NotRead(why) => {
            refusal(&mut html, &format!("It was not read: {why}"), &asked.command(pod));
        }
    }
    html.close();
    let place = LiveView::Logs(pod.clone()).link(&card.name).json();
    let place = place.with_query(&queries(asked, &asked.container));
    layout::end_page(html, board, Some(&place))
}

fn refusal(html: &mut Html, text: &str, command: &str) {
    html.element("p", &[], text);
    html.element("p", &[], "The same with kubectl:");
    html.open("pre", &[]);
    html.text(command);
    html.close();
}

/// The query of a selection.
fn queries<'a>(asked: &'a LogSelection, container: &'a str) -> [(&'static str, &'a str); 3] {
    let since = asked.since.as_ref().map_or("", |(text, _)| text);
    [("container", container), ("previous", if asked.previous { "true" } else { "" }), ("since", since)]
}

/// Writes links to other containers and to other parts of the log.
fn choices(html: &mut Html, card: &SyncCard, (pod, summary): (&PodName, &PodSummary), asked: &LogSelection) {
    let place = || LiveView::Logs(pod.clone()).link(&card.name);
    html.open("nav", &[("class", "pages"), ("aria-label", "Parts of the log")]);
    for container in summary.containers.iter().filter(|container| *container.name != *asked.container) {
        let query = [("container", &*container.name)];
        html.link(&place().with_query(&query), &[], &format!("container {}", container.name));
    }
    let other = LogSelection { previous: !asked.previous, follow: false, ..asked.clone() };
    let word = if asked.previous { "current run" } else { "previous run" };
    html.link(&place().with_query(&queries(&other, &asked.container)), &[], word);
    for since in OFFERED {
        let other = LogSelection { since: Some((since.to_owned(), 0)), ..asked.clone() };
        html.link(&place().with_query(&queries(&other, &asked.container)), &[], &format!("last {since}"));
    }
    if asked.since.is_some() {
        let other = LogSelection { since: None, ..asked.clone() };
        html.link(&place().with_query(&queries(&other, &asked.container)), &[], "all times");
    }
    let mut follow = queries(asked, &asked.container).to_vec();
    follow.push(("follow", "true"));
    html.link(&place().with_query(&follow), &[], "follow");
    html.close();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::live_tree::ContainerSummary;

    #[test]
    fn only_a_container_of_the_pod_is_asked_for() {
        let container = |name: &str, role| ContainerSummary {
            name: name.into(),
            role,
            image: Box::default(),
            ready: true,
            restarts: 0,
            state: "running",
            reason: Box::default(),
            started: None,
            last_end: None,
        };
        let pod = PodSummary {
            containers: vec![container("load", ContainerRole::Init), container("web", ContainerRole::Main)],
            ..PodSummary::default()
        };
        let name = PodName { namespace: "shop".into(), name: "web-1".into() };
        let base = "kubectl logs -n shop web-1 -c";
        for (query, expect) in [
            ("", Some(format!("{base} web"))),
            ("container=load&previous=true", Some(format!("{base} load --previous"))),
            ("follow=1&since=90m&previous=no", Some(format!("{base} web --follow --since=90m"))),
            ("since=%3Breboot", Some(format!("{base} web"))),
            ("container=other", None),
            ("container=web%20--all", None),
        ] {
            let asked = LogSelection::parse(query, &pod);
            assert_eq!(asked.map(|asked| asked.command(&name)), expect, "{query}");
        }
        let since = |query| LogSelection::parse(query, &pod).unwrap().since.map(|(_, seconds)| seconds);
        assert_eq!((since("since=90m"), since("since=9000h")), (Some(5400), Some(7 * 24 * 3600)));
    }
}
