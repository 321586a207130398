//! Observes the state of a device: polling, blocking, as a future, or by a callback.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use super::DeviceRuntime;
use crate::completion::ReactorHandle;
use crate::device_state::{Cause, DeviceState, Phase, StateCell, Status};
use crate::error::Result;
use crate::ids::Generation;

impl DeviceRuntime {
    /// What the device is doing.
    ///
    /// ```
    /// # fn main() -> kiln::Result<()> {
    /// let gpu = kiln::DeviceRuntime::simulated(1)?;
    /// assert!(gpu.state().is_ready());
    /// let watch = gpu.watch();
    /// drop(gpu);
    /// assert_eq!(watch.status().phase(), kiln::recovery::Phase::Stopped);
    /// # Ok(())
    /// # }
    /// ```
    pub fn state(&self) -> DeviceState {
        self.inner().state().status().state
    }

    /// What the device is doing, and how much happened before.
    pub fn status(&self) -> Status {
        self.inner().state().status()
    }

    /// How often the device's context was rebuilt.
    pub fn generation(&self) -> Generation {
        self.inner().state().generation()
    }

    /// A watch over the state, which outlives the runtime.
    pub fn watch(&self) -> StateWatch {
        StateWatch::new(self.inner().state().clone(), Some(self.inner().reactor().handle()))
    }

    /// Calls that with the status of now and with every change, in order, on the runtime's own thread, until the subscription is
    /// dropped. While there is a watcher, the device is checked from time to time, so that a fault is noticed although no thread waits for
    /// the work that met it.
    ///
    /// The callback may call anything but should not take long: completions are told by the same thread. It must not own this runtime,
    /// which would then never end.
    ///
    /// # Errors
    /// If no thread can be started.
    pub fn on_change(&self, callback: impl Fn(&Status) + Send + Sync + 'static) -> Result<Subscription> {
        self.inner().reactor().handle().start()?;
        let cell = self.inner().state().clone();
        let id = cell.data().subscribe(Arc::new(callback));
        self.inner().reactor().handle().ring();
        Ok(Subscription { cell, id })
    }
}

/// A watch over a device's state. It holds nothing of the device.
#[derive(Clone)]
pub struct StateWatch {
    cell: Arc<StateCell>,
    /// What wakes tasks; none where the thread that changes the state does.
    reactor: Option<ReactorHandle>,
    seen: u64,
}

impl StateWatch {
    pub(crate) fn new(cell: Arc<StateCell>, reactor: Option<ReactorHandle>) -> Self {
        Self { cell, reactor, seen: 0 }
    }

    /// How it is now.
    pub fn status(&self) -> Status {
        self.cell.status()
    }

    /// Why the device of now is lost, also where it was shut down before or since; none if it is not, or was rebuilt.
    pub fn fault(&self) -> Option<Arc<Cause>> {
        self.cell.fault()
    }

    /// Waits until something is true of the status, can become true no more because the device has stopped, or time ran out (on the
    /// wall, not on the device). Says how it was then. A function that heals a block is not waited with: nothing changes before it returns.
    pub fn wait_until(&self, want: impl Fn(&Status) -> bool, limit: Option<Duration>) -> Status {
        if self.cell.is_rebuilt_here() {
            return self.status();
        }
        self.cell.wait_until(want, limit)
    }

    /// The next status this watch has not seen: at once if there was a change since the last one it gave, and the first time it is
    /// asked. None once the device has stopped and that was seen. Of several changes in between the latest is given, and its counts
    /// tell how many there were.
    pub fn changed(&mut self) -> Changed<'_> {
        Changed { watch: self, id: None }
    }
}

impl fmt::Debug for StateWatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "watch over a device: {}", self.status())
    }
}

/// The next change of a state; see [`StateWatch::changed`].
#[must_use = "a future does nothing until it is awaited"]
pub struct Changed<'a> {
    watch: &'a mut StateWatch,
    id: Option<u64>,
}

impl Future for Changed<'_> {
    type Output = Option<Status>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        if this.watch.reactor.as_ref().is_some_and(|reactor| reactor.start().is_err()) {
            // Without a thread that would wake this task, it has to look by itself.
            context.waker().wake_by_ref();
        }
        let (cell, waker) = (this.watch.cell.clone(), context.waker().clone());
        let mut data = cell.data();
        // Counted from one, so that the first look is answered at once.
        if data.status.changes + 1 > this.watch.seen {
            this.watch.seen = data.status.changes + 1;
            return Poll::Ready(Some(data.status.clone()));
        }
        if data.status.phase() == Phase::Stopped {
            return Poll::Ready(None);
        }
        let id = *this.id.get_or_insert_with(|| data.fresh_id());
        let before = data.wait(id, waker);
        drop(data);
        drop(before);
        if let Some(reactor) = &this.watch.reactor {
            reactor.ring();
        }
        Poll::Pending
    }
}

impl Drop for Changed<'_> {
    fn drop(&mut self) {
        if let Some(id) = self.id {
            let waker = self.watch.cell.data().stop_waiting(id);
            drop(waker);
        }
    }
}

impl fmt::Debug for Changed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the next change of a device's state")
    }
}

/// The right to be called with changes, until it is dropped. A call that is under way then still ends.
#[must_use = "dropping it ends the subscription"]
pub struct Subscription {
    cell: Arc<StateCell>,
    id: u64,
}

impl Drop for Subscription {
    fn drop(&mut self) {
        let subscriber = self.cell.data().unsubscribe(self.id);
        drop(subscriber);
    }
}

impl fmt::Debug for Subscription {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("subscription to a device's state")
    }
}
