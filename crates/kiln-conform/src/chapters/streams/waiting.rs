//! Waiting on the host.

use std::time::Duration;

use kiln_driver::{Command, DriverExt, Timeout, WaitTarget, Waited};

use crate::expect::{equal, holds, same_bytes};
use crate::law::Verdict;
use crate::rig::{Rig, read_host};

pub(super) fn timeouts(rig: &Rig<'_>) -> Verdict {
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

pub(super) fn done_means_visible(rig: &Rig<'_>) -> Verdict {
    const LOOKS: u32 = 10_000;
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
            rig.driver.clock().sleep(Duration::from_micros(20));
            looks += 1;
        }
        holds(looks < LOOKS, "an event to be done some day for one who only looks", "that it is not")?;
        same_bytes("what a look says is done", &read_host(&to)?, &value.to_le_bytes())?;
    }
    Ok(())
}

pub(super) fn wait_covers_what_was_submitted(rig: &Rig<'_>) -> Verdict {
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
