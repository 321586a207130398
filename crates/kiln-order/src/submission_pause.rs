//! Stops the submissions of all threads for a moment, for shutdown and recovery.

use std::sync::{Arc, PoisonError};

use crate::dependency_tracker::DependencyTracker;
use crate::held_streams::held_here;
use crate::stamp::Stamp;
use crate::stream_state::StreamState;
use crate::sync_shim::Ordering;
use crate::vector_clock::StreamClock;

impl DependencyTracker {
    /// What is known to be done, and what has been asked for.
    pub fn horizon(&self) -> (StreamClock, StreamClock) {
        let known = self.host.snapshot();
        let mut planned = StreamClock::default();
        for state in self.streams.read().unwrap_or_else(PoisonError::into_inner).iter() {
            planned.learn(Stamp { stream: state.key, number: state.planned() });
        }
        (known, planned)
    }

    /// Learns nothing from waits until [`forget_unfinished`](Self::forget_unfinished): another context is being made, in which events that
    /// stood behind unfinished work look as if they had never been recorded, and so as if they were done.
    pub fn hold(&self) {
        self.held.store(true, Ordering::Release);
    }

    /// Nothing submitted so far is running any more, done or not: no wait is needed for it. For a device that was rebuilt.
    pub fn forget_unfinished(&self) {
        for state in self.streams.read().unwrap_or_else(PoisonError::into_inner).iter() {
            self.host.learn(Stamp { stream: state.key, number: state.submitted() });
            state.forget_points();
        }
        self.held.store(false, Ordering::Release);
    }

    /// Looks at every stream.
    pub fn each_stream(&self, look: impl FnMut(&Arc<StreamState>)) {
        let streams = self.streams.read().unwrap_or_else(PoisonError::into_inner).clone();
        streams.iter().for_each(look);
    }

    /// Waits until every submission that is being made right now is made, but for those of this thread. `is_late` is asked between two
    /// looks and may sleep; if it says yes, this says no.
    pub fn pass_every_stream(&self, mut is_late: impl FnMut() -> bool) -> bool {
        let streams = self.streams.read().unwrap_or_else(PoisonError::into_inner).clone();
        streams.iter().all(|state| {
            let is_own = held_here(&self.host, |held| held.stream == state.key).is_some();
            loop {
                if is_own || state.try_enter().is_some() {
                    break true;
                }
                if is_late() {
                    break false;
                }
            }
        })
    }

    /// Runs something while no submission is being made, on any stream. It must not submit, wait or drop a block.
    ///
    /// Streams are entered in the order of their keys. A thread inside of one waits only for numbers that are planned already, by
    /// a thread that is inside of another and does not wait for us; so this ends as soon as they do.
    pub fn frozen<R>(&self, then: impl FnOnce(&[Arc<StreamState>]) -> R) -> R {
        let streams = self.streams.read().unwrap_or_else(PoisonError::into_inner).clone();
        let entered: Vec<_> = streams.iter().map(|state| state.enter()).collect();
        let result = then(&streams);
        drop(entered);
        result
    }
}
