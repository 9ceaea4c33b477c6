//! What is special about each of Kubernetes' own kinds.
//!
//! In: an object as a request brings it. Out: what the API server makes of it before it keeps it. The steps are, in this
//! order: [`normalize`], [`default`], [`prepare`], [`validate`]. What the kinds are called and what is served for them
//! says [`builtin`]. Nothing here knows the other objects: what must be looked up or given out comes in by [`Allocate`].

mod builtin;
mod defaults;
mod derived;
mod lives;
mod normal;
mod paths;
mod pods;
mod prepare;
mod services;
#[cfg(test)]
mod tests;
mod validate;
mod warnings;

pub(crate) use builtin::{Kind, builtin, named};
pub(crate) use defaults::default;
pub(crate) use lives::{is_made_by_update, needs_version};
pub(crate) use normal::normalize;
pub(crate) use prepare::{prepare, prepare_custom};
pub(crate) use validate::{Cause, validate, validate_custom};
pub(crate) use warnings::{deprecation, warnings};

/// What only the server as a whole can give to an object, or knows of others.
pub(crate) trait Allocate {
    /// A free address for a Service.
    fn address(&mut self) -> String;
    /// A free port of all Nodes.
    fn node_port(&mut self) -> u16;
    /// Five letters that end a generated name.
    fn suffix(&mut self) -> String;
    /// The time, as `2024-01-01T00:00:00Z`.
    fn now(&self) -> String;
    /// The priority and preemption policy of a PriorityClass; of the default one where the name is empty.
    fn priority(&self, class: &str) -> (i64, String) {
        let priority = match class {
            "system-cluster-critical" => 2_000_000_000,
            "system-node-critical" => 2_000_001_000,
            _ => 0,
        };
        (priority, "PreemptLowerPriority".to_owned())
    }
    /// Whether Pods of a ServiceAccount get its token where they do not say.
    fn mounts_token(&self, _account: &str) -> bool {
        true
    }
}
