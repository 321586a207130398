//! `Finding`: a place that breaks a rule, and what to do.

use std::fmt;

/// A place that breaks a rule, and what to do about it.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Finding {
    path: String,
    line: usize,
    text: String,
}

impl Finding {
    /// A finding in a line; the first line is 1.
    pub(crate) fn new(path: &str, line: usize, text: impl Into<String>) -> Self {
        Self { path: path.to_owned(), line, text: text.into() }
    }

    /// The line it is in.
    #[cfg(test)]
    pub(crate) fn line(&self) -> usize {
        self.line
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.path, self.line, self.text)
    }
}

/// The lines of findings, for tests.
#[cfg(test)]
pub(crate) fn lines(findings: &[Finding]) -> Vec<usize> {
    findings.iter().map(Finding::line).collect()
}

/// No line, for tests.
#[cfg(test)]
pub(crate) const NONE: [usize; 0] = [];
