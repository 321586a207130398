//! `PeerLink`: a direct way from one device to another, with a stream and an event on each side.
//!
//! A copy runs on a stream of the destination. It is one submission on each device: on the source a read that lasts until the copy is done, on the
//! destination a write that begins when the source is ready. Two events carry that across:
//!
//! ```text
//!   source       wait for the last writer of `from` ─ signal ready ───────────────────── wait for done
//!   destination  wait for all users of `to` ───────────── wait for ready ─ copy ─ signal done
//! ```
//!
//! While both submissions are made, other threads that use one of the buffers wait for them. Of two copies in opposite directions neither
//! waits for the other for ever: the device with the smaller key is always entered first.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use kiln_driver::{
    Access, Command, DevicePlace, EventId, EventRequest, ForeignHandle, Place, Timeout, WaitTarget,
};
use kiln_runtime::foreign::BlockUse;
use kiln_runtime::internal::is_in_worker;
use kiln_runtime::{DeviceRuntime, Error, PreparedUse, Stream};

use crate::error::{GroupError, Result};
use crate::link_streams::LinkStreams;
use crate::ticket::GroupTicket;

/// How long a link that is given back waits for its last copies.
const CLOSE_LIMIT: Duration = Duration::from_secs(10);

/// A direct way from one device to another.
pub(crate) struct PeerLink {
    from: LinkEnd,
    to: LinkEnd,
    /// Its events serve one copy at a time, while that is queued.
    turn: Mutex<()>,
}

/// One side of a link.
struct LinkEnd {
    /// The place of the device in its group.
    index: usize,
    runtime: DeviceRuntime,
    stream: Stream,
    /// Signalled by this side.
    own: EventId,
    /// The name of the other side's event here.
    theirs: EventId,
}

/// What a link carries.
pub(crate) struct Transfer<'a> {
    /// The use of the source.
    pub(crate) from: BlockUse<'a>,
    /// The use of the destination.
    pub(crate) to: BlockUse<'a>,
    /// The bytes; none to order the two uses and copy nothing.
    pub(crate) copy: Option<(DevicePlace, DevicePlace, u64)>,
}

impl PeerLink {
    /// Opens a link, or says why there is none. Its streams are of those with which copies leave the first device and arrive at the second.
    ///
    /// # Errors
    /// A device that is lost or has no streams left.
    #[track_caller]
    pub(crate) fn open(
        [(from_index, from), (to_index, to)]: [(usize, &DeviceRuntime); 2],
        [leaving, arriving]: [&LinkStreams; 2],
    ) -> Result<std::result::Result<Self, Arc<str>>> {
        if from.info().kind != to.info().kind {
            return Ok(Err("the devices are of different kinds".into()));
        }
        let ends = [(from_index, from), (to_index, to)];
        if let Some((index, _)) = ends.into_iter().find(|(_, end)| is_in_worker(end)) {
            return Ok(Err(format!("device {index} is in a worker process").into()));
        }
        if let Some(why) = refusal_of_copies((from_index, from), (to_index, to))? {
            return Ok(Err(why));
        }
        let streams = (
            leaving.choose(from).map_err(GroupError::at(from_index))?,
            arriving.choose(to).map_err(GroupError::at(to_index))?,
        );
        let ready = match SharedEvent::make((from_index, from), (to_index, to))? {
            Ok(event) => event,
            Err(why) => return Ok(Err(why)),
        };
        let done = match SharedEvent::make((to_index, to), (from_index, from)) {
            Ok(Ok(event)) => event,
            failed => {
                ready.give_back(from, to);
                return failed.map(|refused| Err(refused.err().unwrap_or_default()));
            }
        };
        let (from, to) = (from.clone(), to.clone());
        Ok(Ok(Self {
            from: LinkEnd {
                index: from_index,
                runtime: from,
                stream: streams.0,
                own: ready.own,
                theirs: done.named,
            },
            to: LinkEnd {
                index: to_index,
                runtime: to,
                stream: streams.1,
                own: done.own,
                theirs: ready.named,
            },
            turn: Mutex::new(()),
        }))
    }

    /// Queues a transfer, ordered on both sides.
    pub(crate) fn transfer(&self, transfer: &Transfer<'_>) -> Result<GroupTicket> {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let (from, to) = self.enter(transfer)?;
        let queued = self.queue(transfer);
        // Whatever was queued, both uses have their numbers.
        let ended = (
            to.finish().map_err(GroupError::at(self.to.index)),
            from.finish().map_err(GroupError::at(self.from.index)),
        );
        queued?;
        Ok(GroupTicket::new(vec![(self.to.index, ended.0?), (self.from.index, ended.1?)]))
    }

    /// Enters both streams, the device with the smaller key first.
    fn enter(&self, transfer: &Transfer<'_>) -> Result<(PreparedUse<'_>, PreparedUse<'_>)> {
        let from = || self.from.prepare(&transfer.from);
        let to = || self.to.prepare(&transfer.to);
        if self.from.runtime.info().key < self.to.runtime.info().key {
            let from = from()?;
            match to() {
                Ok(to) => Ok((from, to)),
                Err(error) => Err(given_up(from, error)),
            }
        } else {
            let to = to()?;
            match from() {
                Ok(from) => Ok((from, to)),
                Err(error) => Err(given_up(to, error)),
            }
        }
    }

    fn queue(&self, transfer: &Transfer<'_>) -> Result<()> {
        let (from, to) = (&self.from, &self.to);
        from.submit(&Command::Signal(from.own))?;
        to.submit(&Command::Wait(to.theirs))?;
        // Uses that are only ordered: nothing of the source is used from the other side.
        let Some((source, destination, bytes)) = transfer.copy else { return Ok(()) };
        let (source, destination) = (Place::Peer(source), Place::Device(destination));
        to.submit(&Command::Copy { from: source, to: destination, bytes })?;
        let signalled = to.submit(&Command::Signal(to.own));
        let awaited = signalled.and_then(|()| from.submit(&Command::Wait(from.theirs)));
        match awaited {
            Ok(()) => Ok(()),
            Err(error) if error.is_lost() => Err(error),
            // Without the edge, the source must not be written before the copy is done: the host waits in its place.
            Err(_) => to.wait(),
        }
    }
}

impl Drop for PeerLink {
    fn drop(&mut self) {
        let is_over = |end: &LinkEnd| !matches!(end.stream.synchronize_within(CLOSE_LIMIT), Ok(false));
        // Both are asked: each waits for events of the other.
        if ![is_over(&self.to), is_over(&self.from)].contains(&false) {
            // Names first, then the events behind them.
            for end in [&self.from, &self.to] {
                let _ = end.runtime.driver().destroy(end.theirs.into());
            }
            for end in [&self.from, &self.to] {
                let _ = end.runtime.driver().destroy(end.own.into());
            }
        } else {
            tracing::warn!("a link between two devices was given back while its copies run; its events stay");
        }
    }
}

impl LinkEnd {
    fn prepare(&self, block: &BlockUse<'_>) -> Result<PreparedUse<'_>> {
        let uses = std::slice::from_ref(block);
        self.runtime.prepare_block_use(&self.stream, uses).map_err(GroupError::at(self.index))
    }

    fn submit(&self, command: &Command<'_>) -> Result<()> {
        let submitted = self.runtime.driver().submit(self.stream.id(), command);
        submitted.map(|_| ()).map_err(|error| GroupError::at(self.index)(error.into()))
    }

    fn wait(&self) -> Result<()> {
        let waited = self.runtime.driver().wait(WaitTarget::Stream(self.stream.id()), Timeout::Never);
        waited.map(|_| ()).map_err(|error| GroupError::at(self.index)(error.into()))
    }
}

/// Ends a use for which nothing was queued.
fn given_up(unused: PreparedUse<'_>, error: GroupError) -> GroupError {
    // The error that is told is the one before.
    let _ = unused.finish();
    error
}

/// An event of one device with a name at another.
struct SharedEvent {
    own: EventId,
    named: EventId,
}

impl SharedEvent {
    /// Makes an event and its name, or says why the devices cannot wait for each other.
    fn make(
        (owner_index, owner): (usize, &DeviceRuntime),
        (other_index, other): (usize, &DeviceRuntime),
    ) -> Result<std::result::Result<Self, Arc<str>>> {
        let own = match owner.driver().create_event(EventRequest::Plain) {
            Ok(own) => own,
            Err(error) => return no_event(owner_index, error).map(Err),
        };
        let named = match owner.driver().native(own.into()) {
            Ok(native) => {
                // SAFETY: the number is that of an event which lives until the link is given back. Both devices are of one kind, in this process, and
                // copy to each other, so the other one waits for it as for one that it made.
                let handle = unsafe { ForeignHandle::new(native) };
                let named = other.driver().create_event(EventRequest::Foreign(handle));
                named.map_err(|error| (other_index, error))
            }
            Err(error) => Err((owner_index, error)),
        };
        match named {
            Ok(named) => Ok(Ok(Self { own, named })),
            Err((index, error)) => {
                let _ = owner.driver().destroy(own.into());
                no_event(index, error).map(Err)
            }
        }
    }

    fn give_back(self, owner: &DeviceRuntime, other: &DeviceRuntime) {
        let _ = other.driver().destroy(self.named.into());
        let _ = owner.driver().destroy(self.own.into());
    }
}

/// Why devices cannot wait for each other, if a device refuses; a lost device is an error.
fn no_event(index: usize, error: kiln_driver::Error) -> Result<Arc<str>> {
    match error.is_sticky() {
        true => Err(GroupError::at(index)(error.into())),
        false => Ok(format!("they cannot wait for each other: {error}").into()),
    }
}

/// Why the driver does not copy from one device to another, if it does not. A copy of no bytes is tried.
#[track_caller]
fn refusal_of_copies(
    (from_index, from): (usize, &DeviceRuntime),
    (to_index, to): (usize, &DeviceRuntime),
) -> Result<Option<Arc<str>>> {
    let failed = GroupError::at(to_index);
    let there = from.allocate::<u8>(1).map_err(GroupError::at(from_index))?;
    let here = to.allocate::<u8>(1).map_err(&failed)?;
    let (Some(source), Some(destination)) = (there.place(), here.place()) else {
        return Ok(Some("a device has no memory".into()));
    };
    let stream = to.main_stream();
    let prepared = to.prepare_block_use(stream, &[here.used_as(Access::Write)]).map_err(&failed)?;
    let (from, to_place) = (Place::Peer(source), Place::Device(destination));
    let tried = to.driver().submit(stream.id(), &Command::Copy { from, to: to_place, bytes: 0 });
    prepared.finish().map_err(&failed)?;
    match tried {
        Ok(_) => Ok(None),
        Err(error) if error.is_sticky() => Err(failed(Error::from(error))),
        Err(error) => Ok(Some(error.to_string().into())),
    }
}
