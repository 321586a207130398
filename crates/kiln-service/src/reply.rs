//! The one answer to a request.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use kiln_runtime::internal::ReplySlot;

use crate::refused::Refused;
use crate::request::Request;

pub(crate) type Answered<R> = Result<<R as Request>::Output, Refused<R>>;

/// The answer to a request: to be awaited on any executor, or waited for. Dropping it does not stop the request.
#[must_use = "the answer has the buffers of a request that was refused"]
pub struct Reply<R: Request> {
    pub(crate) answer: Arc<ReplySlot<Answered<R>>>,
}

impl<R: Request> Reply<R> {
    /// Waits for it.
    ///
    /// # Errors
    /// Why the request was refused, with the request.
    pub fn wait(self) -> Answered<R> {
        loop {
            // Without a limit there is an answer.
            if let Some(answer) = self.answer.wait(None) {
                return answer;
            }
        }
    }

    /// Waits for it, but no longer than this; the reply comes back if time ran out.
    ///
    /// # Errors
    /// The reply itself.
    pub fn wait_within(self, limit: Duration) -> Result<Answered<R>, Self> {
        self.answer.wait(Some(limit)).ok_or(self)
    }
}

impl<R: Request> Future for Reply<R> {
    type Output = Answered<R>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        self.answer.poll(context)
    }
}

impl<R: Request> fmt::Debug for Reply<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "reply to {}", std::any::type_name::<R>())
    }
}
