//! Threads that come first, children that come later, and processes that just end.

use std::ffi::c_int;
use std::sync::OnceLock;
use std::time::Duration;

use kiln_cuda::{CudaDevice, Libcuda, OpenError, Unavailable};
use kiln_driver::{Driver, DriverExt, Health, HostBlock, MemoryRequest, StreamRequest};

use crate::machine::{Machine, calls, log};
use crate::opened::Bench;

unsafe extern "C" {
    fn fork() -> c_int;
    fn waitpid(process: c_int, status: *mut c_int, options: c_int) -> c_int;
    fn _exit(code: c_int) -> !;
}

/// Forks, runs `body` in the child, and says whether it returned true there.
fn in_fork(body: impl FnOnce() -> bool) -> bool {
    // SAFETY: the child runs `body`, which allocates a little and calls kiln, and ends without unwinding; no other
    // thread of this process holds a lock it needs.
    let process = unsafe { fork() };
    if process == 0 {
        let code = if body() { 0 } else { 1 };
        // SAFETY: ends the child at once.
        unsafe { _exit(code) };
    }
    let mut status = 0;
    // SAFETY: waits for the child forked above.
    assert_eq!(unsafe { waitpid(process, &mut status, 0) }, process);
    status == 0
}

on_machine! {
    fn threads_that_come_first_share_one_library() on Machine::fake() => {
        let libraries: Vec<usize> = std::thread::scope(|scope| {
            let threads: Vec<_> =
                (0..16).map(|_| scope.spawn(|| std::ptr::from_ref(Libcuda::load().unwrap()).addr())).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert!(libraries.iter().all(|library| *library == libraries[0]));
    }

    fn threads_open_and_use_one_device_each_with_the_context_current() on Machine::fake().devices(2) => {
        std::thread::scope(|scope| {
            for ordinal in [0, 1, 0, 1] {
                scope.spawn(move || {
                    let device = CudaDevice::open(ordinal).unwrap();
                    for _ in 0..20 {
                        let memory = device.allocate(MemoryRequest::Direct { bytes: 100 }).unwrap();
                        device.free(memory.id, None).unwrap();
                    }
                });
            }
        });
        // One thread with two devices in turn, which must switch contexts, and one device alone, which must not.
        let (first, second) = (CudaDevice::open(0).unwrap(), CudaDevice::open(1).unwrap());
        let switches = calls("cuCtxSetCurrent").len();
        for _ in 0..5 {
            first.memory_info().unwrap();
            second.memory_info().unwrap();
        }
        assert_eq!(calls("cuCtxSetCurrent").len(), switches + 10);
        second.memory_info().unwrap();
        assert_eq!(calls("cuCtxSetCurrent").len(), switches + 10);
    }

    fn a_device_that_is_open_can_be_opened_on_another_thread() on Machine::fake() => {
        let first = CudaDevice::open(0).unwrap();
        let second = std::thread::spawn(|| CudaDevice::open(0)).join().unwrap().unwrap();
        assert_ne!(first.info().key, second.info().key);
        assert_eq!(first.info().limits, second.info().limits);
    }

    fn a_device_opened_before_a_fork_answers_in_the_child_without_a_call() on Machine::fake() => {
        let bench = Bench::new();
        let memory = bench.memory(16);
        let mut held = Some((bench.host(b"x"), bench));
        let before = log().len();
        let answered = in_fork(|| {
            let Some((block, bench)) = held.take() else { return false };
            let refused = bench.device.fill(bench.stream, memory.id.into(), 0, 16).unwrap_err();
            let lost = matches!(bench.device.health(), Health::Lost(error) if error.is_unsupported());
            let stays = bench.device.destroy(bench.stream.into()).unwrap_err().is_unsupported();
            let freed = bench.device.free(memory.id, None).unwrap_err().is_unsupported();
            let library = matches!(Libcuda::load(), Err(Unavailable::Forked));
            let opened = matches!(CudaDevice::open(0), Err(OpenError::Unavailable(Unavailable::Forked)));
            drop((bench, block));
            refused.is_unsupported() && refused.call() == "submit" && lost && stays && freed && library && opened
        });
        assert!(answered);
        assert_eq!(log().len(), before, "the child called the driver");
        let (_, bench) = held.unwrap();
        bench.device.fill(bench.stream, memory.id.into(), 0, 16).unwrap();
    }

    fn a_child_forked_before_the_start_starts_on_its_own() on Machine::fake() => {
        assert!(in_fork(|| CudaDevice::open(0).is_ok_and(|device| device.memory_info().is_ok())));
        assert!(CudaDevice::open(0).is_ok());
    }

    fn a_process_may_end_while_everything_lives() on Machine::fake() => {
        static LEFT: OnceLock<(Bench, HostBlock)> = OnceLock::new();
        let ended = in_fork(|| {
            let bench = Bench::new();
            let block = bench.host(b"left");
            bench.run("stall").unwrap();
            LEFT.set((bench, block)).ok();
            // A thread that still polls when the process ends.
            std::thread::spawn(|| {
                let Some((bench, _)) = LEFT.get() else { return };
                while bench.device.progress(bench.stream).is_ok() {}
            });
            std::thread::sleep(Duration::from_millis(5));
            std::process::exit(0)
        });
        assert!(ended);
    }

    fn a_driver_that_is_going_away_is_not_a_panic() on Machine::fake().plan("cuStreamDestroy_v2=4,cuMemFree_v2=4,cuDevicePrimaryCtxRelease_v2=4") => {
        let bench = Bench::new();
        let _memory = bench.memory(8);
        drop(bench);
        let device = CudaDevice::open(0).unwrap();
        assert!(device.create_stream(StreamRequest::New { priority: 0 }).is_ok());
    }

    fn two_threads_that_destroy_one_stream_are_told_apart() on Machine::fake() => {
        let bench = Bench::new();
        for _ in 0..20 {
            let stream = bench.stream();
            let destroyed: Vec<bool> = std::thread::scope(|scope| {
                let threads: Vec<_> =
                    (0..3).map(|_| scope.spawn(|| bench.device.destroy(stream.into()).is_ok())).collect();
                threads.into_iter().map(|thread| thread.join().unwrap()).collect()
            });
            assert_eq!(destroyed.iter().filter(|done| **done).count(), 1);
        }
        assert_eq!(calls("cuStreamDestroy_v2").len(), 20);
    }
}
