//! Creates streams and events, and destroys all kinds of objects.

use std::sync::{Mutex, PoisonError};

use kiln_driver::{
    Error, EventId, EventRequest, Object, Refusal, ReservationId, Result, StreamId, StreamRequest,
};

use crate::check::access_origin::{Action, Actor, Mark};
use crate::check::finding::FindingKind;
use crate::device::objects::{Event, Objects, Users};
use crate::schedule::machine_core::Core;
use crate::schedule::machine_state::State;
use crate::schedule::stream_queue::Stream;

impl Core {
    pub(crate) fn create_stream(&self, objects: &Objects, request: StreamRequest) -> Result<StreamId> {
        const CALL: &str = "create_stream";
        let device = objects.info.ordinal;
        let priority = match request {
            StreamRequest::New { priority } => priority,
            StreamRequest::Foreign(handle) => return self.name_stream(objects, handle),
            _ => return Err(unknown_request(CALL)),
        };
        let mut state = self.enter(device, CALL)?;
        let range = objects.info.limits.priorities;
        if priority > range.lowest || priority < range.highest {
            let what = format!("priority {priority} is not between {} and {}", range.highest, range.lowest);
            return Err(Error::invalid(CALL, what, "use one of the device's priorities"));
        }
        let host = state.host.clone();
        let lane = state.lanes.take(&host);
        match objects.streams.insert(|_| lane) {
            Ok((id, _)) => {
                state.streams.insert(lane, Stream::new(id, device));
                Ok(id)
            }
            Err(error) => {
                state.lanes.give_back(lane, (lane, 0));
                Err(error)
            }
        }
    }

    pub(crate) fn create_event(&self, objects: &Objects, request: EventRequest) -> Result<EventId> {
        const CALL: &str = "create_event";
        let timed = match request {
            EventRequest::Plain => false,
            EventRequest::Timed => true,
            EventRequest::Foreign(handle) => return self.name_event(objects, handle),
            _ => return Err(unknown_request(CALL)),
        };
        let _state = self.enter_in_time(objects.info.ordinal, CALL, !timed)?;
        let event = |id| Event { id, timed, last: Mutex::default(), waiters: Mutex::default() };
        objects.events.insert(event).map(|(id, _)| id)
    }

    pub(crate) fn destroy(&self, objects: &Objects, object: Object) -> Result<()> {
        const CALL: &str = "destroy";
        let device = objects.info.ordinal;
        match object {
            Object::Host(id) => return self.destroy_host(objects, id),
            Object::Reservation(id) => return self.release(objects, id),
            Object::Module(id) => return self.unload(objects, id),
            _ => {}
        }
        let measured = matches!(object, Object::Event(event) if objects.is_timed(event));
        let mut state = self.enter_in_time(device, CALL, !measured)?;
        match object {
            // Mapped pages are held by their mappings, exported ones by their descriptors.
            Object::Pages(id) => objects.pages.remove(CALL, id).map(|_| ()),
            Object::Stream(id) => {
                let lane = *objects.streams.remove(CALL, id)?;
                let Some(stream) = state.streams.get_mut(&lane) else { return Ok(()) };
                if stream.id != id {
                    stream.names.retain(|name| *name != id);
                    return Ok(());
                }
                stream.destroyed = true;
                for name in std::mem::take(&mut stream.names) {
                    // A caller that still uses such a name broke the contract, and is told that the name is stale.
                    objects.streams.remove(CALL, name)?;
                }
                objects.natives.forget(object);
                state.forget_if_over(lane);
                Ok(())
            }
            Object::Event(id) => {
                let event = objects.events.remove(CALL, id)?;
                if event.id != id {
                    return Ok(());
                }
                objects.natives.forget(object);
                let waiters = event.waiters.lock().unwrap_or_else(PoisonError::into_inner);
                state.check_unused(device, object, &waiters);
                Ok(())
            }
            Object::Graph(id) => {
                let graph = objects.graphs.remove(CALL, id)?;
                let graph = graph.lock().unwrap_or_else(PoisonError::into_inner);
                state.check_unused(device, object, &graph.users);
                Ok(())
            }
            Object::Host(_) | Object::Reservation(_) | Object::Module(_) => Ok(()),
        }
    }

    fn release(&self, objects: &Objects, id: ReservationId) -> Result<()> {
        const CALL: &str = "destroy";
        let mut state = self.enter(objects.info.ordinal, CALL)?;
        let reservation = objects.reservations.find(CALL, id)?;
        let range = reservation.address..reservation.address + reservation.bytes;
        if let Some(segment) = state.device(objects.info.ordinal).map.overlapping(range).first() {
            let why = format!("{} are mapped", segment.region.name);
            return Err(Error::refused(CALL, Refusal::Busy { handle: id.to_string(), why }));
        }
        objects.reservations.remove(CALL, id)?;
        state.addresses.release(reservation.address);
        Ok(())
    }
}

impl State {
    /// Reports an object that goes away while the host cannot know its users to be done.
    pub(crate) fn check_unused(&mut self, device: u32, object: Object, users: &Users) {
        if !self.checks.lifetimes {
            return;
        }
        let host = self.host.clone();
        // Nothing runs on a lost device any more.
        let is_over = |user: &Mark| {
            self.devices.get(user.actor.device as usize).is_some_and(|device| device.lost.is_some())
        };
        let user = users.unknown(&host).find(|user| !is_over(user)).cloned();
        if let Some(user) = user {
            let end = Actor::host(device, Action::Destroy(object.to_string()));
            let kind = FindingKind::DestroyedInUse;
            self.find_object(kind, device, object.to_string(), Some(&user.actor), Some(&end));
        }
    }
}

fn unknown_request(call: &'static str) -> Error {
    Error::unsupported(call, "this kind of request", "the simulator does not know it")
}
