//! Table of what a release is made of: each target, and the names of its files.

/// Program and architecture that a tarball is for.
#[derive(Debug)]
pub(crate) struct Target {
    /// Name of the target for Rust.
    pub(crate) triple: &'static str,
    /// Operating system in the words of OCI, krew and Go.
    pub(crate) system: &'static str,
    /// Architecture in the words of OCI, krew and Go.
    pub(crate) architecture: &'static str,
    /// Machine as an ELF header names it; none for other formats.
    pub(crate) elf_machine: Option<u16>,
}

/// Targets of a release. The images hold those of Linux; `release.yml` builds those of macOS on a
/// machine of its own.
pub(crate) const TARGETS: [Target; 4] = [
    Target {
        triple: "x86_64-unknown-linux-musl",
        system: "linux",
        architecture: "amd64",
        elf_machine: Some(62),
    },
    Target {
        triple: "aarch64-unknown-linux-musl",
        system: "linux",
        architecture: "arm64",
        elf_machine: Some(183),
    },
    Target { triple: "x86_64-apple-darwin", system: "darwin", architecture: "amd64", elf_machine: None },
    Target { triple: "aarch64-apple-darwin", system: "darwin", architecture: "arm64", elf_machine: None },
];

impl Target {
    /// Finds a target by its triple.
    pub(crate) fn named(triple: &str) -> Result<&'static Self, String> {
        TARGETS.iter().find(|target| target.triple == triple).ok_or_else(|| {
            let known: Vec<&str> = TARGETS.iter().map(|target| target.triple).collect();
            format!("{triple} is no target of a release; those are {}", known.join(", "))
        })
    }

    /// Name of the tarball without its ending, and of the folder in it.
    pub(crate) fn stem(&self, version: &str) -> String {
        format!("moorline-{version}-{}", self.triple)
    }

    /// Refuses a program that is for another machine.
    pub(crate) fn check(&self, program: &[u8]) -> Result<(), String> {
        let Some(wanted) = self.elf_machine else { return Ok(()) };
        if !program.starts_with(b"\x7fELF") {
            return Err(format!("{}: the program is no ELF file", self.triple));
        }
        // The field is at byte 18 of the header, and both targets are little-endian.
        let machine = program.get(18..20).map(|bytes| u16::from_le_bytes([bytes[0], bytes[1]]));
        if machine == Some(wanted) {
            return Ok(());
        }
        Err(format!(
            "{}: the program is for another machine (ELF machine {machine:?}, not {wanted})",
            self.triple
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_for_another_machine_is_refused() {
        let mut program = b"\x7fELF".to_vec();
        program.resize(64, 0);
        program[18] = 62;
        Target::named("x86_64-unknown-linux-musl").expect("a target").check(&program).expect("its machine");
        let other = Target::named("aarch64-unknown-linux-musl").expect("a target");
        assert!(other.check(&program).expect_err("another machine").contains("another machine"));
        assert!(other.check(b"#!/bin/sh").expect_err("a script").contains("no ELF"));
        assert!(Target::named("riscv64gc-unknown-linux-gnu").expect_err("no target").contains("aarch64"));
    }
}
