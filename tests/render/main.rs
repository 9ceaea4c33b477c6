//! Pure functions: files to objects, health of objects, hostile trees, and fuzz targets in short.

mod decrypted;
mod desired;
mod fields;
mod fuzz;
mod health;
mod health_kinds;
mod hostile_trees;
mod kustomize_options;
mod lfs_pointers;
mod properties;
mod render;
mod rooms;
