//! Services whose device, maker or requests end at an unplanned time: still one reply for each request.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Barrier, mpsc};
use std::time::Duration;

use kiln::recovery::Phase;
use kiln::service::{DeviceService, Readback, RefusalReason, Restart, ServiceConfig, Started, Task, Upload};
use kiln::{DeviceRuntime, Result, buffer::Stale, error::ErrorKind};
use kiln_driver::Code;
use kiln_sim::{FaultPlan, Mode, PlannedFault};

use super::scenario::{machine, runtime};

fn quick(limit: usize) -> ServiceConfig {
    let restart = Restart { pause: Duration::ZERO, ..Restart::times(limit) };
    ServiceConfig { restart, ..ServiceConfig::default() }
}

#[test]
fn a_runtime_that_is_shut_down_under_a_service_leaves_no_request_waiting() {
    let machine = machine(Mode::Seeded(3), FaultPlan::none());
    let gpu = runtime(&machine, 0, Duration::ZERO).unwrap();
    let service = DeviceService::over(gpu.clone(), ServiceConfig::default()).unwrap();
    let (inside, go_on) = (Arc::new(Barrier::new(2)), Arc::new(Barrier::new(2)));
    let held = service.submit(Task::new((inside.clone(), go_on.clone()), |_, (inside, go_on)| {
        inside.wait();
        go_on.wait();
        Ok(Started::now(7))
    }));
    inside.wait();
    let waiting: Vec<_> = (0..5).map(|seed| service.submit(Upload::new(vec![seed; 8]))).collect();
    assert!(gpu.shutdown(Duration::from_secs(60)).unwrap());
    go_on.wait();
    assert_eq!(held.wait().unwrap(), 7, "what was begun ends");
    let is_told = |why: &RefusalReason| {
        matches!(why.device().map(kiln::Error::kind), Some(ErrorKind::Stale(Stale::ShuttingDown)))
    };
    for (seed, reply) in (0..).zip(waiting) {
        let refused = reply.wait().map(|_| ()).unwrap_err();
        assert!(is_told(&refused.why) && refused.request.data == vec![seed; 8], "{refused}");
    }
    service.watch().wait_until(|status| status.phase() == Phase::Failed, None);
    let late = service.submit(Upload::new(vec![9_u32])).wait().map(|_| ()).unwrap_err();
    assert!(is_told(&late.why) && late.request.data == [9], "{late}");
    assert!(service.shutdown(Duration::from_secs(60)));
}

#[test]
fn a_maker_that_panics_is_an_answer_and_can_be_tried_again() {
    let make = || -> Result<DeviceRuntime> { panic!("no device today") };
    let service = DeviceService::start(quick(1), make).unwrap();
    let refused = service.submit(Upload::new(vec![1_u8, 2])).wait().map(|_| ()).unwrap_err();
    assert!(refused.to_string().contains("no device today"), "{refused}");
    assert_eq!(refused.request.data, [1, 2]);

    let tries = Arc::<AtomicU64>::default();
    let counted = tries.clone();
    let service = DeviceService::start(quick(2), move || {
        assert!(counted.fetch_add(1, Ordering::SeqCst) > 0, "the first time");
        DeviceRuntime::simulated(1)
    });
    let service = service.unwrap();
    let buffer = service.submit(Upload::new(vec![3_u8])).wait().unwrap();
    assert_eq!(service.submit(Readback::new(buffer)).wait().unwrap(), [3]);
    assert_eq!(tries.load(Ordering::SeqCst), 2);
}

#[test]
fn a_request_may_panic_when_its_work_is_done() {
    let machine = machine(Mode::Seeded(4), FaultPlan::none());
    let service =
        DeviceService::over(runtime(&machine, 0, Duration::ZERO).unwrap(), ServiceConfig::default()).unwrap();
    let late = Task::new(vec![1_u32, 2], |device, data: &mut Vec<u32>| {
        let ticket = device.upload(data)?.fill(1)?;
        Ok(Started::<()>::then(ticket, || panic!("at the end")))
    });
    let refused = service.submit(late).wait().unwrap_err();
    assert!(
        matches!(&refused.why, RefusalReason::Panicked { message } if message == "at the end"),
        "{refused}"
    );
    assert_eq!(refused.request.needs, [1, 2]);
    assert!(service.submit(Upload::new(vec![1_u32])).wait().is_ok());
    assert_eq!((service.load().in_flight, service.load().served), (0, 2));
}

/// Many senders, a device that is lost again and again, and no sender hears twice, of another's data, or nothing.
#[test]
fn every_sender_gets_its_own_answer_while_devices_come_and_go() {
    const SENDERS: u64 = 4;
    const EACH: u64 = 25;
    let made = Arc::<AtomicU64>::default();
    let count = made.clone();
    let make = move || {
        let attempt = count.fetch_add(1, Ordering::SeqCst);
        // The device is lost after some calls, later each time, and lives in the end.
        let lost = PlannedFault::LostAtCall { call: 40 + 10 * attempt, code: Code::ILLEGAL_ADDRESS };
        let plan = if attempt < 6 { FaultPlan::none().on(0, lost) } else { FaultPlan::none() };
        runtime(&machine(Mode::Seeded(attempt), plan), 0, Duration::ZERO)
    };
    let service = DeviceService::start(quick(20), make).unwrap();
    let refused: u64 = std::thread::scope(|scope| {
        let send = |sender: u64| {
            let mut refused = 0;
            for at in 0..EACH {
                let data = vec![sender * EACH + at; 16];
                let read = Task::new(data.clone(), |device, data: &mut Vec<u64>| {
                    let buffer = device.upload(data)?;
                    let mut pinned = device.pinned_uninit(data.len())?;
                    let ticket = pinned.copy_from(&buffer)?;
                    Ok(Started::then(ticket, move || Ok(pinned.read()?.to_vec())))
                });
                match service.submit(read).wait() {
                    Ok(output) => assert_eq!(output, data),
                    Err(back) => {
                        assert!(back.why.device().is_some(), "{back}");
                        assert_eq!(back.request.needs, data);
                        refused += 1;
                    }
                }
            }
            refused
        };
        let senders: Vec<_> = (0..SENDERS).map(|sender| scope.spawn(move || send(sender))).collect();
        senders.into_iter().map(|sender| sender.join().unwrap()).sum()
    });
    assert!(refused > 0 && refused < SENDERS * EACH, "{refused} were refused");
    assert!(made.load(Ordering::SeqCst) > 1, "a device was lost and another one made");
    assert!(service.shutdown(Duration::from_secs(60)));
}

#[test]
fn a_request_may_panic_when_it_is_dropped() {
    /// Panics when it is dropped, unless it panicked already.
    struct Bomb;
    impl Drop for Bomb {
        fn drop(&mut self) {
            assert!(std::thread::panicking(), "a request that does not want to go");
        }
    }
    let machine = machine(Mode::Seeded(4), FaultPlan::none());
    let service =
        DeviceService::over(runtime(&machine, 0, Duration::ZERO).unwrap(), ServiceConfig::default()).unwrap();
    let now = Task::new(Bomb, |_, _| Ok(Started::now(1)));
    assert_eq!(service.submit(now).wait().unwrap(), 1);
    let later = Task::new(Bomb, |device: &DeviceRuntime, _: &mut Bomb| {
        Ok(Started::after(device.zeros::<u32>(8)?.fill(1)?, 2))
    });
    assert_eq!(service.submit(later).wait().unwrap(), 2);
    // No thread waits for this one, so it goes with its refusal.
    drop(service.submit(Task::new(Bomb, |_, _| -> Result<Started<()>> { Err(Stale::Lost.into()) })));
    assert!(service.submit(Upload::new(vec![1_u32])).wait().is_ok());
    assert!(service.shutdown(Duration::from_secs(60)));
    assert_eq!((service.load().in_flight, service.status().phase()), (0, Phase::Stopped));
}

#[test]
fn a_request_may_shut_its_own_service_down_while_another_caller_does() {
    let machine = machine(Mode::Seeded(5), FaultPlan::none());
    let service =
        DeviceService::over(runtime(&machine, 0, Duration::ZERO).unwrap(), ServiceConfig::default()).unwrap();
    let (inside, go_on) = (Arc::new(Barrier::new(2)), Arc::new(Barrier::new(2)));
    let needs = (service.clone(), inside.clone(), go_on.clone());
    let held = service.submit(Task::new(needs, |_, (service, inside, go_on)| {
        inside.wait();
        go_on.wait();
        service.shutdown(Duration::ZERO);
        Ok(Started::now(7))
    }));
    inside.wait();
    let (tell, told) = mpsc::channel();
    let (ended, outside) = (tell.clone(), service.clone());
    std::thread::spawn(move || ended.send(outside.shutdown(Duration::from_secs(60))).unwrap());
    // It is being shut down once it takes nothing more.
    let is_closed = || {
        let reply = service.submit(Upload::new(vec![1_u32])).wait_within(Duration::ZERO);
        matches!(reply, Ok(Err(refused)) if matches!(refused.why, RefusalReason::Closed))
    };
    while !is_closed() {
        std::thread::yield_now();
    }
    go_on.wait();
    assert!(told.recv_timeout(Duration::from_secs(60)).is_ok(), "a service that ends");
    assert_eq!(held.wait().unwrap(), 7);
}
