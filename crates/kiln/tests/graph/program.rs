//! Random programs with graphs in them.
//!
//! The host side is plain vectors, changed one piece of work after the other. The simulator's own happens-before is the other oracle, and the
//! same program without graphs is the third.

use std::ops::Range;

use kiln::order::Mutation;
use kiln::{
    DeviceRuntime, GpuRef, Graph, RuntimeConfig, Stream,
    error::ErrorKind,
    graph::{GraphError, Input, NodeId, Output},
};
use kiln_sim::{Machine, MachineConfig, SimReport};

use super::operation::Operation;
use crate::order::kernels::{Kernels, library};

const LEN: usize = 8;
const BUFFERS: usize = 5;
const STREAMS: usize = 3;

/// How graphs are run.
pub(crate) enum Route {
    Graph,
    /// Each piece of work by itself. Changes are made where the graph accepted them.
    Piecewise(Vec<bool>),
}

/// What a run showed.
pub(crate) struct Outcome {
    pub(crate) report: SimReport,
    pub(crate) mismatch: Option<String>,
    pub(crate) bytes: Vec<Vec<u32>>,
    /// For each change that was tried, whether the graph took it.
    pub(crate) accepted: Vec<bool>,
    pub(crate) replays: usize,
}

impl Outcome {
    pub(crate) fn is_clean(&self) -> bool {
        self.mismatch.is_none() && self.report.is_clean()
    }
}

/// Runs the program of a seed.
pub(crate) fn run(seed: u64, steps: usize, route: &Route) -> Outcome {
    let machine = Machine::new(MachineConfig::seeded(seed).library(library()));
    let config = RuntimeConfig { max_streams: STREAMS, ..RuntimeConfig::default() };
    let (mismatch, bytes, accepted, replays) = {
        let gpu = DeviceRuntime::from_driver(machine.device(0).unwrap(), config).unwrap();
        let mut world = World::new(&gpu, seed, route);
        (0..steps).for_each(|_| world.step());
        let bytes = world.all_bytes();
        (world.mismatch, bytes, world.accepted, world.replays)
    };
    Outcome { report: machine.finish(), mismatch, bytes, accepted, replays }
}

/// What one replay of a random graph showed.
pub(crate) struct Replayed {
    pub(crate) report: SimReport,
    pub(crate) edges: usize,
}

/// Records a graph and replays it once, perhaps without one of its edges.
pub(crate) fn replay_once(seed: u64, without: Option<usize>) -> Replayed {
    let machine = Machine::new(MachineConfig::seeded(seed).library(library()));
    let mutation = without.map(Mutation::GraphEdge);
    let config = RuntimeConfig { mutation, ..RuntimeConfig::default() };
    let edges = {
        let gpu = DeviceRuntime::from_driver(machine.device(0).unwrap(), config).unwrap();
        let mut world = World::new(&gpu, seed, &Route::Graph);
        world.record();
        world.replay();
        world
            .recorded
            .as_ref()
            .and_then(|recorded| recorded.graph.as_ref())
            .map_or(0, |graph| graph.edges().count())
    };
    Replayed { report: machine.finish(), edges }
}

/// A small generator; the programs must not depend on a library.
struct Choices(u64);

impl Choices {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit.max(1) as u64) as usize
    }
}

/// A graph, or the work it would be. The buffers are those of when it was recorded.
struct Recorded {
    graph: Option<Graph>,
    work: Vec<(Operation, Option<NodeId>)>,
    /// What is uploaded first, and where to.
    input: (usize, Vec<u32>, Option<Input<u32>>),
    /// What is downloaded last, and what it should be.
    output: (usize, Vec<u32>, Option<Output<u32>>),
    buffers: Vec<GpuRef<u32>>,
}

struct World<'a> {
    gpu: &'a DeviceRuntime,
    route: &'a Route,
    kernels: Kernels,
    choices: Choices,
    streams: Vec<Stream>,
    buffers: Vec<GpuRef<u32>>,
    host: Vec<Vec<u32>>,
    recorded: Option<Recorded>,
    accepted: Vec<bool>,
    replays: usize,
    mismatch: Option<String>,
}

impl<'a> World<'a> {
    fn new(gpu: &'a DeviceRuntime, seed: u64, route: &'a Route) -> Self {
        let mut choices = Choices(seed ^ 0x6f2a_91c4);
        let streams: Vec<Stream> = (0..STREAMS).map(|_| gpu.stream().unwrap()).collect();
        let host: Vec<Vec<u32>> =
            (0..BUFFERS).map(|_| (0..LEN).map(|_| choices.next() as u32).collect()).collect();
        let upload = |(at, data): (usize, &Vec<u32>)| {
            let buffer = gpu.allocate_on(&streams[at % STREAMS], LEN).unwrap();
            buffer.upload(data).unwrap();
            buffer
        };
        let buffers = host.iter().enumerate().map(upload).collect();
        let kernels = Kernels::load(gpu);
        let (accepted, replays) = (Vec::new(), 0);
        Self {
            gpu,
            route,
            kernels,
            choices,
            streams,
            buffers,
            host,
            recorded: None,
            accepted,
            replays,
            mismatch: None,
        }
    }

    fn step(&mut self) {
        match self.choices.below(16) {
            0 => self.record(),
            _ if self.recorded.is_none() => self.record(),
            1..=5 => self.replay(),
            6..=9 => self.plain(),
            10 | 11 => self.change(),
            12 => self.change_input(),
            13 => self.look_at_output(),
            14 => self.look_at_buffer(),
            _ => self.replace_buffer(),
        }
    }

    fn stream(&mut self) -> Stream {
        let at = self.choices.below(self.streams.len());
        self.streams[at].clone()
    }

    fn range(&mut self) -> Range<usize> {
        match self.choices.below(2) {
            0 => {
                let start = self.choices.below(LEN);
                start..start + 1 + self.choices.below(LEN - start)
            }
            _ => 0..LEN,
        }
    }

    fn operation(&mut self, kind: usize) -> Operation {
        let to = self.choices.below(BUFFERS);
        let other = |choices: &mut Choices| (to + 1 + choices.below(BUFFERS - 1)) % BUFFERS;
        let (a, b) = (other(&mut self.choices), other(&mut self.choices));
        let range = self.range();
        let value = self.choices.next() as u32;
        match kind {
            0 => Operation::Mix { to, from: a, range, k: value | 1 },
            1 => Operation::Join { to, a, b, range },
            2 => Operation::Copy { to, from: a, range },
            _ => Operation::Fill { to, range, value },
        }
    }

    fn some_operation(&mut self) -> Operation {
        let kind = self.choices.below(4);
        self.operation(kind)
    }

    fn plain(&mut self) {
        let (operation, stream) = (self.some_operation(), self.stream());
        operation.submit(self.gpu, &stream, &self.kernels, &self.buffers);
        operation.on_host(&mut self.host);
    }

    /// Records an upload, some work and a download. The graph before this one is dropped, with its replays under way.
    fn record(&mut self) {
        self.recorded = None;
        let count = 2 + self.choices.below(9);
        let work: Vec<Operation> = (0..count).map(|_| self.some_operation()).collect();
        let (up, down) = (self.choices.below(BUFFERS), self.choices.below(BUFFERS));
        let data: Vec<u32> = (0..LEN).map(|_| self.choices.next() as u32).collect();
        let buffers = self.buffers.clone();
        self.recorded = Some(match self.route {
            Route::Piecewise(_) => Recorded {
                graph: None,
                work: work.into_iter().map(|operation| (operation, None)).collect(),
                input: (up, data, None),
                output: (down, vec![0; LEN], None),
                buffers,
            },
            Route::Graph => {
                let mut builder = self.gpu.graph();
                let input = builder.upload(&buffers[up], &data).unwrap();
                let kernels = &self.kernels;
                let nodes = work.into_iter().map(|operation| {
                    let node = operation.record(&mut builder, kernels, &buffers);
                    (operation, Some(node))
                });
                let work = nodes.collect();
                let output = builder.download(&buffers[down]).unwrap();
                Recorded {
                    graph: Some(builder.build().unwrap()),
                    work,
                    input: (up, data, Some(input)),
                    output: (down, vec![0; LEN], Some(output)),
                    buffers,
                }
            }
        });
    }

    fn replay(&mut self) {
        let stream = self.stream();
        let Some(recorded) = &mut self.recorded else { return };
        match &recorded.graph {
            Some(graph) => drop(graph.replay_on(&stream).unwrap()),
            None => {
                recorded.buffers[recorded.input.0].upload_on(&stream, &recorded.input.1).unwrap();
                for (operation, _) in &recorded.work {
                    operation.submit(self.gpu, &stream, &self.kernels, &recorded.buffers);
                }
            }
        }
        self.host[recorded.input.0].clone_from(&recorded.input.1);
        recorded.work.iter().for_each(|(operation, _)| operation.on_host(&mut self.host));
        recorded.output.1.clone_from(&self.host[recorded.output.0]);
        self.replays += 1;
    }

    /// Tries to change a node, and looks whether it was taken if and only if it can be right.
    fn change(&mut self) {
        let at = {
            let count = self.recorded.as_ref().map_or(0, |recorded| recorded.work.len());
            self.choices.below(count)
        };
        let kind = match self.recorded.as_ref().and_then(|recorded| recorded.work.get(at)) {
            Some((Operation::Mix { .. }, _)) => 0,
            Some((Operation::Join { .. }, _)) => 1,
            Some((Operation::Copy { .. }, _)) => 2,
            _ => 3,
        };
        let operation = self.operation(kind);
        let tried = self.accepted.len();
        let Some(recorded) = &mut self.recorded else { return };
        let accepted = match (&mut recorded.graph, self.route) {
            (Some(graph), _) => {
                let Some(node) = recorded.work[at].1 else { return };
                let legal =
                    is_legal(graph, &recorded.work, &recorded.input, &recorded.output, at, &operation);
                let result = operation.update(graph, node, &recorded.buffers);
                let taken = match result.as_ref().map_err(kiln::Error::kind) {
                    Ok(()) => true,
                    Err(ErrorKind::Graph(GraphError::Unordered { .. })) => false,
                    Err(other) => panic!("{other}"),
                };
                if taken != legal {
                    self.mismatch = Some(format!("a change that is legal ({legal}) was taken ({taken})"));
                }
                taken
            }
            (None, Route::Piecewise(accepted)) => accepted[tried],
            (None, Route::Graph) => return,
        };
        if accepted {
            recorded.work[at].0 = operation;
        }
        self.accepted.push(accepted);
    }

    fn change_input(&mut self) {
        let data: Vec<u32> = (0..LEN).map(|_| self.choices.next() as u32).collect();
        let Some(recorded) = &mut self.recorded else { return };
        if let (Some(graph), Some(input)) = (&mut recorded.graph, &recorded.input.2) {
            graph.input(input).unwrap().copy_from_slice(&data);
        }
        recorded.input.1 = data;
    }

    fn look_at_output(&mut self) {
        let Some(recorded) = &mut self.recorded else { return };
        if let (Some(graph), Some(output)) = (&mut recorded.graph, &recorded.output.2) {
            let seen = graph.output(output).unwrap();
            if seen != recorded.output.1 {
                let wanted = &recorded.output.1;
                self.mismatch = Some(format!("an output is {seen:?} and should be {wanted:?}"));
            }
        }
    }

    fn look_at_buffer(&mut self) {
        let at = self.choices.below(BUFFERS);
        let seen = self.buffers[at].download().unwrap();
        if seen != self.host[at] {
            self.mismatch = Some(format!("buffer {at} is {seen:?} and should be {:?}", self.host[at]));
        }
    }

    /// Drops a graph and a buffer with work on both under way, and takes another buffer in its place, perhaps in the same memory.
    fn replace_buffer(&mut self) {
        self.recorded = None;
        let (at, stream) = (self.choices.below(BUFFERS), self.stream());
        let buffer = self.gpu.allocate_on(&stream, LEN).unwrap();
        buffer.upload(&self.host[at]).unwrap();
        self.buffers[at] = buffer;
    }

    fn all_bytes(&mut self) -> Vec<Vec<u32>> {
        self.look_at_output();
        let seen: Vec<Vec<u32>> = self.buffers.iter().map(|buffer| buffer.download().unwrap()).collect();
        if seen != self.host {
            self.mismatch = Some(format!("the buffers are {seen:?} and should be {:?}", self.host));
        }
        seen
    }
}

/// Whether a node may become another operation: everything it then conflicts with is ordered against it by the edges there are. Node 0 is the
/// upload and the last one the download.
fn is_legal(
    graph: &Graph,
    work: &[(Operation, Option<NodeId>)],
    input: &(usize, Vec<u32>, Option<Input<u32>>),
    output: &(usize, Vec<u32>, Option<Output<u32>>),
    at: usize,
    operation: &Operation,
) -> bool {
    let last = work.len() + 1;
    let conflicts = |node: usize| {
        let touches = |buffer: usize, writes: bool| {
            operation.uses().iter().any(|(at, _, wrote)| *at == buffer && (writes || *wrote))
        };
        match node {
            0 => touches(input.0, true),
            node if node == last => touches(output.0, false),
            node => operation.conflicts(&work[node - 1].0),
        }
    };
    let edges: Vec<(u32, u32)> = graph.edges().collect();
    let reaches = |from: usize, to: usize| {
        let mut reached = vec![from as u32];
        let mut at = 0;
        while at < reached.len() {
            let next: Vec<u32> =
                edges.iter().filter(|(before, _)| *before == reached[at]).map(|(_, after)| *after).collect();
            next.into_iter().for_each(|node| {
                if !reached.contains(&node) {
                    reached.push(node)
                }
            });
            at += 1;
        }
        reached.contains(&(to as u32))
    };
    let own = at + 1;
    (0..=last)
        .filter(|node| *node != own && conflicts(*node))
        .all(|node| if node < own { reaches(node, own) } else { reaches(own, node) })
}
