//! Code images, and the kernels that were looked up in them.

use std::collections::HashSet;

use kiln_driver::FunctionAttributes;

use super::step_batch::{AnswerError, SyncPlan};
use super::{CALL, StateSync, SyncError};
use crate::client::memory::busy;
use crate::client::objects::Kernel;
use crate::protocol::wire::{Ask, Take, WireObject, is_kept};

impl StateSync<'_> {
    /// Gives the worker the code; returns whether it has all of it.
    pub(crate) fn sync_code(&mut self) -> Result<bool, SyncError> {
        let objects = self.objects;
        let handles = objects.modules.handles().into_iter();
        let modules: Vec<_> = handles.filter_map(|id| objects.modules.pin(id).ok()).collect();
        let wanted: HashSet<u64> = modules.iter().map(|module| module.code.remote.id).collect();
        self.destroy_unwanted(WireObject::Module, &wanted, |state| &mut state.modules)?;
        self.state.kernels.retain(|_, module| wanted.contains(module));
        let handles = objects.functions.handles().into_iter();
        let kernels: Vec<_> = handles.filter_map(|id| objects.functions.pin(id).ok()).collect();
        let mut plan = SyncPlan::default();
        for code in modules.iter().map(|module| &module.code) {
            let id = code.remote.id;
            if !self.state.modules.contains(&id) && is_kept(code.kind) {
                let ask = Ask::Load { id, kind: code.kind, bytes: code.image.bytes() };
                let what = format_args!("a module of {} bytes", code.image.bytes());
                let descriptor = Some(code.image.descriptor());
                plan.add(what, ask, descriptor, move |state| {
                    state.modules.insert(id);
                });
            }
        }
        for kernel in &kernels {
            // A kernel whose module is being destroyed is about to be destroyed as well.
            let is_wanted = wanted.contains(&kernel.code.remote.id) && is_kept(kernel.code.kind);
            if is_wanted && !self.state.kernels.contains_key(&kernel.wire) {
                find(kernel, &mut plan);
            }
        }
        plan.run(self.link, self.state, self.pace)
    }
}

fn find<'a>(kernel: &'a Kernel, plan: &mut SyncPlan<'a>) {
    let module = kernel.code.remote.id;
    let ask = Ask::Function { id: kernel.wire, module, name: &kernel.name };
    plan.add_read(&kernel.name, ask, None, move |state, answer| {
        let attributes = FunctionAttributes::take(answer)?;
        if attributes.parameters != kernel.attributes.parameters {
            return Err(AnswerError::Refused(busy(
                CALL,
                &kernel.name,
                "its parameters are not those it had in the old worker",
            )));
        }
        state.kernels.insert(kernel.wire, module);
        Ok(())
    });
}
