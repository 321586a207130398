//! Every collective, submitted and in a graph that is replayed, with one rank and with several: the values that are computed by hand. One rank also on a GPU, where there is one.

use kiln::GpuRef;
use kiln::group::{CollectiveCall, DeviceCommunicator, Reduction};
use kiln::probe::{TestGate, gpu_for_test};

use crate::rig::Rig;

/// Elements of a block.
const BLOCK: usize = 2;

/// What one rank has: a block for each rank, and room for one block.
struct Buffers {
    send: GpuRef<u32>,
    all: GpuRef<u32>,
    one: GpuRef<u32>,
}

/// The buffer that a collective is looked at in.
#[derive(Clone, Copy)]
enum Looked {
    Send,
    All,
    One,
}

/// A collective, and the buffer and values of a rank of so many afterwards.
struct Kind {
    name: &'static str,
    call: for<'a> fn(&'a DeviceCommunicator, &Buffers) -> CollectiveCall<'a>,
    looked_at: Looked,
    values: fn(usize, usize) -> Vec<u32>,
}

/// What a rank brings at a place.
fn brought(rank: usize, at: usize) -> u32 {
    (100 * (rank + 1) + at) as u32
}

/// The values of a rank in this block.
fn block(rank: usize, block: usize) -> Vec<u32> {
    (block * BLOCK..(block + 1) * BLOCK).map(|at| brought(rank, at)).collect()
}

/// All that a rank brings, where there are so many.
fn whole(rank: usize, size: usize) -> Vec<u32> {
    (0..size * BLOCK).map(|at| brought(rank, at)).collect()
}

/// The sum of what all ranks bring, at each place.
fn sums(size: usize) -> Vec<u32> {
    (0..size * BLOCK).map(|at| (0..size).map(|rank| brought(rank, at)).sum()).collect()
}

fn last(size: usize) -> usize {
    size - 1
}

fn root(rank: &DeviceCommunicator) -> u32 {
    rank.size() - 1
}

fn only_at_root(rank: usize, size: usize, values: Vec<u32>) -> Vec<u32> {
    if rank == last(size) { values } else { vec![0; values.len()] }
}

fn first_block(buffers: &Buffers) -> GpuRef<u32> {
    buffers.send.view(..BLOCK).unwrap()
}

fn at_root<'a>(rank: &DeviceCommunicator, buffer: &'a GpuRef<u32>) -> Option<&'a GpuRef<u32>> {
    (rank.rank() == root(rank)).then_some(buffer)
}

const KINDS: [Kind; 14] = [
    Kind {
        name: "all_reduce",
        call: |rank, buffers| rank.all_reduce(&buffers.send, &buffers.all, Reduction::Sum),
        looked_at: Looked::All,
        values: |_, size| sums(size),
    },
    Kind {
        name: "all_reduce_in_place",
        call: |rank, buffers| rank.all_reduce_in_place(&buffers.send, Reduction::Max),
        looked_at: Looked::Send,
        values: |_, size| whole(last(size), size),
    },
    Kind {
        name: "reduce",
        call: |rank, buffers| {
            rank.reduce(&buffers.send, at_root(rank, &buffers.all), Reduction::Sum, root(rank))
        },
        looked_at: Looked::All,
        values: |rank, size| only_at_root(rank, size, sums(size)),
    },
    Kind {
        name: "reduce_in_place",
        call: |rank, buffers| rank.reduce_in_place(&buffers.send, Reduction::Sum, root(rank)),
        looked_at: Looked::Send,
        values: |rank, size| if rank == last(size) { sums(size) } else { whole(rank, size) },
    },
    Kind {
        name: "broadcast",
        call: |rank, buffers| rank.broadcast(&buffers.send, root(rank)),
        looked_at: Looked::Send,
        values: |_, size| whole(last(size), size),
    },
    Kind {
        name: "all_gather",
        call: |rank, buffers| rank.all_gather(&first_block(buffers), &buffers.all),
        looked_at: Looked::All,
        values: |_, size| (0..size).flat_map(|rank| block(rank, 0)).collect(),
    },
    Kind {
        name: "all_gather_in_place",
        call: |rank, buffers| rank.all_gather_in_place(&buffers.send),
        looked_at: Looked::Send,
        values: |_, size| (0..size).flat_map(|rank| block(rank, rank)).collect(),
    },
    Kind {
        name: "reduce_scatter",
        call: |rank, buffers| rank.reduce_scatter(&buffers.send, &buffers.one, Reduction::Sum),
        looked_at: Looked::One,
        values: |rank, size| sums(size)[rank * BLOCK..(rank + 1) * BLOCK].to_vec(),
    },
    Kind {
        name: "reduce_scatter_in_place",
        call: |rank, buffers| rank.reduce_scatter_in_place(&buffers.send, Reduction::Sum),
        looked_at: Looked::Send,
        // The other blocks are as they were.
        values: |rank, size| {
            let mut values = whole(rank, size);
            let own = rank * BLOCK..(rank + 1) * BLOCK;
            values[own.clone()].copy_from_slice(&sums(size)[own]);
            values
        },
    },
    Kind {
        name: "all_to_all",
        call: |rank, buffers| rank.all_to_all(&buffers.send, &buffers.all),
        looked_at: Looked::All,
        values: |rank, size| (0..size).flat_map(|other| block(other, rank)).collect(),
    },
    Kind {
        name: "gather",
        call: |rank, buffers| rank.gather(&first_block(buffers), at_root(rank, &buffers.all), root(rank)),
        looked_at: Looked::All,
        values: |rank, size| only_at_root(rank, size, (0..size).flat_map(|rank| block(rank, 0)).collect()),
    },
    Kind {
        name: "scatter",
        call: |rank, buffers| rank.scatter(at_root(rank, &buffers.send), &buffers.one, root(rank)),
        looked_at: Looked::One,
        values: |rank, size| block(last(size), rank),
    },
    Kind {
        name: "send and recv, in a ring",
        call: |rank, buffers| {
            let (own, size) = (rank.rank(), rank.size());
            match size {
                1 => rank.barrier(),
                _ => rank
                    .send(&buffers.send, (own + 1) % size)
                    .and(rank.recv(&buffers.all, (own + size - 1) % size)),
            }
        },
        looked_at: Looked::All,
        values: |rank, size| match size {
            1 => vec![0; BLOCK],
            _ => whole((rank + size - 1) % size, size),
        },
    },
    Kind {
        name: "barrier",
        call: |rank, _| rank.barrier(),
        looked_at: Looked::Send,
        values: |rank, size| whole(rank, size),
    },
];

fn buffers(rank: &DeviceCommunicator) -> Buffers {
    let (gpu, size) = (rank.runtime(), rank.size() as usize);
    Buffers {
        send: gpu.upload(&whole(rank.rank() as usize, size)).unwrap(),
        all: gpu.zeros(size * BLOCK).unwrap(),
        one: gpu.zeros(BLOCK).unwrap(),
    }
}

/// Does every collective on these ranks.
fn all_kinds(ranks: &[DeviceCommunicator]) {
    for kind in &KINDS {
        for in_graph in [false, true] {
            let all: Vec<Buffers> = ranks.iter().map(buffers).collect();
            let calls = ranks.iter().zip(&all);
            let graphs: Vec<_> = match in_graph {
                false => {
                    for (rank, own) in calls {
                        (kind.call)(rank, own).submit().unwrap();
                    }
                    Vec::new()
                }
                true => calls
                    .map(|(rank, own)| {
                        let mut graph = rank.runtime().graph();
                        (kind.call)(rank, own).record(&mut graph).unwrap();
                        graph.build().unwrap()
                    })
                    .collect(),
            };
            for graph in &graphs {
                graph.replay().unwrap();
            }
            for (rank, own) in all.iter().enumerate() {
                let buffer = match kind.looked_at {
                    Looked::Send => &own.send,
                    Looked::All => &own.all,
                    Looked::One => &own.one,
                };
                let (name, size) = (kind.name, ranks.len());
                let expected = (kind.values)(rank, size);
                let found = buffer.download().unwrap();
                assert_eq!(found, expected, "{name}, rank {rank} of {size}, in a graph: {in_graph}");
            }
        }
    }
}

#[test]
fn every_collective_gives_the_values_computed_by_hand_submitted_and_in_a_graph() {
    for size in [1, 2, 4] {
        let rig = Rig::new(size, 1);
        let ranks = rig.group.communicators(&Default::default()).unwrap();
        all_kinds(&ranks);
        drop(ranks);
        rig.finish();
    }
}

#[test]
fn every_collective_of_one_rank_on_a_gpu() {
    let TestGate::Ready(gpu) = gpu_for_test("every_collective_of_one_rank_on_a_gpu").unwrap() else { return };
    all_kinds(&[DeviceCommunicator::alone(gpu).unwrap()]);
}
