//! The socket between client and worker, for the handshake and for descriptors.
//!
//! It is a pair of connected sockets without a name, so no other process can connect to it. Messages keep their bounds. Everything else goes
//! through shared memory.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::retry_on_intr;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recvmsg, sendmsg, socketpair,
};

use super::futex_wait::timespec;

/// The longest message.
pub(crate) const LONGEST_MESSAGE_BYTES: usize = 32 << 10;

/// One end of the pair.
#[derive(Debug)]
pub(crate) struct Socket(OwnedFd);

/// A message, and the descriptor that came with it.
#[derive(Debug)]
pub(crate) struct Received {
    pub(crate) bytes: Vec<u8>,
    pub(crate) descriptor: Option<OwnedFd>,
}

impl Socket {
    /// Two ends of a new connection.
    pub(crate) fn pair() -> io::Result<(Self, OwnedFd)> {
        let (ours, theirs) =
            socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
        Ok((Self(ours), theirs))
    }

    /// An end that this process inherited.
    pub(crate) fn from_descriptor(descriptor: OwnedFd) -> Self {
        Self(descriptor)
    }

    pub(crate) fn descriptor(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }

    /// Sends a message, with a descriptor if there is one. Raises no SIGPIPE if the other end is closed.
    pub(crate) fn send(&self, message: &[u8], descriptor: Option<BorrowedFd<'_>>) -> io::Result<()> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        let descriptors = descriptor.map(|descriptor| [descriptor]);
        if let Some(descriptors) = &descriptors
            && !control.push(SendAncillaryMessage::ScmRights(descriptors))
        {
            return Err(io::ErrorKind::OutOfMemory.into());
        }
        let parts = [IoSlice::new(message)];
        let sent = retry_on_intr(|| sendmsg(&self.0, &parts, &mut control, SendFlags::NOSIGNAL))?;
        if sent == message.len() { Ok(()) } else { Err(io::ErrorKind::WriteZero.into()) }
    }

    /// Receives the next message, waiting up to a limit. A closed connection is an error.
    pub(crate) fn receive(&self, limit: Duration) -> io::Result<Received> {
        let begun = Instant::now();
        let mut waiting = [PollFd::new(&self.0, PollFlags::IN)];
        // A signal handler of the program may interrupt the call.
        let poll = || poll(&mut waiting, Some(&timespec(limit.saturating_sub(begun.elapsed()))));
        if retry_on_intr(poll)? == 0 {
            return Err(io::ErrorKind::TimedOut.into());
        }
        let mut bytes = vec![0; LONGEST_MESSAGE_BYTES];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let flags = RecvFlags::CMSG_CLOEXEC | RecvFlags::DONTWAIT;
        let received = recvmsg(&self.0, &mut [IoSliceMut::new(&mut bytes)], &mut control, flags)?;
        let descriptor = control.drain().find_map(|message| match message {
            RecvAncillaryMessage::ScmRights(mut descriptors) => descriptors.next(),
            _ => None,
        });
        if received.bytes == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        bytes.truncate(received.bytes);
        Ok(Received { bytes, descriptor })
    }

    /// Whether the other end is closed, waiting for that up to a limit.
    pub(crate) fn is_closed(&self, limit: Option<Duration>) -> bool {
        let mut waiting = [PollFd::new(&self.0, PollFlags::empty())];
        let limit = limit.map(timespec);
        matches!(poll(&mut waiting, limit.as_ref()), Ok(1..))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_keep_their_bounds_and_carry_descriptors() {
        let (here, there) = Socket::pair().unwrap();
        let there = Socket::from_descriptor(there);
        let (mut reader, writer) = io::pipe().unwrap();
        here.send(b"one", None).unwrap();
        here.send(b"two", Some(writer.as_fd())).unwrap();
        drop(writer);
        let first = there.receive(Duration::from_secs(1)).unwrap();
        assert_eq!((first.bytes.as_slice(), first.descriptor.is_none()), (&b"one"[..], true));
        let second = there.receive(Duration::from_secs(1)).unwrap();
        assert_eq!(second.bytes, b"two");
        io::Write::write_all(&mut std::fs::File::from(second.descriptor.unwrap()), b"x").unwrap();
        let mut all = Vec::new();
        io::Read::read_to_end(&mut reader, &mut all).unwrap();
        assert_eq!(all, b"x");
        assert_eq!(there.receive(Duration::ZERO).unwrap_err().kind(), io::ErrorKind::TimedOut);
        assert!(!there.is_closed(Some(Duration::ZERO)));
        drop(here);
        assert!(there.is_closed(None));
        assert_eq!(there.receive(Duration::ZERO).unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    }
}
