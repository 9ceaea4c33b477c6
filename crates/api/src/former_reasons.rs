//! Reasons that were renamed. A status that an older daemon wrote still has the former ones.

/// Renamed reasons: the former name, and the name now.
pub const FORMER_REASONS: &[(&str, &str)] = &[
    ("BadAnswer", "InvalidResponse"),
    ("GoesAfter", "BlocksPendingPrune"),
    ("HelmUnfenced", "HelmIsolationUnavailable"),
    ("MayBeClaimed", "PossiblyClaimed"),
    ("MayBeOccupied", "PossiblyNotEmpty"),
    ("MayBeScaled", "AutoscalerUnknown"),
    ("NotLeading", "NotLeader"),
    ("Occupied", "NotEmpty"),
    ("OverBudget", "PruneBudgetExceeded"),
    ("OwnKeys", "DaemonKeys"),
    ("RepositoryBadAnswer", "RepositoryInvalidResponse"),
    ("Runs", "HookRunning"),
    ("StillWanted", "StillInGit"),
    ("Unidentified", "IdentityUnknown"),
    ("Unlisted", "ListIncomplete"),
    ("Waits", "WaitingForObject"),
];

/// Returns the name that a reason has now.
pub fn current_reason(reason: &str) -> &str {
    FORMER_REASONS.iter().find(|(was, _)| *was == reason).map_or(reason, |(_, now)| now)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn former_reasons_have_their_name_of_today() {
        assert_eq!(current_reason("Runs"), "HookRunning");
        assert_eq!(current_reason("HookRunning"), "HookRunning");
        for (was, now) in FORMER_REASONS {
            assert_eq!(current_reason(now), *now, "{was}");
        }
    }
}
