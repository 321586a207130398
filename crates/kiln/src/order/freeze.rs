//! A moment in which nobody submits: for those who end a device's work, and for those who begin it again.

use std::sync::{Arc, PoisonError};

use super::clock::Clock;
use super::lane::Lane;
use super::stamp::Stamp;
use super::tracker::Tracker;

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

    /// Nothing submitted so far is running any more, done or not: nobody has to wait for it. For a device that was rebuilt.
    pub fn forget_unfinished(&self) {
        for lane in self.lanes.read().unwrap_or_else(PoisonError::into_inner).iter() {
            self.host.learn(Stamp { stream: lane.key, number: lane.submitted() });
            lane.forget_points();
        }
    }

    /// Waits until every submission that is being made right now is made.
    pub fn pass_every_lane(&self) {
        let lanes = self.lanes.read().unwrap_or_else(PoisonError::into_inner).clone();
        lanes.iter().for_each(|lane| drop(lane.enter()));
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
