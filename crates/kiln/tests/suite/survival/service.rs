//! Services: one reply for each request, whatever happens, with the request inside if it was refused.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Barrier};
use std::time::Duration;

use kiln::probe::CudaAbsence;
use kiln::recovery::Phase;
use kiln::service::{
    DeviceFleet, DeviceService, Load, Readback, RefusalReason, Refused, Reply, Request, Restart,
    ServiceConfig, Started, Task, Upload,
};
use kiln::{DeviceRuntime, Error, GpuRef, Result, probe::Absence};
use kiln_driver::{Code, Image};
use kiln_sim::{FaultPlan, HostKernel, KernelLibrary, Machine, MachineConfig, Mode, PlannedFault};

use super::executor::block_on;
use super::scenario::{machine, runtime};
use crate::order::kernels::{LIBRARY, mixed};

const LEN: usize = 32;

/// Uploads, runs one kernel, and reads back. Its data comes back if anything goes wrong.
struct Mix {
    data: Vec<u32>,
}

impl Request for Mix {
    type Output = Vec<u32>;

    fn start(&mut self, device: &DeviceRuntime) -> Result<Started<Vec<u32>>> {
        let mix = device.load_kernel(&Image::HostKernels(LIBRARY), "mix", None)?;
        let buffer = device.upload(&self.data)?;
        let other = device.upload(&self.data)?;
        let mut launch = device.launch(&mix);
        launch.grid(1).block(1);
        launch.read_write(&buffer).read(&other).value(self.data.len() as u32).value(3_u32);
        // SAFETY: the kernel indexes both buffers below the length only.
        unsafe { launch.submit() }?;
        let mut pinned = device.pinned_uninit(self.data.len())?;
        let ticket = pinned.copy_from(&buffer)?;
        Ok(Started::then(ticket, move || Ok(pinned.read()?.to_vec())))
    }
}

fn data(seed: u32) -> Vec<u32> {
    (0..LEN as u32).map(|at| at ^ seed).collect()
}

fn mixed_data(seed: u32) -> Vec<u32> {
    data(seed).iter().map(|value| mixed(*value, *value, 3)).collect()
}

fn service_on(machine: &Machine, config: ServiceConfig) -> DeviceService {
    DeviceService::over(runtime(machine, 0, Duration::ZERO).unwrap(), config).unwrap()
}

fn good(seed: u64) -> Machine {
    machine(Mode::Seeded(seed), FaultPlan::none())
}

/// A request that holds the service's thread until the barrier opens.
fn holding(gate: &Arc<Barrier>) -> impl Request<Output = ()> {
    Task::new(gate.clone(), |_, gate: &mut Arc<Barrier>| {
        gate.wait();
        Ok(Started::now(()))
    })
}

#[test]
fn requests_overlap_and_each_gets_its_own_output() {
    for mode in [Mode::Seeded(3), Mode::Threaded { workers: 2 }] {
        let machine = machine(mode, FaultPlan::none());
        let service = service_on(&machine, ServiceConfig::default());
        let replies: Vec<_> = (0..40).map(|seed| service.submit(Mix { data: data(seed) })).collect();
        for (seed, reply) in (0..).zip(replies) {
            assert_eq!(block_on(reply).unwrap(), mixed_data(seed));
        }
        let buffer: GpuRef<u32> = service.submit(Upload::new(data(7))).wait().unwrap();
        assert_eq!(service.submit(Readback::new(buffer)).wait().unwrap(), data(7));
        let Load { queued, in_flight, served, failed, failing, mean_time } = service.load();
        assert_eq!((queued, in_flight, served, failed, failing), (0, 0, 42, 0, 0));
        assert!(mean_time > Duration::ZERO);
        assert!(service.shutdown(Duration::from_secs(60)));
        drop(service);
        let report = machine.finish();
        assert!(report.is_clean(), "{report}");
    }
}

#[test]
fn a_full_queue_refuses_with_the_buffers() {
    let machine = good(1);
    let service = service_on(&machine, ServiceConfig { max_queued: 3, ..ServiceConfig::default() });
    let gate = Arc::new(Barrier::new(2));
    let held = service.submit(holding(&gate));
    while service.load().in_flight == 0 {
        std::thread::yield_now();
    }
    let replies: Vec<Reply<Mix>> = (0..5).map(|seed| service.submit(Mix { data: data(seed) })).collect();
    assert_eq!(service.load().queued, 3);
    gate.wait();
    held.wait().unwrap();
    for (seed, reply) in (0..).zip(replies) {
        match reply.wait() {
            Ok(output) => assert!(seed < 3 && output == mixed_data(seed)),
            Err(Refused { why, request }) => {
                assert!(matches!(why, RefusalReason::Full { limit: 3 }) && why.is_retryable(), "{why}");
                assert!(seed >= 3 && request.data == data(seed));
            }
        }
    }
}

#[test]
fn a_fault_at_every_launch_is_answered_once_with_cause_and_buffers() {
    const REQUESTS: u32 = 8;
    for launch in 1..=u64::from(REQUESTS) {
        for seed in 0..3 {
            let code = Code::ILLEGAL_ADDRESS;
            let plan = FaultPlan::none().on(0, PlannedFault::Sticky { launch, code });
            let machine = machine(Mode::Seeded(seed), plan);
            let service =
                service_on(&machine, ServiceConfig { max_in_flight: 3, ..ServiceConfig::default() });
            let replies: Vec<_> =
                (0..REQUESTS).map(|seed| service.submit(Mix { data: data(seed) })).collect();
            let mut failed = 0;
            for (seed, reply) in (0..).zip(replies) {
                match reply.wait() {
                    Ok(output) => assert_eq!(output, mixed_data(seed)),
                    Err(Refused { why, request }) => {
                        assert_eq!(why.device().and_then(Error::code), Some(code), "{why}");
                        assert_eq!(request.data, data(seed));
                        failed += 1;
                    }
                }
            }
            assert!(failed > 0, "launch {launch} seed {seed}");
            let end = service.watch().wait_until(|status| status.phase() == Phase::Failed, None);
            assert_eq!(end.state.cause().unwrap().code(), Some(code));
            // From here on nothing waits.
            let refused = service.submit(Upload::new(data(9))).wait().unwrap_err();
            assert_eq!((refused.why.device().unwrap().code(), refused.request.data), (Some(code), data(9)));
        }
    }
}

/// A service whose device fails at its first launch so many times, and then works.
fn flaky(failures: u64, restart: Restart) -> (DeviceService, Arc<AtomicU64>) {
    let made = Arc::<AtomicU64>::default();
    let count = made.clone();
    let config = ServiceConfig { restart, max_in_flight: 1, ..ServiceConfig::default() };
    let make = move || {
        let code = Code::LAUNCH_FAILED;
        let plan = match count.fetch_add(1, Ordering::SeqCst) {
            attempt if attempt < failures => {
                FaultPlan::none().on(0, PlannedFault::Sticky { launch: 1, code })
            }
            _ => FaultPlan::none(),
        };
        runtime(&machine(Mode::Seeded(1), plan), 0, Duration::ZERO)
    };
    (DeviceService::start(config, make).unwrap(), made)
}

fn quick(limit: usize) -> Restart {
    Restart { pause: Duration::ZERO, ..Restart::times(limit) }
}

#[test]
fn requests_are_stashed_while_the_device_is_rebuilt() {
    let (service, made) = flaky(2, quick(5));
    let replies: Vec<_> = (0..10).map(|seed| service.submit(Mix { data: data(seed) })).collect();
    let mut failed = 0;
    for (seed, reply) in (0..).zip(replies) {
        match reply.wait() {
            Ok(output) => assert_eq!(output, mixed_data(seed)),
            // Only what was in flight when the device was lost.
            Err(refused) => failed += usize::from(refused.request.data == data(seed)),
        }
    }
    assert_eq!((failed, made.load(Ordering::SeqCst)), (2, 3));
    assert_eq!((service.status().phase(), service.status().generation.0), (Phase::Ready, 2));
}

#[test]
fn restarts_are_limited_and_then_every_waiter_is_told() {
    let (service, made) = flaky(u64::MAX, quick(2));
    let replies: Vec<_> = (0..10).map(|seed| service.submit(Mix { data: data(seed) })).collect();
    for (seed, reply) in (0..).zip(replies) {
        let refused = reply.wait().map(|_| ()).unwrap_err();
        assert_eq!(refused.why.device().and_then(Error::code), Some(Code::LAUNCH_FAILED));
        assert_eq!(refused.request.data, data(seed));
    }
    service.watch().wait_until(|status| status.phase() == Phase::Failed, None);
    assert_eq!(made.load(Ordering::SeqCst), 3, "once, and twice again");
}

#[test]
fn a_device_that_is_not_there_is_said_to_be_absent() {
    let make = || Err(Error::new(Absence::from(CudaAbsence::NoDevice)));
    let service = DeviceService::start(ServiceConfig::default(), make).unwrap();
    service.watch().wait_until(|status| status.phase() == Phase::Failed, None);
    let refused = service.submit(Upload::new(data(1))).wait().unwrap_err();
    assert!(refused.why.device().unwrap().is_absence(), "{refused}");
    assert_eq!(refused.request.data, data(1));
}

#[test]
fn a_request_that_panics_harms_no_other() {
    let machine = good(4);
    let service = service_on(&machine, ServiceConfig::default());
    let broken = Task::new(data(3), |_, _| -> Result<Started<()>> { panic!("planned") });
    let refused = service.submit(broken).wait().unwrap_err();
    assert!(matches!(&refused.why, RefusalReason::Panicked { message } if message == "planned"), "{refused}");
    assert_eq!(refused.request.needs, data(3));
    assert_eq!(service.submit(Mix { data: data(1) }).wait().unwrap(), mixed_data(1));
}

#[test]
fn shutting_down_deals_with_what_waits_and_refuses_what_comes() {
    let machine = good(5);
    let service = service_on(&machine, ServiceConfig { max_in_flight: 2, ..ServiceConfig::default() });
    let replies: Vec<_> = (0..20).map(|seed| service.submit(Mix { data: data(seed) })).collect();
    assert!(service.shutdown(Duration::from_secs(60)));
    for (seed, reply) in (0..).zip(replies) {
        assert_eq!(reply.wait().unwrap(), mixed_data(seed));
    }
    let refused = service.submit(Mix { data: data(1) }).wait().map(|_| ()).unwrap_err();
    assert!(matches!(refused.why, RefusalReason::Closed));
    assert_eq!((refused.request.data, service.status().phase()), (data(1), Phase::Stopped));
}

#[test]
fn a_deadline_sends_everything_back_also_what_the_device_still_runs() {
    let gate = Arc::new(Barrier::new(2));
    let inside = gate.clone();
    let kernel = HostKernel::new("gate").body(move |_| {
        inside.wait();
        Ok(())
    });
    let mode = Mode::Threaded { workers: 1 };
    let config = MachineConfig::seeded(0).mode(mode).library(KernelLibrary::new("gates").kernel(kernel));
    let machine = Machine::new(config);
    let gpu = runtime(&machine, 0, Duration::ZERO).unwrap();
    let config = ServiceConfig { max_in_flight: 1, ..ServiceConfig::default() };
    let service = DeviceService::over(gpu.clone(), config).unwrap();
    let running = service.submit(Task::new(data(1), |device, _| {
        let kernel = device.load_kernel(&Image::HostKernels("gates"), "gate", None)?;
        // SAFETY: the kernel takes nothing and touches nothing.
        let ticket = unsafe { device.launch(&kernel).grid(1).block(1).submit() }?;
        Ok(Started::after(ticket, ()))
    }));
    let waiting: Vec<_> = (0..5).map(|seed| service.submit(Upload::new(data(seed)))).collect();
    while service.load().in_flight == 0 {
        std::thread::yield_now();
    }
    assert!(!service.shutdown(Duration::ZERO), "not everything was dealt with");
    let refused = running.wait().unwrap_err();
    assert!(matches!(refused.why, RefusalReason::Closed) && refused.request.needs == data(1), "{refused}");
    for (seed, reply) in (0..).zip(waiting) {
        let refused = reply.wait().unwrap_err();
        assert!(matches!(refused.why, RefusalReason::Closed) && refused.request.data == data(seed));
    }
    gate.wait();
    gpu.synchronize().unwrap();
}

#[test]
fn dropping_a_service_answers_every_request() {
    let machine = good(7);
    let service = service_on(&machine, ServiceConfig::default());
    let replies: Vec<_> = (0..10).map(|seed| service.submit(Mix { data: data(seed) })).collect();
    drop(service);
    for (seed, reply) in (0..).zip(replies) {
        assert_eq!(
            reply.wait().unwrap(),
            mixed_data(seed),
            "a service that is dropped deals with what it has"
        );
    }
}

#[test]
fn a_fleet_sends_work_where_it_is_done_first_and_around_a_failed_device() {
    let plan = FaultPlan::none().on(0, PlannedFault::SlowCopies { factor: 1000 });
    let machine = machine(Mode::Seeded(1), plan);
    let service = |ordinal| {
        let gpu = runtime(&machine, ordinal, Duration::ZERO).unwrap();
        DeviceService::over(gpu, ServiceConfig::default()).unwrap()
    };
    let services = vec![service(0), service(1)];
    // A service whose thread has not started yet comes after all others, however slow those are.
    for service in &services {
        service.watch().wait_until(|status| status.phase() == Phase::Ready, None);
    }
    let fleet = DeviceFleet::new(services);
    // One after the other, so that only what was measured decides: the first request goes to the first device, which is slow.
    for seed in 0..40 {
        assert_eq!(fleet.submit(Mix { data: data(seed) }).wait().unwrap(), mixed_data(seed));
    }
    let loads = fleet.loads();
    assert_eq!((loads[0].served, loads[1].served), (1, 39), "{loads:?}");
    assert!(loads[0].mean_time > loads[1].mean_time, "{loads:?}");
    assert_eq!(fleet.least_loaded(), Some(1));
    assert!(fleet.services()[1].shutdown(Duration::from_secs(60)));
    assert_eq!(fleet.least_loaded(), Some(0), "the slow one is better than none");
    assert_eq!(fleet.submit(Mix { data: data(1) }).wait().unwrap(), mixed_data(1));
    assert!(fleet.shutdown(Duration::from_secs(60)));
    assert_eq!(fleet.least_loaded(), None);
    let refused = fleet.submit(Mix { data: data(2) }).wait().map(|_| ()).unwrap_err();
    assert!(matches!(refused.why, RefusalReason::Closed) && refused.request.data == data(2));
}
