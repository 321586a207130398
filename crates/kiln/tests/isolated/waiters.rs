//! Every caller that waits is answered, once, and told the truth.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use kiln::{buffer::Stale, error::ErrorKind};

use crate::{kernels, rig};

#[test]
fn blocked_threads_callbacks_and_futures_get_the_fault_once() {
    const EACH: usize = 16;
    let gpu = rig::open(20, rig::process());
    let held = gpu.zeros::<u32>(1).unwrap();
    let done = held.fill(1).unwrap();
    done.wait().unwrap();
    let endless = gpu.kernel(kernels::PTX, "endless").unwrap();
    // SAFETY: it writes one element, for ever.
    let ticket = unsafe { gpu.launch(&endless).grid(1).block(1).write(&held).submit() }.unwrap();
    let (failed, told) = (Arc::<AtomicUsize>::default(), Arc::<AtomicUsize>::default());
    for _ in 0..EACH {
        let (failed, told) = (failed.clone(), told.clone());
        ticket.on_done(move |answer| {
            told.fetch_add(1, Ordering::SeqCst);
            failed.fetch_add(usize::from(answer.is_err_and(|error| error.is_lost())), Ordering::SeqCst);
        });
    }
    std::thread::scope(|scope| {
        let blocked: Vec<_> = (0..EACH).map(|_| scope.spawn(|| ticket.wait())).collect();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let awaited = scope.spawn({
            let ticket = ticket.clone();
            move || {
                runtime.block_on(async {
                    let mut answers = Vec::new();
                    for ticket in vec![ticket; EACH] {
                        answers.push(ticket.await);
                    }
                    answers
                })
            }
        });
        std::thread::sleep(Duration::from_millis(50));
        rig::kill(&gpu);
        for thread in blocked {
            assert!(thread.join().unwrap().unwrap_err().is_lost());
        }
        assert!(awaited.join().unwrap().iter().all(Result::is_err));
    });
    // The callbacks are called by the reactor, which the new generation does not wait for.
    while told.load(Ordering::SeqCst) < EACH {
        std::thread::yield_now();
    }
    gpu.zeros::<u32>(1).unwrap().download().unwrap();
    assert_eq!((told.load(Ordering::SeqCst), failed.load(Ordering::SeqCst)), (EACH, EACH));
    assert!(done.is_done().unwrap() && ticket.is_done().is_err());
}

/// Threads that write and read without a pause while worker after worker is killed under them. What they find is what the last call
/// that said yes had written, or a block that says that it is lost.
#[test]
fn threads_that_never_stop_see_no_wrong_byte() {
    const THREADS: u32 = 3;
    const KILLS: usize = 30;
    let gpu = rig::open(21, rig::process());
    let kills_left = AtomicUsize::new(KILLS);
    let streams: Vec<_> = (0..THREADS).map(|_| gpu.stream().unwrap()).collect();
    std::thread::scope(|scope| {
        for (thread, stream) in (0..THREADS).zip(&streams) {
            let (gpu, kills_left) = (&gpu, &kills_left);
            scope.spawn(move || {
                let settle = || {
                    gpu.watch().wait_until(|status| status.phase().is_over() || status.state.is_ready(), None)
                };
                let fresh = || loop {
                    settle();
                    if let Ok(buffer) = gpu.allocate_on::<u32>(stream, 100) {
                        return buffer;
                    }
                };
                let (mut buffer, mut value, mut known) = (fresh(), thread << 24, None);
                while kills_left.load(Ordering::SeqCst) > 0 {
                    value += 1;
                    match buffer.upload_on(stream, &[value; 100]) {
                        Ok(_) => known = Some(value),
                        // Nothing was queued.
                        Err(error) if matches!(error.kind(), ErrorKind::NotReady { .. }) => drop(settle()),
                        Err(error) if matches!(error.kind(), ErrorKind::Stale(Stale::Lost)) => {
                            (buffer, known) = (fresh(), None);
                        }
                        // It may have been queued in part; the block is lost, or as it was.
                        Err(error) => {
                            assert!(error.is_lost(), "{error}");
                            settle();
                        }
                    }
                    let mut seen = [0; 100];
                    let Some(known) = known else { continue };
                    if buffer.download_into_on(stream, &mut seen).is_ok() {
                        assert!(seen.iter().all(|word| *word == known), "{known} was {}", seen[0]);
                    }
                }
            });
        }
        while kills_left.load(Ordering::SeqCst) > 0 {
            rig::kill(&gpu);
            std::thread::sleep(Duration::from_millis(20));
            kills_left.fetch_sub(1, Ordering::SeqCst);
        }
    });
    assert_eq!(gpu.generation().0, KILLS as u64);
}

/// A thread that comes when the device is back and asks whether everything is done, is not told that it is.
#[test]
fn work_that_was_lost_is_told_until_something_new_is_submitted() {
    let gpu = rig::open(24, rig::process());
    let (lost, kept) = (gpu.zeros::<u32>(1).unwrap(), gpu.upload(&[1_u32]).unwrap());
    let (stream, other) = (gpu.stream().unwrap(), gpu.stream().unwrap());
    gpu.synchronize().unwrap();
    let endless = gpu.kernel(kernels::PTX, "endless").unwrap();
    // SAFETY: it writes one element, for ever.
    let ticket = unsafe { gpu.launch(&endless).grid(1).block(1).on(&stream).write(&lost).submit() }.unwrap();
    rig::kill(&gpu);
    for _ in 0..2 {
        assert!(gpu.synchronize().unwrap_err().is_lost());
        assert!(gpu.synchronize_within(Duration::ZERO).unwrap_err().is_lost());
        assert!(stream.synchronize().unwrap_err().is_lost());
        assert!(stream.synchronize_within(Duration::ZERO).unwrap_err().is_lost());
        other.synchronize().unwrap();
    }
    // A worker that is lost while nothing is under way changes nothing of that.
    rig::kill(&gpu);
    assert!(gpu.synchronize().unwrap_err().is_lost() && stream.synchronize().unwrap_err().is_lost());
    kept.upload_on(&other, &[2]).unwrap();
    gpu.synchronize().unwrap();
    other.synchronize().unwrap();
    assert!(stream.synchronize().unwrap_err().is_lost(), "nothing new was submitted to this one");
    kept.upload_on(&stream, &[3]).unwrap();
    stream.synchronize().unwrap();
    assert!(ticket.wait().unwrap_err().is_lost(), "a ticket tells it for ever");
    assert_eq!(kept.download().unwrap(), [3]);
    // With nothing under way nothing is lost with a worker, and everything is done.
    rig::kill(&gpu);
    gpu.synchronize().unwrap();
    stream.synchronize().unwrap();
}

#[test]
fn times_are_lost_with_the_worker_that_took_them_and_say_so() {
    let gpu = rig::open(25, rig::process());
    let held = gpu.zeros::<u32>(1).unwrap();
    let [copy, illegal] = ["copy", "illegal"].map(|name| gpu.kernel(kernels::PTX, name).unwrap());
    let from = gpu.upload(&[7_u32]).unwrap();
    // SAFETY: it copies one element.
    let timed =
        || unsafe { gpu.launch(&copy).grid(1).block(1).read(&from).write(&held).submit_timed() }.unwrap();
    let done = timed();
    done.ticket().wait().unwrap();
    rig::kill(&gpu);
    assert!(done.wait().unwrap_err().is_lost() && done.ticket().is_done().unwrap());
    assert_eq!(held.download().unwrap(), [7]);
    timed().wait().unwrap();
    // SAFETY: this is what is to go wrong.
    let faulty = unsafe { gpu.launch(&illegal).grid(1).block(1).write(&held).submit_timed() }.unwrap();
    let launched_at = line!() - 1;
    assert!(faulty.wait().unwrap_err().is_lost());
    let report = rig::recovered(&gpu, 1);
    let site = report.cause.launched_at().expect("the line that launched it");
    assert!(site.file().ends_with("waiters.rs") && site.line() == launched_at, "{site}");
}

#[test]
fn a_stream_that_is_leased_anew_says_nothing_of_what_was_lost_on_it() {
    let gpu = rig::open(26, rig::process());
    let held = gpu.zeros::<u32>(1).unwrap();
    let stream = gpu.stream().unwrap();
    gpu.synchronize().unwrap();
    let endless = gpu.kernel(kernels::PTX, "endless").unwrap();
    // SAFETY: it writes one element, for ever.
    unsafe { gpu.launch(&endless).grid(1).block(1).on(&stream).write(&held).submit() }.unwrap();
    rig::kill(&gpu);
    assert!(stream.synchronize().unwrap_err().is_lost());
    let key = stream.key();
    drop(stream);
    let leased: Vec<_> = (0..8).map(|_| gpu.stream().unwrap()).collect();
    let again = leased.iter().find(|stream| stream.key() == key).expect("a stream that is used again");
    again.synchronize().unwrap();
    assert!(again.synchronize_within(Duration::ZERO).unwrap());
}
