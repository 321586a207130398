//! Fault injection: what fails, where and when, as data.

use std::time::Duration;

use kiln_driver::Code;

/// What goes wrong in a run. Counts begin at 1 and are kept for each device.
///
/// ```
/// use kiln_driver::Code;
/// use kiln_sim::{PlannedFault, FaultPlan};
///
/// let plan = FaultPlan::none()
///     .on(0, PlannedFault::OutOfMemory { allocation: 3 })
///     .on(1, PlannedFault::Sticky { launch: 10, code: Code::ILLEGAL_ADDRESS });
/// assert_eq!(plan.faults.len(), 2);
/// ```
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct FaultPlan {
    /// Each with the ordinal of the device it happens to.
    pub faults: Vec<(u32, PlannedFault)>,
}

/// One thing that goes wrong.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum PlannedFault {
    /// The nth allocation (of memory, pages or host memory) finds none; those after it are as usual.
    OutOfMemory {
        /// Which.
        allocation: u64,
    },
    /// The nth kernel to run ends with an error that loses the device.
    Sticky {
        /// Which, in the order kernels run.
        launch: u64,
        /// With what code.
        code: Code,
    },
    /// The nth kernel to run does not end.
    Hang {
        /// Which, in the order kernels run.
        launch: u64,
    },
    /// The device is lost when the nth call is made.
    LostAtCall {
        /// Which.
        call: u64,
        /// With what code.
        code: Code,
    },
    /// The device is lost from that time on.
    LostAt {
        /// When, on the virtual clock.
        time: Duration,
        /// With what code.
        code: Code,
    },
    /// Copies take so many times as long.
    SlowCopies {
        /// How many times.
        factor: u64,
    },
    /// The nth image is not accepted.
    LoadFails {
        /// Which.
        load: u64,
        /// The loader's code.
        code: Code,
        /// The loader's log.
        log: String,
    },
}

impl FaultPlan {
    /// Nothing goes wrong.
    pub fn none() -> Self {
        Self::default()
    }

    /// One more fault.
    #[must_use]
    pub fn on(mut self, device: u32, fault: PlannedFault) -> Self {
        self.faults.push((device, fault));
        self
    }

    pub(crate) fn of(&self, device: u32) -> impl Iterator<Item = &PlannedFault> {
        self.faults.iter().filter(move |(ordinal, _)| *ordinal == device).map(|(_, fault)| fault)
    }

    pub(crate) fn copy_factor(&self, device: u32) -> u64 {
        let factors = self.of(device).filter_map(|fault| match fault {
            PlannedFault::SlowCopies { factor } => Some(*factor),
            _ => None,
        });
        factors.fold(1, u64::saturating_mul)
    }
}
