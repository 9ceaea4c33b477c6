//! The wall around files: Landlock, which a process puts around itself.
//!
//! In: the program that this process is about to become. Out: whether the wall stands. From then on the process and whatever it
//! starts opens no file but those of its work folder, the program, and a few that say nothing about anybody; where the kernel can,
//! it reaches neither TCP nor processes outside of the wall. What the kernel does not know of that is left out, and the filter of system
//! calls (`calls.rs`) holds alone.

use std::fs::File;
use std::io::Read as _;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use landlock::{
    ABI, Access as _, AccessFs, AccessNet, BitFlags, Ruleset, RulesetAttr as _, RulesetCreatedAttr as _,
    RulesetError, RulesetStatus, Scope, path_beneath_rules,
};

/// The newest rules that are asked for; a kernel takes those that it knows.
const NEWEST: ABI = ABI::V6;

/// What may be read: the same on every machine, or about the machine's clock. Templates name time zones.
const READ: [&str; 5] = [
    "/usr/share/zoneinfo",
    "/etc/localtime",
    "/dev/urandom",
    "/dev/zero",
    // The runtime of Go reads how large pages are.
    "/sys/kernel/mm/transparent_hugepage",
];
/// What may be read and written.
const WRITTEN: [&str; 1] = ["/dev/null"];
/// Where the libraries and programs are that a program may need which does not stand alone.
const SYSTEM: [&str; 8] =
    ["/bin", "/sbin", "/usr", "/lib", "/lib32", "/lib64", "/nix/store", "/etc/ld.so.cache"];

/// Puts the wall up; true if it stands.
pub(super) fn shut(program: &Path, alone: bool) -> Result<bool, RulesetError> {
    let all = AccessFs::from_all(NEWEST);
    let read: BitFlags<AccessFs> = AccessFs::ReadFile | AccessFs::ReadDir;
    let run = read | AccessFs::Execute;
    let system: &[&str] = if alone { &[] } else { &SYSTEM };
    let status = Ruleset::default()
        .handle_access(all)?
        .handle_access(AccessNet::from_all(NEWEST))?
        .scope(Scope::from_all(NEWEST))?
        .create()?
        // What is in the folder of the run is read and written, but never started.
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

/// True if a program needs no other file to start, as helm does when it is built as it is published. A script, and what is linked to
/// libraries, does; so does, to be on the safe side of starting it, what cannot be read.
pub(super) fn stands_alone(program: &Path) -> bool {
    File::open(program).ok().and_then(|file| has_interpreter(&file)) == Some(false)
}

/// The least of the head of a program of 64 bits.
const HEAD: usize = 64;
/// The most parts of a program that are looked at.
const MAX_PARTS: u16 = 128;
/// The kind of a part that names what links the program.
const INTERPRETER: u32 = 3;

/// Whether a program is linked when it starts; none if it is no program of this machine.
fn has_interpreter(mut file: &File) -> Option<bool> {
    let mut head = [0; HEAD];
    file.read_exact(&mut head).ok()?;
    // 64 bits, the least byte first.
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
            stands_alone(&place)
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
        // Its parts lie beyond its end.
        assert!(!program(&elf(&[1, 1])[..100]));
        assert!(!program(b"#!/bin/sh\nexec helm \"$@\"\n"));
        assert!(!program(b""));
        assert!(!stands_alone(Path::new("/nowhere")));
    }
}
