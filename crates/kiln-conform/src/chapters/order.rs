//! Laws about order between streams.
//!
//! The producer of each law is kept busy first, so that a consumer that does not wait reads what was there before.

use kiln_driver::{Command, DeviceMemory, DriverExt, StreamId, Timeout, WaitTarget};

use crate::expect::{equal, same_bytes};
use crate::fixture::{Rig, read_host};
use crate::law::{Law, LawVerdict, Stop};

pub(crate) const LAWS: &[Law] = &[
    Law {
        name: "order.event",
        says: "what follows a wait happens after what precedes the signal",
        run: event,
    },
    Law { name: "order.chain", says: "order passes through chains of events", run: chain },
    Law {
        name: "order.fan_out_fan_in",
        says: "many streams may wait for one, and one for many",
        run: fan_out_fan_in,
    },
    Law { name: "order.ping_pong", says: "two streams may take turns on one block", run: ping_pong },
    Law {
        name: "order.write_after_read",
        says: "a write that waits for a read does not disturb it",
        run: write_after_read,
    },
    Law {
        name: "order.through_the_host",
        says: "what the host waited for is before all it submits next",
        run: through_the_host,
    },
    Law {
        name: "order.wait_holds_everything",
        says: "a wait holds back all kinds of commands behind it",
        run: wait_holds_everything,
    },
    Law {
        name: "order.one_event_many_waits",
        says: "an event may be waited for more than once, before and after it is done",
        run: one_event_many_waits,
    },
    Law {
        name: "order.many_events_one_stream",
        says: "a stream that waits for several events waits for all of them",
        run: many_events_one_stream,
    },
];

/// A word that a busy stream will set.
fn late_word(rig: &Rig<'_>, stream: StreamId, value: u32) -> Result<DeviceMemory, Stop> {
    let memory = rig.words(1)?;
    rig.busy(stream)?;
    rig.store(stream, &memory, value)?;
    Ok(memory)
}

fn event(rig: &Rig<'_>) -> LawVerdict {
    let (producer, consumer) = (rig.stream()?, rig.stream()?);
    let event = rig.event()?;
    let to = rig.host(4)?;
    let word = late_word(rig, producer, 11)?;
    rig.driver.order(producer, event, consumer)?;
    rig.driver.download(consumer, word.id.into(), &to, 4)?;
    rig.driver.synchronize(consumer)?;
    same_bytes("what the consumer saw", &read_host(&to)?, &11u32.to_le_bytes())
}

fn chain(rig: &Rig<'_>) -> LawVerdict {
    const LINKS: usize = 5;
    let mut streams = Vec::new();
    for _ in 0..LINKS {
        streams.push(rig.stream()?);
    }
    let word = late_word(rig, streams[0], 1)?;
    for pair in streams.windows(2) {
        rig.driver.order(pair[0], rig.event()?, pair[1])?;
    }
    let last = streams[LINKS - 1];
    rig.increment(last, &word, 1)?;
    rig.driver.synchronize(last)?;
    equal("what went through the chain", rig.get_words(&word, 1)?, vec![2])
}

fn fan_out_fan_in(rig: &Rig<'_>) -> LawVerdict {
    let (source, sink) = (rig.stream()?, rig.stream()?);
    let word = late_word(rig, source, 7)?;
    let all = rig.words(4)?;
    let start = rig.event()?;
    rig.driver.submit(source, &Command::Signal(start))?;
    for branch in 0..4 {
        let stream = rig.stream()?;
        rig.driver.submit(stream, &Command::Wait(start))?;
        rig.busy(stream)?;
        rig.copy(stream, word.id, crate::fixture::at(all.id, 4 * branch), 4)?;
        rig.driver.order(stream, rig.event()?, sink)?;
    }
    rig.increment(sink, &all, 4)?;
    rig.driver.synchronize(sink)?;
    equal("what came together", rig.get_words(&all, 4)?, vec![8; 4])
}

fn ping_pong(rig: &Rig<'_>) -> LawVerdict {
    const TURNS: u32 = 12;
    let streams = [rig.stream()?, rig.stream()?];
    let event = rig.event()?;
    let word = late_word(rig, streams[0], 0)?;
    for turn in 0..TURNS as usize {
        rig.increment(streams[turn % 2], &word, 1)?;
        // The same event again and again: each wait means the signal just before it.
        rig.driver.order(streams[turn % 2], event, streams[(turn + 1) % 2])?;
    }
    rig.driver.synchronize(streams[TURNS as usize % 2])?;
    equal("turns", rig.get_words(&word, 1)?, vec![TURNS])
}

fn write_after_read(rig: &Rig<'_>) -> LawVerdict {
    let (reader, writer) = (rig.stream()?, rig.stream()?);
    let memory = rig.memory_with(&[1; 4096])?;
    let to = rig.host(4096)?;
    rig.busy(reader)?;
    rig.driver.download(reader, memory.id.into(), &to, 4096)?;
    rig.driver.order(reader, rig.event()?, writer)?;
    rig.driver.fill(writer, memory.id.into(), 2, 4096)?;
    rig.driver.synchronize(writer)?;
    same_bytes("what the reader saw", &read_host(&to)?, &[1; 4096])?;
    same_bytes("what the writer left", &rig.get(memory.id, 4096)?, &[2; 4096])
}

fn through_the_host(rig: &Rig<'_>) -> LawVerdict {
    let (first, second) = (rig.stream()?, rig.stream()?);
    let event = rig.event()?;
    let word = late_word(rig, first, 3)?;
    rig.driver.submit(first, &Command::Signal(event))?;
    let waited = rig.driver.wait(WaitTarget::Event(event), Timeout::Never)?;
    equal("a wait for the event", waited.is_done(), true)?;
    rig.increment(second, &word, 1)?;
    rig.driver.synchronize(second)?;
    rig.increment(first, &word, 1)?;
    rig.driver.synchronize(first)?;
    equal("three steps in the order of the host", rig.get_words(&word, 1)?, vec![5])
}

fn wait_holds_everything(rig: &Rig<'_>) -> LawVerdict {
    let (producer, consumer) = (rig.stream()?, rig.stream()?);
    let (event, done) = (rig.event()?, rig.event()?);
    let block = rig.memory_with(&[1; 64])?;
    let (copied, filled, host) = (rig.memory_with(&[0; 64])?, rig.memory_with(&[0; 64])?, rig.host(64)?);
    rig.busy(producer)?;
    rig.driver.fill(producer, block.id.into(), 2, 64)?;
    rig.driver.fill(producer, filled.id.into(), 3, 64)?;
    rig.driver.order(producer, event, consumer)?;
    rig.copy(consumer, block.id, copied.id, 64)?;
    rig.driver.download(consumer, block.id.into(), &host, 64)?;
    rig.driver.fill(consumer, filled.id.into(), 4, 64)?;
    rig.increment(consumer, &copied, 16)?;
    rig.driver.submit(consumer, &Command::Signal(done))?;
    let waited = rig.driver.wait(WaitTarget::Event(done), Timeout::Never)?;
    equal("a wait for the signal behind it all", waited.is_done(), true)?;
    same_bytes("a download behind the wait", &read_host(&host)?, &[2; 64])?;
    same_bytes("a copy and a kernel behind the wait", &rig.get(copied.id, 64)?, &[3, 2, 2, 2].repeat(16))?;
    same_bytes("a fill behind the wait", &rig.get(filled.id, 64)?, &[4; 64])
}

fn one_event_many_waits(rig: &Rig<'_>) -> LawVerdict {
    let producer = rig.stream()?;
    let event = rig.event()?;
    let word = late_word(rig, producer, 21)?;
    rig.driver.submit(producer, &Command::Signal(event))?;
    for _ in 0..3 {
        let consumer = rig.stream()?;
        let to = rig.host(4)?;
        rig.driver.submit(consumer, &Command::Wait(event))?;
        rig.driver.submit(consumer, &Command::Wait(event))?;
        rig.driver.download(consumer, word.id.into(), &to, 4)?;
        rig.driver.synchronize(consumer)?;
        same_bytes("what a consumer saw", &read_host(&to)?, &21u32.to_le_bytes())?;
    }
    Ok(())
}

fn many_events_one_stream(rig: &Rig<'_>) -> LawVerdict {
    const PRODUCERS: u64 = 6;
    let sink = rig.stream()?;
    let all = rig.words(PRODUCERS)?;
    let to = rig.host(4 * PRODUCERS)?;
    let mut events = Vec::new();
    for number in 0..PRODUCERS {
        let (stream, event) = (rig.stream()?, rig.event()?);
        let word = DeviceMemory { address: kiln_driver::DeviceAddress(all.address.0 + 4 * number), ..all };
        rig.busy_for(stream, number)?;
        rig.store(stream, &word, 50 + number as u32)?;
        rig.driver.submit(stream, &Command::Signal(event))?;
        events.push(event);
    }
    for event in events {
        rig.driver.submit(sink, &Command::Wait(event))?;
    }
    rig.driver.download(sink, all.id.into(), &to, 4 * PRODUCERS)?;
    rig.driver.synchronize(sink)?;
    let expected = (50..50 + PRODUCERS as u32).flat_map(u32::to_le_bytes).collect::<Vec<u8>>();
    same_bytes("what the sink saw", &read_host(&to)?, &expected)
}
