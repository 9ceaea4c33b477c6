//! YAML as kubectl and kustomize read it: answers of the tools, and mutated documents.

mod kubectl;
mod mutations;
