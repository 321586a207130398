//! What an entry can reach: functions through calls and pointers, and the shared variables they use.

use crate::{
    AddressBase, Body, Callee, PtxFunctionId, PtxModule, PtxOperand, RelocationTarget, Space, SpecialName,
    SpecialRegister, VariableId,
};

/// The functions an entry can reach, the entry first. Functions without a body are left out.
pub(super) fn reach(module: &PtxModule, entry: PtxFunctionId) -> Vec<PtxFunctionId> {
    let mut reached = vec![entry];
    let mut pointers_followed = false;
    let mut next = 0;
    while let Some(id) = reached.get(next).copied() {
        next += 1;
        let Some(body) = module.function(id).and_then(|f| f.body.as_ref()) else { continue };
        let mut found: Vec<PtxFunctionId> = mentioned(body).collect();
        for call in &body.calls {
            match call.callee {
                Callee::Function(callee) => found.push(callee),
                Callee::Register(_) if !pointers_followed => {
                    pointers_followed = true;
                    found.extend(in_variables(module));
                }
                Callee::Register(_) => {}
            }
        }
        for id in found {
            let id = module.resolve_alias(id);
            let has_body = module.function(id).is_some_and(|f| f.body.is_some());
            if has_body && !reached.contains(&id) {
                reached.push(id);
            }
        }
    }
    reached
}

fn mentioned(body: &Body) -> impl Iterator<Item = PtxFunctionId> + '_ {
    body.operands.iter().chain(&body.elements).filter_map(|operand| match operand {
        PtxOperand::Function(id) => Some(*id),
        _ => None,
    })
}

/// Functions whose address a variable holds.
fn in_variables(module: &PtxModule) -> impl Iterator<Item = PtxFunctionId> + '_ {
    let relocations = module.variables().iter().filter_map(|v| v.initializer.as_ref());
    relocations.flat_map(|i| &i.relocations).filter_map(|relocation| match relocation.target {
        RelocationTarget::Function(id) => Some(id),
        RelocationTarget::Variable(_) => None,
    })
}

/// The shared variables that functions use, each once, as they are declared.
pub(super) fn shared_variables(module: &PtxModule, reached: &[PtxFunctionId]) -> Vec<VariableId> {
    let mut used: Vec<VariableId> = Vec::new();
    for id in reached {
        let Some(body) = module.function(*id).and_then(|f| f.body.as_ref()) else { continue };
        for id in variables(body) {
            let shared = module.variable(id).is_some_and(|v| v.space.base() == Space::Shared);
            if shared && !used.contains(&id) {
                used.push(id);
            }
        }
    }
    used.sort_unstable_by_key(|id| id.0);
    used
}

/// Whether functions use the shared memory that is reserved for the system.
pub(super) fn uses_reserved_memory(module: &PtxModule, reached: &[PtxFunctionId]) -> bool {
    let bodies = reached.iter().filter_map(|id| module.function(*id)?.body.as_ref());
    let is_reserved = |operand: &PtxOperand| match operand {
        PtxOperand::Special(SpecialRegister::Named(name, _)) => {
            (SpecialName::ReservedSmemOffsetBegin..=SpecialName::ReservedSmemOffset1).contains(name)
        }
        _ => false,
    };
    bodies.flat_map(|body| body.operands.iter().chain(&body.elements)).any(is_reserved)
}

fn variables(body: &Body) -> impl Iterator<Item = VariableId> + '_ {
    body.operands.iter().chain(&body.elements).filter_map(|operand| match operand {
        PtxOperand::Variable(id, _) => Some(*id),
        PtxOperand::Address(address) => match address.base {
            AddressBase::Variable(id) => Some(id),
            _ => None,
        },
        _ => None,
    })
}
