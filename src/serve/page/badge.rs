//! Badges for states: a label with a sign, never a colour alone.

use super::html::Html;
use crate::report::board::{ClusterState, ObjectHealth, ObjectState, SyncState};

/// Writes the state of a Sync.
pub(crate) fn sync(html: &mut Html, state: SyncState) {
    let (class, sign) = sync_style(state);
    badge(html, class, sign, state.title(), state.meaning());
}

/// The CSS class and the sign of a state.
pub(crate) fn sync_style(state: SyncState) -> (&'static str, &'static str) {
    match state {
        SyncState::Failing => ("bad", "✕"),
        SyncState::PendingDecision => ("ask", "?"),
        SyncState::Degraded => ("bad", "!"),
        SyncState::Drifted => ("ask", "≠"),
        SyncState::Progressing => ("busy", "…"),
        SyncState::Starting => ("busy", "○"),
        SyncState::Held => ("rest", "■"),
        SyncState::Suspended => ("rest", "‖"),
        SyncState::Synced => ("good", "✓"),
    }
}

/// Writes the state of a cluster.
pub(crate) fn cluster(html: &mut Html, state: ClusterState) {
    let (class, sign, word) = match state {
        ClusterState::OtherCluster => ("bad", "✕", "Other cluster"),
        ClusterState::Refused => ("bad", "✕", "Refused"),
        ClusterState::Unreachable => ("bad", "!", "Unreachable"),
        ClusterState::Unknown => ("busy", "○", "Unknown"),
        ClusterState::Reachable => ("good", "✓", "Reachable"),
    };
    badge(html, class, sign, word, state.meaning());
}

/// Writes the state of an object compared with Git.
pub(crate) fn object(html: &mut Html, state: ObjectState, reason: &str) {
    let (class, sign, word) = match state {
        ObjectState::Failed => ("bad", "✕", "Failed"),
        ObjectState::PendingPrune => ("ask", "?", "Pending prune"),
        ObjectState::Drifted => ("ask", "≠", "OutOfSync"),
        ObjectState::Held => ("rest", "‖", "Held"),
        ObjectState::Committed => ("good", "✓", "Synced"),
    };
    badge(html, class, sign, word, reason);
}

/// Writes the health of an object.
pub(crate) fn health(html: &mut Html, health: ObjectHealth) {
    let (class, sign, meaning) = match health {
        ObjectHealth::NoStatus => {
            return html.element(
                "span",
                &[("class", "quiet"), ("title", "this kind reports no health")],
                "–",
            );
        }
        ObjectHealth::NotRead => ("busy", "○", "its status is being read"),
        ObjectHealth::Healthy => ("good", "✓", ""),
        ObjectHealth::Suspended => ("rest", "‖", "suspended by a user"),
        ObjectHealth::Progressing => ("busy", "…", "progressing"),
        ObjectHealth::Unknown => ("ask", "?", "the health cannot be determined"),
        ObjectHealth::Degraded => ("bad", "!", "unhealthy"),
    };
    badge(html, class, sign, health.label(), meaning);
}

fn badge(html: &mut Html, class: &str, sign: &str, word: &str, title: &str) {
    let class = format!("badge {class}");
    let attributes: [(&'static str, &str); 2] = [("class", &class), ("title", title)];
    html.open("span", if title.is_empty() { &attributes[..1] } else { &attributes });
    html.element("span", &[("aria-hidden", "true")], sign);
    html.text(" ");
    html.text(word);
    html.close();
}
