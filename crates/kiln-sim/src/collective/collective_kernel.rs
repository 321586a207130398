//! A function of a communicator: a collective, or a group of them.

use std::sync::Arc;

use kiln_driver::{Access, Error, Result};
use kiln_operation::{
    ARGUMENT_BYTES, Collective, CollectiveGroup, CollectiveKind, CollectiveOperand, CommunicatorRank,
    OperandEffect,
};

use crate::code::kernel::{KernelFault, KernelShape, LaunchContext, SimKernel, SimParameter, SimSignature};
use crate::collective::collective_launch::CollectiveCall;
use crate::collective::communicator::Contribution;
use crate::collective::description::Description;
use crate::collective::reduce::{average, combine};

/// What one step of a collective does.
#[derive(Clone, Debug)]
pub(crate) enum Exchange {
    /// Reads what the rank brings.
    Arrive,
    /// Writes what the rank receives, from what all ranks brought to each collective.
    Leave(Vec<Vec<Contribution>>),
    /// The rank was aborted, after it had arrived or before. Then a part of what it receives is there, or nothing.
    End { arrived: bool },
}

/// The collectives of one function, on one rank.
pub(crate) struct CollectiveKernel {
    pub(crate) rank: CommunicatorRank,
    group: CollectiveGroup,
    names: Vec<&'static str>,
    signature: SimSignature,
}

impl CollectiveKernel {
    /// The function of that name, if the rank has it.
    pub(crate) fn new(call: &'static str, rank: CommunicatorRank, name: &str) -> Result<Arc<Self>> {
        const NEXT: &str = "look up a collective of this communicator";
        let wrong = |error: kiln_operation::OperationError| Error::invalid(call, error.to_string(), NEXT);
        let group: CollectiveGroup = name.parse().map_err(wrong)?;
        group.check(rank.rank, rank.size).map_err(wrong)?;
        let count = SimParameter::Value { bytes: ARGUMENT_BYTES, alignment: ARGUMENT_BYTES };
        let (mut names, mut parameters) = (Vec::new(), Vec::new());
        for operands in group.operands(rank.rank, rank.size) {
            parameters.extend(operands.iter().map(|operand| SimParameter::Pointer(access(operand.effect))));
            parameters.push(count);
            names.extend(operands.iter().map(|operand| operand.name).chain(["count"]));
        }
        let signature = SimSignature {
            parameters,
            declares_accesses: true,
            max_threads_per_block: 1,
            ..SimSignature::default()
        };
        Ok(Arc::new(Self { rank, group, names, signature }))
    }

    /// The collectives of a launch with their counts.
    pub(crate) fn call(&self, call: &'static str, arguments: &[u8]) -> Result<CollectiveCall> {
        let collectives = self.group.collectives();
        let among_all = collectives.iter().filter(|collective| !collective.kind().has_peer()).count();
        let mut descriptions = Vec::with_capacity(collectives.len());
        let (mut parameter, mut place) = (0, 0);
        for (collective, operands) in collectives.iter().zip(self.operands()) {
            parameter += operands.len();
            let count = word(arguments, parameter);
            parameter += 1;
            let bytes = operands.iter().map(|operand| {
                count
                    .checked_mul(operand.blocks)
                    .and_then(|len| len.checked_mul(collective.element().bytes()))
            });
            if bytes.clone().any(|bytes| bytes.is_none_or(|bytes| bytes > i64::MAX as u64)) {
                let what = format!("{} of {count} elements", collective.name());
                return Err(Error::invalid(call, what, "use counts whose bytes fit 63 bits"));
            }
            descriptions.push(Description {
                collective: *collective,
                count,
                place: (place, among_all),
                is_captured: false,
            });
            place += usize::from(!collective.kind().has_peer());
        }
        Ok(CollectiveCall { rank: self.rank, descriptions })
    }

    fn operands(&self) -> Vec<Vec<CollectiveOperand>> {
        self.group.operands(self.rank.rank, self.rank.size)
    }

    /// Each collective with its first parameter, the number of its buffers, and its count.
    fn each(
        &self,
        launch: &LaunchContext<'_>,
        mut run: impl FnMut(usize, &Collective, Buffers<'_, '_>) -> std::result::Result<(), KernelFault>,
    ) -> std::result::Result<(), KernelFault> {
        let mut first = 0;
        for (at, (collective, operands)) in self.group.collectives().iter().zip(self.operands()).enumerate() {
            let count = launch.value::<u64>(first + operands.len())?;
            let block_bytes = count * collective.element().bytes();
            let buffers = Buffers { launch, first, count: operands.len(), block_bytes };
            run(at, collective, buffers)?;
            first += operands.len() + 1;
        }
        Ok(())
    }

    /// What a rank brings to a collective.
    fn read(
        &self,
        collective: &Collective,
        buffers: Buffers<'_, '_>,
    ) -> std::result::Result<Contribution, KernelFault> {
        use CollectiveKind::*;
        let (rank, size) = (u64::from(self.rank.rank), u64::from(self.rank.size));
        let is_root = collective.root_rank() == Some(self.rank.rank);
        let (first, blocks) = match collective.kind() {
            AllReduce | Reduce | Send => (0, 1),
            AllGather => (if collective.is_in_place() { rank } else { 0 }, 1),
            Gather => (if collective.is_in_place() && is_root { rank } else { 0 }, 1),
            ReduceScatter | AllToAll => (0, size),
            Broadcast if is_root => (0, 1),
            Scatter if is_root => (0, size),
            Broadcast | Scatter | Recv | Barrier => return Ok(Arc::default()),
        };
        let mut bytes = vec![0; (blocks * buffers.block_bytes) as usize];
        buffers.read(first, &mut bytes)?;
        Ok(bytes.into())
    }

    /// Writes what a rank receives from a collective.
    fn write(
        &self,
        collective: &Collective,
        brought: &[Contribution],
        buffers: Buffers<'_, '_>,
    ) -> std::result::Result<(), KernelFault> {
        use CollectiveKind::*;
        let rank = u64::from(self.rank.rank);
        let is_root = collective.root_rank() == Some(self.rank.rank);
        let block = |bytes: &Contribution, at: u64| {
            let start = (at * buffers.block_bytes) as usize;
            bytes.get(start..start + buffers.block_bytes as usize).unwrap_or_default().to_vec()
        };
        let all = |at: u64| brought.iter().map(move |bytes| block(bytes, at));
        let (first, bytes) = match collective.kind() {
            Send | Barrier => return Ok(()),
            Reduce | Gather if !is_root => return Ok(()),
            Broadcast if is_root => return Ok(()),
            Scatter if is_root && collective.is_in_place() => return Ok(()),
            AllReduce | Reduce => (0, reduced(collective, all(0))),
            ReduceScatter => {
                (if collective.is_in_place() { rank } else { 0 }, reduced(collective, all(rank)))
            }
            AllGather | Gather => (0, all(0).flatten().collect()),
            AllToAll => (0, all(rank).flatten().collect()),
            Recv => (0, brought.first().map(|bytes| bytes.to_vec()).unwrap_or_default()),
            Broadcast | Scatter => {
                let root = collective.root_rank().and_then(|root| brought.get(root as usize));
                let at = if collective.kind() == Scatter { rank } else { 0 };
                (0, root.map(|bytes| block(bytes, at)).unwrap_or_default())
            }
        };
        buffers.write(first, &bytes)
    }

    /// Leaves a part of what a rank receives from a collective that was ended.
    fn spoil(
        &self,
        collective: &Collective,
        buffers: Buffers<'_, '_>,
    ) -> std::result::Result<(), KernelFault> {
        use CollectiveKind::*;
        let (rank, size) = (u64::from(self.rank.rank), u64::from(self.rank.size));
        let is_root = collective.root_rank() == Some(self.rank.rank);
        let (first, blocks) = match collective.kind() {
            Send | Barrier => return Ok(()),
            Reduce | Gather if !is_root => return Ok(()),
            Broadcast if is_root => return Ok(()),
            Scatter if is_root && collective.is_in_place() => return Ok(()),
            ReduceScatter => (if collective.is_in_place() { rank } else { 0 }, 1),
            AllGather | Gather | AllToAll => (0, size),
            AllReduce | Reduce | Recv | Broadcast | Scatter => (0, 1),
        };
        buffers.write(first, &vec![0xa5; (blocks * buffers.block_bytes).div_ceil(2) as usize])
    }
}

/// The blocks of all ranks as one, in the order of the ranks.
pub(crate) fn reduced(collective: &Collective, mut blocks: impl Iterator<Item = Vec<u8>>) -> Vec<u8> {
    let (element, reduction) = (collective.element(), collective.reduction_kind());
    let Some(mut result) = blocks.next() else { return Vec::new() };
    let mut ranks = 1;
    for block in blocks {
        combine(element, reduction, &mut result, &block);
        ranks += 1;
    }
    if reduction == Some(kiln_operation::Reduction::Average) {
        average(element, &mut result, ranks);
    }
    result
}

/// The buffers of one collective of a launch. The first is read, and the last is written.
#[derive(Clone, Copy)]
struct Buffers<'c, 'l> {
    launch: &'c LaunchContext<'l>,
    first: usize,
    count: usize,
    block_bytes: u64,
}

impl Buffers<'_, '_> {
    fn read(&self, block: u64, into: &mut [u8]) -> std::result::Result<(), KernelFault> {
        if into.is_empty() {
            return Ok(());
        }
        let address = self.launch.address(self.first)?.wrapping_add(block * self.block_bytes);
        Ok(self.launch.memory().read(address, into)?)
    }

    fn write(&self, block: u64, bytes: &[u8]) -> std::result::Result<(), KernelFault> {
        if bytes.is_empty() {
            return Ok(());
        }
        let last = self.first + self.count - 1;
        let address = self.launch.address(last)?.wrapping_add(block * self.block_bytes);
        Ok(self.launch.memory().write(address, bytes)?)
    }
}

impl SimKernel for CollectiveKernel {
    fn signature(&self) -> &SimSignature {
        &self.signature
    }

    fn check_shape(&self, shape: &KernelShape) -> std::result::Result<(), String> {
        match shape.grid.count().saturating_mul(shape.block.count()) {
            1 => Ok(()),
            _ => Err("a collective takes a grid and a block of 1".into()),
        }
    }

    fn parameter_name(&self, index: usize) -> Option<&str> {
        self.names.get(index).copied()
    }

    fn run(&self, launch: &LaunchContext<'_>) -> std::result::Result<(), KernelFault> {
        match launch.exchange.as_ref() {
            None => Ok(()),
            Some(Exchange::Arrive) => self.each(launch, |_, collective, buffers| {
                let brought = self.read(collective, buffers)?;
                launch.bring(brought);
                Ok(())
            }),
            Some(Exchange::End { arrived: false }) => Ok(()),
            Some(Exchange::End { arrived: true }) => {
                self.each(launch, |_, collective, buffers| self.spoil(collective, buffers))
            }
            Some(Exchange::Leave(brought)) => self.each(launch, |at, collective, buffers| {
                self.write(collective, brought.get(at).map_or(&[], Vec::as_slice), buffers)
            }),
        }
    }
}

fn access(effect: OperandEffect) -> Access {
    match effect {
        OperandEffect::Scalar | OperandEffect::Reads => Access::Read,
        OperandEffect::Overwrites | OperandEffect::Writes => Access::Write,
        OperandEffect::ReadsAndWrites => Access::ReadWrite,
    }
}

/// Eight bytes of packed arguments.
fn word(arguments: &[u8], at: usize) -> u64 {
    arguments.as_chunks::<8>().0.get(at).map_or(0, |bytes| u64::from_le_bytes(*bytes))
}
