//! Loads, stores and asynchronous copies.

use super::super::lowered_code::{CopyAsync, Fence, Load, Op, PredSource, Reg, Source, Store, Strength, Why};
use super::super::memory::generic_address::Place;
use super::function::Lowering;
use crate::{
    Cache, Flag, Form, Modifier, Opcode, Order, PtxOperand, RegisterId, ScalarKind, ScalarType, Scope, Space,
};

impl Lowering<'_> {
    /// `ld` and `ldu`.
    pub(super) fn lower_load(&mut self, form: &Form, operands: &[PtxOperand]) -> Option<()> {
        let (first, address) = (operands.first()?, operands.get(1)?);
        let ty = form.ty()?;
        let (place, address) = self.address(address, Place::of(form.space())?)?;
        let parts = self.parts(first);
        if parts.len() != usize::from(form.vector()) {
            return None;
        }
        let mut to = Vec::new();
        for part in &parts {
            let is_used = parts.len() == 1 || !self.mentions.is_never_read(part);
            let column = self.destination(part).map(|column| if is_used { column } else { Reg(0) })?;
            to.extend((0..words(ty)).map(|word| if column.0 == 0 { column } else { Reg(column.0 + word) }));
        }
        let bytes = ty.size_bytes().min(8);
        let wide = parts.iter().map(|part| self.register_bytes(part)).max().unwrap_or(0);
        let signed = ty.kind() == ScalarKind::Signed && wide > bytes;
        let extend_to = if signed { wide } else { 0 };
        let strength = strength(form, false);
        let constant = form.modifiers().contains(&Modifier::Cache(Cache::Nc)) || form.opcode() == Opcode::Ldu;
        let to = to.into();
        let used_where = PredSource::ALWAYS;
        self.emit(Op::Load(Box::new(Load {
            place,
            bytes,
            extend_to,
            strength,
            constant,
            address,
            to,
            used_where,
        })));
        Some(())
    }

    /// `st`.
    pub(super) fn lower_store(&mut self, form: &Form, operands: &[PtxOperand]) -> Option<()> {
        let (address, value) = (operands.first()?, operands.get(1)?);
        let ty = form.ty()?;
        let (place, address) = self.address(address, Place::of(form.space())?)?;
        if form.has(Flag::Async) && !is_async_store(form, place, ty) {
            return None;
        }
        let parts = self.parts(value);
        if parts.len() != usize::from(form.vector()) {
            return None;
        }
        let mut from = Vec::new();
        for part in &parts {
            let column = self.source(part, ty)?;
            from.push(column);
            if words(ty) > 1 {
                column.split().err()?;
                from.push(Source(column.0 + 1));
            }
        }
        let bytes = ty.size_bytes().min(8);
        let strength = strength(form, false);
        let all = bytes * from.len() as u32;
        self.emit(Op::Store(Box::new(Store { place, bytes, strength, address, from: from.into() })));
        if form.has(Flag::Async) { self.complete_bytes(operands.get(2)?, all) } else { Some(()) }
    }

    /// `cp.async` in its plain form, with its groups.
    pub(super) fn lower_copy(&mut self, form: &Form, operands: &[PtxOperand]) -> Result<(), Why> {
        if form.has(Flag::Async) && form.has(Flag::Bulk) {
            return self.lower_bulk_copy(form, operands);
        }
        if !form.has(Flag::Async) || form.has(Flag::Reduce) {
            return Err(Why::Instruction);
        }
        if form.has(Flag::Mbarrier) {
            return self.lower_copies_arrive(form, operands).ok_or(Why::Operands);
        }
        // Copies are done when they are issued; groups and waits concern the checks.
        if form.has(Flag::CommitGroup) {
            self.emit(Op::CommitCopies);
            return Ok(());
        }
        if form.has(Flag::WaitGroup) || form.has(Flag::WaitAll) {
            let open = match operands.first().filter(|_| form.has(Flag::WaitGroup)) {
                Some(operand) => Some(self.source(operand, ScalarType::U32).ok_or(Why::Operands)?),
                None => None,
            };
            self.emit(Op::WaitForCopies { open });
            return Ok(());
        }
        self.lower_plain_copy(form, operands).ok_or(Why::Operands)
    }

    fn lower_plain_copy(&mut self, form: &Form, operands: &[PtxOperand]) -> Option<()> {
        let mut spaces = form.spaces().map(Space::base);
        if (spaces.next()?, spaces.next()?) != (Space::Shared, Space::Global) {
            return None;
        }
        let [to, from, PtxOperand::Immediate(bytes), rest @ ..] = operands else { return None };
        let bytes = u32::try_from(bytes.bits()).ok().filter(|bytes| matches!(bytes, 4 | 8 | 16))?;
        let (_, to) = self.address(to, Place::Shared)?;
        let (_, from) = self.address(from, Place::Global)?;
        let never = PredSource { negated: true, ..PredSource::ALWAYS };
        let (size, ignore) = match rest.first() {
            None => (None, never),
            Some(PtxOperand::Register(id)) if self.is_predicate(*id) => {
                (None, self.predicate_source(&PtxOperand::Register(*id))?)
            }
            Some(PtxOperand::Not(id)) => (None, self.predicate_source(&PtxOperand::Not(*id))?),
            // With a cache hint alone the fourth operand is the 64-bit policy.
            Some(policy) if rest.len() == 1 && self.register_bytes(policy) == 8 => (None, never),
            Some(operand) => (Some(self.source(operand, ScalarType::U32)?), never),
        };
        self.emit(Op::CopyAsync(Box::new(CopyAsync { bytes, to, from, size, ignore })));
        Some(())
    }

    /// Memory is in order anyway, so a fence concerns only the race check. That of the asynchronous proxy orders nothing here: proxies are
    /// not told apart. That of tensor maps releases and acquires.
    pub(super) fn lower_fence(&mut self, form: &Form) -> Result<(), Why> {
        if form.has(Flag::Proxy) {
            let fence = self.proxy_fence(form).ok_or(Why::Instruction)?;
            self.emit(fence.map_or(Op::Nothing, Op::Fence));
            return Ok(());
        }
        let order = form.order();
        let acquire = order != Some(Order::Release);
        let release = order != Some(Order::Acquire);
        let cluster = form.scope() == Some(Scope::Cluster);
        self.emit(Op::Fence(Fence { acquire, release, wide: is_wide(form), cluster, proxy: false }));
        Ok(())
    }

    /// What `fence.proxy` does: nothing where there is no such proxy here, as for other names of the same memory.
    fn proxy_fence(&self, form: &Form) -> Option<Option<Fence>> {
        let none = Fence { acquire: false, release: false, wide: false, cluster: false, proxy: true };
        if form.has_word("tensormap::generic") {
            Some(Some(self.map_fence(form)))
        } else if form.has_word("alias") {
            Some(None)
        } else if form.has_word(ASYNC_GENERIC) {
            // The accesses of threads that it orders are those of the other side.
            let order = form.order()?;
            let (acquire, release) = (order == Order::Acquire, order == Order::Release);
            Some(Some(Fence { acquire, release, cluster: true, ..none }))
        } else if form.has(Flag::Async) {
            let is_shared = !form.spaces().any(|space| space.base() == Space::Global);
            Some(is_shared.then_some(none))
        } else {
            None
        }
    }

    pub(super) fn is_predicate(&self, id: RegisterId) -> bool {
        self.function.registers.ty(id) == Some(ScalarType::Pred)
    }
}

/// What makes a proxy fence order in one direction.
const ASYNC_GENERIC: &str = "async::generic";

/// Columns of one value.
fn words(ty: ScalarType) -> u32 {
    ty.size_bytes().div_ceil(8)
}

/// Whether a scope reaches beyond the cluster; without a word it is that of the device.
fn is_wide(form: &Form) -> bool {
    !matches!(form.scope(), Some(Scope::Cta | Scope::Cluster))
}

/// How an access takes part in synchronisation; atomics do even when nothing is said.
pub(super) fn strength(form: &Form, atomic: bool) -> Strength {
    let order = form.order();
    let both = matches!(order, Some(Order::AcqRel | Order::Sc));
    Strength {
        strong: atomic || !matches!(order, None | Some(Order::Weak)),
        acquire: both || order == Some(Order::Acquire),
        release: both || order == Some(Order::Release),
        wide: is_wide(form) || matches!(order, Some(Order::Volatile | Order::Mmio)),
        cluster: form.scope() == Some(Scope::Cluster),
    }
}

/// Whether there is such a store that completes bytes of an `mbarrier` object.
fn is_async_store(form: &Form, place: Place, ty: ScalarType) -> bool {
    matches!(place, Place::Cluster | Place::Generic)
        && form.has_word(COMPLETES)
        && matches!(ty.size_bytes(), 4 | 8)
        && matches!(form.order(), None | Some(Order::Weak))
}

/// What completes bytes of an `mbarrier` object.
pub(super) const COMPLETES: &str = "mbarrier::complete_tx::bytes";
