//! Laws about two devices of a process: copies between them, their order, pages that both have mapped. What a group of devices promises rests on these.

use std::os::fd::AsFd;

use kiln_driver::{
    Command, DeviceMemory, Driver, DriverExt, EventId, EventRequest, ForeignHandle, PageRequest, PagesId,
    Place, StreamId,
};

use crate::expect::{equal, holds, inapplicable, same_bytes};
use crate::fixture::{Rig, at, noise};
use crate::kernels::Arguments;
use crate::law::{Law, LawVerdict, Stop};

pub(crate) const LAWS: &[Law] = &[
    Law {
        name: "peers.one_answer",
        says: "a copy of no bytes tells whether one device reaches another; the answer stays, and a copy of bytes gets the same",
        run: one_answer,
    },
    Law {
        name: "peers.ordered_on_both_sides",
        says: "devices that copy from each other at the same time, and wait for each other's events, copy what was written before and before it is written again",
        run: ordered_on_both_sides,
    },
    Law {
        name: "peers.through_kernels",
        says: "a kernel reads what was copied from another device before it, and what it writes is copied back",
        run: through_kernels,
    },
    Law {
        name: "peers.scatter_and_gather",
        says: "pieces of one block go to two devices and come back to their places, whichever device copies",
        run: scatter_and_gather,
    },
    Law {
        name: "peers.pages_on_both",
        says: "pages of one device that another one has mapped are one memory, for copies and for kernels",
        run: pages_on_both,
    },
    Law {
        name: "peers.pages_outlive_their_owner",
        says: "pages stay on a device that has mapped them after the device that made them gave them back",
        run: pages_outlive_their_owner,
    },
];

const BYTES: u64 = 4096;

/// Copies from a block of the other device.
fn pull(rig: &Rig<'_>, on: StreamId, from: &DeviceMemory, to: &DeviceMemory, bytes: u64) -> LawVerdict {
    let (from, to) = (Place::Peer(from.id.into()), Place::Device(to.id.into()));
    Ok(rig.driver.submit(on, &Command::Copy { from, to, bytes }).map(drop)?)
}

fn one_answer(rig: &Rig<'_>) -> LawVerdict {
    let beside = rig.beside()?;
    for (one, other) in [(rig, &beside), (&beside, rig)] {
        let (here, there) = (one.memory_with(&[1; 64])?, other.memory_with(&[2; 64])?);
        let stream = one.stream()?;
        let copied = |bytes| {
            let (from, to) = (Place::Peer(there.id.into()), Place::Device(here.id.into()));
            one.driver.submit(stream, &Command::Copy { from, to, bytes })
        };
        let first = copied(0);
        if let Err(error) = &first {
            let is_answer = error.is_unsupported() || error.is_refused();
            holds(is_answer, "a device that does not reach another to say so", error)?;
        }
        equal("the answer when it is asked again", copied(0).is_ok(), first.is_ok())?;
        equal("the answer to a copy of 64 bytes", copied(64).is_ok(), first.is_ok())?;
        one.driver.synchronize(stream)?;
        let expected = if first.is_ok() { 2 } else { 1 };
        same_bytes("the block", &one.get(here.id, 64)?, &[expected; 64])?;
        same_bytes("the other device's block", &other.get(there.id, 64)?, &[2; 64])?;
    }
    beside.finish()
}

/// One of two devices that copy from each other.
struct Side<'r, 'a> {
    rig: &'r Rig<'a>,
    stream: StreamId,
    /// What the other one copies.
    source: DeviceMemory,
    /// A piece for each round.
    copied: DeviceMemory,
    ready: EventId,
    done: EventId,
    /// The names of the other one's events here.
    ready_there: EventId,
    done_there: EventId,
}

/// Rounds over the same blocks.
const ROUNDS: u64 = 6;

fn ordered_on_both_sides(rig: &Rig<'_>) -> LawVerdict {
    let beside = rig.beside()?;
    let events = (Events::of(rig)?, Events::of(&beside)?);
    let sides =
        [Side::new(rig, &events.0, &beside, &events.1)?, Side::new(&beside, &events.1, rig, &events.0)?];
    for round in 0..ROUNDS {
        for (which, side) in sides.iter().enumerate() {
            // Late, so that a copy that does not wait for it comes before.
            side.rig.busy(side.stream)?;
            side.rig.driver.fill(side.stream, side.source.id.into(), value(which, round), BYTES)?;
            side.rig.driver.submit(side.stream, &Command::Signal(side.ready))?;
        }
        for (side, other) in [(&sides[0], &sides[1]), (&sides[1], &sides[0])] {
            side.rig.driver.submit(side.stream, &Command::Wait(side.ready_there))?;
            let from = Place::Peer(other.source.id.into());
            let to = Place::Device(at(side.copied.id, round * BYTES));
            side.rig.driver.submit(side.stream, &Command::Copy { from, to, bytes: BYTES })?;
            side.rig.driver.submit(side.stream, &Command::Signal(side.done))?;
        }
        for side in &sides {
            side.rig.driver.submit(side.stream, &Command::Wait(side.done_there))?;
        }
    }
    for side in &sides {
        side.rig.driver.synchronize(side.stream)?;
    }
    for (which, side) in sides.iter().enumerate() {
        let expected: Vec<u8> =
            (0..ROUNDS).flat_map(|round| vec![value(1 - which, round); BYTES as usize]).collect();
        let found = side.rig.get(side.copied.id, ROUNDS * BYTES)?;
        same_bytes(format!("what device {which} of two copied in each round"), &found, &expected)?;
        // Names first, then the events behind them.
        side.rig.driver.destroy(side.ready_there.into())?;
        side.rig.driver.destroy(side.done_there.into())?;
    }
    beside.finish()
}

/// What a device writes in a round.
fn value(which: usize, round: u64) -> u8 {
    (which as u64 * 100 + round + 1) as u8
}

/// The events of one side.
struct Events {
    ready: EventId,
    done: EventId,
}

impl Events {
    fn of(rig: &Rig<'_>) -> Result<Self, Stop> {
        Ok(Self { ready: rig.event()?, done: rig.event()? })
    }
}

impl<'r, 'a> Side<'r, 'a> {
    fn new(rig: &'r Rig<'a>, own: &Events, other: &Rig<'_>, theirs: &Events) -> Result<Self, Stop> {
        let stream = rig.stream()?;
        let (source, copied) =
            (rig.memory_with(&[0; BYTES as usize])?, rig.memory_with(&[0; (ROUNDS * BYTES) as usize])?);
        let ready_there = named(&*other.driver, theirs.ready, &*rig.driver)?;
        let done_there = named(&*other.driver, theirs.done, &*rig.driver)?;
        Ok(Self { rig, stream, source, copied, ready: own.ready, done: own.done, ready_there, done_there })
    }
}

/// A name of another device for an event.
fn named(owner: &dyn Driver, event: EventId, other: &dyn Driver) -> Result<EventId, Stop> {
    if !owner.info().features.native_handles || !other.info().features.native_handles {
        return inapplicable("a device has no native handles");
    }
    // SAFETY: the event lives until the law ends, and the name made from this is given back before.
    let handle = unsafe { ForeignHandle::new(owner.native(event.into())?) };
    Ok(other.create_event(EventRequest::Foreign(handle))?)
}

fn through_kernels(rig: &Rig<'_>) -> LawVerdict {
    let beside = rig.beside()?;
    let words: Vec<u8> = (0..64_u32).flat_map(u32::to_le_bytes).collect();
    let (there, here) = (beside.memory_with(&words)?, rig.words(64)?);
    let stream = rig.stream()?;
    for _ in 0..3 {
        pull(rig, stream, &there, &here, 256)?;
        rig.increment(stream, &here, 64)?;
        let (from, to) = (Place::Device(here.id.into()), Place::Peer(there.id.into()));
        rig.driver.submit(stream, &Command::Copy { from, to, bytes: 256 })?;
    }
    rig.driver.synchronize(stream)?;
    equal("words that went there and back three times", beside.get_words(&there, 64)?, (3..67).collect())?;
    beside.finish()
}

fn scatter_and_gather(rig: &Rig<'_>) -> LawVerdict {
    const WHOLE: u64 = 5003;
    const FIRST: u64 = 1999;
    let beside = rig.beside()?;
    let data = noise(WHOLE, 17);
    for (one, other) in [(rig, &beside), (&beside, rig)] {
        let stream = one.stream()?;
        let (whole, back) = (one.memory_with(&data)?, one.memory_with(&[0; WHOLE as usize])?);
        let (own, far) = (one.memory(FIRST)?, other.memory_with(&[0; (WHOLE - FIRST + 7) as usize])?);
        let rest = WHOLE - FIRST;
        let device = |memory: &DeviceMemory, offset| Place::Device(at(memory.id, offset));
        let peer = |memory: &DeviceMemory, offset| Place::Peer(at(memory.id, offset));
        let copies = [
            (device(&whole, 0), device(&own, 0), FIRST),
            (device(&whole, FIRST), peer(&far, 7), rest),
            (device(&own, 0), device(&back, 0), FIRST),
            (peer(&far, 7), device(&back, FIRST), rest),
        ];
        for (from, to, bytes) in copies {
            one.driver.submit(stream, &Command::Copy { from, to, bytes })?;
        }
        one.driver.synchronize(stream)?;
        same_bytes(
            "the piece of the other device",
            &other.get(at(far.id, 7), rest)?,
            &data[FIRST as usize..],
        )?;
        same_bytes("what lies before it", &other.get(far.id, 7)?, &[0; 7])?;
        same_bytes("the pieces together", &one.get(back.id, WHOLE)?, &data)?;
    }
    beside.finish()
}

/// Pages that the second device made and the first one has mapped too, as the start of both mappings, and those of the second.
fn shared(rig: &Rig<'_>, owner: &Rig<'_>) -> Result<(DeviceMemory, DeviceMemory, PagesId), Stop> {
    for device in [rig, owner] {
        let features = device.driver.info().features;
        if !features.pages || !features.page_export {
            return inapplicable("a device exports no pages");
        }
    }
    let bytes = rig.granule().max(owner.granule());
    let pages = owner.pages_of(PageRequest { bytes, exportable: true })?;
    let theirs = owner.reservation(bytes / owner.granule())?;
    owner.map(theirs.id, 0, pages, bytes / owner.granule())?;
    let descriptor = owner.driver.export_pages(pages)?;
    let imported = match rig.driver.import_pages(descriptor.as_fd(), bytes) {
        Err(error) if error.is_unsupported() => {
            return inapplicable("the device does not reach the other one's memory");
        }
        imported => imported?,
    };
    rig.adopt(imported);
    let own = rig.reservation(bytes / rig.granule())?;
    rig.map(own.id, 0, imported, bytes / rig.granule())?;
    let view = |rig: &Rig<'_>, reservation: kiln_driver::Reservation| -> Result<DeviceMemory, Stop> {
        let request = kiln_driver::MemoryRequest::Foreign(
            // SAFETY: so many bytes are mapped there, and the name of the memory is freed before they are unmapped.
            unsafe { kiln_driver::ForeignMemory::new(reservation.address, BYTES) },
        );
        let memory = rig.driver.allocate(request)?;
        rig.adopt_memory(memory.id, None);
        Ok(memory)
    };
    Ok((view(rig, own)?, view(owner, theirs)?, pages))
}

fn pages_on_both(rig: &Rig<'_>) -> LawVerdict {
    let beside = rig.beside()?;
    for (one, owner) in [(rig, &beside), (&beside, rig)] {
        let (here, there, _) = shared(one, owner)?;
        let data = noise(BYTES, 23);
        owner.put(there.id, &data)?;
        same_bytes("what the owner wrote", &one.get(here.id, BYTES)?, &data)?;
        one.put(here.id, &[0; BYTES as usize])?;
        // A kernel of each device, one after the other.
        for (device, memory) in [(one, &here), (owner, &there), (one, &here)] {
            let stream = device.stream()?;
            device.increment(stream, memory, 64)?;
            device.driver.synchronize(stream)?;
        }
        equal("words that kernels of both devices changed", owner.get_words(&there, 64)?, vec![3; 64])?;
        let out = one.words(64)?;
        let stream = one.stream()?;
        let arguments = Arguments::new().address(here.address).address(out.address).u32(64);
        one.launch(stream, one.kernel("copy_words")?.id, 1, 64, &arguments)?;
        one.driver.synchronize(stream)?;
        equal("the same, read by a kernel", one.get_words(&out, 64)?, vec![3; 64])?;
    }
    beside.finish()
}

fn pages_outlive_their_owner(rig: &Rig<'_>) -> LawVerdict {
    let beside = rig.beside()?;
    let (here, there, _) = shared(rig, &beside)?;
    let data = noise(BYTES, 29);
    beside.put(there.id, &data)?;
    beside.finish()?;
    same_bytes("pages that their owner gave back", &rig.get(here.id, BYTES)?, &data)?;
    let stream = rig.stream()?;
    rig.put(here.id, &[0; BYTES as usize])?;
    rig.increment(stream, &here, 64)?;
    rig.driver.synchronize(stream)?;
    equal("the same, written by a kernel", rig.get_words(&here, 64)?, vec![1; 64])
}
