//! One connection: requests and answers until one side has enough.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use super::connections::ConnectionGuard;
use super::request::{MAX_HEAD_BYTES, Refusal, Request, head_end};
use super::response::Response;
use super::router::Router;

/// How long a connection may stay without a request.
const IDLE: Duration = Duration::from_secs(30);
/// How long a request may take to arrive, from its first byte.
const ARRIVAL: Duration = Duration::from_secs(5);
/// How long an answer may take to be taken.
const DELIVERY: Duration = Duration::from_secs(20);
/// How long one step of either may take.
const PATIENCE: Duration = Duration::from_secs(5);
/// Bytes that are sent at once.
const PIECE: usize = 64 << 10;

/// One connection.
pub(crate) struct Session<'r> {
    pub(crate) stream: TcpStream,
    pub(crate) router: &'r Router,
    pub(crate) guard: ConnectionGuard,
}

/// What came.
enum Arrived {
    /// A request's head, and what came behind it.
    Head(Vec<u8>, Vec<u8>),
    /// Nothing more.
    Gone,
    /// Something that is answered with a refusal.
    Refused(Refusal),
}

impl Session<'_> {
    /// Answers requests until the client leaves, or something is wrong.
    pub(crate) fn run(mut self) {
        let _ = self.stream.set_nodelay(true);
        let _ = self.stream.set_write_timeout(Some(PATIENCE));
        let mut rest = Vec::new();
        loop {
            let (response, request) = match self.arrival(rest) {
                Arrived::Gone => return,
                Arrived::Refused(refusal) => {
                    rest = Vec::new();
                    (Response::refused(refusal), Request::default())
                }
                Arrived::Head(head, more) => {
                    rest = more;
                    self.guard.set_answering(true);
                    match Request::read(&head) {
                        Ok(request) => (self.router.answer(&request), request),
                        Err(refusal) => (Response::refused(refusal), Request::default()),
                    }
                }
            };
            let keeps_alive = request.keeps_alive && response.status == 200;
            if !self.deliver(&response.bytes(keeps_alive, request.is_head)) || !keeps_alive {
                return;
            }
            self.guard.set_answering(false);
        }
    }

    /// Waits for a request; `bytes` have come already.
    fn arrival(&mut self, mut bytes: Vec<u8>) -> Arrived {
        let mut deadline = Instant::now() + if bytes.is_empty() { IDLE } else { ARRIVAL };
        let mut piece = [0; 2048];
        loop {
            if let Some(end) = head_end(&bytes).filter(|end| *end <= MAX_HEAD_BYTES) {
                let rest = bytes.split_off(end);
                return Arrived::Head(bytes, rest);
            }
            if bytes.len() > MAX_HEAD_BYTES {
                return Arrived::Refused(Refusal(431, "the request is too long"));
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() || self.stream.set_read_timeout(Some(left)).is_err() {
                return self.late(&bytes);
            }
            match self.stream.read(&mut piece) {
                Ok(0) => return Arrived::Gone,
                Ok(read) => {
                    if bytes.is_empty() {
                        deadline = Instant::now() + ARRIVAL;
                    }
                    bytes.extend_from_slice(piece.get(..read).unwrap_or_default());
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                    return self.late(&bytes);
                }
                Err(_) => return Arrived::Gone,
            }
        }
    }

    /// A request that did not arrive in time.
    fn late(&self, bytes: &[u8]) -> Arrived {
        if bytes.is_empty() {
            Arrived::Gone
        } else {
            Arrived::Refused(Refusal(408, "the request took too long"))
        }
    }

    /// Sends bytes; false if the client does not take them.
    fn deliver(&mut self, bytes: &[u8]) -> bool {
        let deadline = Instant::now() + DELIVERY;
        for piece in bytes.chunks(PIECE) {
            if Instant::now() > deadline || self.stream.write_all(piece).is_err() {
                return false;
            }
        }
        true
    }
}
