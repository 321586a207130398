//! Handles that are stale or belong to another device.

mod other_device;

use std::collections::HashSet;

use kiln_driver::{Command, DriverExt, MemoryRequest, Place, Timeout, WaitTarget, Waited};

use crate::expect::{equal, holds, same_bytes, stale};
use crate::fixture::{Rig, host_at, read_host};
use crate::kernels::Arguments;
use crate::law::{Law, LawVerdict};

pub(crate) const LAWS: &[Law] = &[
    Law {
        name: "handles.never_repeat",
        says: "a slot is used again under another generation, and old handles stay stale",
        run: never_repeat,
    },
    Law {
        name: "handles.old_handle_new_object",
        says: "an old handle does not reach the new object in its slot",
        run: old_handle_new_object,
    },
    Law {
        name: "handles.stale_in_commands",
        says: "a command with one stale handle among good ones is refused and changes nothing",
        run: stale_in_commands,
    },
    Law {
        name: "handles.foreign_in_commands",
        says: "commands with a handle of another device are refused and change nothing",
        run: other_device::commands,
    },
    Law {
        name: "handles.foreign_memory",
        says: "another device's pages and memory are not taken, and not harmed",
        run: other_device::memory,
    },
    Law {
        name: "handles.foreign_streams_and_events",
        says: "another device's streams and events are not waited for",
        run: other_device::streams_and_events,
    },
    Law {
        name: "handles.foreign_code",
        says: "another device's modules, kernels and graphs are not used",
        run: other_device::code,
    },
    Law {
        name: "handles.foreign_destroy",
        says: "another device's objects are not destroyed",
        run: other_device::destroy,
    },
    Law {
        name: "handles.native",
        says: "a native handle is told for live objects, or the call is unsupported",
        run: native,
    },
];

fn never_repeat(rig: &Rig<'_>) -> LawVerdict {
    const TIMES: usize = 300;
    let mut events = HashSet::new();
    let mut memories = HashSet::new();
    for _ in 0..TIMES {
        let event = rig.event()?;
        let memory = rig.driver.allocate(MemoryRequest::Direct { bytes: 256 })?;
        holds(events.insert(event), "an event under a new handle", event)?;
        holds(memories.insert(memory.id), "memory under a new handle", memory.id)?;
        rig.destroy(event)?;
        rig.driver.free(memory.id, None)?;
    }
    for event in &events {
        stale("a look", rig.driver.is_done(*event))?;
    }
    for memory in &memories {
        stale("a free", rig.driver.free(*memory, None))?;
    }
    Ok(())
}

fn old_handle_new_object(rig: &Rig<'_>) -> LawVerdict {
    let old = rig.stream()?;
    rig.destroy(old)?;
    let new = rig.stream()?;
    let memory = rig.words(4)?;
    stale("a launch", rig.store(old, &memory, 1))?;
    stale("a destroy", rig.driver.destroy(old.into()))?;
    equal("submissions of the new stream", rig.driver.progress(new)?.submitted.0, 0)?;
    rig.store(new, &memory, 2)?;
    rig.driver.synchronize(new)?;
    let block = rig.host_with(&[5; 16])?;
    let old = block.id();
    rig.destroy(old)?;
    let newer = rig.host_with(&[6; 16])?;
    let copy = Command::Copy {
        from: Place::Host { block: old, offset: 0 },
        to: Place::Device(memory.id.into()),
        bytes: 16,
    };
    stale("a copy", rig.driver.submit(new, &copy))?;
    let copy = Command::Copy { from: host_at(&newer, 0), to: Place::Device(memory.id.into()), bytes: 16 };
    rig.driver.submit(new, &copy)?;
    rig.driver.synchronize(new)?;
    same_bytes("the new block's bytes", &rig.get(memory.id, 16)?, &[6; 16])
}

fn stale_in_commands(rig: &Rig<'_>) -> LawVerdict {
    let stream = rig.stream()?;
    let memory = rig.memory_with(&[1; 64])?;
    let host = rig.host_with(&[2; 64])?;
    let (gone, gone_host, gone_event) = (rig.memory(64)?, rig.host(64)?, rig.event()?);
    rig.free(gone.id, None)?;
    rig.destroy(gone_host.id())?;
    rig.destroy(gone_event)?;
    let device = |id: kiln_driver::MemoryId| Place::Device(id.into());
    let commands = [
        Command::Copy { from: device(gone.id), to: device(memory.id), bytes: 64 },
        Command::Copy { from: device(memory.id), to: device(gone.id), bytes: 64 },
        Command::Copy { from: host_at(&gone_host, 0), to: device(memory.id), bytes: 64 },
        Command::Copy { from: device(memory.id), to: host_at(&gone_host, 0), bytes: 64 },
        Command::Copy { from: device(gone.id), to: device(memory.id), bytes: 0 },
        Command::Fill { to: gone.id.into(), pattern: kiln_driver::Pattern::U8(0), count: 64 },
        Command::Signal(gone_event),
        Command::Wait(gone_event),
    ];
    for command in &commands {
        stale(format!("a {}", command.name()), rig.driver.submit(stream, command))?;
    }
    stale("a look at an event", rig.driver.wait(WaitTarget::Event(gone_event), Timeout::Poll))?;
    stale("a time", rig.driver.elapsed(gone_event, gone_event))?;
    equal("submissions after nothing but refusals", rig.driver.progress(stream)?.submitted.0, 0)?;
    let waited = rig.driver.wait(WaitTarget::Stream(stream), Timeout::Poll)?;
    equal("a look at the stream", waited, Waited::Done)?;
    same_bytes("device memory", &rig.get(memory.id, 64)?, &[1; 64])?;
    same_bytes("host memory", &read_host(&host)?, &[2; 64])
}

fn native(rig: &Rig<'_>) -> LawVerdict {
    let (stream, event) = (rig.stream()?, rig.event()?);
    let supported = rig.driver.info().features.native_handles;
    for object in [stream.into(), event.into()] {
        match rig.driver.native(object) {
            Ok(handle) => {
                holds(supported && handle != 0, "a native handle only where there are some", handle)?
            }
            Err(error) => {
                holds(!supported && error.is_unsupported(), "native handles as the features say", error)?
            }
        }
    }
    rig.destroy(event)?;
    if supported {
        stale("a native handle", rig.driver.native(event.into()))?;
    }
    let memory = rig.words(1)?;
    let arguments = Arguments::new().address(memory.address).u32(3);
    rig.launch(stream, rig.kernel("store_value")?.id, 1, 1, &arguments)?;
    rig.driver.synchronize(stream)?;
    equal("work on the stream after that", rig.get_words(&memory, 1)?, vec![3])
}
