//! Validates the health settings of a Sync.
//!
//! In: `spec.health`. Out: [`HealthOptions`] with compiled rules, or an error that names every rule
//! that cannot be parsed, with the position in its text.

use std::time::Duration;

use super::{SpecError, refuse, span};
use crate::api::HealthSpec;
use crate::health::rules::{RuleSource, Rules};

/// Health settings of a Sync.
#[derive(Debug, Clone, PartialEq)]
pub struct HealthOptions {
    /// The Sync is ready only when its objects are healthy, not as soon as they are applied.
    pub wait: bool,
    /// Time that an object may be progressing; the default of its kind if unset.
    pub timeout: Option<Duration>,
    /// Custom health rules for kinds.
    pub rules: Rules,
}

impl Default for HealthOptions {
    fn default() -> Self {
        Self { wait: true, timeout: None, rules: Rules::default() }
    }
}

pub(super) fn health(spec: &HealthSpec) -> Result<HealthOptions, SpecError> {
    let written: Vec<RuleSource<'_>> = spec
        .rules
        .iter()
        .map(|rule| RuleSource {
            group: &rule.group,
            kind: &rule.kind,
            healthy: rule.healthy.as_deref(),
            degraded: rule.degraded.as_deref(),
            progressing: rule.progressing.as_deref(),
        })
        .collect();
    let timeout = spec.timeout.as_ref().map(|timeout| span("spec.health.timeout", timeout)).transpose()?;
    match Rules::compile(&written) {
        Ok(rules) => Ok(HealthOptions { wait: spec.wait, timeout, rules }),
        Err(errors) => {
            let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
            refuse("spec.health.rules", errors.join("; "))
        }
    }
}
