//! How often a function mentions each of its registers.
//!
//! A register that is mentioned once is written and never read. A vector load into such a register does not use that part of memory.

use std::collections::HashMap;

use crate::{AddressBase, Body, Callee, Formal, PtxFunction, PtxOperand, RegisterId};

/// Mentions of registers, by register.
pub(super) struct Mentions {
    counts: HashMap<u32, u32>,
}

impl Mentions {
    pub(super) fn of(function: &PtxFunction, body: &Body) -> Self {
        let mut mentions = Self { counts: HashMap::new() };
        let calls = body.calls.iter().flat_map(|call| call.arguments.iter().chain(&call.returns));
        body.operands.iter().chain(&body.elements).chain(calls).for_each(|operand| mentions.add(operand));
        for call in &body.calls {
            if let Callee::Register(id) = call.callee {
                mentions.count(id);
            }
        }
        for formal in function.parameters.iter().chain(&function.returns) {
            if let Formal::Register(id) = formal {
                mentions.count(*id);
            }
        }
        mentions
    }

    /// Whether a destination is mentioned nowhere else.
    pub(super) fn is_never_read(&self, destination: &PtxOperand) -> bool {
        matches!(destination, PtxOperand::Register(id) if self.counts.get(&id.0) == Some(&1))
    }

    fn add(&mut self, operand: &PtxOperand) {
        match operand {
            PtxOperand::Register(id) | PtxOperand::Not(id) | PtxOperand::Element(id, _) => self.count(*id),
            PtxOperand::Selected(selected) => self.count(selected.register),
            PtxOperand::Pair(first, second) => {
                [first, second].into_iter().flatten().for_each(|id| self.count(*id))
            }
            PtxOperand::Address(address) => {
                if let AddressBase::Register(id) = address.base {
                    self.count(id);
                }
            }
            _ => {}
        }
    }

    fn count(&mut self, id: RegisterId) {
        *self.counts.entry(id.0).or_default() += 1;
    }
}
