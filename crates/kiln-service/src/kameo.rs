//! A device service as an actor of the crate `kameo`.
//!
//! That crate was chosen because an actor there handles any message type it has an implementation for, so that one generic implementation
//! makes every [`Request`] a message with its own typed reply; because handlers may hand their reply to a task, so that requests overlap; and
//! because it is kept up, small without its features, and needs the same Rust version. The actor adds an address, links and supervision in that
//! framework; queue, stash, restarts and replies stay those of the service.

use kameo::actor::{Actor, ActorRef};
use kameo::error::Infallible;
use kameo::message::{Context, Message};
use kameo::reply::DelegatedReply;

use crate::device_service::DeviceService;
use crate::refused::Refused;
use crate::request::Request;

/// A device service as an actor: every [`Request`] is a message, and its reply is the request's output or [`Refused`].
#[derive(Clone, Debug)]
pub struct DeviceActor {
    service: DeviceService,
}

impl DeviceActor {
    /// An actor in front of a service; spawn it with what `kameo` offers.
    pub fn new(service: DeviceService) -> Self {
        Self { service }
    }

    /// The service behind it.
    pub fn service(&self) -> &DeviceService {
        &self.service
    }
}

impl Actor for DeviceActor {
    type Args = Self;
    type Error = Infallible;

    async fn on_start(args: Self, _: ActorRef<Self>) -> Result<Self, Infallible> {
        Ok(args)
    }
}

impl<R: Request> Message<R> for DeviceActor {
    type Reply = DelegatedReply<Result<R::Output, Refused<R>>>;

    /// Queues the request and goes on to the next message; the reply is sent when it is there.
    async fn handle(&mut self, request: R, context: &mut Context<Self, Self::Reply>) -> Self::Reply {
        context.spawn(self.service.submit(request))
    }
}
