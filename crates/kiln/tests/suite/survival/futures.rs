//! Futures: woken once, by the waker of the last poll, and nothing is lost when they are dropped.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier};
use std::task::{Context, Wake, Waker};
use std::time::Duration;

use kiln::{DeviceRuntime, GpuRef};
use kiln_driver::Code;
use kiln_sim::{FaultPlan, Machine, Mode, PlannedFault};

use super::executor::{Counted, Tasks, block_on, poll_once};
use super::scenario::{machine, runtime};
use crate::order::kernels::Kernels;

fn quiet(mode: Mode) -> (Machine, DeviceRuntime) {
    let machine = machine(mode, FaultPlan::none());
    // No spin: whatever is not done at once goes through the reactor.
    let gpu = runtime(&machine, 0, Duration::ZERO).unwrap();
    (machine, gpu)
}

fn close(machine: &Machine, gpu: DeviceRuntime) {
    drop(gpu);
    let report = machine.finish();
    assert!(report.is_clean(), "{report}");
}

#[test]
fn a_ticket_and_a_readback_can_be_awaited() {
    for mode in [Mode::Seeded(3), Mode::Threaded { workers: 2 }] {
        let (machine, gpu) = quiet(mode);
        let buffer = gpu.zeros::<u32>(1 << 12).unwrap();
        block_on(async {
            buffer.fill(7).unwrap().await.unwrap();
            assert_eq!(buffer.download_async().unwrap().await.unwrap(), vec![7; 1 << 12]);
            let stream = gpu.stream().unwrap();
            assert_eq!(buffer.view(1..3).unwrap().download_async_on(&stream).unwrap().await.unwrap(), [7, 7]);
            let empty = gpu.zeros::<u32>(0).unwrap();
            assert!(empty.download_async().unwrap().await.unwrap().is_empty());
        });
        drop(buffer);
        close(&machine, gpu);
    }
}

#[test]
fn the_waker_of_the_last_poll_is_woken_and_woken_once() {
    let (machine, gpu) = quiet(Mode::Seeded(1));
    let buffer = gpu.zeros::<u32>(1 << 16).unwrap();
    let (first, last) = (Arc::<Counted>::default(), Arc::<Counted>::default());
    // A poll may find the work done; then there is nothing to be woken for.
    for _ in 0..200 {
        let mut future = buffer.fill(1).unwrap().into_future();
        if poll_once(&mut future, &first).is_pending() && poll_once(&mut future, &last).is_pending() {
            last.wait();
            assert!(poll_once(&mut future, &last).is_ready());
            assert!(poll_once(&mut future, &last).is_ready(), "and again");
            break;
        }
    }
    assert_eq!((first.count(), last.count()), (0, 1));
    drop(buffer);
    close(&machine, gpu);
}

#[test]
fn thousands_of_futures_on_many_streams_all_end() {
    const STREAMS: usize = 8;
    const EACH: usize = 600;
    for mode in [Mode::Seeded(5), Mode::Threaded { workers: 2 }] {
        let (machine, gpu) = quiet(mode);
        let (tasks, ended) = (Arc::<Tasks>::default(), Arc::<AtomicUsize>::default());
        let buffers: Vec<GpuRef<u32>> =
            (0..STREAMS).map(|_| gpu.allocate_on(&gpu.stream().unwrap(), 4).unwrap()).collect();
        for round in 0..EACH {
            for buffer in &buffers {
                let ticket = buffer.fill(round as u32).unwrap();
                let ended = ended.clone();
                tasks.spawn(async move {
                    ticket.await.unwrap();
                    ended.fetch_add(1, Ordering::SeqCst);
                });
            }
        }
        tasks.run(2);
        assert_eq!(ended.load(Ordering::SeqCst), STREAMS * EACH);
        for buffer in &buffers {
            assert_eq!(buffer.download().unwrap(), [EACH as u32 - 1; 4]);
        }
        drop((buffers, tasks));
        close(&machine, gpu);
    }
}

#[test]
fn dropping_a_future_leaves_the_work_and_gives_its_memory_back() {
    let (machine, gpu) = quiet(Mode::Seeded(9));
    let kernels = Kernels::load(&gpu);
    let (to, from) = (gpu.upload(&[1_u32; 64]).unwrap(), gpu.upload(&[2_u32; 64]).unwrap());
    let waker = Arc::<Counted>::default();
    for round in 0..50 {
        let mut launch = gpu.launch(&kernels.mix);
        launch.grid(1).block(1);
        launch.read_write(&to).read(&from).value(64_u32).value(1_u32);
        // SAFETY: the kernel indexes both buffers below the length only.
        let mut done = unsafe { launch.submit() }.unwrap().into_future();
        let mut download = to.download_async().unwrap();
        if round % 2 == 0 {
            let _ = poll_once(&mut done, &waker);
            let _ = poll_once(&mut download, &waker);
        }
        drop((done, download));
    }
    // Every launch ran although no thread waited for it.
    assert_eq!(to.download().unwrap(), [101; 64]);
    drop((to, from, kernels));
    close(&machine, gpu);
}

#[test]
fn a_long_spin_on_virtual_time_makes_one_thread_repeatable() {
    let trace = |seed| {
        let machine = machine(Mode::Seeded(seed), FaultPlan::none());
        let gpu = runtime(&machine, 0, Duration::from_secs(1)).unwrap();
        let (one, two) = (gpu.stream().unwrap(), gpu.stream().unwrap());
        let (a, b) =
            (gpu.allocate_on::<u32>(&one, 1024).unwrap(), gpu.allocate_on::<u32>(&two, 1024).unwrap());
        block_on(async {
            for value in 0..20 {
                let (first, second) = (a.fill(value).unwrap(), b.fill(value).unwrap());
                second.await.unwrap();
                first.await.unwrap();
            }
            assert_eq!(a.download_async().unwrap().await.unwrap(), [19; 1024]);
        });
        drop((a, b, one, two, gpu));
        machine.trace()
    };
    assert_eq!(trace(4), trace(4));
}

#[test]
fn a_callback_is_called_once_also_if_the_work_is_over_and_if_it_panics() {
    let (machine, gpu) = quiet(Mode::Seeded(2));
    let buffer = gpu.zeros::<u32>(16).unwrap();
    let calls = Arc::<AtomicUsize>::default();
    for _ in 0..20 {
        let ticket = buffer.fill(1).unwrap();
        let counted = calls.clone();
        ticket.on_done(move |outcome| {
            outcome.unwrap();
            counted.fetch_add(1, Ordering::SeqCst);
        });
    }
    let last = buffer.fill(2).unwrap();
    let mut panicked = false;
    for _ in 0..100 {
        let ticket = buffer.fill(3).unwrap();
        if !ticket.is_done().unwrap() {
            ticket.on_done(|_| panic!("planned"));
            panicked = true;
            break;
        }
    }
    assert!(panicked, "one of a hundred is not done at once");
    last.wait().unwrap();
    // The thread outlives a callback that panics.
    block_on(buffer.fill(4).unwrap().into_future()).unwrap();
    let done = calls.clone();
    let end = Arc::new(Barrier::new(2));
    let other = end.clone();
    buffer.fill(5).unwrap().on_done(move |_| {
        std::thread::spawn(move || other.wait());
    });
    end.wait();
    assert_eq!(done.load(Ordering::SeqCst), 20);
    drop((buffer, last));
    close(&machine, gpu);
}

#[test]
fn a_runtime_may_end_on_its_own_reactor() {
    let (machine, gpu) = quiet(Mode::Seeded(6));
    let buffer = gpu.zeros::<u32>(1 << 12).unwrap();
    let watch = gpu.watch();
    let ticket = buffer.fill(1).unwrap();
    drop(buffer);
    ticket.on_done(move |_| drop(gpu));
    let end = watch.wait_until(|status| status.phase() == kiln::recovery::Phase::Stopped, None);
    assert_eq!(end.phase(), kiln::recovery::Phase::Stopped);
    drop(machine);
}

#[test]
fn a_waker_that_panics_costs_its_own_task_alone() {
    struct Angry;
    impl Wake for Angry {
        fn wake(self: Arc<Self>) {
            panic!("do not wake me");
        }
    }
    let (machine, gpu) = quiet(Mode::Seeded(1));
    let buffer = gpu.zeros::<u32>(1 << 16).unwrap();
    let waker = Waker::from(Arc::new(Angry));
    let mut angry: Vec<_> = (0..20).map(|_| buffer.fill(1).unwrap().into_future()).collect();
    for future in &mut angry {
        // A poll may find the work done; then there is nothing to be woken for.
        let _ = Pin::new(future).poll(&mut Context::from_waker(&waker));
    }
    for value in 0..20 {
        block_on(buffer.fill(value).unwrap().into_future()).unwrap();
    }
    let told = Arc::<Counted>::default();
    for mut future in angry {
        assert!(poll_once(&mut future, &told).is_ready());
    }
    drop(buffer);
    close(&machine, gpu);
}

#[test]
fn what_is_known_to_be_done_is_told_to_be_although_the_device_is_lost_since() {
    let plan = FaultPlan::none().on(0, PlannedFault::Sticky { launch: 1, code: Code::ASSERT });
    let machine = machine(Mode::Seeded(1), plan);
    let gpu = runtime(&machine, 0, Duration::ZERO).unwrap();
    let kernels = Kernels::load(&gpu);
    let [x, y] = [gpu.zeros::<u32>(1 << 16).unwrap(), gpu.zeros::<u32>(1 << 16).unwrap()];
    gpu.synchronize().unwrap();
    // The reactor is kept from looking while all of this happens.
    let gates = [Arc::new(Barrier::new(2)), Arc::new(Barrier::new(2))];
    let (inside, is_first) = (gates.clone(), AtomicUsize::new(0));
    let subscription = gpu.on_change(move |_| {
        if is_first.fetch_add(1, Ordering::SeqCst) == 0 {
            for gate in &inside {
                gate.wait();
            }
        }
    });
    gates[0].wait();
    let waker = Arc::<Counted>::default();
    let mut fills = (0..200).map(|_| x.fill(1).unwrap());
    let waiting = fills.find_map(|ticket| {
        let mut future = ticket.clone().into_future();
        // A poll may find the work done; then no thread waits.
        poll_once(&mut future, &waker).is_pending().then_some((ticket, future))
    });
    let (ticket, future) = waiting.expect("work that takes a while");
    ticket.wait().unwrap();
    let mut launch = gpu.launch(&kernels.mix);
    launch.grid(1).block(1);
    launch.read_write(&y).read(&x).value(16_u32).value(1_u32);
    // SAFETY: the kernel indexes both buffers below the length only.
    assert!(unsafe { launch.submit() }.unwrap().wait().unwrap_err().is_sticky());
    gates[1].wait();
    block_on(future).unwrap();
    ticket.wait().unwrap();
    drop((subscription, gpu));
}
