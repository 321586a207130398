//! Setting: which memory survives when a lost device is rebuilt.

/// What survives a rebuild.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Keep {
    /// Every block that unfinished work was not to write.
    #[default]
    Untouched,
    /// Nothing: all handles go stale.
    Nothing,
}
