//! What a step reads and writes.

use super::*;

/// What a step does with one of its operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OperandUse {
    /// It computes with the value, decides by it, or uses it as an address.
    Uses(Source),
    /// It hands the value on as it is, or picks some of its bits.
    Carries(Source),
    UsesPredicate(PredSource),
    CarriesPredicate(PredSource),
    Writes(Reg),
    WritesPredicate(Pred),
}

use OperandUse::{Carries, CarriesPredicate, Uses, UsesPredicate, Writes, WritesPredicate};

impl Op {
    /// Calls `visit` for every operand; guards are not among them.
    pub(crate) fn operands(&self, visit: &mut dyn FnMut(OperandUse)) {
        match self {
            Self::Alu { to, from, .. } => {
                from.iter().for_each(|source| visit(Uses(*source)));
                visit(Writes(*to));
            }
            Self::Compare(compare) => {
                [compare.a, compare.b].into_iter().for_each(|source| visit(Uses(source)));
                if let Some((_, with)) = compare.combine {
                    visit(CarriesPredicate(with));
                }
                [compare.to, compare.opposite].into_iter().for_each(|to| visit(WritesPredicate(to)));
            }
            Self::Select { to, a, b, pick } => {
                [*a, *b].into_iter().for_each(|source| visit(Carries(source)));
                visit(CarriesPredicate(*pick));
                visit(Writes(*to));
            }
            Self::Logic { to, a, b, .. } => {
                [*a, *b].into_iter().for_each(|source| visit(CarriesPredicate(source)));
                visit(WritesPredicate(*to));
            }
            Self::Copy { to, from } => {
                visit(Carries(*from));
                visit(Writes(*to));
            }
            Self::Carry(_) | Self::Split { .. } | Self::Join { .. } => self.piece_operands(visit),
            Self::Special { to, .. }
            | Self::FrameAddress { to, .. }
            | Self::StackSave { to }
            | Self::ActiveMask { to } => visit(Writes(*to)),
            Self::Allocate { to, bytes, .. } => {
                visit(Uses(*bytes));
                visit(Writes(*to));
            }
            Self::Branch { when, .. } => visit(UsesPredicate(*when)),
            Self::Table { index: source, .. } | Self::StackRestore { from: source } => visit(Uses(*source)),
            Self::WaitForCopies { open } => open.iter().for_each(|source| visit(Uses(*source))),
            Self::Jump { .. }
            | Self::Return
            | Self::Exit
            | Self::Trap
            | Self::Fence(_)
            | Self::ClusterBarrier(_)
            | Self::CommitCopies
            | Self::CommitBulkCopies
            | Self::Yield
            | Self::Nothing
            | Self::Unsupported(_) => {}
            Self::Warpgroup(warpgroup) => match &**warpgroup {
                Warpgroup::Multiply(step) => step.operands(visit),
                Warpgroup::Fence | Warpgroup::Commit | Warpgroup::Wait(_) => {}
            },
            Self::CheckMetadata { .. } | Self::TileAddresses(_) | Self::ClusterAddress(_) => {
                self.meeting_operands(visit);
            }
            Self::Collective(_) | Self::Barrier(_) | Self::Call(_) | Self::Builtin(_) => {
                self.meeting_operands(visit);
            }
            Self::IsSpace { .. } | Self::Load(_) | Self::Store(_) | Self::Atomic(_) => {
                self.memory_operands(visit)
            }
            Self::CopyAsync(_) | Self::Mbarrier(_) | Self::Texture(_) | Self::BulkCopy(_) => {
                self.memory_operands(visit);
            }
            Self::TensorCopy(_) | Self::TensorMapEdit(_) => self.memory_operands(visit),
            Self::WaitForBulkCopies { open } => visit(Uses(*open)),
        }
    }

    /// Operands of steps that take values apart and put them together.
    fn piece_operands(&self, visit: &mut dyn FnMut(OperandUse)) {
        match self {
            Self::Carry(carry) => {
                carry.from.iter().for_each(|source| visit(Uses(*source)));
                visit(Writes(carry.to));
            }
            Self::Split { to, from, .. } => {
                visit(Carries(*from));
                to.iter().for_each(|to| visit(Writes(*to)));
            }
            Self::Join { to, from, .. } => {
                from.iter().for_each(|source| visit(Carries(*source)));
                visit(Writes(*to));
            }
            _ => {}
        }
    }

    /// Operands of steps that reach memory.
    fn memory_operands(&self, visit: &mut dyn FnMut(OperandUse)) {
        let address = |address: Address| match address.base {
            Base::Value(source) => Some(Uses(source)),
            Base::Frame | Base::Zero => None,
        };
        match self {
            Self::IsSpace { to, address, .. } => {
                visit(Uses(*address));
                visit(WritesPredicate(*to));
            }
            Self::Load(load) => {
                address(load.address).into_iter().for_each(&mut *visit);
                load.to.iter().for_each(|to| visit(Writes(*to)));
            }
            Self::Store(store) => {
                address(store.address).into_iter().for_each(&mut *visit);
                store.from.iter().for_each(|source| visit(Carries(*source)));
            }
            Self::Atomic(atomic) => {
                address(atomic.address).into_iter().for_each(&mut *visit);
                // An exchange stores its operand as it is, and so does a comparison that holds.
                visit(if atomic.reads { Uses(atomic.b) } else { Carries(atomic.b) });
                visit(if atomic.compares { Carries(atomic.c) } else { Uses(atomic.c) });
                atomic.to.iter().for_each(|to| visit(Writes(*to)));
            }
            Self::Mbarrier(mbarrier) => {
                address(mbarrier.address).into_iter().for_each(&mut *visit);
                visit(Uses(mbarrier.value));
                visit(Writes(mbarrier.to));
                visit(WritesPredicate(mbarrier.to_pred));
            }
            Self::BulkCopy(copy) => {
                [copy.to, copy.from].into_iter().filter_map(address).for_each(&mut *visit);
                copy.barrier.and_then(|(_, at)| address(at)).into_iter().for_each(&mut *visit);
                visit(Uses(copy.bytes));
                copy.blocks.iter().for_each(|source| visit(Uses(*source)));
            }
            Self::TensorCopy(copy) => copy.sources().for_each(|source| visit(Uses(source))),
            Self::TensorMapEdit(edit) => edit.sources().for_each(|source| visit(Uses(source))),
            Self::Texture(texture) => {
                let places = [texture.handle].into_iter().chain(texture.sampler);
                let places =
                    places.chain(texture.coordinates.iter().copied()).chain(texture.offsets.iter().copied());
                places.for_each(|source| visit(Uses(source)));
                let is_stored = matches!(texture.action, TextureAction::Store(access) if !access.formatted);
                texture.from.iter().for_each(|source| {
                    visit(if is_stored { Carries(*source) } else { Uses(*source) });
                });
                texture.to.iter().for_each(|to| visit(Writes(*to)));
            }
            Self::CopyAsync(copy) => {
                [copy.to, copy.from].into_iter().filter_map(address).for_each(&mut *visit);
                copy.size.iter().for_each(|source| visit(Uses(*source)));
                visit(UsesPredicate(copy.ignore));
            }
            _ => {}
        }
    }

    /// Operands of steps in which threads meet, of addresses, and of calls.
    fn meeting_operands(&self, visit: &mut dyn FnMut(OperandUse)) {
        match self {
            Self::CheckMetadata { metadata, .. } => visit(Uses(*metadata)),
            Self::ClusterAddress(address) => {
                [address.address, address.rank].into_iter().for_each(|source| visit(Uses(source)));
                visit(Writes(address.to));
            }
            Self::TileAddresses(tile) => {
                [tile.pointer, tile.stride].into_iter().for_each(|source| visit(Uses(source)));
                tile.to.iter().for_each(|to| visit(Writes(*to)));
            }
            Self::Collective(collective) => {
                let [value, rest @ ..] = collective.from;
                let is_moved = matches!(collective.kind, CollectiveKind::Shuffle(_));
                visit(if is_moved { Carries(value) } else { Uses(value) });
                rest.into_iter().chain(collective.members).for_each(|source| visit(Uses(source)));
                let is_address = collective.kind == CollectiveKind::Matrix(MatrixStep::SameTile);
                collective.fragments_from.iter().for_each(|source| {
                    visit(if is_address { Uses(*source) } else { Carries(*source) });
                });
                visit(UsesPredicate(collective.pred));
                visit(Writes(collective.to));
                collective.fragments_to.iter().for_each(|to| visit(Writes(*to)));
                visit(WritesPredicate(collective.to_pred));
            }
            Self::Barrier(barrier) => {
                visit(Uses(barrier.number));
                barrier.count.iter().for_each(|source| visit(Uses(*source)));
                visit(UsesPredicate(barrier.pred));
                visit(Writes(barrier.to));
                visit(WritesPredicate(barrier.to_pred));
            }
            Self::Call(call) => {
                if let Callee::Address(source) = call.callee {
                    visit(Uses(source));
                }
                call.arguments.iter().filter_map(Actual::carried).for_each(&mut *visit);
                call.returns.iter().filter_map(Actual::received).for_each(visit);
            }
            Self::Builtin(call) => {
                call.arguments.iter().filter_map(Actual::used).for_each(&mut *visit);
                call.returns.iter().filter_map(Actual::received).for_each(visit);
            }
            _ => {}
        }
    }
}

impl Actual {
    fn carried(&self) -> Option<OperandUse> {
        match self {
            Self::Value(source) => Some(Carries(*source)),
            Self::Predicate(source) => Some(CarriesPredicate(*source)),
            Self::Memory { .. } | Self::Nothing => None,
        }
    }

    fn used(&self) -> Option<OperandUse> {
        match self {
            Self::Value(source) => Some(Uses(*source)),
            Self::Predicate(source) => Some(UsesPredicate(*source)),
            Self::Memory { .. } | Self::Nothing => None,
        }
    }

    fn received(&self) -> Option<OperandUse> {
        match self {
            Self::Value(to) => Some(Writes(Reg(to.0))),
            Self::Predicate(to) => Some(WritesPredicate(to.pred)),
            Self::Memory { .. } | Self::Nothing => None,
        }
    }
}
