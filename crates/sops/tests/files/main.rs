//! Whole files: encrypted here or by the library of SOPS, and decrypted by the crate.
//!
//! In: random documents from a seed, and files that the library encrypted.
//! Out: nothing, or the document with the difference. The tests against the library are ignored
//! unless they are asked for: they need the program of `crates/sops/tests/oracle`.

mod bad_input;
mod documents;
mod encryption;
mod flips;
mod library;
mod oracle;
mod recorded;
mod writing;
