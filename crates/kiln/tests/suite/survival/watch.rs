//! Watching: every change is heard, in order, by callback, by future and by a blocked thread.

use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, mpsc};
use std::task::{Context, Wake, Waker};
use std::time::Duration;

use kiln::recovery::DeviceState;
use kiln::recovery::Phase;
use kiln_driver::Code;
use kiln_sim::{FaultPlan, Mode, PlannedFault};

use super::executor::{Counted, block_on};
use super::scenario::{LEN, machine, runtime};
use crate::order::kernels::Kernels;

fn faulty(launch: u64) -> (kiln_sim::Machine, kiln::DeviceRuntime) {
    let plan = FaultPlan::none().on(0, PlannedFault::Sticky { launch, code: Code::ASSERT });
    let machine = machine(Mode::Seeded(1), plan);
    let gpu = runtime(&machine, 0, Duration::ZERO).unwrap();
    (machine, gpu)
}

fn launch(gpu: &kiln::DeviceRuntime) {
    let kernels = Kernels::load(gpu);
    let (x, y) = (gpu.upload(&[1_u32; LEN]).unwrap(), gpu.upload(&[1_u32; LEN]).unwrap());
    let mut launch = gpu.launch(&kernels.mix);
    launch.grid(1).block(1);
    launch.read_write(&x).read(&y).value(LEN as u32).value(1_u32);
    // SAFETY: the kernel indexes both buffers below the length only.
    unsafe { launch.submit() }.unwrap();
}

#[test]
fn a_callback_is_told_of_a_fault_that_no_call_waits_for_and_of_everything_after() {
    let (_machine, gpu) = faulty(1);
    let (sender, heard) = mpsc::channel();
    let subscription = gpu.on_change(move |status| sender.send(status.clone()).unwrap()).unwrap();
    assert_eq!(heard.recv().unwrap().phase(), Phase::Ready, "what it was when we came");
    launch(&gpu);
    // No thread waits for the launch; the watched device is looked at anyway.
    assert_eq!(heard.recv().unwrap().phase(), Phase::Lost);
    let failed = heard.recv().unwrap();
    let DeviceState::Failed(cause) = &failed.state else { panic!("{failed}") };
    assert_eq!((cause.code(), cause.kernel()), (Some(Code::ASSERT), Some("mix")));
    assert!(cause.to_string().contains("watch.rs"), "{cause}");
    drop(gpu);
    let rest: Vec<Phase> = heard.iter().take(2).map(|status| status.phase()).collect();
    assert_eq!(rest, [Phase::ShuttingDown, Phase::Stopped]);
    drop(subscription);
}

#[test]
fn a_future_and_a_blocked_thread_hear_of_a_fault() {
    let (_machine, gpu) = faulty(1);
    let (mut watch, blocked) = (gpu.watch(), gpu.watch());
    assert_eq!(
        block_on(watch.changed()).unwrap().phase(),
        Phase::Ready,
        "the first look is answered at once"
    );
    let thread = std::thread::spawn(move || blocked.wait_until(|status| status.phase().is_over(), None));
    launch(&gpu);
    let mut seen = Vec::new();
    while seen.last() != Some(&Phase::Failed) {
        let status = block_on(watch.changed()).unwrap();
        seen.push(status.phase());
    }
    assert!(seen == [Phase::Lost, Phase::Failed] || seen == [Phase::Failed], "{seen:?}");
    assert_eq!(thread.join().unwrap().phase(), Phase::Failed);
    drop(gpu);
    assert_eq!(block_on(watch.changed()).unwrap().phase(), Phase::Stopped, "the latest of two");
    assert!(block_on(watch.changed()).is_none(), "there is nothing more to see");
}

#[test]
fn a_dropped_subscription_is_silent_and_a_panic_in_one_harms_no_other() {
    let (_machine, gpu) = faulty(1);
    let heard = Arc::<Mutex<Vec<Phase>>>::default();
    let (first, second) = (heard.clone(), heard.clone());
    let panics = gpu.on_change(|_| panic!("planned")).unwrap();
    let silent = gpu.on_change(move |_| first.lock().unwrap().push(Phase::Starting)).unwrap();
    drop(silent);
    let (sender, told) = mpsc::channel();
    let loud = gpu
        .on_change(move |status| {
            second.lock().unwrap().push(status.phase());
            let _ = sender.send(());
        })
        .unwrap();
    told.recv().unwrap();
    let before = heard.lock().unwrap().iter().filter(|phase| **phase == Phase::Starting).count();
    assert!(before <= 1, "at most what it was when we came");
    assert!(gpu.shutdown(Duration::from_secs(1)).unwrap());
    told.recv().unwrap();
    told.recv().unwrap();
    let phases: Vec<Phase> =
        heard.lock().unwrap().iter().copied().filter(|phase| *phase != Phase::Starting).collect();
    assert_eq!(phases, [Phase::Ready, Phase::ShuttingDown, Phase::Stopped]);
    drop((panics, loud));
}

/// What is dropped with a subscription or a task may itself have to do with the state.
#[test]
fn a_callback_may_own_a_buffer_and_another_subscription() {
    let machine = machine(Mode::Seeded(1), FaultPlan::none());
    let gpu = runtime(&machine, 0, Duration::ZERO).unwrap();
    let (tell, told) = mpsc::channel();
    std::thread::spawn(move || {
        let buffer = gpu.upload(&[1_u32; LEN]).unwrap();
        let inner = gpu.on_change(move |_| assert_eq!(buffer.len(), LEN)).unwrap();
        let outer = gpu.on_change(move |_| drop(format!("{inner:?}"))).unwrap();
        drop(outer);
        tell.send(()).unwrap();
    });
    told.recv_timeout(Duration::from_secs(60)).expect("a subscription that ends");
}

#[test]
fn a_task_may_be_dropped_with_the_waker_it_left_behind() {
    /// A waker that owns a separate watch, as one that is the last to hold its task does.
    struct Owner {
        _task: Mutex<Pin<Box<dyn Future<Output = ()> + Send>>>,
    }
    impl Wake for Owner {
        fn wake(self: Arc<Self>) {}
    }
    let machine = machine(Mode::Seeded(1), FaultPlan::none());
    let gpu = runtime(&machine, 0, Duration::ZERO).unwrap();
    let (tell, told) = mpsc::channel();
    std::thread::spawn(move || {
        let waiting = |gpu: &kiln::DeviceRuntime| {
            let mut watch = gpu.watch();
            let mut future: Pin<Box<dyn Future<Output = ()> + Send>> =
                Box::pin(async move { while watch.changed().await.is_some() {} });
            let waker = Waker::from(Arc::new(Counted::default()));
            assert!(future.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
            future
        };
        let mut watch = gpu.watch();
        let mut future = pin!(async move { while watch.changed().await.is_some() {} });
        for _ in 0..2 {
            let waker = Waker::from(Arc::new(Owner { _task: Mutex::new(waiting(&gpu)) }));
            assert!(future.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
        }
        let waker = Waker::from(Arc::new(Counted::default()));
        assert!(future.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
        tell.send(()).unwrap();
    });
    told.recv_timeout(Duration::from_secs(60)).expect("tasks that come and go");
}
