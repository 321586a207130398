//! The three ways to run: lazily by a seed, all orders, and really at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use kiln_driver::{
    Access, Command, Driver, DriverExt, Image, LaunchCommand, MemoryRequest, StreamRequest, Timeout,
    WaitTarget,
};
use kiln_sim::{
    ExploreCoverage, FindingKind, HostKernel, KernelLibrary, Machine, MachineConfig, Mode, Schedule,
    SimChecks, explore,
};

use crate::correct::program;
use crate::rig::{Kernel, Rig, bytes_of, config, library};

fn threaded(workers: usize) -> MachineConfig {
    MachineConfig::threaded().mode(Mode::Threaded { workers }).library(library())
}

#[test]
fn nothing_runs_before_it_must() {
    let rig = Rig::seeded(0, 2);
    let x = rig.block(64);
    for _ in 0..10 {
        rig.write(0, x, 1);
    }
    assert!(rig.machine.timeline().is_empty());
    rig.sync(1);
    assert!(rig.machine.timeline().is_empty(), "a stream with nothing queued needs nothing");
    rig.sync(0);
    assert_eq!(rig.machine.timeline().len(), 10);
    rig.close();
}

#[test]
fn seeds_differ_in_what_else_runs_meanwhile() {
    let ran_besides: std::collections::BTreeSet<usize> = (0..100)
        .map(|seed| {
            let rig = Rig::seeded(seed, 2);
            for stream in [0, 0, 0, 1, 1, 1] {
                rig.launch(stream, Kernel::Spin, &[1]).unwrap();
            }
            rig.sync(0);
            let besides = rig.machine.timeline().len() - 3;
            rig.close();
            besides
        })
        .collect();
    assert_eq!(ran_besides.into_iter().collect::<Vec<_>>(), [0, 1, 2, 3]);
}

#[test]
fn exploring_sees_every_order_and_says_when_it_did_not() {
    let two_streams = |machine: &Machine| {
        let rig = Rig::new(machine, 2);
        for stream in [0, 0, 1, 1] {
            rig.launch(stream, Kernel::Spin, &[1]).unwrap();
        }
        rig.sync(0);
        rig.sync(1);
        let order: Vec<u32> = machine.timeline().iter().map(|span| span.stream.slot()).collect();
        rig.close();
        order
    };
    let seen = explore(config(0), 1_000, two_streams);
    assert_eq!(seen.verdict, ExploreCoverage::Complete);
    let orders: Vec<Vec<u32>> = seen.outcomes.keys().cloned().collect();
    assert_eq!(orders.len(), 6, "4 steps, 2 of each: {orders:?}");
    for (order, schedule) in &seen.outcomes {
        let again = Machine::new(config(0).mode(Mode::Scheduled(schedule.clone())));
        assert_eq!(two_streams(&again), *order, "schedule {schedule}");
    }
    let few = explore(config(0), 3, two_streams);
    assert_eq!((few.verdict, few.runs), (ExploreCoverage::LimitReached, 3));
}

#[test]
fn a_schedule_reads_back_from_its_text() {
    for text in ["", "0", "3.0.12"] {
        assert_eq!(text.parse::<Schedule>().unwrap().to_string(), text);
    }
    assert!("1..2".parse::<Schedule>().is_err() && "x".parse::<Schedule>().is_err());
}

#[test]
fn threads_give_the_right_bytes_under_load() {
    for workers in [1, 2, 4] {
        let machine = Machine::new(threaded(workers));
        std::thread::scope(|scope| {
            for thread in 0..3 {
                let machine = &machine;
                scope.spawn(move || {
                    for round in 0..10 {
                        program(machine, thread * 1_000 + round, 60);
                    }
                });
            }
        });
        let report = machine.finish();
        assert!(report.is_clean(), "{report}");
    }
}

#[test]
fn threads_find_races_too() {
    for _ in 0..20 {
        let machine = Machine::new(threaded(2));
        let rig = Rig::new(&machine, 2);
        let x = rig.block(64);
        rig.write(0, x, 1);
        rig.write(1, x, 2);
        rig.close();
        let report = machine.finish();
        assert_eq!(report.count(&FindingKind::WriteAfterWrite), 1, "{report}");
    }
}

#[test]
fn checks_that_are_off_find_nothing() {
    let machine = Machine::new(threaded(2).checks(SimChecks::off()));
    let rig = Rig::new(&machine, 2);
    let x = rig.direct(64);
    rig.bump(0, x);
    rig.bump(1, x);
    rig.sync(0);
    rig.sync(1);
    assert!(machine.finish().is_clean());
}

#[test]
fn streams_really_run_at_once_with_threads() {
    // Two kernels that each wait for the other to have begun: they end only if both run.
    let begun = Arc::new(AtomicU64::new(0));
    let shared = begun.clone();
    let meet = HostKernel::new("meet").body(move |_| {
        shared.fetch_add(1, Ordering::SeqCst);
        while shared.load(Ordering::SeqCst) < 2 {
            std::thread::yield_now();
        }
        Ok(())
    });
    let library = KernelLibrary::new("meeting").kernel(meet);
    let machine = Machine::new(threaded(2).library(library));
    let rig = Rig::new(&machine, 2);
    let module = rig.device.load(&Image::HostKernels("meeting")).unwrap();
    let function = rig.device.function(module, "meet").unwrap().id;
    let Command::Launch(launch) = rig.command(Kernel::Panic, &[]) else { unreachable!() };
    for stream in &rig.streams {
        rig.device.submit(*stream, &Command::Launch(LaunchCommand { function, ..launch })).unwrap();
    }
    rig.sync(0);
    rig.sync(1);
    assert_eq!(begun.load(Ordering::SeqCst), 2);
    rig.device.destroy(module.into()).unwrap();
    rig.close();
}

#[test]
fn many_host_threads_share_a_seeded_device() {
    for seed in 0..5 {
        let machine = Machine::new(config(seed));
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let machine = &machine;
                scope.spawn(move || program(machine, seed * 10 + thread, 40));
            }
        });
        let report = machine.finish();
        assert!(report.is_clean(), "{report}");
    }
}

#[test]
fn a_hang_is_seen_with_threads_as_well() {
    let rig = Rig::new(&Machine::new(threaded(2)), 2);
    rig.launch(0, Kernel::Endless, &[]).unwrap();
    rig.launch(1, Kernel::Spin, &[1]).unwrap();
    rig.sync(1);
    let minute = Timeout::After(Duration::from_secs(60));
    assert!(!rig.device.wait(WaitTarget::Stream(rig.streams[0]), minute).unwrap().is_done());
    assert!(rig.device.synchronize(rig.streams[0]).unwrap_err().is_sticky());
}

#[test]
fn many_threads_of_one_kernel_share_its_view() {
    const BYTES: u64 = 1 << 20;
    let stripes = HostKernel::new("stripes").pointer(Access::ReadWrite).body(|launch| {
        let start = launch.address(0)?;
        let threads = launch.parallelism() as u64;
        let results: Vec<_> = std::thread::scope(|scope| {
            let work = |thread: u64| {
                move || {
                    let mut port = launch.port();
                    for at in (thread * 4..BYTES).step_by(threads as usize * 4) {
                        let value: u32 = port.load(start + at)?;
                        port.store(start + at, value + at as u32)?;
                    }
                    Ok(())
                }
            };
            let handles: Vec<_> = (0..threads).map(|thread| scope.spawn(work(thread))).collect();
            handles.into_iter().map(|handle| handle.join().unwrap()).collect()
        });
        results.into_iter().collect()
    });
    let library = KernelLibrary::new("stripes").kernel(stripes);
    let machine =
        Machine::new(MachineConfig::threaded().mode(Mode::Threaded { workers: 4 }).library(library));
    let device = machine.device(0).unwrap();
    let module = device.load(&Image::HostKernels("stripes")).unwrap();
    let function = device.function(module, "stripes").unwrap().id;
    let stream = device.create_stream(StreamRequest::New { priority: 0 }).unwrap();
    let memory = device.allocate(MemoryRequest::Direct { bytes: BYTES }).unwrap();
    let host = device.allocate_host(BYTES).unwrap();
    device.fill(stream, memory.id.into(), 0, BYTES).unwrap();
    let rig = Rig::new(&Machine::new(config(0)), 0);
    let arguments = memory.address.0.to_le_bytes();
    let Command::Launch(launch) = rig.command(Kernel::Panic, &arguments) else { unreachable!() };
    device.submit(stream, &Command::Launch(LaunchCommand { function, ..launch })).unwrap();
    device.download(stream, memory.id.into(), &host, BYTES).unwrap();
    device.synchronize(stream).unwrap();
    let bytes = bytes_of(&host);
    let values = bytes.chunks_exact(4).map(|word| u32::from_le_bytes(word.try_into().unwrap()));
    assert!(values.enumerate().all(|(at, value)| value as usize == 4 * at));
    assert!(machine.findings().is_empty());
}
