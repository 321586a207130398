//! A function that is called when work is done.

use super::pending::Waiter;
use crate::error::Result;
use crate::runtime::Ticket;

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
        let waiter = Waiter::Callback(Box::new(callback));
        if let Err((error, Waiter::Callback(callback))) = self.runtime().reactor().wait(self.stamp(), waiter)
        {
            callback(Err(error));
        }
    }
}
