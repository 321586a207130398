//! How the process of a rank ended.

use std::fmt;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

use crate::signal_name::signal_text;

/// How the process of a rank ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum RankEnd {
    /// It ended with this exit status.
    Exit(u8),
    /// It was ended by this signal.
    Signal(u8),
}

impl RankEnd {
    pub(super) fn is_success(self) -> bool {
        self == Self::Exit(0)
    }

    /// The exit status that a shell would give it.
    pub(super) fn code(self) -> u8 {
        match self {
            Self::Exit(code) => code,
            Self::Signal(number) => number.saturating_add(128),
        }
    }
}

impl From<ExitStatus> for RankEnd {
    fn from(status: ExitStatus) -> Self {
        let byte = |number: i32| u8::try_from(number).unwrap_or(u8::MAX);
        match (status.code(), status.signal()) {
            (Some(code), _) => Self::Exit(byte(code)),
            (None, Some(signal)) => Self::Signal(byte(signal)),
            (None, None) => Self::Exit(u8::MAX),
        }
    }
}

impl fmt::Display for RankEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exit(code) => write!(f, "exit status {code}"),
            Self::Signal(number) => f.write_str(&signal_text(*number)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_is_named_and_counts_from_128() {
        let ends = [RankEnd::Exit(0), RankEnd::Exit(3), RankEnd::Signal(9), RankEnd::Signal(34)];
        assert_eq!(ends.map(RankEnd::code), [0, 3, 137, 162]);
        assert_eq!(
            ends.map(|end| end.to_string()),
            ["exit status 0", "exit status 3", "signal 9 (SIGKILL)", "signal 34"]
        );
        assert_eq!(ends.map(RankEnd::is_success), [true, false, false, false]);
    }
}
