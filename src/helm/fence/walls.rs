//! Which walls stand around a run of helm, and whether that is enough.
//!
//! In: what the kernel gave, and how much of it is wanted. Out: [`Verdict`]: run, run and say what is missing, or do not run. The fence
//! prints its walls as a text and the daemon reads that; both ways are here.

use std::fmt;

/// How much of the fence has to stand before helm is run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Strength {
    /// The walls around files and system calls; without them no chart is rendered.
    #[default]
    Required,
    /// What the kernel has.
    BestEffort,
}

/// The walls that stand beside the bounds on memory, time, files and processes, which always do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Walls {
    /// Namespaces by what they hide; empty where none may be made.
    pub namespaces: String,
    /// No file is reached but the chart's and helm itself.
    pub files: bool,
    /// No socket is made, and no other process reached.
    pub calls: bool,
}

/// Whether helm is run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It is, behind all that is required.
    Stands,
    /// It is, and this is missing, as a sentence for the status.
    Weaker(String),
    /// It is not, and this is why and what to do.
    Refused(String),
}

const NO_NAMESPACES: &str = "none";
const PARTS: [&str; 3] = ["namespaces: ", "; files: ", "; system calls: "];
const SHUT: &str = "shut";
const OPEN: &str = "open";

impl Walls {
    /// Whether these are enough.
    pub fn verdict(&self, wanted: Strength) -> Verdict {
        let open = [(self.files, "files (Landlock)"), (self.calls, "system calls (seccomp)")];
        let open: Vec<&str> = open.iter().filter(|(shut, _)| !shut).map(|(_, name)| *name).collect();
        let open = open.join(" and ");
        match (open.as_str(), wanted) {
            ("", Strength::Required | Strength::BestEffort) => Verdict::Stands,
            (open, Strength::BestEffort) => Verdict::Weaker(format!(
                "helm runs without the wall around {open}, which the kernel here does not give (helmFence: bestEffort)"
            )),
            (open, Strength::Required) => Verdict::Refused(format!(
                "the kernel here does not give the wall around {open}, so helm is not run; use a kernel and a container profile with it, or set helmFence: bestEffort"
            )),
        }
    }

    /// The walls that a text tells of.
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

impl fmt::Display for Walls {
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

    fn walls(files: bool, calls: bool) -> Walls {
        Walls { namespaces: String::new(), files, calls }
    }

    #[test]
    fn what_is_required_decides_what_a_kernel_without_it_gets() {
        use Strength::{BestEffort, Required};
        for wanted in [Required, BestEffort] {
            // Namespaces are more than is asked for: a container's profile refuses them.
            assert_eq!(walls(true, true).verdict(wanted), Verdict::Stands);
        }
        let Verdict::Refused(why) = walls(false, true).verdict(Required) else { panic!("it is refused") };
        assert!(
            why.contains("files (Landlock), so helm is not run") && why.contains("helmFence: bestEffort")
        );
        let Verdict::Refused(why) = walls(true, false).verdict(Required) else { panic!("it is refused") };
        assert!(why.contains("around system calls (seccomp), so"), "{why}");
        let Verdict::Weaker(why) = walls(false, false).verdict(BestEffort) else { panic!("it is run") };
        assert!(why.starts_with("helm runs without the wall around files (Landlock) and system calls"));
    }

    #[test]
    fn what_the_fence_prints_is_read_back() {
        for (namespaces, files, calls) in [("", true, false), ("users, network and processes", false, true)] {
            let walls = Walls { namespaces: namespaces.to_owned(), files, calls };
            assert_eq!(Walls::read(&format!("{walls}\n")), Some(walls));
        }
        assert_eq!(Walls::read("bounds only"), None);
    }
}
