//! Where a collective meets those of other ranks.

use crate::transfer::Transfer;

/// Where a collective meets those of other ranks.
pub(super) enum Place {
    All(u64),
    Pair(Transfer),
}

impl Place {
    /// Whether what one rank does there needs that another one has come.
    pub(super) fn needs(&self, own: u32, other: Option<u32>) -> bool {
        match self {
            Self::All(_) => true,
            Self::Pair(Transfer { from, to, .. }) => *to == own && Some(*from) == other,
        }
    }
}
