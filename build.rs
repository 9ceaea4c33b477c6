//! How the program is linked, where that makes it smaller.
//!
//! In: for which machine, and what its C library understands. Out: arguments for the linker of the program alone. The program is
//! position-independent, so that its places in memory differ at every start; the table by which they are set is a thirtieth of its size in
//! the usual form, and next to nothing in the packed one. A C library that does not know that form would not start it: such a one
//! gets the usual form.

use std::{env, fs};

/// Where C libraries are, on the machines that there are.
const LIBRARIES: [&str; 4] = [
    "/lib/x86_64-linux-gnu/libc.so.6",
    "/lib/aarch64-linux-gnu/libc.so.6",
    "/lib64/libc.so.6",
    "/usr/lib/libc.so.6",
];

/// By this name a C library says that it reads the packed form.
const PACKED: &[u8] = b"GLIBC_ABI_DT_RELR";

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let variable = |name: &str| env::var(name).unwrap_or_default();
    let is_for_here = variable("TARGET") == variable("HOST") && variable("TARGET").ends_with("-linux-gnu");
    if is_for_here && reads_packed() {
        println!("cargo::rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
    }
}

fn reads_packed() -> bool {
    let library = LIBRARIES.iter().find_map(|path| fs::read(path).ok()).unwrap_or_default();
    library.windows(PACKED.len()).any(|part| part == PACKED)
}
