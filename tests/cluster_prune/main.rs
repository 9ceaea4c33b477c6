//! Objects that Syncs prune, adopt or keep on a real API server, and the guards against losses.

mod adopt;
mod asking;
mod broken_neighbours;
mod guards;
mod held_identity;
mod held_recreate;
mod held_revision;
mod held_rows;
mod instances;
mod keeping;
mod promises;
mod promotion;
mod suspended_deletion;
