//! The server of rank 0: accepts connections, checks the token, and runs the store.
//!
//! A thread accepts, and one reads from each rank. Messages to a rank are written under the lock of the store, so their order is the
//! store's; a rank that does not read for [`WRITE_LIMIT`] is cut off rather than waited for.

use std::collections::HashMap;
use std::io;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use kiln_driver::ShortTime;
use kiln_runtime::internal::note_finding;

use super::error::RendezvousError;
use super::file_descriptors;
use super::message::{Message, Refusal, millis};
use super::roll_call::{self, RollCall};
use super::store::{Delivery, Store};
use super::token_proof::{TokenKey, random_nonce};

/// How long a connection may take until it has shown that it knows the token.
const GREETING_LIMIT: Duration = Duration::from_secs(5);
/// How long a rank may leave messages unread.
const WRITE_LIMIT: Duration = Duration::from_secs(5);
/// How long the store tries to tell a rank that it was given up.
const LAST_WORD_LIMIT: Duration = Duration::from_millis(50);
/// The most connections that have not shown the token yet.
const MAX_GREETINGS: usize = 64;
/// How long the store stays for the other ranks after rank 0 has left: they may still read what a last barrier answered.
const LINGER_LIMIT: Duration = Duration::from_secs(5);
/// How long a rank that has given up the store waits for the others in the same place: what they said may not be read yet.
const OTHERS_LIMIT: Duration = Duration::from_millis(200);
/// What is said of a store without its thread.
pub(super) const NO_STORE: &str = "a thread for the store of rank 0 could not be started";
/// What is said of a rank that the store has no thread for.
const NOT_SERVED: &str = "a thread that serves a rank could not be started";
/// What is said of a rank whose connection cannot be taken.
const NOT_TAKEN: &str = "the connection of a rank could not be taken";
/// How long connections cannot be taken before rank 0 is told.
const DESCRIPTOR_PATIENCE: Duration = Duration::from_secs(1);
/// The stack of a thread that serves a connection.
const STACK_BYTES: usize = 256 << 10;

/// Runs until it is dropped, which waits a while for the other ranks to leave. What they sent to each other and never received is a finding then.
#[derive(Debug)]
pub(super) struct Server {
    shared: Arc<Shared>,
    /// The thread that accepts, which has the port.
    accepts: Option<thread::JoinHandle<()>>,
    address: SocketAddr,
}

#[derive(Debug)]
struct Shared {
    ranks: Mutex<Ranks>,
    /// A rank has left.
    left: Condvar,
    silence: Duration,
    greetings: AtomicUsize,
    stopped: AtomicBool,
    /// The last rank that came found no thread that serves it, and why.
    not_served: Mutex<Option<io::Error>>,
    /// Connections cannot be taken because the process has no descriptor for them, for some time already.
    lacks_descriptors: AtomicBool,
}

#[derive(Debug)]
struct Ranks {
    store: Store,
    peers: HashMap<u32, Peer>,
    /// Messages of all ranks so far.
    messages: u64,
    /// Ranks are being asked whether they are there.
    is_calling: bool,
}

/// How the connection of a rank ended.
enum End {
    Left,
    /// What was seen of it.
    Broken(String),
    /// It said that it is lost, and why.
    Lost(String),
    /// It has given up the store, and why.
    GaveUpStore(String),
}

/// The connection of a rank.
#[derive(Debug)]
struct Peer {
    stream: Arc<TcpStream>,
    /// The number of its last message.
    heard: u64,
    /// Why it is cut off, if it is.
    cut_off_for: Option<String>,
}

impl Server {
    /// Serves on a socket that listens. A rank that says nothing for `silence` counts as lost.
    pub(super) fn start(
        listener: TcpListener,
        store: Store,
        key: TokenKey,
        silence: Duration,
    ) -> io::Result<Self> {
        let (address, peers) = (listener.local_addr()?, HashMap::new());
        let ranks = Mutex::new(Ranks { store, peers, messages: 0, is_calling: false });
        let (greetings, stopped) = (AtomicUsize::new(0), AtomicBool::new(false));
        let (left, not_served) = (Condvar::new(), Mutex::default());
        let lacks_descriptors = AtomicBool::new(false);
        let shared =
            Arc::new(Shared { ranks, left, silence, greetings, stopped, not_served, lacks_descriptors });
        let accepting = Arc::clone(&shared);
        let builder = thread::Builder::new().name("kiln rendezvous".into());
        let accepts = Some(builder.spawn(move || accepting.accept(&listener, &key))?);
        Ok(Self { shared, accepts, address })
    }

    /// Why the last rank that came was not served, if it was not.
    pub(super) fn refusal(&self) -> Option<RendezvousError> {
        let source = self.shared.not_served.lock().unwrap_or_else(PoisonError::into_inner).take()?;
        let what = if file_descriptors::are_used_up(&source) { NOT_TAKEN } else { NOT_SERVED };
        Some(RendezvousError::System { what, source })
    }

    /// Why the connections of ranks cannot be taken, if the process has had no descriptor for them for some time.
    pub(super) fn lacks_descriptors(&self) -> Option<RendezvousError> {
        self.shared.lacks_descriptors.load(Ordering::Acquire).then(|| self.refusal())?
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let deadline = Instant::now() + LINGER_LIMIT;
        let mut ranks = self.shared.lock();
        // Rank 0 may have been lost with its device, and the others have met here since.
        if ranks.store.has_lost(0) {
            let told = ranks.peers.keys().map(|rank| (*rank, Message::Left { rank: 0 })).collect();
            ranks.deliver(told);
        }
        while !ranks.peers.is_empty() {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            ranks = self.shared.left.wait_timeout(ranks, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        self.shared.stopped.store(true, Ordering::Release);
        for (_, peer) in ranks.peers.drain() {
            // A stream that is closed already is what is wanted.
            let _ = peer.stream.shutdown(Shutdown::Both);
        }
        let unreceived = ranks.store.unreceived();
        drop(ranks);
        for finding in unreceived {
            tracing::warn!("{finding}");
            note_finding(&finding);
        }
        // The thread that accepts looks at `stopped` after each connection.
        let woken = TcpStream::connect_timeout(&loopback_of(self.address), Duration::from_secs(1));
        if let (Ok(_), Some(accepts)) = (woken, self.accepts.take()) {
            // The port is free after that, also if the thread panicked.
            let _ = accepts.join();
        }
    }
}

/// Where this host reaches a socket that may listen on all addresses.
pub(super) fn loopback_of(address: SocketAddr) -> SocketAddr {
    match (address.ip().is_unspecified(), address) {
        (true, SocketAddr::V4(_)) => SocketAddr::from(([127, 0, 0, 1], address.port())),
        (true, SocketAddr::V6(_)) => SocketAddr::from((std::net::Ipv6Addr::LOCALHOST, address.port())),
        (false, _) => address,
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Ranks> {
        // The store is changed in single steps, so a panic elsewhere leaves it whole.
        self.ranks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn accept(self: &Arc<Self>, listener: &TcpListener, key: &TokenKey) {
        let mut failing_since = None;
        for stream in listener.incoming() {
            if self.stopped.load(Ordering::Acquire) {
                return;
            }
            let stream = match stream {
                Ok(stream) => stream,
                Err(error) => {
                    // Out of descriptors, for example: some may be free in a moment.
                    let since = *failing_since.get_or_insert_with(Instant::now);
                    if file_descriptors::are_used_up(&error) && since.elapsed() >= DESCRIPTOR_PATIENCE {
                        *self.not_served.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
                        self.lacks_descriptors.store(true, Ordering::Release);
                    }
                    thread::sleep(Duration::from_millis(20));
                    continue;
                }
            };
            failing_since = None;
            self.lacks_descriptors.store(false, Ordering::Release);
            if self.greetings.fetch_add(1, Ordering::AcqRel) >= MAX_GREETINGS {
                self.greetings.fetch_sub(1, Ordering::AcqRel);
                continue;
            }
            let (serving, key) = (Arc::clone(self), key.clone());
            let builder = thread::Builder::new().name("kiln rendezvous rank".into()).stack_size(STACK_BYTES);
            let not_served = builder.spawn(move || serving.serve(stream, &key)).err();
            if not_served.is_some() {
                self.greetings.fetch_sub(1, Ordering::AcqRel);
            }
            *self.not_served.lock().unwrap_or_else(PoisonError::into_inner) = not_served;
        }
    }

    fn serve(self: &Arc<Self>, stream: TcpStream, key: &TokenKey) {
        let stream = Arc::new(stream);
        let joined = self.greet(&stream, key);
        self.greetings.fetch_sub(1, Ordering::AcqRel);
        let Ok(Some(rank)) = joined else { return };
        let end = self.read_all(&stream, rank);
        if self.stopped.load(Ordering::Acquire) {
            return;
        }
        let mut ranks = self.lock();
        let peer = ranks.peers.remove(&rank);
        let cut_off_for = peer.and_then(|peer| peer.cut_off_for);
        let cause = match end {
            // One that has left before it was cut off has left.
            End::Left => None,
            End::Broken(cause) => Some(cut_off_for.unwrap_or(cause)),
            End::Lost(cause) => Some(cause),
            End::GaveUpStore(cause) => {
                drop(ranks);
                thread::sleep(OTHERS_LIMIT);
                ranks = self.lock();
                // It is rank 0 that is lost if no other goes on with it.
                if ranks.peers.keys().all(|other| *other == 0) {
                    ranks.deliver(vec![(0, Message::Lost { rank: 0, cause: cause.clone() })]);
                }
                Some(format!("it gave up rank 0: {cause}"))
            }
        };
        if let Some(cause) = cause.clone() {
            // It may have been stopped and go on later: then it reads why it was given up.
            let _ = stream.set_write_timeout(Some(LAST_WORD_LIMIT));
            let _ = Message::Lost { rank, cause }.send(&mut &*stream);
        }
        let deliveries = ranks.store.leave(rank, cause);
        ranks.deliver(deliveries);
        self.left.notify_all();
    }

    /// The rank that the other side proved to be; none if it was refused.
    fn greet(&self, shared: &Arc<TcpStream>, key: &TokenKey) -> io::Result<Option<u32>> {
        let stream = &mut &**shared;
        stream.set_read_timeout(Some(GREETING_LIMIT))?;
        stream.set_write_timeout(Some(WRITE_LIMIT))?;
        stream.set_nodelay(true)?;
        let Message::Hello { nonce: theirs } = Message::receive_greeting(stream)? else { return Ok(None) };
        let nonce = random_nonce();
        Message::Challenge { nonce, proof: key.store_proof(&theirs) }.send(stream)?;
        let Message::Join { rank, size, heartbeat, proof } = Message::receive_greeting(stream)? else {
            return Ok(None);
        };
        let refuse = |refusal, mut ranks: MutexGuard<'_, Ranks>| {
            ranks.store.note_refusal(rank, size, refusal);
            drop(ranks);
            Message::Refused(refusal).send(&mut &**shared).map(|()| None)
        };
        if !TokenKey::same(&proof, &key.rank_proof(&nonce, rank, size)) {
            return refuse(Refusal::Token, self.lock());
        }
        if rank != 0 && heartbeat >= millis(self.silence) {
            return refuse(Refusal::Heartbeat { silence: millis(self.silence) }, self.lock());
        }
        // Rank 0 is in this process, and both are silent while that is stopped.
        stream.set_read_timeout((rank != 0).then_some(self.silence))?;
        let mut ranks = self.lock();
        if let Err(refusal) = ranks.store.admit(rank, size) {
            return refuse(refusal, ranks);
        }
        Message::Accepted.send(stream)?;
        // One descriptor for each rank: this one is shared with the thread that reads.
        let (stream, heard) = (Arc::clone(shared), ranks.messages);
        ranks.peers.insert(rank, Peer { stream, heard, cut_off_for: None });
        let deliveries = ranks.store.join(rank);
        ranks.deliver(deliveries);
        Ok(Some(rank))
    }

    /// Serves a rank until it is gone.
    fn read_all(self: &Arc<Self>, stream: &TcpStream, rank: u32) -> End {
        loop {
            let message = match Message::receive(&mut &*stream) {
                Ok(Message::Leave) => return End::Left,
                Ok(Message::Lost { rank: lost, cause }) if lost == rank => return End::Lost(cause),
                Ok(Message::Lost { rank: 0, cause }) => return End::GaveUpStore(cause),
                Ok(message) => message,
                Err(error) => return End::Broken(why_it_ended(&error, self.silence)),
            };
            let mut ranks = self.lock();
            ranks.hear(rank);
            match message {
                // The answer shows the rank that the store is there.
                Message::Alive => ranks.deliver(vec![(rank, Message::Alive)]),
                Message::Ended { rank: ended, thread } => {
                    if ranks.store.is_at(ended, &thread) {
                        ranks.cut_off(ended, "its process has ended or is ending".to_owned());
                    }
                }
                Message::FindLost => {
                    if !std::mem::replace(&mut ranks.is_calling, true) {
                        drop(ranks);
                        self.call(rank);
                    }
                }
                message => {
                    let deliveries = ranks.store.request(rank, message);
                    ranks.deliver(deliveries);
                }
            }
        }
    }

    /// Asks all ranks whether they are there, in the background. Those that do not answer are lost.
    fn call(self: &Arc<Self>, failed: u32) {
        let shared = Arc::clone(self);
        let builder = thread::Builder::new().name("kiln rendezvous roll call".into()).stack_size(STACK_BYTES);
        let called = builder.spawn(move || {
            let mut call = RollCall::new(shared.lock().peers.iter().map(|(rank, peer)| (*rank, peer.heard)));
            while !call.is_over() && !shared.stopped.load(Ordering::Acquire) {
                let questions = call.silent().map(|rank| (rank, Message::AreYouThere)).collect();
                shared.lock().deliver(questions);
                let asked = Instant::now();
                thread::sleep(roll_call::PERIOD);
                let mut ranks = shared.lock();
                let lost = call.waited(asked.elapsed(), |rank| Some(ranks.peers.get(&rank)?.heard));
                for rank in lost {
                    ranks.cut_off(rank, roll_call::cause(failed));
                }
            }
            shared.lock().is_calling = false;
        });
        if called.is_err() {
            self.lock().is_calling = false;
        }
    }
}

impl Ranks {
    /// A rank has sent a message.
    fn hear(&mut self, rank: u32) {
        self.messages += 1;
        if let Some(peer) = self.peers.get_mut(&rank) {
            peer.heard = self.messages;
        }
    }

    /// Reads no more of a rank than it has sent so far. The thread that reads from it then reports it.
    fn cut_off(&mut self, rank: u32, why: String) {
        let Some(peer) = self.peers.get_mut(&rank) else { return };
        peer.cut_off_for.get_or_insert(why);
        // A stream that is closed already is what is wanted.
        let _ = peer.stream.shutdown(Shutdown::Read);
    }

    /// Sends messages. A rank that cannot be written to is cut off; the thread that reads from it then reports it.
    fn deliver(&mut self, deliveries: Vec<Delivery>) {
        for (rank, message) in deliveries {
            let Some(peer) = self.peers.get_mut(&rank) else { continue };
            if message.send(&mut &*peer.stream).is_err() {
                // A stream that is closed already is what is wanted.
                let _ = peer.stream.shutdown(Shutdown::Both);
            }
        }
    }
}

/// What the end of a connection says about the other side.
pub(super) fn why_it_ended(error: &io::Error, silence: Duration) -> String {
    match error.kind() {
        io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe => {
            "its process ended or closed the connection".into()
        }
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
            format!("it sent nothing for {}", ShortTime(silence))
        }
        io::ErrorKind::InvalidData => format!("it sent {error}"),
        _ => error.to_string(),
    }
}
