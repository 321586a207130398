//! Shutting down: what is queued ends, what is new is refused, and a deadline is kept.

use std::time::Duration;

use kiln::recovery::Phase;
use kiln::{buffer::Stale, error::ErrorKind};
use kiln_driver::Code;
use kiln_sim::{FaultPlan, Mode, PlannedFault};

use super::scenario::{LEN, machine, runtime};
use crate::order::kernels::Kernels;

#[test]
fn what_is_queued_ends_and_what_is_new_is_refused() {
    let machine = machine(Mode::Seeded(8), FaultPlan::none());
    let gpu = runtime(&machine, 0, Duration::ZERO).unwrap();
    let buffer = gpu.zeros::<u32>(1024).unwrap();
    let tickets: Vec<_> = (0..50).map(|value| buffer.fill(value).unwrap()).collect();
    assert!(gpu.shutdown(Duration::from_secs(10)).unwrap());
    assert_eq!(gpu.status().phase(), Phase::Stopped);
    assert!(tickets.iter().all(|ticket| ticket.is_done().unwrap()));
    assert_eq!(buffer.access(), Err(Stale::ShuttingDown));
    let refused = [
        buffer.fill(1).unwrap_err(),
        buffer.download().unwrap_err(),
        gpu.zeros::<u32>(1).unwrap_err(),
        buffer.download_async().unwrap_err(),
    ];
    for error in refused {
        assert!(matches!(error.kind(), ErrorKind::Stale(Stale::ShuttingDown)), "{error}");
    }
    assert!(gpu.shutdown(Duration::ZERO).unwrap(), "a second call finds it stopped");
    drop((buffer, tickets, gpu));
    let report = machine.finish();
    assert!(report.is_clean(), "{report}");
}

#[test]
fn a_deadline_is_kept_and_a_fault_is_told() {
    let plan = FaultPlan::none()
        .on(0, PlannedFault::Hang { launch: 1 })
        .on(1, PlannedFault::Sticky { launch: 1, code: Code::LAUNCH_FAILED });
    let machine = machine(Mode::Seeded(1), plan);
    let ends = [0, 1].map(|ordinal| {
        let gpu = runtime(&machine, ordinal, Duration::ZERO).unwrap();
        let kernels = Kernels::load(&gpu);
        let (x, y) = (gpu.upload(&[1_u32; LEN]).unwrap(), gpu.upload(&[1_u32; LEN]).unwrap());
        let known = x.fill(2).unwrap();
        known.wait().unwrap();
        let mut launch = gpu.launch(&kernels.mix);
        launch.grid(1).block(1);
        launch.read_write(&x).read(&y).value(LEN as u32).value(1_u32);
        // SAFETY: the kernel indexes both buffers below the length only.
        let ticket = unsafe { launch.submit() }.unwrap();
        let end =
            [5, 0].map(|seconds| gpu.shutdown(Duration::from_secs(seconds)).map_err(|error| error.code()));
        assert_eq!(gpu.status().phase(), Phase::Stopped);
        assert!(!ticket.is_done().unwrap_or(false));
        drop(launch);
        drop((kernels, x, y, gpu));
        assert!(ticket.wait().is_err(), "it never was done");
        assert!(known.wait().is_ok(), "it was");
        end
    });
    assert_eq!(
        ends,
        [[Ok(false); 2], [Err(Some(Code::LAUNCH_FAILED)); 2]],
        "a second call says what the first did"
    );
}

#[test]
fn threads_that_submit_meanwhile_are_refused_and_nothing_is_left_running() {
    let machine = machine(Mode::Threaded { workers: 2 }, FaultPlan::none());
    let gpu = runtime(&machine, 0, Duration::ZERO).unwrap();
    std::thread::scope(|scope| {
        let submitters: Vec<_> = (0..3)
            .map(|_| {
                let buffer = gpu.allocate_on::<u32>(&gpu.stream().unwrap(), 64).unwrap();
                scope.spawn(move || {
                    let mut made = Vec::new();
                    while let Ok(ticket) = buffer.fill(1) {
                        made.push(ticket);
                    }
                    made
                })
            })
            .collect();
        std::thread::yield_now();
        assert!(gpu.shutdown(Duration::from_secs(60)).unwrap());
        for submitter in submitters {
            for ticket in submitter.join().unwrap() {
                assert!(ticket.is_done().unwrap(), "made before the shutdown, so done by its end");
            }
        }
    });
}
