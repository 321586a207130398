//! A function that is called when work is done.

use crate::completion::Waiter;
use crate::error::{Error, Result};
use crate::runtime::{RuntimeLookup, Ticket};

impl Ticket {
    /// Calls that exactly once, with how the work ended: on the runtime's own thread, or right here if it has ended already or cannot be
    /// waited for. The function should not take long, since all completions of the device are told by that thread, and it must not
    /// wait for work of this device.
    pub fn on_done(&self, callback: impl FnOnce(Result<()>) + Send + 'static) {
        match self.is_done() {
            Ok(false) => {}
            Ok(true) => return callback(Ok(())),
            Err(error) => return callback(Err(error)),
        }
        let RuntimeLookup::Live(runtime) = self.lookup() else {
            // It ended between the two questions, and waited for its work.
            return callback(self.wait());
        };
        // The state alone: a callback does not hold the runtime.
        let (state, findings, stamp) = (runtime.state().clone(), runtime.findings().cloned(), self.stamp());
        let confirmed = move |answer: Result<()>| {
            callback(match answer {
                Ok(()) => match (state.failure_of(stamp), &findings) {
                    (Some(cause), _) => Err(Error::of_loss(&cause, stamp)),
                    (None, Some(findings)) => findings.settle(stamp),
                    (None, None) => Ok(()),
                },
                Err(error) => Err(error.told_to(stamp, &state)),
            });
        };
        let waiter = Waiter::Callback(Box::new(confirmed));
        if let Err((error, Waiter::Callback(callback))) = runtime.reactor().wait(self.stamp(), waiter) {
            callback(Err(error));
        }
    }
}
