//! What is made outside the cluster.
//!
//! In: nothing. Out: rows. Clouds are slow: a database takes a quarter of an hour, a cluster longer.

use super::rule::Generation::WhereWritten;
use super::rule::IfFalse::{Fails, FailsBut, Waits};
use super::rule::Reading::{Heeds, Needs};
use super::rule::Switch::Annotation;
use super::rule::{Project, Rule, Switch, reads, row, still};

const PAUSED: [Switch; 1] = [Annotation("crossplane.io/paused", "true")];

/// A resource that is not usable now (`Unavailable`) may be so for as long as it is changed.
const MANAGED: Rule = reads(WhereWritten, &[Needs("Synced", Fails), Needs("Ready", Waits)]).asleep(&PAUSED);

/// Packages: an installed one is healthy when its controller runs.
const PACKAGE: Rule = reads(
    WhereWritten,
    &[
        Needs("Installed", FailsBut(&["InactivePackageRevision", "UnpackingPackage"])),
        Needs("Healthy", Waits),
    ],
)
.asleep(&PAUSED);

#[rustfmt::skip]
pub(super) const PROJECTS: &[Project] = &[
    Project { name: "Crossplane", rows: &[
        row("rds.aws.crossplane.io", &["RDSInstance"], 60, MANAGED),
        row("database.aws.crossplane.io", &["RDSInstance"], 60, MANAGED),
        row("pkg.crossplane.io", &["Provider", "Configuration", "Function"], 15, PACKAGE),
        row("pkg.crossplane.io", &["ProviderRevision", "ConfigurationRevision", "FunctionRevision"], 15, reads(WhereWritten, &[
            Heeds("Healthy", Waits), Heeds("RevisionHealthy", Waits), Heeds("RuntimeHealthy", Waits),
        ])),
        row("apiextensions.crossplane.io", &["CompositeResourceDefinition"], 5, reads(WhereWritten, &[
            Needs("Established", Waits), Heeds("Offered", Waits),
        ]).asleep(&PAUSED)),
        still("apiextensions.crossplane.io", &["Composition", "CompositionRevision", "EnvironmentConfig", "Usage"]),
        still("pkg.crossplane.io", &["*"]),
        still("protection.crossplane.io", &["*"]),
        still("*.crossplane.io", &["*ProviderConfig", "*ProviderConfigUsage", "StoreConfig"]),
        still("*.upbound.io", &["*ProviderConfig", "*ProviderConfigUsage", "StoreConfig"]),
        row("*.crossplane.io", &["*"], 60, MANAGED),
        row("*.upbound.io", &["*"], 60, MANAGED),
    ]},
];
