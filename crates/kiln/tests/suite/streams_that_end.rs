//! Streams that go away before what they had to do with: their work, their blocks, and those who come after.

use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use kiln::order::MAX_STREAMS;
use kiln::{DeviceRuntime, GpuRef, RuntimeConfig, Stream, buffer::LastWrite, memory::MemoryConfig};
use kiln_driver::call::{Call, CallKind};
use kiln_driver::layer::{Counting, Layer, Layered};
use kiln_driver::{Access, Command, Driver, ForeignHandle, Pattern, Refusal, StreamId, StreamRequest};
use kiln_sim::{Machine, MachineConfig};

const LEN: usize = 16;
const SEEDS: u64 = 30;
/// Every base, and a layer that asks the device what it holds.
const STACKS: [&str; 6] = ["heap", "chunks", "pages", "direct", "pool", "stats(pool)"];

struct Scene {
    driver: Arc<Layered<Counting>>,
    gpu: DeviceRuntime,
}

impl Scene {
    fn run(seeds: u64, program: impl Fn(&Self)) {
        Self::run_with("heap", seeds, program);
    }

    /// As `run`, with memory of another kind.
    fn run_with(stack: &str, seeds: u64, program: impl Fn(&Self)) {
        for seed in 0..seeds {
            let machine = Machine::new(MachineConfig::seeded(seed));
            {
                let driver = Arc::new(Layered::new(machine.device(0).unwrap(), Counting::default()));
                let memory = MemoryConfig { stack: stack.parse().unwrap(), ..MemoryConfig::default() };
                let config = RuntimeConfig { memory, ..RuntimeConfig::default() };
                let gpu = DeviceRuntime::from_driver(driver.clone(), config).unwrap();
                program(&Self { driver, gpu });
            }
            let report = machine.finish();
            assert!(report.is_clean(), "{stack}: {report}");
        }
    }

    /// A stream of another library, and the same as kiln takes it in.
    fn foreign(&self) -> (StreamId, Stream) {
        let theirs = self.driver.create_stream(StreamRequest::New { priority: 0 }).unwrap();
        (theirs, self.import(theirs).unwrap())
    }

    fn import(&self, theirs: StreamId) -> kiln::Result<Stream> {
        // SAFETY: the caller destroys the stream after kiln has given its name back.
        self.gpu.streams().import(unsafe { ForeignHandle::new(self.driver.native(theirs.into())?) })
    }

    fn write(&self, stream: &Stream, to: &GpuRef<u32>, value: u32) {
        let used = self.gpu.prepare_block_use(stream, &[to.used_as(Access::Write)]).unwrap();
        let (to, count) = (to.place().unwrap(), to.len() as u64);
        let fill = Command::Fill { to, pattern: Pattern::U32(value), count };
        self.driver.submit(used.stream(), &fill).unwrap();
        used.finish().unwrap();
    }
}

#[test]
fn the_last_handle_goes_after_its_stream() {
    for stack in STACKS {
        the_last_handle_of(stack);
    }
}

fn the_last_handle_of(stack: &str) {
    Scene::run_with(stack, SEEDS, |scene| {
        let Scene { driver, gpu } = scene;
        let (theirs, home) = scene.foreign();
        let other = gpu.stream().unwrap();
        let mut buffers = [(); 3].map(|()| Some(gpu.allocate_on::<u32>(&home, LEN).unwrap()));
        for (at, buffer) in buffers.iter().flatten().enumerate() {
            scene.write(&home, buffer, at as u32);
        }
        let key = home.key();
        drop(home);
        // Its owner does not wait for its work either.
        driver.destroy(theirs.into()).unwrap();
        // One was used nowhere else, one elsewhere since, and one goes on being used.
        scene.write(&other, buffers[1].as_ref().unwrap(), 11);
        let before = driver.layer().counts();
        drop((buffers[0].take(), buffers[1].take()));
        assert_eq!(driver.layer().counts().since(&before).of(CallKind::Wait), 0, "no thread is held up");
        let reused: Vec<GpuRef<u32>> = (0..8).map(|_| gpu.allocate::<u32>(LEN).unwrap()).collect();
        for (at, buffer) in reused.iter().enumerate() {
            buffer.fill(100 + at as u32).unwrap();
        }
        let last = buffers[2].take().unwrap();
        assert_eq!((last.download().unwrap(), last.home()), (vec![2; LEN], gpu.main_stream().key()));
        assert_eq!((last.last_write_stream(), gpu.streams().find(key)), (LastWrite::StreamGone, None));
        for (at, buffer) in reused.iter().enumerate() {
            assert_eq!(buffer.download().unwrap(), [100 + at as u32; LEN]);
        }
        // Work that names no stream goes to the main one.
        assert_eq!(last.fill(5).unwrap().stamp().stream, gpu.main_stream().key());
        drop((last, reused, other));
        gpu.synchronize().unwrap();
        gpu.reap_pending().unwrap();
        assert_eq!(gpu.bytes_outstanding(), 0, "nothing is kept for a stream that is gone");
    });
}

#[test]
fn streams_come_and_go_more_often_than_there_is_room_for() {
    Scene::run(3, |scene| {
        let Scene { driver, gpu } = scene;
        let buffer = gpu.zeros::<u32>(LEN).unwrap();
        // No thread waits on the host, as in a program that takes another library's stream in for each of its calls.
        let (waits, mut expected) = (driver.layer().counts(), 0);
        let turns = 3 * MAX_STREAMS as u32;
        for turn in 0..turns {
            let (theirs, stream) = scene.foreign();
            scene.write(&stream, &buffer, turn);
            expected = turn;
            drop(stream);
            driver.destroy(theirs.into()).unwrap();
        }
        let asked = driver.layer().counts().since(&waits).of(CallKind::Wait);
        assert!(asked <= 4 * u64::from(turns), "{asked} looks at streams that were given back");
        assert_eq!(buffer.download().unwrap(), [expected; LEN]);
    });
}

#[test]
fn blocks_do_not_keep_the_place_of_a_stream_that_is_gone() {
    Scene::run(3, |scene| {
        let Scene { driver, gpu } = scene;
        let mut homeless = Vec::new();
        for turn in 0..2 * MAX_STREAMS as u32 {
            let (theirs, stream) = scene.foreign();
            let buffer = gpu.allocate_on::<u32>(&stream, LEN).unwrap();
            // Every third is never used on its stream.
            if turn % 3 != 0 {
                scene.write(&stream, &buffer, turn);
            }
            homeless.push(buffer);
            drop(stream);
            driver.destroy(theirs.into()).unwrap();
        }
        for (turn, buffer) in homeless.iter().enumerate() {
            if turn % 3 != 0 {
                assert_eq!(buffer.download().unwrap(), [turn as u32; LEN]);
            }
            buffer.fill(7).unwrap();
        }
        // All of the memory is used again, by one stream, right behind those who had it.
        drop(homeless);
        let again: Vec<_> = (0..2 * MAX_STREAMS).map(|_| gpu.upload(&[9_u32; LEN]).unwrap()).collect();
        assert!(again.iter().all(|buffer| buffer.download().unwrap() == [9; LEN]));
        drop(again);
        gpu.synchronize().unwrap();
        gpu.reap_pending().unwrap();
        assert_eq!(gpu.bytes_outstanding(), 0);
    });
}

#[test]
fn room_that_is_taken_over_is_in_order_after_its_last_owner() {
    Scene::run(SEEDS, |scene| {
        let Scene { driver, gpu } = scene;
        let buffers: Vec<GpuRef<u32>> = (0..4).map(|_| gpu.zeros::<u32>(LEN).unwrap()).collect();
        let mut expected = [0; 4];
        for turn in 0..2 * MAX_STREAMS as u32 {
            let (theirs, stream) = scene.foreign();
            let at = turn as usize % 3;
            scene.write(&stream, &buffers[at], turn);
            // A stream that has the place of one that is gone must not take that one's work for its own.
            buffers[at + 1].copy_from_on(&stream, &buffers[at]).unwrap();
            (expected[at], expected[at + 1]) = (turn, turn);
            drop(stream);
            driver.destroy(theirs.into()).unwrap();
        }
        for (buffer, value) in buffers.iter().zip(expected) {
            assert_eq!(buffer.download().unwrap(), [value; LEN]);
        }
    });
}

/// Streams of each priority are made as they are asked for. Those that no thread has any more do not stand in the way of others.
#[test]
fn idle_streams_of_one_priority_make_room_for_those_of_another() {
    Scene::run(3, |scene| {
        let Scene { driver, gpu } = scene;
        let priorities = gpu.info().limits.priorities;
        let buffer = gpu.zeros::<u32>(LEN).unwrap();
        let mut expected = 0;
        for round in 0..2 {
            for priority in priorities.highest..=priorities.lowest {
                let leases: Vec<Stream> = (0..gpu.streams().limit())
                    .map(|_| gpu.streams().lease_with_priority(priority).unwrap())
                    .collect();
                // A thread that makes room does not wait for this.
                expected = (round * 100 - priority) as u32;
                for stream in &leases {
                    buffer.fill_on(stream, expected).unwrap();
                }
            }
        }
        let (theirs, stream) = scene.foreign();
        scene.write(&stream, &buffer, expected + 1);
        assert_eq!(buffer.download().unwrap(), [expected + 1; LEN]);
        drop(stream);
        driver.destroy(theirs.into()).unwrap();
    });
}

/// More streams than memory can name used a block, and its own, which could have waited for them, is gone.
#[test]
fn many_streams_use_a_block_whose_home_is_gone() {
    for stack in STACKS {
        Scene::run_with(stack, SEEDS / 3, |scene| {
            let Scene { driver, gpu } = scene;
            let (theirs, home) = scene.foreign();
            let buffer = gpu.allocate_on::<u32>(&home, LEN).unwrap();
            scene.write(&home, &buffer, 1);
            drop(home);
            driver.destroy(theirs.into()).unwrap();
            let streams: Vec<Stream> = (0..7).map(|_| gpu.stream().unwrap()).collect();
            let copies: Vec<GpuRef<u32>> = (0..7).map(|_| gpu.allocate(LEN).unwrap()).collect();
            for (stream, copy) in streams.iter().zip(&copies) {
                copy.copy_from_on(stream, &buffer).unwrap();
            }
            // A thread that gets the memory next, on whichever stream, comes after all of them.
            drop(buffer);
            let heirs: Vec<GpuRef<u32>> = (0..4).map(|_| gpu.allocate(LEN).unwrap()).collect();
            for heir in &heirs {
                heir.fill(9).unwrap();
            }
            let elsewhere = gpu.allocate_on::<u32>(&streams[0], LEN).unwrap();
            elsewhere.fill(9).unwrap();
            assert!(copies.iter().all(|copy| copy.download().unwrap() == [1; LEN]));
        });
    }
}

#[test]
fn a_stream_is_not_taken_for_the_last_owner_of_its_place() {
    Scene::run(3, |scene| {
        let Scene { driver, gpu } = scene;
        let (reader, buffer, seen) =
            (gpu.stream().unwrap(), gpu.zeros(LEN).unwrap(), gpu.zeros::<u32>(LEN).unwrap());
        let (theirs, first) = scene.foreign();
        // Holds on to what is known of its home, which is gone soon.
        let kept = gpu.allocate_on::<u32>(&first, LEN).unwrap();
        scene.write(&first, &buffer, 1);
        seen.copy_from_on(&reader, &buffer).unwrap();
        let key = first.key();
        drop(first);
        driver.destroy(theirs.into()).unwrap();
        let (theirs, mut taken) =
            (driver.create_stream(StreamRequest::New { priority: 0 }).unwrap(), Vec::new());
        while taken.last().is_none_or(|stream: &Stream| stream.key() != key) {
            taken.push(scene.import(theirs).unwrap());
        }
        // The reader has waited for that place before, and it is another stream's now.
        scene.write(&taken[taken.len() - 1], &buffer, 2);
        seen.copy_from_on(&reader, &buffer).unwrap();
        assert_eq!(seen.download().unwrap(), [2; LEN]);
        drop((kept, taken));
        gpu.synchronize().unwrap();
        driver.destroy(theirs.into()).unwrap();
    });
}

#[test]
fn more_streams_at_once_than_there_is_room_for_are_refused_until_one_goes() {
    Scene::run(1, |scene| {
        let theirs = scene.driver.create_stream(StreamRequest::New { priority: 0 }).unwrap();
        let mut taken = Vec::new();
        let error = loop {
            match scene.import(theirs) {
                Ok(stream) => taken.push(stream),
                Err(error) => break error,
            }
        };
        assert_eq!(taken.len(), MAX_STREAMS - 1, "the main stream has one place");
        let refusal = error.driver().and_then(|error| error.refusal()).cloned();
        assert!(
            matches!(refusal, Some(Refusal::Limit { limit, .. }) if limit == MAX_STREAMS as u64),
            "{error}"
        );
        taken.pop();
        taken.push(scene.import(theirs).unwrap());
        assert!(scene.import(theirs).is_err() && scene.gpu.stream().is_err());
        drop(taken);
        let lease = scene.gpu.stream().unwrap();
        scene.gpu.zeros::<u32>(LEN).unwrap().upload_on(&lease, &[1; LEN]).unwrap().wait().unwrap();
        scene.driver.destroy(theirs.into()).unwrap();
    });
}

/// The memory of a runtime goes with it, also where a handle is still held; only the device knows of it afterwards.
#[test]
fn a_handle_that_outlives_its_runtime_leaves_nothing_behind() {
    for stack in STACKS {
        for seed in 0..3 {
            let machine = Machine::new(MachineConfig::seeded(seed));
            let driver = machine.device(0).unwrap();
            let memory = MemoryConfig { stack: stack.parse().unwrap(), ..MemoryConfig::default() };
            let config = RuntimeConfig { memory, ..RuntimeConfig::default() };
            let gpu = DeviceRuntime::from_driver(driver.clone(), config).unwrap();
            let budget = gpu.budget();
            let (here, elsewhere) = (gpu.upload(&[1_u32; LEN]).unwrap(), gpu.stream().unwrap());
            let there = gpu.allocate_on::<u32>(&elsewhere, LEN).unwrap();
            there.copy_from_on(&elsewhere, &here).unwrap();
            let pinned = gpu.pinned::<u32>(LEN).unwrap();
            pinned.copy_to(&here).unwrap();
            let (graph, _) = gpu.record(|graph| graph.fill(&there, 7)).unwrap();
            graph.replay().unwrap();
            drop(gpu);
            assert_eq!(budget.used_bytes(), 0, "{stack}");
            assert!(here.download().is_err() && there.fill(1).is_err() && pinned.read().is_err());
            assert!(graph.replay().is_err());
            drop(driver);
            let report = machine.finish();
            assert!(report.is_clean(), "{stack}: {report}");
            drop((here, there, pinned, graph));
        }
    }
}

/// A stream that is given back between the choice of a buffer's home and the work that is to go there.
#[test]
fn a_stream_that_ends_at_the_last_moment_harms_no_submission() {
    #[derive(Default)]
    struct Dropping(Mutex<Option<Stream>>);
    impl Layer for Dropping {
        fn before(&self, _: &dyn Driver, call: &Call<'_>) -> kiln_driver::Result<()> {
            if matches!(call, Call::AllocateHost { .. }) {
                drop(self.0.lock().unwrap().take());
            }
            Ok(())
        }
    }
    let machine = Machine::new(MachineConfig::seeded(1));
    {
        let driver = Arc::new(Layered::new(machine.device(0).unwrap(), Dropping::default()));
        let gpu = DeviceRuntime::from_driver(driver.clone(), RuntimeConfig::default()).unwrap();
        let theirs = driver.create_stream(StreamRequest::New { priority: 0 }).unwrap();
        // SAFETY: the stream is destroyed after kiln has given its name back.
        let handle = unsafe { ForeignHandle::new(driver.native(theirs.into()).unwrap()) };
        let home = gpu.streams().import(handle).unwrap();
        let buffer = gpu.allocate_on::<u32>(&home, LEN).unwrap();
        buffer.fill(4).unwrap();
        *driver.layer().0.lock().unwrap() = Some(home);
        // Its pinned memory is asked for when the home is chosen already.
        let download = buffer.download_async().unwrap();
        assert!(driver.layer().0.lock().unwrap().is_none(), "the stream went meanwhile");
        let mut download = std::pin::pin!(download);
        let seen = loop {
            let mut context = Context::from_waker(Waker::noop());
            if let Poll::Ready(seen) = download.as_mut().poll(&mut context) {
                break seen.unwrap();
            }
        };
        assert_eq!(seen, [4; LEN]);
        driver.destroy(theirs.into()).unwrap();
    }
    let report = machine.finish();
    assert!(report.is_clean(), "{report}");
}
