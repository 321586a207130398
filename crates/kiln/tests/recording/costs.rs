//! What a recording costs a submission: calls of the driver, memory from the heap, and waits of the thread. A library stands in for the
//! driver, and counts.

use std::collections::BTreeMap;

use kiln::telemetry::DeviceTimes;
use kiln::{DeviceRuntime, GpuRef};

use crate::Recorded;
use crate::counted_allocations::allocations;
use crate::machine::{Machine, log};

const SUBMISSIONS: u32 = 1000;

/// Fills a buffer on two streams by turns, so that they wait for each other.
fn submit(buffer: &GpuRef<u32>, gpu: &DeviceRuntime, other: &kiln::Stream) {
    for value in 0..SUBMISSIONS {
        let stream = if value / 10 % 2 == 0 { gpu.main_stream() } else { other };
        buffer.fill_on(stream, value + 1).unwrap();
    }
}

/// How often each call of the driver was made by some work.
fn called(work: impl FnOnce()) -> BTreeMap<String, usize> {
    let before = log().len();
    work();
    let mut counts = BTreeMap::new();
    for line in log().into_iter().skip(before) {
        let name = line.split(' ').nth(1).unwrap_or_default().to_owned();
        *counts.entry(name).or_default() += 1;
    }
    counts
}

/// How often this thread has waited for anything so far.
fn waits() -> u64 {
    let status = std::fs::read_to_string("/proc/thread-self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
    line.unwrap().trim().parse().unwrap()
}

on_machine! {
    fn a_recorded_submission_makes_the_same_calls_of_the_driver() on Machine::fake() => {
        let (file, gpu) = (Recorded::new(), DeviceRuntime::cuda(0).unwrap());
        let (buffer, other) = (gpu.zeros::<u32>(64).unwrap(), gpu.stream().unwrap());
        let run = || submit(&buffer, gpu, &other);
        // Events are made with the first.
        run();
        gpu.synchronize().unwrap();
        let without = called(run);
        gpu.synchronize().unwrap();
        gpu.trace(&file).unwrap();
        let with = called(run);
        assert!(without.values().sum::<usize>() >= SUBMISSIONS as usize, "{without:?}");
        assert_eq!(with, without);
        assert_eq!(gpu.flush_trace().unwrap().dropped, 0);
    }

    fn events_around_every_nth_submission_are_two_calls_for_each_of_these() on Machine::fake() => {
        let (file, gpu) = (Recorded::new(), DeviceRuntime::cuda(0).unwrap());
        let buffer = gpu.zeros::<u32>(64).unwrap();
        let run = || {
            for value in 0..SUBMISSIONS {
                buffer.fill_on(gpu.main_stream(), value + 1).unwrap();
            }
        };
        run();
        let records = |counts: BTreeMap<String, usize>| counts.get("cuEventRecord").copied().unwrap_or_default();
        let without = records(called(run));
        gpu.trace_with(&file, DeviceTimes::Events { every: 10 }).unwrap();
        assert_eq!(records(called(run)), without + 2 * SUBMISSIONS as usize / 10);
    }

    fn a_recorded_submission_takes_nothing_from_the_heap_and_waits_for_no_lock() on Machine::fake().quiet() => {
        let (file, gpu) = (Recorded::new(), DeviceRuntime::cuda(0).unwrap());
        let (buffer, other) = (gpu.zeros::<u32>(64).unwrap(), gpu.stream().unwrap());
        gpu.trace(&file).unwrap();
        let run = || submit(&buffer, gpu, &other);
        // Lanes and events are made with the first.
        run();
        assert_eq!(allocations(run), 0);
        // The thread that writes the file works meanwhile. Where a page comes from the disk, a thread waits for that: not every time.
        let waited = |_| {
            let before = waits();
            (0..8).for_each(|_| run());
            waits() - before
        };
        let fewest = (0..20).map(waited).min();
        assert_eq!(fewest, Some(0), "a lock that the thread which writes the file has");
        drop(gpu.flush_trace());
    }
}
