//! Secrets from external stores, and logins.
//!
//! In: nothing.
//! Out: rules. Messages quote conditions and errors of controllers, which name keys and paths; no
//! rule reads a Secret.

use super::super::Health;
use super::super::live::Live;
use super::rule::Generation::{Nowhere, WhereWritten};
use super::rule::IfFalse::{ByReason, Fails, Waits};
use super::rule::Reading::{
    Busy, Complaint, Count as Counts, Flag, Heeds, Needs, Odd as Reads, Trouble, Word as Says,
};
use super::rule::{Answer, COUNT, Count, Odd, Project, WORD, Word, reads, row, still};

#[rustfmt::skip]
pub(super) const PROJECTS: &[Project] = &[
    Project { name: "1Password Operator", rows: &[
        row("onepassword.com", &["OnePasswordItem"], 5, reads(Nowhere, &[Needs("Ready", Fails)])),
    ]},
    Project { name: "Bank-Vaults", rows: &[
        row("vault.banzaicloud.com", &["Vault"], 15, reads(Nowhere, &[
            Counts(Count { have: "status.nodes", of: "spec.size", noun: "node", ..COUNT }),
            Reads(Odd { words: "`status.leader` is there", answers: &[Answer::Progressing], judge: leader }),
        ])),
    ]},
    Project { name: "External Secrets", rows: &[
        row("external-secrets.io", &["ExternalSecret"], 5, reads(WhereWritten, &[
            Needs("Ready", Fails),
            Reads(Odd {
                words: "`status.syncedResourceVersion` is of the newest generation",
                answers: &[Answer::Stale],
                judge: synced,
            }),
        ])),
        row("external-secrets.io", &["ClusterExternalSecret", "PushSecret", "ClusterPushSecret", "SecretStore", "ClusterSecretStore"], 5,
            reads(WhereWritten, &[Needs("Ready", Fails)])),
        still("generators.external-secrets.io", &["*"]),
    ]},
    Project { name: "Keycloak", rows: &[
        row("k8s.keycloak.org", &["Keycloak"], 15, reads(WhereWritten, &[
            Trouble(&["HasErrors"]), Needs("Ready", Waits), Busy(&["RollingUpdate"]),
        ])),
        row("k8s.keycloak.org", &["KeycloakRealmImport"], 15, reads(WhereWritten, &[Trouble(&["HasErrors"]), Needs("Done", Waits)])),
        row("keycloak.org", &["Keycloak", "KeycloakRealm", "KeycloakClient", "KeycloakUser"], 15, reads(Nowhere, &[
            Flag("status.ready", Waits),
            Says(Word {
                well: &["reconciling", "reconciled"],
                busy: &["initialising"],
                wrong: &["failing", "error"],
                needed: false,
                ..WORD
            }),
        ])),
    ]},
    Project { name: "Sealed Secrets", rows: &[
        row("bitnami.com", &["SealedSecret"], 5, reads(WhereWritten, &[Needs("Synced", Fails)])),
    ]},
    Project { name: "Secrets Store CSI Driver", rows: &[still("secrets-store.csi.x-k8s.io", &["*"])] },
    Project { name: "Vault Secrets Operator", rows: &[
        row("secrets.hashicorp.com", &["VaultStaticSecret", "VaultDynamicSecret", "VaultPKISecret"], 5, reads(WhereWritten, &[
            Reads(Odd {
                words: "`status.lastGeneration` is the newest generation",
                answers: &[Answer::Progressing, Answer::Stale],
                judge: last_generation,
            }),
            Heeds("Healthy", ByReason),
            Heeds("Ready", ByReason),
            Complaint("status.error"),
        ])),
        row("secrets.hashicorp.com", &["VaultAuth", "VaultAuthGlobal", "VaultConnection", "HCPAuth"], 5, reads(WhereWritten, &[
            Flag("status.valid", Fails),
            Complaint("status.error"),
        ])),
        still("secrets.hashicorp.com", &["SecretTransformation"]),
    ]},
];

fn leader(live: Live<'_>) -> Option<Health> {
    Some(match live.text(&["status", "leader"]) {
        Some(leader) if !leader.is_empty() => Health::Healthy,
        _ => Health::progressing("it has no leader yet"),
    })
}

/// The synced version starts with the generation that it was made from. With `CreatedOnce` the
/// Secret is never updated.
fn synced(live: Live<'_>) -> Option<Health> {
    if live.text(&["spec", "refreshPolicy"]) == Some("CreatedOnce") {
        return None;
    }
    let (seen, _) = live.text(&["status", "syncedResourceVersion"])?.split_once('-')?;
    let is_old = seen.parse::<u64>().ok().zip(live.generation()).is_some_and(|(seen, newest)| seen < newest);
    is_old.then(|| Health::progressing("the Secret is of an older generation"))
}

/// Judges `lastGeneration`, which is written only after a secret was fetched.
fn last_generation(live: Live<'_>) -> Option<Health> {
    let (seen, newest) = (live.count(&["status", "lastGeneration"]), live.generation()?);
    Some(match seen {
        0 => Health::progressing("no secret was brought yet"),
        _ if seen < newest => Health::progressing("the secret is of an older generation"),
        _ => Health::Healthy,
    })
}
