//! Tarballs and images as `cargo xtask` packs them, from the binary of the tests.
//!
//! In: the binary that the workspace's tests use, or the one that `MOORLINE_STATIC_BINARY` names.
//! Out: what is in a tarball and in an image, that both are the same each time, and that the image
//! runs.

mod charts;
mod images;
mod names;
mod root;
mod site;
mod support;
mod tarballs;
mod targets;
