//! Setting: whether a finding fails a call, is reported, or is ignored.

use std::ffi::OsStr;
use std::fmt;
use std::str::FromStr;

use crate::error::{FINDINGS_VARIABLE, UnknownFindings};

/// What is done with the mistakes that a device finds: a simulated device does, hardware does not.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Findings {
    /// They fail the work that made them, all that waits for it, and at last [`shutdown`](crate::DeviceRuntime::shutdown).
    #[default]
    Fail,
    /// They are listed by [`findings`](crate::DeviceRuntime::findings), and printed when the runtime is dropped and they were not read.
    Report,
    /// They are neither collected nor printed.
    Ignore,
}

impl Findings {
    /// What the environment says, or else this.
    pub(crate) fn or_variable(self) -> Result<Self, UnknownFindings> {
        self.overridden(std::env::var_os(FINDINGS_VARIABLE).as_deref())
    }

    fn overridden(self, variable: Option<&OsStr>) -> Result<Self, UnknownFindings> {
        match variable.filter(|value| !value.is_empty()) {
            None => Ok(self),
            Some(value) => value.to_string_lossy().parse(),
        }
    }
}

impl FromStr for Findings {
    type Err = UnknownFindings;

    fn from_str(text: &str) -> Result<Self, UnknownFindings> {
        match text.trim() {
            "fail" => Ok(Self::Fail),
            "report" => Ok(Self::Report),
            "ignore" => Ok(Self::Ignore),
            other => Err(UnknownFindings { value: other.to_owned() }),
        }
    }
}

impl fmt::Display for Findings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Fail => "fail",
            Self::Report => "report",
            Self::Ignore => "ignore",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_variable_overrides_and_a_bad_word_is_an_error() {
        for setting in [Findings::Fail, Findings::Report, Findings::Ignore] {
            assert_eq!(Findings::Fail.overridden(Some(setting.to_string().as_ref())), Ok(setting));
        }
        assert_eq!(Findings::Report.overridden(None), Ok(Findings::Report));
        assert_eq!(Findings::Report.overridden(Some("".as_ref())), Ok(Findings::Report));
        let error = Findings::Fail.overridden(Some("quiet".as_ref())).unwrap_err();
        assert_eq!(error, UnknownFindings { value: "quiet".into() });
        assert!(error.to_string().contains("`fail`, `report` or `ignore`"));
    }
}
