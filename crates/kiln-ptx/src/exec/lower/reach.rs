//! What an entry can reach: functions through calls and pointers, and the shared variables they use.

use std::collections::HashMap;

use crate::{
    AddressBase, Body, Callee, PtxFunctionId, PtxModule, PtxOperand, RelocationTarget, Space, VariableId,
};

/// Dynamic shared memory starts at a multiple of this.
const DYNAMIC_ALIGN: u64 = 16;

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

/// Where the shared variables of an entry lie.
pub(super) struct SharedLayout {
    offsets: HashMap<u32, u64>,
    /// Bytes of all variables of known size, up to where dynamic shared memory starts.
    pub(super) bytes: u64,
    /// The same without the gap before dynamic shared memory.
    pub(super) static_bytes: u64,
}

impl SharedLayout {
    pub(super) fn new(module: &PtxModule, reached: &[PtxFunctionId]) -> Self {
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
        let mut layout = Self { offsets: HashMap::new(), bytes: 0, static_bytes: 0 };
        let shape = |id: &VariableId| module.variable(*id).map(|v| &v.shape);
        let (open, sized): (Vec<_>, Vec<_>) =
            used.iter().partition(|id| shape(id).is_some_and(|s| s.is_open()));
        for id in sized {
            let Some(shape) = shape(id) else { continue };
            layout.bytes = aligned(layout.bytes, u64::from(shape.align_bytes().max(1)));
            layout.offsets.insert(id.0, layout.bytes);
            layout.bytes = layout.bytes.saturating_add(shape.size_bytes());
        }
        layout.static_bytes = layout.bytes;
        let align = open.iter().filter_map(|id| shape(id)).map(|s| u64::from(s.align_bytes())).max();
        if let Some(align) = align {
            layout.bytes = aligned(layout.bytes, align.max(DYNAMIC_ALIGN));
        }
        layout.offsets.extend(open.iter().map(|id| (id.0, layout.bytes)));
        layout
    }

    pub(super) fn offset(&self, id: VariableId) -> Option<u64> {
        self.offsets.get(&id.0).copied()
    }
}

/// The next multiple; sizes beyond all numbers stay where they are and are refused later.
fn aligned(bytes: u64, align: u64) -> u64 {
    bytes.checked_next_multiple_of(align).unwrap_or(u64::MAX)
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
