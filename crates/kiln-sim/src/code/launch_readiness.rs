//! Whether a launch that waits for memory can run.

/// Whether a launch can run, as a kernel with a condition says.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum LaunchReadiness {
    /// It can.
    Ready,
    /// It waits for other work of the machine, or for the host; the words say for what. It is a finding if neither does anything for
    /// [`MachineLimits::idle_host`](crate::MachineLimits::idle_host).
    Waiting(String),
    /// It waits for another process, for as long as that takes.
    OtherProcess(String),
}

impl LaunchReadiness {
    /// What is waited for.
    pub(crate) fn waits_for(&self) -> Option<&str> {
        match self {
            Self::Ready => None,
            Self::Waiting(what) | Self::OtherProcess(what) => Some(what),
        }
    }
}
