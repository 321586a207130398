//! Laws about events.

use std::time::Duration;

use kiln_driver::{Command, DriverExt, EventRequest, Timeout, WaitTarget, Waited};

use crate::expect::{equal, holds, refused_somehow, same_bytes};
use crate::fixture::{Rig, read_host};
use crate::law::{LawVerdict, fail};

/// Long enough that only a wait which never ends is still there.
const FOR_EVER: Timeout = Timeout::After(Duration::from_secs(20));

pub(super) fn never_signalled(rig: &Rig<'_>) -> LawVerdict {
    let (stream, event) = (rig.stream()?, rig.event()?);
    let memory = rig.words(16)?;
    for timeout in [Timeout::Poll, FOR_EVER, Timeout::Never] {
        let waited = rig.driver.wait(WaitTarget::Event(event), timeout)?;
        equal(format!("a wait ({timeout:?}) for an event never signalled"), waited, Waited::Done)?;
    }
    rig.driver.submit(stream, &Command::Wait(event))?;
    rig.increment(stream, &memory, 16)?;
    let waited = rig.driver.wait(WaitTarget::Stream(stream), FOR_EVER)?;
    equal("work behind a wait for an event never signalled", waited, Waited::Done)?;
    equal("its effect", rig.get_words(&memory, 16)?, vec![1; 16])
}

pub(super) fn signalled(rig: &Rig<'_>) -> LawVerdict {
    let (stream, event) = (rig.stream()?, rig.event()?);
    let memory = rig.memory_with(&[0x21; 512])?;
    let to = rig.host(512)?;
    rig.busy(stream)?;
    rig.driver.download(stream, memory.id.into(), &to, 512)?;
    rig.driver.submit(stream, &Command::Signal(event))?;
    rig.busy(stream)?;
    equal("a wait for an event", rig.driver.wait(WaitTarget::Event(event), Timeout::Never)?, Waited::Done)?;
    same_bytes("what was queued before the signal", &read_host(&to)?, &[0x21; 512])?;
    holds(rig.driver.is_done(event)?, "an event to stay done", "that it is not")?;
    rig.driver.synchronize(stream)?;
    holds(rig.driver.is_done(event)?, "an event to stay done", "that it is not")
}

pub(super) fn signalled_again(rig: &Rig<'_>) -> LawVerdict {
    let (stream, event) = (rig.stream()?, rig.event()?);
    let memory = rig.words(1)?;
    let to = rig.host(4)?;
    for value in 1..=4u32 {
        rig.busy(stream)?;
        rig.store(stream, &memory, value)?;
        rig.driver.download(stream, memory.id.into(), &to, 4)?;
        rig.driver.submit(stream, &Command::Signal(event))?;
        // An event that still meant an earlier signal would be done at once.
        let waited = rig.driver.wait(WaitTarget::Event(event), Timeout::Never)?;
        equal("a wait", waited, Waited::Done)?;
        same_bytes("what the newest signal stands behind", &read_host(&to)?, &value.to_le_bytes())?;
    }
    Ok(())
}

pub(super) fn wait_means_the_last_signal_before(rig: &Rig<'_>) -> LawVerdict {
    let (first, second) = (rig.stream()?, rig.stream()?);
    let (event, back) = (rig.event()?, rig.event()?);
    let memory = rig.words(1)?;
    rig.store(first, &memory, 1)?;
    rig.driver.submit(first, &Command::Signal(event))?;
    rig.driver.submit(second, &Command::Wait(event))?;
    rig.increment(second, &memory, 1)?;
    rig.driver.submit(second, &Command::Signal(back))?;
    // The later signal stands behind the wait. If the wait meant that one, each stream would wait for the other.
    rig.driver.submit(first, &Command::Wait(back))?;
    rig.increment(first, &memory, 1)?;
    rig.driver.submit(first, &Command::Signal(event))?;
    for stream in [second, first] {
        let waited = rig.driver.wait(WaitTarget::Stream(stream), FOR_EVER)?;
        equal("streams that wait for what was signalled before", waited, Waited::Done)?;
    }
    equal("their work", rig.get_words(&memory, 1)?, vec![3])
}

pub(super) fn event_moves(rig: &Rig<'_>) -> LawVerdict {
    let (first, second, third) = (rig.stream()?, rig.stream()?, rig.stream()?);
    let event = rig.event()?;
    let (one, two) = (rig.words(64)?, rig.words(64)?);
    rig.increment(first, &one, 64)?;
    rig.driver.submit(first, &Command::Signal(event))?;
    rig.busy(second)?;
    rig.increment(second, &two, 64)?;
    rig.driver.submit(second, &Command::Signal(event))?;
    let to = rig.host(256)?;
    rig.driver.submit(third, &Command::Wait(event))?;
    rig.driver.download(third, two.id.into(), &to, 256)?;
    rig.driver.synchronize(third)?;
    same_bytes("what the later signal stands behind", &read_host(&to)?, &[1, 0, 0, 0].repeat(64))?;
    rig.driver.synchronize(first)?;
    equal("the other stream's work", rig.get_words(&one, 64)?, vec![1; 64])
}

pub(super) fn own_event(rig: &Rig<'_>) -> LawVerdict {
    let (stream, event) = (rig.stream()?, rig.event()?);
    let memory = rig.words(1)?;
    for _ in 0..3 {
        rig.increment(stream, &memory, 1)?;
        rig.driver.submit(stream, &Command::Signal(event))?;
        rig.driver.submit(stream, &Command::Wait(event))?;
    }
    let waited = rig.driver.wait(WaitTarget::Stream(stream), FOR_EVER)?;
    equal("a stream that waits for itself", waited, Waited::Done)?;
    equal("its work", rig.get_words(&memory, 1)?, vec![3])
}

pub(super) fn event_ends_before_its_signal(rig: &Rig<'_>) -> LawVerdict {
    let (stream, event) = (rig.stream()?, rig.event()?);
    let memory = rig.words(8)?;
    rig.busy(stream)?;
    rig.driver.submit(stream, &Command::Signal(event))?;
    rig.increment(stream, &memory, 8)?;
    rig.destroy(event)?;
    crate::expect::stale("a look", rig.driver.is_done(event))?;
    crate::expect::stale("a signal", rig.driver.submit(stream, &Command::Signal(event)))?;
    crate::expect::stale("a wait", rig.driver.submit(stream, &Command::Wait(event)))?;
    crate::expect::stale("a second destroy", rig.driver.destroy(event.into()))?;
    rig.driver.synchronize(stream)?;
    equal("work behind the signal", rig.get_words(&memory, 8)?, vec![1; 8])
}

pub(super) fn elapsed(rig: &Rig<'_>) -> LawVerdict {
    let stream = rig.stream()?;
    let events = [
        rig.event_of(EventRequest::Timed)?,
        rig.event_of(EventRequest::Timed)?,
        rig.event_of(EventRequest::Timed)?,
    ];
    for event in events {
        rig.busy(stream)?;
        rig.driver.submit(stream, &Command::Signal(event))?;
    }
    rig.driver.synchronize(stream)?;
    let (near, far) = (rig.driver.elapsed(events[0], events[1])?, rig.driver.elapsed(events[0], events[2])?);
    holds(near > Duration::ZERO, "time to pass while a kernel spins", format!("{near:?}"))?;
    holds(far > near, "more time to pass until a later event", format!("{near:?}, then {far:?}"))?;
    equal("the time from an event to itself", rig.driver.elapsed(events[0], events[0])?, Duration::ZERO)
}

pub(super) fn elapsed_refused(rig: &Rig<'_>) -> LawVerdict {
    let stream = rig.stream()?;
    let (plain, timed) = (rig.event()?, rig.event_of(EventRequest::Timed)?);
    let unsignalled = rig.event_of(EventRequest::Timed)?;
    rig.driver.submit(stream, &Command::Signal(plain))?;
    rig.driver.submit(stream, &Command::Signal(timed))?;
    rig.driver.synchronize(stream)?;
    refused_somehow("time from an event without timing", rig.driver.elapsed(plain, timed))?;
    refused_somehow("time to an event without timing", rig.driver.elapsed(timed, plain))?;
    refused_somehow("time to an event never signalled", rig.driver.elapsed(timed, unsignalled))?;
    refused_somehow("time from an event never signalled", rig.driver.elapsed(unsignalled, timed))?;
    rig.busy_for(stream, 50)?;
    rig.driver.submit(stream, &Command::Signal(unsignalled))?;
    match rig.driver.elapsed(timed, unsignalled) {
        Err(error) if error.is_refused() => {}
        Err(error) => return Err(error.into()),
        // It was done by then, which must be seen from here too.
        Ok(_) if rig.driver.is_done(unsignalled)? => {}
        Ok(time) => return Err(fail("no time to an event that is not done", format!("{time:?}"))),
    }
    rig.driver.synchronize(stream)?;
    rig.driver.elapsed(timed, unsignalled)?;
    Ok(())
}
