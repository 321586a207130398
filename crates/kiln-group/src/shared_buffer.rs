//! `SharedBuffer`: the same memory on every device of a group.

use std::fmt;

use kiln_driver::{Access, ForeignMemory};
use kiln_runtime::{Element, GpuRef};

use crate::device_group::{DeviceGroup, Way};
use crate::error::{GroupError, Result};
use crate::peer_link::Transfer;
use crate::shared_pages::MappedPages;
use crate::ticket::GroupTicket;

/// Physical memory of one device that is mapped on every device of the group, so that kernels of all of them reach the same bytes.
///
/// Each device orders its own uses. Between devices the caller says where one comes after another: [`order`](Self::order). On a simulated
/// machine a missing order is found as a race.
///
/// ```
/// use kiln::group::DeviceGroup;
/// use kiln::sim::{DeviceConfig, Machine, MachineConfig};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let config = MachineConfig::seeded(1).device(DeviceConfig::default()).device(DeviceConfig::default());
/// let machine = Machine::new(config);
/// let group = DeviceGroup::over([machine.device(0)?, machine.device(1)?], &Default::default())?;
/// let shared = group.share::<u32>(0, 1000)?; // memory of device 0
/// shared.on(0)?.fill(7)?;
/// shared.order(0, 1)?; // what device 1 does from here on comes after what device 0 did so far
/// assert_eq!(shared.on(1)?.download()?, [7; 1000]);
/// # Ok(())
/// # }
/// ```
pub struct SharedBuffer<T> {
    group: DeviceGroup,
    owner: usize,
    views: Vec<GpuRef<T>>,
}

impl DeviceGroup {
    /// Room for `len` elements in the memory of device `owner`, mapped on every device, with nothing known of its contents. It takes whole pages.
    ///
    /// # Errors
    /// A device that the group does not have; no elements; a device that cannot export or map pages, or does not reach the owner's memory directly, with its place; what the owner says, such as out
    /// of memory.
    #[track_caller]
    pub fn share<T: Element>(&self, owner: usize, len: usize) -> Result<SharedBuffer<T>> {
        let element_bytes = size_of::<T>();
        let too_large = GroupError::SharedSize { len, element_bytes };
        let bytes = (len as u64).checked_mul(element_bytes as u64).filter(|bytes| *bytes > 0);
        let granularity = self.granularity(owner)?;
        let whole = bytes.and_then(|bytes| bytes.checked_next_multiple_of(granularity));
        let whole = whole.filter(|whole| *whole <= i64::MAX as u64).ok_or(too_large)?;
        let bytes = bytes.unwrap_or(0);

        for index in (0..self.len()).filter(|index| *index != owner) {
            if let Way::ThroughHost(why) = self.way(owner, index)? {
                return Err(GroupError::NotReached { index, owner, why });
            }
        }
        let runtime = self.runtime(owner)?;
        let home = runtime.stream().map_err(GroupError::at(owner))?;
        let first = MappedPages::create(runtime, home, whole).map_err(|error| refused(owner, error))?;
        let others: Vec<_> = (0..self.len()).filter(|index| *index != owner).collect();
        let mut mapped = Vec::with_capacity(self.len());
        for index in others {
            let runtime = self.runtime(index)?;
            let home = runtime.stream().map_err(GroupError::at(index))?;
            mapped.push((index, first.map_on(runtime, home).map_err(|error| refused(index, error))?));
        }
        mapped.push((owner, first));
        mapped.sort_by_key(|(index, _)| *index);
        let view = |(index, pages): (usize, MappedPages)| {
            let (home, address) = (pages.home().clone(), pages.reservation().address);
            // SAFETY: so many bytes are mapped there, and stay so until the handle is freed: it holds the pages.
            let memory = unsafe { ForeignMemory::new(address, bytes) };
            self.runtime(index)?.adopt_memory(&home, memory, pages).map_err(GroupError::at(index))
        };
        let views = mapped.into_iter().map(view).collect::<Result<_>>()?;
        Ok(SharedBuffer { group: self.clone(), owner, views })
    }

    /// Pages of every device are multiples of this.
    fn granularity(&self, owner: usize) -> Result<u64> {
        self.runtime(owner)?;
        let mut largest = 1;
        for (index, runtime) in self.runtimes().iter().enumerate() {
            let (info, granularity) = (runtime.info(), runtime.info().limits.page_granularity_bytes);
            if granularity == 0 || !info.features.page_export {
                return Err(GroupError::NoSharedPages { index });
            }
            largest = granularity.max(largest);
        }
        Ok(largest)
    }
}

impl<T: Element> SharedBuffer<T> {
    /// The memory as a buffer of a device.
    ///
    /// # Errors
    /// A device that the group does not have.
    pub fn on(&self, index: usize) -> Result<&GpuRef<T>> {
        self.views.get(index).ok_or(GroupError::NoSuchDevice { index, len: self.views.len() })
    }

    /// The device whose memory it is.
    pub fn owner(&self) -> usize {
        self.owner
    }

    /// Elements.
    pub fn len(&self) -> usize {
        self.views.first().map_or(0, GpuRef::len)
    }

    /// Whether there are none, which no shared buffer has.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Makes uses of the memory on device `to` from here on come after all its uses on device `from` so far. Where the devices can wait for each
    /// other, this does not wait; otherwise the calling thread waits for `from`.
    ///
    /// # Errors
    /// A device that the group does not have; a lost device.
    #[track_caller]
    pub fn order(&self, from: usize, to: usize) -> Result<GroupTicket> {
        let (source, target) = (self.on(from)?, self.on(to)?);
        if from == to {
            return Ok(GroupTicket::new(Vec::new()));
        }
        match self.group.way(from, to)? {
            Way::Direct(link) => {
                let (from, to) = (source.used_as(Access::ReadWrite), target.used_as(Access::ReadWrite));
                link.transfer(&Transfer { from, to, copy: None })
            }
            Way::ThroughHost(_) => {
                let runtime = self.group.runtime(from)?;
                let stream = runtime.main_stream();
                let used = runtime.prepare_block_use(stream, &[source.used_as(Access::ReadWrite)]);
                let ticket = used.and_then(|used| used.finish()).map_err(GroupError::at(from))?;
                ticket.wait().map_err(GroupError::at(from))?;
                Ok(GroupTicket::new(vec![(from, ticket)]))
            }
        }
    }
}

/// A device that lacks the call cannot share; everything else is its answer.
fn refused(index: usize, error: kiln_driver::Error) -> GroupError {
    match error.is_unsupported() {
        true => GroupError::NoSharedPages { index },
        false => GroupError::at(index)(error.into()),
    }
}

impl<T: Element> fmt::Debug for SharedBuffer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} elements of device {} on {} devices", self.len(), self.owner, self.views.len())
    }
}
