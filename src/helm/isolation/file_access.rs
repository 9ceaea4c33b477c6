//! Restricts file access with Landlock.
//!
//! In: the program that this process is about to become. Out: true if the restriction is in force.
//! From then on the process and its children can only open files of the work folder, the program,
//! and a few system files without private data; if the kernel supports it, they reach neither TCP
//! nor processes outside. Parts that the kernel does not support are left out, and the system call
//! filter (`syscall_filter.rs`) applies alone.

use std::fs::File;
use std::io::Read as _;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use landlock::{
    ABI, Access as _, AccessFs, AccessNet, BitFlags, Ruleset, RulesetAttr as _, RulesetCreatedAttr as _,
    RulesetError, RulesetStatus, Scope, path_beneath_rules,
};

/// The newest rules that are requested; a kernel applies those that it supports.
const NEWEST: ABI = ABI::V6;

/// Readable files: the same on every machine, or about its clock, because templates may use time
/// zones.
const READ: [&str; 5] = [
    "/usr/share/zoneinfo",
    "/etc/localtime",
    "/dev/urandom",
    "/dev/zero",
    // The Go runtime reads the size of huge pages.
    "/sys/kernel/mm/transparent_hugepage",
];
/// Readable and writable files.
const WRITTEN: [&str; 1] = ["/dev/null"];
/// Folders of libraries and programs that a dynamically linked program may need.
const SYSTEM: [&str; 8] =
    ["/bin", "/sbin", "/usr", "/lib", "/lib32", "/lib64", "/nix/store", "/etc/ld.so.cache"];

/// Applies the restriction; true if it is in force.
pub(super) fn restrict_files(program: &Path, alone: bool) -> Result<bool, RulesetError> {
    let all = AccessFs::from_all(NEWEST);
    let read: BitFlags<AccessFs> = AccessFs::ReadFile | AccessFs::ReadDir;
    let run = read | AccessFs::Execute;
    let system: &[&str] = if alone { &[] } else { &SYSTEM };
    let status = Ruleset::default()
        .handle_access(all)?
        .handle_access(AccessNet::from_all(NEWEST))?
        .scope(Scope::from_all(NEWEST))?
        .create()?
        // Files in the work folder are read and written, but must never be executed.
        .add_rules(path_beneath_rules(["."], all & !BitFlags::from(AccessFs::Execute)))?
        .add_rules(path_beneath_rules([program], run))?
        .add_rules(path_beneath_rules(READ, read))?
        .add_rules(path_beneath_rules(WRITTEN, read | AccessFs::WriteFile))?
        .add_rules(path_beneath_rules(system, run))?
        .restrict_self()?;
    Ok(match status.ruleset {
        RulesetStatus::FullyEnforced | RulesetStatus::PartiallyEnforced => true,
        RulesetStatus::NotEnforced => false,
    })
}

/// True if a program needs no other file to start, as published builds of helm. Scripts and
/// dynamically linked programs do; a file that cannot be read is treated like them, because a
/// denied library would keep it from starting.
pub(super) fn is_statically_linked(program: &Path) -> bool {
    File::open(program).ok().and_then(|file| has_interpreter(&file)) == Some(false)
}

/// Size of the header of a 64-bit program.
const HEAD: usize = 64;
/// The most program headers that are read.
const MAX_PARTS: u16 = 128;
/// Type of the program header that names the dynamic linker.
const INTERPRETER: u32 = 3;

/// True if a program is linked when it starts; `None` if it is no program for this machine.
fn has_interpreter(mut file: &File) -> Option<bool> {
    let mut head = [0; HEAD];
    file.read_exact(&mut head).ok()?;
    // 64 bits, little-endian.
    if !head.starts_with(b"\x7fELF\x02\x01") {
        return None;
    }
    let begin = u64::from_le_bytes(head.get(32..40)?.try_into().ok()?);
    let [size, count] = [54, 56].map(|at: usize| u16::from_le_bytes([head[at], head[at + 1]]));
    for part in 0..count.min(MAX_PARTS) {
        let mut kind = [0; 4];
        let place = begin.checked_add(u64::from(part) * u64::from(size))?;
        file.read_exact_at(&mut kind, place).ok()?;
        if u32::from_le_bytes(kind) == INTERPRETER {
            return Some(true);
        }
    }
    Some(count > MAX_PARTS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_needs_libraries_or_a_shell_does_not_stand_alone() {
        let folder = tempfile::tempdir().unwrap();
        let program = |bytes: &[u8]| {
            let place = folder.path().join("program");
            std::fs::write(&place, bytes).unwrap();
            is_statically_linked(&place)
        };
        let elf = |kinds: &[u32]| {
            let mut bytes = b"\x7fELF\x02\x01".to_vec();
            bytes.resize(HEAD, 0);
            bytes[32] = 64;
            (bytes[54], bytes[56]) = (56, u8::try_from(kinds.len()).unwrap());
            for kind in kinds {
                bytes.extend(kind.to_le_bytes());
                bytes.extend([0; 52]);
            }
            bytes
        };
        assert!(program(&elf(&[6, 1, 2])));
        assert!(!program(&elf(&[6, INTERPRETER])));
        // The program headers lie beyond the end of the file.
        assert!(!program(&elf(&[1, 1])[..100]));
        assert!(!program(b"#!/bin/sh\nexec helm \"$@\"\n"));
        assert!(!program(b""));
        assert!(!is_statically_linked(Path::new("/nowhere")));
    }
}
