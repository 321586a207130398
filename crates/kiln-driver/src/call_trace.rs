//! Call traces: what a program asked of a driver and what it was told, as text.
//!
//! A trace is JSON lines. The first says what it is; each other one is a call with its arguments and its answer, in the
//! order in which the calls came back. [`layer::Recording`](crate::layer::RecordingLayer) writes it, [`Trace`] reads it,
//! [`replay`] runs it against another driver.
//!
//! ```text
//! {"kiln_trace":1}
//! {"call":{"create_stream":{"request":{"new":{"priority":0}}}},"answer":{"stream":{"stream":"stream:0.1"}}}
//! {"call":{"submit":{"stream":"stream:0.1","command":{"signal":{"event":"event:0.1"}}}},"answer":{"submission":{"number":1}}}
//! ```
//!
//! Handles are written as kind, slot and generation, without the key of the device, which differs from run to run;
//! a handle of another device has `other/` in front. Code is written out, packed arguments as hexadecimal digits, errors by
//! kind. There is no time in it and no native handle, so the same calls with the same answers give the same bytes.

mod answer;
mod call;
mod command;
mod handle_name;
mod replay;

use std::fmt;
use std::io::BufRead;

pub(crate) use self::answer::RecordedAnswer;
pub(crate) use self::call::RecordedCall;
pub use self::replay::{Difference, Skipped, TraceReport, replay};
use crate::call::CallKind;
use crate::command::Vouched;

const FORMAT: u32 = 1;

/// The calls of a program, read from a recording.
///
/// ```
/// use kiln_driver::call_trace::Trace;
///
/// let text = concat!(
///     "{\"kiln_trace\":1}\n",
///     "{\"call\":{\"allocate_host\":{\"bytes\":16}},\"answer\":{\"host\":{\"host\":\"host:0.1\",\"bytes\":16}}}\n",
/// );
/// let trace = Trace::parse(text).unwrap();
/// assert_eq!(trace.len(), 1);
/// assert_eq!(trace.to_string(), text);
/// assert_eq!(Trace::parse("{\"kiln_trace\":1}\nnonsense\n").unwrap_err().line, 2);
/// ```
#[derive(Clone, PartialEq, Debug)]
pub struct Trace {
    entries: Vec<Entry>,
    vouched: Option<Vouched>,
}

/// A call and its answer.
#[derive(Clone, PartialEq, Debug, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Entry {
    pub(crate) call: RecordedCall,
    pub(crate) answer: RecordedAnswer,
}

#[derive(serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Header {
    kiln_trace: u32,
}

/// A trace that cannot be read.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("line {line} of the trace: {why}")]
pub struct TraceError {
    /// The line, from 1.
    pub line: usize,
    /// What is wrong with it, and what to do.
    pub why: String,
}

impl Trace {
    /// Reads a trace.
    ///
    /// # Errors
    /// The first line that is not what it should be.
    pub fn parse(text: &str) -> Result<Self, TraceError> {
        Self::read(text.as_bytes())
    }

    /// Reads a trace from a file or a pipe.
    ///
    /// # Errors
    /// The first line that cannot be read or is not what it should be.
    pub fn read(from: impl BufRead) -> Result<Self, TraceError> {
        let mut entries = Vec::new();
        let mut lines = 0;
        for (at, line) in from.lines().enumerate() {
            let broken = |why| TraceError { line: at + 1, why };
            let line = line.map_err(|error| broken(format!("cannot be read: {error}")))?;
            lines = at + 1;
            if at == 0 {
                check_header(&line).map_err(broken)?;
            } else {
                let entry = serde_json::from_str(&line);
                entries.push(entry.map_err(|error| broken(format!("is no recorded call: {error}")))?);
            }
        }
        if lines == 0 {
            return Err(TraceError { line: 1, why: "is missing; an empty file is no trace".into() });
        }
        Ok(Self { entries, vouched: None })
    }

    /// The same trace with the word that its launches may run; without it a replay leaves them out.
    #[must_use]
    pub fn vouched(self, word: Vouched) -> Self {
        Self { vouched: Some(word), ..self }
    }

    /// How many calls it holds.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether it holds none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Which calls they are, in order.
    pub fn kinds(&self) -> impl Iterator<Item = CallKind> + '_ {
        self.entries.iter().map(|entry| entry.call.kind())
    }
}

impl fmt::Display for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", header_line())?;
        for entry in &self.entries {
            writeln!(f, "{}", serde_json::to_string(entry).map_err(|_| fmt::Error)?)?;
        }
        Ok(())
    }
}

/// The first line of every trace.
pub(crate) fn header_line() -> String {
    format!("{{\"kiln_trace\":{FORMAT}}}")
}

fn check_header(line: &str) -> Result<(), String> {
    let header: Header = serde_json::from_str(line)
        .map_err(|_| format!("is not `{}`; this is no trace of kiln", header_line()))?;
    if header.kiln_trace == FORMAT {
        Ok(())
    } else {
        Err(format!(
            "says format {}, and this build reads format {FORMAT}; record it again",
            header.kiln_trace
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_broken_file_is_refused_with_its_line() {
        let call = r#"{"call":"health","answer":"healthy"}"#;
        let refused = |text: String| Trace::parse(&text).unwrap_err();
        assert_eq!(refused(String::new()).line, 1);
        assert_eq!(refused(format!("{call}\n")).line, 1);
        assert_eq!(refused("{\"kiln_trace\":2}\n".into()).line, 1);
        let header = header_line();
        assert!(Trace::parse(&format!("{header}\n{call}\n")).is_ok());
        for bad in ["", "{}", r#"{"call":"health"}"#, r#"{"call":"fly","answer":"done"}"#] {
            assert_eq!(refused(format!("{header}\n{call}\n{bad}\n{call}\n")).line, 3, "{bad}");
        }
        for name in ["stream", "stream:1", "stream:1.x", "river:1.1", "stream:-1.1"] {
            let line = format!(r#"{{"call":{{"progress":{{"stream":"{name}"}}}},"answer":"done"}}"#);
            let error = refused(format!("{header}\n{line}\n"));
            assert_eq!(error.line, 2, "{name}");
            assert!(error.to_string().contains("line 2"), "{error}");
        }
    }
}
