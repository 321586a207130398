//! What a thread may ask for while it holds a prepared use: nothing hangs. What would wait for the use is refused before anything is
//! queued or stamped, everything else works, and memory that is dropped meanwhile comes back afterwards.

use std::sync::Arc;
use std::time::Duration;

use kiln::{
    DeviceRuntime, Error, GpuRef, Graph, RuntimeConfig, Stream,
    buffer::{LastWrite, PinnedBuffer},
    error::{ErrorKind, Misuse},
    foreign::ForeignEvent,
    memory::MemoryConfig,
};
use kiln_driver::call::CallKind;
use kiln_driver::layer::{Counting, Layered};
use kiln_driver::{Access, Driver, ForeignMemory, MemoryId, MemoryRequest, StreamId};
use kiln_sim::{Machine, MachineConfig};

use crate::order::kernels::{Kernels, library};
use crate::order::library::Library;

const LEN: usize = 16;

/// All that the calls need, made before the use is prepared.
struct Scene {
    driver: Arc<Layered<Counting>>,
    kernels: Kernels,
    /// The stream of the prepared use.
    stream: Stream,
    /// Another one.
    other: Stream,
    /// The block of the prepared use, which has its home on `other`.
    used: GpuRef<u32>,
    /// Blocks with their home on `stream`.
    to: GpuRef<u32>,
    from: GpuRef<u32>,
    graph: Graph,
    event: ForeignEvent,
    /// Behind what belongs to it, which is given back while it lives.
    gpu: DeviceRuntime,
}

impl Scene {
    fn new(gpu: DeviceRuntime, driver: Arc<Layered<Counting>>, library: &Library) -> Self {
        let (stream, other) = (gpu.stream().unwrap(), gpu.stream().unwrap());
        let filled = |home: &Stream, value| {
            let buffer = gpu.allocate_on::<u32>(home, LEN).unwrap();
            buffer.upload(&[value; LEN]).unwrap();
            buffer
        };
        let (used, to, from) = (filled(&other, 0), filled(&stream, 1), filled(&stream, 2));
        let (graph, _) = gpu.record(|graph| graph.fill(&to, 7)).unwrap();
        library.signal();
        let event = library.lend_event(&gpu);
        let kernels = Kernels::load(&gpu);
        gpu.synchronize().unwrap();
        Self { gpu, driver, kernels, stream, other, used, to, from, graph, event }
    }

    fn launch(&self, on: &Stream, to: &GpuRef<u32>) -> kiln::Result<()> {
        let mut launch = self.gpu.launch(&self.kernels.mix);
        launch.grid(1).block(1);
        launch.on(on).read_write(to).read(&self.from).value(LEN as u32).value(3_u32);
        // SAFETY: the kernel touches `LEN` elements, which every buffer here has.
        unsafe { launch.submit() }.map(drop)
    }

    fn pinned(&self) -> PinnedBuffer<u32> {
        self.gpu.pinned(LEN).unwrap()
    }

    /// Memory of another library, with its home on the stream of the prepared use.
    fn adopt(&self) -> kiln::Result<GpuRef<u32>> {
        let (driver, stream) = (self.gpu.driver().clone(), self.stream.id());
        let memory = driver.allocate(MemoryRequest::Pool { bytes: 4 * LEN as u64, stream }).unwrap();
        // SAFETY: what is handed over keeps the memory.
        let lent = unsafe { ForeignMemory::new(memory.address, memory.bytes) };
        self.gpu.adopt_memory(&self.stream, lent, Theirs { driver, stream, memory: memory.id })
    }

    /// What was queued and stamped so far.
    fn state(&self) -> impl PartialEq + std::fmt::Debug + use<> {
        let latest = |stream: &Stream| stream.ticket().unwrap().stamp().number;
        let writers = [&self.used, &self.to, &self.from].map(GpuRef::last_write_stream);
        (
            self.driver.layer().counts().of(CallKind::Submit),
            latest(&self.stream),
            latest(&self.other),
            writers,
        )
    }
}

/// Memory of another library, which is given back in the order of a stream when it is not used.
struct Theirs {
    driver: Arc<dyn Driver>,
    stream: StreamId,
    memory: MemoryId,
}

impl Drop for Theirs {
    fn drop(&mut self) {
        self.driver.free(self.memory, Some(self.stream)).unwrap();
    }
}

type Call = fn(&Scene) -> kiln::Result<()>;

/// What would wait for the prepared use.
const REFUSED: &[(&str, Call)] = &[
    ("a launch", |scene| scene.launch(&scene.stream, &scene.to)),
    ("a launch elsewhere with the block", |scene| scene.launch(&scene.other, &scene.used)),
    ("a fill", |scene| scene.to.fill(9).map(drop)),
    ("a fill of bytes", |scene| scene.to.fill_bytes(9).map(drop)),
    ("a fill of the block on its home", |scene| scene.used.fill(9).map(drop)),
    ("a copy", |scene| scene.to.copy_from(&scene.from).map(drop)),
    ("a copy elsewhere of the block", |scene| scene.from.copy_from_on(&scene.other, &scene.used).map(drop)),
    ("an upload", |scene| scene.to.upload(&[9; LEN]).map(drop)),
    ("a download", |scene| scene.to.download().map(drop)),
    ("a download of the block", |scene| scene.used.download().map(drop)),
    ("a download to wait for", |scene| scene.to.download_async().map(drop)),
    ("a copy from pinned memory", |scene| scene.pinned().copy_to(&scene.to).map(drop)),
    ("a copy to pinned memory", |scene| scene.pinned().copy_from(&scene.to).map(drop)),
    ("a replay", |scene| scene.graph.replay_on(&scene.stream).map(drop)),
    ("zeros", |scene| scene.gpu.allocate_on::<u32>(&scene.stream, LEN)?.fill(0).map(drop)),
    ("a wait for a ticket", |scene| scene.stream.wait_for(&scene.gpu.zeros::<u32>(LEN)?.fill(1)?)),
    ("a wait for an event", |scene| scene.stream.wait_event(&scene.event)),
    ("a signal of an event", |scene| scene.stream.signal_event(&scene.event)),
    ("a second use", |scene| prepare(scene, &scene.stream, &scene.to)),
    ("a second use elsewhere of the block", |scene| prepare(scene, &scene.other, &scene.used)),
    ("a first use", |scene| {
        scene.gpu.prepare_first_use(&scene.stream, &scene.to, Access::Write)?.finish().map(drop)
    }),
    ("an address", |scene| scene.gpu.raw_device_ptr(&scene.stream, &scene.to, Access::Read).map(drop)),
    ("a recorder", |scene| {
        let mut recorder = scene.gpu.recorder(&scene.stream);
        recorder.read(&scene.to);
        recorder.preflight()?.commit().map(drop)
    }),
    ("a use that is recorded", |scene| scene.to.record_write(&scene.stream).map(drop)),
    ("a foreign use that is recorded", |scene| {
        let uses = [scene.to.used_as(Access::Write)];
        scene.gpu.record_foreign_use(&scene.stream, &uses, &scene.event).map(drop)
    }),
    ("memory of another library", |scene| scene.adopt().map(drop)),
    ("the end", |scene| scene.gpu.shutdown(Duration::from_secs(1)).map(drop)),
];

/// What would not.
const ALLOWED: &[(&str, Call)] = &[
    ("a launch elsewhere", |scene| scene.launch(&scene.other, &scene.gpu.zeros::<u32>(LEN)?)),
    ("a use elsewhere", |scene| prepare(scene, &scene.other, &scene.gpu.zeros::<u32>(LEN)?)),
    ("waiting for the stream", |scene| scene.stream.synchronize()),
    ("waiting for everything", |scene| scene.gpu.synchronize()),
    ("waiting for a while", |scene| scene.gpu.synchronize_within(Duration::from_secs(1)).map(drop)),
    ("looking for free memory", |scene| scene.gpu.reap_pending().map(drop)),
    ("memory", |scene| scene.gpu.allocate_on::<u32>(&scene.stream, LEN).map(drop)),
    ("another stream", |scene| scene.gpu.stream().map(drop)),
];

fn prepare(scene: &Scene, stream: &Stream, block: &GpuRef<u32>) -> kiln::Result<()> {
    scene.gpu.prepare_block_use(stream, &[block.used_as(Access::Write)])?.finish().map(drop)
}

/// Runs something beside another library, on several kinds of memory.
fn run(program: impl Fn(Scene, &Library)) {
    for stack in ["heap", "pool", "direct"] {
        let machine = Machine::new(MachineConfig::seeded(3).library(library()));
        {
            let driver = Arc::new(Layered::new(machine.device(0).unwrap(), Counting::default()));
            let memory = MemoryConfig { stack: stack.parse().unwrap(), ..MemoryConfig::default() };
            let config = RuntimeConfig { memory, ..RuntimeConfig::default() };
            let gpu = DeviceRuntime::from_driver(driver.clone(), config).unwrap();
            let library = Library::new(gpu.driver());
            program(Scene::new(gpu, driver, &library), &library);
            library.close();
        }
        let report = machine.finish();
        assert!(report.is_clean(), "{report}");
    }
}

fn is_refused_for(error: &Error, stream: &Stream) -> bool {
    matches!(error.kind(), ErrorKind::Misuse(Misuse::Prepared { stream: named }) if *named == stream.id().to_string())
}

#[test]
fn what_would_wait_for_the_use_is_refused_and_does_nothing() {
    run(|scene, library| {
        for (what, call) in REFUSED {
            // Made before, so that nothing but the call itself is counted.
            let prepared =
                scene.gpu.prepare_block_use(&scene.stream, &[scene.used.used_as(Access::Write)]).unwrap();
            library.fill_on(prepared.stream(), &scene.used, 5);
            let before = scene.state();
            let error = call(&scene).expect_err(what);
            assert!(is_refused_for(&error, &scene.stream), "{what}: {error}");
            let counted = *what == "a wait for a ticket";
            assert!(counted || scene.state() == before, "{what}: {before:?} became {:?}", scene.state());
            assert_eq!(prepared.finish().unwrap().stamp().stream, scene.stream.key(), "{what}");
            assert!(scene.gpu.state().is_ready(), "{what}");
            if *what != "the end" {
                call(&scene).unwrap_or_else(|error| panic!("{what}, after the use: {error}"));
            }
            scene.used.upload(&[5; LEN]).unwrap();
            scene.gpu.synchronize().unwrap();
        }
        assert_eq!(scene.gpu.unfinished_uses(), 0);
    });
}

#[test]
fn what_would_not_wait_works() {
    run(|scene, library| {
        for (what, call) in ALLOWED {
            let prepared =
                scene.gpu.prepare_block_use(&scene.stream, &[scene.used.used_as(Access::Write)]).unwrap();
            library.fill_on(prepared.stream(), &scene.used, 5);
            call(&scene).unwrap_or_else(|error| panic!("{what}: {error}"));
            prepared.finish().unwrap();
            assert_eq!(scene.used.download().unwrap(), [5; LEN], "{what}");
        }
    });
}

#[test]
fn memory_that_is_dropped_meanwhile_comes_back_afterwards() {
    run(|scene, library| {
        let Scene { gpu, stream, other, .. } = &scene;
        let (home_here, home_elsewhere) =
            (gpu.allocate_on::<u32>(stream, LEN).unwrap(), gpu.allocate_on::<u32>(other, LEN).unwrap());
        let (adopted, read) = (scene.adopt().unwrap(), gpu.allocate_on::<u32>(stream, LEN).unwrap());
        for block in [&home_here, &home_elsewhere, &read] {
            block.fill(3).unwrap();
        }
        gpu.synchronize().unwrap();
        // More streams than memory can name are joined by waits, on the home of the block.
        let streams: Vec<Stream> = (0..8).map(|_| gpu.stream().unwrap()).collect();
        let copied = |on: &Stream| {
            let copy = gpu.allocate_on::<u32>(on, LEN).unwrap();
            copy.copy_from_on(on, &read).unwrap();
            copy
        };
        let copies: Vec<_> = streams.iter().map(copied).collect();
        let before = gpu.bytes_outstanding();
        let dropped = read.bytes() + home_here.bytes() + home_elsewhere.bytes();

        let blocks = [&home_here, &home_elsewhere, &adopted];
        let prepared =
            gpu.prepare_block_use(stream, &blocks.map(|block| block.used_as(Access::Write))).unwrap();
        blocks.iter().for_each(|block| library.fill_on(prepared.stream(), block, 6));
        let second = gpu.prepare_first_use(other, &scene.to, Access::Write).unwrap();
        drop((read, home_here, home_elsewhere, adopted));
        assert_eq!(
            gpu.bytes_outstanding(),
            before,
            "nothing is given back while the work may still be queued"
        );
        prepared.finish().unwrap();
        assert_eq!(gpu.bytes_outstanding(), before, "nor while the thread holds another use");
        second.finish().unwrap();
        gpu.synchronize().unwrap();
        gpu.reap_pending().unwrap();
        assert!(gpu.bytes_outstanding() <= before - dropped, "all of it is given back then");
        // A thread that gets the memory comes after the work.
        let next: Vec<_> = (0..4).map(|_| gpu.allocate_on::<u32>(other, LEN).unwrap()).collect();
        for block in &next {
            block.fill(1).unwrap();
        }
        assert!(copies.iter().all(|copy| copy.download().unwrap() == [3; LEN]));
    });
}

#[test]
fn another_thread_waits_for_the_use_as_ever() {
    run(|scene, library| {
        let prepared =
            scene.gpu.prepare_block_use(&scene.stream, &[scene.to.used_as(Access::Write)]).unwrap();
        library.fill_on(prepared.stream(), &scene.to, 8);
        std::thread::scope(|scope| {
            let copy = scope.spawn(|| scene.from.copy_from(&scene.to).unwrap());
            prepared.finish().unwrap();
            copy.join().unwrap();
        });
        assert_eq!(scene.from.download().unwrap(), [8; LEN]);
    });
}

#[test]
fn a_use_that_is_forgotten_keeps_no_runtime_from_ending() {
    let machine = Machine::new(MachineConfig::seeded(3));
    let gpu = DeviceRuntime::from_driver(machine.device(0).unwrap(), RuntimeConfig::default()).unwrap();
    let block = gpu.zeros::<u32>(LEN).unwrap();
    std::mem::forget(gpu.prepare_block_use(gpu.main_stream(), &[block.used_as(Access::Write)]).unwrap());
    assert!(is_refused_for(&block.fill(1).unwrap_err(), gpu.main_stream()));
    drop(gpu);
    assert!(block.access().is_err(), "the runtime is gone, and the test is not");
}

#[test]
fn any_number_of_blocks_needs_no_more_stack() {
    const BLOCKS: usize = 8_000;
    let machine = Machine::new(MachineConfig::seeded(1));
    let program = || {
        let gpu = DeviceRuntime::from_driver(machine.device(0).unwrap(), RuntimeConfig::default()).unwrap();
        let blocks: Vec<GpuRef<u8>> = (0..BLOCKS).map(|_| gpu.allocate(1).unwrap()).collect();
        let mut uses: Vec<_> = blocks.iter().map(|block| block.used_as(Access::Write)).collect();
        gpu.prepare_block_use(gpu.main_stream(), &uses).unwrap().finish().unwrap();
        // One of them twice, so that they are taken in order.
        let stream = gpu.stream().unwrap();
        uses[0] = blocks[0].used_as(Access::Read);
        uses.push(blocks[0].used_as(Access::Write));
        gpu.prepare_block_use(&stream, &uses).unwrap().finish().unwrap();
        assert!(blocks.iter().all(|block| block.last_write_stream() == LastWrite::Stream(stream.key())));
    };
    std::thread::scope(|scope| {
        let small = std::thread::Builder::new().stack_size(256 << 10);
        small.spawn_scoped(scope, program).unwrap().join().unwrap();
    });
    let report = machine.finish();
    assert!(report.is_clean(), "{report}");
}

#[test]
fn a_thread_that_panics_with_a_use_ends_it() {
    let machine = Machine::new(MachineConfig::seeded(1));
    {
        let gpu = DeviceRuntime::from_driver(machine.device(0).unwrap(), RuntimeConfig::default()).unwrap();
        let (buffer, stream) = (gpu.upload(&[1_u32; LEN]).unwrap(), gpu.stream().unwrap());
        let dropped = gpu.zeros::<u32>(LEN).unwrap();
        let died = std::thread::scope(|scope| {
            let thread = scope.spawn(|| {
                let _used = gpu.prepare_block_use(&stream, &[buffer.used_as(Access::Write)]).unwrap();
                // Put off until the use ends, which it does as the thread is unwound.
                drop(dropped);
                std::panic::resume_unwind(Box::new("as planned"));
            });
            thread.join().is_err()
        });
        assert!(died);
        assert_eq!(gpu.unfinished_uses(), 1, "it was never finished");
        assert_eq!(buffer.last_write_stream(), LastWrite::Stream(stream.key()), "and may have been queued");
        buffer.fill_on(&stream, 2).unwrap();
        assert_eq!(buffer.download().unwrap(), [2; LEN], "others go on");
        drop(buffer);
        gpu.synchronize().unwrap();
        gpu.reap_pending().unwrap();
        assert_eq!(gpu.bytes_outstanding(), 0);
    }
    let report = machine.finish();
    assert!(report.is_clean(), "{report}");
}

#[test]
fn the_end_of_a_device_waits_no_longer_than_it_is_told_for_the_use_of_another_thread() {
    let machine = Machine::new(MachineConfig::seeded(1));
    {
        let gpu = DeviceRuntime::from_driver(machine.device(0).unwrap(), RuntimeConfig::default()).unwrap();
        let buffer = gpu.upload(&[1_u32; LEN]).unwrap();
        gpu.synchronize().unwrap();
        let used = gpu.prepare_block_use(gpu.main_stream(), &[buffer.used_as(Access::Read)]).unwrap();
        std::thread::scope(|scope| {
            let ending = scope.spawn(|| gpu.shutdown(Duration::from_millis(20)).unwrap());
            assert!(!ending.join().unwrap(), "a use is still under way");
        });
        let ticket = used.finish().unwrap();
        assert!(gpu.shutdown(Duration::from_secs(10)).unwrap() && ticket.is_done().unwrap());
    }
    let report = machine.finish();
    assert!(report.is_clean(), "{report}");
}
