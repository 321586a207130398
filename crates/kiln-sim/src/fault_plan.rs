//! Fault injection: what fails, where and when, as data.

use std::time::Duration;

use kiln_driver::Code;

/// What goes wrong in a run. Counts begin at 1 and are kept for each device.
///
/// As text, a plan has a word for each fault, with the ordinal of its device before it, which may be left out for device 0:
///
/// ```text
/// 0:oom@3           the third allocation finds no memory
/// 0:fault@10        the tenth kernel to run ends with an illegal access, and the device is lost
/// 0:hang@10         the tenth kernel to run does not end
/// 0:lost@40         the device is lost when the fortieth call is made
/// 0:load@2          the second image is not accepted
/// 0:slow-copies@8   copies take eight times as long
/// 0:cut-1@5         the link to device 1 is cut with the fifth transfer over it, and device 0 is lost
/// 0:slow-1@8        what passes the link to device 1 takes eight times as long
/// ```
///
/// ```
/// use kiln_driver::Code;
/// use kiln_sim::{PlannedFault, FaultPlan};
///
/// let plan = FaultPlan::none()
///     .on(0, PlannedFault::OutOfMemory { allocation: 3 })
///     .on(1, PlannedFault::Sticky { launch: 10, code: Code::ILLEGAL_ADDRESS });
/// assert_eq!(plan.faults.len(), 2);
/// assert_eq!("0:oom@3 1:cut-0@2".parse::<FaultPlan>()?.faults.len(), 2);
/// # Ok::<(), kiln_sim::FaultPlanError>(())
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
    /// The device is lost with the nth transfer over the link between it and another device, with `NVLINK_UNCORRECTABLE`: the link is cut. A transfer is a copy between the two, in either direction, or a
    /// collective of a communicator in which their ranks are neighbours in the ring. What kernels read and write over the link does not count.
    LinkCut {
        /// The ordinal of the other device.
        to: u32,
        /// Which transfer.
        transfer: u64,
    },
    /// Copies and collectives over the link between the device and another one take so many times as long. What the machine did, as text, says so at the first one.
    SlowLink {
        /// The ordinal of the other device.
        to: u32,
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

impl PlannedFault {
    /// Whether it comes to the link between two devices, and so needs another one.
    pub fn is_of_a_link(&self) -> bool {
        self.other_device().is_some()
    }

    /// The device at the other end, for a fault that comes to the link between two.
    pub fn other_device(&self) -> Option<u32> {
        match self {
            Self::LinkCut { to, .. } | Self::SlowLink { to, .. } => Some(*to),
            _ => None,
        }
    }
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

    /// Nothing but a link that is cut: which of the links between so many devices, and with which of the first `transfers` over it, follows from the seed. Nothing at all for fewer than two devices, or no
    /// transfers.
    ///
    /// ```
    /// use kiln_sim::FaultPlan;
    ///
    /// assert_eq!(FaultPlan::with_cut_link(7, 4, 100), FaultPlan::with_cut_link(7, 4, 100));
    /// assert_eq!(FaultPlan::with_cut_link(7, 4, 100).faults.len(), 1);
    /// assert_eq!(FaultPlan::with_cut_link(7, 1, 100), FaultPlan::none());
    /// ```
    pub fn with_cut_link(seed: u64, devices: u32, transfers: u64) -> Self {
        if devices < 2 || transfers == 0 {
            return Self::none();
        }
        let number = mix(seed);
        let device = (number % u64::from(devices)) as u32;
        let others = u64::from(devices) - 1;
        let to = (u64::from(device) + 1 + (number >> 20) % others) % u64::from(devices);
        let transfer = 1 + mix(number) % transfers;
        Self::none().on(device, PlannedFault::LinkCut { to: to as u32, transfer })
    }

    /// How many times as long what passes the link between two devices takes.
    pub(crate) fn link_factor(&self, one: u32, other: u32) -> u64 {
        let slow = |from: u32, over: u32| {
            self.of(from).filter_map(move |fault| match fault {
                PlannedFault::SlowLink { to, factor } if *to == over => Some(*factor),
                _ => None,
            })
        };
        slow(one, other).chain(slow(other, one)).fold(1, u64::saturating_mul)
    }

    /// The links that are cut, as the device that is lost with one, the other device, and the transfer.
    pub(crate) fn cut_links(&self) -> impl Iterator<Item = (u32, u32, u64)> + '_ {
        self.faults.iter().filter_map(|(device, fault)| match fault {
            PlannedFault::LinkCut { to, transfer } => Some((*device, *to, *transfer)),
            _ => None,
        })
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

/// A number that follows from a seed and looks like none that follows from another one.
fn mix(seed: u64) -> u64 {
    let number = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}
