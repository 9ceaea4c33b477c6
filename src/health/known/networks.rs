//! Networks, and who may talk to whom in them.
//!
//! In: nothing. Out: rows. Policies are enforced without a word; what is reported of them is that they cannot be.

use super::rule::Generation::Nowhere;
use super::rule::Reading::Refused;
use super::rule::{Project, Silence, reads, row, still};

#[rustfmt::skip]
pub(super) const PROJECTS: &[Project] = &[
    Project { name: "Cilium", rows: &[
        row("cilium.io", &["CiliumNetworkPolicy", "CiliumClusterwideNetworkPolicy"], 5,
            reads(Nowhere, &[Refused(&["Valid"])]).silent(Silence::Fine)),
        still("cilium.io", &["*"]),
    ]},
];
