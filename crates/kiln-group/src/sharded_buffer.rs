//! `ShardedBuffer`: elements that are spread over the devices of a group.

use std::fmt;
use std::ops::Range;

use kiln_probe::split_by_weight;
use kiln_runtime::{Element, GpuRef};

use crate::device_group::DeviceGroup;
use crate::error::{GroupError, Result};
use crate::ticket::GroupTicket;

/// Elements that are spread over the devices of a group: device 0 has the first of them, and so on.
///
/// ```
/// use kiln::group::DeviceGroup;
/// use kiln::sim::{DeviceConfig, Machine, MachineConfig};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let config = (0..3).fold(MachineConfig::seeded(1), |config, _| config.device(DeviceConfig::default()));
/// let machine = Machine::new(config);
/// let devices = (0..3).map(|ordinal| machine.device(ordinal)).collect::<Result<Vec<_>, _>>()?;
/// let group = DeviceGroup::over(devices, &Default::default())?;
///
/// let shards = group.upload(&[1_u32, 2, 3, 4, 5, 6, 7])?;
/// assert_eq!(shards.part(1)?.download()?, [4, 5]); // 3 + 2 + 2 elements
/// shards.part(2)?.fill(0)?;
/// assert_eq!(shards.download()?, [1, 2, 3, 4, 5, 0, 0]);
///
/// let whole = group.runtime(0)?.zeros::<u32>(7)?;
/// group.gather(&shards, &whole)?; // does not wait
/// assert_eq!(whole.download()?, [1, 2, 3, 4, 5, 0, 0]);
/// # Ok(())
/// # }
/// ```
pub struct ShardedBuffer<T> {
    group: DeviceGroup,
    parts: Vec<GpuRef<T>>,
    ranges: Vec<Range<usize>>,
}

impl DeviceGroup {
    /// Room for `len` elements, spread evenly, with nothing known of their contents.
    ///
    /// # Errors
    /// A device that is lost or has no memory, with its place.
    #[track_caller]
    pub fn allocate<T: Element>(&self, len: usize) -> Result<ShardedBuffer<T>> {
        self.allocate_by_weight(len, &vec![1; self.len()])
    }

    /// As [`allocate`](Self::allocate), with as many elements on each device as its weight earns. A weight of 0 gets none, unless all are 0.
    ///
    /// # Errors
    /// As for [`allocate`](Self::allocate); not one weight for each device.
    #[track_caller]
    pub fn allocate_by_weight<T: Element>(&self, len: usize, weights: &[u64]) -> Result<ShardedBuffer<T>> {
        if weights.len() != self.len() {
            return Err(GroupError::Weights { given: weights.len(), len: self.len() });
        }
        let split = split_by_weight(len as u64, weights);
        let ranges: Vec<_> =
            split.into_iter().map(|range| range.start as usize..range.end as usize).collect();
        let mut parts = Vec::with_capacity(self.len());
        for ((index, runtime), range) in self.runtimes().iter().enumerate().zip(&ranges) {
            parts.push(runtime.allocate(range.len()).map_err(GroupError::at(index))?);
        }
        Ok(ShardedBuffer { group: self.clone(), parts, ranges })
    }

    /// Host data, spread evenly over the devices. It may be changed or dropped as soon as this returns.
    ///
    /// # Errors
    /// As for [`allocate`](Self::allocate).
    #[track_caller]
    pub fn upload<T: Element>(&self, data: &[T]) -> Result<ShardedBuffer<T>> {
        let shards = self.allocate(data.len())?;
        shards.upload(data)?;
        Ok(shards)
    }

    /// Copies a buffer of any device of the group to the parts of a sharded one. It is ordered as [`copy`](Self::copy) is.
    ///
    /// # Errors
    /// Different lengths; buffers of another group; a device that was lost before, or has no stream for its copies: nothing was copied then. A device that is lost meanwhile, and then the parts of
    /// the others may have been copied.
    #[track_caller]
    pub fn scatter<T: Element>(&self, from: &GpuRef<T>, to: &ShardedBuffer<T>) -> Result<GroupTicket> {
        let owner = self.check(from, "source", to, (from.len(), to.len()))?;
        let copies = to.pieces(from).map_err(GroupError::at(owner))?;
        self.copy_all(copies.iter().zip(&to.parts))
    }

    /// Copies the parts of a sharded buffer to one of any device of the group. It is ordered as [`copy`](Self::copy) is.
    ///
    /// # Errors
    /// As for [`scatter`](Self::scatter).
    #[track_caller]
    pub fn gather<T: Element>(&self, from: &ShardedBuffer<T>, to: &GpuRef<T>) -> Result<GroupTicket> {
        let owner = self.check(to, "destination", from, (from.len(), to.len()))?;
        let copies = from.pieces(to).map_err(GroupError::at(owner))?;
        self.copy_all(from.parts.iter().zip(&copies))
    }

    fn check<T: Element>(
        &self,
        whole: &GpuRef<T>,
        what: &'static str,
        shards: &ShardedBuffer<T>,
        (source_len, destination_len): (usize, usize),
    ) -> Result<usize> {
        if !shards.group.is(self) {
            return Err(GroupError::OtherGroup);
        }
        let owner = self.owner(what, whole)?;
        match source_len == destination_len {
            true => Ok(owner),
            false => Err(GroupError::Length { source_len, destination_len }),
        }
    }

    /// Makes all copies, also those behind one that fails; the first failure is the answer. Where there is no way for one of them, none is made.
    #[track_caller]
    fn copy_all<'a, T: Element>(
        &self,
        copies: impl Iterator<Item = (&'a GpuRef<T>, &'a GpuRef<T>)>,
    ) -> Result<GroupTicket> {
        let copies: Vec<_> = copies.filter(|(from, _)| !from.is_empty()).collect();
        for (from, to) in &copies {
            let (source, target) = (self.owner("source", from)?, self.owner("destination", to)?);
            if source != target {
                self.way(source, target)?;
            }
        }
        let mut queued = Vec::with_capacity(copies.len());
        for (from, to) in copies {
            queued.push(self.copy(from, to));
        }
        let mut all = GroupTicket::new(Vec::new());
        for ticket in queued {
            all.join(ticket?);
        }
        Ok(all)
    }
}

impl<T: Element> ShardedBuffer<T> {
    /// Elements on all devices.
    pub fn len(&self) -> usize {
        self.ranges.last().map_or(0, |range| range.end)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The parts, one for each device; a part may be empty.
    pub fn parts(&self) -> &[GpuRef<T>] {
        &self.parts
    }

    /// The part of a device.
    ///
    /// # Errors
    /// A device that the group does not have.
    pub fn part(&self, index: usize) -> Result<&GpuRef<T>> {
        self.parts.get(index).ok_or(GroupError::NoSuchDevice { index, len: self.parts.len() })
    }

    /// Which of all elements a device has.
    ///
    /// # Errors
    /// A device that the group does not have.
    pub fn range(&self, index: usize) -> Result<Range<usize>> {
        self.ranges.get(index).cloned().ok_or(GroupError::NoSuchDevice { index, len: self.parts.len() })
    }

    /// Overwrites all elements from host data, which may be changed or dropped as soon as this returns.
    ///
    /// # Errors
    /// Another length, and then nothing was written; a lost device, and then the parts of the others were.
    #[track_caller]
    pub fn upload(&self, data: &[T]) -> Result<GroupTicket> {
        self.check_len(data.len())?;
        let mut queued: Vec<Result<_>> = Vec::with_capacity(self.parts.len());
        for (index, (part, range)) in self.parts.iter().zip(&self.ranges).enumerate() {
            let ticket = part.upload(&data[range.clone()]).map_err(GroupError::at(index));
            queued.push(ticket.map(|ticket| (index, ticket)));
        }
        Ok(GroupTicket::new(queued.into_iter().collect::<Result<_>>()?))
    }

    /// All elements, once everything that writes them is done.
    ///
    /// # Errors
    /// A lost device, with its place; its elements are lost, those of the others can be had from [`part`](Self::part).
    #[track_caller]
    pub fn download(&self) -> Result<Vec<T>> {
        let mut all = Vec::new();
        for (index, part) in self.parts.iter().enumerate() {
            all.append(&mut part.download().map_err(GroupError::at(index))?);
        }
        Ok(all)
    }

    /// A buffer of as many elements, cut as this one is.
    fn pieces(&self, whole: &GpuRef<T>) -> std::result::Result<Vec<GpuRef<T>>, kiln_runtime::Error> {
        self.ranges.iter().map(|range| whole.view(range.clone())).collect()
    }

    fn check_len(&self, source_len: usize) -> Result<()> {
        match source_len == self.len() {
            true => Ok(()),
            false => Err(GroupError::Length { source_len, destination_len: self.len() }),
        }
    }
}

impl<T: Element> fmt::Debug for ShardedBuffer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} elements on {} devices: {:?}", self.len(), self.parts.len(), self.ranges)
    }
}
