//! Which steps lead to which.

use super::*;

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
        let mut seen = vec![false; self.steps.len()];
        let mut open = vec![from];
        while let Some(at) = open.pop() {
            if at == to {
                return true;
            }
            let Some(step) = self.steps.get(at as usize) else { continue };
            if std::mem::replace(&mut seen[at as usize], true) {
                continue;
            }
            open.extend(step.op.targets());
            if step.op.falls_through() || step.guard != PredSource::ALWAYS {
                open.push(at + 1);
            }
        }
        false
    }
}
