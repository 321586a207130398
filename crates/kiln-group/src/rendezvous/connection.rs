//! The connection of a rank to the store: a thread reads what the store sends, another one shows that this rank is there.

mod departures;
mod losses;

use std::io;
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::end_notes::EndNotes;
use super::error::RendezvousError;
use super::file_descriptors;
use super::greeting::Greeting;
use super::message::Message;
use super::rank_thread::{RankThread, ThreadWatch};
use super::seen::{EndingLosses, SearchStep, Seen};
use super::server::why_it_ended;

/// How long one attempt to connect, or one answer of a handshake, may take.
const ATTEMPT_LIMIT: Duration = Duration::from_secs(2);
/// How long a rank that is there already is waited for: a process that has just ended may still count as there.
const TAKEN_LIMIT: Duration = Duration::from_secs(1);
/// How long to wait before the next attempt to connect, at most.
const MAX_PAUSE: Duration = Duration::from_millis(200);
/// How long the reason for the end of a connection is waited for.
const REASON_LIMIT: Duration = Duration::from_millis(500);
/// What is said of a rank without the threads of its connection.
const NO_THREAD: &str = "a thread for the connection to rank 0 could not be started";
/// What is said of a rank that cannot connect for lack of a descriptor.
const NO_SOCKET: &str = "a connection to rank 0 could not be opened";
/// How long a rank tries to tell rank 0 that it has given it up.
const LAST_WORD_LIMIT: Duration = Duration::from_millis(50);
/// Between two looks at the thread of another rank of this host.
const WATCH_PERIOD: Duration = Duration::from_millis(20);

#[derive(Debug)]
pub(super) struct Connection {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    rank: u32,
    stream: TcpStream,
    /// Held while a message is sent.
    sending: Mutex<()>,
    seen: Mutex<Seen>,
    changed: Condvar,
    /// For the launcher. A rank's end is noted before the caller can hear of it.
    notes: EndNotes,
}

/// How one attempt to join ended without an error that is final.
enum Attempt {
    Joined(TcpStream),
    Again(NotJoined),
}

/// What the last attempt to join came to.
pub(super) enum NotJoined {
    /// What listens there says nothing.
    Silent,
    Other(String),
}

impl NotJoined {
    /// The error of a rank that has tried for so long.
    pub(super) fn told(self, host: String, port: u16, waited: Duration) -> RendezvousError {
        match self {
            Self::Silent => RendezvousError::Silent { host, port, waited },
            Self::Other(last) => RendezvousError::NoAnswer { host, port, waited, last },
        }
    }
}

impl Connection {
    /// Connects to one of the addresses of rank 0 and joins; tries again until the deadline, since rank 0 may start later. Rank 0 asks its own store after each attempt.
    pub(super) fn join(
        addresses: &[SocketAddr],
        greeting: &Greeting<'_>,
        (deadline, own_store): (Instant, &dyn Fn() -> Result<(), RendezvousError>),
        silence: Duration,
        notes: EndNotes,
    ) -> Result<Result<Self, NotJoined>, RendezvousError> {
        let mut pause = Duration::from_millis(10);
        let mut last = NotJoined::Other("no attempt was made".to_owned());
        let mut taken_since = None;
        while Instant::now() < deadline {
            for address in addresses {
                match attempt(*address, greeting, deadline) {
                    Err(taken @ RendezvousError::RankTaken { .. }) => {
                        let since = *taken_since.get_or_insert_with(Instant::now);
                        if since.elapsed() >= TAKEN_LIMIT {
                            return Err(taken);
                        }
                        last = NotJoined::Other(taken.to_string());
                    }
                    Err(error) => return Err(error),
                    Ok(Attempt::Joined(stream)) => {
                        let system = |source| RendezvousError::System { what: NO_THREAD, source };
                        let times = (greeting.heartbeat, silence);
                        return Self::start(stream, greeting.rank, times, notes).map(Ok).map_err(system);
                    }
                    Ok(Attempt::Again(why)) => {
                        own_store()?;
                        last = why;
                    }
                }
            }
            thread::sleep(pause.min(deadline.saturating_duration_since(Instant::now())));
            pause = (pause * 2).min(MAX_PAUSE);
        }
        Ok(Err(last))
    }

    fn start(
        stream: TcpStream,
        rank: u32,
        (heartbeat, silence): (Duration, Duration),
        notes: EndNotes,
    ) -> io::Result<Self> {
        // The store of rank 0 is in its process, and both are silent while that is stopped.
        stream.set_read_timeout((rank != 0).then_some(silence))?;
        stream.set_write_timeout(Some(silence))?;
        let (sending, seen) = (Mutex::default(), Mutex::new(Seen::default()));
        let shared = Arc::new(Shared { rank, stream, sending, seen, changed: Condvar::new(), notes });
        let (reader, alive) = (Arc::clone(&shared), Arc::clone(&shared));
        // From here on it closes the connection when it is dropped, also if a thread is missing.
        let connection = Self { shared };
        thread::Builder::new().name("kiln rendezvous reader".into()).spawn(move || {
            let error = loop {
                match Message::receive(&mut &reader.stream) {
                    Ok(message) => reader.note(message),
                    Err(error) => break error,
                }
            };
            let why = why_it_ended(&error, silence);
            if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) {
                reader.give_up_store(&why);
            }
            reader.end(why);
        })?;
        thread::Builder::new()
            .name("kiln rendezvous alive".into())
            .spawn(move || alive.send_alive(heartbeat))?;
        Ok(connection)
    }

    /// Sends a request, and waits until it is answered; none if that did not happen in time.
    pub(super) fn request(
        &self,
        make: impl FnOnce(u64) -> Message,
        deadline: Instant,
        losses: EndingLosses<'_>,
    ) -> Result<Option<Message>, RendezvousError> {
        self.request_until(make, deadline, losses, |_| false)
    }

    /// The same; none also once something else has ended the wait.
    fn request_until(
        &self,
        make: impl FnOnce(u64) -> Message,
        deadline: Instant,
        losses: EndingLosses<'_>,
        is_over: impl Fn(&Seen) -> bool,
    ) -> Result<Option<Message>, RendezvousError> {
        let mut seen = self.shared.lock();
        let began = seen.losses.len();
        let id = seen.next_id;
        seen.next_id += 1;
        seen.answers.insert(id, None);
        drop(seen);
        let message = make(id);
        if let Err(error) = self.shared.send(&message) {
            self.shared.end_soon(&error);
        }
        let answer = self.wait(deadline, (began, losses), |seen| match seen.answers.get_mut(&id)?.take() {
            // A loss is told before what follows from it.
            None if is_over(seen) && seen.ending_error(began, losses).is_none() => Some(None),
            answer => answer.map(Some),
        });
        let answer = answer.map(Option::flatten);
        self.shared.lock().answers.remove(&id);
        if !matches!(answer, Ok(Some(_))) {
            self.cancel(message);
        }
        answer
    }

    /// What the store answers to a request at once; none if it has no answer yet, or is lost.
    pub(super) fn peek(&self, make: impl FnOnce(u64) -> Message, deadline: Instant) -> Option<Message> {
        let mut seen = self.shared.lock();
        let id = seen.next_id;
        seen.next_id += 1;
        seen.answers.insert(id, None);
        drop(seen);
        let message = make(id);
        let sent = self.shared.send(&message);
        // Requests are answered in order, and this one always is.
        let ask = |id| Message::WhoIsMissing { id };
        if sent.is_ok() {
            let _ = self.request(ask, deadline, EndingLosses::None);
        }
        let answer = self.shared.lock().answers.remove(&id).flatten();
        if answer.is_none() {
            self.cancel(message);
        }
        answer
    }

    /// The answer to a request is not waited for any more: a value that comes later is not sent.
    fn cancel(&self, request: Message) {
        if let Message::Get { id, key } | Message::GetOf { id, key, .. } = request {
            self.tell(&Message::Cancel { id, key });
        }
    }

    /// Sends a message that is not answered.
    pub(super) fn tell(&self, message: &Message) {
        // If the store is gone, so are those who would read it.
        let _ = self.shared.send(message);
    }

    /// Waits until all ranks have joined; says whether they have.
    pub(super) fn wait_until_complete(&self, deadline: Instant) -> Result<bool, RendezvousError> {
        let losses = (0, EndingLosses::None);
        Ok(self.wait(deadline, losses, |seen| seen.complete.then_some(()))?.is_some())
    }

    /// Waits until a rank is lost that the caller does not know of.
    pub(super) fn wait_for_loss(&self, deadline: Instant) -> Result<Option<(u32, String)>, RendezvousError> {
        let began = self.losses_seen();
        let look = |seen: &mut Seen| seen.ending_loss(began, EndingLosses::Unknown);
        self.wait(deadline, (began, EndingLosses::None), look)
    }

    /// Sends a request without waiting for the answer.
    pub(super) fn post(&self, make: impl FnOnce(u64) -> Message) {
        let mut seen = self.shared.lock();
        let id = seen.next_id;
        seen.next_id += 1;
        drop(seen);
        // If the store is gone, so are those who would read it.
        let _ = self.shared.send(&make(id));
    }

    /// Has the store find out which ranks do not answer, which it tells as losses. To be called over and over while a communicator fails: a store that does not answer is lost as well.
    pub(super) fn find_lost(&self) {
        let step = self.shared.lock().search(Instant::now());
        match step {
            // The thread that reads notices if the connection has ended.
            SearchStep::Ask => drop(self.shared.send(&Message::FindLost)),
            SearchStep::Wait => {}
            SearchStep::StoreLost => {
                let cause = "it does not answer, and a communicator failed";
                self.shared.give_up_store(cause);
                self.shared.end(cause.to_owned());
            }
        }
    }

    /// This rank is lost, though its process lives: the others are told, once.
    pub(super) fn give_up(&self, cause: &str) {
        if !std::mem::replace(&mut self.shared.lock().gives_up, true) {
            // If the store is gone, there is no one to tell.
            let _ = self.shared.send(&Message::Lost { rank: self.shared.rank, cause: cause.into() });
        }
    }

    /// Why the others go on without this rank, if they do.
    pub(super) fn given_up(&self) -> Option<String> {
        self.shared.lock().given_up.as_ref().map(|(_, cause)| cause.clone())
    }

    /// Whether the store is there, and its process is not about to leave.
    pub(super) fn has_store(&self) -> bool {
        let seen = self.shared.lock();
        seen.end_of_connection().is_none() && !seen.left.contains(&0)
    }

    pub(super) fn is_replacement(&self) -> bool {
        self.shared.lock().is_replacement
    }

    fn wait<T>(
        &self,
        deadline: Instant,
        (began, losses): (usize, EndingLosses<'_>),
        mut look: impl FnMut(&mut Seen) -> Option<T>,
    ) -> Result<Option<T>, RendezvousError> {
        let mut seen = self.shared.lock();
        loop {
            // What the others have left behind is no answer of theirs.
            if seen.given_up.is_some()
                && let Some(error) = seen.end_of_connection()
            {
                return Err(error);
            }
            if let Some(found) = look(&mut seen) {
                return Ok(Some(found));
            }
            if let Some(error) = seen.ending_error(began, losses) {
                return Err(error);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(None);
            }
            let waited = self.shared.changed.wait_timeout(seen, left);
            seen = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        // A rank whose thread panics does not leave as planned: the others are told of a lost rank. If the store is gone already, there is no one to tell.
        // Other ranks look whether the thread that shows that this rank is there has ended: that comes after this.
        let mut seen = self.shared.lock();
        seen.leaves = true;
        let gives_up = seen.gives_up;
        drop(seen);
        if !thread::panicking() && !gives_up {
            let _ = self.shared.send(&Message::Leave);
        }
        self.shared.lock().closed = true;
        self.shared.changed.notify_all();
        // A message that another thread is sending is sent whole.
        let sending = self.shared.sending.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = self.shared.stream.shutdown(Shutdown::Both);
        drop(sending);
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Seen> {
        // What was seen is changed in single steps, so a panic elsewhere leaves it whole.
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn send(&self, message: &Message) -> io::Result<()> {
        let _sending = self.sending.lock().unwrap_or_else(PoisonError::into_inner);
        message.send(&mut &self.stream)
    }

    fn note(&self, message: Message) {
        if let Message::AreYouThere = message {
            // The thread that reads notices if the connection has ended.
            let _ = self.send(&Message::Alive);
        }
        match &message {
            Message::Lost { rank, .. } if *rank != self.rank => self.notes.lost(*rank),
            // Rank 0 can be lost first, and leave with its store later.
            Message::Left { rank } if !self.lock().lost.contains_key(rank) => self.notes.left(*rank),
            _ => {}
        }
        self.lock().note(message, self.rank);
        self.changed.notify_all();
    }

    /// Tells rank 0, which may be stopped and go on later, that this rank has given it up.
    fn give_up_store(&self, cause: &str) {
        // A thread that is sending waits for the same rank.
        if let Ok(_sending) = self.sending.try_lock() {
            let _ = self.stream.set_write_timeout(Some(LAST_WORD_LIMIT));
            let _ = Message::Lost { rank: 0, cause: cause.into() }.send(&mut &self.stream);
        }
    }

    /// Nothing can be sent. The thread that reads may be about to learn why.
    fn end_soon(&self, error: &io::Error) {
        let is_open = |seen: &mut Seen| seen.ended.is_none() && seen.given_up.is_none();
        drop(self.changed.wait_timeout_while(self.lock(), REASON_LIMIT, is_open));
        self.end(error.to_string());
    }

    fn end(&self, cause: String) {
        let mut seen = self.lock();
        let has_left = seen.left.contains(&0);
        let is_known = has_left || seen.lost.contains_key(&0);
        if !(is_known || seen.leaves || seen.given_up.is_some() || seen.ended.is_some()) {
            self.notes.lost(0);
        }
        let cause = if has_left { "it has left the job in order".to_owned() } else { cause };
        seen.ended.get_or_insert(cause);
        drop(seen);
        self.changed.notify_all();
    }

    /// The thread of another rank has ended. With rank 0 the store is gone, once its process is: it may stay for a while after that rank has left.
    fn say_ended(&self, rank: u32, thread: &RankThread) {
        if rank != 0 {
            let _ = self.send(&Message::Ended { rank, thread: thread.to_string() });
        } else if thread.process_has_ended() {
            self.end("its process has ended or is ending".to_owned());
        }
    }

    /// Shows that this rank is there, and looks after another one of this host.
    fn send_alive(&self, heartbeat: Duration) {
        if let (Some(host), Some(thread)) = (RankThread::own_host(), RankThread::own()) {
            // The thread that reads notices if the connection has ended.
            let _ = self.send(&Message::Here { host, thread: thread.to_string() });
        }
        let mut watch = ThreadWatch::default();
        let (mut beat, mut look) = (Instant::now() + heartbeat, Instant::now() + WATCH_PERIOD);
        let mut seen = self.lock();
        while !seen.closed && seen.ended.is_none() {
            let now = Instant::now();
            let next = if seen.watched.is_some() { beat.min(look) } else { beat };
            if now < next {
                let waited = self.changed.wait_timeout(seen, next - now);
                seen = waited.unwrap_or_else(PoisonError::into_inner).0;
                continue;
            }
            let watched = seen.watched.clone();
            drop(seen);
            if now >= beat {
                beat = now + heartbeat;
                let _ = self.send(&Message::Alive);
            }
            if now >= look {
                look = now + WATCH_PERIOD;
                if let Some((rank, thread)) = watched.filter(|watched| watch.has_ended(watched)) {
                    self.say_ended(rank, &thread);
                }
            }
            seen = self.lock();
        }
    }
}

fn attempt(
    address: SocketAddr,
    greeting: &Greeting<'_>,
    deadline: Instant,
) -> Result<Attempt, RendezvousError> {
    let limit = deadline.saturating_duration_since(Instant::now()).min(ATTEMPT_LIMIT);
    let again = |error: io::Error| Ok(Attempt::Again(NotJoined::Other(error.to_string())));
    let limit = limit.max(Duration::from_millis(1));
    let mut stream = match TcpStream::connect_timeout(&address, limit) {
        Ok(stream) => stream,
        // It is not rank 0 that does not answer.
        Err(source) if file_descriptors::are_used_up(&source) => {
            return Err(RendezvousError::System { what: NO_SOCKET, source });
        }
        Err(error) => return again(error),
    };
    match greeting.exchange(&mut stream, limit) {
        Ok(Ok(())) => Ok(Attempt::Joined(stream)),
        Ok(Err(refusal)) => Err(greeting.refused(refusal, address)),
        Err(error) if error.kind() == io::ErrorKind::InvalidData => {
            Err(RendezvousError::SomethingElse { address })
        }
        Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
            Ok(Attempt::Again(NotJoined::Silent))
        }
        Err(error) => again(error),
    }
}
