//! When events are recorded: never for work that stays, on demand at first, at once for a stream whose results keep being consumed
//! before its later work, and on demand again when no thread asks any more.

use std::sync::{Arc, Mutex};

use kiln::order::Recording;
use kiln::{DeviceRuntime, GpuRef, RuntimeConfig, Stream};
use kiln_driver::call::Call;
use kiln_driver::layer::{CommandKind, Counting, Layer, Layered};
use kiln_driver::{Driver, EventRequest};
use kiln_sim::{Machine, MachineConfig};

use crate::order::kernels::{Kernels, library};

const LEN: usize = 4;
/// More than a stream needs to change its mind, either way.
const ENOUGH: usize = 100;

struct Scene {
    driver: Arc<Layered<Counting>>,
    gpu: DeviceRuntime,
    kernels: Kernels,
    producer: Stream,
    consumer: Stream,
    result: GpuRef<u32>,
    later: GpuRef<u32>,
    sum: GpuRef<u32>,
    constant: GpuRef<u32>,
}

impl Scene {
    fn run(recording: Recording, program: impl FnOnce(&Self)) {
        let machine = Machine::new(MachineConfig::seeded(1).library(library()));
        {
            let driver = Arc::new(Layered::new(machine.device(0).unwrap(), Counting::default()));
            let config = RuntimeConfig { recording, ..RuntimeConfig::default() };
            let gpu = DeviceRuntime::from_driver(driver.clone(), config).unwrap();
            let buffer = || gpu.upload(&[1_u32; LEN]).unwrap();
            let (result, later, sum, constant) = (buffer(), buffer(), buffer(), buffer());
            let (producer, consumer) = (gpu.stream().unwrap(), gpu.stream().unwrap());
            gpu.synchronize().unwrap();
            let kernels = Kernels::load(&gpu);
            program(&Self { driver, gpu, kernels, producer, consumer, result, later, sum, constant });
        }
        let report = machine.finish();
        assert!(report.is_clean(), "{report}");
    }

    fn mix(&self, stream: &Stream, to: &GpuRef<u32>, from: &GpuRef<u32>) {
        let mut launch = self.gpu.launch(&self.kernels.mix);
        launch.grid(1).block(1);
        launch.on(stream).read_write(to).read(from).value(LEN as u32).value(1_u32);
        // SAFETY: the kernel touches `LEN` elements, which both buffers have.
        unsafe { launch.submit() }.unwrap();
    }

    /// Work of the producer that no thread else looks at; how many events it took.
    fn stay(&self) -> u64 {
        self.events(|| self.mix(&self.producer, &self.later, &self.constant))
    }

    /// A result, work behind it, and a consumer that wants the result alone.
    fn consume_early(&self) {
        self.mix(&self.producer, &self.result, &self.constant);
        self.mix(&self.producer, &self.later, &self.constant);
        self.mix(&self.consumer, &self.sum, &self.result);
    }

    fn events(&self, work: impl FnOnce()) -> u64 {
        let before = self.driver.layer().counts();
        work();
        self.driver.layer().counts().since(&before).submitted(CommandKind::Signal)
    }
}

#[test]
fn work_that_stays_records_nothing() {
    Scene::run(Recording::Adaptive, |scene| {
        assert_eq!((0..ENOUGH).map(|_| scene.stay()).sum::<u64>(), 0);
    });
}

#[test]
fn a_stream_whose_results_keep_being_consumed_early_records_at_once() {
    Scene::run(Recording::Adaptive, |scene| {
        assert_eq!(scene.stay(), 0, "on demand at first");
        (0..ENOUGH).for_each(|_| scene.consume_early());
        assert_eq!(scene.stay(), 1, "at once, by now");
        let recorded: u64 = (0..ENOUGH).map(|_| scene.stay()).sum();
        assert!((1..ENOUGH as u64).contains(&recorded), "for a while: {recorded}");
        assert_eq!(scene.stay(), 0, "and on demand again, since no thread asked");
    });
}

#[test]
fn what_was_asked_for_is_not_changed() {
    Scene::run(Recording::OnDemand, |scene| {
        (0..ENOUGH).for_each(|_| scene.consume_early());
        assert_eq!(scene.stay(), 0);
    });
    Scene::run(Recording::AtOnce, |scene| {
        assert_eq!((0..ENOUGH).map(|_| scene.stay()).sum::<u64>(), ENOUGH as u64);
    });
}

/// Events of the order are made once, without timing, and used again once their point is past.
#[test]
fn events_are_few_and_tell_no_time() {
    struct Requests(Mutex<Vec<EventRequest>>);
    impl Layer for Requests {
        fn before(&self, _: &dyn Driver, call: &Call<'_>) -> kiln_driver::Result<()> {
            if let Call::CreateEvent { request } = call {
                self.0.lock().unwrap().push(*request);
            }
            Ok(())
        }
    }
    for recording in [Recording::Adaptive, Recording::OnDemand, Recording::AtOnce] {
        let machine = Machine::new(MachineConfig::seeded(1));
        {
            let requests = Requests(Mutex::default());
            let driver = Arc::new(Layered::new(machine.device(0).unwrap(), requests));
            let config = RuntimeConfig { recording, ..RuntimeConfig::default() };
            let gpu = DeviceRuntime::from_driver(driver.clone(), config).unwrap();
            let streams = [(); 3].map(|()| gpu.stream().unwrap());
            let buffer = gpu.zeros::<u32>(LEN).unwrap();
            for turn in 0..3 * ENOUGH {
                // Each comes after the last, on another stream, and now and then the host looks.
                let ticket = buffer.upload_on(&streams[turn % 3], &[turn as u32; LEN]).unwrap();
                if turn % 50 == 49 {
                    ticket.wait().unwrap();
                }
            }
            let made = driver.layer().0.lock().unwrap().clone();
            assert!(made.iter().all(|request| *request == EventRequest::Plain), "{made:?}");
            assert!(made.len() <= 3 * ENOUGH / 4, "{recording:?} made {} events", made.len());
        }
        let report = machine.finish();
        assert!(report.is_clean(), "{report}");
    }
}
