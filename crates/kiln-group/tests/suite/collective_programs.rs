//! Random programs of collectives, copies and fills leave what a sequential model on host vectors says.

use half::{bf16, f16};
use kiln::group::{DeviceCommunicator, DeviceCommunicatorConfig, Reduction};
use kiln::{GpuRef, Stream};

use crate::collective_numbers::{OracleNumber, reduced};
use crate::rig::{Numbers, Rig};

const BUFFERS: usize = 3;
const STEPS: usize = 14;
const REDUCTIONS: [Reduction; 5] =
    [Reduction::Sum, Reduction::Product, Reduction::Min, Reduction::Max, Reduction::Average];

/// One step of all ranks. `from` and `to` are two different buffers, and `block` is the length of a block.
#[derive(Clone, Copy, Debug)]
struct Step {
    kind: usize,
    from: usize,
    to: usize,
    block: usize,
    start: usize,
    root: usize,
    peer: usize,
    reduction: Reduction,
    stream: usize,
}

struct Program {
    ranks: usize,
    len: usize,
    steps: Vec<Step>,
}

impl Program {
    fn new(numbers: &mut Numbers) -> Self {
        let ranks = 2 + numbers.below(7);
        let len = ranks * (1 + numbers.below(6));
        let step = |_| {
            let from = numbers.below(BUFFERS);
            let block = numbers.below(len / ranks + 1);
            let root = numbers.below(ranks);
            Step {
                kind: numbers.below(18),
                from,
                to: (from + 1 + numbers.below(BUFFERS - 1)) % BUFFERS,
                block,
                start: numbers.below(len - block * ranks + 1),
                root,
                peer: (root + 1 + numbers.below(ranks - 1)) % ranks,
                reduction: REDUCTIONS[numbers.below(REDUCTIONS.len())],
                stream: numbers.below(3),
            }
        };
        Self { ranks, len, steps: (0..STEPS).map(step).collect() }
    }
}

/// One rank with its buffers and streams.
struct Rank<T: OracleNumber> {
    communicator: DeviceCommunicator,
    buffers: Vec<GpuRef<T>>,
    streams: Vec<Stream>,
}

impl<T: OracleNumber> Rank<T> {
    /// Queues this rank's part of a step.
    fn submit(&self, step: &Step, ranks: usize) {
        let Step { kind, block, start, reduction, .. } = *step;
        let (rank, root, peer) = (self.communicator.rank() as usize, step.root as u32, step.peer as u32);
        let view = |at: usize, len: usize| self.buffers[at].view(start..start + len).unwrap();
        let (one, all) = (block, block * ranks);
        let comm = &self.communicator;
        let is_root = rank == step.root;
        let (send_one, send_all) = (view(step.from, one), view(step.from, all));
        let (recv_one, recv_all) = (view(step.to, one), view(step.to, all));
        let call = match kind {
            0 => comm.all_reduce(&send_all, &recv_all, reduction),
            1 => comm.all_reduce_in_place(&send_all, reduction),
            2 => comm.reduce(&send_all, is_root.then_some(&recv_all), reduction, root),
            3 => comm.reduce_in_place(&send_all, reduction, root),
            4 => comm.broadcast(&send_all, root),
            5 => comm.all_gather(&send_one, &recv_all),
            6 => comm.all_gather_in_place(&send_all),
            7 => comm.reduce_scatter(&send_all, &recv_one, reduction),
            8 => comm.reduce_scatter_in_place(&send_all, reduction),
            9 => comm.all_to_all(&send_all, &recv_all),
            10 => comm.gather(&send_one, is_root.then_some(&recv_all), root),
            11 => comm.scatter(is_root.then_some(&send_all), &recv_one, root),
            // A ring, in one launch.
            12 => {
                let (next, last) = ((rank + 1) % ranks, (rank + ranks - 1) % ranks);
                comm.send(&send_all, next as u32).and(comm.recv(&recv_all, last as u32))
            }
            13 if is_root => comm.send(&send_all, peer),
            13 if rank == step.peer => comm.recv(&recv_all, root),
            13 => return,
            14 => comm.barrier(),
            // Two collectives in one launch.
            15 => comm.all_reduce_in_place(&send_all, reduction).and(comm.broadcast(&recv_all, root)),
            16 => {
                recv_all.copy_from(&send_all).unwrap();
                return;
            }
            _ => {
                let values: Vec<T> = (0..all).map(|at| T::small((rank + at + step.root) as u64)).collect();
                recv_all.upload(&values).unwrap();
                return;
            }
        };
        call.on(&self.streams[step.stream]).submit().unwrap();
    }
}

/// The same step on host vectors, by rank and buffer.
fn model<T: OracleNumber>(all: &mut [Vec<Vec<T>>], step: &Step) {
    let ranks = all.len();
    let Step { from, to, block, start, root, peer, reduction, .. } = *step;
    let whole = start..start + block * ranks;
    let part = |at: usize| start + at * block..start + (at + 1) * block;
    let sent: Vec<Vec<T>> = all.iter().map(|rank| rank[from][whole.clone()].to_vec()).collect();
    let sum = reduced(&sent, reduction);
    let firsts: Vec<T> = sent.iter().flat_map(|sent| sent[..block].to_vec()).collect();
    let cut = |values: &[T], at: usize| values[at * block..(at + 1) * block].to_vec();
    for (rank, buffers) in all.iter_mut().enumerate() {
        let mut put = |buffer: usize, at: std::ops::Range<usize>, values: &[T]| {
            buffers[buffer][at].copy_from_slice(values);
        };
        match step.kind {
            0 => put(to, whole.clone(), &sum),
            1 => put(from, whole.clone(), &sum),
            2 if rank == root => put(to, whole.clone(), &sum),
            3 if rank == root => put(from, whole.clone(), &sum),
            4 => put(from, whole.clone(), &sent[root]),
            5 => put(to, whole.clone(), &firsts),
            6 => (0..ranks).for_each(|other| put(from, part(other), &cut(&sent[other], other))),
            7 => put(to, part(0), &cut(&sum, rank)),
            8 => put(from, part(rank), &cut(&sum, rank)),
            9 => (0..ranks).for_each(|other| put(to, part(other), &cut(&sent[other], rank))),
            10 if rank == root => put(to, whole.clone(), &firsts),
            11 => put(to, part(0), &cut(&sent[root], rank)),
            12 => put(to, whole.clone(), &sent[(rank + ranks - 1) % ranks]),
            13 if rank == peer => put(to, whole.clone(), &sent[root]),
            15 => put(from, whole.clone(), &sum),
            16 => put(to, whole.clone(), &sent[rank]),
            17 => {
                let values: Vec<T> =
                    (0..block * ranks).map(|at| T::small((rank + at + root) as u64)).collect();
                put(to, whole.clone(), &values);
            }
            _ => {}
        }
    }
    if step.kind == 15 {
        let root = all[root][to][whole.clone()].to_vec();
        all.iter_mut().for_each(|rank| rank[to][whole.clone()].copy_from_slice(&root));
    }
}

fn run<T: OracleNumber>(seed: u64, threaded: bool) {
    let mut numbers = Numbers::new(seed + 1);
    let program = Program::new(&mut numbers);
    let rig = Rig::new(program.ranks as u32, seed);
    let value = |rank: usize, buffer: usize, at: usize| T::small((rank * 7 + buffer * 3 + at) as u64 + seed);
    let mut expected: Vec<Vec<Vec<T>>> = (0..program.ranks)
        .map(|rank| {
            let buffer = |buffer| (0..program.len).map(|at| value(rank, buffer, at)).collect();
            (0..BUFFERS).map(buffer).collect()
        })
        .collect();
    let communicators = rig.group.communicators(&DeviceCommunicatorConfig::default()).unwrap();
    let ranks: Vec<Rank<T>> = communicators
        .into_iter()
        .zip(&expected)
        .map(|(communicator, values)| {
            let gpu = communicator.runtime().clone();
            Rank {
                buffers: values.iter().map(|values| gpu.upload(values).unwrap()).collect(),
                streams: (0..3).map(|_| gpu.stream().unwrap()).collect(),
                communicator,
            }
        })
        .collect();
    program.steps.iter().for_each(|step| model(&mut expected, step));
    let check = |rank: usize| {
        for (buffer, expected) in ranks[rank].buffers.iter().zip(&expected[rank]) {
            let found = buffer.download().unwrap();
            let same = found.iter().zip(expected).all(|(one, other)| one.same(*other));
            assert!(same, "seed {seed}, rank {rank}: {found:?} and {expected:?} after {:?}", program.steps);
        }
    };
    if threaded {
        std::thread::scope(|scope| {
            for rank in &ranks {
                let (check, program) = (&check, &program);
                scope.spawn(move || {
                    program.steps.iter().for_each(|step| rank.submit(step, program.ranks));
                    check(rank.communicator.rank() as usize);
                });
            }
        });
    } else {
        let mut next = vec![0; program.ranks];
        while next.iter().any(|next| *next < STEPS) {
            let rank = numbers.below(program.ranks);
            if let Some(step) = program.steps.get(next[rank]) {
                ranks[rank].submit(step, program.ranks);
                next[rank] += 1;
            }
        }
        (0..program.ranks).for_each(check);
    }
    drop(ranks);
    rig.finish();
}

fn run_any(seed: u64, threaded: bool) {
    match seed % 10 {
        0 => run::<i8>(seed, threaded),
        1 => run::<u8>(seed, threaded),
        2 => run::<i32>(seed, threaded),
        3 => run::<u32>(seed, threaded),
        4 => run::<i64>(seed, threaded),
        5 => run::<u64>(seed, threaded),
        6 => run::<f32>(seed, threaded),
        7 => run::<f64>(seed, threaded),
        8 => run::<f16>(seed, threaded),
        _ => run::<bf16>(seed, threaded),
    }
}

#[test]
fn two_hundred_programs_of_two_to_eight_ranks_leave_what_the_model_says() {
    (0..200).for_each(|seed| run_any(seed, false));
}

#[test]
fn ranks_on_threads_leave_what_the_model_says() {
    (200..240).for_each(|seed| run_any(seed, true));
}
