//! Every kind of collective in a graph that is replayed a hundred times, with the result that each rank must get after each replay.
//!
//! What is right is computed on the host, for all ranks, from the numbers that each of them brings. Each collective is called once before it is recorded, so that its connections are there when it is
//! captured.

use kiln::group::{CollectiveCall, DeviceCommunicator, Reduction};
use kiln::{GpuRef, Graph, Kernel};

use super::{Failure, check};

/// Replays of each graph.
const REPLAYS: u32 = 100;
/// Elements of a block.
const BLOCK: usize = 1_000;

/// `mix(x, add, n)`: each of `n` elements becomes five times itself and `add`, and wraps around.
const MIX: &str = "
.version 7.0
.target sm_70
.address_size 64
.visible .entry mix(.param .u64 x, .param .u32 add, .param .u32 n) {
    .reg .u64 %rd<4>;
    .reg .u32 %r<8>;
    .reg .pred %p<2>;
    ld.param.u64 %rd1, [x];
    ld.param.u32 %r1, [add];
    ld.param.u32 %r2, [n];
    mov.u32 %r3, %ctaid.x;
    mov.u32 %r4, %ntid.x;
    mov.u32 %r5, %tid.x;
    mad.lo.u32 %r3, %r3, %r4, %r5;
    setp.ge.u32 %p1, %r3, %r2;
    @%p1 bra DONE;
    mul.wide.u32 %rd2, %r3, 4;
    add.u64 %rd1, %rd1, %rd2;
    ld.global.u32 %r6, [%rd1];
    mad.lo.u32 %r6, %r6, 5, %r1;
    st.global.u32 [%rd1], %r6;
DONE:
    ret;
}";

/// A collective with a buffer to send and one to receive.
struct Case {
    name: &'static str,
    /// Blocks of both buffers, on so many ranks.
    blocks: fn(usize) -> (usize, usize),
    call: for<'c> fn(&'c DeviceCommunicator, &GpuRef<u32>, &GpuRef<u32>) -> CollectiveCall<'c>,
    /// What the rank has received, of what all ranks sent, in their order.
    expected: fn(usize, &[Vec<u32>]) -> Vec<u32>,
}

const CASES: [Case; 7] = [
    Case {
        name: "all-reduce",
        blocks: |_| (1, 1),
        call: |rank, send, recv| rank.all_reduce(send, recv, Reduction::Sum),
        expected: |_, sent| sum(sent),
    },
    Case {
        name: "broadcast",
        blocks: |_| (1, 1),
        // In one buffer, on every rank.
        call: |rank, send, _| rank.broadcast(send, rank.size() - 1),
        expected: |_, sent| sent.last().cloned().unwrap_or_default(),
    },
    Case {
        name: "reduce-scatter",
        blocks: |size| (size, 1),
        call: |rank, send, recv| rank.reduce_scatter(send, recv, Reduction::Sum),
        expected: |me, sent| block(&sum(sent), me).to_vec(),
    },
    Case {
        name: "all-gather",
        blocks: |size| (1, size),
        call: |rank, send, recv| rank.all_gather(send, recv),
        expected: |_, sent| sent.concat(),
    },
    Case {
        name: "all-to-all",
        blocks: |size| (size, size),
        call: |rank, send, recv| rank.all_to_all(send, recv),
        expected: |me, sent| sent.iter().flat_map(|sent| block(sent, me).to_vec()).collect(),
    },
    Case {
        name: "reduce",
        blocks: |_| (1, 1),
        call: |rank, send, recv| {
            let root = rank.size() - 1;
            rank.reduce(send, (rank.rank() == root).then_some(recv), Reduction::Max, root)
        },
        // The others keep what they had.
        expected: |me, sent| match me + 1 == sent.len() {
            true => folded(sent, u32::max),
            false => vec![0; BLOCK],
        },
    },
    Case {
        name: "send and receive around a ring",
        blocks: |_| (1, 1),
        call: |rank, send, recv| {
            let (me, size) = (rank.rank(), rank.size());
            rank.send(send, (me + 1) % size).and(rank.recv(recv, (me + size - 1) % size))
        },
        expected: |me, sent| sent[(me + sent.len() - 1) % sent.len()].clone(),
    },
];

/// What every rank does.
pub(super) fn in_graphs(rank: &DeviceCommunicator) -> Result<(), Failure> {
    if rank.size() < 2 {
        return Err("graphs of collectives are for two ranks and more".into());
    }
    for case in &CASES {
        if !replayed(rank, case)? {
            return Ok(());
        }
    }
    queued(rank)?;
    rank.barrier().submit()?.wait()?;
    Ok(())
}

/// A graph of one collective, replayed with other numbers each time. False if this device takes no collectives in graphs.
fn replayed(rank: &DeviceCommunicator, case: &Case) -> Result<bool, Failure> {
    let (me, size, gpu) = (rank.rank() as usize, rank.size() as usize, rank.runtime());
    let (sends, receives) = (case.blocks)(size);
    let (send, recv) = (gpu.zeros::<u32>(sends * BLOCK)?, gpu.zeros::<u32>(receives * BLOCK)?);
    let received = if case.name == "broadcast" { &send } else { &recv };
    let brings = |replay| (0..size).map(|rank| numbers(rank, replay, sends)).collect::<Vec<_>>();
    let is_right = |replay| -> Result<bool, Failure> {
        Ok(received.download()? == (case.expected)(me, &brings(replay)))
    };
    send.upload(&brings(REPLAYS)[me])?;
    (case.call)(rank, &send, &recv).submit()?;
    if !is_right(REPLAYS)? {
        return Err(format!("{}: wrong on rank {me} before it is recorded", case.name).into());
    }
    let mut graph = gpu.graph();
    if let Err(error) = (case.call)(rank, &send, &recv).record(&mut graph) {
        println!("rank {me}: {error}");
        return Ok(false);
    }
    let graph: Graph = graph.build()?;
    for replay in 0..REPLAYS {
        send.upload(&brings(replay)[me])?;
        graph.replay()?;
        if !is_right(replay)? {
            return Err(format!("{} in a graph: wrong on rank {me} after replay {replay}", case.name).into());
        }
    }
    check(rank, &format!("{} in a graph, {REPLAYS} replays", case.name), true)?;
    Ok(true)
}

/// A graph of several collectives with a kernel between them, whose replays are all queued before the first result is looked at. Each replay begins with what the one before it left.
fn queued(rank: &DeviceCommunicator) -> Result<(), Failure> {
    let (me, size, gpu) = (rank.rank() as usize, rank.size() as usize, rank.runtime());
    let mix = gpu.kernel(MIX, "mix")?;
    let start = |rank| numbers(rank, 0, size);
    let all = gpu.upload(&start(me))?;
    let (part, other) = (gpu.zeros::<u32>(BLOCK)?, gpu.zeros::<u32>(BLOCK)?);
    let (next, before) = ((me + 1) % size, (me + size - 1) % size);
    let mut graph = gpu.graph();
    mixed(&mut graph, &mix, &all, me)?;
    rank.reduce_scatter(&all, &part, Reduction::Max).record(&mut graph)?;
    rank.send(&part, next as u32).and(rank.recv(&other, before as u32)).record(&mut graph)?;
    rank.all_gather(&other, &all).record(&mut graph)?;
    let graph = graph.build()?;
    for _ in 0..REPLAYS {
        graph.replay()?;
    }
    let mut expected: Vec<Vec<u32>> = (0..size).map(start).collect();
    for _ in 0..REPLAYS {
        for (rank, all) in expected.iter_mut().enumerate() {
            all.iter_mut().for_each(|word| *word = word.wrapping_mul(5).wrapping_add(rank as u32 + 1));
        }
        let largest = folded(&expected, u32::max);
        let gathered: Vec<u32> =
            (0..size).flat_map(|rank| block(&largest, (rank + size - 1) % size).to_vec()).collect();
        expected.fill(gathered);
    }
    let what =
        format!("reduce-scatter, send and receive, all-gather in one graph, {REPLAYS} replays at once");
    check(rank, &what, all.download()? == expected[me])
}

/// Records the kernel, which adds another number on each rank.
fn mixed(
    graph: &mut kiln::graph::GraphBuilder,
    mix: &Kernel,
    all: &GpuRef<u32>,
    rank: usize,
) -> kiln::Result<()> {
    let count = all.len() as u32;
    let mut launch = graph.launch(mix);
    launch.grid(count.div_ceil(256)).block(256).read_write(all).value(rank as u32 + 1).value(count);
    // SAFETY: it reads and writes the first `count` elements of the buffer, which has as many, and ends.
    unsafe { launch.record() }.map(drop)
}

/// What a rank brings: other numbers for each rank, replay and place.
fn numbers(rank: usize, replay: u32, blocks: usize) -> Vec<u32> {
    let first = (rank as u32).wrapping_mul(0x9e37_79b9).wrapping_add(replay.wrapping_mul(0x85eb_ca6b));
    (0..(blocks * BLOCK) as u32).map(|at| first.wrapping_add(at.wrapping_mul(0xc2b2_ae35))).collect()
}

/// The block of a rank.
fn block(all: &[u32], rank: usize) -> &[u32] {
    &all[rank * BLOCK..(rank + 1) * BLOCK]
}

fn sum(sent: &[Vec<u32>]) -> Vec<u32> {
    folded(sent, u32::wrapping_add)
}

/// The elements of all ranks, combined in the order of the ranks.
fn folded(sent: &[Vec<u32>], combine: fn(u32, u32) -> u32) -> Vec<u32> {
    let combined = |one: Vec<u32>, other: &Vec<u32>| {
        one.iter().zip(other).map(|(one, other)| combine(*one, *other)).collect()
    };
    sent.iter().skip(1).fold(sent[0].clone(), combined)
}
