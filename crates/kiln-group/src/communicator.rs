//! `DeviceCommunicator`: one rank of several that exchange data.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use kiln_driver::Image;
use kiln_operation::{ARGUMENT_BYTES, CollectiveGroup, CommunicatorId, CommunicatorRank, OperandEffect};
use kiln_runtime::{
    DeviceRuntime, Effect, GpuRef, Kernel, Module, Number, Parameter, ParameterKind, Signature,
};

use crate::device_group::DeviceGroup;
use crate::error::{GroupError, Result};

/// How a communicator behaves. All ranks should have the same.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DeviceCommunicatorConfig {
    /// How long a rank waits for the others, while its communicator is made and in a collective. Then every rank that waits fails, with an error
    /// that names the ranks it waited for. On a simulated device it counts in real time, while no rank does anything.
    pub deadline: Duration,
}

impl Default for DeviceCommunicatorConfig {
    /// A deadline of one minute.
    fn default() -> Self {
        Self { deadline: Duration::from_secs(60) }
    }
}

/// One rank of a communicator: a device that exchanges data with the devices of other ranks, in this process or in others. Clones are the same rank.
///
/// Each rank calls the same collectives in the same order. A collective is a launch: it is queued, ordered with everything else that uses its
/// buffers, and can be part of a graph. It is done on a rank when that rank's buffers are.
///
/// ```
/// use kiln::group::{DeviceGroup, Reduction};
/// use kiln::sim::{DeviceConfig, Machine, MachineConfig};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let config = MachineConfig::seeded(1).device(DeviceConfig::default()).device(DeviceConfig::default());
/// let machine = Machine::new(config);
/// let group = DeviceGroup::over([machine.device(0)?, machine.device(1)?], &Default::default())?;
/// let ranks = group.communicators(&Default::default())?;
///
/// let one = group.runtime(0)?.upload(&[1.0_f32, 2.0])?;
/// let other = group.runtime(1)?.upload(&[10.0_f32, 20.0])?;
/// ranks[0].all_reduce_in_place(&one, Reduction::Sum).submit()?; // does not wait
/// ranks[1].all_reduce_in_place(&other, Reduction::Sum).submit()?;
/// assert_eq!(one.download()?, [11.0, 22.0]);
/// assert_eq!(other.download()?, [11.0, 22.0]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct DeviceCommunicator {
    inner: Arc<Inner>,
}

struct Inner {
    runtime: DeviceRuntime,
    rank: CommunicatorRank,
    /// What the barrier works in.
    scratch: GpuRef<u8>,
    functions: Mutex<HashMap<CollectiveGroup, Kernel>>,
    /// None for a rank that is alone.
    module: Option<Module>,
}

impl DeviceCommunicator {
    /// Makes the id of a new communicator. One rank makes it and passes it on to the others; its process must live until all of them have joined.
    ///
    /// # Errors
    /// NCCL is missing or too old; a lost device.
    pub fn new_id(runtime: &DeviceRuntime) -> Result<CommunicatorId> {
        let made = OnceLock::new();
        let failed = |source| GroupError::Rank { rank: 0, source };
        drop(runtime.load_module(&Image::CommunicatorId { id: &made }).map_err(failed)?);
        let bytes = made.get().map_or(&[][..], Vec::as_slice);
        CommunicatorId::try_from(bytes).map_err(GroupError::collective)
    }

    /// Becomes one rank of a communicator. It does not wait for the others; the first collective does.
    ///
    /// # Errors
    /// A rank that is not below the size; a rank that joined before; another size than another rank gave; NCCL is missing or too old.
    pub fn join(
        runtime: &DeviceRuntime,
        id: CommunicatorId,
        rank: u32,
        size: u32,
        config: &DeviceCommunicatorConfig,
    ) -> Result<Self> {
        let failed = |source| GroupError::Rank { rank, source };
        let joined = CommunicatorRank { id, rank, size, deadline: config.deadline };
        joined.check().map_err(GroupError::collective)?;
        let scratch = runtime.zeros::<u8>(1).map_err(failed)?;
        let load = || runtime.load_module(&Image::Communicator(&joined.to_string())).map_err(failed);
        let module = (size > 1).then(load).transpose()?;
        let functions = Mutex::default();
        let inner = Inner { runtime: runtime.clone(), rank: joined, scratch, functions, module };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// A communicator of this device alone. Its collectives are copies, and it needs no NCCL.
    ///
    /// # Errors
    /// A lost device, or one without memory.
    pub fn alone(runtime: &DeviceRuntime) -> Result<Self> {
        let id = CommunicatorId::new([0; CommunicatorId::BYTES]);
        Self::join(runtime, id, 0, 1, &DeviceCommunicatorConfig::default())
    }

    /// This rank, counted from 0.
    pub fn rank(&self) -> u32 {
        self.inner.rank.rank
    }

    /// The number of ranks.
    pub fn size(&self) -> u32 {
        self.inner.rank.size
    }

    /// The id that all ranks of it have.
    pub fn id(&self) -> CommunicatorId {
        self.inner.rank.id
    }

    /// The device of this rank.
    pub fn runtime(&self) -> &DeviceRuntime {
        &self.inner.runtime
    }

    pub(crate) fn config(&self) -> DeviceCommunicatorConfig {
        DeviceCommunicatorConfig { deadline: self.inner.rank.deadline }
    }

    pub(crate) fn scratch(&self) -> &GpuRef<u8> {
        &self.inner.scratch
    }

    /// Whether both are the same rank of the same communicator.
    pub(crate) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.inner, &other.inner)
    }

    /// The kernel of a group, which is looked up once; none for a rank that is alone.
    pub(crate) fn function(&self, group: &CollectiveGroup) -> Result<Option<Kernel>> {
        let Some(module) = &self.inner.module else { return Ok(None) };
        let mut functions = self.inner.functions.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = functions.get(group) {
            return Ok(Some(known.clone()));
        }
        group.check(self.rank(), self.size()).map_err(GroupError::collective)?;
        let failed = |source| GroupError::Rank { rank: self.rank(), source };
        let signature = signature(group, self.rank(), self.size());
        let kernel = module.kernel(&group.to_string(), Some(signature)).map_err(failed)?;
        functions.insert(group.clone(), kernel.clone());
        Ok(Some(kernel))
    }
}

impl DeviceGroup {
    /// A communicator of all devices of the group, as one rank for each device, in their order.
    ///
    /// # Errors
    /// As for [`DeviceCommunicator::join`].
    pub fn communicators(&self, config: &DeviceCommunicatorConfig) -> Result<Vec<DeviceCommunicator>> {
        if self.len() == 1 {
            return Ok(vec![DeviceCommunicator::alone(self.runtime(0)?)?]);
        }
        let id = DeviceCommunicator::new_id(self.runtime(0)?)?;
        let size = self.len() as u32;
        let ranks = (0..size).zip(self.runtimes());
        ranks.map(|(rank, runtime)| DeviceCommunicator::join(runtime, id, rank, size, config)).collect()
    }
}

/// The parameters of a group, as launches are compared with them.
fn signature(group: &CollectiveGroup, rank: u32, size: u32) -> Signature {
    let operands = group.operands(rank, size).into_iter();
    let names = operands.flat_map(|operands| {
        let buffers = operands.into_iter().map(|operand| (operand.name, operand.effect));
        buffers.chain([("count", OperandEffect::Scalar)])
    });
    let parameter = |(at, (name, effect)): (u32, (&str, OperandEffect))| Parameter {
        name: Some(name.to_owned()),
        offset: at * ARGUMENT_BYTES,
        bytes: ARGUMENT_BYTES,
        kind: match effect {
            OperandEffect::Scalar => ParameterKind::Value,
            OperandEffect::Reads => ParameterKind::Pointer(Effect::Reads),
            OperandEffect::Overwrites | OperandEffect::Writes => ParameterKind::Pointer(Effect::Writes),
            OperandEffect::ReadsAndWrites => ParameterKind::Pointer(Effect::ReadsAndWrites),
        },
        number: Number::Unknown,
    };
    Signature::new((0..).zip(names).map(parameter).collect())
}

impl fmt::Debug for DeviceCommunicator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let CommunicatorRank { id, rank, size, .. } = self.inner.rank;
        write!(f, "rank {rank} of {size} of communicator {id:?}")
    }
}
