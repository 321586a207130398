//! Streams and events taken in by their native handle, as another library's would be.

use kiln_driver::{
    Command, DriverExt, EventRequest, ForeignHandle, Object, StreamRequest, Timeout, WaitTarget,
};

use crate::expect::{equal, holds, inapplicable, stale};
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

fn handle(rig: &Rig<'_>, owner: Object) -> Result<ForeignHandle, Stop> {
    if !rig.driver.info().features.native_handles {
        return inapplicable("the device has no native handles");
    }
    // SAFETY: the owner lives until the law ends, and the name made from this is given back before.
    Ok(unsafe { ForeignHandle::new(rig.driver.native(owner)?) })
}
