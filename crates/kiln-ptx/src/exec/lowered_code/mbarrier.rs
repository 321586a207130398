//! Steps at barrier objects in shared memory.

use super::*;

/// `mbarrier`.
pub(crate) struct Mbarrier {
    pub(crate) action: MbarrierAction,
    pub(crate) place: Place,
    pub(crate) address: Address,
    /// A count of arrivals or bytes, a state, or a parity.
    pub(crate) value: Source,
    pub(crate) to: Reg,
    pub(crate) to_pred: Pred,
    /// Whether it releases or acquires.
    pub(crate) orders: bool,
}

/// What is done with an `mbarrier` object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MbarrierAction {
    Start,
    Invalidate,
    Arrive {
        drops: bool,
        expects: bool,
        completes: bool,
    },
    /// `cp.async.mbarrier.arrive`; `counts` if the object expects the arrival.
    ArriveAfterCopies {
        counts: bool,
    },
    Expect,
    Complete,
    Wait {
        parity: bool,
        suspends: bool,
    },
}

impl MbarrierAction {
    /// Whether it can be done with an object of another block of the cluster.
    pub(crate) fn reaches_other_blocks(self) -> bool {
        matches!(self, Self::Arrive { .. } | Self::Expect | Self::Complete)
    }
}
