//! The protections of a run of helm, and the decision if they suffice.
//!
//! In: the protections that the kernel supports, and the required level. Out: [`IsolationVerdict`]:
//! run, run with a warning, or do not run. The isolation verb prints its protections as text and
//! the daemon parses that; both directions are here.

use std::fmt;

/// The isolation that is required before helm runs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum IsolationLevel {
    /// The restrictions of files and system calls; without them no chart is rendered.
    #[default]
    Required,
    /// Anything that the kernel supports.
    BestEffort,
}

/// Protections in force besides the limits on memory, time, files and processes, which always
/// apply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Protections {
    /// Namespaces by the resources that they hide; empty if none may be created.
    pub namespaces: String,
    /// True if only the files of the chart and helm itself can be opened.
    pub files: bool,
    /// True if no socket can be created and no other process reached.
    pub calls: bool,
}

/// The decision to run helm.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IsolationVerdict {
    /// Run it: all required protections are in force.
    Sufficient,
    /// Run it; the missing protection, as a sentence for the status.
    Degraded(String),
    /// Do not run it; the reason and the remedy.
    Refused(String),
}

const NO_NAMESPACES: &str = "none";
const PARTS: [&str; 3] = ["namespaces: ", "; files: ", "; system calls: "];
const SHUT: &str = "shut";
const OPEN: &str = "open";

impl Protections {
    /// Decides if these protections suffice.
    pub fn judge(&self, wanted: IsolationLevel) -> IsolationVerdict {
        let open = [(self.files, "files (Landlock)"), (self.calls, "system calls (seccomp)")];
        let open: Vec<&str> = open.iter().filter(|(shut, _)| !shut).map(|(_, name)| *name).collect();
        let open = open.join(" and ");
        match (open.as_str(), wanted) {
            ("", IsolationLevel::Required | IsolationLevel::BestEffort) => IsolationVerdict::Sufficient,
            (open, IsolationLevel::BestEffort) => IsolationVerdict::Degraded(format!(
                "helm runs without isolation of {open}, which this kernel does not support (helmFence: bestEffort)"
            )),
            (open, IsolationLevel::Required) => IsolationVerdict::Refused(format!(
                "this kernel does not support isolation of {open}, so helm is not run; use a kernel and a container profile that do, or set helmFence: bestEffort"
            )),
        }
    }

    /// Parses the text that the isolation verb prints.
    pub fn read(text: &str) -> Option<Self> {
        let rest = text.trim().strip_prefix(PARTS[0])?;
        let (namespaces, rest) = rest.split_once(PARTS[1])?;
        let (files, calls) = rest.split_once(PARTS[2])?;
        let namespaces = if namespaces == NO_NAMESPACES { "" } else { namespaces };
        let shut = |word: &str| match word {
            SHUT => Some(true),
            OPEN => Some(false),
            _ => None,
        };
        Some(Self { namespaces: namespaces.to_owned(), files: shut(files)?, calls: shut(calls)? })
    }
}

impl fmt::Display for Protections {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [namespaces, files, calls] = PARTS;
        let named = if self.namespaces.is_empty() { NO_NAMESPACES } else { &self.namespaces };
        let word = |shut: bool| if shut { SHUT } else { OPEN };
        write!(f, "{namespaces}{named}{files}{}{calls}{}", word(self.files), word(self.calls))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn walls(files: bool, calls: bool) -> Protections {
        Protections { namespaces: String::new(), files, calls }
    }

    #[test]
    fn what_is_required_decides_what_a_kernel_without_it_gets() {
        use IsolationLevel::{BestEffort, Required};
        for wanted in [Required, BestEffort] {
            // Namespaces are never required: container profiles often deny them.
            assert_eq!(walls(true, true).judge(wanted), IsolationVerdict::Sufficient);
        }
        let IsolationVerdict::Refused(why) = walls(false, true).judge(Required) else {
            panic!("it is refused")
        };
        assert!(
            why.contains("files (Landlock), so helm is not run") && why.contains("helmFence: bestEffort")
        );
        let IsolationVerdict::Refused(why) = walls(true, false).judge(Required) else {
            panic!("it is refused")
        };
        assert!(why.contains("isolation of system calls (seccomp), so"), "{why}");
        let IsolationVerdict::Degraded(why) = walls(false, false).judge(BestEffort) else {
            panic!("it is run")
        };
        assert!(why.starts_with("helm runs without isolation of files (Landlock) and system calls"));
    }

    #[test]
    fn what_the_fence_prints_is_read_back() {
        for (namespaces, files, calls) in [("", true, false), ("users, network and processes", false, true)] {
            let walls = Protections { namespaces: namespaces.to_owned(), files, calls };
            assert_eq!(Protections::read(&format!("{walls}\n")), Some(walls));
        }
        assert_eq!(Protections::read("bounds only"), None);
    }
}
