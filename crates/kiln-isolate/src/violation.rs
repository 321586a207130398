//! A peer that does not keep the protocol.

use crate::wire::Malformed;

/// Something the other process wrote that cannot be true. It is not spoken to again.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the other process broke the protocol: {what}")]
pub struct Violation {
    what: &'static str,
}

impl Violation {
    pub(crate) fn new(what: &'static str) -> Self {
        Self { what }
    }

    /// What it did.
    pub fn what(&self) -> &'static str {
        self.what
    }
}

impl From<Malformed> for Violation {
    fn from(malformed: Malformed) -> Self {
        Self { what: malformed.what }
    }
}
