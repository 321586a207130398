//! Fleets with a device that fails: it is avoided, probed, and used again once it works.

use std::time::Duration;

use kiln::recovery::Phase;
use kiln::service::{DeviceFleet, DeviceService, RefusalReason, ServiceConfig, Started, Task, Upload};
use kiln::{DeviceRuntime, Result, RuntimeConfig, error::Misuse, memory::MemoryConfig};
use kiln_driver::{Code, Image};
use kiln_sim::{FaultPlan, Machine, Mode, PlannedFault};

use super::scenario::machine;
use crate::order::kernels::LIBRARY;

const LEN: usize = 32;

/// A runtime that asks the driver for every block, so that a plan can say which requests find no memory.
fn runtime(machine: &Machine, ordinal: u32) -> DeviceRuntime {
    let memory = MemoryConfig { stack: "direct".parse().unwrap(), ..MemoryConfig::default() };
    let config = RuntimeConfig { memory, ..RuntimeConfig::default() };
    DeviceRuntime::from_driver(machine.device(ordinal).unwrap(), config).unwrap()
}

fn fleet_over(machine: &Machine) -> DeviceFleet {
    fleet_of([runtime(machine, 0), runtime(machine, 1)])
}

/// A fleet whose services are ready.
fn fleet_of(runtimes: [DeviceRuntime; 2]) -> DeviceFleet {
    let services = runtimes.map(|gpu| DeviceService::over(gpu, ServiceConfig::default()).unwrap());
    for service in &services {
        service.watch().wait_until(|status| status.phase() == Phase::Ready, None);
    }
    DeviceFleet::new(services.into())
}

/// Two devices, of which the first finds no memory for so many requests. Its first allocation is the runtime's own.
fn first_without_memory(requests: u64) -> DeviceFleet {
    let plan = (2..2 + requests)
        .fold(FaultPlan::none(), |plan, allocation| plan.on(0, PlannedFault::OutOfMemory { allocation }));
    fleet_over(&machine(Mode::Seeded(1), plan))
}

fn upload(seed: u32) -> Upload<u32> {
    Upload::new((0..LEN as u32).map(|at| at ^ seed).collect())
}

#[test]
fn requests_succeed_beside_a_device_that_refuses_all_of_them() {
    let fleet = first_without_memory(10_000);
    for seed in 0..50 {
        let buffer = fleet.submit(upload(seed)).wait().expect("the other device has memory");
        assert_eq!(buffer.download().unwrap(), upload(seed).data);
    }
    let loads = fleet.loads();
    // The first request, and a probe after 16 and after 32 further ones.
    assert!(loads[0].failed == loads[0].served && (1..=3).contains(&loads[0].failed), "{loads:?}");
    assert_eq!((loads[1].served, loads[1].failed), (50, 0), "{loads:?}");
    assert_eq!((loads[0].mean_time, fleet.least_loaded()), (Duration::ZERO, Some(1)));
}

#[test]
fn a_burst_succeeds_beside_a_device_that_refuses_all_of_it() {
    let fleet = first_without_memory(10_000);
    let replies: Vec<_> = (0..200).map(|seed| fleet.submit(upload(seed))).collect();
    for reply in replies {
        reply.wait().expect("the other device has memory");
    }
    assert_eq!(fleet.loads()[1].served, 200);
}

#[test]
fn a_device_that_works_again_takes_its_share_again() {
    let fleet = first_without_memory(3);
    for seed in 0..300 {
        fleet.submit(upload(seed)).wait().unwrap();
    }
    let loads = fleet.loads();
    assert_eq!((loads[0].failed, loads[0].failing), (3, 0), "{loads:?}");
    assert!(loads[0].served > loads[0].failed, "{loads:?}");
}

#[test]
fn a_request_that_is_wrong_is_refused_once_and_says_nothing_about_its_device() {
    let fleet = first_without_memory(0);
    for _ in 0..3 {
        let wrong = Task::new(0_u32, |_, starts: &mut u32| -> Result<Started<()>> {
            *starts += 1;
            Err(Misuse::TooLarge { len: 1, element_bytes: 1 }.into())
        });
        let refused = fleet.submit(wrong).wait().unwrap_err();
        assert!(matches!(refused.why, RefusalReason::Device(_)) && refused.request.needs == 1, "{refused}");
    }
    assert!(fleet.loads().iter().all(|load| load.failed == 0), "{:?}", fleet.loads());
}

/// Launches one kernel.
fn launch() -> Task<(), impl FnMut(&DeviceRuntime, &mut ()) -> Result<Started<()>> + Send, ()> {
    Task::new((), |device: &DeviceRuntime, _: &mut ()| {
        let mix = device.load_kernel(&Image::HostKernels(LIBRARY), "mix", None)?;
        let (to, from) = (device.zeros::<u32>(LEN)?, device.zeros::<u32>(LEN)?);
        let mut launch = device.launch(&mix);
        launch.grid(1).block(1).read_write(&to).read(&from).value(LEN as u32).value(1_u32);
        // SAFETY: the kernel indexes both buffers below the length only.
        Ok(Started::after(unsafe { launch.submit() }?, ()))
    })
}

fn first_launch_faults() -> Machine {
    machine(
        Mode::Seeded(2),
        FaultPlan::none().on(0, PlannedFault::Sticky { launch: 1, code: Code::LAUNCH_FAILED }),
    )
}

#[test]
fn work_that_is_lost_with_its_device_is_told_and_everything_after_it_goes_elsewhere() {
    let fleet = fleet_over(&first_launch_faults());
    let refused = fleet.submit(launch()).wait().map_err(|refused| refused.why).unwrap_err();
    assert_eq!(refused.device().and_then(kiln::Error::code), Some(Code::LAUNCH_FAILED));
    for _ in 0..20 {
        fleet.submit(launch()).wait().unwrap();
    }
    assert_eq!(fleet.loads()[1].served, 20);
}

#[test]
fn a_device_that_is_not_ready_gets_nothing_while_another_one_is() {
    let machine = first_launch_faults();
    let lost = runtime(&machine, 0);
    let _control = lost.control_recovery().unwrap();
    let fleet = fleet_of([lost.clone(), runtime(&machine, 1)]);
    assert!(fleet.submit(launch()).wait().is_err());
    fleet.services()[0].watch().wait_until(|status| status.phase() == Phase::Lost, None);
    for _ in 0..20 {
        fleet.submit(launch()).wait().unwrap();
    }
    let loads = fleet.loads();
    assert_eq!((loads[0].queued, loads[0].served, loads[1].served), (0, 1, 20), "{loads:?}");
}
