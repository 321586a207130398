//! What the check of proxies sees of accesses to shared memory.

use super::Warp;
use super::access::Access;
use crate::exec::block::Cta;
use crate::exec::check::Touch;
use crate::exec::finding::AccessKind;
use crate::exec::lowered_code::{Op, Step, Warpgroup};
use crate::exec::memory::generic_address::Place;
use crate::exec::warp_register::{Column, LANES};

impl Step {
    /// Whether it accesses shared memory through the async proxy.
    pub(crate) fn is_async_proxy(&self) -> bool {
        match &self.op {
            Op::BulkCopy(_) | Op::TensorCopy(_) => true,
            Op::Warpgroup(step) => matches!(**step, Warpgroup::Multiply(_)),
            _ => false,
        }
    }

    /// Whether it writes as threads do. What `cp.async` writes is left out, and so are `st.async`, `red.async` and other accesses to `shared::cluster`.
    fn is_generic_write(&self) -> bool {
        match &self.op {
            Op::CopyAsync(_) => false,
            Op::Store(store) => store.place != Place::Cluster,
            Op::Atomic(atomic) => atomic.place != Place::Cluster,
            _ => !self.is_async_proxy(),
        }
    }
}

impl Warp {
    /// Remembers writes of threads, and tells asynchronous reads of what no `fence.proxy.async` covers.
    pub(super) fn watch_proxies(
        &self,
        cta: &mut Cta<'_>,
        touch: &Touch,
        access: &Access,
        addresses: &Column,
    ) {
        let step = cta.launch.code.steps.get(touch.pc as usize);
        let is_async = step.is_some_and(Step::is_async_proxy);
        // Another block's writes are left out too.
        let is_generic = cta.visited.is_none() && step.is_some_and(Step::is_generic_write);
        let Some(races) = &mut cta.races else { return };
        for lane in (0..LANES).filter(|lane| touch.mask >> lane & 1 != 0) {
            let address = addresses[lane];
            match (access.kind, is_async) {
                (AccessKind::Read, false) => {}
                (AccessKind::Read, true) => {
                    if let Some(write) = races.unfenced(address, touch.bytes) {
                        let bad = access.bad(address, String::new());
                        cta.report_unfenced(self.index, lane, touch.pc, bad, write);
                        return;
                    }
                }
                (_, false) if is_generic => {
                    races.write_generic((self.index, lane), touch.pc, address, touch.bytes);
                }
                _ => {
                    if let Some(writes) = &mut races.copies.generic {
                        writes.forget(address, touch.bytes);
                    }
                }
            }
        }
    }
}
