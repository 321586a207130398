//! Memory in recordings: leaks, refused allocations, and what the heap takes from the device.

use kiln::memory::{MemoryConfig, MemoryResource, ReclaimStep};
use kiln::trace::{HeapChange, TraceEvent, export_perfetto};
use kiln::{DeviceRuntime, GpuRef, RuntimeConfig};

use crate::{Recorded, tagged};

const MIB: usize = 1 << 20;

fn limited(limit_bytes: u64) -> DeviceRuntime {
    let memory = MemoryConfig { limit_bytes: Some(limit_bytes), ..MemoryConfig::default() };
    let driver = kiln::sim::SimDevice::single(1);
    DeviceRuntime::from_driver(driver, RuntimeConfig { memory, ..RuntimeConfig::default() }).unwrap()
}

#[test]
fn a_leak_is_told_with_its_tag_and_line() {
    let file = Recorded::new();
    let gpu = DeviceRuntime::simulated(1).unwrap();
    gpu.trace(&file).unwrap();
    let line = line!() + 1;
    let kept: Vec<GpuRef<u32>> = (0..5).map(|_| tagged(&gpu, gpu.main_stream(), MIB, "history")).collect();
    drop(gpu.zeros::<u32>(MIB).unwrap());
    drop(gpu);
    let explained = file.explained();
    let text = explained.to_string();
    assert!(
        text.contains("Not given back by the end") && text.contains("20.0 MiB in 5 blocks of `history`"),
        "{text}"
    );
    let leak = explained.devices[0].memory.iter().find(|tag| tag.tag == "history").unwrap();
    assert_eq!(leak.left_line.as_deref(), Some(&*format!("{}:{line}", file!())));
    drop(kept);
}

#[test]
fn a_refused_allocation_names_the_largest_tags_the_holes_and_the_line() {
    let file = Recorded::new();
    let gpu = limited(64 << 20);
    gpu.trace(&file).unwrap();
    let stream = gpu.main_stream();
    let weights = tagged(&gpu, stream, 6 * MIB, "weights");
    let history: Vec<GpuRef<u32>> = (0..4).map(|_| tagged(&gpu, stream, 2 * MIB, "history")).collect();
    let line = line!() + 1;
    let error = gpu.allocate::<u32>(12 * MIB).unwrap_err();
    assert!(error.is_oom(), "{error}");
    drop((weights, history));
    drop(gpu);
    let explained = file.explained();
    let [device] = &*explained.devices else { panic!("{explained}") };
    let [refused] = &*device.refused else { panic!("{explained}") };
    assert_eq!((refused.bytes, refused.limit_bytes, device.refusals), (48 << 20, Some(64 << 20), 1));
    let tags: Vec<_> = refused.tags.iter().map(|tag| (&*tag.tag, tag.bytes)).collect();
    assert_eq!(tags, [("history", 32 << 20), ("weights", 24 << 20)]);
    assert!(refused.held_bytes >= 56 << 20, "{refused:?}");
    assert_eq!(refused.line.as_deref(), Some(&*format!("{}:{line}", file!())));
    let text = explained.to_string();
    let said = "Out of memory: 48.0 MiB were asked for at ";
    assert!(
        text.contains(said) && text.contains("most was held by `history` (32.0 MiB), `weights` (24.0 MiB)"),
        "{text}"
    );
}

#[test]
fn leaks_are_told_the_largest_first() {
    let file = Recorded::new();
    let gpu = DeviceRuntime::simulated(1).unwrap();
    gpu.trace(&file).unwrap();
    let kept = [(1, "cache"), (3, "history"), (2, "optimizer")]
        .map(|(mib, tag)| tagged(&gpu, gpu.main_stream(), mib * MIB, tag));
    drop(gpu);
    let text = file.explained().to_string();
    let at = [
        "12.0 MiB in 1 block of `history`",
        "8.0 MiB in 1 block of `optimizer`",
        "4.0 MiB in 1 block of `cache`",
    ]
    .map(|said| text.find(said).unwrap_or_else(|| panic!("{said}: {text}")));
    assert!(at.is_sorted(), "{text}");
    drop(kept);
}

#[test]
fn a_refused_allocation_tells_how_much_is_free_and_the_largest_hole() {
    let file = Recorded::new();
    let gpu = limited(64 << 20);
    gpu.trace(&file).unwrap();
    // Blocks of 512 KiB, of which one and two neighbours are given back. Pages of the device are larger, so that the heap cannot give these back itself.
    const BLOCK: usize = 512 << 10;
    let mut blocks: Vec<Option<GpuRef<u32>>> =
        (0..16).map(|_| Some(tagged(&gpu, gpu.main_stream(), BLOCK / 4, "history"))).collect();
    for freed in [1, 5, 6] {
        blocks[freed] = None;
    }
    gpu.synchronize().unwrap();
    assert!(gpu.allocate::<u32>(15 * MIB).unwrap_err().is_oom());
    drop((blocks, gpu));
    let explained = file.explained();
    let [refused] = &*explained.devices[0].refused else { panic!("{explained}") };
    let used = 13 * BLOCK as u64;
    assert_eq!(refused.free_bytes, refused.held_bytes - used, "{refused:?}");
    // At least the neighbours, and not the block that stands alone.
    let holes = 2 * BLOCK as u64..=refused.free_bytes - BLOCK as u64;
    assert!(holes.contains(&refused.largest_free_bytes), "{refused:?}");
    let said =
        format!(" free with a largest piece of {:.1} MiB", refused.largest_free_bytes as f64 / MIB as f64);
    assert!(explained.to_string().contains(&said), "{refused:?}: {explained}");
}

#[test]
fn what_the_heap_takes_from_the_device_is_a_counter() {
    let file = Recorded::new();
    let gpu = DeviceRuntime::simulated(1).unwrap();
    gpu.trace(&file).unwrap();
    let small = tagged(&gpu, gpu.main_stream(), 1 << 10, "small");
    let large = tagged(&gpu, gpu.main_stream(), 64 * MIB, "large");
    drop((small, large));
    drop(gpu);
    let (mut grown, mut held) = (0, 0);
    file.each(|event| {
        if let TraceEvent::Heap(heap) = event
            && heap.change == HeapChange::Grew
        {
            grown += heap.bytes;
            held = heap.held_bytes;
        }
    });
    assert!(grown >= 256 << 20 && held == grown, "{grown} {held}");
    assert_eq!(file.explained().devices[0].heap_peak_bytes, held);
    let mut trace = Vec::new();
    export_perfetto(&mut file.reader(), &mut trace).unwrap();
    for track in ["memory: small", "memory: large", "memory held by the heap"] {
        assert!(trace.windows(track.len()).any(|bytes| bytes == track.as_bytes()), "{track}");
    }
}

#[test]
fn a_block_is_recorded_with_its_address() {
    let file = Recorded::new();
    let gpu = DeviceRuntime::simulated(1).unwrap();
    gpu.trace(&file).unwrap();
    let buffers: Vec<_> = (0..3).map(|_| gpu.upload(&[7_u32; 1024]).unwrap()).collect();
    let wanted: Vec<u64> = buffers.iter().map(|buffer| buffer.address().0).collect();
    gpu.flush_trace();
    let mut recorded = Vec::new();
    file.each(|event| {
        if let TraceEvent::Allocation(block) = event {
            recorded.push(block.address);
        }
    });
    assert_eq!(recorded, wanted);
}

#[test]
fn a_request_that_is_larger_than_any_block_is_listed_as_refused() {
    let file = Recorded::new();
    let gpu = DeviceRuntime::simulated(1).unwrap();
    gpu.trace(&file).unwrap();
    let line = line!() + 1;
    let error = gpu.allocate::<u8>(1 << 40).unwrap_err();
    assert!(error.to_string().contains("more than any block can have"), "{error}");
    drop(gpu);
    let text = file.explained().to_string();
    let said = format!("Refused: 1024.00 GiB were asked for at {}:{line}, ", file!());
    assert!(text.contains(&said) && text.contains(", which is more than any block can have\n"), "{text}");
    let mut trace = Vec::new();
    export_perfetto(&mut file.reader(), &mut trace).unwrap();
    let name = b"larger than any block";
    assert!(trace.windows(name.len()).any(|bytes| bytes == name));
}

/// What the heap or the pool did, with bytes, tag and whether a line is known.
fn changes(file: &Recorded) -> Vec<(HeapChange, u64, String, bool)> {
    let mut changes = Vec::new();
    file.each(|event| {
        if let TraceEvent::Heap(heap) = event {
            let has_line = heap.line.is_some_and(|line| line.file == file!());
            changes.push((heap.change, heap.bytes, heap.tag.to_owned(), has_line));
        }
    });
    changes
}

#[test]
fn memory_that_is_remapped_is_recorded_with_the_tag_and_line_of_the_allocation() {
    let file = Recorded::new();
    let gpu = limited(64 << 20);
    let stream = gpu.main_stream();
    gpu.trace(&file).unwrap();
    let pieces: Vec<GpuRef<u32>> = (0..32).map(|_| tagged(&gpu, stream, MIB / 2, "piece")).collect();
    // Half of it is free, in pieces of 8 MiB, and the limit leaves no room for more.
    let kept: Vec<GpuRef<u32>> =
        pieces.into_iter().zip(0..).filter(|(_, at)| at / 4 % 2 == 0).map(|(piece, _)| piece).collect();
    gpu.synchronize().unwrap();
    let large = tagged(&gpu, stream, 6 * MIB, "large");
    drop((kept, large, gpu));
    let changes = changes(&file);
    // The first is what the heap held when the recording began.
    let grew = &changes[1];
    assert_eq!((grew.0, &*grew.2, grew.3), (HeapChange::Grew, "piece", true), "{changes:?}");
    let remapped: Vec<_> = changes.iter().filter(|(change, ..)| *change == HeapChange::Remapped).collect();
    let [(_, bytes, tag, has_line)] = &remapped[..] else { panic!("remapped once: {changes:?}") };
    assert_eq!((*bytes, &**tag, *has_line), (24 << 20, "large", true));
    let text = file.explained().to_string();
    assert!(
        text.contains("  Memory: the heap remapped memory once, 24.0 MiB, most for `large` (24.0 MiB)\n"),
        "{text}"
    );
}

/// A device whose memory is that of the driver's pool.
fn pooled(device: kiln::sim::DeviceConfig) -> DeviceRuntime {
    let memory = MemoryConfig { stack: "pool".parse().unwrap(), ..MemoryConfig::default() };
    let machine = kiln::sim::Machine::new(kiln::sim::MachineConfig::seeded(1).device(device));
    let config = RuntimeConfig { memory, ..RuntimeConfig::default() };
    DeviceRuntime::from_driver(machine.device(0).unwrap(), config).unwrap()
}

#[test]
fn the_pool_of_the_driver_is_recorded_when_it_grows_and_when_it_is_trimmed() {
    let file = Recorded::new();
    let gpu = pooled(kiln::sim::DeviceConfig::default());
    gpu.trace(&file).unwrap();
    let weights = tagged(&gpu, gpu.main_stream(), MIB, "weights");
    drop(tagged(&gpu, gpu.main_stream(), 2 * MIB, "scratch"));
    // No more than before is in use at once.
    drop(tagged(&gpu, gpu.main_stream(), MIB, "scratch"));
    gpu.synchronize().unwrap();
    gpu.memory().reclaim(ReclaimStep::IdlePages).unwrap();
    gpu.flush_trace();
    drop((weights, gpu));
    let changes = changes(&file);
    let grew = |bytes, tag: &str, has_line| (HeapChange::PoolGrew, bytes, tag.to_owned(), has_line);
    // The first byte is the runtime's, from before the recording.
    let expected = [
        grew(1, "", false),
        grew((4 << 20) - 1, "weights", true),
        grew(8 << 20, "scratch", true),
        // The second piece of scratch, whose stream was not there yet to free the first: trimming shows it.
        grew(4 << 20, "", false),
        (HeapChange::PoolTrimmed, 12 << 20, String::new(), false),
    ];
    assert_eq!(changes, expected);
}

/// Whatever the pool does, what it took less what it gave back is what it holds, and all that is said of it says the same.
#[test]
fn the_numbers_of_the_drivers_pool_fit_each_other_and_no_heap_is_spoken_of() {
    let file = Recorded::new();
    let gpu =
        pooled(kiln::sim::DeviceConfig { memory_bytes: 64 << 20, ..kiln::sim::DeviceConfig::default() });
    gpu.trace(&file).unwrap();
    let stream = gpu.main_stream();
    // Freed in the order of the stream, which is not there yet: the next one needs other memory.
    (0..4).for_each(|_| drop(tagged(&gpu, stream, MIB, "scratch")));
    gpu.synchronize().unwrap();
    gpu.memory().reclaim(ReclaimStep::IdlePages).unwrap();
    // It grows again, without a look between that and trimming.
    let weights = tagged(&gpu, stream, 2 * MIB, "weights");
    drop(tagged(&gpu, stream, MIB, "scratch"));
    gpu.synchronize().unwrap();
    assert!(gpu.allocate::<u32>(15 * MIB).unwrap_err().is_oom(), "after trimming");
    gpu.flush_trace();
    let free = gpu.memory_info().unwrap().free_bytes;
    drop((weights, gpu));
    let (mut held, mut most, mut sums) = (0, 0, [0, 0]);
    let mut refused = None;
    file.each(|event| {
        let TraceEvent::Heap(heap) = event else { return };
        match heap.change {
            HeapChange::PoolGrew => (held, sums[0]) = (held + heap.bytes, sums[0] + heap.bytes),
            HeapChange::PoolTrimmed => (held, sums[1]) = (held - heap.bytes, sums[1] + heap.bytes),
            HeapChange::OutOfMemory => refused = Some((heap.held_bytes, held)),
            other => panic!("{other:?}"),
        }
        assert_eq!(heap.held_bytes, held, "{heap:?}");
        most = most.max(held);
    });
    assert_eq!(
        sums,
        [28 << 20, 20 << 20],
        "16 MiB of blocks that were freed, and 12 MiB; then all but the weights"
    );
    assert_eq!((most, held, refused), (16 << 20, 8 << 20, Some((8 << 20, 8 << 20))));
    assert_eq!(held, (64 << 20) - free, "what the device itself says");
    let explained = file.explained();
    let text = explained.to_string();
    for said in [
        "; the driver's pool took up to 16.0 MiB from the device",
        "  Memory: the driver's pool grew ",
        ", 28.0 MiB, most for `weights` (8.0 MiB)",
        "  Memory: the driver's pool was trimmed 2 times, 20.0 MiB",
        "; the driver's pool held 8.0 MiB",
    ] {
        assert!(text.contains(said), "{said}: {text}");
    }
    assert!(!text.contains("the heap") && explained.devices[0].is_pool, "{text}");
    let mut trace = Vec::new();
    export_perfetto(&mut file.reader(), &mut trace).unwrap();
    let has = |words: &str| trace.windows(words.len()).any(|bytes| bytes == words.as_bytes());
    assert!(has("memory held by the driver's pool") && has("changes of the driver's pool"));
    assert!(!has("memory held by the heap") && !has("changes of the heap"));
}
