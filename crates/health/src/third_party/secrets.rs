//! Secrets from external stores, and logins.
//!
//! In: nothing.
//! Out: rules. Messages quote conditions and errors of controllers, which name keys and paths; no
//! rule reads a Secret.

use super::super::Health;
use super::rule::Check::{
    BoolField, Custom as Reads, ErrorText, FailedIfTrue, IfReported, Phase as Reporting, ProgressingIfTrue,
    Reached as Counts, Required,
};
use super::rule::Generation::{Nowhere, WhereWritten};
use super::rule::IfFalse::{ByReason, Fails, Waits};
use super::rule::{
    COUNT_DEFAULTS, CountCheck, CustomCheck, PHASE_DEFAULTS, PhaseCheck, Project, Verdict, kind_rule,
    no_status, status_rule,
};
use crate::object_view::ObjectView;

#[rustfmt::skip]
pub(super) const PROJECTS: &[Project] = &[
    Project { name: "1Password Operator", rows: &[
        kind_rule("onepassword.com", &["OnePasswordItem"], 5, status_rule(Nowhere, &[Required("Ready", Fails)])),
    ]},
    Project { name: "Bank-Vaults", rows: &[
        kind_rule("vault.banzaicloud.com", &["Vault"], 15, status_rule(Nowhere, &[
            Counts(CountCheck { actual: "status.nodes", wanted: "spec.size", noun: "node", ..COUNT_DEFAULTS }),
            Reads(CustomCheck { description: "`status.leader` is set", verdicts: &[Verdict::Progressing], judge: leader }),
        ])),
    ]},
    Project { name: "External Secrets", rows: &[
        kind_rule("external-secrets.io", &["ExternalSecret"], 5, status_rule(WhereWritten, &[
            Required("Ready", Fails),
            Reads(CustomCheck {
                description: "`status.syncedResourceVersion` is of the newest generation",
                verdicts: &[Verdict::Stale],
                judge: synced,
            }),
        ])),
        kind_rule("external-secrets.io", &["ClusterExternalSecret", "PushSecret", "ClusterPushSecret", "SecretStore", "ClusterSecretStore"], 5,
            status_rule(WhereWritten, &[Required("Ready", Fails)])),
        no_status("generators.external-secrets.io", &["*"]),
    ]},
    Project { name: "Keycloak", rows: &[
        kind_rule("k8s.keycloak.org", &["Keycloak"], 15, status_rule(WhereWritten, &[
            FailedIfTrue(&["HasErrors"]), Required("Ready", Waits), ProgressingIfTrue(&["RollingUpdate"]),
        ])),
        kind_rule("k8s.keycloak.org", &["KeycloakRealmImport"], 15, status_rule(WhereWritten, &[FailedIfTrue(&["HasErrors"]), Required("Done", Waits)])),
        kind_rule("keycloak.org", &["Keycloak", "KeycloakRealm", "KeycloakClient", "KeycloakUser"], 15, status_rule(Nowhere, &[
            BoolField("status.ready", Waits),
            Reporting(PhaseCheck {
                healthy: &["reconciling", "reconciled"],
                progressing: &["initialising"],
                failed: &["failing", "error"],
                needed: false,
                ..PHASE_DEFAULTS
            }),
        ])),
    ]},
    Project { name: "Sealed Secrets", rows: &[
        kind_rule("bitnami.com", &["SealedSecret"], 5, status_rule(WhereWritten, &[Required("Synced", Fails)])),
    ]},
    Project { name: "Secrets Store CSI Driver", rows: &[no_status("secrets-store.csi.x-k8s.io", &["*"])] },
    Project { name: "Vault Secrets Operator", rows: &[
        kind_rule("secrets.hashicorp.com", &["VaultStaticSecret", "VaultDynamicSecret", "VaultPKISecret"], 5, status_rule(WhereWritten, &[
            Reads(CustomCheck {
                description: "`status.lastGeneration` is the newest generation",
                verdicts: &[Verdict::Progressing, Verdict::Stale],
                judge: last_generation,
            }),
            IfReported("Healthy", ByReason),
            IfReported("Ready", ByReason),
            ErrorText("status.error"),
        ])),
        kind_rule("secrets.hashicorp.com", &["VaultAuth", "VaultAuthGlobal", "VaultConnection", "HCPAuth"], 5, status_rule(WhereWritten, &[
            BoolField("status.valid", Fails),
            ErrorText("status.error"),
        ])),
        no_status("secrets.hashicorp.com", &["SecretTransformation"]),
    ]},
];

fn leader(live: ObjectView<'_>) -> Option<Health> {
    Some(match live.text(&["status", "leader"]) {
        Some(leader) if !leader.is_empty() => Health::Healthy,
        _ => Health::progressing("it has no leader yet"),
    })
}

/// The synced version starts with the generation that it was made from. With `CreatedOnce` the
/// Secret is never updated.
fn synced(live: ObjectView<'_>) -> Option<Health> {
    if live.text(&["spec", "refreshPolicy"]) == Some("CreatedOnce") {
        return None;
    }
    let (seen, _) = live.text(&["status", "syncedResourceVersion"])?.split_once('-')?;
    let is_old = seen.parse::<u64>().ok().zip(live.generation()).is_some_and(|(seen, newest)| seen < newest);
    is_old.then(|| Health::progressing("the Secret is of an older generation"))
}

/// Judges `lastGeneration`, which is written only after a secret was fetched.
fn last_generation(live: ObjectView<'_>) -> Option<Health> {
    let (seen, newest) = (live.count(&["status", "lastGeneration"]), live.generation()?);
    Some(match seen {
        0 => Health::progressing("no secret was fetched yet"),
        _ if seen < newest => Health::progressing("the secret is of an older generation"),
        _ => Health::Healthy,
    })
}
