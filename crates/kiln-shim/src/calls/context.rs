//! A context: what it holds, whether it lives, and which one is current to a thread.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use kiln_driver::{Code, Driver, DriverExt, MemoryId, StreamId};
use kiln_sync::{Bias, BiasedGuard, BiasedLock};

use crate::boundary::{Answer, OrCode};
use crate::calls::context_stack;
use crate::calls::process_state::{ProcessState, state};
use crate::calls::staging_pool::Finished;
use crate::calls::stream_attributes::StreamAttributes;
use crate::calls::stream_order::StreamOrder;
use crate::handle_table::RawHandle;

/// How often other threads may use the streams of a context before these belong to all alike.
const VISITS: u32 = 256;

/// A context of a device.
pub(crate) struct Context {
    /// A number that is not used twice in the process.
    pub(crate) number: u64,
    pub(crate) device: u32,
    pub(crate) driver: Arc<dyn Driver>,
    pub(crate) is_primary: bool,
    pub(crate) flags: AtomicU32,
    /// Its streams and their order; nothing while it is not there.
    order: BiasedLock<Option<StreamOrder>>,
    pub(crate) limits: Mutex<BTreeMap<u32, usize>>,
    /// Those of its default stream.
    pub(crate) stream_attributes: Mutex<StreamAttributes>,
    /// Memory that is freed when its work is done.
    unused: Mutex<Vec<MemoryId>>,
}

impl Context {
    fn new(device: u32, driver: Arc<dyn Driver>, is_primary: bool, flags: u32) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        Self {
            number: NEXT.fetch_add(1, Ordering::Relaxed),
            device,
            driver,
            is_primary,
            flags: AtomicU32::new(flags),
            order: BiasedLock::with_bias(None, Bias::Returns(VISITS)),
            limits: Mutex::new(BTreeMap::new()),
            stream_attributes: Mutex::new(StreamAttributes::new(0)),
            unused: Mutex::default(),
        }
    }

    /// The primary context of a device, which is not there before it is retained.
    pub(crate) fn primary(device: u32, driver: Arc<dyn Driver>) -> Self {
        Self::new(device, driver, true, 0)
    }

    /// A context that is there at once.
    pub(crate) fn create(device: u32, driver: Arc<dyn Driver>, flags: u32) -> Answer<Self> {
        let context = Self::new(device, driver, false, flags);
        context.begin()?;
        Ok(context)
    }

    /// Makes it usable, if it is not.
    pub(crate) fn begin(&self) -> Answer {
        let mut order = self.order.lock();
        if order.is_none() {
            *order = Some(StreamOrder::new(self.driver.clone())?);
        }
        Ok(())
    }

    pub(crate) fn is_there(&self) -> bool {
        self.order.lock().is_some()
    }

    /// Its streams, while it is there.
    pub(crate) fn order(&self) -> Answer<OrderGuard<'_>> {
        let guard = self.order.lock();
        if guard.is_some() { Ok(OrderGuard(guard)) } else { Err(Code::CONTEXT_IS_DESTROYED) }
    }

    /// Waits for all work of the context. No lock is held while the driver waits or frees: other threads may have to queue what that work waits for.
    pub(crate) fn synchronize(&self) -> Answer {
        let mut order = self.order()?;
        let (streams, events) = order.get()?.everything();
        let (retired, staged) = (order.get()?.retired(), order.get()?.staging.queued());
        let unused = self.unused_memory();
        drop(order);
        let waited = self.wait_for_streams(&streams);
        if waited.is_ok() {
            self.free_memory(&unused);
            let mut order = self.order()?;
            order.get()?.forget_orphans(&events);
            let retired = order.get()?.take_retired(&retired);
            drop(order);
            retired.end(&*self.driver);
            if let Ok(state) = state() {
                state.memory.sweep_graph_memory(self.number);
            }
            // Work of streams that are gone is done, too.
            self.finish_staged(Finished::All, staged)?;
        }
        if let Ok(state) = state() {
            state.collect();
        }
        waited
    }

    /// Frees memory when the context is waited for; work that is queued may use it until then.
    pub(crate) fn keep_until_idle(&self, memory: MemoryId) {
        self.unused.lock().unwrap_or_else(PoisonError::into_inner).push(memory);
    }

    /// What waits to be freed now.
    fn unused_memory(&self) -> Vec<MemoryId> {
        self.unused.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Frees what still waits for that; no work uses it.
    fn free_memory(&self, memory: &[MemoryId]) {
        let mut unused = self.unused.lock().unwrap_or_else(PoisonError::into_inner);
        let gone: Vec<MemoryId> = unused.extract_if(.., |kept| memory.contains(kept)).collect();
        drop(unused);
        for memory in gone {
            // A lost device keeps nothing.
            let _ = self.driver.free(memory, None);
        }
    }

    fn wait_for_streams(&self, streams: &[StreamId]) -> Answer {
        for stream in streams {
            match self.driver.synchronize(*stream) {
                // A stream that another thread destroyed meanwhile has nothing left that this call promises to wait for.
                Err(error) if error.is_refused() => {}
                other => other.or_code()?,
            }
        }
        Ok(())
    }

    /// Ends the context: waits for its work and takes back all it has.
    pub(crate) fn end(&self, state: &ProcessState) {
        // A lost device cannot be waited for, and its objects go anyway.
        let _ = self.synchronize();
        let ours = self.number;
        for event in state.events.remove_where(|event| event.context == ours) {
            event.leave();
            let _ = self.driver.destroy(event.id.into());
        }
        state.streams.remove_where(|stream| stream.context.number == ours);
        state.functions.remove_where(|function| function.context == ours);
        for module in state.modules.remove_where(|module| module.context == ours) {
            let _ = self.driver.destroy(module.id.into());
        }
        state.graphs.remove_where(|graph| graph.context.number == ours);
        for executable in state.executables.remove_where(|executable| executable.context.number == ours) {
            executable.end();
        }
        self.free_memory(&self.unused_memory());
        state.arrays.remove_where(|array| array.context == ours);
        state.mipmapped_arrays.remove_where(|array| array.context == ours);
        for record in state.bound.end_context(ours) {
            let _ = self.driver.free(record, None);
        }
        state.memory.end_context(ours);
        state.peers.end_context(state, ours);
        let order = self.order.lock().take();
        if let Some(order) = order {
            order.end();
        }
    }
}

/// The order of a context's streams, locked.
pub(crate) struct OrderGuard<'a>(BiasedGuard<'a, Option<StreamOrder>>);

impl OrderGuard<'_> {
    pub(crate) fn get(&mut self) -> Answer<&mut StreamOrder> {
        self.0.as_mut().ok_or(Code::CONTEXT_IS_DESTROYED)
    }
}

/// The contexts of a thread; the last one is current.
pub(crate) struct Current;

impl Current {
    /// The handle of the current context; 0 if there is none.
    pub(crate) fn handle() -> RawHandle {
        context_stack::last()
    }

    /// The current context.
    pub(crate) fn get(state: &ProcessState) -> Answer<Arc<Context>> {
        match Self::handle() {
            0 => Err(Code::INVALID_CONTEXT),
            handle => {
                let context = state.contexts.get(handle).ok_or(Code::CONTEXT_IS_DESTROYED)?;
                if context.is_there() { Ok(context) } else { Err(Code::CONTEXT_IS_DESTROYED) }
            }
        }
    }

    pub(crate) fn push(handle: RawHandle) {
        context_stack::push(handle);
    }

    pub(crate) fn pop() -> Option<RawHandle> {
        context_stack::pop()
    }

    /// Replaces the current context; 0 takes it away.
    pub(crate) fn set(handle: RawHandle) {
        context_stack::set(handle);
    }
}

/// The context of a handle that a program gave.
pub(crate) fn named(state: &ProcessState, handle: RawHandle) -> Answer<Arc<Context>> {
    state.contexts.get(handle).ok_or(Code::INVALID_CONTEXT)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;
    use std::sync::mpsc;
    use std::sync::{OnceLock, Weak};
    use std::time::Duration;

    use kiln_driver::call::Call;
    use kiln_driver::layer::{Layer, Layered};
    use kiln_driver::{MemoryRequest, Object};
    use kiln_sim::{Machine, MachineConfig};

    use super::*;
    use crate::calls::stream_order::StreamChoice;

    /// How long a thread may take for a call while another one frees.
    const LIMIT: Duration = Duration::from_secs(20);

    /// A driver that waits, when it is to free something, until another thread used the context: as work does that has a function of the host which waits for that thread.
    #[derive(Default)]
    struct WaitingFrees {
        context: Arc<OnceLock<Weak<Context>>>,
        frees: Arc<AtomicU64>,
        was_held_up: Arc<AtomicBool>,
    }

    impl Layer for WaitingFrees {
        fn before(&self, _: &dyn Driver, call: &Call<'_>) -> kiln_driver::Result<()> {
            let is_free = matches!(call, Call::Free { .. } | Call::Destroy { object: Object::Host(_) });
            let context = self.context.get().and_then(Weak::upgrade);
            if let Some(context) = context.filter(|_| is_free) {
                self.frees.fetch_add(1, Ordering::Relaxed);
                let (done, is_done) = mpsc::channel();
                std::thread::spawn(move || {
                    // What ends conditions of graphs, records events and copies takes the locks.
                    drop(context.unused_memory());
                    drop(context.order());
                    let _ = done.send(());
                });
                self.was_held_up.fetch_or(is_done.recv_timeout(LIMIT).is_err(), Ordering::Relaxed);
            }
            Ok(())
        }
    }

    /// A context over such a driver.
    fn context() -> (Arc<Context>, Arc<AtomicU64>, Arc<AtomicBool>) {
        let layer = WaitingFrees::default();
        let (known, frees, held_up) = (layer.context.clone(), layer.frees.clone(), layer.was_held_up.clone());
        let device = Machine::new(MachineConfig::seeded(0)).device(0).unwrap();
        let context = Arc::new(Context::create(0, Arc::new(Layered::new(device, layer)), 0).unwrap());
        known.set(Arc::downgrade(&context)).unwrap();
        (context, frees, held_up)
    }

    fn memory(context: &Context) -> MemoryId {
        context.driver.allocate(MemoryRequest::Direct { bytes: 512 }).unwrap().id
    }

    #[test]
    fn no_lock_is_held_while_memory_is_freed_that_waited_for_the_context() {
        let (context, frees, was_held_up) = context();
        context.keep_until_idle(memory(&context));
        let kept = memory(&context);
        context.order().unwrap().get().unwrap().retire_memory(kept);
        context.synchronize().unwrap();
        assert_eq!((frees.load(Ordering::Relaxed), was_held_up.load(Ordering::Relaxed)), (2, false));
    }

    #[test]
    fn no_lock_is_held_while_staged_memory_is_freed() {
        let (context, frees, was_held_up) = context();
        // The last blocks are beyond the bound together with the first.
        for mib in [60, 100, 200] {
            let staged = context.stage(mib << 20).unwrap();
            context.keep_staged(&StreamChoice::Legacy, staged).unwrap();
            context.synchronize().unwrap();
        }
        let of_bound = frees.load(Ordering::Relaxed);
        assert!(of_bound >= 1, "{of_bound}");
        let staged = context.stage(4096).unwrap();
        context.keep_staged(&StreamChoice::Legacy, staged).unwrap();
        let order = context.order.lock().take().unwrap();
        order.end();
        assert!(frees.load(Ordering::Relaxed) >= of_bound + 2);
        assert!(!was_held_up.load(Ordering::Relaxed));
    }
}
