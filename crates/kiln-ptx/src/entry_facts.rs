//! Facts about an entry that a launch needs: signature, shared memory, barriers, bounds, required features.

use std::collections::BTreeMap;

use crate::effects::Doubt;
use crate::exec::{matrix::is_run, tensor_form, texture};
use crate::function::PtxFunctionId;
use crate::instruction_family::Family;
use crate::instruction_form::Form;
use crate::launch_bounds::LaunchBounds;
use crate::modifier::Flag;
use crate::module::{PtxModule, PtxVersion, Target};
use crate::name::Name;
use crate::opcode::Opcode;
use crate::operand::{Immediate, PtxOperand};
use crate::position::Position;
use crate::reachable_functions::Reach;
use crate::shared_memory::SharedMemory;
use crate::signature::PtxSignature;
use crate::special_register::SpecialRegister;

/// What is known about an entry before it is launched.
#[derive(Clone, Debug, PartialEq)]
pub struct EntryFacts {
    /// Its name.
    pub name: Name,
    /// Its number in the module.
    pub function: PtxFunctionId,
    /// Parameters, with what the kernel does with the memory behind pointers.
    pub signature: PtxSignature,
    /// Why some effects cannot be told; empty when all can.
    pub doubts: Vec<Doubt>,
    /// Shared memory.
    pub shared: SharedMemory,
    /// Barriers.
    pub barriers: BarrierUse,
    /// `.maxntid` and the like.
    pub bounds: LaunchBounds,
    /// What the device and the driver must offer.
    pub requirements: Requirements,
    /// Instructions beyond the ordinary, in the order of the text.
    pub unsupported: Vec<Unsupported>,
}

/// The barriers code uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct BarrierUse {
    /// Bit `n`: barrier `n` of a block is named. All bits when a register names one.
    pub block: u16,
    /// Whether warps synchronise (`bar.warp.sync`).
    pub warp: bool,
    /// Whether clusters synchronise (`barrier.cluster`).
    pub cluster: bool,
    /// Whether barriers in shared memory are used (`mbarrier`).
    pub memory: bool,
}

/// What a device and its driver must offer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Requirements {
    /// The PTX version: the driver must know it.
    pub version: PtxVersion,
    /// The architecture the module is for: the device must be that or newer.
    pub target: Target,
    /// Features beyond the ordinary, each with the first place that asks for it.
    pub features: Vec<(Feature, Position)>,
}

impl Requirements {
    /// Whether `feature` is asked for.
    pub fn needs(&self, feature: Feature) -> bool {
        self.features.iter().any(|(f, _)| *f == feature)
    }
}

/// Something beyond an ordinary launch on an ordinary device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Feature {
    /// Instructions of a family other than [`Family::Ordinary`].
    Family(Family),
    /// Reads the workspace of a cooperative launch: grid-wide barriers need one.
    CooperativeLaunch,
    /// Runs in clusters, as its header says.
    ClusterLaunch,
    /// Calls `printf`.
    Printf,
    /// Contains assertions.
    Assert,
    /// Allocates or frees device memory itself.
    Heap,
    /// Calls a function the module does not define and the runtime is not known to offer.
    ExternalCall,
    /// Calls through function pointers.
    IndirectCall,
}

/// An instruction of a family other than [`Family::Ordinary`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unsupported {
    /// Opcode and modifiers as written.
    pub instruction: Name,
    /// Its family.
    pub family: Family,
    /// The function that contains it.
    pub function: Name,
    /// Where.
    pub position: Position,
}

impl PtxModule {
    /// All that is known about an entry; `None` when `entry` is none.
    ///
    /// ```
    /// # let text = "
    /// #     .version 9.0
    /// #     .target sm_90
    /// #     .address_size 64
    /// #     .visible .entry fill(.param .u64 out, .param .u32 value) .maxntid 256 {
    /// #         .reg .b32 %r<2>;
    /// #         .reg .b64 %rd<2>;
    /// #         ld.param.u64 %rd1, [out];
    /// #         ld.param.u32 %r1, [value];
    /// #         st.global.u32 [%rd1], %r1;
    /// #         bar.sync 0;
    /// #         ret;
    /// #     }";
    /// use kiln_ptx::{PointerAccess, PtxModule, PtxParameterKind};
    ///
    /// let module = PtxModule::parse(text)?; // fill(out, value): *out = value
    /// let facts = module.facts(module.find_function("fill").unwrap()).unwrap();
    /// let [out, value] = &facts.signature.parameters[..] else { unreachable!() };
    /// assert_eq!((out.kind, out.offset, out.size_bytes), (PtxParameterKind::Pointer, 0, 8));
    /// assert_eq!(out.pointers[0].effect.access(), PointerAccess::Writes);
    /// assert_eq!((value.kind, value.offset, value.size_bytes), (PtxParameterKind::Value, 8, 4));
    /// assert_eq!(facts.barriers.block, 1);
    /// assert_eq!(facts.bounds.max_threads_per_block(), Some(256));
    /// # Ok::<(), kiln_ptx::ParseError>(())
    /// ```
    pub fn facts(&self, entry: PtxFunctionId) -> Option<EntryFacts> {
        let function = self.function(entry).filter(|f| f.is_entry())?;
        let effects = self.effects(entry);
        let reach = Reach::of(self, entry);
        let mut survey = Survey::default();
        if function.bounds.required_cluster.is_some() || function.bounds.explicit_cluster {
            survey.needs(Feature::ClusterLaunch, function.origin.position());
        }
        survey.visit_calls(self, &reach, function.origin.position());
        for id in &reach.functions {
            survey.visit_function(self, *id);
        }
        survey.unsupported.sort_by_key(|found| found.position);
        Some(EntryFacts {
            name: function.name.clone(),
            function: entry,
            signature: PtxSignature::of(self, function, effects.as_ref()),
            doubts: effects.map_or_else(Vec::new, |effects| effects.doubts),
            shared: SharedMemory::of(self, &reach),
            barriers: survey.barriers,
            bounds: function.bounds.clone(),
            requirements: Requirements {
                version: self.version,
                target: self.target.clone(),
                features: survey.features.into_iter().collect(),
            },
            unsupported: survey.unsupported,
        })
    }
}

/// What is found while walking over the code an entry can get to.
#[derive(Default)]
struct Survey {
    barriers: BarrierUse,
    features: BTreeMap<Feature, Position>,
    unsupported: Vec<Unsupported>,
}

impl Survey {
    /// Notes a feature; the earliest place wins.
    fn needs(&mut self, feature: Feature, position: Position) {
        let first = self.features.entry(feature).or_insert(position);
        *first = position.min(*first);
    }

    fn visit_calls(&mut self, module: &PtxModule, reach: &Reach, entry: Position) {
        if reach.indirect {
            self.needs(Feature::IndirectCall, entry);
        }
        for function in reach.external.iter().filter_map(|id| module.function(*id)) {
            let feature = match &*function.name {
                "vprintf" => Feature::Printf,
                "__assertfail" => Feature::Assert,
                "malloc" | "free" => Feature::Heap,
                _ => Feature::ExternalCall,
            };
            self.needs(feature, function.origin.position());
        }
    }

    fn visit_function(&mut self, module: &PtxModule, id: PtxFunctionId) {
        let Some(function) = module.function(id) else { return };
        let Some(body) = &function.body else { return };
        for instruction in body.instructions() {
            let Some(form) = module.form(instruction.form) else { continue };
            let position = instruction.origin.position();
            let operands = body.operands(instruction);
            match form.opcode() {
                Opcode::Bar | Opcode::Barrier if form.has(Flag::Warp) => self.barriers.warp = true,
                Opcode::Barrier if form.family() == Family::Cluster => self.barriers.cluster = true,
                Opcode::Bar | Opcode::Barrier => {
                    self.barriers.block |= named_barriers(operands, form.has(Flag::Red))
                }
                Opcode::Mbarrier => self.barriers.memory = true,
                _ => {}
            }
            if operands.iter().any(|operand| matches!(operand, PtxOperand::Special(SpecialRegister::Env(_))))
            {
                self.needs(Feature::CooperativeLaunch, position);
            }
            let family = form.family();
            if family != Family::Ordinary {
                self.needs(Feature::Family(family), position);
            }
            if family != Family::Ordinary && !is_executed(form) {
                let (instruction, function) = (form.name(), function.name.clone());
                self.unsupported.push(Unsupported { instruction, family, function, position });
            }
        }
    }
}

/// Whether an instruction of a family other than the ordinary one is executed, as far as its form tells.
fn is_executed(form: &Form) -> bool {
    let is_bulk = form.opcode() == Opcode::Cp && form.has(Flag::Bulk) && !form.has(Flag::Tensor);
    let is_cluster = form.family() == Family::Cluster && form.opcode() != Opcode::Clusterlaunchcontrol;
    is_bulk || is_cluster || is_run(form) || texture::is_run(form) || tensor_form::is_run(form)
}

/// The bits of the barriers an instruction names; a reduction has its result before them.
fn named_barriers(operands: &[PtxOperand], reduces: bool) -> u16 {
    match operands.get(usize::from(reduces)) {
        Some(PtxOperand::Immediate(Immediate::Signed(n @ 0..=15))) => 1 << n,
        Some(PtxOperand::Immediate(Immediate::Unsigned(n @ 0..=15))) => 1 << n,
        _ => u16::MAX,
    }
}
