//! Repositories and charts, from servers that behave well, badly, or not at all.

mod artifact_layers;
mod artifact_signatures;
mod artifacts;
mod bombs;
mod chart_versions;
mod charts;
mod disk;
mod faults;
mod github_app;
mod hosts;
mod lfs;
mod local;
mod registries;
mod repository;
mod ssh;
mod tls;
