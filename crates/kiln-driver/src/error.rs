//! Errors of a driver.
//!
//! Four kinds, because a caller does four different things: free something and ask again (out of memory), give
//! the device up or rebuild it (lost), change the request (refused), or take another road (unsupported). Each
//! error names the call, and the submission it belongs to when the failure arrived after the call that caused
//! it. Predicates answer what callers ask; no caller needs to search the text.

use std::fmt;
use std::sync::Arc;

use crate::command::Submission;
use crate::finding::DeviceFinding;
use crate::handle::StreamId;
use crate::result_code::Code;

/// The answer of a driver call.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a driver call, or work submitted earlier, did not do what was asked.
///
/// Cheap to clone, because one fault is the answer to every waiter.
#[derive(Clone)]
pub struct Error {
    inner: Arc<Inner>,
}

#[derive(Clone)]
struct Inner {
    call: &'static str,
    kind: ErrorKind,
    site: Option<Site>,
    /// Another context takes the place of the lost one.
    has_successor: bool,
}

/// The four kinds of failure.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ErrorKind {
    /// There is not enough memory of the kind that was asked for; freeing some may help.
    #[error("out of memory: {requested} bytes were asked for{}", free_text(*free))]
    OutOfMemory {
        /// What the call asked for.
        requested: u64,
        /// What the device had free at that moment, if it could tell.
        free: Option<u64>,
    },
    /// The device answers nothing else from now on.
    #[error("the device is lost: {0}")]
    Lost(Fault),
    /// The request cannot be carried out as it is; nothing was changed.
    #[error(transparent)]
    Refused(Refusal),
    /// The checks of the device found a mistake; the device goes on.
    #[error("{0}")]
    Finding(DeviceFinding),
    /// This device or driver cannot do that at all.
    #[error("{what} is not supported: {why}")]
    Unsupported {
        /// What was asked for.
        what: &'static str,
        /// What is missing, and what to use instead where there is something.
        why: String,
    },
}

/// What made a device unusable.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{code}{}", behind_a_colon(detail))]
pub struct Fault {
    /// The CUDA code of the fault, also on a simulated device.
    pub code: Code,
    /// What is known of the cause, in words.
    pub detail: String,
}

/// Why a request was turned down. Nothing was changed.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// The object behind the handle is gone.
    #[error("{handle} was destroyed before this call; keep the handle's owner alive while it is used")]
    Stale {
        /// The handle, as kind, slot and generation.
        handle: String,
    },
    /// The handle belongs to another device.
    #[error("{handle} belongs to another device; use it with the driver that gave it out")]
    Foreign {
        /// The handle, as kind, slot and generation.
        handle: String,
    },
    /// Bytes outside of a block were named.
    #[error("bytes {offset}..{} lie outside of {handle}, which has {size} bytes", .offset.saturating_add(*.bytes))]
    OutOfRange {
        /// The block.
        handle: String,
        /// Where the range begins.
        offset: u64,
        /// How long it is.
        bytes: u64,
        /// How long the block is.
        size: u64,
    },
    /// An argument has a value the call does not take.
    #[error("{what}; {next}")]
    Invalid {
        /// What is wrong with which argument.
        what: String,
        /// What would be right.
        next: &'static str,
    },
    /// The object is in a state that does not allow the call.
    #[error("{handle} is in use: {why}")]
    Busy {
        /// The object.
        handle: String,
        /// What holds it.
        why: String,
    },
    /// A fixed limit of the driver or the device.
    #[error("no more than {limit} of {what}")]
    Limit {
        /// What is limited.
        what: &'static str,
        /// The limit.
        limit: u64,
    },
    /// Code was not accepted; the log is the compiler's or the loader's own.
    #[error("the image was not accepted ({}){}", code_text(*code), log_text(log))]
    Image {
        /// The driver's code, if it gave one.
        code: Option<Code>,
        /// The log of the loader, empty if it said nothing.
        log: String,
    },
    /// A module has no kernel or variable of that name.
    #[error("the module has no {what} named `{name}`{}", known_text(name, known))]
    NotFound {
        /// "kernel" or "variable".
        what: &'static str,
        /// The name that was looked up.
        name: String,
        /// The module.
        module: String,
        /// Names it does have, where the driver can tell.
        known: Vec<String>,
    },
    /// A cooperative launch has more blocks than the device can hold at once.
    #[error(
        "a cooperative launch of {blocks} blocks exceeds the {limit} that can be resident; use fewer or smaller blocks"
    )]
    CooperativeResidencyExceeded {
        /// Blocks of the launch.
        blocks: u64,
        /// Blocks that fit.
        limit: u64,
    },
    /// A library is missing, too old or damaged, or it did not accept an operation.
    #[error("{library} cannot be used: {why}")]
    Library {
        /// The library, such as `cuBLAS`.
        library: &'static str,
        /// What is wrong, and what to do.
        why: String,
    },
    /// Two ranks of a communicator do not agree.
    #[error(
        "communicator {communicator}: rank {rank} and rank {other_rank} differ in {what}: {value} and {other_value}; {next}"
    )]
    Disagreement {
        /// The communicator, in short.
        communicator: String,
        /// The rank whose request was turned down.
        rank: u32,
        /// The rank that came before it.
        other_rank: u32,
        /// What they differ in, such as `the count of collective 3`.
        what: String,
        /// What this rank asked for.
        value: String,
        /// What the other rank asked for.
        other_value: String,
        /// What to do.
        next: &'static str,
    },
    /// The driver said no, with a code kiln has no better name for.
    #[error("the driver refused: {0}")]
    Driver(Code),
}

/// The submission an error belongs to, when the error arrived after it was queued.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Site {
    /// The stream it was submitted to.
    pub stream: StreamId,
    /// Its number on that stream.
    pub submission: Submission,
    /// The command in short, such as `launch axpy`; empty if it is not known any more.
    pub command: String,
}

impl Error {
    /// An error of a kind, seen by a call.
    pub fn new(call: &'static str, kind: ErrorKind) -> Self {
        Self { inner: Arc::new(Inner { call, kind, site: None, has_successor: false }) }
    }

    /// Out of memory, with what was asked for and what is free.
    pub fn out_of_memory(call: &'static str, requested: u64, free: Option<u64>) -> Self {
        Self::new(call, ErrorKind::OutOfMemory { requested, free })
    }

    /// The device is lost.
    pub fn lost(call: &'static str, fault: Fault) -> Self {
        Self::new(call, ErrorKind::Lost(fault))
    }

    /// The request was turned down.
    pub fn refused(call: &'static str, refusal: Refusal) -> Self {
        Self::new(call, ErrorKind::Refused(refusal))
    }

    /// An argument has a value the call does not take.
    pub fn invalid(call: &'static str, what: impl Into<String>, next: &'static str) -> Self {
        Self::refused(call, Refusal::Invalid { what: what.into(), next })
    }

    /// The device cannot do that.
    pub fn unsupported(call: &'static str, what: &'static str, why: impl Into<String>) -> Self {
        Self::new(call, ErrorKind::Unsupported { what, why: why.into() })
    }

    /// The same error, said to belong to a submission.
    #[must_use]
    pub fn at(self, site: Site) -> Self {
        Self { inner: Arc::new(Inner { site: Some(site), ..(*self.inner).clone() }) }
    }

    /// The same error, seen by another call.
    #[must_use]
    pub fn seen_by(self, call: &'static str) -> Self {
        Self { inner: Arc::new(Inner { call, ..(*self.inner).clone() }) }
    }

    /// The same error, and whether another context takes the place of the lost one. The owner of a device that can be built
    /// again says so; a driver does not know.
    #[must_use]
    pub fn with_successor(self, has_successor: bool) -> Self {
        if self.has_successor() == has_successor {
            return self;
        }
        Self { inner: Arc::new(Inner { has_successor, ..(*self.inner).clone() }) }
    }

    /// The call that reported it.
    pub fn call(&self) -> &'static str {
        self.inner.call
    }

    /// What went wrong.
    pub fn kind(&self) -> &ErrorKind {
        &self.inner.kind
    }

    /// The submission it belongs to, if it arrived late.
    pub fn site(&self) -> Option<&Site> {
        self.inner.site.as_ref()
    }

    /// Whether freeing memory may help.
    pub fn is_oom(&self) -> bool {
        matches!(self.kind(), ErrorKind::OutOfMemory { .. })
    }

    /// Whether the device is lost; nothing on it will work again in this context.
    pub fn is_sticky(&self) -> bool {
        matches!(self.kind(), ErrorKind::Lost(_))
    }

    /// Whether the context is lost and another one takes its place, where the same request may succeed.
    pub fn has_successor(&self) -> bool {
        self.inner.has_successor
    }

    /// The mistake that the checks of the device found, if it is one.
    pub fn finding(&self) -> Option<&DeviceFinding> {
        match self.kind() {
            ErrorKind::Finding(finding) => Some(finding),
            _ => None,
        }
    }

    /// Whether the request was turned down with nothing changed.
    pub fn is_refused(&self) -> bool {
        matches!(self.kind(), ErrorKind::Refused(_))
    }

    /// Whether the device cannot do that at all.
    pub fn is_unsupported(&self) -> bool {
        matches!(self.kind(), ErrorKind::Unsupported { .. })
    }

    /// Whether the same request may succeed later without being changed.
    pub fn is_retryable(&self) -> bool {
        self.is_oom() || matches!(self.refusal(), Some(Refusal::Busy { .. }))
    }

    /// The refusal, if it is one.
    pub fn refusal(&self) -> Option<&Refusal> {
        match self.kind() {
            ErrorKind::Refused(refusal) => Some(refusal),
            _ => None,
        }
    }

    /// The fault, if the device is lost.
    pub fn fault(&self) -> Option<&Fault> {
        match self.kind() {
            ErrorKind::Lost(fault) => Some(fault),
            _ => None,
        }
    }

    /// The CUDA code behind it, if there is one.
    pub fn code(&self) -> Option<Code> {
        match self.kind() {
            ErrorKind::OutOfMemory { .. } => Some(Code::OUT_OF_MEMORY),
            ErrorKind::Lost(fault) => Some(fault.code),
            ErrorKind::Refused(Refusal::Driver(code)) => Some(*code),
            ErrorKind::Refused(Refusal::Image { code, .. }) => *code,
            _ => None,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.inner.call, self.inner.kind)?;
        match self.site() {
            Some(site) if site.command.is_empty() => write!(f, " (in {} {})", site.stream, site.submission),
            Some(site) => write!(f, " (in {} {}, {})", site.stream, site.submission, site.command),
            None => Ok(()),
        }
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for Error {}

fn free_text(free: Option<u64>) -> String {
    free.map_or_else(String::new, |free| format!(", {free} are free"))
}

fn code_text(code: Option<Code>) -> String {
    code.map_or_else(|| "no code".into(), |code| code.to_string())
}

fn behind_a_colon(text: &str) -> String {
    if text.is_empty() { String::new() } else { format!(": {text}") }
}

fn log_text(log: &str) -> String {
    if log.trim().is_empty() { String::new() } else { format!(":\n{}", log.trim_end()) }
}

/// The names that are there, the most similar first.
fn known_text(name: &str, known: &[String]) -> String {
    const LISTED: usize = 8;
    let mut sorted: Vec<&str> = known.iter().map(String::as_str).collect();
    sorted.sort_by_cached_key(|known| distance(name, known));
    let listed = sorted.iter().take(LISTED).copied().collect::<Vec<_>>().join(", ");
    match known.len() {
        0 => String::new(),
        count if count > LISTED => format!("; it has {listed} and {} more", count - LISTED),
        _ => format!("; it has {listed}"),
    }
}

/// How many characters have to be added, taken away or replaced to make one name of another. Only so much of long names is compared.
fn distance(a: &str, b: &str) -> usize {
    const COMPARED: usize = 128;
    let b: Vec<char> = b.chars().take(COMPARED).collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().take(COMPARED).enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, y) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(x != *y);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_and_cause_of_a_fault_are_told_apart() {
        let fault = |detail: &str| Fault { code: Code::LAUNCH_TIMEOUT, detail: detail.into() };
        let text = Error::lost("launch", fault("the kernel made no progress")).to_string();
        let code = Code::LAUNCH_TIMEOUT;
        assert_eq!(text, format!("launch: the device is lost: {code}: the kernel made no progress"));
        assert_eq!(fault("").to_string(), code.to_string());
    }

    #[test]
    fn predicates_tell_the_four_kinds_apart() {
        let oom = Error::out_of_memory("allocate", 10, Some(3));
        let lost = Error::lost("wait", Fault { code: Code::ILLEGAL_ADDRESS, detail: String::new() });
        let refused = Error::invalid("reserve", "zero bytes", "ask for at least one");
        let unsupported = Error::unsupported("map", "mapping", "no pages");
        let answers = |e: &Error| (e.is_oom(), e.is_sticky(), e.is_refused(), e.is_unsupported());
        assert_eq!(answers(&oom), (true, false, false, false));
        assert_eq!(answers(&lost), (false, true, false, false));
        assert_eq!(answers(&refused), (false, false, true, false));
        assert_eq!(answers(&unsupported), (false, false, false, true));
        assert!(oom.is_retryable() && !lost.is_retryable() && !refused.is_retryable());
        assert_eq!(lost.code(), Some(Code::ILLEGAL_ADDRESS));
        assert_eq!(oom.to_string(), "allocate: out of memory: 10 bytes were asked for, 3 are free");
    }

    #[test]
    fn an_error_is_one_word() {
        assert_eq!(size_of::<Result<()>>(), size_of::<usize>());
    }
}
