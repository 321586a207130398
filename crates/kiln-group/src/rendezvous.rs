//! `Rendezvous`: the ranks of a job meet, and exchange small values.
//!
//! Rank 0 keeps the values and all ranks connect to it, over TCP. A rank shows that it knows the token of the job, and rank 0 shows the same;
//! the token itself is not sent. Values are not encrypted.
//!
//! Parts: [`message`] (bytes on the wire), [`token_proof`], [`store`] (what rank 0 keeps, pure) with [`host_ring`] and [`roll_call`] (how lost ranks are found), [`server`] and
//! [`connection`] (the two ends), [`exchange`] with [`rendezvous_call`], [`file_descriptors`], [`rank_thread`] (what a host says of a rank), [`end_notes`] (what a launcher is told).

mod addresses;
mod connection;
mod departures;
mod end_notes;
mod error;
mod exchange;
mod file_descriptors;
mod greeting;
mod host_ring;
mod job_config;
mod keys;
mod message;
mod rank_thread;
mod refused_processes;
mod rendezvous_call;
mod roll_call;
mod seen;
mod server;
mod store;
mod token_proof;
mod told_absences;
mod used_names;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use kiln_operation::MAX_RANKS;

use crate::deadline::after;
use crate::rank_environment::RankEnvironment;
use addresses::{are_foreign, listen, port, resolve};
use connection::Connection;
pub(crate) use departures::PutAnswer;
use end_notes::EndNotes;
pub(crate) use error::RAISE_LIMITS;
pub use error::RendezvousError;
pub(crate) use exchange::SILENT_WAIT;
use greeting::Greeting;
pub use job_config::RendezvousConfig;
use job_config::check_times;
pub(crate) use keys::meeting_key;
use keys::{check, process_key};
use message::Message;
use refused_processes::REFUSED_KEY;
pub use rendezvous_call::{RendezvousCall, RendezvousCallKind};
pub(crate) use seen::EndingLosses;
use server::Server;
use store::Store;
use token_proof::TokenKey;
pub(crate) use told_absences::{ToldAbsence, WhyAbsent};
use used_names::UsedNames;

/// What is said of a store that does not answer.
const SILENT_STORE: &str = "it does not answer (is its process stopped?)";
/// Between two looks of rank 0 whether it can take connections.
const SERVER_PERIOD: Duration = Duration::from_millis(200);

type Result<T> = std::result::Result<T, RendezvousError>;

/// A rank that is gone.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LostRank {
    /// The rank.
    pub rank: u32,
    /// What was seen of it.
    pub cause: String,
}

/// A rank's place in its job: it has met all others, and exchanges small values with them.
///
/// Dropping it leaves the job as planned: ranks that wait for something of it fail at once with [`RendezvousError::RankLeft`]. A process that ends without that is a **lost rank**: all others are told, and what they wait for fails with
/// [`RendezvousError::RankLost`] until they [acknowledge](Self::acknowledge_losses) it. So is one whose device is lost, or whose thread panics, while it is in a
/// [communicator](crate::DeviceCommunicator::meet) of the job: its process may live on, and is answered [`RendezvousError::GivenUp`]. A replacement may join with the same rank, also from the same process.
/// If the process of rank 0 is lost, so is the store.
///
/// ```
/// use kiln::group::{MeetingPoint, Rendezvous, RendezvousConfig};
/// # let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
///
/// let point = MeetingPoint { host: "127.0.0.1".into(), port: free, is_taken: false };
/// let ranks: Vec<_> = (0..3)
///     .map(|rank| RendezvousConfig::new(point.clone(), rank, 3))
///     .map(|config| std::thread::spawn(move || {
///         let job = Rendezvous::join(&config)?;
///         job.exchange("greetings", format!("I am {}", job.rank()).as_bytes())
///     }))
///     .collect();
/// for rank in ranks {
///     let greetings = rank.join().unwrap()?;
///     assert_eq!(greetings[2].as_deref(), Some(&b"I am 2"[..]));
/// }
/// # Ok::<(), kiln::group::RendezvousError>(())
/// ```
#[derive(Debug)]
pub struct Rendezvous {
    connection: Connection,
    /// Dropped after the connection, so that rank 0 leaves its own store first.
    server: Option<Server>,
    rank: u32,
    size: u32,
    timeout: Duration,
    /// Communicators of all ranks that this rank has asked for.
    meetings: AtomicU64,
    /// Of exchanges and barriers.
    names: UsedNames,
    /// It joined in the place of another one after the ranks had met for a communicator, and has no place in one.
    needs_place: AtomicBool,
}

impl Rendezvous {
    /// Joins a job, and waits until all ranks have joined.
    ///
    /// # Errors
    /// A time of zero, or a heartbeat that is not shorter than the silence, that of rank 0 among them; ranks of several hosts without a token, or with one of blanks. Within the time limit: a port that is in use for a second, a host that is not known, a rank 0 that does not answer, another token, another number of ranks, a rank
    /// that has joined already, too few file descriptors or no threads for it, or the ranks that did not come, by number.
    pub fn join(config: &RendezvousConfig) -> Result<Self> {
        let started = Instant::now();
        let deadline = after(started, config.timeout);
        let (rank, size, silence) = (config.rank, config.size, config.silence);
        check_times(config)?;
        if size > MAX_RANKS {
            return Err(RendezvousError::TooManyRanks { size });
        }
        if rank >= size {
            return Err(RendezvousError::NoSuchRank { rank, size });
        }
        file_descriptors::check(rank, size)?;
        let (host, port) = (config.meeting_point.host.clone(), port(&config.meeting_point));
        let mut addresses = resolve(&host, port)?;
        let has_token = config.token.as_deref().is_some_and(|token| !token.trim().is_empty());
        if !has_token && !addresses.iter().all(|address| address.ip().is_loopback()) {
            return Err(RendezvousError::NoToken { host });
        }
        let key = TokenKey::new(config.token.as_deref().unwrap_or_default());
        let is_foreign = rank == 0 && are_foreign(&addresses);
        let foreign_host = is_foreign.then(|| host.clone());
        let mut server = None;
        if rank == 0 {
            let listener = listen(&host, port, &addresses, deadline)?;
            let unknown = |source| RendezvousError::Listen { host: host.clone(), port, source };
            addresses = vec![server::loopback_of(listener.local_addr().map_err(unknown)?)];
            let no_thread = |source| RendezvousError::System { what: server::NO_STORE, source };
            let store = Store::new(size, config.exchange_limit_bytes);
            server = Some(Server::start(listener, store, key.clone(), silence).map_err(no_thread)?);
        }
        let greeting = Greeting { key: &key, rank, size, heartbeat: config.heartbeat };
        let notes = EndNotes::open(config.rank_ends_file.as_deref());
        let own_store = || server.as_ref().and_then(Server::refusal).map_or(Ok(()), Err);
        let joined = Connection::join(&addresses, &greeting, (deadline, &own_store), silence, notes)?;
        let connection = joined.map_err(|last| last.told(host, port, started.elapsed()))?;
        let (timeout, meetings) = (config.timeout, AtomicU64::new(0));
        let needs_place = AtomicBool::new(false);
        let names = UsedNames::default();
        let job = Self { connection, server, rank, size, timeout, meetings, names, needs_place };
        job.put(&process_key(rank), &process_number().to_le_bytes())?;
        match job.wait_until_complete(deadline)? {
            true => {
                let has_met = job.is_replacement() && job.value_now(&meeting_key(0)).is_some();
                job.needs_place.store(has_met, Ordering::Relaxed);
                Ok(job)
            }
            false => Err(job.who_is_missing(started, foreign_host)?),
        }
    }

    /// Waits until all ranks have joined; says whether they have. Rank 0 looks meanwhile whether it can take their connections.
    fn wait_until_complete(&self, deadline: Instant) -> Result<bool> {
        let Some(server) = &self.server else { return self.connection.wait_until_complete(deadline) };
        loop {
            let until = deadline.min(Instant::now() + SERVER_PERIOD);
            if self.connection.wait_until_complete(until)? {
                return Ok(true);
            }
            if let Some(error) = server.lacks_descriptors() {
                return Err(error);
            }
            if until >= deadline {
                return Ok(false);
            }
        }
    }

    /// The number of each rank's process, which no other process has; of a lost rank that of the process which is lost.
    pub(crate) fn processes(&self) -> Result<Vec<Vec<u8>>> {
        let number = |rank| {
            let key = process_key(rank);
            self.get_while(rank, (&key, &key), self.deadline(), EndingLosses::None)?
                .ok_or_else(|| self.no_value(key))
        };
        (0..self.size).map(number).collect()
    }

    /// Joins as the launcher says in the variables of this process; none if no launcher has started it.
    ///
    /// # Errors
    /// As for [`join`](Self::join) and [`RendezvousConfig::from_environment`]; variables that contradict each other.
    pub fn from_process() -> std::result::Result<Option<Self>, Box<dyn std::error::Error + Send + Sync>> {
        match RankEnvironment::from_process()? {
            Some(ranks) => Ok(Some(Self::join(&RendezvousConfig::from_environment(&ranks)?)?)),
            None => Ok(None),
        }
    }

    /// The rank of this process.
    pub fn rank(&self) -> u32 {
        self.rank
    }

    /// The number of ranks.
    pub fn size(&self) -> u32 {
        self.size
    }

    /// Whether this rank keeps the store.
    pub fn keeps_store(&self) -> bool {
        self.server.is_some()
    }

    /// Puts a value where all ranks can get it. A value of the same key is replaced.
    ///
    /// # Errors
    /// A key or value that is too large, a store that is full or lost.
    pub fn put(&self, key: &str, value: &[u8]) -> Result<()> {
        self.put_asking(key, value).map(drop)
    }

    /// The same, and what the store answers, if it does.
    pub(crate) fn put_asking(&self, key: &str, value: &[u8]) -> Result<Option<Vec<u8>>> {
        check(key, value)?;
        self.put_unchecked(key, value)
    }

    /// The same for a key and a value that kiln makes of those of the program.
    fn put_unchecked(&self, key: &str, value: &[u8]) -> Result<Option<Vec<u8>>> {
        let make = |id| Message::Put { id, key: key.into(), value: value.into() };
        match self.connection.request(make, self.deadline(), EndingLosses::None)? {
            Some(Message::Full { limit, .. }) => Err(RendezvousError::Full { key: key.into(), limit }),
            Some(Message::Value { value, .. }) => Ok(Some(value)),
            Some(_) => Ok(None),
            None => Err(RendezvousError::StoreLost { cause: SILENT_STORE.into() }),
        }
    }

    /// Waits for a value.
    ///
    /// # Errors
    /// No rank has put it within the time limit; a rank is lost, unless that was acknowledged; the store is lost.
    pub fn get(&self, key: &str) -> Result<Vec<u8>> {
        check(key, &[])?;
        let value = self.get_until(key, self.deadline())?;
        value.ok_or_else(|| self.no_value(key.into()))
    }

    /// Waits for a value; none if no rank has put it until then.
    pub(crate) fn get_until(&self, key: &str, end: Instant) -> Result<Option<Vec<u8>>> {
        match self.connection.request(
            |id| Message::Get { id, key: key.into() },
            end,
            EndingLosses::Unknown,
        )? {
            Some(Message::Value { value, .. }) => Ok(Some(value)),
            _ => Ok(None),
        }
    }

    /// Waits for a value that a rank puts; none if it has not put it until then. These losses end the wait.
    ///
    /// # Errors
    /// That rank has left without it; a rank or the store is lost.
    pub(crate) fn get_while(
        &self,
        rank: u32,
        (name, key): (&str, &str),
        end: Instant,
        losses: EndingLosses<'_>,
    ) -> Result<Option<Vec<u8>>> {
        let make = |id| Message::GetOf { id, rank, key: key.into() };
        let answer = self.connection.request(make, end, losses)?;
        self.value_of(rank, name, losses, answer)
    }

    /// What the store has answered to the question for a value of a rank.
    fn value_of(
        &self,
        rank: u32,
        name: &str,
        losses: EndingLosses<'_>,
        answer: Option<Message>,
    ) -> Result<Option<Vec<u8>>> {
        match answer {
            Some(Message::Value { value, .. }) => Ok(Some(value)),
            // A rank that was lost before may be why this one has left.
            Some(Message::Gone { .. }) => Err(match self.connection.known_loss(losses) {
                Some(lost) => lost,
                None => RendezvousError::RankLeft { rank, name: name.to_owned() },
            }),
            _ => Ok(None),
        }
    }

    /// A value that a rank has put before it left or was lost; none if there is none, or the store does not answer until then.
    pub(crate) fn last_word(&self, rank: u32, key: &str, end: Instant) -> Option<Vec<u8>> {
        let make = |id| Message::GetOf { id, rank, key: key.into() };
        match self.connection.peek(make, end) {
            Some(Message::Value { value, .. }) => Some(value),
            _ => None,
        }
    }

    /// A value, if it is there now.
    pub(crate) fn value_now(&self, key: &str) -> Option<Vec<u8>> {
        match self.connection.peek(|id| Message::Get { id, key: key.into() }, self.deadline()) {
            Some(Message::Value { value, .. }) => Some(value),
            _ => None,
        }
    }

    /// Puts a value without waiting until it is there.
    pub(crate) fn post(&self, key: &str, value: &[u8]) {
        self.connection.post(|id| Message::Put { id, key: key.into(), value: value.into() });
    }

    /// Removes values of collectives whose keys begin so.
    pub(crate) fn forget(&self, prefix: String) {
        self.connection.tell(&Message::Forget { prefix });
    }

    /// Removes a value.
    ///
    /// # Errors
    /// The store is lost.
    pub fn remove(&self, key: &str) -> Result<()> {
        check(key, &[])?;
        let request = |id| Message::Remove { id, key: key.into() };
        self.connection.request(request, self.deadline(), EndingLosses::None).map(drop)
    }

    /// Waits until a rank is lost, and says which one and why; none if that does not happen in this time.
    ///
    /// A rank is lost when its process ends without leaving the job, when it is not heard of for the silence of the job, or, while it is in a communicator of the job, when its device is lost or its thread
    /// panics. It is not lost when it leaves the job, drops its communicator, or comes late to a collective or a barrier; a rank that is lost after it had waited in vain for a late one has that in its
    /// cause.
    ///
    /// It returns at once if a rank is lost already and that was not acknowledged, by [`acknowledge_losses`](Self::acknowledge_losses) or a communicator that was rebuilt: until then each call answers the same
    /// rank, the first that was lost of those that are not replaced. Otherwise it returns when the next rank is lost, also if a replacement has come before this thread looks, and it returns with an
    /// error at once when the store is lost.
    ///
    /// After this has told of a loss, a communicator of simulated devices in several processes that has the lost rank does no collective which this rank calls then: each fails with
    /// [`CommunicatorRankLost`](crate::CommunicatorRankLost), also one that the lost rank had come to. A collective that another thread is in meanwhile is done if all ranks had come to it, and
    /// may be ended on another rank. Another rank that was not told of the loss yet may still do a collective to which the lost rank had come, after this has told this rank.
    ///
    /// # Errors
    /// The store is lost; this rank was given up by the others.
    pub fn wait_for_loss(&self, timeout: Duration) -> Result<Option<LostRank>> {
        let lost = self.connection.wait_for_loss(after(Instant::now(), timeout))?;
        Ok(lost.map(|(rank, cause)| LostRank { rank, cause }))
    }

    /// All ranks that are lost and not replaced, acknowledged or not.
    ///
    /// # Errors
    /// The store is lost.
    pub fn lost_ranks(&self) -> Result<Vec<LostRank>> {
        let lost = self.connection.lost()?;
        Ok(lost.into_iter().map(|(rank, cause)| LostRank { rank, cause }).collect())
    }

    /// All ranks that are lost and not replaced. From here on this rank goes on without them.
    pub fn acknowledge_losses(&self) -> Vec<LostRank> {
        self.connection.acknowledge().into_iter().map(|(rank, cause)| LostRank { rank, cause }).collect()
    }

    /// Whether this process has joined in the place of a lost rank, or of one that had left, after all ranks had met.
    pub fn is_replacement(&self) -> bool {
        self.connection.is_replacement()
    }

    /// How many losses this rank was told of so far.
    pub(crate) fn losses_seen(&self) -> usize {
        self.connection.losses_seen()
    }

    /// Ranks that are lost now, and those that were lost after so many losses and may be replaced since, the first one first; and how many losses there were.
    pub(crate) fn losses_since(&self, seen: usize) -> (Vec<LostRank>, usize) {
        let (lost, seen) = self.connection.losses_since(seen);
        (lost.into_iter().map(|(rank, cause)| LostRank { rank, cause }).collect(), seen)
    }

    /// A communicator fails: ranks that do not answer are lost, and so is a store that does not. To be called over and over meanwhile.
    pub(crate) fn find_lost(&self) {
        self.connection.find_lost();
    }

    /// The number of the next communicator of all ranks.
    pub(crate) fn begin_meeting(&self) -> u64 {
        self.meetings.fetch_add(1, Ordering::Relaxed)
    }

    /// Communicators of all ranks that this rank has asked for.
    pub(crate) fn meetings(&self) -> u64 {
        self.meetings.load(Ordering::Relaxed)
    }

    /// A replacement has its place, and goes on where the others are.
    pub(crate) fn set_meetings(&self, meetings: u64) {
        self.meetings.store(meetings, Ordering::Relaxed);
        self.needs_place.store(false, Ordering::Relaxed);
    }

    /// Whether this rank is a replacement that has no place yet in the communicators of the others.
    pub(crate) fn needs_place(&self) -> bool {
        self.needs_place.load(Ordering::Relaxed)
    }

    /// This rank is lost, with its device or its thread, though its process may live: the others are told.
    pub(crate) fn give_up(&self, cause: &str) {
        self.connection.give_up(cause);
    }

    /// Why the others go on without this rank, if they do.
    pub(crate) fn given_up(&self) -> Option<String> {
        self.connection.given_up()
    }

    /// Whether the store is there, as far as this rank was told.
    pub(crate) fn has_store(&self) -> bool {
        self.connection.has_store()
    }

    /// How the keys of values begin that are removed when this rank is lost.
    pub(crate) fn own_keys(rank: u32) -> String {
        store::own_keys(rank)
    }

    /// A number that no one can guess.
    pub(crate) fn random_number() -> u128 {
        let nonce = token_proof::random_nonce();
        u128::from_le_bytes(std::array::from_fn(|at| nonce[at]))
    }

    pub(crate) fn timeout(&self) -> Duration {
        self.timeout
    }

    fn deadline(&self) -> Instant {
        after(Instant::now(), self.timeout)
    }

    fn who_is_missing(&self, started: Instant, foreign_host: Option<String>) -> Result<RendezvousError> {
        let deadline = Instant::now() + Duration::from_secs(1);
        let answer =
            self.connection.request(|id| Message::WhoIsMissing { id }, deadline, EndingLosses::None)?;
        // They may have come, and found no thread that serves them.
        if let Some(refusal) = self.server.as_ref().and_then(Server::refusal) {
            return Ok(refusal);
        }
        let missing = match answer {
            Some(Message::Missing { ranks, .. }) => ranks,
            _ => Vec::new(),
        };
        let refused = self.connection.peek(|id| Message::Get { id, key: REFUSED_KEY.into() }, deadline);
        let refused = match refused {
            Some(Message::Value { value, .. }) => String::from_utf8(value).ok(),
            _ => None,
        };
        let (size, waited) = (self.size, started.elapsed());
        Ok(RendezvousError::MissingRanks { missing, size, waited, refused, foreign_host })
    }
}

/// The number of this process.
fn process_number() -> u128 {
    static NUMBER: std::sync::OnceLock<u128> = std::sync::OnceLock::new();
    *NUMBER.get_or_init(Rendezvous::random_number)
}
