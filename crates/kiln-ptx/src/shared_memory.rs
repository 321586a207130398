//! Shared memory of an entry.

use std::collections::BTreeSet;

use crate::body::Body;
use crate::module::PtxModule;
use crate::operand::{AddressBase, PtxOperand};
use crate::reachable_functions::Reach;
use crate::state_space::Space;
use crate::variable::VariableId;

/// The shared memory a block of an entry needs.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct SharedMemory {
    /// Bytes of all static variables with the gaps their alignment makes.
    pub static_bytes: u64,
    /// Where each static variable starts, in declaration order.
    pub layout: Vec<(VariableId, u64)>,
    /// The variables whose length the launch decides; all of them start where the static ones end, rounded up to
    /// [`SharedMemory::dynamic_align_bytes`].
    pub dynamic: Vec<VariableId>,
    /// The alignment of the dynamic part; 1 when there is none.
    pub dynamic_align_bytes: u32,
}

impl SharedMemory {
    /// Whether the launch decides part of the size.
    pub fn is_dynamic(&self) -> bool {
        !self.dynamic.is_empty()
    }

    /// Where the dynamic part starts.
    pub fn dynamic_offset(&self) -> u64 {
        self.static_bytes
            .checked_next_multiple_of(u64::from(self.dynamic_align_bytes.max(1)))
            .unwrap_or(u64::MAX)
    }

    /// Lays out every shared variable that code in `reach` declares or names.
    pub(crate) fn of(module: &PtxModule, reach: &Reach) -> Self {
        let mut used = BTreeSet::new();
        for function in reach.functions.iter().filter_map(|id| module.function(*id)) {
            if let Some(body) = &function.body {
                used.extend(named_variables(body));
            }
        }
        used.extend(reach.functions.iter().flat_map(|id| module.index.shared_variables(*id)));
        let mut shared = Self { dynamic_align_bytes: 1, ..Self::default() };
        for id in used {
            let Some(variable) = module.variable(id).filter(|v| v.space.base() == Space::Shared) else {
                continue;
            };
            let align = variable.shape.align_bytes().max(1);
            if variable.shape.is_open() {
                shared.dynamic_align_bytes = shared.dynamic_align_bytes.max(align);
                shared.dynamic.push(id);
                continue;
            }
            let offset = shared.static_bytes.checked_next_multiple_of(u64::from(align)).unwrap_or(u64::MAX);
            shared.layout.push((id, offset));
            shared.static_bytes = offset.saturating_add(variable.shape.size_bytes());
        }
        shared
    }
}

/// The variables a body names in any operand.
fn named_variables(body: &Body) -> impl Iterator<Item = VariableId> + '_ {
    let actuals = body.calls.iter().flat_map(|call| call.arguments.iter().chain(&call.returns));
    body.operands.iter().chain(&body.elements).chain(actuals).filter_map(|operand| match operand {
        PtxOperand::Variable(id, _) => Some(*id),
        PtxOperand::Address(address) => match address.base {
            AddressBase::Variable(id) => Some(id),
            _ => None,
        },
        _ => None,
    })
}
