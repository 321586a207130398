//! Where rank 0 listens, and where the others find it.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, ToSocketAddrs};
use std::time::{Duration, Instant};
use std::{io, thread};

use super::{RendezvousError, Result};
use crate::rank_environment::MeetingPoint;

/// How long a port in use is tried again. The rank 0 before, or a process that it has just started and that still holds its files, gives it back within that.
const PORT_PATIENCE: Duration = Duration::from_secs(1);
/// The time between two tries.
const PORT_PAUSE: Duration = Duration::from_millis(20);

/// The port to use: the next one if the launcher listens on the one it names.
pub(super) fn port(point: &MeetingPoint) -> u16 {
    match (point.is_taken, point.port) {
        (false, port) => port,
        (true, u16::MAX) => u16::MAX - 1,
        (true, port) => port + 1,
    }
}

pub(super) fn resolve(host: &str, port: u16) -> Result<Vec<SocketAddr>> {
    let unknown = |source| RendezvousError::UnknownHost { host: host.into(), source };
    let addresses: Vec<_> = (host, port).to_socket_addrs().map_err(unknown)?.collect();
    match addresses.is_empty() {
        true => Err(unknown(io::Error::new(io::ErrorKind::NotFound, "the name has no address"))),
        false => Ok(addresses),
    }
}

/// Whether none of these is an address of this host. A name may stand for the address of a service or a router that forwards to this host, so that is no mistake by itself.
pub(super) fn are_foreign(addresses: &[SocketAddr]) -> bool {
    let is_foreign = |address: &SocketAddr| {
        let bound = TcpListener::bind((address.ip(), 0));
        bound.is_err_and(|error| error.kind() == io::ErrorKind::AddrNotAvailable)
    };
    addresses.iter().all(is_foreign)
}

/// Listens on loopback if the host is that, or on all addresses: the one that a name has on other hosts may be another one here. A port in use is tried again for
/// a second, but not after the deadline.
pub(super) fn listen(
    host: &str,
    port: u16,
    addresses: &[SocketAddr],
    deadline: Instant,
) -> Result<TcpListener> {
    let is_loopback = addresses.iter().all(|address| address.ip().is_loopback());
    let has_ipv4 = addresses.iter().any(SocketAddr::is_ipv4);
    let ip = match (is_loopback, has_ipv4) {
        (true, true) => IpAddr::V4(Ipv4Addr::LOCALHOST),
        (true, false) => IpAddr::V6(Ipv6Addr::LOCALHOST),
        (false, true) => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        (false, false) => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
    };
    let last_try = deadline.min(Instant::now() + PORT_PATIENCE);
    loop {
        match TcpListener::bind((ip, port)) {
            Ok(listener) => return Ok(listener),
            Err(source) if source.kind() != io::ErrorKind::AddrInUse => {
                return Err(RendezvousError::Listen { host: host.into(), port, source });
            }
            Err(_) if Instant::now() >= last_try => {
                return Err(RendezvousError::PortInUse { host: host.into(), port });
            }
            Err(_) => thread::sleep(PORT_PAUSE),
        }
    }
}
