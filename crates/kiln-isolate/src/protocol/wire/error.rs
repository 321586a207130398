//! Encodes the errors of the `Driver` trait.
//!
//! The site of a late failure names a stream, whose handle differs between the two processes. So the site is sent beside the error, with the id that
//! both sides use.

use kiln_driver::{
    Code, DeviceAddress, DeviceFinding, Error, ErrorKind, Fault, FindingLine, FindingRule, Refusal,
};

use super::reader::{Malformed, Reader};
use super::static_text::interned;
use super::writer::{Put, Take, Writer};

/// Longer texts, such as compiler logs, are truncated.
const TEXT_LIMIT_BYTES: usize = 8 << 10;
/// The most names of kernels that are sent with an error.
const KNOWN_LIMIT: usize = 32;

/// Writes an error without its site.
pub(crate) fn put_error(error: &Error, to: &mut Writer) {
    text(error.call(), to);
    match error.kind() {
        ErrorKind::OutOfMemory { requested, free } => {
            to.u8(0);
            requested.put(to);
            free.put(to);
        }
        ErrorKind::Lost(fault) => {
            to.u8(1);
            fault.code.0.put(to);
            text(&fault.detail, to);
        }
        ErrorKind::Refused(refusal) => {
            to.u8(2);
            put_refusal(refusal, to);
        }
        ErrorKind::Unsupported { what, why } => {
            to.u8(3);
            text(what, to);
            text(why, to);
        }
        ErrorKind::Finding(finding) => {
            to.u8(4);
            let rule = FindingRule::ALL.iter().position(|rule| *rule == finding.rule);
            to.u8(rule.and_then(|rule| u8::try_from(rule).ok()).unwrap_or(u8::MAX));
            finding.kernel.put(to);
            finding.line.is_some().put(to);
            if let Some(line) = &finding.line {
                text(&line.file, to);
                to.u32(line.line);
            }
            finding.address.map(|address| address.0).put(to);
            finding.fatal.put(to);
            text(&finding.text, to);
        }
        other => {
            to.u8(3);
            text("this answer", to);
            text(&other.to_string(), to);
        }
    }
}

/// Reads an error.
pub(crate) fn take_error(from: &mut Reader<'_>) -> Result<Error, Malformed> {
    let call = interned(from.text()?);
    let kind = match from.u8()? {
        0 => ErrorKind::OutOfMemory { requested: from.u64()?, free: Take::take(from)? },
        1 => ErrorKind::Lost(Fault { code: Code(i32::take(from)?), detail: String::take(from)? }),
        2 => ErrorKind::Refused(take_refusal(from)?),
        3 => ErrorKind::Unsupported { what: interned(from.text()?), why: String::take(from)? },
        4 => ErrorKind::Finding(take_finding(from)?),
        _ => return Err(Malformed { what: "an unknown kind of error" }),
    };
    Ok(Error::new(call, kind))
}

fn take_finding(from: &mut Reader<'_>) -> Result<DeviceFinding, Malformed> {
    let rule = usize::from(from.u8()?);
    let rule = FindingRule::ALL.get(rule).copied().ok_or(Malformed { what: "an unknown rule" })?;
    let kernel = Take::take(from)?;
    let line = if bool::take(from)? {
        Some(FindingLine { file: String::take(from)?, line: from.u32()? })
    } else {
        None
    };
    let address: Option<u64> = Take::take(from)?;
    let address = address.map(DeviceAddress);
    Ok(DeviceFinding { rule, kernel, line, address, fatal: bool::take(from)?, text: String::take(from)? })
}

fn text(text: &str, to: &mut Writer) {
    to.text(text, TEXT_LIMIT_BYTES);
}

fn put_refusal(refusal: &Refusal, to: &mut Writer) {
    match refusal {
        Refusal::Stale { handle } => {
            to.u8(0);
            text(handle, to);
        }
        Refusal::Foreign { handle } => {
            to.u8(1);
            text(handle, to);
        }
        Refusal::OutOfRange { handle, offset, bytes, size } => {
            to.u8(2);
            text(handle, to);
            [*offset, *bytes, *size].iter().for_each(|number| to.u64(*number));
        }
        Refusal::Invalid { what, next } => {
            to.u8(3);
            text(what, to);
            text(next, to);
        }
        Refusal::Busy { handle, why } => {
            to.u8(4);
            text(handle, to);
            text(why, to);
        }
        Refusal::Limit { what, limit } => {
            to.u8(5);
            text(what, to);
            to.u64(*limit);
        }
        Refusal::Image { code, log } => {
            to.u8(6);
            code.map(|code| code.0).put(to);
            text(log, to);
        }
        Refusal::NotFound { what, name, module, known } => {
            to.u8(7);
            text(what, to);
            text(name, to);
            text(module, to);
            to.u32(known.len().min(KNOWN_LIMIT) as u32);
            known.iter().take(KNOWN_LIMIT).for_each(|name| to.text(name, 256));
        }
        Refusal::CooperativeResidencyExceeded { blocks, limit } => {
            to.u8(8);
            to.u64(*blocks);
            to.u64(*limit);
        }
        Refusal::Driver(code) => {
            to.u8(9);
            code.0.put(to);
        }
        Refusal::Library { library, why } => {
            to.u8(10);
            text(library, to);
            text(why, to);
        }
        Refusal::Disagreement { communicator, rank, other_rank, what, value, other_value, next } => {
            to.u8(11);
            text(communicator, to);
            [*rank, *other_rank].into_iter().for_each(|rank| to.u32(rank));
            [what.as_str(), value, other_value, next].into_iter().for_each(|words| text(words, to));
        }
        other => {
            to.u8(3);
            text(&other.to_string(), to);
            text("see the message", to);
        }
    }
}

fn take_refusal(from: &mut Reader<'_>) -> Result<Refusal, Malformed> {
    Ok(match from.u8()? {
        0 => Refusal::Stale { handle: String::take(from)? },
        1 => Refusal::Foreign { handle: String::take(from)? },
        2 => Refusal::OutOfRange {
            handle: String::take(from)?,
            offset: from.u64()?,
            bytes: from.u64()?,
            size: from.u64()?,
        },
        3 => Refusal::Invalid { what: String::take(from)?, next: interned(from.text()?) },
        4 => Refusal::Busy { handle: String::take(from)?, why: String::take(from)? },
        5 => Refusal::Limit { what: interned(from.text()?), limit: from.u64()? },
        6 => Refusal::Image { code: <Option<i32> as Take>::take(from)?.map(Code), log: String::take(from)? },
        7 => Refusal::NotFound {
            what: interned(from.text()?),
            name: String::take(from)?,
            module: String::take(from)?,
            known: Vec::take(from)?,
        },
        8 => Refusal::CooperativeResidencyExceeded { blocks: from.u64()?, limit: from.u64()? },
        9 => Refusal::Driver(Code(i32::take(from)?)),
        10 => Refusal::Library { library: interned(from.text()?), why: String::take(from)? },
        11 => Refusal::Disagreement {
            communicator: String::take(from)?,
            rank: from.u32()?,
            other_rank: from.u32()?,
            what: String::take(from)?,
            value: String::take(from)?,
            other_value: String::take(from)?,
            next: interned(from.text()?),
        },
        _ => return Err(Malformed { what: "an unknown kind of refusal" }),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn errors() -> Vec<Error> {
        let refusals = [
            Refusal::Stale { handle: "stream:1.2".into() },
            Refusal::Foreign { handle: "event:3.4".into() },
            Refusal::OutOfRange { handle: "memory:1.1".into(), offset: 1, bytes: u64::MAX, size: 3 },
            Refusal::Invalid { what: "a grid of 0".into(), next: "change the shape" },
            Refusal::Busy { handle: "module:1.1".into(), why: "a kernel runs".into() },
            Refusal::Limit { what: "streams", limit: 7 },
            Refusal::Image { code: Some(Code::INVALID_PTX), log: "line 1: no".into() },
            Refusal::Image { code: None, log: String::new() },
            Refusal::NotFound {
                what: "kernel",
                name: "axpy".into(),
                module: "module:2.1".into(),
                known: vec!["a".into(), "b".into()],
            },
            Refusal::CooperativeResidencyExceeded { blocks: 5, limit: 4 },
            Refusal::Driver(Code::NOT_PERMITTED),
            Refusal::Library { library: "cuBLAS", why: "it is not there".into() },
            Refusal::Disagreement {
                communicator: "0a1b2c3d".into(),
                rank: 1,
                other_rank: 0,
                what: "the count".into(),
                value: "3".into(),
                other_value: "4".into(),
                next: "call it alike",
            },
        ];
        let mut errors: Vec<Error> = refusals.map(|refusal| Error::refused("submit", refusal)).into();
        errors.push(Error::out_of_memory("allocate", 10, Some(3)));
        errors.push(Error::out_of_memory("allocate", 10, None));
        errors.push(Error::unsupported("native", "a native handle", "none here"));
        let fault = Fault { code: Code::ILLEGAL_ADDRESS, detail: "at 0".into() };
        errors.push(Error::lost("wait", fault));
        errors
    }

    #[test]
    fn every_error_is_read_as_it_was_written() {
        for error in errors() {
            let mut writer = Writer::new();
            put_error(&error, &mut writer);
            let bytes = writer.into_bytes();
            let mut reader = Reader::new(&bytes);
            let back = take_error(&mut reader).unwrap();
            reader.end().unwrap();
            assert_eq!((back.to_string(), back.code()), (error.to_string(), error.code()));
            assert_eq!(back.refusal(), error.refusal());
            for end in 0..bytes.len() {
                assert!(take_error(&mut Reader::new(&bytes[..end])).is_err());
            }
        }
    }

    #[test]
    fn a_long_log_is_truncated_at_a_character_boundary() {
        let log = "ä".repeat(TEXT_LIMIT_BYTES);
        let mut writer = Writer::new();
        put_error(&Error::refused("load", Refusal::Image { code: None, log }), &mut writer);
        let bytes = writer.into_bytes();
        let back = take_error(&mut Reader::new(&bytes)).unwrap();
        let Some(Refusal::Image { log, .. }) = back.refusal() else { panic!("{back}") };
        assert_eq!(log.len(), TEXT_LIMIT_BYTES);
    }
}
