//! Signatures that the programs and libraries of Sigstore made, as recorded and with every change.
//!
//! The vectors in `tests/vectors` were made by `tests/oracle`. The tests in `oracle.rs` ask it
//! again, and are ignored unless `MOORLINE_COSIGN_ORACLE` names the program.

mod accepted;
mod changes;
mod oracle;
mod parsers;
mod refused;
mod registries;
mod timing;
mod vectors;
