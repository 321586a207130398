//! Why a handle cannot be used any more.

/// Why the memory behind a handle cannot be reached.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Stale {
    /// The runtime was dropped.
    #[error("the device's runtime was dropped; upload the data to a runtime that lives")]
    DeviceDropped,
    /// The runtime is shutting down.
    #[error("the device is shutting down and takes no new work; open another runtime for it")]
    ShuttingDown,
    /// The device failed.
    #[error(
        "the device failed and its memory is gone; open another runtime and upload the data to it; the runtime's state has the cause"
    )]
    Failed,
    /// The device is being rebuilt.
    #[error("the device is being rebuilt; ask again when it is ready")]
    Rebuilding,
    /// The context was rebuilt and this buffer was lost.
    #[error(
        "the device was rebuilt and this buffer was lost; overwrite all of it with `upload`, `fill` or `copy_from`, or say with `heal_with` what it holds before that happens"
    )]
    Lost,
    /// Work that was to write the buffer was ended before it was done; the device goes on.
    #[error(
        "work that was to write this buffer was ended before it was done; overwrite the whole buffer by an upload, a fill or a copy, or allocate another one"
    )]
    NotWritten,
}
