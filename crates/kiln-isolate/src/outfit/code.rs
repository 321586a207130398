//! Images, and the kernels that were looked up in them.

use std::collections::HashSet;

use kiln_driver::FunctionAttributes;

use super::plan::{Objection, Plan};
use super::{CALL, Fitting, Unfit};
use crate::memory::busy;
use crate::objects::Kernel;
use crate::wire::{Ask, Take, WireObject};

impl Fitting<'_> {
    /// Gives the worker the code. Says whether it has all of it.
    pub(crate) fn fit_code(&mut self) -> Result<bool, Unfit> {
        let objects = self.objects;
        let handles = objects.modules.handles().into_iter();
        let modules: Vec<_> = handles.filter_map(|id| objects.modules.pin(id).ok()).collect();
        let wanted: HashSet<u64> = modules.iter().map(|module| module.code.remote.id).collect();
        self.forget(WireObject::Module, &wanted, |outfit| &mut outfit.modules)?;
        self.outfit.kernels.retain(|_, module| wanted.contains(module));
        let handles = objects.functions.handles().into_iter();
        let kernels: Vec<_> = handles.filter_map(|id| objects.functions.pin(id).ok()).collect();
        let mut plan = Plan::default();
        for code in modules.iter().map(|module| &module.code) {
            let id = code.remote.id;
            if !self.outfit.modules.contains(&id) {
                let ask = Ask::Load { id, kind: code.kind, bytes: code.image.bytes() };
                let what = format_args!("a module of {} bytes", code.image.bytes());
                let descriptor = Some(code.image.descriptor());
                plan.add(what, ask, descriptor, move |outfit| {
                    outfit.modules.insert(id);
                });
            }
        }
        for kernel in &kernels {
            // A kernel whose module is ending is about to end.
            let is_wanted = wanted.contains(&kernel.code.remote.id);
            if is_wanted && !self.outfit.kernels.contains_key(&kernel.wire) {
                find(kernel, &mut plan);
            }
        }
        plan.run(self.link, self.outfit, self.pace)
    }
}

fn find<'a>(kernel: &'a Kernel, plan: &mut Plan<'a>) {
    let module = kernel.code.remote.id;
    let ask = Ask::Function { id: kernel.wire, module, name: &kernel.name };
    plan.add_read(&kernel.name, ask, None, move |outfit, answer| {
        let attributes = FunctionAttributes::take(answer)?;
        if attributes.parameters != kernel.attributes.parameters {
            return Err(Objection::Refused(busy(CALL, &kernel.name, "it has other parameters now")));
        }
        outfit.kernels.insert(kernel.wire, module);
        Ok(())
    });
}
