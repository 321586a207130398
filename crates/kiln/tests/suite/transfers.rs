//! Transfers: in chunks by several threads, through memory that users fill themselves, and with nothing borrowed once a call returns.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use kiln::telemetry::{Count, Gauge};
use kiln::{
    DeviceRuntime, RuntimeConfig, Ticket,
    error::{ErrorKind, Misuse},
    memory::MemoryConfig,
    program::{Backend, Bindings, DispatchConfig, Program},
};
use kiln_driver::Driver;
use kiln_driver::call::{Call, CallKind};
use kiln_driver::layer::{Layer, Layered};
use kiln_sim::{DeviceConfig, Machine, MachineConfig};

/// Large enough for several threads, and no multiple of anything.
const LEN: usize = (16 << 20) + 12_345;

fn pattern(seed: usize, len: usize) -> Vec<u8> {
    (0..len).map(|at| (at.wrapping_mul(31) >> 3).wrapping_add(seed * 7) as u8).collect()
}

#[test]
fn large_transfers_arrive_whole_whatever_the_chunks_and_threads() {
    for (seed, (transfer_threads, chunk)) in
        [(1, 2 << 20), (3, 1 << 20), (8, 64 << 10), (2, 5_000_001)].into_iter().enumerate()
    {
        let machine = Machine::new(MachineConfig::seeded(seed as u64));
        let config =
            RuntimeConfig { transfer_threads, transfer_chunk_bytes: chunk, ..RuntimeConfig::default() };
        let gpu = DeviceRuntime::from_driver(machine.device(0).unwrap(), config).unwrap();
        let data = pattern(seed, LEN);
        let buffer = gpu.upload(&data).unwrap();
        assert!(buffer.download().unwrap() == data, "{transfer_threads} threads, chunks of {chunk}");
        // Into memory of the caller's that begins at no word, from a view that begins at no word.
        let mut into = vec![0; LEN];
        let view = buffer.view(3..LEN - 2).unwrap();
        view.download_into(&mut into[5..]).unwrap();
        assert!(into[5..] == data[3..LEN - 2] && into[..5] == [0; 5]);
        let chunks = LEN.div_ceil(chunk) as u64;
        let seen = gpu.telemetry().snapshot();
        assert_eq!((seen.count(Count::Uploads), seen.count(Count::UploadedBytes)), (chunks, LEN as u64));
        assert_eq!(seen.count(Count::Downloads), 2 * chunks);
        drop((view, buffer, gpu));
        assert!(machine.finish().is_clean());
    }
}

#[test]
fn chunks_of_no_size_are_of_the_smallest() {
    let machine = Machine::new(MachineConfig::seeded(5));
    let config = RuntimeConfig { transfer_chunk_bytes: 0, ..RuntimeConfig::default() };
    let gpu = DeviceRuntime::from_driver(machine.device(0).unwrap(), config).unwrap();
    let data = pattern(5, 200_000);
    assert!(gpu.upload(&data).unwrap().download().unwrap() == data);
}

#[test]
fn the_callers_bytes_are_free_when_an_upload_returns() {
    let machine = Machine::new(MachineConfig::seeded(6));
    let gpu = DeviceRuntime::from_driver(machine.device(0).unwrap(), RuntimeConfig::default()).unwrap();
    let buffer = gpu.zeros::<u8>(1 << 20).unwrap();
    let mut data = pattern(6, 1 << 20);
    let expected = data.clone();
    let ticket = buffer.upload(&data).unwrap();
    data.fill(0xff);
    drop(data);
    ticket.wait().unwrap();
    assert!(buffer.download().unwrap() == expected);
}

#[test]
fn a_pinned_buffer_knows_which_copies_are_under_way() {
    let machine = Machine::new(MachineConfig::seeded(7));
    let gpu = DeviceRuntime::from_driver(machine.device(0).unwrap(), RuntimeConfig::default()).unwrap();
    let (first, second) = (gpu.zeros::<u32>(4096).unwrap(), gpu.zeros::<u32>(4096).unwrap());
    let mut pinned = gpu.pinned::<u32>(4096).unwrap();
    pinned.write().unwrap().fill(1);
    pinned.copy_to(&first).unwrap();
    // Waits for the copy that reads it, or `first` would get some of these.
    pinned.write().unwrap().fill(2);
    pinned.copy_to(&second).unwrap();
    pinned.copy_from(&first).unwrap();
    assert_eq!(pinned.read().unwrap(), [1; 4096], "reading waits for the copy that writes it");
    assert_eq!(second.download().unwrap(), [2; 4096]);
    drop((first, second, pinned, gpu));
    assert!(machine.finish().is_clean());
}

#[test]
fn copies_and_fills_go_to_the_stream_that_is_named() {
    let machine = Machine::new(MachineConfig::seeded(12));
    {
        let gpu = DeviceRuntime::from_driver(machine.device(0).unwrap(), RuntimeConfig::default()).unwrap();
        let (buffer, stream) = (gpu.zeros::<u32>(64).unwrap(), gpu.stream().unwrap());
        let wide = gpu.zeros::<[u64; 3]>(10).unwrap();
        let mut pinned = gpu.pinned::<u32>(64).unwrap();
        pinned.write().unwrap().fill(5);
        let stamp = |ticket: Ticket| ticket.stamp().stream;
        assert_eq!(stamp(pinned.copy_to_on(&stream, &buffer).unwrap()), stream.key());
        assert_eq!(buffer.download().unwrap(), [5; 64]);
        assert_eq!(stamp(buffer.fill_on(&stream, 6).unwrap()), stream.key());
        assert_eq!(stamp(wide.fill_on(&stream, [7, 8, 9]).unwrap()), stream.key());
        assert_eq!(wide.download().unwrap(), [[7, 8, 9]; 10]);
        assert_eq!(stamp(pinned.copy_from_on(&stream, &buffer).unwrap()), stream.key());
        assert_eq!(pinned.read().unwrap(), [6; 64]);
        let none = gpu.zeros::<u32>(0).unwrap();
        let mut nothing = gpu.pinned::<u32>(0).unwrap();
        for ticket in [
            none.fill_on(&stream, 1),
            nothing.copy_to_on(&stream, &none),
            nothing.copy_from_on(&stream, &none),
            none.copy_from_on(&stream, &none.clone()),
        ] {
            assert!(ticket.unwrap().is_done().unwrap(), "nothing is done");
        }
        assert!(nothing.read().unwrap().is_empty() && nothing.write().unwrap().is_empty());
        assert!(pinned.copy_to(&none).is_err() && nothing.copy_from(&buffer).is_err());
    }
    let report = machine.finish();
    assert!(report.is_clean(), "{report}");
}

#[test]
fn a_wide_value_fills_a_buffer_with_little_of_the_host() {
    let machine = Machine::new(MachineConfig::seeded(8));
    {
        let gpu = DeviceRuntime::from_driver(machine.device(0).unwrap(), RuntimeConfig::default()).unwrap();
        // Three floats that are no multiple of anything, and no power of two of them.
        let value = [1.5_f64, -2.5, 3.5];
        for len in [0, 1, 2, 2_730, 2_731, 2_732, 5_461, 100_003] {
            let buffer = gpu.zeros::<[f64; 3]>(len + 2).unwrap();
            let before = gpu.telemetry().snapshot().count(Count::UploadedBytes);
            buffer.view(1..=len).unwrap().fill(value).unwrap();
            let uploaded = gpu.telemetry().snapshot().count(Count::UploadedBytes) - before;
            assert!(uploaded <= 64 << 10, "{len} elements took {uploaded} bytes of the host");
            let seen = buffer.download().unwrap();
            assert!(seen[1..=len].iter().all(|each| *each == value), "{len} elements");
            assert_eq!((seen[0], seen[len + 1]), ([0.0; 3], [0.0; 3]), "and nothing beside them");
        }
    }
    let report = machine.finish();
    assert!(report.is_clean(), "{report}");
}

#[test]
fn memory_is_trusted_again_once_a_copy_has_overwritten_it() {
    let gpu = DeviceRuntime::simulated(9).unwrap();
    let backend = Backend::over(gpu.clone());
    let text = "kernel stop(inout x: u32[4]) block(1) { x[0] = 1; trap(3); }";
    let stop = backend.compile(&Program::parse(text).unwrap()).unwrap();
    let (buffer, good) = (gpu.zeros::<u32>(4).unwrap(), gpu.zeros::<u32>(4).unwrap());
    let pinned = gpu.pinned::<u32>(4).unwrap();
    let config = DispatchConfig { grid: Some(1.into()), ..DispatchConfig::default() };
    let overwrite: [(&str, &dyn Fn() -> Ticket); 4] = [
        ("an upload", &|| buffer.upload(&[2; 4]).unwrap()),
        ("a fill", &|| buffer.fill(2).unwrap()),
        ("a copy", &|| buffer.copy_from(&good).unwrap()),
        ("a copy of pinned memory", &|| pinned.copy_to(&buffer).unwrap()),
    ];
    for (what, overwrite) in overwrite {
        let error = stop.dispatch_with(Bindings::new().resident("x", &buffer), &config).unwrap_err();
        assert!(!buffer.is_trusted(), "{error}");
        overwrite().wait().unwrap();
        assert!(buffer.is_trusted(), "{what}");
    }
}

#[test]
fn more_threads_than_a_host_has_are_as_many_as_there_are_chunks() {
    let machine = Machine::new(MachineConfig::seeded(10));
    let config = RuntimeConfig { transfer_threads: usize::MAX, ..RuntimeConfig::default() };
    let gpu = DeviceRuntime::from_driver(machine.device(0).unwrap(), config).unwrap();
    let data = pattern(10, LEN);
    let buffer = gpu.upload(&data).unwrap();
    assert!(buffer.download().unwrap() == data);
    drop((buffer, gpu));
    assert!(machine.finish().is_clean());
}

#[test]
fn more_elements_than_there_are_addresses_are_refused_everywhere() {
    let gpu = DeviceRuntime::simulated(11).unwrap();
    for len in [usize::MAX, usize::MAX / 2 + 1, usize::MAX / 4] {
        let device = gpu.allocate::<[u8; 3]>(len).map(drop).unwrap_err();
        let host = gpu.pinned::<[u8; 3]>(len).map(drop).unwrap_err();
        let bytes = gpu.pinned_uninit::<u8>(len).map(drop).unwrap_err();
        let is_refused = |error: &kiln::Error| {
            error.is_oom() || matches!(error.kind(), ErrorKind::Misuse(Misuse::TooLarge { .. }))
        };
        for error in [device, host, bytes] {
            assert!(is_refused(&error), "{len}: {error}");
        }
    }
    assert_eq!(gpu.upload(&[1_u8; 4]).unwrap().download().unwrap(), [1; 4]);
}

/// Refuses to answer whether work is done, while it is told to.
#[derive(Default)]
struct Silent(AtomicBool);

impl Layer for Silent {
    fn before(&self, _: &dyn Driver, call: &Call<'_>) -> kiln_driver::Result<()> {
        match call.kind() {
            CallKind::Wait if self.0.load(Ordering::Relaxed) => {
                Err(kiln_driver::Error::invalid("wait", "silent as planned", "ask again"))
            }
            _ => Ok(()),
        }
    }
}

#[test]
fn a_pinned_block_is_kept_when_the_device_does_not_say_whether_it_is_done_with_it() {
    let machine = Machine::new(MachineConfig::seeded(7));
    let driver = Arc::new(Layered::new(machine.device(0).unwrap(), Silent::default()));
    let gpu = DeviceRuntime::from_driver(driver.clone(), RuntimeConfig::default()).unwrap();
    let buffer = gpu.zeros::<u8>(1 << 20).unwrap();
    let pinned = gpu.pinned::<u8>(1 << 20).unwrap();
    // More than is done by the time it is asked about.
    for _ in 0..200 {
        pinned.copy_to(&buffer).unwrap();
    }
    drop(pinned);
    let idle = gpu.telemetry().snapshot().gauge(Gauge::IdlePinnedBytes);
    driver.layer().0.store(true, Ordering::Relaxed);
    let refused = gpu.pinned_uninit::<u8>(1 << 20).unwrap_err();
    assert!(refused.to_string().contains("silent as planned"), "{refused}");
    driver.layer().0.store(false, Ordering::Relaxed);
    assert_eq!(gpu.telemetry().snapshot().gauge(Gauge::IdlePinnedBytes), idle);
    gpu.synchronize().unwrap();
    let made = gpu.telemetry().snapshot().count(Count::PinnedMade);
    let again = gpu.pinned_uninit::<u8>(1 << 20).unwrap();
    let seen = gpu.telemetry().snapshot();
    assert_eq!((seen.count(Count::PinnedMade), seen.gauge(Gauge::IdlePinnedBytes)), (made, idle - (1 << 20)));
    drop((again, buffer, gpu, driver));
    assert!(machine.finish().is_clean());
}

#[test]
fn a_transfer_needs_no_thread_but_its_own() {
    const CHILD: &str = "KILN_TRANSFER_WITHOUT_THREADS";
    let name = "transfers::a_transfer_needs_no_thread_but_its_own";
    if std::env::var_os(CHILD).is_none() {
        let mut child = std::process::Command::new(std::env::current_exe().unwrap());
        // No system has room for such a stack, so that no thread can be started.
        child
            .args(["--exact", name, "--test-threads", "1"])
            .env(CHILD, "1")
            .env("RUST_MIN_STACK", "100000000000000");
        let output = child.output().unwrap();
        let text =
            String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && text.contains("1 passed"), "{text}");
        return;
    }
    assert!(std::thread::Builder::new().spawn(|| ()).is_err(), "threads can be started");
    let machine = Machine::new(MachineConfig::seeded(3));
    let config = RuntimeConfig { transfer_threads: 8, ..RuntimeConfig::default() };
    let gpu = DeviceRuntime::from_driver(machine.device(0).unwrap(), config).unwrap();
    let data = pattern(3, LEN);
    let buffer = gpu.upload(&data).unwrap();
    assert!(buffer.download().unwrap() == data);
    drop((buffer, gpu));
    assert!(machine.finish().is_clean());
}

#[test]
fn pinned_blocks_are_kept_up_to_a_limit_and_counted_when_they_are_given_out_again() {
    const MIB: usize = 1 << 20;
    for (limit_mib, kept) in [(0, 0), (3, 3), (128, 4)] {
        let machine = Machine::new(MachineConfig::seeded(9));
        let config =
            RuntimeConfig { max_staging_bytes: (limit_mib * MIB) as u64, ..RuntimeConfig::default() };
        let gpu = DeviceRuntime::from_driver(machine.device(0).unwrap(), config).unwrap();
        let take = || [(); 4].map(|()| gpu.pinned_uninit::<u8>(MIB).unwrap());
        let seen = || {
            let seen = gpu.telemetry().snapshot();
            let idle_mib = seen.gauge(Gauge::IdlePinnedBytes) >> 20;
            (seen.count(Count::PinnedMade), seen.count(Count::PinnedReused), idle_mib)
        };
        let blocks = take();
        assert_eq!(seen(), (4, 0, 0));
        drop(blocks);
        assert_eq!(seen(), (4, 0, kept));
        let blocks = take();
        assert_eq!(seen(), (8 - kept, kept, 0), "a limit of {limit_mib} MiB");
        drop((blocks, gpu));
        assert!(machine.finish().is_clean());
    }
}

#[test]
fn pinned_blocks_past_the_limit_live_until_their_copies_are_done() {
    const LEN: usize = 8 << 10;
    for seed in 1..9 {
        let machine = Machine::new(MachineConfig::seeded(seed));
        let config = RuntimeConfig { max_staging_bytes: LEN as u64, ..RuntimeConfig::default() };
        let gpu = DeviceRuntime::from_driver(machine.device(0).unwrap(), config).unwrap();
        let data: Vec<_> = (0..12).map(|at| pattern(at, LEN)).collect();
        // Nothing waits for the copies: more blocks come back than are kept.
        let buffers: Vec<_> = data.iter().map(|data| gpu.upload(data).unwrap()).collect();
        gpu.release_pinned();
        for (buffer, data) in buffers.iter().zip(&data) {
            assert!(buffer.download().unwrap() == *data, "seed {seed}");
        }
        // Now they are done: the next call frees what is past the limit, and one asks for the rest.
        gpu.synchronize().unwrap();
        gpu.release_pinned();
        assert_eq!(gpu.telemetry().snapshot().gauge(Gauge::IdlePinnedBytes), 0);
        drop((buffers, gpu));
        let report = machine.finish();
        assert!(report.is_clean(), "seed {seed}: {report:?}");
    }
}

/// More than any host has; a simulated device takes host memory only for what is written.
const TOO_LARGE_FOR_THE_HOST: usize = 8 << 40;

#[test]
fn a_download_that_the_host_has_no_memory_for_is_an_error_with_its_size() {
    // Where the system promises any memory, or no more than it has, nothing can be shown.
    if std::fs::read_to_string("/proc/sys/vm/overcommit_memory").is_ok_and(|mode| mode.trim() != "0") {
        let test = "a_download_that_the_host_has_no_memory_for_is_an_error_with_its_size";
        return crate::skip::note(test, "vm.overcommit_memory is not 0");
    }
    let device = DeviceConfig::with_memory(2 * TOO_LARGE_FOR_THE_HOST as u64);
    let machine = Machine::new(MachineConfig::seeded(4).device(device));
    let memory = MemoryConfig { stack: "direct".parse().unwrap(), ..MemoryConfig::default() };
    let config = RuntimeConfig { memory, ..RuntimeConfig::default() };
    let gpu = DeviceRuntime::from_driver(machine.device(0).unwrap(), config).unwrap();
    let buffer = gpu.allocate::<u8>(TOO_LARGE_FOR_THE_HOST).unwrap();
    let small = buffer.view(..4).unwrap();
    small.upload(b"kiln").unwrap();

    let before = gpu.telemetry().snapshot();
    let error = buffer.download().unwrap_err();
    let ErrorKind::HostMemory(missing) = error.kind() else { panic!("{error}") };
    assert_eq!(missing.bytes, TOO_LARGE_FOR_THE_HOST as u64);
    assert!(error.to_string().contains("8796093022208 bytes"), "{error}");
    assert!(error.is_oom() && error.is_retryable() && !error.is_sticky());
    assert_eq!(gpu.telemetry().snapshot().since(&before).count(Count::Downloads), 0, "nothing was queued");
    assert_eq!(small.download().unwrap(), b"kiln", "nothing is lost");
}
