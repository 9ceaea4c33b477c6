//! The exit codes, in one table. `docs/cli.md` repeats it, and a test compares the two.

use std::process::ExitCode;

/// Result of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// The command succeeded, and a plan has nothing to do.
    Done,
    /// Something is wrong; standard error says what.
    Failure,
    /// The plan writes something.
    Changes,
    /// The plan writes nothing, but holds something.
    Held,
    /// The command line is wrong.
    Usage,
}

/// Every exit code with its meaning.
pub const TABLE: [(Exit, &str); 5] = [
    (Exit::Done, "done; for `plan` and `adopt`: nothing to do"),
    (Exit::Failure, "failure: standard error says what is wrong, where, and what to do"),
    (Exit::Changes, "`plan` and `adopt` only: there are changes"),
    (Exit::Held, "`plan` and `adopt` only: there is nothing to write, but something is held"),
    (Exit::Usage, "the command line is wrong: an unknown flag, conflicting flags, a missing argument"),
];

impl Exit {
    /// The exit code of the process.
    pub const fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Failure => 1,
            Self::Changes => 2,
            Self::Held => 3,
            Self::Usage => 64,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}
