//! Too little memory on the host.

/// The host has no memory for what a call would bring to it. Nothing was queued or changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the host has no {bytes} bytes of memory for {what}; take a smaller view, or free host memory")]
pub struct OutOfHostMemory {
    /// Bytes that were asked for.
    pub bytes: u64,
    /// What they were for.
    pub what: &'static str,
}
