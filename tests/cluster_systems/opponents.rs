//! Others who write to what a Sync holds, on a real API server: each leaves what Git sets, or is named, and costs nothing
//! once it has made its last move.

mod bystanders;
mod ground;
mod injectors;
mod meshes;
mod operators;
mod people;
mod policies;
mod scalers;
mod tools;
mod webhook;
