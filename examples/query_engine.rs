//! A Datalog engine's device layer, on kiln: the calls it makes, in the order it makes them.
//!
//! Such an engine keeps relations in columns on the device and joins them with its kernels, which it queues itself on several
//! streams. It asks for one runtime per device, allocates through a stack of resources, tells the runtime which blocks its work uses,
//! and wants to know what is live. Each section is one of those conversations.
//!
//! `cargo run -p kiln --example query_engine` runs on the GPU where there is one, and on the simulated device otherwise.

#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use std::sync::Arc;

use kiln::driver::{Access, Command, Pattern};
use kiln::memory::layer::{Budgeted, Counted, TraceConfig, Traced};
use kiln::memory::{AllocTag, AllocationRequest, Budget, Heap, HeapConfig, MemoryResource};
use kiln::{DeviceRuntime, RuntimeConfig};

const ROWS: usize = 1_024;

type Outcome = Result<(), Box<dyn std::error::Error>>;

fn main() -> Outcome {
    // One runtime per device. A CUDA device is asked for by name; this engine can do with a simulated one.
    let shared = DeviceRuntime::cuda(0).or_else(|absent| {
        println!("no CUDA device 0: {absent}");
        DeviceRuntime::auto()
    })?;
    println!("shared: {shared:?}");

    // An owned one around a resource stack of the engine's own, verified to belong to the same device.
    let gpu = with_own_stack(shared)?;
    println!("owned:  {gpu:?}, memory: {}", gpu.memory());
    println!(
        "ordinal {}, {:?}, tracks block uses: {}",
        gpu.ordinal(),
        gpu.streams(),
        gpu.supports_block_use_tracking()
    );

    streams(&gpu)?;
    blocks(&gpu)?;
    one_use_at_a_time(&gpu)?;
    many_uses_at_once(&gpu)?;
    accounting(&gpu)
}

/// Budget over statistics over a log over the heap.
fn with_own_stack(shared: &DeviceRuntime) -> kiln::Result<DeviceRuntime> {
    DeviceRuntime::with_resource(shared.driver().clone(), RuntimeConfig::default(), |driver, order| {
        let heap = if driver.info().features.pages {
            Heap::over_pages(driver.clone(), order, HeapConfig::default())?
        } else {
            Heap::over_chunks(driver.clone(), order, HeapConfig::default())
        };
        let logged = Traced::new(TraceConfig::default(), heap);
        let budget = Budget::new("engine", 64 << 20);
        Ok(Arc::new(Budgeted::new(budget, Counted::new(logged))) as Arc<dyn MemoryResource>)
    })
}

/// Leases come from a pool with a cap and go back by themselves; there is no silent default stream.
fn streams(gpu: &DeviceRuntime) -> Outcome {
    let urgent = gpu.info().limits.priorities.highest;
    let (scan, join) = (gpu.streams().lease()?, gpu.streams().lease_with_priority(urgent)?);
    println!("leased {scan:?} and {join:?} (priority {})", join.priority());
    let all: Result<Vec<_>, _> = (0..gpu.streams().limit()).map(|_| gpu.streams().lease()).collect();
    println!("past the cap: {}", all.err().ok_or("two are leased already")?);
    Ok(())
}

/// The resource itself: blocks out, blocks back, and a foreign block refused with nothing changed.
fn blocks(gpu: &DeviceRuntime) -> Outcome {
    let stack = gpu.memory();
    let stream = gpu.main_stream();
    let request = AllocationRequest::new(4_096, stream.memory_ref()).tag(AllocTag::new("index")?);
    let block = stack.allocate(&request)?;
    println!(
        "{:?}: {} bytes, tag {}, {} outstanding",
        block.id(),
        block.bytes(),
        block.tag().name(),
        gpu.bytes_outstanding()
    );
    let other = Heap::over_chunks(
        gpu.driver().clone(),
        Arc::new(kiln::memory::DriverOrder::new(gpu.driver().clone())),
        HeapConfig::default(),
    );
    let refused =
        other.deallocate(block, &kiln::memory::Stamps::NONE).err().ok_or("the block is not its own")?;
    println!("refused: {}", refused.error);
    stack.deallocate(refused.block, &kiln::memory::Stamps::NONE)?;

    // A block that is tracked is a buffer like any other, and can be used by its name.
    let index = gpu.track_block::<u32>(stack.allocate(&request)?)?;
    let name = index.block_id();
    let prepared = gpu.prepare_block_use_by_id(stream, &[(name, Access::Write)])?;
    let to = index.place().ok_or("the block has bytes")?;
    let fill = Command::Fill { to, pattern: Pattern::U32(3), count: index.len() as u64 };
    gpu.driver().submit(prepared.stream(), &fill)?;
    prepared.finish()?;
    assert_eq!(index.download()?, vec![3; 1_024]);
    drop(index);
    println!(
        "refused: {}",
        gpu.record_block_use_by_id(stream, &[(name, Access::Read)]).err().ok_or("it is freed")?
    );
    gpu.reap_pending()?;
    Ok(())
}

/// Before work of the engine's own: what it waits for is queued, and the blocks are stamped. After it: finish.
fn one_use_at_a_time(gpu: &DeviceRuntime) -> Outcome {
    let (build, probe) = (gpu.streams().lease()?, gpu.streams().lease()?);
    let column = gpu.allocate_on::<u32>(&build, ROWS)?;

    // The first use overwrites what the allocation left there.
    let first = gpu.prepare_first_use(&build, &column, Access::Write)?;
    let fill = |value| {
        column.place().map(|to| Command::Fill { to, pattern: Pattern::U32(value), count: ROWS as u64 })
    };
    gpu.driver().submit(first.stream(), &fill(1).ok_or("the column has rows")?)?;
    gpu.finish_first_use(first)?;

    // Another stream reads it, and a third use writes it again: both waits are queued without being asked for.
    let read = gpu.prepare_block_use(&probe, &[column.used_as(Access::Read)])?;
    gpu.finish_block_use(read)?;
    let write = gpu.prepare_block_use(&build, &[column.used_as(Access::Write)])?;
    gpu.driver().submit(write.stream(), &fill(2).ok_or("the column has rows")?)?;
    let done = gpu.finish_block_use(write)?;
    done.wait()?;
    assert_eq!(column.download()?, vec![2; ROWS]);

    // Work that was queued and ordered elsewhere is recorded after the fact.
    gpu.record_block_use(&probe, &[column.used_as(Access::Write)])?;
    println!(
        "last written on stream {}; {} uses were left unfinished",
        column.last_write_stream().stream().map_or(0, kiln::order::StreamKey::index),
        gpu.unfinished_uses()
    );
    assert_eq!(column.last_write_stream(), kiln::buffer::LastWrite::Stream(probe.key()));
    Ok(())
}

/// All blocks of one launch: every refusal before anything is queued, then one step for all of them.
fn many_uses_at_once(gpu: &DeviceRuntime) -> Outcome {
    let stream = gpu.streams().lease()?;
    let (keys, values, result) = (gpu.zeros::<u32>(ROWS)?, gpu.zeros::<u32>(ROWS)?, gpu.zeros::<u32>(ROWS)?);
    let mut recorder = gpu.recorder(&stream);
    recorder.read(&keys).read(&values).write(&result).read(&result);
    println!("the recorder merged four uses to {}", recorder.len());
    let ready = recorder.preflight()?;
    let to = result.place().ok_or("the result has rows")?;
    gpu.driver()
        .submit(ready.stream(), &Command::Fill { to, pattern: Pattern::U32(7), count: ROWS as u64 })?;
    ready.commit()?;
    assert_eq!(result.download()?, vec![7; ROWS]);

    let (low, high) = (result.view(..600)?, result.view(500..)?);
    let mut overlapping = gpu.recorder(&stream);
    overlapping.write(&low).write(&high);
    println!("refused: {}", overlapping.preflight().err().ok_or("both write rows 500 to 600")?);
    Ok(())
}

/// Live and pending bytes apart, and an error under pressure that says what is in the way.
fn accounting(gpu: &DeviceRuntime) -> Outcome {
    let relation = gpu.allocate_tagged::<u8>(gpu.main_stream(), 48 << 20, AllocTag::new("relation")?)?;
    println!("{:?}", gpu.memory().accounting());
    let pressure = gpu.allocate::<u8>(32 << 20).err().ok_or("the budget is 64 MiB")?;
    assert!(pressure.is_oom());
    println!("under pressure: {pressure}");
    drop(relation);
    gpu.synchronize()?;
    gpu.reap_pending()?;
    let after = gpu.allocate::<u8>(32 << 20)?;
    println!("and after that was freed: {after:?}");
    Ok(())
}
