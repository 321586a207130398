//! Streams and events taken in by their native handle, as another library's would be.

use kiln_driver::{
    Command, Driver, DriverExt, EventId, EventRequest, ForeignHandle, MemoryRequest, Object, Place,
    StreamRequest, Timeout, WaitTarget,
};

use crate::expect::{equal, holds, inapplicable, same_bytes, stale};
use crate::fixture::Rig;
use crate::law::{LawVerdict, Stop};

pub(super) fn of_a_stream(rig: &Rig<'_>) -> LawVerdict {
    let owner = rig.stream()?;
    let memory = rig.words(64)?;
    let name = rig.driver.create_stream(StreamRequest::Foreign(handle(rig, owner.into())?))?;
    holds(name != owner, "a separate handle for a second name", name)?;
    rig.busy(owner)?;
    for stream in [owner, name, owner, name] {
        rig.increment(stream, &memory, 64)?;
    }
    rig.driver.destroy(name.into())?;
    stale("work through a name that was given back", rig.increment(name, &memory, 64))?;
    rig.increment(owner, &memory, 64)?;
    rig.driver.synchronize(owner)?;
    equal("work queued under both names", rig.get_words(&memory, 64)?, vec![5; 64])
}

pub(super) fn of_an_event(rig: &Rig<'_>) -> LawVerdict {
    let (first, second) = (rig.stream()?, rig.stream()?);
    let (event, memory) = (rig.event()?, rig.words(64)?);
    let name = rig.driver.create_event(EventRequest::Foreign(handle(rig, event.into())?))?;
    rig.busy(first)?;
    rig.increment(first, &memory, 64)?;
    rig.driver.submit(first, &Command::Signal(event))?;
    rig.driver.submit(second, &Command::Wait(name))?;
    rig.increment(second, &memory, 64)?;
    // The other way round: the name is signalled, and the first stream waits for it.
    rig.driver.submit(second, &Command::Signal(name))?;
    rig.driver.submit(first, &Command::Wait(name))?;
    rig.increment(first, &memory, 64)?;
    rig.driver.destroy(name.into())?;
    rig.driver.submit(first, &Command::Signal(event))?;
    let _ = rig.driver.wait(WaitTarget::Event(event), Timeout::Never)?;
    equal("work in the order of both names", rig.get_words(&memory, 64)?, vec![3; 64])
}

pub(super) fn of_an_event_of_another_device(rig: &Rig<'_>) -> LawVerdict {
    const BYTES: u64 = 4096;
    let Some(peer) = rig.peer.clone() else { return inapplicable("there is no second device") };
    if !rig.driver.info().features.native_handles || !peer.info().features.native_handles {
        return inapplicable("a device has no native handles");
    }
    let (here, there) = (rig.stream()?, peer.create_stream(StreamRequest::New { priority: 0 })?);
    let (ready, done) = (peer.create_event(EventRequest::Plain)?, rig.event()?);
    let (source, target) =
        (peer.allocate(MemoryRequest::Direct { bytes: BYTES })?, rig.memory_with(&[0; BYTES as usize])?);
    let ready_here = named(&*peer, ready, &*rig.driver)?;
    let done_there = named(&*rig.driver, done, &*peer)?;
    // Ten rounds over the same memory: each copy comes after the fill before it and before the one after it.
    for round in 1..=10 {
        peer.fill(there, source.id.into(), round, BYTES)?;
        peer.submit(there, &Command::Signal(ready))?;
        rig.driver.submit(here, &Command::Wait(ready_here))?;
        let (from, to) = (Place::Peer(source.id.into()), Place::Device(target.id.into()));
        rig.driver.submit(here, &Command::Copy { from, to, bytes: BYTES })?;
        rig.driver.submit(here, &Command::Signal(done))?;
        peer.submit(there, &Command::Wait(done_there))?;
    }
    peer.fill(there, source.id.into(), 99, BYTES)?;
    rig.driver.synchronize(here)?;
    peer.synchronize(there)?;
    rig.driver.destroy(ready_here.into())?;
    peer.destroy(done_there.into())?;
    peer.destroy(ready.into())?;
    peer.destroy(there.into())?;
    peer.free(source.id, None)?;
    same_bytes("what was copied between two waits", &rig.get(target.id, BYTES)?, &[10; BYTES as usize])
}

/// A name of another device for an event.
fn named(owner: &dyn Driver, event: EventId, other: &dyn Driver) -> Result<EventId, Stop> {
    // SAFETY: the event lives until the law ends, and the name made from this is given back before.
    let handle = unsafe { ForeignHandle::new(owner.native(event.into())?) };
    Ok(other.create_event(EventRequest::Foreign(handle))?)
}

fn handle(rig: &Rig<'_>, owner: Object) -> Result<ForeignHandle, Stop> {
    if !rig.driver.info().features.native_handles {
        return inapplicable("the device has no native handles");
    }
    // SAFETY: the owner lives until the law ends, and the name made from this is given back before.
    Ok(unsafe { ForeignHandle::new(rig.driver.native(owner)?) })
}
