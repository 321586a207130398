//! The submission step and the lock, in interleavings that a scheduler picks.

#![cfg(kiln_shuttle)]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test stops at the first surprise"
)]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use kiln_driver::call::Call;
use kiln_driver::layer::{Layer, Layered};
use kiln_driver::{
    Access, Command, DeviceMemory, Driver, DriverExt, MemoryRequest, Pattern, Place, StreamRequest, Timeout,
};
use kiln_order::{
    AccessHistory, DependencyTracker, MAX_STREAMS, Mutation, Recording, Rules, Stamp, StreamState, Use,
};
use kiln_sim::{Machine, MachineConfig};
use kiln_sync::BiasedLock;
use shuttle::scheduler::{PctScheduler, RandomScheduler};
use shuttle::thread;
use shuttle::{Config, Runner};

const WORDS: u64 = 4;
const ROUNDS: usize = 400;

/// Runs a program in many interleavings: half of them random, half with few switches at places that matter.
fn explore(program: impl Fn() + Send + Sync + Clone + 'static) {
    let config = || {
        let mut config = Config::new();
        config.stack_size = 1 << 20;
        config.failure_persistence = shuttle::FailurePersistence::None;
        config
    };
    Runner::new(RandomScheduler::new(ROUNDS), config()).run(program.clone());
    Runner::new(PctScheduler::new(3, ROUNDS), config()).run(program);
}

/// Lets other threads run before each driver call, which takes its time on a device.
struct Yielding;

impl Layer for Yielding {
    fn before(&self, _: &dyn Driver, _: &Call<'_>) -> kiln_driver::Result<()> {
        thread::yield_now();
        Ok(())
    }
}

/// Blocks of a simulated device and an order over it.
struct World {
    machine: Machine,
    driver: Arc<dyn Driver>,
    tracker: DependencyTracker,
    blocks: Vec<(DeviceMemory, BiasedLock<AccessHistory>)>,
}

impl World {
    /// Blocks whose words are all their index.
    fn new(blocks: u32, recording: Recording, mutation: Option<Mutation>) -> Arc<Self> {
        let machine = Machine::new(MachineConfig::seeded(1));
        let driver: Arc<dyn Driver> = Arc::new(Layered::new(machine.device(0).unwrap(), Yielding));
        let tracker = DependencyTracker::new(driver.clone(), recording).with_rules(Rules::without(mutation));
        let block = |_| {
            let memory = driver.allocate(MemoryRequest::Direct { bytes: 4 * WORDS }).unwrap();
            (memory, BiasedLock::new(AccessHistory::new(4 * WORDS, Stamp::default())))
        };
        let blocks = (0..blocks).map(block).collect();
        let world = Self { machine, driver, tracker, blocks };
        let stream = world.stream();
        for at in 0..world.blocks.len() {
            let to = world.blocks[at].0.id.into();
            let fill = Command::Fill { to, pattern: Pattern::U32(at as u32), count: WORDS };
            world.tracker.submit(&stream, &mut [world.used(at, Access::Write)], run(fill)).unwrap();
        }
        Arc::new(world)
    }

    fn stream(&self) -> Arc<StreamState> {
        let stream = self.driver.create_stream(StreamRequest::New { priority: 0 }).unwrap();
        self.tracker.add(stream).unwrap()
    }

    fn used(&self, block: usize, access: Access) -> Use<'_> {
        Use { history: &self.blocks[block].1, range: 0..4 * WORDS, access, argument: block as u16 }
    }

    /// Copies one block over another, in the order of a stream.
    fn copy(&self, stream: &StreamState, from: usize, to: usize) -> Stamp {
        let place = |at: usize| Place::Device(self.blocks[at].0.id.into());
        let copy = Command::Copy { from: place(from), to: place(to), bytes: 4 * WORDS };
        let mut uses = [self.used(from, Access::Read), self.used(to, Access::Write)];
        self.tracker.submit(stream, &mut uses, run(copy)).unwrap_or_else(|error| panic!("{error:?}"))
    }

    /// The first word of each block, once everything is done.
    fn words(&self) -> Vec<u32> {
        let stream = self.driver.create_stream(StreamRequest::New { priority: 0 }).unwrap();
        for stamp in self.tracker.latest_stamps() {
            let _ = self.tracker.wait(stamp, Timeout::Never).unwrap();
        }
        let read = |(memory, _): &(DeviceMemory, _)| {
            let host = self.driver.allocate_host(4).unwrap();
            self.driver.download(stream, memory.id.into(), &host, 4).unwrap();
            self.driver.synchronize(stream).unwrap();
            let mut word = [0; 4];
            assert!(host.read(0, &mut word));
            u32::from_ne_bytes(word)
        };
        self.blocks.iter().map(read).collect()
    }

    /// The device saw no race and no use of what was given back.
    fn assert_ordered(&self) {
        let leak = |found: &&kiln_sim::Finding| found.kind != kiln_sim::FindingKind::Leak;
        let report = self.machine.finish();
        let first = report.findings.iter().find(leak);
        assert!(first.is_none(), "{}", first.unwrap());
    }
}

/// The work of a submission that is one command.
fn run(command: Command<'_>) -> impl FnOnce(&dyn Driver, kiln_driver::StreamId) -> kiln_driver::Result<()> {
    move |driver, stream| driver.submit(stream, &command).map(|_| ())
}

/// Two threads copy the same two blocks over each other, each on its own stream. One of them comes first, whole: both blocks end alike.
fn crossing(recording: Recording, mutation: Option<Mutation>) {
    let world = World::new(2, recording, mutation);
    let copies = [(0, 1), (1, 0)].map(|(from, to)| {
        let world = world.clone();
        thread::spawn(move || {
            let stream = world.stream();
            world.copy(&stream, from, to);
        })
    });
    copies.into_iter().for_each(|copy| copy.join().unwrap());
    let words = world.words();
    world.assert_ordered();
    assert_eq!(words[0], words[1], "each copy was planned without the other");
}

#[test]
fn submissions_that_cross_are_one_step_each() {
    for recording in [Recording::Adaptive, Recording::OnDemand, Recording::AtOnce] {
        explore(move || crossing(recording, None));
    }
}

#[test]
fn a_step_in_two_parts_is_found_out() {
    let broken = || explore(|| crossing(Recording::Adaptive, Some(Mutation::PublicationInsideStep)));
    assert!(catch_unwind(AssertUnwindSafe(broken)).is_err(), "stamps published late were not noticed");
}

/// Two readers and then a writer, from three threads on three streams: the writer comes after whichever readers it met.
#[test]
fn no_reader_is_lost() {
    explore(|| {
        let world = World::new(4, Recording::Adaptive, None);
        let copies = [(0, 1), (0, 2), (3, 0)].map(|(from, to)| {
            let world = world.clone();
            thread::spawn(move || {
                let stream = world.stream();
                world.copy(&stream, from, to);
            })
        });
        copies.into_iter().for_each(|copy| copy.join().unwrap());
        let words = world.words();
        world.assert_ordered();
        assert_eq!((words[0], words[3]), (3, 3));
        assert!([words[1], words[2]].iter().all(|word| [0, 3].contains(word)), "{words:?}");
    });
}

/// Threads that name blocks in every order, on streams they share, come to an end.
#[test]
fn no_thread_waits_for_ever() {
    explore(|| {
        let world = World::new(3, Recording::Adaptive, None);
        let shared = [world.stream(), world.stream()];
        let threads = [[(0, 1), (1, 2)], [(2, 0), (1, 0)], [(0, 2), (2, 1)]].map(|copies| {
            let (world, shared) = (world.clone(), shared.clone());
            thread::spawn(move || {
                for (turn, (from, to)) in copies.into_iter().enumerate() {
                    let stamp = world.copy(&shared[turn], from, to);
                    let _ = world.tracker.wait(stamp, Timeout::Poll).unwrap();
                }
            })
        });
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        let _ = world.words();
        world.assert_ordered();
    });
}

/// A stream is given back while others need to come after its work: they find its end recorded, and no thread touches the stream again.
#[test]
fn a_stream_can_go_while_others_wait_for_its_work() {
    explore(|| {
        let world = World::new(2, Recording::OnDemand, None);
        let gone = world.stream();
        world.copy(&gone, 0, 1);
        let giving_back = {
            let world = world.clone();
            thread::spawn(move || {
                world.tracker.retire(&gone);
                world.driver.destroy(gone.stream.into()).unwrap();
            })
        };
        let using = {
            let world = world.clone();
            thread::spawn(move || {
                let stream = world.stream();
                world.copy(&stream, 1, 0);
            })
        };
        giving_back.join().unwrap();
        using.join().unwrap();
        let words = world.words();
        world.assert_ordered();
        assert_eq!(words, [0, 0]);
    });
}

/// A new stream takes the place of one that is gone with work still running, while others come after that work: they find its end, or the
/// new stream behind it.
#[test]
fn a_stream_can_be_succeeded_while_others_wait_for_its_work() {
    explore(|| {
        let world = World::new(2, Recording::OnDemand, None);
        let gone = world.stream();
        world.copy(&gone, 0, 1);
        world.tracker.retire(&gone);
        let place = gone.key.index();
        drop(gone);
        // All other places are taken.
        let held: Vec<_> = (place + 1..MAX_STREAMS).map(|_| world.stream()).collect();
        let (heir, others) = (world.clone(), world.clone());
        let succeeding = thread::spawn(move || {
            let stream = heir.stream();
            heir.copy(&stream, 0, 1);
            stream.key.index()
        });
        let using = thread::spawn(move || {
            others.copy(&held[0], 1, 0);
            others.copy(&held[1], 0, 1);
        });
        assert_eq!(succeeding.join().unwrap(), place);
        using.join().unwrap();
        let words = world.words();
        world.assert_ordered();
        assert_eq!(words[0], words[1], "the copies came one after the other");
    });
}

#[test]
fn a_biased_lock_has_one_holder_at_a_time() {
    explore(|| {
        let lock = Arc::new(BiasedLock::new((0_u32, false)));
        let work = |lock: &BiasedLock<(u32, bool)>, number: u32| {
            for round in 0..2 {
                let guard =
                    if (number + round).is_multiple_of(2) { Some(lock.lock()) } else { lock.try_lock() };
                let Some(mut guard) = guard else { continue };
                assert!(!guard.1, "another thread holds it");
                guard.1 = true;
                thread::yield_now();
                guard.0 += 1;
                guard.1 = false;
            }
        };
        let threads = [0, 1].map(|number| {
            let lock = lock.clone();
            thread::spawn(move || work(&lock, number))
        });
        // The thread that made it goes on using it while the others take it over.
        work(&lock, 0);
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        let (count, held) = *lock.lock();
        assert!((3..=6).contains(&count) && !held, "every thread locked once and tried once");
    });
}
