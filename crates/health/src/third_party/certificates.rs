//! Certificates, their issuers and similar kinds.
//!
//! In: nothing.
//! Out: rules. A valid certificate stays healthy during its renewal: its users are not affected.

use super::super::Health;
use super::super::condition::Condition;
use super::rule::Check::{Custom as Reads, FailedIfTrue, Phase as Reporting, Required};
use super::rule::Generation::{Nowhere, WhereWritten};
use super::rule::IfFalse::{Fails, FailsBut};
use super::rule::{CustomCheck, PHASE_DEFAULTS, PhaseCheck, Project, Rule, Verdict, kind_rule, status_rule};
use crate::object_view::ObjectView;

/// Conditions that the approver or the issuer sets on a request; they are final.
const REFUSED: [&str; 2] = ["Denied", "InvalidRequest"];

const ISSUER: Rule = status_rule(WhereWritten, &[Required("Ready", Fails)]);

const ACME: PhaseCheck = PhaseCheck {
    path: "status.state",
    healthy: &["valid"],
    progressing: &["pending", "processing", "ready"],
    failed: &["invalid", "expired", "errored"],
    message: "status.reason",
    // An order without a state has not been submitted yet.
    ..PHASE_DEFAULTS
};

pub(super) const PROJECTS: &[Project] = &[Project {
    name: "cert-manager",
    rows: &[
        kind_rule("cert-manager.io", &["Certificate"], 15, status_rule(WhereWritten, &[Reads(CERTIFICATE)])),
        kind_rule(
            "cert-manager.io",
            &["CertificateRequest"],
            15,
            status_rule(WhereWritten, &[FailedIfTrue(&REFUSED), Required("Ready", FailsBut(&["Pending"]))]),
        ),
        kind_rule("cert-manager.io", &["Issuer", "ClusterIssuer"], 5, ISSUER),
        kind_rule(
            "acme.cert-manager.io",
            &["Order", "Challenge"],
            15,
            status_rule(Nowhere, &[Reporting(ACME)]),
        ),
        kind_rule(
            "trust.cert-manager.io",
            &["Bundle"],
            5,
            status_rule(WhereWritten, &[Required("Synced", Fails)]),
        ),
        kind_rule("policy.cert-manager.io", &["CertificateRequestPolicy"], 5, ISSUER),
    ],
}];

const CERTIFICATE: CustomCheck = CustomCheck {
    description: "`Ready` is True",
    verdicts: &[Verdict::Progressing, Verdict::Degraded],
    judge: certificate,
};

/// A certificate that was issued and is valid is healthy, regardless of the next one. One that was
/// never issued has failed if the last attempt has, until the next attempt begins.
fn certificate(live: ObjectView<'_>) -> Option<Health> {
    let ready = live.condition("Ready")?;
    let issuing = live.condition("Issuing");
    Some(match issuing {
        _ if ready.is_stale(live.generation()) => {
            Health::progressing("Ready was reported for an older generation")
        }
        _ if ready.is_true() => Health::Healthy,
        Some(failed) if failed.is_false() && failed.reason != "Issued" && is_new(live, &failed) => {
            Health::degraded(failed.describe())
        }
        _ => Health::progressing(ready.describe()),
    })
}

fn is_new(live: ObjectView<'_>, condition: &Condition<'_>) -> bool {
    !condition.is_stale(live.generation())
}
