//! Copies and fills.

use kiln_driver::{Access, DevicePlace, Error, Pattern, Place, Refusal, Result, Submission};

use crate::device::CudaDevice;
use crate::libcuda_symbols::Api;
use crate::located_bytes::{DeviceBytes, HostBytes, owner};
use crate::stream::Stream;
use crate::stream_progress::SubmissionKind;

/// Both ends of a copy inside one device and its host, held in place.
pub(crate) enum Ends<'a> {
    Up { from: HostBytes<'a>, to: DeviceBytes<'a> },
    Down { from: DeviceBytes<'a>, to: HostBytes<'a> },
    Across { from: DeviceBytes<'a>, to: DeviceBytes<'a> },
    Host { from: HostBytes<'a>, to: HostBytes<'a> },
}

/// Where a fill goes, held in place, and how much it writes.
pub(crate) struct Filled<'a> {
    pub(crate) to: DeviceBytes<'a>,
    pub(crate) pattern: Pattern,
    pub(crate) count: usize,
}

impl CudaDevice {
    pub(crate) fn submit_copy(
        &self,
        call: &'static str,
        api: &Api,
        stream: &Stream,
        from: Place,
        to: Place,
        bytes: u64,
    ) -> Result<Submission> {
        match (self.own_end(from), self.own_end(to)) {
            (Place::Peer(from), Place::Device(to)) => {
                self.submit_peer_copy(call, api, stream, (from, to), bytes)
            }
            (Place::Device(from), Place::Peer(to)) => {
                self.submit_peer_copy(call, api, stream, (from, to), bytes)
            }
            (from, to) => {
                let ends = self.ends(call, from, to, bytes)?;
                let size = bytes as usize;
                stream.queue(call, SubmissionKind::Copy, |_| match (size, &ends) {
                    (0, _) => 0,
                    // SAFETY: both ends lie inside of blocks that are pinned during the call; that they outlive the
                    // copy itself is what the caller of the driver interface promises. The stream is pinned too.
                    (_, Ends::Up { from, to }) => unsafe {
                        (api.copy_up)(to.address(), from.start().cast(), size, stream.raw())
                    },
                    // SAFETY: as above.
                    (_, Ends::Down { from, to }) => unsafe {
                        (api.copy_down)(to.start().cast(), from.address(), size, stream.raw())
                    },
                    // SAFETY: as above.
                    (_, Ends::Across { from, to }) => unsafe {
                        (api.copy_across)(to.address(), from.address(), size, stream.raw())
                    },
                    // SAFETY: as above; pinned host memory has the same address on the device.
                    (_, Ends::Host { from, to }) => unsafe {
                        (api.copy_any)(to.start() as u64, from.start() as u64, size, stream.raw())
                    },
                })
            }
        }
    }

    pub(crate) fn submit_fill(
        &self,
        call: &'static str,
        api: &Api,
        stream: &Stream,
        to: DevicePlace,
        pattern: Pattern,
        count: u64,
    ) -> Result<Submission> {
        let Filled { to, pattern, count } = self.filled(call, to, pattern, count)?;
        stream.queue(call, SubmissionKind::Fill, |_| match (count, pattern) {
            (0, _) => 0,
            // SAFETY: the bytes lie inside of a block that is pinned during the call and are aligned to the pattern; the
            // stream is pinned too.
            (_, Pattern::U8(value)) => unsafe { (api.fill_u8)(to.address(), value, count, stream.raw()) },
            // SAFETY: as above.
            (_, Pattern::U16(value)) => unsafe { (api.fill_u16)(to.address(), value, count, stream.raw()) },
            // SAFETY: as above.
            (_, Pattern::U32(value)) => unsafe { (api.fill_u32)(to.address(), value, count, stream.raw()) },
        })
    }

    /// Finds both ends of a copy that stays on this device and its host.
    pub(crate) fn ends(&self, call: &'static str, from: Place, to: Place, bytes: u64) -> Result<Ends<'_>> {
        let device = |place, access| self.locate(call, place, bytes, access);
        let host = |block, offset| self.locate_host(call, block, offset, bytes);
        Ok(match (self.own_end(from), self.own_end(to)) {
            (Place::Host { block, offset }, Place::Device(to)) => {
                Ends::Up { from: host(block, offset)?, to: device(to, Access::Write)? }
            }
            (Place::Device(from), Place::Host { block, offset }) => {
                Ends::Down { from: device(from, Access::Read)?, to: host(block, offset)? }
            }
            (Place::Device(from), Place::Device(to)) => {
                Ends::Across { from: device(from, Access::Read)?, to: device(to, Access::Write)? }
            }
            (Place::Host { block: from, offset: at }, Place::Host { block, offset }) => {
                Ends::Host { from: host(from, at)?, to: host(block, offset)? }
            }
            (Place::Peer(_), _) | (_, Place::Peer(_)) => {
                return Err(Error::unsupported(
                    call,
                    "this copy with another device",
                    "copy between the two devices on a stream of one of them",
                ));
            }
        })
    }

    /// Finds where a fill goes.
    pub(crate) fn filled(
        &self,
        call: &'static str,
        to: DevicePlace,
        pattern: Pattern,
        count: u64,
    ) -> Result<Filled<'_>> {
        // A product past 2^64 lies outside of every block, which is what `locate` then says.
        let bytes = count.saturating_mul(pattern.bytes());
        let located = self.locate(call, to, bytes, Access::Write)?;
        if !located.address().is_multiple_of(pattern.bytes()) {
            let what = format!("offset {} of {} is not aligned to the pattern", to.offset, to.base);
            return Err(Error::invalid(call, what, "align it to the size of one element"));
        }
        Ok(Filled { to: located, pattern, count: count as usize })
    }

    fn submit_peer_copy(
        &self,
        call: &'static str,
        api: &Api,
        stream: &Stream,
        (from, to): (DevicePlace, DevicePlace),
        bytes: u64,
    ) -> Result<Submission> {
        let (source, target) = (self.peer(call, from)?, self.peer(call, to)?);
        let from = source.locate(call, from, bytes, Access::Read)?;
        let to = target.locate(call, to, bytes, Access::Write)?;
        stream.queue(call, SubmissionKind::Copy, |_| match bytes as usize {
            0 => 0,
            // SAFETY: both ends lie inside of blocks that are pinned during the call, each in the context it is said to
            // be in, and both devices are held; the stream is pinned too.
            size => unsafe {
                (api.copy_peer)(
                    to.address(),
                    target.context.raw(),
                    from.address(),
                    source.context.raw(),
                    size,
                    stream.raw(),
                )
            },
        })
    }

    /// The opened device a place lies on.
    ///
    /// # Errors
    /// Refused if it is not open or is lost: the driver would answer with its failure, as if this device had failed.
    fn peer(&self, call: &'static str, place: DevicePlace) -> Result<std::sync::Arc<Self>> {
        let handle = || place.base.to_string();
        let peer = Self::find(owner(place))
            .ok_or_else(|| Error::refused(call, Refusal::Foreign { handle: handle() }))?;
        match peer.context.fault() {
            None => Ok(peer),
            Some(lost) => {
                let why = format!("its device cannot be used any more: {lost}");
                Err(Error::refused(call, Refusal::Busy { handle: handle(), why }))
            }
        }
    }

    /// A place said to be on another device that is this one.
    fn own_end(&self, place: Place) -> Place {
        match place {
            Place::Peer(place) if owner(place) == self.info.key => Place::Device(place),
            place => place,
        }
    }
}
