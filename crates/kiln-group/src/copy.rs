//! Copies between devices.

use kiln_driver::Access;
use kiln_runtime::{Element, GpuRef, internal};

use crate::device_group::{DeviceGroup, Way};
use crate::error::{GroupError, Result};
use crate::peer_link::Transfer;
use crate::ticket::GroupTicket;

impl DeviceGroup {
    /// Copies all elements from one buffer to another, on the same device or another.
    ///
    /// The copy is ordered on both devices: after what writes the source and what uses the destination, before what overwrites the source and
    /// what uses the destination afterwards. A direct copy does not wait. A copy [through the host](crate::PeerAccess::ThroughHost) waits until the
    /// source was read.
    ///
    /// ```
    /// use kiln::group::DeviceGroup;
    /// use kiln::sim::{DeviceConfig, Links, Machine, MachineConfig};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let config = MachineConfig::seeded(1).device(DeviceConfig::default()).device(DeviceConfig::default());
    /// let machine = Machine::new(config.links(Links::none())); // two devices that are not connected
    /// let group = DeviceGroup::over([machine.device(0)?, machine.device(1)?], &Default::default())?;
    /// assert!(!group.peer_access(0, 1)?.is_direct());
    /// let (from, to) = (group.runtime(0)?.upload(&[1, 2, 3])?, group.runtime(1)?.zeros::<i32>(3)?);
    /// group.copy(&from, &to)?.wait()?;
    /// assert_eq!(to.download()?, [1, 2, 3]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Buffers of different lengths, that overlap, or of no device of the group; a device that is lost or refuses, with its place. Nothing was copied
    /// then, unless the device was lost while the copy was queued.
    #[track_caller]
    pub fn copy<T: Element>(&self, from: &GpuRef<T>, to: &GpuRef<T>) -> Result<GroupTicket> {
        let (source, target) = (self.owner("source", from)?, self.owner("destination", to)?);
        if from.len() != to.len() {
            return Err(GroupError::Length { source_len: from.len(), destination_len: to.len() });
        }
        if source == target {
            let ticket = to.copy_from(from).map_err(GroupError::at(target))?;
            return Ok(GroupTicket::new(vec![(target, ticket)]));
        }
        match self.way(source, target)? {
            Way::Direct(link) => {
                // What ended work was to write is usable again once all of it is overwritten, which a use of two devices cannot say.
                if to.access().is_err() {
                    let all = to.cast::<u8>().map_err(GroupError::at(target))?;
                    all.fill(0).map_err(GroupError::at(target))?;
                }
                let places = from.place().zip(to.place());
                let transfer = Transfer {
                    from: from.used_as(Access::Read),
                    to: to.used_as(Access::Write),
                    copy: places.map(|(from_place, to_place)| (from_place, to_place, to.bytes())),
                };
                let ticket = link.transfer(&transfer)?;
                internal::note_overwritten(to);
                Ok(ticket)
            }
            Way::ThroughHost(_) => {
                let bytes = from.download().map_err(GroupError::at(source))?;
                let ticket = to.upload(&bytes).map_err(GroupError::at(target))?;
                Ok(GroupTicket::new(vec![(target, ticket)]))
            }
        }
    }
}
