//! A program that holds on to all the events there are: the order is kept without, work that was queued is not denied, and no thread is
//! left behind.

use kiln::order::{MAX_EVENTS, Recording};
use kiln::{DeviceRuntime, GpuRef, RuntimeConfig, Stream, Ticket, foreign::HandedEvent};
use kiln_driver::{Access, Refusal};
use kiln_sim::{Machine, MachineConfig};

use crate::order::kernels::{Kernels, library, mixed};
use crate::order::library::Library;

const LEN: usize = 16;
const SEEDS: u64 = 6;

struct Scene {
    gpu: DeviceRuntime,
    kernels: Kernels,
    /// Streams that have recorded nothing yet.
    streams: [Stream; 3],
    to: GpuRef<u32>,
    from: GpuRef<u32>,
}

impl Scene {
    fn run(recording: Recording, program: impl Fn(&Self)) {
        for seed in 0..SEEDS {
            let machine = Machine::new(MachineConfig::seeded(seed).library(library()));
            {
                let config = RuntimeConfig { recording, ..RuntimeConfig::default() };
                let gpu = DeviceRuntime::from_driver(machine.device(0).unwrap(), config).unwrap();
                let (to, from) = (gpu.upload(&[1; LEN]).unwrap(), gpu.upload(&[2; LEN]).unwrap());
                gpu.synchronize().unwrap();
                let streams = [(); 3].map(|()| gpu.stream().unwrap());
                program(&Self { kernels: Kernels::load(&gpu), gpu, streams, to, from });
            }
            let report = machine.finish();
            assert!(report.is_clean(), "{report}");
        }
    }

    /// Takes events until there are none left, all of work that is done.
    fn take_all_events(&self) -> Vec<HandedEvent> {
        let spare = self.gpu.zeros::<u32>(1).unwrap();
        let mut taken = Vec::new();
        let error = loop {
            match spare.fill(1).unwrap().handed_event() {
                Ok(event) => taken.push(event),
                Err(error) => break error,
            }
        };
        let refusal = error.driver().and_then(|error| error.refusal()).cloned();
        assert!(
            matches!(refusal, Some(Refusal::Limit { limit, .. }) if limit == MAX_EVENTS as u64),
            "{error}"
        );
        taken
    }

    fn mix(&self, stream: &Stream, k: u32) -> kiln::Result<Ticket> {
        let mut launch = self.gpu.launch(&self.kernels.mix);
        launch.grid(1).block(1);
        launch.on(stream).read_write(&self.to).read(&self.from).value(LEN as u32).value(k);
        // SAFETY: the kernel touches `LEN` elements, which both buffers have.
        unsafe { launch.submit() }
    }

    fn expect(&self, factors: &[u32]) {
        let value = factors.iter().fold(1, |old, k| mixed(old, 2, *k));
        assert_eq!(self.to.download().unwrap(), [value; LEN]);
    }
}

/// The stamps of a submission are published before its waits are queued. One that could not be queued must not be forgotten: a caller that comes
/// next waits for the submission alone.
#[test]
fn an_edge_that_no_event_can_make_is_still_there() {
    Scene::run(Recording::OnDemand, |scene| {
        let taken = scene.take_all_events();
        let [first, second, third] = &scene.streams;
        scene.mix(first, 3).unwrap();
        scene.mix(second, 5).unwrap();
        drop(taken);
        scene.mix(third, 7).unwrap();
        scene.expect(&[3, 5, 7]);
    });
}

#[test]
fn work_that_was_queued_is_not_said_to_have_failed() {
    Scene::run(Recording::AtOnce, |scene| {
        let first = scene.streams[0].clone();
        let spare = scene.gpu.zeros::<u32>(1).unwrap();
        let mut taken = Vec::new();
        while let Ok(event) = spare.fill(1).and_then(|ticket| ticket.handed_event()) {
            taken.push(event);
        }
        scene.mix(&first, 3).unwrap();
        spare.fill(2).unwrap();
        let prepared = scene.gpu.prepare_block_use(&first, &[scene.to.used_as(Access::Read)]).unwrap();
        prepared.finish().unwrap();
        drop(taken);
        scene.expect(&[3]);
    });
}

#[test]
fn everything_can_be_waited_for_without_an_event() {
    Scene::run(Recording::OnDemand, |scene| {
        let [first, second, _] = &scene.streams;
        let taken = scene.take_all_events();
        let ticket = scene.mix(first, 3).unwrap();
        ticket.wait().unwrap();
        assert!(ticket.is_done().unwrap());
        let ticket = scene.mix(second, 5).unwrap();
        assert!((0..100_000).any(|_| ticket.is_done().unwrap()), "looks see the end");
        let (tell, told) = std::sync::mpsc::channel();
        let ticket = scene.mix(first, 7).unwrap();
        ticket.on_done(move |outcome| tell.send(outcome.map(|()| true)).unwrap());
        assert!(told.recv().unwrap().unwrap(), "and so do those who want to be called");
        scene.mix(second, 9).unwrap();
        scene.gpu.synchronize().unwrap();
        scene.expect(&[3, 5, 7, 9]);
        drop(taken);
    });
}

#[test]
fn a_stream_that_goes_without_an_event_leaves_its_work_in_order() {
    Scene::run(Recording::OnDemand, |scene| {
        let theirs = Library::new(scene.gpu.driver());
        let imported = theirs.lend_stream(&scene.gpu);
        let taken = scene.take_all_events();
        scene.mix(&imported, 3).unwrap();
        drop(imported);
        scene.mix(&scene.streams[0], 5).unwrap();
        drop(taken);
        scene.mix(&scene.streams[1], 7).unwrap();
        scene.expect(&[3, 5, 7]);
        theirs.close();
    });
}
