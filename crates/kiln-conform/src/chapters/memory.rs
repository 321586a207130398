//! Conformance tests of allocated memory: direct, from the pool, and imported.

use kiln_driver::{
    Command, DriverExt, ForeignMemory, MemoryPart, MemoryRequest, PartKind, PartLabel, Refusal,
};

use crate::expect::{
    equal, holds, inapplicable, out_of_range, refused, refused_somehow, same_bytes, stale, too_much,
    unsupported,
};
use crate::fixture::{Rig, at, noise, read_host};
use crate::law::{Law, LawVerdict, Stop, fail};

pub(crate) const LAWS: &[Law] = &[
    Law {
        name: "memory.round_trip",
        says: "direct memory holds what was copied to it, at an aligned address",
        run: round_trip,
    },
    Law {
        name: "memory.blocks_are_apart",
        says: "no two blocks share an address or a byte",
        run: blocks_are_apart,
    },
    Law {
        name: "memory.sizes",
        says: "zero bytes are refused, more than there is is out of memory, and nothing is lost by asking",
        run: sizes,
    },
    Law {
        name: "memory.freed_memory_returns",
        says: "freed memory can be allocated again",
        run: freed_memory_returns,
    },
    Law {
        name: "memory.free_is_final",
        says: "freed memory is stale, and cannot be freed twice",
        run: free_is_final,
    },
    Law {
        name: "memory.pool_in_stream_order",
        says: "pool memory is there for what follows on its stream",
        run: pool_in_stream_order,
    },
    Law {
        name: "memory.pool_free_in_stream_order",
        says: "work queued before a free in stream order still has its memory",
        run: pool_free_in_stream_order,
    },
    Law {
        name: "memory.pool_across_streams",
        says: "pool memory may be used and freed on any stream that is ordered",
        run: pool_across_streams,
    },
    Law {
        name: "memory.pool_reuses",
        says: "memory freed to the pool serves again without bound",
        run: pool_reuses,
    },
    Law {
        name: "memory.parts",
        says: "a part of memory has a handle with its address and its bounds, and its memory outlives it",
        run: parts,
    },
    Law {
        name: "memory.free_wants_its_kind",
        says: "pool memory is freed with a stream, other memory without; the wrong way changes nothing",
        run: free_wants_its_kind,
    },
    Law {
        name: "memory.trim_keeps_what_is_used",
        says: "trimming the pool touches nothing that is in use",
        run: trim_keeps_what_is_used,
    },
    Law {
        name: "memory.foreign",
        says: "memory of another library can be named, and freeing the name leaves it alone",
        run: foreign,
    },
];

fn need_pool(rig: &Rig<'_>) -> Result<(), Stop> {
    if rig.driver.info().features.memory_pool {
        return Ok(());
    }
    let stream = rig.stream()?;
    unsupported("pool memory", rig.driver.allocate(MemoryRequest::Pool { bytes: 64, stream }))?;
    unsupported("trim_pool", rig.driver.trim_pool(0))?;
    inapplicable("the device has no pool")
}

fn round_trip(rig: &Rig<'_>) -> LawVerdict {
    for bytes in [1, 3, 256, 4097, 1 << 20] {
        let memory = rig.memory(bytes)?;
        equal("the length of memory", memory.bytes, bytes)?;
        let alignment = rig.driver.info().limits.allocation_alignment_bytes;
        holds(
            memory.address.0.is_multiple_of(alignment),
            format!("an address aligned to {alignment}"),
            memory.address,
        )?;
        let data = noise(bytes, bytes);
        rig.put(memory.id, &data)?;
        same_bytes("memory", &rig.get(memory.id, bytes)?, &data)?;
    }
    Ok(())
}

fn blocks_are_apart(rig: &Rig<'_>) -> LawVerdict {
    let mut all = Vec::new();
    for number in 0..24u64 {
        let bytes = 1 + number * 331;
        let memory = rig.memory(bytes)?;
        rig.put(memory.id, &noise(bytes, number))?;
        all.push((memory, number));
    }
    for (memory, number) in &all {
        same_bytes("a block among many", &rig.get(memory.id, memory.bytes)?, &noise(memory.bytes, *number))?;
    }
    all.sort_by_key(|(memory, _)| memory.address);
    for pair in all.windows(2) {
        let (low, high) = (&pair[0].0, &pair[1].0);
        holds(
            low.address.0 + low.bytes <= high.address.0,
            "blocks not to overlap",
            format!("{low:?} and {high:?}"),
        )?;
    }
    Ok(())
}

fn sizes(rig: &Rig<'_>) -> LawVerdict {
    refused_somehow("memory of zero bytes", rig.driver.allocate(MemoryRequest::Direct { bytes: 0 }))?;
    let beyond = rig.driver.info().total_memory_bytes.saturating_add(1 << 20);
    match rig.driver.allocate(MemoryRequest::Direct { bytes: beyond }) {
        Err(error) if error.is_oom() => {}
        Err(error) => return Err(fail("memory beyond the device's own to be out of memory", error)),
        Ok(_) => return Err(fail("memory beyond the device's own to be out of memory", "memory")),
    }
    for bytes in [1 << 63, u64::MAX] {
        too_much(format!("memory of {bytes} bytes"), rig.driver.allocate(MemoryRequest::Direct { bytes }))?;
    }
    if rig.driver.info().features.memory_pool {
        let stream = rig.stream()?;
        refused_somehow(
            "pool memory of zero bytes",
            rig.driver.allocate(MemoryRequest::Pool { bytes: 0, stream }),
        )?;
        for bytes in [beyond, 1 << 63, u64::MAX] {
            let answer = rig.driver.allocate(MemoryRequest::Pool { bytes, stream });
            too_much(format!("pool memory of {bytes} bytes"), answer)?;
        }
        equal(
            "submissions of a stream nothing was submitted to",
            rig.driver.progress(stream)?.submitted.0,
            0,
        )?;
    }
    let memory = rig.memory_with(&[1, 2, 3])?;
    same_bytes("memory allocated after that", &rig.get(memory.id, 3)?, &[1, 2, 3])
}

fn freed_memory_returns(rig: &Rig<'_>) -> LawVerdict {
    // Three times two fifths of what is free: the third time works only if the first two came back.
    let bytes = rig.driver.memory_info()?.free_bytes / 5 * 2;
    for _ in 0..3 {
        let memory = rig.driver.allocate(MemoryRequest::Direct { bytes })?;
        rig.driver.free(memory.id, None)?;
    }
    Ok(())
}

fn free_is_final(rig: &Rig<'_>) -> LawVerdict {
    let stream = rig.stream()?;
    let memory = rig.memory_with(&[1; 64])?;
    rig.free(memory.id, None)?;
    stale("a fill", rig.driver.fill(stream, memory.id.into(), 1, 1))?;
    stale("a second free", rig.driver.free(memory.id, None))?;
    let again = rig.memory_with(&[2; 64])?;
    holds(again.id != memory.id, "a new handle for new memory", again.id)?;
    stale("a free of the old handle", rig.driver.free(memory.id, None))?;
    equal("submissions", rig.driver.progress(stream)?.submitted.0, 0)?;
    same_bytes("memory allocated after that", &rig.get(again.id, 64)?, &[2; 64])
}

fn pool_in_stream_order(rig: &Rig<'_>) -> LawVerdict {
    need_pool(rig)?;
    let stream = rig.stream()?;
    let data = noise(4096, 1);
    let (from, to) = (rig.host_with(&data)?, rig.host(4096)?);
    rig.busy(stream)?;
    let memory = rig.pool_memory(4096, stream)?;
    equal("the length of pool memory", memory.bytes, 4096)?;
    rig.driver.upload(stream, &from, memory.id.into(), 4096)?;
    rig.driver.download(stream, memory.id.into(), &to, 4096)?;
    rig.driver.synchronize(stream)?;
    same_bytes("pool memory", &read_host(&to)?, &data)
}

fn pool_free_in_stream_order(rig: &Rig<'_>) -> LawVerdict {
    need_pool(rig)?;
    let stream = rig.stream()?;
    let to = rig.host(4096)?;
    let memory = rig.pool_memory(4096, stream)?;
    rig.busy(stream)?;
    rig.driver.fill(stream, memory.id.into(), 0x5a, 4096)?;
    rig.driver.download(stream, memory.id.into(), &to, 4096)?;
    rig.free(memory.id, Some(stream))?;
    stale("a fill", rig.driver.fill(stream, memory.id.into(), 1, 1))?;
    // The next owner of these bytes gets them after the copy above.
    let next = rig.pool_memory(4096, stream)?;
    rig.driver.fill(stream, next.id.into(), 0xa5, 4096)?;
    rig.driver.synchronize(stream)?;
    same_bytes("what was read before the free", &read_host(&to)?, &[0x5a; 4096])?;
    same_bytes("what was written after it", &rig.get(next.id, 4096)?, &[0xa5; 4096])
}

fn pool_across_streams(rig: &Rig<'_>) -> LawVerdict {
    need_pool(rig)?;
    let (first, second) = (rig.stream()?, rig.stream()?);
    let (born, used) = (rig.event()?, rig.event()?);
    let to = rig.host(4096)?;
    let memory = rig.pool_memory(4096, first)?;
    rig.busy(first)?;
    rig.driver.fill(first, memory.id.into(), 0x11, 4096)?;
    rig.driver.order(first, born, second)?;
    rig.busy(second)?;
    rig.driver.download(second, memory.id.into(), &to, 4096)?;
    rig.driver.order(second, used, first)?;
    rig.free(memory.id, Some(first))?;
    let next = rig.pool_memory(4096, first)?;
    rig.driver.fill(first, next.id.into(), 0x22, 4096)?;
    rig.driver.synchronize(first)?;
    same_bytes("what the other stream read", &read_host(&to)?, &[0x11; 4096])
}

fn pool_reuses(rig: &Rig<'_>) -> LawVerdict {
    need_pool(rig)?;
    let stream = rig.stream()?;
    // Six times a quarter of what is free goes through the pool: it must come back in stream order, without a wait.
    let bytes = rig.driver.memory_info()?.free_bytes / 4;
    for _ in 0..6 {
        let memory = rig.driver.allocate(MemoryRequest::Pool { bytes, stream })?;
        rig.driver.fill(stream, memory.id.into(), 1, 64)?;
        rig.driver.free(memory.id, Some(stream))?;
    }
    rig.driver.synchronize(stream)?;
    Ok(rig.driver.trim_pool(0)?)
}

fn free_wants_its_kind(rig: &Rig<'_>) -> LawVerdict {
    let stream = rig.stream()?;
    let direct = rig.memory_with(&[7; 64])?;
    refused_somehow("direct memory freed on a stream", rig.driver.free(direct.id, Some(stream)))?;
    same_bytes("direct memory after that", &rig.get(direct.id, 64)?, &[7; 64])?;
    if !rig.driver.info().features.memory_pool {
        return Ok(());
    }
    let pooled = rig.pool_memory(64, stream)?;
    rig.driver.fill(stream, pooled.id.into(), 8, 64)?;
    rig.driver.synchronize(stream)?;
    refused_somehow("pool memory freed on no stream", rig.driver.free(pooled.id, None))?;
    let gone = rig.stream()?;
    rig.destroy(gone)?;
    stale("a free on a destroyed stream", rig.driver.free(pooled.id, Some(gone)))?;
    stale(
        "an allocation on a destroyed stream",
        rig.driver.allocate(MemoryRequest::Pool { bytes: 8, stream: gone }),
    )?;
    same_bytes("pool memory after that", &rig.get(pooled.id, 64)?, &[8; 64])
}

fn trim_keeps_what_is_used(rig: &Rig<'_>) -> LawVerdict {
    need_pool(rig)?;
    let stream = rig.stream()?;
    let (kept, freed) = (rig.pool_memory(1 << 20, stream)?, rig.pool_memory(1 << 20, stream)?);
    rig.driver.fill(stream, kept.id.into(), 3, 1 << 20)?;
    rig.free(freed.id, Some(stream))?;
    rig.driver.synchronize(stream)?;
    rig.driver.trim_pool(0)?;
    rig.driver.trim_pool(u64::MAX)?;
    same_bytes("memory in use while the pool was trimmed", &rig.get(kept.id, 1 << 20)?, &[3; 1 << 20])
}

fn parts(rig: &Rig<'_>) -> LawVerdict {
    let stream = rig.stream()?;
    let whole = rig.memory_with(&[1; 1024])?;
    let (kind, label) = (PartKind::KeptBlock, PartLabel::new("a block"));
    let part = MemoryPart { place: at(whole.id, 256), bytes: 512, stream: Some(stream), kind, label };
    let ask = |part| rig.driver.allocate(MemoryRequest::Part(part));
    if !rig.driver.info().features.access_checks {
        return unsupported("part of other memory", ask(part));
    }
    refused_somehow("a part of zero bytes", ask(MemoryPart { bytes: 0, ..part }))?;
    out_of_range("a part past the end", ask(MemoryPart { bytes: 769, ..part }))?;
    let named = ask(part)?;
    rig.adopt_memory(named.id, None);
    equal("the address of a part", named.address.0, whole.address.0 + 256)?;
    rig.driver.fill(stream, at(named.id, 256), 2, 256)?;
    let past = Command::Fill { to: at(named.id, 256), pattern: kiln_driver::Pattern::U8(0), count: 257 };
    out_of_range("a fill past the end of a part", rig.driver.submit(stream, &past))?;
    // Work that was queued before may still use it.
    rig.free(named.id, Some(stream))?;
    stale("a fill of a part that was freed", rig.driver.fill(stream, named.id.into(), 1, 1))?;
    rig.driver.synchronize(stream)?;
    let again = ask(MemoryPart { place: whole.id.into(), bytes: 1024, stream: None, ..part })?;
    rig.adopt_memory(again.id, None);
    let mut expected = vec![1; 1024];
    expected[512..768].fill(2);
    same_bytes("the memory itself", &rig.get(again.id, 1024)?, &expected)?;
    rig.free(again.id, None)?;
    Ok(())
}

fn foreign(rig: &Rig<'_>) -> LawVerdict {
    let stream = rig.stream()?;
    let owned = rig.memory_with(&[1; 256])?;
    // SAFETY: the bytes are memory of this device, allocated above and freed after the name for them is.
    let theirs = unsafe { ForeignMemory::new(kiln_driver::DeviceAddress(owned.address.0 + 64), 128) };
    let named = match rig.driver.allocate(MemoryRequest::Foreign(theirs)) {
        Err(error) if error.is_unsupported() => return inapplicable("the device takes no foreign memory"),
        named => named?,
    };
    rig.adopt_memory(named.id, None);
    equal("the address of foreign memory", named.address.0, owned.address.0 + 64)?;
    rig.driver.fill(stream, at(named.id, 64), 2, 64)?;
    let past = rig.driver.submit(
        stream,
        &Command::Fill { to: at(named.id, 64), pattern: kiln_driver::Pattern::U8(0), count: 65 },
    );
    refused("a fill past the end of foreign memory", past, |reason| {
        matches!(reason, Refusal::OutOfRange { .. })
    })?;
    rig.driver.synchronize(stream)?;
    rig.free(named.id, None)?;
    let mut expected = vec![1; 256];
    expected[128..192].fill(2);
    same_bytes("the memory itself", &rig.get(owned.id, 256)?, &expected)
}
