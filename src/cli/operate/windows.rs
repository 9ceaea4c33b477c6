//! `moorline windows`: lists the change windows of a cluster with their state now.

use anyhow::bail;
use clap::Args;
use jiff::Timestamp;

use super::super::Streams;
use super::super::exit::Exit;
use super::table::table;
use super::{on_cluster, write};
use crate::api::WindowEffect;
use crate::cluster::change_windows::WindowKind;
use crate::cluster::{Connection, Lookup};
use crate::windows::CompiledWindow;

/// Show the change windows, if each is on now, and when that changes
///
/// While it is on, an Allow lets new revisions in, and a Deny holds them. A window that cannot be
/// read is closed.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  moorline windows
  kubectl get changewindows,namespacechangewindows -A")]
pub(in super::super) struct WindowsArgs {}

pub(in super::super) fn run(_: &WindowsArgs, streams: &mut Streams<'_>) -> anyhow::Result<Exit> {
    on_cluster(async |connection| {
        let mut windows = Vec::new();
        for kind in [WindowKind::Cluster, WindowKind::Namespace] {
            windows.extend(list(&connection, kind).await?);
        }
        if windows.is_empty() {
            streams.say("there are no change windows: new revisions are taken up at any time");
            return Ok(Exit::Done);
        }
        write(&lines(&windows, Timestamp::now()), streams)?;
        let is_readable = windows.iter().all(|window| window.problem().is_none());
        Ok(if is_readable { Exit::Done } else { Exit::Failure })
    })
}

async fn list(connection: &Connection, kind: WindowKind) -> anyhow::Result<Vec<CompiledWindow>> {
    let path = format!("/apis/moorline.dev/v1alpha1/{}", kind.plural());
    match connection.look_up(&path).await {
        Lookup::Found(list) => {
            Ok(list["items"].as_array().into_iter().flatten().map(CompiledWindow::read).collect())
        }
        Lookup::Missing => Ok(Vec::new()),
        Lookup::Forbidden => bail!("you may not list {}.moorline.dev", kind.plural()),
        Lookup::Failed(cause) => bail!("{cause}"),
    }
}

/// A line for each window.
fn lines(windows: &[CompiledWindow], now: Timestamp) -> String {
    let head = ["NAMESPACE", "NAME", "EFFECT", "NOW", "CHANGES", "REASON"];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    rows.extend(windows.iter().map(|window| {
        let effect = match window.effect() {
            WindowEffect::Allow => "Allow",
            WindowEffect::Deny => "Deny",
        };
        let (is_on, until) = window.state(now);
        let state = match (window.problem(), is_on) {
            (Some(_), _) => "closed",
            (None, true) => "on",
            (None, false) => "off",
        };
        let changes = until.map_or_else(|| "never".to_owned(), |until| window.display_time(until));
        let why = window.problem().or_else(|| window.reason()).unwrap_or_default();
        let cells = [window.namespace().unwrap_or_default(), window.name(), effect, state, &changes, why];
        cells.map(str::to_owned).to_vec()
    }));
    table(&rows)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn each_window_has_its_state_and_its_next_edge() {
        let window =
            |metadata: Value, spec: Value| CompiledWindow::read(&json!({"metadata": metadata, "spec": spec}));
        let night = json!({"effect": "Allow", "schedule": "0 22 * * *", "duration": "8h", "timeZone": "Europe/Berlin"});
        let all = [
            window(json!({"name": "nightly"}), night),
            window(json!({"name": "freeze"}), json!({"effect": "Deny", "reason": "end of year"})),
            window(json!({"name": "own", "namespace": "shop"}), json!({"effect": "Never"})),
        ];
        let text = lines(&all, "2026-11-27T21:30Z".parse().unwrap());
        let rows: Vec<Vec<&str>> = text
            .lines()
            .map(|line| line.split("  ").map(str::trim).filter(|it| !it.is_empty()).collect())
            .collect();
        assert_eq!(rows[1], ["nightly", "Allow", "on", "2026-11-28 06:00 Europe/Berlin"]);
        assert_eq!(rows[2], ["freeze", "Deny", "on", "never", "end of year"]);
        assert_eq!(rows[3][..5], ["shop", "own", "Deny", "closed", "never"]);
    }
}
