//! Work that a recording does not have: what was submitted before it began; and what waits are for that no work wrote.

use kiln::DeviceRuntime;
use kiln::trace::{TraceEvent, WaitReason};

use crate::Recorded;

#[test]
fn a_device_that_works_when_the_recording_begins_is_not_called_idle() {
    for (seed, is_synchronized) in [(1, false), (2, false), (1, true)] {
        let file = Recorded::new();
        let gpu = DeviceRuntime::simulated(seed).unwrap();
        let (busy, other) = (gpu.stream().unwrap(), gpu.stream().unwrap());
        let large = gpu.allocate_on::<u32>(&busy, 1 << 22).unwrap();
        let (from, small) =
            (gpu.allocate_on(&busy, 16).unwrap(), gpu.allocate_on::<u32>(&other, 16).unwrap());
        gpu.synchronize().unwrap();
        for value in 0..4 {
            large.fill_on(&busy, value).unwrap();
        }
        from.fill_on(&busy, 7).unwrap();
        if is_synchronized {
            gpu.synchronize().unwrap();
        }
        gpu.trace(&file).unwrap();
        // It waits for the fills, which are not in the recording.
        small.fill_on(&other, 1).unwrap();
        small.copy_from_on(&other, &from).unwrap();
        gpu.synchronize().unwrap();
        drop((large, from, small, busy, other, gpu));
        let mut earlier = Vec::new();
        file.each(|event| {
            if let TraceEvent::Earlier(work) = event {
                earlier.push(work.until_ns.is_some());
            }
        });
        let explained = file.explained();
        let [device] = &*explained.devices else { panic!("{explained}") };
        let idle = device.idle.iter().map(|idle| idle.ns).sum::<u64>();
        if is_synchronized {
            assert_eq!((earlier.len(), device.earlier_ns), (0, 0), "{explained}");
            continue;
        }
        assert_eq!(earlier, [false, true], "{explained}");
        assert!(device.earlier_ns > 10 * idle.max(1), "{idle} ns: {explained}");
        assert!(explained.to_string().contains("submitted before the recording began"), "{explained}");
    }
}

#[test]
fn a_recording_begins_without_a_wait_for_work_of_the_main_stream() {
    for seed in 1..5 {
        let file = Recorded::new();
        let gpu = DeviceRuntime::simulated(seed).unwrap();
        let large = gpu.zeros::<u32>(1 << 22).unwrap();
        gpu.synchronize().unwrap();
        let clock = || gpu.driver().clock().now();
        let (before, mut last) = (clock(), None);
        for value in 0..4 {
            last = Some(large.fill(value).unwrap());
        }
        gpu.trace(&file).unwrap();
        let begun = clock() - before;
        assert!(!last.as_ref().unwrap().is_done().unwrap(), "seed {seed}: it waited");
        large.fill(9).unwrap();
        gpu.synchronize().unwrap();
        let all = clock() - before;
        assert!(begun < all / 4, "seed {seed}: {begun:?} of {all:?}");
        drop((last, large, gpu));
        // What was queued is marked, with its end; what came later has its times, behind it.
        let (mut earlier, mut begins) = (Vec::new(), Vec::new());
        file.each(|event| match event {
            TraceEvent::Earlier(work) => earlier.push((work.stamp.number, work.until_ns)),
            TraceEvent::Submission(work) => begins.push(work.device.unwrap().begin_ns),
            _ => {}
        });
        let [(first, None), (again, Some(until))] = earlier[..] else { panic!("{earlier:?}") };
        assert_eq!((first, begins.len()), (again, 1));
        assert!(begins[0] >= until && until > 0, "{begins:?} after {until}");
        let total = u64::try_from((all - begun).as_nanos()).unwrap();
        assert!(begins[0] < total, "the clock of the recording begins with it: {begins:?} in {total}");
    }
}

#[test]
fn a_wait_for_where_a_block_was_allocated_is_no_write() {
    let file = Recorded::new();
    let gpu = DeviceRuntime::simulated(1).unwrap();
    gpu.trace(&file).unwrap();
    let other = gpu.stream().unwrap();
    let early = gpu.zeros::<u32>(1 << 20).unwrap();
    early.fill(1).unwrap();
    let fresh = gpu.allocate_on::<u32>(gpu.main_stream(), 16).unwrap();
    fresh.fill_on(&other, 2).unwrap();
    // Here it waits for a write.
    fresh.fill(3).unwrap();
    gpu.synchronize().unwrap();
    drop((early, fresh, other, gpu));
    let mut reasons = Vec::new();
    file.each(|event| {
        if let TraceEvent::StreamWait(wait) = event {
            reasons.push(wait.reason);
        }
    });
    assert_eq!(reasons, [WaitReason::Allocation, WaitReason::WriteAfterWrite]);
}

#[test]
fn a_simulated_device_far_behind_the_host_has_the_times_of_its_work() {
    let file = Recorded::new();
    let gpu = DeviceRuntime::simulated(1).unwrap();
    gpu.trace(&file).unwrap();
    let buffer = gpu.zeros::<u32>(64).unwrap();
    for value in 0..5_000 {
        buffer.fill(value).unwrap();
    }
    gpu.synchronize().unwrap();
    drop((buffer, gpu));
    let explained = file.explained();
    assert_eq!(explained.devices[0].untimed_submissions, 0, "{explained}");
}
