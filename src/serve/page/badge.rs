//! Badges for states: a label with a sign, never a colour alone.

use super::html::Html;
use crate::report::board::{HealthWord, ObjectState, State};

/// Writes the state of a Sync.
pub(crate) fn sync(html: &mut Html, state: State) {
    let (class, sign) = look(state);
    badge(html, class, sign, state.word(), state.meaning());
}

/// The CSS class and the sign of a state.
pub(crate) fn look(state: State) -> (&'static str, &'static str) {
    match state {
        State::Failing => ("bad", "✕"),
        State::Waiting => ("ask", "?"),
        State::Unwell => ("bad", "!"),
        State::Drifted => ("ask", "≠"),
        State::Working => ("busy", "…"),
        State::Starting => ("busy", "○"),
        State::Suspended => ("rest", "‖"),
        State::Committed => ("good", "✓"),
    }
}

/// Writes the state of an object compared with Git.
pub(crate) fn object(html: &mut Html, state: ObjectState, reason: &str) {
    let (class, sign, word) = match state {
        ObjectState::Failed => ("bad", "✕", "Failed"),
        ObjectState::Leaving => ("ask", "?", "To delete"),
        ObjectState::Drifted => ("ask", "≠", "Drifted"),
        ObjectState::Held => ("rest", "‖", "Held"),
        ObjectState::Committed => ("good", "✓", "Committed"),
    };
    badge(html, class, sign, word, reason);
}

/// Writes the health of an object.
pub(crate) fn health(html: &mut Html, health: HealthWord) {
    let (class, sign, meaning) = match health {
        HealthWord::Silent => {
            return html.element(
                "span",
                &[("class", "quiet"), ("title", "it has no status of its own")],
                "–",
            );
        }
        HealthWord::Unread => ("busy", "○", "its status is being read"),
        HealthWord::Healthy => ("good", "✓", ""),
        HealthWord::Suspended => ("rest", "‖", "somebody asked it to stop"),
        HealthWord::Progressing => ("busy", "…", "it is on its way"),
        HealthWord::Unknown => ("ask", "?", "nobody can tell"),
        HealthWord::Degraded => ("bad", "!", "it does not work"),
    };
    badge(html, class, sign, health.word(), meaning);
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
