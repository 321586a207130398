//! Which steps lead to which.

use super::*;
use crate::{PtxFunctionId, SourceLine};

impl Op {
    /// The steps that a branch may go to, besides the next one.
    pub(crate) fn targets(&self) -> &[u32] {
        match self {
            Self::Branch { target, .. } | Self::Jump { target } => std::slice::from_ref(target),
            Self::Table { targets, .. } => targets,
            _ => &[],
        }
    }

    /// Whether a thread that executes it may go on with the next step.
    pub(crate) fn falls_through(&self) -> bool {
        let ends = matches!(self, Self::Return | Self::Exit | Self::Trap | Self::Unsupported(_));
        !ends && !matches!(self, Self::Jump { .. } | Self::Table { .. })
    }
}

impl Code {
    /// Whether a thread can get from one step to another inside of a function.
    pub(crate) fn leads_to(&self, from: u32, to: u32) -> bool {
        self.each_step_to(from, to, |_| {})
    }

    /// Calls `visit` for the steps that a thread can get to from one step, inside of a function, before it gets to another; whether it can get there.
    pub(crate) fn each_step_to(&self, from: u32, to: u32, mut visit: impl FnMut(&Step)) -> bool {
        let mut seen = vec![false; self.steps.len()];
        let mut open = vec![from];
        let mut is_reached = false;
        while let Some(at) = open.pop() {
            if at == to {
                is_reached = true;
                continue;
            }
            let Some(step) = self.steps.get(at as usize) else { continue };
            if std::mem::replace(&mut seen[at as usize], true) {
                continue;
            }
            visit(step);
            open.extend(step.op.targets());
            if step.op.falls_through() || step.guard != PredSource::ALWAYS {
                open.push(at + 1);
            }
        }
        is_reached
    }

    /// The source line of a step, where the module has debug lines.
    pub(crate) fn source_line(&self, step: u32) -> Option<&SourceLine> {
        let origin = self.origins.get(step as usize)?;
        let body = self.module.function(PtxFunctionId(origin.function))?.body.as_ref()?;
        body.source_line(origin.instruction as usize).filter(|line| line.place.line != 0)
    }

    /// Whether a step comes from inline assembly, as far as the compiler says.
    pub(crate) fn is_inline_assembly(&self, step: u32) -> bool {
        let instruction = self.origins.get(step as usize).and_then(|origin| {
            let body = self.module.function(PtxFunctionId(origin.function))?.body.as_ref()?;
            body.instructions().get(origin.instruction as usize)
        });
        instruction.is_some_and(|instruction| instruction.is_inline_assembly)
    }
}
