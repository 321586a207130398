//! The functions that an entry can call, directly or through pointers.

use std::collections::HashSet;

use crate::call::{Callee, Indirect};
use crate::function::PtxFunctionId;
use crate::initializer::RelocationTarget;
use crate::module::PtxModule;
use crate::operand::PtxOperand;

/// The functions an entry can get to, itself first, and what it calls that the module does not define.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Reach {
    /// Functions with code.
    pub(crate) functions: Vec<PtxFunctionId>,
    /// Functions without.
    pub(crate) external: Vec<PtxFunctionId>,
    /// Whether some call goes through a pointer.
    pub(crate) indirect: bool,
}

impl Reach {
    /// Follows calls from `entry`. A call through a pointer can get to every function whose address is taken anywhere
    /// in the module.
    pub(crate) fn of(module: &PtxModule, entry: PtxFunctionId) -> Self {
        let mut reach = Self { functions: Vec::new(), external: Vec::new(), indirect: false };
        let mut seen = HashSet::from([entry]);
        let mut waiting = vec![entry];
        while let Some(id) = waiting.pop() {
            let Some(function) = module.function(id) else { continue };
            let Some(body) = &function.body else {
                reach.external.push(id);
                continue;
            };
            reach.functions.push(id);
            let mut called = Vec::new();
            for call in &body.calls {
                match (call.callee, call.indirect) {
                    (Callee::Function(callee), _) => called.push(module.resolve_alias(callee)),
                    (Callee::Register(_), Some(Indirect::Targets(targets))) => {
                        called.extend(body.call_targets(targets).iter().flat_map(|t| &t.functions));
                    }
                    (Callee::Register(_), _) if !reach.indirect => {
                        reach.indirect = true;
                        called.extend(address_taken(module));
                    }
                    (Callee::Register(_), _) => {}
                }
            }
            waiting.extend(called.into_iter().filter(|id| seen.insert(*id)));
        }
        reach
    }
}

/// Functions whose address is stored in a variable or computed with.
fn address_taken(module: &PtxModule) -> Vec<PtxFunctionId> {
    let mut taken = Vec::new();
    for initializer in module.variables().iter().filter_map(|variable| variable.initializer.as_ref()) {
        taken.extend(initializer.relocations.iter().filter_map(|relocation| match relocation.target {
            RelocationTarget::Function(id) => Some(id),
            RelocationTarget::Variable(_) => None,
        }));
    }
    for body in module.functions().iter().filter_map(|function| function.body.as_ref()) {
        taken.extend(body.operands.iter().filter_map(|operand| match operand {
            PtxOperand::Function(id) => Some(*id),
            _ => None,
        }));
    }
    taken
}
