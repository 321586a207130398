//! The connections that are open, of which there may be only so many.

use std::net::{Shutdown, TcpStream};
use std::sync::{Arc, Mutex};

use crate::watched_recording::locked;

/// Connections at once.
const MAX_CONNECTIONS: usize = 64;

/// The connections that are open.
#[derive(Default)]
pub(crate) struct Connections {
    open: Mutex<Open>,
}

#[derive(Default)]
struct Open {
    next: u64,
    list: Vec<OpenConnection>,
}

struct OpenConnection {
    number: u64,
    stream: TcpStream,
    /// Whether an answer is being made or sent.
    is_answering: bool,
}

/// One connection; it leaves the list when it is dropped.
pub(crate) struct ConnectionGuard {
    connections: Arc<Connections>,
    number: u64,
}

impl Connections {
    /// Adds a connection. If there are too many, the oldest that sends no request is closed; none if all are being answered.
    pub(crate) fn add(self: &Arc<Self>, stream: &TcpStream) -> Option<ConnectionGuard> {
        let mut open = locked(&self.open);
        if open.list.len() >= MAX_CONNECTIONS {
            let at = open.list.iter().position(|known| !known.is_answering)?;
            let oldest = open.list.remove(at);
            let _ = oldest.stream.shutdown(Shutdown::Both);
        }
        let stream = stream.try_clone().ok()?;
        open.next += 1;
        let number = open.next;
        open.list.push(OpenConnection { number, stream, is_answering: false });
        Some(ConnectionGuard { connections: self.clone(), number })
    }

    /// Closes all.
    pub(crate) fn close(&self) {
        for known in locked(&self.open).list.drain(..) {
            let _ = known.stream.shutdown(Shutdown::Both);
        }
    }
}

impl ConnectionGuard {
    /// Says whether an answer is being made or sent.
    pub(crate) fn set_answering(&self, is_answering: bool) {
        let mut open = locked(&self.connections.open);
        if let Some(known) = open.list.iter_mut().find(|known| known.number == self.number) {
            known.is_answering = is_answering;
        }
    }
}

impl Drop for ConnectionGuard {
    fn drop(&mut self) {
        locked(&self.connections.open).list.retain(|known| known.number != self.number);
    }
}
