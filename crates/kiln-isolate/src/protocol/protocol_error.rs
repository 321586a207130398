//! A peer that breaks the protocol.

/// Something the other process wrote that the protocol does not allow. The connection to it is closed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the other process broke the protocol: {what}")]
pub struct ProtocolViolation {
    what: &'static str,
}

impl ProtocolViolation {
    #[cfg(target_os = "linux")]
    pub(crate) fn new(what: &'static str) -> Self {
        Self { what }
    }

    /// What it wrote.
    pub fn what(&self) -> &'static str {
        self.what
    }
}
