//! Work that is ended while the device is still busy with it: callers that wait are told at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use kiln::{DeviceRuntime, Error, Ticket};
use kiln_runtime::internal::{EndedWork, end_work};

use crate::{kernels, rig};

/// Why the work was ended.
#[derive(Debug)]
struct Gone;

impl std::fmt::Display for Gone {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a rank is gone")
    }
}

impl std::error::Error for Gone {}

fn is_told(error: &Error) -> bool {
    error.downcast_ref::<Gone>().is_some()
}

/// A device with a kernel that never ends, and its ticket.
fn busy(seed: u64) -> (DeviceRuntime, Ticket) {
    let gpu = rig::open(seed, rig::process());
    let held = gpu.zeros::<u32>(1).unwrap();
    gpu.synchronize().unwrap();
    let endless = gpu.kernel(kernels::PTX, "endless").unwrap();
    // SAFETY: it writes one element, for ever.
    let ticket = unsafe { gpu.launch(&endless).grid(1).block(1).write(&held).submit() }.unwrap();
    (gpu, ticket)
}

fn end(gpu: &DeviceRuntime, ticket: &Ticket) {
    std::thread::sleep(Duration::from_millis(150));
    assert!(end_work(gpu, EndedWork::Submissions(&[ticket.stamp()]), Arc::new(Gone)));
}

#[test]
fn threads_callbacks_and_futures_that_wait_are_told_while_the_device_is_busy() {
    let (gpu, ticket) = busy(40);
    let told = Arc::<AtomicUsize>::default();
    ticket.on_done({
        let told = told.clone();
        move |answer| {
            told.fetch_add(usize::from(answer.is_err_and(|error| is_told(&error))), Ordering::SeqCst);
        }
    });
    std::thread::scope(|scope| {
        let blocked = scope.spawn(|| ticket.wait());
        let limited = scope.spawn(|| ticket.wait_within(Duration::from_secs(3_000)));
        let synchronized = scope.spawn(|| gpu.synchronize());
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let awaited = scope.spawn({
            let ticket = ticket.clone();
            move || runtime.block_on(async { ticket.await })
        });
        end(&gpu, &ticket);
        assert!(is_told(&blocked.join().unwrap().unwrap_err()));
        assert!(is_told(&limited.join().unwrap().unwrap_err()));
        assert!(is_told(&synchronized.join().unwrap().unwrap_err()));
        assert!(is_told(&awaited.join().unwrap().unwrap_err()));
    });
    while told.load(Ordering::SeqCst) == 0 {
        std::thread::yield_now();
    }
    assert!(is_told(&ticket.is_done().unwrap_err()), "the device still runs it");
    // Nothing else ends the kernel.
    rig::kill(&gpu);
}

#[test]
fn a_wait_for_work_that_was_not_ended_goes_on() {
    let (gpu, ticket) = busy(41);
    let other = gpu.stream().unwrap();
    let block = gpu.allocate_on::<u32>(&other, 1).unwrap();
    let written = block.upload_on(&other, &[7]).unwrap();
    end(&gpu, &ticket);
    assert!(is_told(&ticket.wait().unwrap_err()));
    assert!(!written.wait_within(Duration::from_millis(250)).is_err_and(|error| is_told(&error)));
    rig::kill(&gpu);
}
