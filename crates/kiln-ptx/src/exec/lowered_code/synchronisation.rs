//! What the code can do to order its threads, found once for each launch.

use super::*;
use crate::exec::tensor_form::TensorAction;

impl Code {
    /// Whether threads can be ordered through memory: by fences, or by accesses that acquire or release.
    pub(crate) fn synchronises(&self) -> bool {
        let orders = |strength: &Strength| strength.acquire || strength.release;
        self.steps.iter().any(|step| match &step.op {
            Op::Mbarrier(_) | Op::ClusterBarrier(_) => true,
            Op::Fence(fence) => fence.orders(),
            Op::Load(load) => orders(&load.strength),
            Op::Store(store) => orders(&store.strength),
            Op::Atomic(atomic) => orders(&atomic.strength),
            _ => false,
        })
    }

    /// Whether a barrier can order some threads of a warp or a block and not the others.
    pub(crate) fn has_partial_barriers(&self) -> bool {
        self.steps.iter().any(|step| match &step.op {
            Op::Barrier(barrier) => barrier.count.is_some() || barrier.kind == BarrierKind::Arrive,
            Op::Collective(collective) => {
                collective.kind == CollectiveKind::Sync
                    && !collective.members.is_some_and(|members| self.names_all_lanes(members))
            }
            _ => false,
        })
    }

    /// Whether the kernel is empty: each thread exits with its first instruction.
    pub(crate) fn ends_at_once(&self) -> bool {
        let start = self.functions.first().map_or(0, |function| function.start as usize);
        let first = self.steps.iter().skip(start).find(|step| !matches!(step.op, Op::Nothing));
        first.is_some_and(|step| matches!(step.op, Op::Return | Op::Exit) && step.guard == PredSource::ALWAYS)
    }

    /// Whether it reads memory as a constant: `ld.global.nc`, `ldu`, `tex`, `tld4`.
    pub(crate) fn reads_constants(&self) -> bool {
        self.steps.iter().any(|step| match &step.op {
            Op::Load(load) => load.constant,
            Op::Texture(texture) => {
                matches!(texture.action, TextureAction::Fetch { .. } | TextureAction::Gather { .. })
            }
            _ => false,
        })
    }

    /// Whether copies or products read shared memory through the async proxy.
    pub(crate) fn reads_async(&self) -> bool {
        self.steps.iter().any(|step| match &step.op {
            Op::BulkCopy(copy) => copy.from_place == Place::Shared,
            Op::TensorCopy(copy) => matches!(copy.action, TensorAction::Store | TensorAction::Reduce(_)),
            _ => step.is_async_proxy(),
        })
    }

    /// Whether lanes of a warp run in lockstep, as on devices before sm_70.
    pub(crate) fn is_lockstep(&self) -> bool {
        self.module.target.sm().is_some_and(|sm| sm < 70)
    }

    /// Whether threads ask which lanes run with them. Such a kernel is right on hardware as long as lanes stay together where they can, and it
    /// would see every lane that runs ahead.
    pub(crate) fn reads_active_mask(&self) -> bool {
        self.steps.iter().any(|step| matches!(step.op, Op::ActiveMask { .. }))
    }

    fn names_all_lanes(&self, members: Source) -> bool {
        let constant = members.split().ok().and_then(|at| self.constants.get(at as usize));
        matches!(constant, Some(Constant::Bits(bits)) if *bits as u32 == u32::MAX)
    }
}
