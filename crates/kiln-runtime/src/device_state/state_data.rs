//! What is behind the lock of a state: the status, the losses, and who wants to be told.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::task::Waker;

use super::loss::Loss;
use super::status::{DeviceState, Status};
use crate::ids::Generation;

/// What is called with each change.
pub(crate) type Callback = Arc<dyn Fn(&Status) + Send + Sync>;

/// The status and the list of those who want to hear of changes.
///
/// What is taken out of it is handed to the caller, to be dropped once the lock is released: a callback or a task may own something that
/// comes back here when it goes.
pub(crate) struct StateData {
    pub(crate) status: Status,
    pub(crate) losses: Vec<Loss>,
    next_id: u64,
    wakers: BTreeMap<u64, Waker>,
    /// Wakers of those who waited when the status changed.
    due: Vec<Waker>,
    subscribers: BTreeMap<u64, Subscriber>,
}

pub(crate) struct Subscriber {
    callback: Callback,
    /// What it has not heard yet.
    unheard: VecDeque<Status>,
}

impl StateData {
    pub(crate) fn new() -> Self {
        let status = Status { state: DeviceState::Starting, generation: Generation::default(), changes: 0 };
        Self {
            status,
            losses: Vec::new(),
            next_id: 0,
            wakers: BTreeMap::new(),
            due: Vec::new(),
            subscribers: BTreeMap::new(),
        }
    }

    /// Puts up a new state.
    pub(crate) fn publish(&mut self, state: DeviceState) {
        self.status.state = state;
        self.status.changes += 1;
        for subscriber in self.subscribers.values_mut() {
            subscriber.unheard.push_back(self.status.clone());
        }
        self.due.extend(std::mem::take(&mut self.wakers).into_values());
    }

    pub(crate) fn fresh_id(&mut self) -> u64 {
        self.next_id += 1;
        self.next_id
    }

    /// Wakes that task at the next change, instead of the one that waited under this id, which is the answer.
    pub(crate) fn wait(&mut self, id: u64, waker: Waker) -> Option<Waker> {
        self.wakers.insert(id, waker)
    }

    /// The task does not want to be woken any more.
    pub(crate) fn stop_waiting(&mut self, id: u64) -> Option<Waker> {
        self.wakers.remove(&id)
    }

    /// Calls that with the status of now and with each that follows.
    pub(crate) fn subscribe(&mut self, callback: Callback) -> u64 {
        let id = self.fresh_id();
        let unheard = VecDeque::from([self.status.clone()]);
        self.subscribers.insert(id, Subscriber { callback, unheard });
        id
    }

    pub(crate) fn unsubscribe(&mut self, id: u64) -> Option<Subscriber> {
        self.subscribers.remove(&id)
    }

    pub(crate) fn is_watched(&self) -> bool {
        !self.subscribers.is_empty() || !self.wakers.is_empty()
    }

    pub(crate) fn take_wakers(&mut self) -> Vec<Waker> {
        std::mem::take(&mut self.due)
    }

    /// A subscriber and the oldest status it has not heard.
    pub(crate) fn next_call(&mut self) -> Option<(Callback, Status)> {
        self.subscribers.values_mut().find_map(|subscriber| {
            let status = subscriber.unheard.pop_front()?;
            Some((subscriber.callback.clone(), status))
        })
    }
}
