//! A person who looks at the board, and what this person may do there.
//!
//! In: decisions about rights. Out: [`BoardViewer`], which pages read to offer actions.

use std::collections::BTreeSet;

/// A person who signed in.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BoardViewer {
    /// The name that actions are recorded with.
    pub user: String,
    /// The token of the session for forms.
    pub token: String,
    /// True if the person can sign out.
    pub signs_out: bool,
    /// Verbs on the Syncs of the namespace that is shown.
    pub verbs: BTreeSet<&'static str>,
    /// True if the person may restart the workload that is shown.
    pub restarts: bool,
}

impl BoardViewer {
    /// True if the person has a verb on the Sync that is shown.
    pub fn may(&self, verb: &str) -> bool {
        self.verbs.contains(verb)
    }
}
