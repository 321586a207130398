//! How far a block of threads got.

/// How far a block got when another one runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    Done,
    Paused,
    /// It could go on, but another block should run first.
    Preempted,
    /// Its threads wait, or repeat what they do until memory changes.
    Repeating,
    /// Its threads wait for other blocks of the cluster.
    Stuck,
}
