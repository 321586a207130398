//! A moment in which nobody submits: for those who end a device's work, and for those who begin it again.

use std::sync::{Arc, PoisonError};

use crate::clock::Clock;
use crate::held::held_here;
use crate::lane::Lane;
use crate::stamp::Stamp;
use crate::sync::Ordering;
use crate::tracker::Tracker;

impl Tracker {
    /// What is known to be done, and what has been asked for.
    pub fn horizon(&self) -> (Clock, Clock) {
        let known = self.host.snapshot();
        let mut planned = Clock::default();
        for lane in self.lanes.read().unwrap_or_else(PoisonError::into_inner).iter() {
            planned.learn(Stamp { stream: lane.key, number: lane.planned() });
        }
        (known, planned)
    }

    /// Learns nothing from waits until [`forget_unfinished`](Self::forget_unfinished): another context is being made, in which events that
    /// stood behind unfinished work look as if they had never been recorded, and so as if they were done.
    pub fn hold(&self) {
        self.held.store(true, Ordering::Release);
    }

    /// Nothing submitted so far is running any more, done or not: nobody has to wait for it. For a device that was rebuilt.
    pub fn forget_unfinished(&self) {
        for lane in self.lanes.read().unwrap_or_else(PoisonError::into_inner).iter() {
            self.host.learn(Stamp { stream: lane.key, number: lane.submitted() });
            lane.forget_points();
        }
        self.held.store(false, Ordering::Release);
    }

    /// Looks at every stream.
    pub fn each_lane(&self, look: impl FnMut(&Arc<Lane>)) {
        let lanes = self.lanes.read().unwrap_or_else(PoisonError::into_inner).clone();
        lanes.iter().for_each(look);
    }

    /// Waits until every submission that is being made right now is made, but for those of this thread. `is_late` is asked between two
    /// looks and may sleep; if it says yes, this says no.
    pub fn pass_every_lane(&self, mut is_late: impl FnMut() -> bool) -> bool {
        let lanes = self.lanes.read().unwrap_or_else(PoisonError::into_inner).clone();
        lanes.iter().all(|lane| {
            let is_own = held_here(&self.host, |held| held.stream == lane.key).is_some();
            loop {
                if is_own || lane.try_enter().is_some() {
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
    /// Streams are entered in the order of their keys. Whoever is inside of one waits only for numbers that are planned already, by
    /// somebody who is inside of another and does not wait for us; so this ends as soon as they do.
    pub fn frozen<R>(&self, then: impl FnOnce(&[Arc<Lane>]) -> R) -> R {
        let lanes = self.lanes.read().unwrap_or_else(PoisonError::into_inner).clone();
        let entered: Vec<_> = lanes.iter().map(|lane| lane.enter()).collect();
        let result = then(&lanes);
        drop(entered);
        result
    }
}
