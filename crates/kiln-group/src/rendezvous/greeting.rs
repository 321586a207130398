//! The handshake of a rank that joins.

use std::io;
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use super::error::RendezvousError;
use super::message::{Message, Refusal, millis};
use super::token_proof::{TokenKey, random_nonce};

/// What a rank says when it joins.
pub(super) struct Greeting<'a> {
    pub(super) key: &'a TokenKey,
    pub(super) rank: u32,
    pub(super) size: u32,
    pub(super) heartbeat: Duration,
}

impl Greeting<'_> {
    /// Both sides show that they know the token, the store first.
    pub(super) fn exchange(
        &self,
        stream: &mut TcpStream,
        limit: Duration,
    ) -> io::Result<Result<(), Refusal>> {
        stream.set_read_timeout(Some(limit))?;
        stream.set_write_timeout(Some(limit))?;
        stream.set_nodelay(true)?;
        let nonce = random_nonce();
        Message::Hello { nonce }.send(stream)?;
        let unexpected = || io::Error::new(io::ErrorKind::InvalidData, "an unexpected message");
        let Message::Challenge { nonce: theirs, proof } = Message::receive_greeting(stream)? else {
            return Err(unexpected());
        };
        if !TokenKey::same(&proof, &self.key.store_proof(&nonce)) {
            return Ok(Err(Refusal::Token));
        }
        let (rank, size) = (self.rank, self.size);
        let proof = self.key.rank_proof(&theirs, rank, size);
        Message::Join { rank, size, heartbeat: millis(self.heartbeat), proof }.send(stream)?;
        match Message::receive_greeting(stream)? {
            Message::Accepted => Ok(Ok(())),
            Message::Refused(refusal) => Ok(Err(refusal)),
            _ => Err(unexpected()),
        }
    }

    /// Why the store at an address does not take this rank.
    pub(super) fn refused(&self, refusal: Refusal, address: SocketAddr) -> RendezvousError {
        let (rank, size) = (self.rank, self.size);
        match refusal {
            Refusal::Token => RendezvousError::WrongToken { address },
            Refusal::Size { size: expected } => RendezvousError::Size { rank, size, expected },
            Refusal::Taken => RendezvousError::RankTaken { rank },
            Refusal::Range => RendezvousError::NoSuchRank { rank, size },
            Refusal::Heartbeat { silence } => {
                let (heartbeat, silence) = (self.heartbeat, Duration::from_millis(silence.into()));
                RendezvousError::HeartbeatOfRank { rank, heartbeat, silence }
            }
        }
    }
}
