//! Laws about host memory the device can reach.

use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use kiln_driver::{Command, DriverExt, Place, SharedBytes};

use crate::expect::{equal, holds, inapplicable, refused_somehow, same_bytes, stale, too_much, unsupported};
use crate::fixture::{Rig, host_at, noise, read_host, write_host};
use crate::law::{Law, LawVerdict, Stop};

pub(crate) const LAWS: &[Law] = &[
    Law { name: "host.starts_as_zeros", says: "a new host block holds zeros", run: starts_as_zeros },
    Law {
        name: "host.round_trip",
        says: "a host block copies to the device and back, at any offset",
        run: round_trip,
    },
    Law { name: "host.to_host", says: "a stream copies between host blocks", run: to_host },
    Law {
        name: "host.sizes",
        says: "zero bytes are refused, and more than there can be is an error and nothing more",
        run: sizes,
    },
    Law {
        name: "host.bytes_outlive_the_handle",
        says: "the bytes live while the block is held, also after its end",
        run: bytes_outlive_the_handle,
    },
    Law { name: "host.blocks_are_apart", says: "host blocks share no byte", run: blocks_are_apart },
    Law {
        name: "host.registered",
        says: "registered memory is copied from and to where it lies",
        run: registered,
    },
    Law {
        name: "host.registered_once",
        says: "memory is registered once at a time, and again after that",
        run: registered_once,
    },
];

const PAGE_BYTES: usize = 4096;

fn starts_as_zeros(rig: &Rig<'_>) -> LawVerdict {
    for bytes in [1, 100, 1 << 16] {
        let block = rig.host(bytes)?;
        equal("the length of a host block", block.len() as u64, bytes)?;
        holds(
            read_host(&block)?.iter().all(|byte| *byte == 0),
            "zeros in a new host block",
            "something else",
        )?;
        // Dirty it, so that the next one shows whether it is old memory.
        write_host(&block, &noise(bytes, 1))?;
        rig.destroy(block.id())?;
    }
    let block = rig.host(1 << 16)?;
    holds(
        read_host(&block)?.iter().all(|byte| *byte == 0),
        "zeros in a block made after others",
        "something else",
    )
}

fn round_trip(rig: &Rig<'_>) -> LawVerdict {
    let stream = rig.stream()?;
    let data = noise(5000, 2);
    let (from, to) = (rig.host_with(&data)?, rig.host(5000)?);
    let memory = rig.memory_with(&[0; 5000])?;
    for (offset, bytes) in [(0, 1), (1, 2), (3, 61), (64, 64), (129, 4871)] {
        let device = Place::Device(crate::fixture::at(memory.id, offset));
        let up = Command::Copy { from: host_at(&from, offset), to: device, bytes };
        let down = Command::Copy { from: device, to: host_at(&to, offset), bytes };
        rig.driver.submit(stream, &up)?;
        rig.driver.submit(stream, &down)?;
    }
    rig.driver.synchronize(stream)?;
    let mut expected = data;
    expected[128] = 0;
    same_bytes("a host block copied in pieces", &read_host(&to)?, &expected)
}

fn to_host(rig: &Rig<'_>) -> LawVerdict {
    let stream = rig.stream()?;
    let data = noise(1000, 3);
    let (from, to) = (rig.host_with(&data)?, rig.host(1000)?);
    rig.busy(stream)?;
    let copy = Command::Copy { from: host_at(&from, 10), to: host_at(&to, 100), bytes: 900 };
    rig.driver.submit(stream, &copy)?;
    rig.driver.synchronize(stream)?;
    let mut expected = vec![0; 1000];
    expected[100..].copy_from_slice(&data[10..910]);
    same_bytes("a host block", &read_host(&to)?, &expected)
}

fn sizes(rig: &Rig<'_>) -> LawVerdict {
    refused_somehow("a host block of zero bytes", rig.driver.allocate_host(0))?;
    for bytes in [1 << 63, u64::MAX, 1 << 56] {
        too_much(format!("a host block of {bytes} bytes"), rig.driver.allocate_host(bytes))?;
    }
    let block = rig.host_with(&[1, 2, 3])?;
    same_bytes("a block made after that", &read_host(&block)?, &[1, 2, 3])
}

fn bytes_outlive_the_handle(rig: &Rig<'_>) -> LawVerdict {
    let stream = rig.stream()?;
    let memory = rig.memory_with(&[6; 64])?;
    let block = rig.host(64)?;
    rig.driver.download(stream, memory.id.into(), &block, 64)?;
    rig.driver.synchronize(stream)?;
    rig.destroy(block.id())?;
    // New blocks must not get the bytes while they are held.
    let other = rig.host_with(&[9; 64])?;
    same_bytes("the bytes of a block whose handle is gone", &read_host(&block)?, &[6; 64])?;
    write_host(&block, &[7; 64])?;
    same_bytes("another block", &read_host(&other)?, &[9; 64])?;
    stale("an upload", rig.driver.upload(stream, &block, memory.id.into(), 64))?;
    stale("a second destroy", rig.driver.destroy(block.id().into()))?;
    same_bytes("the device's memory", &rig.get(memory.id, 64)?, &[6; 64])
}

fn blocks_are_apart(rig: &Rig<'_>) -> LawVerdict {
    let mut all = Vec::new();
    for number in 0..16u64 {
        all.push((rig.host_with(&noise(1 + number * 97, number))?, number));
    }
    for (block, number) in &all {
        same_bytes("a block among many", &read_host(block)?, &noise(block.len() as u64, *number))?;
    }
    Ok(())
}

fn registered(rig: &Rig<'_>) -> LawVerdict {
    let memory = need_registration(rig)?;
    let stream = rig.stream()?;
    let data = noise(4 * PAGE_BYTES as u64, 4);
    holds(memory.write(0, &data), "to write memory of our own", "that it lies outside")?;
    let block = rig.driver.register_host(memory.clone())?;
    rig.adopt(block.id());
    holds(Arc::ptr_eq(block.bytes(), &memory), "the registered bytes themselves", "other bytes")?;
    let device = rig.memory(data.len() as u64)?;
    rig.driver.upload(stream, &block, device.id.into(), data.len() as u64)?;
    rig.driver.synchronize(stream)?;
    same_bytes("device memory", &rig.get(device.id, data.len() as u64)?, &data)?;
    let other = noise(data.len() as u64, 5);
    rig.put(device.id, &other)?;
    rig.driver.download(stream, device.id.into(), &block, other.len() as u64)?;
    rig.driver.synchronize(stream)?;
    let mut found = vec![0; other.len()];
    holds(memory.read(0, &mut found), "to read memory of our own", "that it lies outside")?;
    same_bytes("registered memory, read where it lies", &found, &other)
}

fn registered_once(rig: &Rig<'_>) -> LawVerdict {
    let memory = need_registration(rig)?;
    let block = rig.driver.register_host(memory.clone())?;
    rig.adopt(block.id());
    refused_somehow("a second registration", rig.driver.register_host(memory.clone()))?;
    let empty = Arc::new(SharedBytes::zeroed(0));
    refused_somehow("a registration of zero bytes", rig.driver.register_host(empty))?;
    rig.destroy(block.id())?;
    drop(block);
    let again = rig.driver.register_host(memory)?;
    rig.adopt(again.id());
    let device = rig.memory_with(&[1; 128])?;
    let stream = rig.stream()?;
    rig.driver.download(stream, device.id.into(), &again, 128)?;
    rig.driver.synchronize(stream)?;
    same_bytes("memory registered again", &read_host(&again)?[..128], &[1; 128])
}

/// Memory that can be registered, or the end of the law after a look at what the call says.
fn need_registration(rig: &Rig<'_>) -> Result<Arc<SharedBytes>, Stop> {
    let memory = Arc::new(page_aligned(4));
    if rig.driver.info().features.host_registration {
        return Ok(memory);
    }
    unsupported("register_host", rig.driver.register_host(memory))?;
    inapplicable("the device registers no host memory")
}

/// Whole pages of host memory, because hardware registers nothing smaller.
fn page_aligned(pages: usize) -> SharedBytes {
    #[repr(C, align(4096))]
    struct HostPage([AtomicU64; PAGE_BYTES / 8]);
    let page = || HostPage([const { AtomicU64::new(0) }; PAGE_BYTES / 8]);
    let owner: Box<[HostPage]> = (0..pages).map(|_| page()).collect();
    let start = NonNull::from(&*owner).cast::<u8>();
    // SAFETY: the pages are live while their box is, the box is the owner and moving it does not move them, and
    // nothing else reaches them.
    unsafe { SharedBytes::from_raw(start, pages * PAGE_BYTES, Box::new(owner)) }
}
