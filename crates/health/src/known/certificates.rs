//! Certificates, their issuers and similar kinds.
//!
//! In: nothing.
//! Out: rules. A valid certificate stays healthy during its renewal: its users are not affected.

use super::super::Health;
use super::super::condition::Condition;
use super::super::live::Live;
use super::rule::Generation::{Nowhere, WhereWritten};
use super::rule::IfFalse::{Fails, FailsBut};
use super::rule::Reading::{Needs, Odd as Reads, Trouble, Word as Says};
use super::rule::{Answer, Odd, Project, Rule, WORD, Word, reads, row};

/// Conditions that the approver or the issuer sets on a request; they are final.
const REFUSED: [&str; 2] = ["Denied", "InvalidRequest"];

const ISSUER: Rule = reads(WhereWritten, &[Needs("Ready", Fails)]);

const ACME: Word = Word {
    at: "status.state",
    well: &["valid"],
    busy: &["pending", "processing", "ready"],
    wrong: &["invalid", "expired", "errored"],
    message: "status.reason",
    // An order without a state has not been submitted yet.
    ..WORD
};

pub(super) const PROJECTS: &[Project] = &[Project {
    name: "cert-manager",
    rows: &[
        row("cert-manager.io", &["Certificate"], 15, reads(WhereWritten, &[Reads(CERTIFICATE)])),
        row(
            "cert-manager.io",
            &["CertificateRequest"],
            15,
            reads(WhereWritten, &[Trouble(&REFUSED), Needs("Ready", FailsBut(&["Pending"]))]),
        ),
        row("cert-manager.io", &["Issuer", "ClusterIssuer"], 5, ISSUER),
        row("acme.cert-manager.io", &["Order", "Challenge"], 15, reads(Nowhere, &[Says(ACME)])),
        row("trust.cert-manager.io", &["Bundle"], 5, reads(WhereWritten, &[Needs("Synced", Fails)])),
        row("policy.cert-manager.io", &["CertificateRequestPolicy"], 5, ISSUER),
    ],
}];

const CERTIFICATE: Odd =
    Odd { words: "`Ready` is True", answers: &[Answer::Progressing, Answer::Degraded], judge: certificate };

/// A certificate that was issued and is valid is healthy, regardless of the next one. One that was
/// never issued has failed if the last attempt has, until the next attempt begins.
fn certificate(live: Live<'_>) -> Option<Health> {
    let ready = live.condition("Ready")?;
    let issuing = live.condition("Issuing");
    Some(match issuing {
        _ if ready.is_stale(live.generation()) => Health::progressing("Ready speaks of an older generation"),
        _ if ready.is_true() => Health::Healthy,
        Some(failed) if failed.is_false() && failed.reason != "Issued" && is_new(live, &failed) => {
            Health::degraded(failed.sentence())
        }
        _ => Health::progressing(ready.sentence()),
    })
}

fn is_new(live: Live<'_>, condition: &Condition<'_>) -> bool {
    !condition.is_stale(live.generation())
}
