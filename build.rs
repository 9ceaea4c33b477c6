//! The target for `moorline version`, and linker flags that make the program smaller.
//!
//! In: the target machine and the features of its C library. Out: the variable MOORLINE_TARGET, and
//! linker arguments for the program only. The program is position-independent, so its addresses differ at every start. The table of
//! relocations that this needs is a thirtieth of the program in the usual form, and almost nothing
//! in the packed one. A C library that does not know the packed form would not start the program,
//! so the usual form is used there.

use std::{env, fs};

/// Usual paths of the C library.
const LIBRARIES: [&str; 4] = [
    "/lib/x86_64-linux-gnu/libc.so.6",
    "/lib/aarch64-linux-gnu/libc.so.6",
    "/lib64/libc.so.6",
    "/usr/lib/libc.so.6",
];

/// Symbol version by which a C library announces that it reads packed relocations.
const PACKED: &[u8] = b"GLIBC_ABI_DT_RELR";

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let variable = |name: &str| env::var(name).unwrap_or_default();
    println!("cargo::rustc-env=MOORLINE_TARGET={}", variable("TARGET"));
    let is_for_here = variable("TARGET") == variable("HOST") && variable("TARGET").ends_with("-linux-gnu");
    if is_for_here && reads_packed() {
        println!("cargo::rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
    }
}

fn reads_packed() -> bool {
    let library = LIBRARIES.iter().find_map(|path| fs::read(path).ok()).unwrap_or_default();
    library.windows(PACKED.len()).any(|part| part == PACKED)
}
