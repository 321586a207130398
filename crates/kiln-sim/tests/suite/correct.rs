//! Correct programs give no report and the right bytes, whatever the seed.

use kiln_driver::{
    Command, DeviceMemory, DevicePlace, Driver, DriverExt, EventId, HostBlock, Pattern, Place,
};
use kiln_sim::Machine;

use crate::oracle::Dice;
use crate::rig::{Rig, bytes_of, config};

const STREAMS: usize = 4;
const BLOCK_BYTES: usize = 48;

/// A block, what it should hold, and who touched it last.
struct Tracked {
    memory: DeviceMemory,
    expected: Vec<u8>,
    last_write: Option<Use>,
    reads: Vec<Use>,
}

#[derive(Clone, Copy)]
struct Use {
    stream: usize,
    event: EventId,
}

/// A program that orders every use by hand, in one of several ways.
pub(crate) fn program(machine: &Machine, seed: u64, steps: u64) {
    let rig = Rig::new(machine, STREAMS);
    let mut dice = Dice::new(seed);
    let mut blocks: Vec<Tracked> = (0..3).map(|_| new_block(&rig)).collect();
    let staging: Vec<HostBlock> = (0..2).map(|_| rig.host(BLOCK_BYTES as u64)).collect();
    for _ in 0..steps {
        let stream = dice.below(STREAMS as u64) as usize;
        let (at, other) = two_of(&mut dice, blocks.len());
        match dice.below(6) {
            0 => {
                let value = dice.below(256) as u8;
                before(&rig, &mut dice, stream, &blocks[at], true);
                let fill = Command::Fill {
                    to: blocks[at].memory.id.into(),
                    pattern: Pattern::U8(value),
                    count: BLOCK_BYTES as u64,
                };
                rig.device.submit(rig.streams[stream], &fill).unwrap();
                blocks[at].expected = vec![value; BLOCK_BYTES];
                after(&rig, stream, &mut blocks[at], true);
            }
            1 => {
                before(&rig, &mut dice, stream, &blocks[at], true);
                rig.bump(stream, blocks[at].memory);
                blocks[at].expected.iter_mut().for_each(|byte| *byte = byte.wrapping_add(1));
                after(&rig, stream, &mut blocks[at], true);
            }
            2 => {
                before(&rig, &mut dice, stream, &blocks[at], false);
                before(&rig, &mut dice, stream, &blocks[other], true);
                copy(&rig, &mut dice, stream, &mut blocks, at, other);
                after(&rig, stream, &mut blocks[at], false);
                after(&rig, stream, &mut blocks[other], true);
            }
            3 => {
                let staging = &staging[dice.below(2) as usize];
                before(&rig, &mut dice, stream, &blocks[at], false);
                rig.download(stream, blocks[at].memory.id, staging);
                rig.sync(stream);
                assert_eq!(bytes_of(staging), blocks[at].expected, "seed {seed}");
                blocks[at].reads.push(Use { stream, event: rig.event() });
                rig.signal(stream, blocks[at].reads.last().unwrap().event);
            }
            4 => {
                let staging = &staging[dice.below(2) as usize];
                let value = dice.below(256) as u8;
                assert!(staging.write(0, &[value; BLOCK_BYTES]));
                before(&rig, &mut dice, stream, &blocks[at], true);
                rig.upload(stream, staging, blocks[at].memory.id);
                rig.sync(stream);
                blocks[at].expected = vec![value; BLOCK_BYTES];
                after(&rig, stream, &mut blocks[at], true);
            }
            _ => {
                // Pool memory lives and dies in the order of one stream.
                let scratch = rig.pool(stream, BLOCK_BYTES as u64);
                rig.write(stream, scratch, 1);
                rig.bump(stream, scratch);
                rig.device.free(scratch.id, Some(rig.streams[stream])).unwrap();
            }
        }
    }
    rig.close();
}

fn new_block(rig: &Rig) -> Tracked {
    let memory = rig.block(BLOCK_BYTES as u64);
    rig.write(0, memory, 0);
    let mut block = Tracked { memory, expected: vec![0; BLOCK_BYTES], last_write: None, reads: Vec::new() };
    after(rig, 0, &mut block, true);
    block
}

fn two_of(dice: &mut Dice, count: usize) -> (usize, usize) {
    let one = dice.below(count as u64) as usize;
    (one, (one + 1 + dice.below(count as u64 - 1) as usize) % count)
}

fn copy(rig: &Rig, dice: &mut Dice, stream: usize, blocks: &mut [Tracked], from: usize, to: usize) {
    let start = dice.below(BLOCK_BYTES as u64) as usize;
    let end = start + dice.below((BLOCK_BYTES - start) as u64 + 1) as usize;
    let place = |block: &Tracked| Place::Device(DevicePlace::from(block.memory.id).plus(start as u64));
    let (from_place, to_place) = (place(&blocks[from]), place(&blocks[to]));
    let command = Command::Copy { from: from_place, to: to_place, bytes: (end - start) as u64 };
    rig.device.submit(rig.streams[stream], &command).unwrap();
    let part = blocks[from].expected[start..end].to_vec();
    blocks[to].expected[start..end].copy_from_slice(&part);
}

/// Orders what comes next on a stream after the uses that conflict with it.
fn before(rig: &Rig, dice: &mut Dice, stream: usize, block: &Tracked, writes: bool) {
    let reads = if writes { block.reads.as_slice() } else { &[] };
    for earlier in block.last_write.iter().chain(reads) {
        if earlier.stream == stream {
            continue;
        }
        match dice.below(4) {
            0 => rig.sync(earlier.stream),
            1 => while !rig.device.is_done(earlier.event).unwrap() {},
            _ => rig.wait(stream, earlier.event),
        }
    }
}

fn after(rig: &Rig, stream: usize, block: &mut Tracked, writes: bool) {
    let last = Use { stream, event: rig.event() };
    rig.signal(stream, last.event);
    if writes {
        block.last_write = Some(last);
        block.reads.clear();
    } else {
        block.reads.push(last);
    }
}

#[test]
fn ten_thousand_seeds_and_no_report() {
    for seed in 0..10_000 {
        let machine = Machine::new(config(seed));
        program(&machine, seed, 12);
        let report = machine.finish();
        assert!(report.is_clean(), "seed {seed}: {report}");
    }
}

#[test]
fn long_programs_and_no_report() {
    for seed in 0..50 {
        let machine = Machine::new(config(seed));
        program(&machine, seed, 300);
        let report = machine.finish();
        assert!(report.is_clean(), "seed {seed}: {report}");
    }
}
