//! Laws about copies and fills.

use kiln_driver::{Command, DevicePlace, DriverExt, Pattern, Place};

use crate::expect::{equal, inapplicable, out_of_range, refused_somehow, same_bytes};
use crate::fixture::{Rig, at, host_at, noise, read_host};
use crate::law::{LawVerdict, fail};

pub(super) fn copies(rig: &Rig<'_>) -> LawVerdict {
    const BLOCK: u64 = 9000;
    let stream = rig.stream()?;
    let (source, guard) = (noise(BLOCK, 1), vec![0xee; BLOCK as usize]);
    let (from, to) = (rig.memory_with(&source)?, rig.memory_with(&guard)?);
    for (size, from_offset, to_offset) in [
        (1, 0, 0),
        (1, 8999, 17),
        (3, 5, 1),
        (4, 4, 8),
        (7, 1, 4),
        (64, 63, 65),
        (255, 1, 2),
        (4096, 3, 4099),
        (8999, 1, 0),
    ] {
        rig.put(to.id, &guard)?;
        rig.copy(stream, at(from.id, from_offset), at(to.id, to_offset), size)?;
        rig.driver.synchronize(stream)?;
        let mut expected = guard.clone();
        let (start, end) = (to_offset as usize, (to_offset + size) as usize);
        expected[start..end].copy_from_slice(&source[from_offset as usize..(from_offset + size) as usize]);
        let what = format!("the target of a copy of {size} bytes from {from_offset} to {to_offset}");
        same_bytes(what, &rig.get(to.id, BLOCK)?, &expected)?;
    }
    same_bytes("the source", &rig.get(from.id, BLOCK)?, &source)
}

pub(super) fn copies_inside_a_block(rig: &Rig<'_>) -> LawVerdict {
    let stream = rig.stream()?;
    let data = noise(1000, 2);
    let memory = rig.memory_with(&data)?;
    rig.copy(stream, at(memory.id, 0), at(memory.id, 500), 500)?;
    rig.copy(stream, at(memory.id, 700), at(memory.id, 100), 100)?;
    rig.driver.synchronize(stream)?;
    let mut expected = data.clone();
    expected.copy_within(0..500, 500);
    expected.copy_within(700..800, 100);
    same_bytes("a block copied into itself", &rig.get(memory.id, 1000)?, &expected)
}

pub(super) fn fills(rig: &Rig<'_>) -> LawVerdict {
    let stream = rig.stream()?;
    let guard = vec![0xee; 4096];
    let memory = rig.memory_with(&guard)?;
    let patterns: [(Pattern, &[u8]); 3] = [
        (Pattern::U8(0x5a), &[0x5a]),
        (Pattern::U16(0x1234), &[0x34, 0x12]),
        (Pattern::U32(0xa1b2_c3d4), &[0xd4, 0xc3, 0xb2, 0xa1]),
    ];
    for (pattern, bytes) in patterns {
        for (elements_in, count) in [(0, 1), (1, 1), (3, 5), (17, 100), (1, 1000)] {
            rig.put(memory.id, &guard)?;
            let offset = elements_in * pattern.bytes();
            rig.driver.submit(stream, &Command::Fill { to: at(memory.id, offset), pattern, count })?;
            rig.driver.synchronize(stream)?;
            let mut expected = guard.clone();
            let end = (offset + count * pattern.bytes()) as usize;
            for (at, byte) in expected[offset as usize..end].iter_mut().enumerate() {
                *byte = bytes[at % bytes.len()];
            }
            let what = format!("a fill with {pattern:?}, {count} times from {offset}");
            same_bytes(what, &rig.get(memory.id, 4096)?, &expected)?;
        }
    }
    Ok(())
}

pub(super) fn zero_bytes(rig: &Rig<'_>) -> LawVerdict {
    let stream = rig.stream()?;
    let (from, to) = (rig.memory_with(&[1; 64])?, rig.memory_with(&[2; 64])?);
    let host = rig.host_with(&[3; 64])?;
    let device = |place: DevicePlace| Place::Device(place);
    let commands = [
        Command::Copy { from: device(from.id.into()), to: device(to.id.into()), bytes: 0 },
        Command::Copy { from: device(at(from.id, 64)), to: device(at(to.id, 64)), bytes: 0 },
        Command::Copy { from: host_at(&host, 0), to: device(to.id.into()), bytes: 0 },
        Command::Copy { from: device(from.id.into()), to: host_at(&host, 64), bytes: 0 },
        Command::Fill { to: to.id.into(), pattern: Pattern::U8(9), count: 0 },
        Command::Fill { to: at(to.id, 64), pattern: Pattern::U32(9), count: 0 },
    ];
    for (number, command) in (1..).zip(&commands) {
        equal("the number of a command that does nothing", rig.driver.submit(stream, command)?.0, number)?;
    }
    rig.driver.synchronize(stream)?;
    equal("progress", rig.driver.progress(stream)?.completed.0, commands.len() as u64)?;
    same_bytes("the source", &rig.get(from.id, 64)?, &[1; 64])?;
    same_bytes("the target", &rig.get(to.id, 64)?, &[2; 64])?;
    same_bytes("the host block", &read_host(&host)?, &[3; 64])
}

pub(super) fn copy_past_the_end(rig: &Rig<'_>) -> LawVerdict {
    let stream = rig.stream()?;
    let (small, large) = (rig.memory_with(&[1; 64])?, rig.memory_with(&[2; 128])?);
    let (short, long) = (rig.host_with(&[3; 64])?, rig.host_with(&[4; 128])?);
    let place = |offset, of: u32| match of {
        0 => Place::Device(at(small.id, offset)),
        1 => Place::Device(at(large.id, offset)),
        2 => host_at(&short, offset),
        _ => host_at(&long, offset),
    };
    let ranges = [
        (0, 65),
        (1, 64),
        (63, 2),
        (64, 1),
        (65, 0),
        (u64::MAX, 1),
        (u64::MAX, 2),
        (1, u64::MAX),
        (0, 1 << 63),
        (1 << 63, 1 << 63),
    ];
    for (offset, bytes) in ranges {
        for (from, to) in [(place(offset, 0), place(0, 1)), (place(0, 1), place(offset, 0))] {
            let answer = rig.driver.submit(stream, &Command::Copy { from, to, bytes });
            out_of_range(format!("a copy of {bytes} bytes at {offset} of 64 device bytes"), answer)?;
        }
        for (from, to) in [
            (place(offset, 2), place(0, 1)),
            (place(0, 1), place(offset, 2)),
            (place(offset, 2), place(0, 3)),
        ] {
            let answer = rig.driver.submit(stream, &Command::Copy { from, to, bytes });
            out_of_range(format!("a copy of {bytes} bytes at {offset} of 64 host bytes"), answer)?;
        }
    }
    equal("submissions after nothing but refusals", rig.driver.progress(stream)?.submitted.0, 0)?;
    rig.copy(stream, small.id, large.id, 64)?;
    rig.driver.synchronize(stream)?;
    let mut expected = vec![2; 128];
    expected[..64].fill(1);
    same_bytes("the larger block", &rig.get(large.id, 128)?, &expected)?;
    same_bytes("the smaller block", &rig.get(small.id, 64)?, &[1; 64])?;
    same_bytes("the shorter host block", &read_host(&short)?, &[3; 64])?;
    same_bytes("the longer host block", &read_host(&long)?, &[4; 128])
}

pub(super) fn fill_past_the_end(rig: &Rig<'_>) -> LawVerdict {
    let stream = rig.stream()?;
    let memory = rig.memory_with(&[1; 64])?;
    let fills = [
        (0, Pattern::U8(9), 65),
        (64, Pattern::U8(9), 1),
        (62, Pattern::U16(9), 2),
        (60, Pattern::U32(9), 2),
        (0, Pattern::U32(9), 17),
        (0, Pattern::U32(9), (1 << 62) - 1),
        (0, Pattern::U8(9), u64::MAX),
        (u64::MAX, Pattern::U8(9), 1),
        (1 << 63, Pattern::U8(9), 1 << 63),
    ];
    let fill = |offset, pattern, count| {
        rig.driver.submit(stream, &Command::Fill { to: at(memory.id, offset), pattern, count })
    };
    for (offset, pattern, count) in fills {
        let what = format!("a fill of {count} times {pattern:?} at {offset} of 64 bytes");
        out_of_range(what, fill(offset, pattern, count))?;
    }
    // Here not even the number of bytes fits a number.
    for (pattern, count) in
        [(Pattern::U32(9), 1 << 62), (Pattern::U32(9), (1 << 62) + 1), (Pattern::U16(9), 1 << 63)]
    {
        refused_somehow(format!("a fill of {count} times {pattern:?}"), fill(0, pattern, count))?;
    }
    equal("submissions after nothing but refusals", rig.driver.progress(stream)?.submitted.0, 0)?;
    same_bytes("the block", &rig.get(memory.id, 64)?, &[1; 64])
}

pub(super) fn peer_copies(rig: &Rig<'_>) -> LawVerdict {
    let Some(peer) = rig.peer.clone() else { return inapplicable("there is no second device") };
    let there = peer.allocate(kiln_driver::MemoryRequest::Direct { bytes: 4096 })?;
    let stream = rig.stream()?;
    let data = noise(4096, 3);
    let (here, back) = (rig.memory_with(&data)?, rig.memory_with(&[0; 4096])?);
    let there_at = |offset| Place::Peer(at(there.id, offset));
    let out = Command::Copy { from: Place::Device(here.id.into()), to: there_at(0), bytes: 4096 };
    let home = Command::Copy { from: there_at(100), to: Place::Device(at(back.id, 50)), bytes: 1000 };
    rig.driver.submit(stream, &out)?;
    rig.driver.submit(stream, &home)?;
    rig.driver.synchronize(stream)?;
    let mut expected = vec![0; 4096];
    expected[50..1050].copy_from_slice(&data[100..1100]);
    same_bytes("what went to the other device and back", &rig.get(back.id, 4096)?, &expected)?;
    let far = Command::Copy { from: there_at(4000), to: Place::Device(here.id.into()), bytes: 97 };
    out_of_range("a copy past the end of the other device's block", rig.driver.submit(stream, &far))?;
    peer.free(there.id, None)?;
    match rig.driver.submit(stream, &home) {
        Err(error) if error.is_refused() => Ok(()),
        Err(error) => Err(error.into()),
        Ok(_) => {
            Err(fail("a copy from freed memory of the other device to be refused", "that it was accepted"))
        }
    }
}

pub(super) fn large_copy(rig: &Rig<'_>) -> LawVerdict {
    const BYTES: u64 = (8 << 20) + 12_345;
    let stream = rig.stream()?;
    let data = noise(BYTES, 4);
    let (from, to) = (rig.host_with(&data)?, rig.host(BYTES)?);
    let (first, second) = (rig.memory(BYTES)?, rig.memory(BYTES)?);
    rig.driver.upload(stream, &from, first.id.into(), BYTES)?;
    rig.copy(stream, first.id, second.id, BYTES)?;
    rig.driver.download(stream, second.id.into(), &to, BYTES)?;
    rig.driver.synchronize(stream)?;
    same_bytes("many megabytes", &read_host(&to)?, &data)
}
