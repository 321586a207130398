//! The one predicate that a program loops on, while workers are lost and replaced.

use std::time::Duration;

use kiln::recovery::Process;
use kiln::service::{DeviceService, ServiceConfig, Upload};
use kiln::{Error, buffer::Stale, error::ErrorKind};
use kiln_driver::Code;

use crate::{kernels, rig};

#[test]
fn a_loop_over_what_is_retryable_ends_with_the_answer() {
    let gpu = rig::open(51, Process { standby: true, ..rig::process() });
    for round in 0..10_u32 {
        gpu.isolated_device().unwrap().kill_worker();
        let data = vec![round; 1000];
        let downloaded = loop {
            match gpu.upload(&data).and_then(|buffer| buffer.download()) {
                Ok(downloaded) => break downloaded,
                // The buffer went with the worker; the next turn makes another.
                Err(error) if matches!(error.kind(), ErrorKind::Stale(Stale::Lost)) => {}
                Err(error) => {
                    assert!(error.is_retryable() && !error.is_sticky(), "round {round}: {error}");
                    std::thread::sleep(Duration::from_micros(200));
                }
            }
        };
        assert_eq!(downloaded, data);
    }
}

#[test]
fn work_that_lost_the_device_is_not_retryable_and_work_that_was_lost_with_it_is() {
    let gpu = rig::open(52, rig::process());
    let (touched, innocent) = (gpu.zeros::<u32>(1).unwrap(), gpu.zeros::<u32>(1).unwrap());
    let illegal = gpu.kernel(kernels::PTX, "illegal").unwrap();
    gpu.synchronize().unwrap();
    // SAFETY: it is to fault.
    let faulted = unsafe { gpu.launch(&illegal).grid(1).block(1).write(&touched).submit() }.unwrap();
    // Behind it on the same stream, so it cannot be done.
    let behind = innocent.fill(5);
    let (told, waited) = std::sync::mpsc::channel();
    faulted.on_done(move |outcome| told.send(outcome).unwrap());
    let culprits = [faulted.wait(), waited.recv_timeout(Duration::from_secs(60)).unwrap()];
    rig::recovered(&gpu, 0);
    for error in culprits.into_iter().chain([faulted.wait()]).map(Result::unwrap_err) {
        assert!(matches!(error.kind(), ErrorKind::Faulted { .. }), "{error}");
        assert!(!error.is_retryable() && !error.is_sticky() && error.is_lost(), "{error}");
        assert_eq!(error.code(), Some(Code::ILLEGAL_ADDRESS));
    }
    let error = behind.and_then(|ticket| ticket.wait()).unwrap_err();
    assert!(error.is_retryable() && !error.is_sticky() && error.is_lost(), "{error}");
    assert_eq!(gpu.upload(&[5_u32]).unwrap().download().unwrap(), [5]);
    assert!(!Error::from(Stale::Lost).is_retryable());
}

#[test]
fn requests_of_a_service_are_sent_again_until_they_succeed() {
    let gpu = rig::open(53, Process { standby: true, ..rig::process() });
    let service = DeviceService::over(gpu.clone(), ServiceConfig::default()).unwrap();
    for round in 0..10_u32 {
        let mut replies: Vec<_> =
            (0..20).map(|at| service.submit(Upload::new(vec![20 * round + at; 64]))).collect();
        gpu.isolated_device().unwrap().kill_worker();
        while let Some(reply) = replies.pop() {
            match reply.wait() {
                Ok(buffer) => assert_eq!(buffer.len(), 64),
                Err(refused) => {
                    assert!(refused.is_retryable(), "round {round}: {refused}");
                    replies.push(service.submit(refused.request));
                }
            }
        }
    }
}
