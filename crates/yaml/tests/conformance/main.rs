//! YAML as kubectl and kustomize read it: answers of the tools, mutated documents, and an
//! independent reader.

mod independent;
mod kubectl;
mod mutations;
