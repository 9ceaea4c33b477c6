//! What a Sync wishes to be made of how its objects are.
//!
//! In: `spec.health`. Out: [`HealthWish`], its rules ready to be asked, or a refusal that names every rule that cannot be read
//! with the place in its text.

use std::time::Duration;

use super::{Refusal, refuse, span};
use crate::api::HealthSpec;
use crate::health::rules::{Rules, Written};

/// What is made of how objects are.
#[derive(Debug, Clone, PartialEq)]
pub struct HealthWish {
    /// Being applied is not enough to be ready.
    pub wait: bool,
    /// How long an object may be on its way; as is usual for its kind, if nothing is said.
    pub timeout: Option<Duration>,
    /// How kinds are judged.
    pub rules: Rules,
}

impl Default for HealthWish {
    fn default() -> Self {
        Self { wait: true, timeout: None, rules: Rules::default() }
    }
}

pub(super) fn health(spec: &HealthSpec) -> Result<HealthWish, Refusal> {
    let written: Vec<Written<'_>> = spec
        .rules
        .iter()
        .map(|rule| Written {
            group: &rule.group,
            kind: &rule.kind,
            healthy: rule.healthy.as_deref(),
            degraded: rule.degraded.as_deref(),
            progressing: rule.progressing.as_deref(),
        })
        .collect();
    let timeout = spec.timeout.as_ref().map(|timeout| span("spec.health.timeout", timeout)).transpose()?;
    match Rules::compile(&written) {
        Ok(rules) => Ok(HealthWish { wait: spec.wait, timeout, rules }),
        Err(errors) => {
            let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
            refuse("spec.health.rules", errors.join("; "))
        }
    }
}
