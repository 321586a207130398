//! What ends with a worker ends on this side, too.

use std::sync::PoisonError;
use std::sync::atomic::Ordering;

use super::Takeover;
use crate::device::IsolatedDevice;

impl IsolatedDevice {
    /// What is gone is gone on this side, too. Nothing is changed here before the new worker has everything, so that a
    /// takeover that failed can be tried again.
    pub(super) fn let_go(&self, takeover: &Takeover) {
        takeover.lost_memory.iter().for_each(|id| drop(self.objects.memory.remove(*id)));
        takeover.lost_graphs.iter().for_each(|id| drop(self.objects.graphs.remove(*id)));
        takeover.lost_pages.iter().for_each(|id| drop(self.objects.pages.remove(*id)));
        for range in self
            .objects
            .reservations
            .handles()
            .into_iter()
            .filter_map(|id| self.objects.reservations.pin(id).ok())
        {
            let mut mappings = range.mappings.write().unwrap_or_else(PoisonError::into_inner);
            mappings.retain(|_, mapping| mapping.pages.descriptor.is_some());
        }
        for module in
            self.objects.modules.handles().into_iter().filter_map(|id| self.objects.modules.pin(id).ok())
        {
            module.variables.lock().unwrap_or_else(PoisonError::into_inner).clear();
        }
        for stream in
            self.objects.streams.handles().into_iter().filter_map(|id| self.objects.streams.pin(id).ok())
        {
            stream.count.learn(stream.count.submitted.load(Ordering::Acquire));
        }
        for event in
            self.objects.events.handles().into_iter().filter_map(|id| self.objects.events.pin(id).ok())
        {
            *event.last() = None;
        }
    }
}
