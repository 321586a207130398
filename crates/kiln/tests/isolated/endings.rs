//! When there is no way back, and what is asked for that cannot be.

use std::sync::mpsc;
use std::time::Duration;

use kiln::recovery::{BlockOutcome, DeviceSpec, Isolation, Process, RestartPolicy, WorkerEntry};
use kiln::recovery::{Keep, Phase};
use kiln::service::{DeviceService, RefusalReason, ServiceConfig, Upload};
use kiln::{
    DeviceRuntime, RuntimeConfig,
    buffer::Stale,
    error::{ErrorKind, Misuse},
    memory::MemoryConfig,
};
use kiln_sim::{Machine, MachineConfig};

use crate::rig;
use crate::script::Script;

#[test]
fn too_many_restarts_are_the_end_with_the_cause() {
    let restarts = RestartPolicy { limit: 2, ..rig::RESTARTS };
    let gpu = rig::open(30, Process { restarts, ..rig::process() });
    let buffer = gpu.upload(&[1_u32]).unwrap();
    gpu.synchronize().unwrap();
    for _ in 0..2 {
        rig::kill(&gpu);
        assert_eq!(buffer.download().unwrap(), [1]);
    }
    gpu.isolated_device().unwrap().kill_worker();
    let status =
        gpu.watch().wait_until(|status| status.phase() == Phase::Failed, Some(Duration::from_secs(60)));
    let cause = status.state.cause().unwrap();
    assert!(cause.why_given_up().is_some_and(|why| why.contains("2 workers were replaced")), "{cause}");
    assert_eq!(buffer.access(), Err(Stale::Failed));
    assert!(gpu.zeros::<u32>(1).unwrap_err().is_sticky());
    assert_eq!(gpu.post_mortems().len(), 2);
}

#[test]
fn a_policy_can_keep_nothing() {
    let gpu = rig::open(31, Process { on_loss: Keep::Nothing, ..rig::process() });
    let buffer = gpu.upload(&[1_u32]).unwrap();
    gpu.synchronize().unwrap();
    let report = rig::kill(&gpu);
    assert_eq!(buffer.access(), Err(Stale::Lost));
    assert!(
        report.lost().all(|record| record.outcome == BlockOutcome::Dismissed) && report.kept().count() == 0
    );
    let fresh = gpu.upload(&[2_u32]).unwrap();
    assert_eq!(fresh.download().unwrap(), [2]);
}

#[test]
fn what_cannot_be_isolated_is_refused() {
    let isolation = Isolation::Process(rig::process());
    let config = RuntimeConfig { isolation, ..RuntimeConfig::default() };
    let here = Machine::new(MachineConfig::seeded(1)).device(0).unwrap();
    let error = DeviceRuntime::from_driver(here, config.clone()).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Misuse(Misuse::OpenInProcess)), "{error}");
    for base in ["direct", "pool", "stats(chunks)"] {
        let memory = MemoryConfig { stack: base.parse().unwrap(), ..MemoryConfig::default() };
        let error =
            DeviceRuntime::open(&DeviceSpec::simulated(1), RuntimeConfig { memory, ..config.clone() });
        assert!(matches!(error.unwrap_err().kind(), ErrorKind::Misuse(Misuse::MemoryOfWorker { .. })));
    }
    let custom = DeviceSpec::custom("abacus", []);
    let error = DeviceRuntime::open(&custom, RuntimeConfig::default()).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Misuse(Misuse::UnknownBackend { .. })), "{error}");
    assert!(matches!(DeviceRuntime::open(&custom, config).unwrap_err().kind(), ErrorKind::Worker(_)));
    let entry = WorkerEntry::Program("/nonexistent/worker".into());
    let isolation = Isolation::Process(Process { entry, ..Process::default() });
    let config = RuntimeConfig { isolation, ..RuntimeConfig::default() };
    let error = DeviceRuntime::open(&DeviceSpec::simulated(1), config).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Worker(_)) && !error.is_absence(), "{error}");
}

#[test]
fn whole_pages_outlive_a_worker_too() {
    let memory = MemoryConfig { stack: "stats(pages)".parse().unwrap(), ..MemoryConfig::default() };
    let isolation = Isolation::Process(rig::process());
    let config = RuntimeConfig { isolation, memory, ..RuntimeConfig::default() };
    let gpu = DeviceRuntime::open(&DeviceSpec::simulated(35), config).unwrap();
    let words: Vec<u32> = (0..1000).collect();
    let kept = [gpu.upload(&words).unwrap(), gpu.upload(&words).unwrap()];
    gpu.synchronize().unwrap();
    let report = rig::kill(&gpu);
    assert_eq!((report.kept().count(), report.lost().count()), (2, 0), "{report}");
    kept.iter().for_each(|buffer| assert_eq!(buffer.download().unwrap(), words));
}

#[test]
fn the_same_device_can_be_opened_here() {
    let gpu = DeviceRuntime::open(&DeviceSpec::simulated(33), RuntimeConfig::default()).unwrap();
    assert!(gpu.isolated_device().is_none() && gpu.post_mortems().is_empty());
    assert_eq!(gpu.upload(&[7_u8]).unwrap().download().unwrap(), [7]);
}

#[test]
fn workers_killed_at_every_moment_of_a_takeover_are_replaced_too() {
    let gpu = rig::open(34, Process { standby: true, ..rig::process() });
    let words: Vec<u32> = (0..1000).collect();
    let (kept, healed) = (gpu.upload(&words).unwrap(), gpu.upload(&words).unwrap());
    kept.seal().unwrap().wait().unwrap();
    healed.heal_with(&words).unwrap();
    for moment in 0..30 {
        healed.upload(&words).unwrap();
        let device = gpu.isolated_device().unwrap();
        device.kill_worker();
        std::thread::sleep(Duration::from_micros(500 * moment));
        device.kill_worker();
        // Ready may be seen before the second loss is; a call that fails says so, and the next is after it.
        for buffer in [&kept, &healed] {
            let found = loop {
                let settled =
                    |status: &kiln::recovery::Status| status.state.is_ready() || status.phase().is_over();
                let status = gpu.watch().wait_until(settled, Some(Duration::from_secs(60)));
                assert!(status.state.is_ready(), "{status}");
                match buffer.download() {
                    Ok(found) => break found,
                    Err(error) => assert!(error.is_retryable() && !error.is_sticky(), "{error}"),
                }
            };
            assert_eq!(found, words, "after {moment}");
        }
    }
    assert!(gpu.generation().0 >= 30);
}

/// Loses the worker of a runtime, waits until none could be started, and drops it.
fn drop_in_takeover(name: &str, hinder: impl FnOnce(&Script)) {
    const HOUR: Duration = Duration::from_secs(3600);
    let script = Script::new(name);
    let restarts = RestartPolicy { pause: HOUR, longest_pause: HOUR, ..rig::RESTARTS };
    let gpu = rig::open(36, Process { restarts, start_limit: HOUR, ..script.process() });
    let ticket = gpu.upload(&[1_u32; 1000]).unwrap().fill(2).unwrap();
    hinder(&script);
    gpu.isolated_device().unwrap().kill_worker();
    script.await_refusal();
    let (tell, told) = mpsc::channel();
    std::thread::spawn(move || {
        drop(gpu);
        tell.send(()).unwrap();
    });
    told.recv_timeout(Duration::from_secs(60)).expect("a runtime that ends");
    // Whether the work was done before the worker was killed is unknown; it is known by now.
    let _ = ticket.wait();
}

#[test]
fn a_runtime_that_is_dropped_does_not_sit_out_the_pauses_between_restarts() {
    drop_in_takeover("paused", Script::refuse);
}

#[test]
fn a_runtime_that_is_dropped_does_not_wait_for_a_worker_that_does_not_start() {
    drop_in_takeover("stalled", Script::stall);
}

#[test]
fn a_service_that_is_shut_down_waits_for_a_device_that_comes_back() {
    let script = Script::new("stash");
    let restarts = RestartPolicy {
        pause: Duration::from_millis(1),
        longest_pause: Duration::from_millis(10),
        ..rig::RESTARTS
    };
    let gpu = rig::open(37, Process { restarts, ..script.process() });
    let service = DeviceService::over(gpu.clone(), ServiceConfig::default()).unwrap();
    service.submit(Upload::new(vec![1_u32])).wait().unwrap();
    script.refuse();
    gpu.isolated_device().unwrap().kill_worker();
    script.await_refusal();
    service.watch().wait_until(|status| status.phase() == Phase::Rebuilding, None);
    std::thread::scope(|scope| {
        let mut stashed = vec![service.submit(Upload::new(vec![0_u32; 8]))];
        let end = scope.spawn(|| service.shutdown(Duration::from_secs(120)));
        // Requests are taken until the service is being shut down, which is all that can be seen of it.
        loop {
            match service
                .submit(Upload::new(vec![stashed.len() as u32; 8]))
                .wait_within(Duration::from_millis(1))
            {
                Err(reply) => stashed.push(reply),
                Ok(answer) => {
                    let refused = answer.map(drop).unwrap_err();
                    assert!(matches!(refused.why, RefusalReason::Closed), "{refused}");
                    break;
                }
            }
        }
        script.relent();
        for (at, reply) in (0..).zip(stashed) {
            let buffer = reply.wait().expect("what waits is dealt with while there is time");
            assert_eq!(buffer.download().unwrap(), [at; 8]);
        }
        assert!(end.join().unwrap());
    });
}

#[test]
fn a_service_has_been_in_every_phase_and_generation_its_device_was_in() {
    const TIMES: u64 = 20;
    let gpu = rig::open(38, Process { standby: true, ..rig::process() });
    let service = DeviceService::over(gpu.clone(), ServiceConfig::default()).unwrap();
    service.submit(Upload::new(vec![1_u32])).wait().unwrap();
    (0..TIMES).for_each(|_| drop(rig::kill(&gpu)));
    let ready = |status: &kiln::recovery::Status| status.generation.0 == TIMES && status.state.is_ready();
    let status = service.watch().wait_until(ready, Some(Duration::from_secs(60)));
    assert!(ready(&status), "{status}");
    // Ready once, and three changes each time: lost, rebuilding, ready.
    assert_eq!(status.changes, 1 + 3 * TIMES);
}

#[test]
fn a_heap_in_a_worker_keeps_few_rows_and_those_in_use_survive() {
    const WORDS: usize = 4 << 20;
    let gpu = rig::open(36, rig::process());
    assert_eq!(gpu.memory().to_string(), "heap(mapping=192 MiB)");
    // Every second one is freed, so that a larger one lies in a row made of their places.
    let blocks: Vec<_> = (0..8_u32).map(|at| gpu.upload(&vec![at; WORDS]).unwrap()).collect();
    let kept: Vec<_> = (0_u32..).zip(blocks).filter(|(at, _)| at % 2 == 1).collect();
    let row = gpu.upload(&(0..3 * WORDS as u32).collect::<Vec<_>>()).unwrap();
    gpu.synchronize().unwrap();
    let address = row.access().unwrap().address;
    rig::kill(&gpu);
    assert_eq!(row.access().unwrap().address, address);
    assert!(row.download().unwrap().into_iter().eq(0..3 * WORDS as u32));
    for (at, block) in kept {
        assert!(block.download().unwrap().into_iter().all(|word| word == at));
    }

    let isolation = Isolation::Process(rig::process());
    let memory =
        MemoryConfig { stack: "stats(heap(mapping=1GiB))".parse().unwrap(), ..MemoryConfig::default() };
    let config = RuntimeConfig { isolation, memory, ..RuntimeConfig::default() };
    let gpu = DeviceRuntime::open(&DeviceSpec::simulated(37), config).unwrap();
    assert_eq!(gpu.memory().to_string(), "stats(heap(mapping=1 GiB))");
}
