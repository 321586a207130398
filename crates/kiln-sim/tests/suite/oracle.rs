//! Random programs with arbitrary edges: the machine finds a race exactly where an independent oracle does.
//!
//! The oracle knows nothing of clocks: it draws every edge between operations and asks whether a path leads from one
//! to the other.

use kiln_driver::{Command, DevicePlace, Driver, EventId, Pattern, Place};
use kiln_sim::{Machine, SimChecks};

use crate::rig::{Kernel, Rig, config};

const STREAMS: u64 = 3;
const BLOCKS: u64 = 2;
const BLOCK_BYTES: u64 = 64;

/// A small generator of numbers, apart from the machine's own.
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x2545_f491_4f6c_dd1d) | 1)
    }

    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % limit
    }
}

/// One operation, as the oracle sees it.
struct Operation {
    accesses: Vec<(u64, std::ops::Range<u64>, bool)>,
    /// Operations that come right before it.
    after: Vec<usize>,
}

#[derive(Default)]
struct Oracle {
    operations: Vec<Operation>,
    last_on_stream: [Option<usize>; STREAMS as usize],
    /// What the next operation on a stream comes after besides, by waits.
    waited: [Vec<usize>; STREAMS as usize],
    /// What the host has waited for.
    host: Vec<usize>,
    signals: Vec<Option<usize>>,
}

impl Oracle {
    fn add(&mut self, stream: usize, accesses: Vec<(u64, std::ops::Range<u64>, bool)>) {
        let mut after = std::mem::take(&mut self.waited[stream]);
        after.extend(self.last_on_stream[stream]);
        after.extend(&self.host);
        self.last_on_stream[stream] = Some(self.operations.len());
        self.operations.push(Operation { accesses, after });
    }

    /// Whether two operations touch the same bytes, one of them writing, with no path between them.
    fn has_race(&self) -> bool {
        let count = self.operations.len();
        let mut reaches = vec![vec![false; count]; count];
        for at in 0..count {
            for before in self.operations[at].after.clone() {
                let (earlier, later) = reaches.split_at_mut(at);
                later[0][before] = true;
                later[0].iter_mut().zip(&earlier[before]).for_each(|(mine, theirs)| *mine |= theirs);
            }
        }
        (0..count).any(|later| {
            (0..later).any(|earlier| {
                !reaches[later][earlier] && conflict(&self.operations[earlier], &self.operations[later])
            })
        })
    }
}

fn conflict(a: &Operation, b: &Operation) -> bool {
    a.accesses.iter().any(|(block, range, writes)| {
        b.accesses.iter().any(|(other, other_range, other_writes)| {
            block == other
                && (*writes || *other_writes)
                && range.start < other_range.end
                && other_range.start < range.end
        })
    })
}

fn run(seed: u64) -> (bool, bool) {
    let checks = SimChecks { uninitialised: false, ..SimChecks::default() };
    let machine = Machine::new(config(seed).checks(checks));
    let rig = Rig::new(&machine, STREAMS as usize);
    let blocks: Vec<_> = (0..BLOCKS).map(|_| rig.block(BLOCK_BYTES)).collect();
    let events: Vec<EventId> = (0..2).map(|_| rig.event()).collect();
    let mut oracle = Oracle { signals: vec![None; events.len()], ..Oracle::default() };
    let mut signalled = vec![false; events.len()];
    let mut dice = Dice::new(seed);
    for _ in 0..3 + dice.below(10) {
        let stream = dice.below(STREAMS) as usize;
        let event = dice.below(events.len() as u64) as usize;
        let block = dice.below(BLOCKS);
        let start = dice.below(BLOCK_BYTES / 2);
        let bytes = 1 + dice.below(BLOCK_BYTES / 2);
        let place = |block: u64| DevicePlace::from(blocks[block as usize].id).plus(start);
        match dice.below(9) {
            0 | 1 => {
                let fill = Command::Fill { to: place(block), pattern: Pattern::U8(1), count: bytes };
                rig.device.submit(rig.streams[stream], &fill).unwrap();
                oracle.add(stream, vec![(block, start..start + bytes, true)]);
            }
            2 => {
                let (from, to) = (Place::Device(place(block)), Place::Device(place(1 - block)));
                rig.device.submit(rig.streams[stream], &Command::Copy { from, to, bytes }).unwrap();
                let range = start..start + bytes;
                oracle.add(stream, vec![(block, range.clone(), false), (1 - block, range, true)]);
            }
            3 => {
                rig.launch(stream, Kernel::Read, &[blocks[block as usize].address.0 + start, bytes]).unwrap();
                oracle.add(stream, vec![(block, start..start + bytes, false)]);
            }
            4 | 5 => {
                rig.signal(stream, events[event]);
                signalled[event] = true;
                oracle.signals[event] = oracle.last_on_stream[stream];
                // A signal passes on what its stream waited for, also when nothing was done there in between.
                if !oracle.waited[stream].is_empty() {
                    oracle.add(stream, Vec::new());
                    oracle.signals[event] = oracle.last_on_stream[stream];
                }
            }
            6 | 7 => {
                rig.wait(stream, events[event]);
                oracle.waited[stream].extend(oracle.signals[event]);
            }
            _ => {
                rig.sync(stream);
                if !oracle.waited[stream].is_empty() {
                    oracle.add(stream, Vec::new());
                }
                oracle.host.extend(oracle.last_on_stream[stream]);
            }
        }
    }
    rig.close();
    let report = machine.finish();
    let raced = report.findings.iter().any(|finding| finding.kind.is_race());
    assert!(report.findings.iter().all(|finding| finding.kind.is_race()), "{report}");
    (raced, oracle.has_race())
}

#[test]
fn the_machine_and_the_oracle_agree() {
    let mut raced = 0;
    for seed in 0..10_000 {
        let (found, expected) = run(seed);
        assert_eq!(found, expected, "seed {seed}");
        raced += u32::from(found);
    }
    assert!((1_000..9_000).contains(&raced), "both kinds of programs were drawn: {raced} of 10000 race");
}
