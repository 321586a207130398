//! Expectations about the result of a call.

use std::fmt::{Debug, Display};

use kiln_driver::{Error, Refusal};

use crate::law::{LawVerdict, Stop, fail};

/// Two values are the same.
#[track_caller]
pub(crate) fn equal<T: PartialEq + Debug>(what: impl Display, seen: T, expected: T) -> LawVerdict {
    if seen == expected {
        return Ok(());
    }
    Err(fail(format!("{what} to be {expected:?}"), format!("{seen:?}")))
}

/// A condition holds; both sentences are for the report.
#[track_caller]
pub(crate) fn holds(condition: bool, expected: impl Display, seen: impl Display) -> LawVerdict {
    if condition { Ok(()) } else { Err(fail(expected, seen)) }
}

/// Two runs of bytes are the same; the report names the first that differs.
#[track_caller]
pub(crate) fn same_bytes(what: impl Display, seen: &[u8], expected: &[u8]) -> LawVerdict {
    let differs = seen.iter().zip(expected).position(|(seen, expected)| seen != expected);
    match differs {
        None => equal(format!("the length of {what}"), seen.len(), expected.len()),
        Some(at) => {
            let (expected, seen) = (expected[at], seen[at]);
            Err(fail(format!("byte {at} of {what} to be {expected}"), seen))
        }
    }
}

/// A call was refused, for a reason of that kind.
#[track_caller]
pub(crate) fn refused<T>(
    what: impl Display,
    answer: Result<T, Error>,
    reason: impl FnOnce(&Refusal) -> bool,
) -> LawVerdict {
    match answer {
        Err(error) if error.refusal().is_some_and(reason) => Ok(()),
        Err(error) => Err(fail(format!("{what} to be refused for its own reason"), error)),
        Ok(_) => Err(fail(format!("{what} to be refused"), "that it was accepted")),
    }
}

/// A call was refused, for whatever reason.
#[track_caller]
pub(crate) fn refused_somehow<T>(what: impl Display, answer: Result<T, Error>) -> LawVerdict {
    refused(what, answer, |_| true)
}

/// A call was refused because a handle is stale.
#[track_caller]
pub(crate) fn stale<T>(what: impl Display, answer: Result<T, Error>) -> LawVerdict {
    refused(format!("{what} with a stale handle"), answer, |reason| matches!(reason, Refusal::Stale { .. }))
}

/// A call was refused because a handle belongs to another device.
#[track_caller]
pub(crate) fn foreign<T>(what: impl Display, answer: Result<T, Error>) -> LawVerdict {
    let reason = |reason: &Refusal| matches!(reason, Refusal::Foreign { .. });
    refused(format!("{what} with a handle of another device"), answer, reason)
}

/// A call was refused because it names bytes outside of a block.
#[track_caller]
pub(crate) fn out_of_range<T>(what: impl Display, answer: Result<T, Error>) -> LawVerdict {
    refused(what, answer, |reason| matches!(reason, Refusal::OutOfRange { .. }))
}

/// A call asked for more than there can be.
#[track_caller]
pub(crate) fn too_much<T>(what: impl Display, answer: Result<T, Error>) -> LawVerdict {
    match answer {
        Err(error) if error.is_oom() || error.is_refused() => Ok(()),
        Err(error) => Err(fail(format!("{what} to be out of memory or refused"), error)),
        Ok(_) => Err(fail(format!("{what} to be out of memory or refused"), "that it was accepted")),
    }
}

/// A call that needs a feature the device does not have said so; the law ends there.
#[track_caller]
pub(crate) fn unsupported<T>(what: impl Display, answer: Result<T, Error>) -> LawVerdict {
    match answer {
        Err(error) if error.is_unsupported() => Ok(()),
        Err(error) => Err(fail(format!("{what} to be unsupported"), error)),
        Ok(_) => Err(fail(format!("{what} to be unsupported, as the features say"), "that it worked")),
    }
}

/// There is nothing to show here.
pub(crate) fn inapplicable<T>(why: impl Into<String>) -> Result<T, Stop> {
    Err(Stop::Inapplicable(why.into()))
}
