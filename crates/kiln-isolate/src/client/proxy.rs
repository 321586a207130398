//! The proxy: a driver whose calls are carried out by the worker in use.

use std::sync::Arc;
use std::time::Duration;

use kiln_driver::{DeviceInfo, DeviceKind, Error, Health, Object, Result, WallClock};

use super::address_proposal::Addresses;
use super::client_state::Shared;
use super::object_tables::ObjectTables;

/// How long a question for the device's health waits for the worker to look. A worker that does not answer in time is not known
/// to have lost its device.
const HEALTH_LIMIT: Duration = Duration::from_millis(20);

/// The client's side of an isolated device.
pub(crate) struct DeviceProxy {
    pub(crate) shared: Arc<Shared>,
    pub(crate) objects: Arc<ObjectTables>,
    pub(crate) info: DeviceInfo,
    pub(crate) clock: WallClock,
    /// Where reservations without a wanted address are placed on hardware.
    pub(super) addresses: Option<Addresses>,
    /// Whether a standby may hold memory that was freed.
    pub(super) has_standby: bool,
}

impl DeviceProxy {
    pub(crate) fn new(
        shared: Arc<Shared>,
        objects: Arc<ObjectTables>,
        info: DeviceInfo,
        has_standby: bool,
    ) -> Self {
        let addresses = (info.kind == DeviceKind::Cuda).then(Addresses::default);
        Self { shared, objects, info, clock: WallClock::new(), addresses, has_standby }
    }

    pub(crate) fn health(&self) -> Health {
        match self.shared.link().examine("health", HEALTH_LIMIT) {
            Err(error) if error.is_sticky() => Health::Lost(error),
            _ => Health::Healthy,
        }
    }

    pub(crate) fn destroy(&self, object: Object) -> Result<()> {
        let seen = |error: Error| error.seen_by("destroy");
        match object {
            Object::Reservation(id) => self.destroy_reservation(id),
            Object::Module(id) => self.destroy_module(id),
            // The worker is told when the last call that holds the object has returned.
            Object::Pages(id) => self.objects.pages.remove(id).map(drop).map_err(seen),
            Object::Host(id) => self.objects.hosts.remove(id).map(drop).map_err(seen),
            Object::Stream(id) => self.objects.streams.remove(id).map(drop).map_err(seen),
            Object::Event(id) => self.objects.events.remove(id).map(drop).map_err(seen),
            Object::Graph(id) => self.objects.graphs.remove(id).map(drop).map_err(seen),
        }
    }

    pub(crate) fn native(&self) -> Error {
        if let Err(lost) = self.shared.link().check("native") {
            return lost;
        }
        Error::unsupported("native", "a native handle", "it is valid in the worker process only")
    }
}
