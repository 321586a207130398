//! Waiting for submissions: by a look, with a deadline, for many at once; what the host knows afterwards, and what it is told when the
//! device is lost. Time is that of the simulated device.

use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use kiln::order::Recording;
use kiln::{DeviceRuntime, GpuRef, Kernel, RuntimeConfig, Stream, Ticket, completion::CompletionConfig};
use kiln_driver::layer::{CommandKind, Counting, Layered};
use kiln_driver::{Access, Code, Driver, Image};
use kiln_sim::{FaultPlan, HostKernel, KernelLibrary, Machine, MachineConfig, PlannedFault};

const LIBRARY: &str = "tickets";
const SPIN: Duration = Duration::from_millis(1);

/// `spin(to, from)`: reads one, writes the other, and takes a millisecond.
fn library() -> KernelLibrary {
    let spin = HostKernel::new("spin").pointer(Access::Write).pointer(Access::Read).body(|launch| {
        let (to, from) = (launch.address(0)?, launch.address(1)?);
        let mut port = launch.port();
        let value = port.load::<u32>(from)?;
        port.store(to, value + 1)?;
        launch.spend(SPIN);
        Ok(())
    });
    KernelLibrary::new(LIBRARY).kernel(spin)
}

struct Scene {
    driver: Arc<Layered<Counting>>,
    gpu: DeviceRuntime,
    spin: Kernel,
    streams: [Stream; 3],
}

impl Scene {
    fn run(recording: Recording, program: impl FnOnce(&Self)) {
        let machine = Machine::new(MachineConfig::seeded(1).library(library()));
        {
            let driver = Arc::new(Layered::new(machine.device(0).unwrap(), Counting::default()));
            let config = RuntimeConfig { recording, ..RuntimeConfig::default() };
            let gpu = DeviceRuntime::from_driver(driver.clone(), config).unwrap();
            let spin = gpu.load_kernel(&Image::HostKernels(LIBRARY), "spin", None).unwrap();
            let streams = [(); 3].map(|()| gpu.stream().unwrap());
            program(&Self { driver, gpu, spin, streams });
        }
        let report = machine.finish();
        assert!(report.is_clean(), "{report}");
    }

    /// Buffers of one element that no thread has to wait for.
    fn buffers<const N: usize>(&self) -> [GpuRef<u32>; N] {
        let buffers = [(); N].map(|()| self.gpu.zeros::<u32>(1).unwrap());
        self.gpu.synchronize().unwrap();
        buffers
    }

    fn spin(&self, stream: usize, to: &GpuRef<u32>, from: &GpuRef<u32>) -> Ticket {
        let mut launch = self.gpu.launch(&self.spin);
        launch.grid(1).block(1);
        launch.on(&self.streams[stream]).write(to).read(from);
        // SAFETY: the kernel touches the first element of each.
        unsafe { launch.submit() }.unwrap()
    }

    /// Device time that a piece of work takes.
    fn time(&self, work: impl FnOnce()) -> Duration {
        let before = self.driver.clock().now();
        work();
        self.driver.clock().now() - before
    }

    /// Waits between streams that a piece of work queues.
    fn waits(&self, work: impl FnOnce()) -> u64 {
        let before = self.driver.layer().counts();
        work();
        self.driver.layer().counts().since(&before).submitted(CommandKind::Wait)
    }
}

#[test]
fn a_deadline_is_kept_and_the_work_goes_on() {
    Scene::run(Recording::Adaptive, |scene| {
        let [to, from] = scene.buffers();
        let ticket = scene.spin(0, &to, &from);
        let waited = scene.time(|| assert!(!ticket.wait_within(SPIN / 2).unwrap()));
        assert!((SPIN / 2..SPIN * 3 / 4).contains(&waited), "{waited:?}");
        assert!(!scene.streams[0].synchronize_within(SPIN / 8).unwrap());
        assert!(!scene.gpu.synchronize_within(SPIN / 8).unwrap());
        let rest = scene.time(|| assert!(ticket.wait_within(SPIN).unwrap()));
        assert!(rest < SPIN / 2, "{rest:?}");
        let nothing = scene.time(|| {
            assert!(ticket.wait_within(Duration::ZERO).unwrap() && ticket.is_done().unwrap());
            ticket.wait().unwrap();
        });
        assert_eq!(nothing, Duration::ZERO, "what is known to be done is not asked for again");
        assert_eq!(to.download().unwrap(), [1]);
    });
}

#[test]
fn a_look_does_not_wait_and_sees_the_end() {
    Scene::run(Recording::Adaptive, |scene| {
        let [to, from] = scene.buffers();
        let ticket = scene.spin(0, &to, &from);
        let look = scene.time(|| assert!(!ticket.is_done().unwrap()));
        assert!(look < SPIN / 10, "{look:?}");
        let looks = (0..100_000).find(|_| ticket.is_done().unwrap());
        assert!(looks.is_some(), "a device that is looked at goes on");
        assert!(scene.gpu.zeros::<u32>(0).unwrap().fill(1).unwrap().is_done().unwrap(), "nothing is done");
    });
}

#[test]
fn many_are_waited_for_within_one_deadline() {
    // An event for each of them, so that the first is known to be done before the last is.
    Scene::run(Recording::AtOnce, |scene| {
        let [to, from] = scene.buffers();
        let tickets = [(); 4].map(|()| scene.spin(0, &to, &from));
        let waited = scene.time(|| assert!(!Ticket::wait_all(&tickets, Some(SPIN * 5 / 2)).unwrap()));
        assert!((SPIN * 5 / 2..SPIN * 11 / 4).contains(&waited), "for all of them, not for each: {waited:?}");
        assert!(tickets[0].is_done().unwrap() && !tickets[3].is_done().unwrap());
        assert!(Ticket::wait_all(&tickets, None).unwrap());
        assert!(Ticket::wait_all(&[], Some(Duration::ZERO)).unwrap());
        assert!(tickets.iter().all(|ticket| ticket.is_done().unwrap()));
    });
}

/// A way for the host to wait for a ticket.
type Way = fn(&Scene, &Ticket);

/// Whichever thread waited, and however: what the host knows to be done needs no event on any stream, and neither does what came before it.
#[test]
fn what_the_host_waited_for_needs_no_event() {
    let no_wait: Way = |_, _| {};
    let ways: [(&str, Way); 7] = [
        ("a wait", |_, ticket| ticket.wait().unwrap()),
        ("a wait with a deadline", |_, ticket| assert!(ticket.wait_within(SPIN * 9).unwrap())),
        ("looks", |_, ticket| assert!((0..100_000).any(|_| ticket.is_done().unwrap()))),
        ("a wait for many", |_, ticket| {
            assert!(Ticket::wait_all(std::slice::from_ref(ticket), None).unwrap());
        }),
        ("a wait for a stream", |scene, _| scene.streams[1].synchronize().unwrap()),
        ("a wait for everything", |scene, _| scene.gpu.synchronize().unwrap()),
        ("a callback", |_, ticket| {
            let (tell, told) = std::sync::mpsc::channel();
            ticket.on_done(move |outcome| tell.send(outcome.is_ok()).unwrap());
            assert!(told.recv().unwrap());
        }),
    ];
    let edges = |wait: Way| {
        let mut edges = 0;
        Scene::run(Recording::Adaptive, |scene| {
            let [first, second, third, zero] = scene.buffers();
            scene.spin(0, &first, &zero);
            // The second stream comes after the first, so that a caller that waits for it has waited for both.
            let ticket = scene.spin(1, &second, &first);
            wait(scene, &ticket);
            edges = scene.waits(|| {
                scene.spin(2, &third, &second);
                scene.spin(2, &first, &zero);
            });
            let seen = [&first, &second, &third].map(|buffer| buffer.download().unwrap()[0]);
            assert_eq!(seen, [1, 2, 3]);
        });
        edges
    };
    assert_eq!(edges(no_wait), 1, "one wait orders the third stream after both");
    for (what, wait) in ways {
        assert_eq!(edges(wait), 0, "{what}");
    }
}

#[test]
fn a_fault_is_the_answer_to_every_waiter() {
    let code = Code::ILLEGAL_ADDRESS;
    // A lost device is left as it is found, so only the answers are looked at.
    let faults = FaultPlan::none().on(0, PlannedFault::Sticky { launch: 2, code });
    let machine = Machine::new(MachineConfig::seeded(1).library(library()).faults(faults));
    let gpu = DeviceRuntime::from_driver(machine.device(0).unwrap(), RuntimeConfig::default()).unwrap();
    let spin = gpu.load_kernel(&Image::HostKernels(LIBRARY), "spin", None).unwrap();
    let [to, from, other] = [(); 3].map(|()| gpu.zeros::<u32>(1).unwrap());
    gpu.synchronize().unwrap();
    let [first, second] = [(); 2].map(|()| gpu.stream().unwrap());
    let launch = |stream: &Stream, to: &GpuRef<u32>| {
        let mut launch = gpu.launch(&spin);
        launch.grid(1).block(1);
        launch.on(stream).write(to).read(&from);
        // SAFETY: the kernel touches the first element of each.
        unsafe { launch.submit() }.unwrap()
    };
    // The one that faults is on another stream than one of those who wait.
    let tickets = [launch(&first, &to), launch(&first, &to), launch(&second, &other)];
    let said = |outcome: kiln::Result<bool>| outcome.map_err(|error| (error.code(), error.is_sticky()));
    let lost = Err((Some(code), true));
    std::thread::scope(|scope| {
        let blocked: Vec<_> =
            (0..4).map(|_| scope.spawn(|| said(tickets[1].wait().map(|()| true)))).collect();
        assert!(blocked.into_iter().all(|thread| thread.join().unwrap() == lost));
    });
    assert_eq!(said(tickets[1].is_done()), lost);
    assert_eq!(said(tickets[1].wait_within(Duration::from_secs(1))), lost);
    assert_eq!(said(tickets[2].wait().map(|()| true)), lost, "another stream of the same device");
    assert_eq!(said(Ticket::wait_all(&tickets[1..], Some(Duration::from_secs(1)))), lost);
    assert_eq!(said(first.synchronize().map(|()| true)), lost);
    assert_eq!(said(second.synchronize_within(Duration::from_secs(1))), lost);
    assert_eq!(said(gpu.synchronize().map(|()| true)), lost);
    assert_eq!(said(to.download().map(|_| true)), lost);
    let (tell, told) = std::sync::mpsc::channel();
    tickets[1].on_done(move |outcome| tell.send(outcome.map(|()| true)).unwrap());
    assert_eq!(said(told.recv().unwrap()), lost);
}

#[test]
fn a_limit_that_no_clock_reaches_is_none() {
    Scene::run(Recording::Adaptive, |scene| {
        let [to, from] = scene.buffers();
        let (spin, forever) = (|| scene.spin(0, &to, &from), Duration::MAX);
        assert!(spin().wait_within(forever).unwrap());
        assert!(Ticket::wait_all(&[spin(), spin()], Some(forever)).unwrap());
        spin();
        assert!(scene.streams[0].synchronize_within(forever).unwrap());
        spin();
        assert!(scene.gpu.synchronize_within(forever).unwrap());
        let last = spin();
        assert!(scene.gpu.shutdown(forever).unwrap() && last.is_done().unwrap());
    });
}

#[test]
fn tickets_of_several_devices_and_the_same_one_twice_are_waited_for() {
    let machines = [1, 2].map(|seed| Machine::new(MachineConfig::seeded(seed).library(library())));
    {
        let gpus = machines.each_ref().map(|machine| {
            DeviceRuntime::from_driver(machine.device(0).unwrap(), RuntimeConfig::default()).unwrap()
        });
        let buffers = gpus.each_ref().map(|gpu| gpu.zeros::<u32>(1000).unwrap());
        let [first, second] = buffers.each_ref().map(|buffer| buffer.fill(7).unwrap());
        let nothing = gpus[0].zeros::<u32>(0).unwrap().fill(1).unwrap();
        let all = [first.clone(), second.clone(), first.clone(), nothing, second.clone()];
        assert!(!Ticket::wait_all(&all, Some(Duration::ZERO)).unwrap(), "nothing ran yet");
        assert!(Ticket::wait_all(&all, Some(Duration::from_secs(10))).unwrap());
        assert!(Ticket::wait_all(&all, Some(Duration::ZERO)).unwrap(), "what is done needs no time");
    }
    assert!(machines.iter().all(|machine| machine.finish().is_clean()));
}

#[test]
fn a_future_that_is_told_to_spin_for_ever_ends_with_its_work() {
    let machine = Machine::new(MachineConfig::seeded(1));
    let completion = CompletionConfig { spin: Duration::MAX };
    let config = RuntimeConfig { completion, ..RuntimeConfig::default() };
    let gpu = DeviceRuntime::from_driver(machine.device(0).unwrap(), config).unwrap();
    let mut done = gpu.zeros::<u32>(1000).unwrap().fill(1).unwrap().into_future();
    let mut context = Context::from_waker(Waker::noop());
    assert!(matches!(Pin::new(&mut done).poll(&mut context), Poll::Ready(Ok(()))));
}
