//! YAML as Kubernetes reads it.
