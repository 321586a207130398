//! A ticket as a future.

use std::fmt;
use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use crate::completion::{Outcome, Place, Waiter};
use crate::error::{Error, Result, Stale};
use crate::runtime::{Inner, RuntimeLookup, Ticket};
use crate::wake::ReplySlot;

/// The end of some work, to be awaited on any executor.
///
/// Made by awaiting a [`Ticket`]. While it waits it holds the runtime, not the buffers: those are kept by the work itself. Dropping it forgets the wait
/// and lets the work go on. Polled after it was ready, it gives the same answer again.
#[must_use = "a future does nothing until it is awaited"]
pub struct Done {
    ticket: Ticket,
    stage: Stage,
}

enum Stage {
    /// It was not polled yet.
    New,
    /// In line at the reactor.
    Waiting {
        runtime: Arc<Inner>,
        place: Place,
        answer: Arc<ReplySlot<Outcome>>,
    },
    Over(Result<()>),
}

impl IntoFuture for Ticket {
    type Output = Result<()>;
    type IntoFuture = Done;

    fn into_future(self) -> Done {
        Done { ticket: self, stage: Stage::New }
    }
}

impl Done {
    /// What it waits for.
    pub fn ticket(&self) -> &Ticket {
        &self.ticket
    }

    /// Looks, spins for a short time if there are no other waiters, and then queues.
    fn begin(&mut self, context: &Context<'_>) -> Poll<Result<()>> {
        let runtime = match self.ticket.lookup() {
            RuntimeLookup::Live(runtime) => runtime,
            RuntimeLookup::Done => return Poll::Ready(Ok(())),
            RuntimeLookup::Failed(reason) => return Poll::Ready(Err(reason)),
            // There is no thread left to call back.
            RuntimeLookup::Ending => return Poll::Ready(Err(Stale::ShuttingDown.into())),
        };
        let clock = runtime.driver().clock();
        let spin = runtime.config().completion.spin;
        let mut until = None;
        loop {
            match self.ticket.is_done() {
                Ok(false) => {}
                Ok(true) => return Poll::Ready(Ok(())),
                Err(error) => return Poll::Ready(Err(error)),
            }
            if runtime.reactor().is_busy() || spin.is_zero() {
                break;
            }
            let now = clock.now();
            if now >= *until.get_or_insert(now.saturating_add(spin)) {
                break;
            }
            std::hint::spin_loop();
        }
        if let Err(error) = runtime.check_not_healing() {
            return Poll::Ready(Err(error));
        }
        let answer = Arc::new(ReplySlot::new());
        // Before it is in line, so that an answer finds whom to wake.
        let waiting = answer.poll(context).is_pending();
        debug_assert!(waiting, "it was not shared yet");
        let waiting = runtime.reactor().wait(self.ticket.stamp(), Waiter::Task(answer.clone()));
        match waiting {
            Ok(place) => {
                self.stage = Stage::Waiting { runtime, place, answer };
                Poll::Pending
            }
            Err((error, _)) => Poll::Ready(Err(error)),
        }
    }
}

impl Future for Done {
    type Output = Result<()>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        let this = &mut *self;
        let polled = match &this.stage {
            Stage::Over(answer) => return Poll::Ready(answer.clone()),
            Stage::New => this.begin(context),
            Stage::Waiting { runtime, answer, .. } => match answer.poll(context) {
                Poll::Ready(Ok(())) => {
                    let kept = this.ticket.check_not_lost(runtime);
                    Poll::Ready(kept.and_then(|()| runtime.settle(this.ticket.stamp())))
                }
                Poll::Ready(Err(error)) => {
                    Poll::Ready(Err(Error::new(error).told_to(this.ticket.stamp(), runtime.state())))
                }
                Poll::Pending => Poll::Pending,
            },
        };
        if let Poll::Ready(answer) = &polled {
            this.stage = Stage::Over(answer.clone());
        }
        polled
    }
}

impl Drop for Done {
    fn drop(&mut self) {
        if let Stage::Waiting { runtime, place, .. } = &self.stage {
            runtime.reactor().leave(*place);
        }
    }
}

impl fmt::Debug for Done {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "end of {:?}", self.ticket)
    }
}
