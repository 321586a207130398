//! The port of this host where ranks meet.

use std::io;
use std::net::{Ipv4Addr, TcpListener};

use crate::failure::Failure;

/// The port that was asked for, or a free one. It is bound and given back, so that rank 0 can bind it.
///
/// # Errors
/// The port is in use, or this user must not bind it.
pub(super) fn choose(wanted: Option<u16>) -> Result<u16, Failure> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, wanted.unwrap_or(0)));
    let port = listener.and_then(|listener| listener.local_addr()).map(|address| address.port());
    port.map_err(|error| match (error.kind(), wanted) {
        (io::ErrorKind::AddrInUse, Some(port)) => Failure::refused(format!("port {port} is in use"))
            .next("give another --port, or none for a free one"),
        (_, Some(port)) => Failure::refused(format!("port {port} cannot be bound: {error}"))
            .next("give another --port, or none for a free one"),
        (_, None) => Failure::fault(format!("no port of 127.0.0.1 can be bound: {error}")),
    })
}
