//! Behavior of the built-in kinds.
//!
//! In: an object as a request contains it.
//! Out: the object as the API server stores it. The steps are, in this order: [`normalize`],
//! [`set_defaults`], [`prepare()`], [`validate()`]. [`builtin_kinds`] lists the kinds and their
//! endpoints. Nothing in this module has access to other objects: allocated values and lookups come
//! through [`Allocator`].

mod builtin;
mod defaults;
mod derived_defaults;
mod field_paths;
mod lifecycle;
mod normalization;
mod pods;
mod prepare;
mod services;
#[cfg(test)]
mod tests;
mod validate;
mod warnings;

pub(crate) use builtin::{Kind, builtin_kinds, find_kind};
pub(crate) use defaults::set_defaults;
pub(crate) use lifecycle::{is_made_by_update, needs_version};
pub(crate) use normalization::normalize;
pub(crate) use prepare::{prepare, prepare_custom};
pub(crate) use validate::{Cause, validate, validate_custom};
pub(crate) use warnings::{deprecation, warnings};

/// Allocates values and looks up other objects, for which the state of the server is needed.
pub(crate) trait Allocator {
    /// Returns a free cluster IP for a Service.
    fn address(&mut self) -> String;
    /// Returns a free node port.
    fn node_port(&mut self) -> u16;
    /// Returns the five-letter suffix of a generated name.
    fn suffix(&mut self) -> String;
    /// Returns the current time, such as `2024-01-01T00:00:00Z`.
    fn now(&self) -> String;
    /// Returns priority and preemption policy of a PriorityClass; of the default one if the name is
    /// empty.
    fn priority(&self, class: &str) -> (i64, String) {
        let priority = match class {
            "system-cluster-critical" => 2_000_000_000,
            "system-node-critical" => 2_000_001_000,
            _ => 0,
        };
        (priority, "PreemptLowerPriority".to_owned())
    }
    /// True if Pods of a ServiceAccount mount its token by default.
    fn mounts_token(&self, _account: &str) -> bool {
        true
    }
}
