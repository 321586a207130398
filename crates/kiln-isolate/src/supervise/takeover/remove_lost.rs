//! Removes from the client's tables what was lost with the old worker.

use std::sync::PoisonError;
use std::sync::atomic::Ordering;

use super::Takeover;
use crate::protocol::wire::is_kept;
use crate::supervise::isolated_device::IsolatedDevice;

impl IsolatedDevice {
    /// Removes what is lost. It runs after the new worker has everything, so that a takeover that failed has changed nothing and can be
    /// tried again.
    pub(super) fn drop_lost(&self, takeover: &Takeover) {
        let objects = &self.proxy.objects;
        takeover.lost_memory.iter().for_each(|id| drop(objects.memory.remove(*id)));
        // What is left are blocks in other memory; they go with it.
        for id in objects.memory.handles() {
            if objects.memory.pin(id).is_ok_and(|block| block.kept_part().is_none()) {
                drop(objects.memory.remove(id));
            }
        }
        takeover.lost_graphs.iter().for_each(|id| drop(objects.graphs.remove(*id)));
        takeover.lost_pages.iter().for_each(|id| drop(objects.pages.remove(*id)));
        for range in
            objects.reservations.handles().into_iter().filter_map(|id| objects.reservations.pin(id).ok())
        {
            let mut mappings = range.mappings.write().unwrap_or_else(PoisonError::into_inner);
            mappings.retain(|_, mapping| mapping.pages.descriptor.is_some());
        }
        for module in objects.modules.handles().into_iter().filter_map(|id| objects.modules.pin(id).ok()) {
            module.variables.lock().unwrap_or_else(PoisonError::into_inner).clear();
        }
        // Ranks of communicators are gone with the old worker.
        for id in objects.functions.handles() {
            if objects.functions.pin(id).is_ok_and(|kernel| !is_kept(kernel.code.kind)) {
                drop(objects.functions.remove(id));
            }
        }
        for id in objects.modules.handles() {
            if objects.modules.pin(id).is_ok_and(|module| !is_kept(module.code.kind)) {
                drop(objects.modules.remove(id));
            }
        }
        for stream in objects.streams.handles().into_iter().filter_map(|id| objects.streams.pin(id).ok()) {
            stream.count.learn(stream.count.submitted.load(Ordering::Acquire));
        }
        for event in objects.events.handles().into_iter().filter_map(|id| objects.events.pin(id).ok()) {
            *event.last() = None;
        }
    }
}
