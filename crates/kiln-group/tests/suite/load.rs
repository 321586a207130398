//! Measured load: where work goes, and that a failing device does not look fast.

use std::time::Duration;

use kiln::group::{DeviceGroup, DeviceLoad, GroupError};
use kiln::memory::MemoryConfig;
use kiln::sim::{DeviceConfig, FaultPlan, Machine, MachineConfig, PlannedFault};
use kiln::{DeviceRuntime, RuntimeConfig, Ticket};

/// A group whose runtimes ask the driver for every block, so that a plan can say which requests find no memory.
fn group(faults: FaultPlan) -> DeviceGroup {
    let config = MachineConfig::seeded(1).device(DeviceConfig::default()).device(DeviceConfig::default());
    let machine = Machine::new(config.faults(faults));
    let memory = MemoryConfig { stack: "direct".parse().unwrap(), ..MemoryConfig::default() };
    let config = RuntimeConfig { memory, ..RuntimeConfig::default() };
    DeviceGroup::over([machine.device(0).unwrap(), machine.device(1).unwrap()], &config).unwrap()
}

fn fill(gpu: &DeviceRuntime) -> kiln::Result<((), Ticket)> {
    Ok(((), gpu.allocate::<u32>(100)?.fill(1)?))
}

/// The loads, once nothing is in flight.
fn settled(group: &DeviceGroup) -> Vec<DeviceLoad> {
    loop {
        let loads = group.loads();
        if loads.iter().all(|load| load.in_flight == 0) {
            return loads;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn work_is_spread_and_measured() {
    let group = group(FaultPlan::none());
    for _ in 0..40 {
        let (place, (), ticket) = group.submit(fill).unwrap();
        assert!(place < 2);
        ticket.wait().unwrap();
        settled(&group);
    }
    let loads = settled(&group);
    assert_eq!(loads.iter().map(|load| load.completed).sum::<u64>(), 40, "{loads:?}");
    assert!(loads.iter().all(|load| load.completed > 0 && load.failed == 0), "{loads:?}");
    assert!(loads.iter().all(|load| load.mean_time.is_some_and(|time| !time.is_zero())), "{loads:?}");
}

#[test]
fn a_busy_device_gets_less() {
    let group = group(FaultPlan::none());
    for _ in 0..2 {
        group.submit_on(0, fill).unwrap().1.wait().unwrap();
        group.submit_on(1, fill).unwrap().1.wait().unwrap();
    }
    settled(&group);
    // A device that took longer when it was measured gets its first piece later.
    let (mut queue, mut places) = (Vec::new(), [0; 2]);
    while places.contains(&0) && queue.len() < 1000 {
        let queued = group.submit(fill).unwrap();
        places[queued.0] += 1;
        queue.push(queued);
    }
    assert!(!places.contains(&0), "{places:?} {:?}", group.loads());
    queue.iter().for_each(|(_, _, ticket)| ticket.wait().unwrap());
    settled(&group);
}

#[test]
fn a_device_that_refuses_everything_is_avoided_and_never_measured() {
    let plan = (2..10_000)
        .fold(FaultPlan::none(), |plan, allocation| plan.on(0, PlannedFault::OutOfMemory { allocation }));
    let group = group(plan);
    for _ in 0..50 {
        let (place, (), ticket) = group.submit(fill).unwrap();
        assert_eq!(place, 1);
        ticket.wait().unwrap();
    }
    let loads = settled(&group);
    // The first piece of work, and probes.
    assert!((1..=4).contains(&loads[0].failed) && loads[0].failing == loads[0].failed, "{loads:?}");
    assert_eq!((loads[0].mean_time, loads[0].completed), (None, 0), "{loads:?}");
    assert_eq!((loads[1].completed, loads[1].failed, group.least_loaded()), (50, 0, Some(1)), "{loads:?}");
}

#[test]
fn a_device_that_works_again_gets_work_again() {
    let plan = (2..4)
        .fold(FaultPlan::none(), |plan, allocation| plan.on(0, PlannedFault::OutOfMemory { allocation }));
    let group = group(plan);
    // Which device gets work depends on how long the work took, and so on what else the host does.
    let works_again = |load: &DeviceLoad| load.failed == 2 && load.failing == 0;
    for _ in 0..10_000 {
        group.submit(fill).unwrap().2.wait().unwrap();
        if works_again(&settled(&group)[0]) {
            return;
        }
    }
    panic!("it gets no work: {:?}", group.loads());
}

#[test]
fn work_that_is_wrong_is_answered_once_and_says_nothing_about_the_device() {
    let group = group(FaultPlan::none());
    let mut calls = 0;
    let refused = group.submit(|gpu| {
        calls += 1;
        let buffer = gpu.zeros::<u32>(4)?;
        Ok(((), buffer.upload(&[1; 5])?))
    });
    assert!(matches!(refused, Err(GroupError::Device { .. })));
    assert_eq!(calls, 1);
    assert!(settled(&group).iter().all(|load| load.failed == 0));
    assert!(matches!(group.submit_on(2, fill), Err(GroupError::NoSuchDevice { index: 2, len: 2 })));
}

#[test]
fn a_group_without_a_device_that_is_ready_says_so() {
    let group = group(FaultPlan::none());
    for runtime in group.runtimes() {
        runtime.shutdown(Duration::from_secs(1)).unwrap();
    }
    assert_eq!(group.least_loaded(), None);
    assert!(matches!(group.submit(fill), Err(GroupError::NoneReady { len: 2 })));
}

#[test]
fn work_that_panics_is_no_longer_in_flight() {
    let group = group(FaultPlan::none());
    for _ in 0..3 {
        let work = |_: &DeviceRuntime| -> kiln::Result<((), Ticket)> {
            std::panic::resume_unwind(Box::new("this work is to end"))
        };
        let on_any = std::panic::AssertUnwindSafe(|| group.submit(work));
        assert!(std::panic::catch_unwind(on_any).is_err());
        let on_one = std::panic::AssertUnwindSafe(|| group.submit_on(0, work));
        assert!(std::panic::catch_unwind(on_one).is_err());
    }
    let loads = group.loads();
    assert!(loads.iter().all(|load| (load.in_flight, load.failed) == (0, 0)), "{loads:?}");
}
