//! Laws about waiting on the host.

use std::time::Duration;

use kiln_driver::{Command, DriverExt, Timeout, WaitTarget, Waited};

use crate::expect::{equal, holds, inapplicable, same_bytes};
use crate::fixture::{Rig, read_host};
use crate::law::LawVerdict;

pub(super) fn timeouts(rig: &Rig<'_>) -> LawVerdict {
    const LIMIT: Duration = Duration::from_millis(3);
    let (stream, event) = (rig.stream()?, rig.event()?);
    let memory = rig.memory_with(&[0x42; 64])?;
    let to = rig.host(64)?;
    rig.busy_for(stream, 100)?;
    rig.driver.download(stream, memory.id.into(), &to, 64)?;
    rig.driver.submit(stream, &Command::Signal(event))?;
    for target in [WaitTarget::Stream(stream), WaitTarget::Event(event)] {
        for timeout in [Timeout::Poll, Timeout::After(LIMIT), Timeout::After(Duration::ZERO)] {
            let before = rig.driver.clock().now();
            let waited = rig.driver.wait(target, timeout)?;
            let passed = rig.driver.clock().now().saturating_sub(before);
            match (waited, timeout) {
                (Waited::TimedOut, Timeout::After(limit)) => {
                    holds(
                        passed >= limit,
                        format!("a wait of {limit:?} not to give up before"),
                        format!("{passed:?}"),
                    )?;
                }
                (Waited::TimedOut, _) => {}
                (Waited::Done, _) => same_bytes("what a wait says is done", &read_host(&to)?, &[0x42; 64])?,
            }
        }
    }
    for target in [WaitTarget::Stream(stream), WaitTarget::Event(event)] {
        equal("a wait without a limit", rig.driver.wait(target, Timeout::Never)?, Waited::Done)?;
        equal("a look after that", rig.driver.wait(target, Timeout::Poll)?, Waited::Done)?;
        equal("a limited wait after that", rig.driver.wait(target, Timeout::After(LIMIT))?, Waited::Done)?;
    }
    same_bytes("what was waited for", &read_host(&to)?, &[0x42; 64])
}

/// Many times longer than the calls of a law take.
pub(in crate::chapters) const LONG: u64 = 1000;

pub(super) fn calls_do_not_wait(rig: &Rig<'_>) -> LawVerdict {
    if !rig.in_real_time() {
        return inapplicable("its kernels take no time of the host's");
    }
    let (stream, other, event) = (rig.stream()?, rig.stream()?, rig.event()?);
    let memory = rig.words(64)?;
    let host = rig.host(256)?;
    rig.increment(stream, &memory, 64)?;
    rig.driver.synchronize(stream)?;
    rig.busy_for(stream, LONG)?;
    rig.increment(stream, &memory, 64)?;
    rig.driver.download(stream, memory.id.into(), &host, 256)?;
    rig.driver.order(stream, event, other)?;
    holds(rig.driver.health().is_healthy(), "a healthy device", "a lost one")?;
    rig.driver.memory_info()?;
    rig.driver.progress(stream)?;
    for target in [WaitTarget::Stream(stream), WaitTarget::Event(event), WaitTarget::Stream(other)] {
        equal("a look", rig.driver.wait(target, Timeout::Poll)?, Waited::TimedOut)?;
        let limited = rig.driver.wait(target, Timeout::After(Duration::from_millis(1)))?;
        equal("a limited wait", limited, Waited::TimedOut)?;
    }
    holds(
        !rig.driver.is_done(event)?,
        "the kernel to run still",
        "that it is done: some call waited for it",
    )?;
    rig.driver.synchronize(other)?;
    same_bytes("what was queued behind it", &read_host(&host)?, &[2, 0, 0, 0].repeat(64))
}

pub(super) fn giving_back_does_not_wait(rig: &Rig<'_>) -> LawVerdict {
    if !rig.in_real_time() {
        return inapplicable("its kernels take no time of the host's");
    }
    let (stream, done) = (rig.stream()?, rig.event()?);
    rig.busy(stream)?;
    rig.driver.synchronize(stream)?;
    let (idle, event) = (rig.stream()?, rig.event()?);
    let (memory, host, module) = (rig.memory(1 << 20)?, rig.host(4096)?, rig.load()?);
    rig.busy_for(stream, LONG)?;
    rig.driver.submit(stream, &Command::Signal(done))?;
    let still = |after: &str| {
        let runs = !rig.driver.is_done(done)?;
        holds(runs, format!("the kernel to run still after {after}"), "that the call waited for it")
    };
    rig.destroy(idle)?;
    rig.destroy(event)?;
    still("the end of a stream and an event")?;
    rig.memory(1 << 20)?;
    still("an allocation")?;
    rig.free(memory.id, None)?;
    still("a free")?;
    rig.destroy(host.id())?;
    drop(host);
    still("the end of a host block")?;
    rig.destroy(module)?;
    still("the end of a module")?;
    rig.host(4096)?;
    still("a new host block")
}

pub(super) fn done_means_visible(rig: &Rig<'_>) -> LawVerdict {
    const LOOKS: u32 = 50_000;
    const PAUSE: Duration = Duration::from_micros(100);
    let (stream, event) = (rig.stream()?, rig.event()?);
    let memory = rig.words(1)?;
    let to = rig.host(4)?;
    for value in 1..=3u32 {
        rig.busy(stream)?;
        rig.store(stream, &memory, value)?;
        rig.driver.download(stream, memory.id.into(), &to, 4)?;
        rig.driver.submit(stream, &Command::Signal(event))?;
        let mut looks = 0;
        while looks < LOOKS && !rig.driver.is_done(event)? {
            rig.driver.clock().sleep(PAUSE);
            // Where the device's time is not the host's, threads that do its work still need some of the latter.
            std::thread::sleep(if looks < 100 { Duration::ZERO } else { PAUSE });
            looks += 1;
        }
        holds(looks < LOOKS, "an event to be done some day for one who only looks", "that it is not")?;
        same_bytes("what a look says is done", &read_host(&to)?, &value.to_le_bytes())?;
    }
    Ok(())
}

pub(super) fn wait_covers_what_was_submitted(rig: &Rig<'_>) -> LawVerdict {
    let stream = rig.stream()?;
    let memory = rig.words(256)?;
    let to = rig.host(1024)?;
    rig.busy(stream)?;
    for _ in 0..10 {
        rig.increment(stream, &memory, 256)?;
    }
    rig.driver.download(stream, memory.id.into(), &to, 1024)?;
    equal("a wait", rig.driver.wait(WaitTarget::Stream(stream), Timeout::Never)?, Waited::Done)?;
    same_bytes("everything submitted before it", &read_host(&to)?, &[10, 0, 0, 0].repeat(256))
}
