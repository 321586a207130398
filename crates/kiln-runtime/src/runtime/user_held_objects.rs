//! Objects of the driver that users hold: modules, graphs, names of other libraries' events. They are destroyed with the runtime.

use std::collections::HashSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use kiln_driver::{Driver, Object};
use kiln_order::{DependencyTracker, Stamp};

/// The objects of one runtime that users hold, or held.
#[derive(Default)]
pub(super) struct LentObjects {
    lent: Mutex<HashSet<Object>>,
    /// Modules and graphs that were given back, with the work that may still use them.
    retired: Mutex<Vec<(Object, Vec<Stamp>)>>,
}

impl LentObjects {
    /// Remembers an object that a user holds.
    pub(super) fn lend(&self, object: Object) {
        self.lent().insert(object);
    }

    /// The user gives it back.
    pub(super) fn take_back(&self, object: Object) {
        self.lent().remove(&object);
    }

    /// The user gives it back, and work submitted so far may use it.
    pub(super) fn retire(&self, object: Object, tracker: &DependencyTracker) {
        let entry = (object, tracker.latest_stamps());
        self.take_back(object);
        self.retired().push(entry);
    }

    /// Destroys what was given back and whose work is done.
    pub(super) fn destroy_retired(&self, tracker: &DependencyTracker, driver: &dyn Driver) {
        let retired = std::mem::take(&mut *self.retired());
        let (done, running): (Vec<_>, Vec<_>) = retired
            .into_iter()
            .partition(|(_, stamps)| stamps.iter().all(|stamp| tracker.is_done(*stamp).unwrap_or(false)));
        self.retired().extend(running);
        for (object, _) in done {
            // A lost device has no objects, and no caller waits for an answer.
            let _ = driver.destroy(object);
        }
    }

    /// Destroys what users still hold; for the end of a runtime.
    pub(super) fn destroy_all(&self, driver: &dyn Driver) {
        for object in std::mem::take(&mut *self.lent()) {
            let _ = driver.destroy(object);
        }
    }

    /// Whether something was given back that work may still use.
    pub(super) fn has_retired(&self) -> bool {
        !self.retired().is_empty()
    }

    /// Modules that are loaded, with those that are unloaded after their last work.
    pub(super) fn modules(&self) -> usize {
        let is_module = |object: &Object| matches!(object, Object::Module(_));
        let held = self.lent().iter().filter(|object| is_module(object)).count();
        held + self.retired().iter().filter(|(object, _)| is_module(object)).count()
    }

    fn lent(&self) -> MutexGuard<'_, HashSet<Object>> {
        self.lent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn retired(&self) -> MutexGuard<'_, Vec<(Object, Vec<Stamp>)>> {
        self.retired.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
