//! Laws about the ranks of two devices.
//!
//! A call of NCCL waits for the other rank, so each rank of a GPU has a thread. Simulated ranks share one: their program is the same in every run then.

use kiln_driver::{Command, DeviceKind, DriverExt, GraphId, GraphNode, ModuleId, StreamId};

use super::{arguments, call, new_id, rank};
use crate::expect::{equal, inapplicable};
use crate::fixture::{Rig, plain_launch};
use crate::kernels::Arguments;
use crate::law::{LawVerdict, Stop, fail};

/// Elements of a block.
const COUNT: u64 = 96;
const BLOCK: u64 = 4 * COUNT;

/// One rank of two.
struct Seat<'r, 'a> {
    rig: &'r Rig<'a>,
    rank: u32,
    module: ModuleId,
    stream: StreamId,
}

/// Both ranks of a communicator.
fn seats<'r, 'a>(rig: &'r Rig<'a>, beside: &'r Rig<'a>) -> Result<[Seat<'r, 'a>; 2], Stop> {
    if rig.driver.info().kind == DeviceKind::Cuda && rig.driver.info().uuid == beside.driver.info().uuid {
        return inapplicable("NCCL takes one rank on a GPU");
    }
    let id = new_id(rig)?;
    let seat = |rig: &'r Rig<'a>, number| -> Result<Seat<'r, 'a>, Stop> {
        Ok(Seat { rig, rank: number, module: rank(rig, &id, number, 2)?, stream: rig.stream()? })
    };
    Ok([seat(rig, 0)?, seat(beside, 1)?])
}

/// Lets both ranks do something that may wait for the other one.
fn both<'r, 'a, T: Send>(
    seats: &[Seat<'r, 'a>; 2],
    each: impl Fn(&Seat<'r, 'a>) -> Result<T, Stop> + Sync,
) -> Result<[T; 2], Stop> {
    if seats[0].rig.driver.info().kind != DeviceKind::Cuda {
        return Ok([each(&seats[0])?, each(&seats[1])?]);
    }
    let each = &each;
    let (one, other) = std::thread::scope(|threads| {
        let other = threads.spawn(move || each(&seats[1]));
        (each(&seats[0]), other.join())
    });
    let panicked = |_| fail("no call to panic", "a panic");
    Ok([one?, other.map_err(panicked)??])
}

/// Calls something that may wait until another call has ended it.
pub(super) fn while_it_waits(
    rig: &Rig<'_>,
    waits: impl FnOnce() -> LawVerdict + Send,
    ends: impl FnOnce() -> LawVerdict,
) -> LawVerdict {
    if rig.driver.info().kind != DeviceKind::Cuda {
        waits()?;
        return ends();
    }
    std::thread::scope(|threads| {
        let waiting = threads.spawn(waits);
        // Long enough for the call to be inside of the library. Before that it is refused, which is as good.
        std::thread::sleep(std::time::Duration::from_millis(200));
        let ended = ends();
        // What it answered depends on how far it was.
        let _ = waiting.join();
        ended
    })
}

/// What a rank brings to collective number `salt`: both ranks' values differ in every element.
fn brought(rank: u32, salt: u32, elements: u64) -> Vec<u32> {
    (0..elements as u32).map(|at| at * 3 + salt * 1_000 + rank * 500_000).collect()
}

fn bytes(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// A collective of two ranks with a buffer to send and one to receive, in blocks; and what a rank has then of what both brought.
struct Case {
    name: &'static str,
    sends: u64,
    receives: u64,
    expected: fn(u32, [&[u32]; 2]) -> Vec<u32>,
}

const CASES: [Case; 5] = [
    Case {
        name: "all_reduce element=u32 reduction=sum in_place=false",
        sends: 1,
        receives: 1,
        expected: |_, [one, other]| one.iter().zip(other).map(|(one, other)| one + other).collect(),
    },
    Case {
        name: "all_reduce element=u32 reduction=min in_place=false",
        sends: 1,
        receives: 1,
        expected: |_, [one, _]| one.to_vec(),
    },
    Case {
        name: "all_gather element=u32 in_place=false",
        sends: 1,
        receives: 2,
        expected: |_, all| all.concat(),
    },
    Case {
        name: "reduce_scatter element=u32 reduction=sum in_place=false",
        sends: 2,
        receives: 1,
        expected: |rank, [one, other]| {
            let own = |all: &[u32]| block(all, rank).to_vec();
            own(one).iter().zip(own(other)).map(|(one, other)| one + other).collect()
        },
    },
    Case {
        name: "all_to_all element=u32",
        sends: 2,
        receives: 2,
        expected: |rank, all| all.map(|all| block(all, rank)).concat(),
    },
];

/// The block of a rank.
fn block(all: &[u32], rank: u32) -> &[u32] {
    let first = rank as usize * COUNT as usize;
    &all[first..first + COUNT as usize]
}

pub(super) fn two_ranks(rig: &Rig<'_>) -> LawVerdict {
    let beside = rig.beside()?;
    let seats = seats(rig, &beside)?;
    for (salt, case) in CASES.iter().enumerate() {
        let salt = salt as u32;
        let found = both(&seats, |Seat { rig, rank, module, stream }| {
            let send = rig.memory_with(&bytes(&brought(*rank, salt, case.sends * COUNT)))?;
            let recv = rig.memory_with(&vec![0xff; (case.receives * BLOCK) as usize])?;
            // The collective comes after this, and brings one more in each element.
            rig.busy(*stream)?;
            rig.increment(*stream, &send, (case.sends * COUNT) as u32)?;
            call(rig, *stream, *module, case.name, &[send.address.0, recv.address.0, COUNT])?;
            rig.increment(*stream, &recv, (case.receives * COUNT) as u32)?;
            Ok(recv)
        })?;
        let all = [0, 1].map(|rank| {
            let brought = brought(rank, salt, case.sends * COUNT);
            brought.iter().map(|word| word + 1).collect::<Vec<u32>>()
        });
        for (Seat { rig, rank, stream, .. }, recv) in seats.iter().zip(found) {
            rig.driver.synchronize(*stream)?;
            let expected: Vec<u32> =
                (case.expected)(*rank, [&all[0], &all[1]]).iter().map(|word| word + 1).collect();
            let what = format!("what rank {rank} has of `{}`, and one more", case.name);
            equal(what, rig.get_words(&recv, case.receives * COUNT)?, expected)?;
        }
    }
    for root in [0, 1] {
        let found = both(&seats, |Seat { rig, rank, module, stream }| {
            let buffer = rig.memory_with(&bytes(&brought(*rank, 9, COUNT)))?;
            let name = format!("broadcast element=u32 root={root}");
            call(rig, *stream, *module, &name, &[buffer.address.0, COUNT])?;
            Ok(buffer)
        })?;
        for (Seat { rig, rank, stream, .. }, buffer) in seats.iter().zip(found) {
            rig.driver.synchronize(*stream)?;
            let what = format!("what rank {rank} has of a broadcast of rank {root}");
            equal(what, rig.get_words(&buffer, COUNT)?, brought(root, 9, COUNT))?;
        }
    }
    beside.finish()
}

pub(super) fn sent_and_received(rig: &Rig<'_>) -> LawVerdict {
    let beside = rig.beside()?;
    let seats = seats(rig, &beside)?;
    let found = both(&seats, |Seat { rig, rank, module, stream }| {
        let send = rig.memory_with(&bytes(&brought(*rank, 4, COUNT)))?;
        let recv = rig.memory_with(&[0xff; BLOCK as usize])?;
        let other = 1 - rank;
        let group = format!("send element=u32 peer={other}; recv element=u32 peer={other}");
        let words = [send.address.0, COUNT, recv.address.0, COUNT];
        call(rig, *stream, *module, &group, &words)?;
        Ok(recv)
    })?;
    for (Seat { rig, rank, stream, .. }, recv) in seats.iter().zip(found) {
        rig.driver.synchronize(*stream)?;
        let what = format!("what rank {rank} received");
        equal(what, rig.get_words(&recv, COUNT)?, brought(1 - rank, 4, COUNT))?;
    }
    beside.finish()
}

/// Replays of the graphs.
const REPLAYS: u32 = 5;

pub(super) fn in_graphs(rig: &Rig<'_>) -> LawVerdict {
    let beside = rig.beside()?;
    let seats = seats(rig, &beside)?;
    // Each replay adds both ranks' sums, and one: x becomes 2 x + 1 on both.
    let built = both(&seats, |Seat { rig, module, .. }| {
        let total = rig.words(COUNT)?;
        let sum = rig.driver.function(*module, "all_reduce element=u32 reduction=sum in_place=true")?;
        let summed = arguments(rig, &sum, &[total.address.0, COUNT])?;
        let increment = rig.kernel("increment")?;
        let more = Arguments::new().address(total.address).u32(COUNT as u32);
        let nodes = [
            GraphNode { command: Command::Launch(plain_launch(sum.id, 1, 1, &summed)), after: &[] },
            GraphNode { command: Command::Launch(plain_launch(increment.id, 2, 64, &more)), after: &[0] },
        ];
        Ok((rig.graph(&nodes)?, total))
    })?;
    let graphs: [GraphId; 2] = [built[0].0, built[1].0];
    for _ in 0..REPLAYS {
        both(&seats, |Seat { rig, rank, stream, .. }| {
            Ok(rig.driver.submit(*stream, &Command::Graph(graphs[*rank as usize])).map(drop)?)
        })?;
    }
    for (Seat { rig, rank, stream, .. }, (_, total)) in seats.iter().zip(built) {
        rig.driver.synchronize(*stream)?;
        let what = format!("what rank {rank} has after {REPLAYS} replays");
        equal(what, rig.get_words(&total, COUNT)?, vec![(1 << REPLAYS) - 1; COUNT as usize])?;
    }
    beside.finish()
}
