//! RMM's log, line by line.

use std::borrow::Cow;
use std::io::BufRead;

use super::allocation_log::{AllocationLog, LogOptions};
use super::log_builder::{LogBuilder, Raw};
use super::log_error::{LogError, LogProblem};
use crate::trace::TraceAction;

/// Which field of a line is which.
struct Columns {
    thread: usize,
    action: usize,
    pointer: usize,
    size: usize,
    stream: usize,
}

/// A line of a log is a hundred bytes; what is much longer is something else.
const LINE_LIMIT_BYTES: u64 = 1 << 16;

pub(super) fn read(from: impl BufRead, options: LogOptions) -> Result<AllocationLog, LogError> {
    let mut builder = LogBuilder::new(options);
    let mut columns = None;
    let mut lines = Lines { from, buffer: Vec::new(), line: 0 };
    while let Some(text) = lines.next()? {
        let line = lines.line;
        let at = |problem| LogError { line, problem };
        match &columns {
            None => columns = Some(Columns::of(&text).map_err(at)?),
            Some(columns) => {
                let fields = fields_of(&text).map_err(at)?;
                let (thread, stream, raw) = columns.read(&fields).map_err(at)?;
                builder.add(thread, stream, raw).map_err(at)?;
            }
        }
    }
    if columns.is_none() {
        return Err(LogError { line: lines.line, problem: LogProblem::MissingColumn("Thread") });
    }
    Ok(builder.finish())
}

impl Columns {
    fn of(header: &str) -> Result<Self, LogProblem> {
        let names = fields_of(header.trim_start_matches('\u{feff}'))?;
        let find = |wanted: &'static str| {
            let found = names.iter().position(|name| name.eq_ignore_ascii_case(wanted));
            found.ok_or(LogProblem::MissingColumn(wanted))
        };
        Ok(Self {
            thread: find("Thread")?,
            action: find("Action")?,
            pointer: find("Pointer")?,
            size: find("Size")?,
            stream: find("Stream")?,
        })
    }

    fn read<'a>(&self, fields: &'a [Cow<'_, str>]) -> Result<(&'a str, &'a str, Raw), LogProblem> {
        let field =
            |at: usize, column| fields.get(at).map(|field| &**field).ok_or(LogProblem::MissingField(column));
        let action = match field(self.action, "Action")? {
            "allocate" => TraceAction::Allocate,
            "free" | "deallocate" => TraceAction::Free,
            "allocate failure" => TraceAction::Fail,
            other => return Err(LogProblem::Action(other.to_owned())),
        };
        let (pointer, size) = (field(self.pointer, "Pointer")?, field(self.size, "Size")?);
        let bad = |column, text: &str| LogProblem::Field { column, text: text.to_owned() };
        let raw = Raw {
            pointer: address(pointer).ok_or_else(|| bad("Pointer", pointer))?,
            bytes: size.parse().map_err(|_| bad("Size", size))?,
            action,
        };
        Ok((field(self.thread, "Thread")?, field(self.stream, "Stream")?, raw))
    }
}

/// The fields of a line, without the blanks around them and without the quotes that other tools put there.
fn fields_of(line: &str) -> Result<Vec<Cow<'_, str>>, LogProblem> {
    if !line.contains('"') {
        return Ok(line.split(',').map(|field| Cow::Borrowed(field.trim())).collect());
    }
    let (mut fields, mut left) = (Vec::new(), Some(line));
    while let Some(rest) = left {
        let (field, next) = match rest.trim_start().strip_prefix('"') {
            Some(quoted) => {
                let (field, after) =
                    unquoted(quoted).ok_or_else(|| LogProblem::Quote(rest.trim().to_owned()))?;
                let next = after.strip_prefix(',');
                if next.is_none() && !after.is_empty() {
                    return Err(LogProblem::Quote(rest.trim().to_owned()));
                }
                (Cow::Owned(field), next)
            }
            None => match rest.split_once(',') {
                Some((field, next)) => (Cow::Borrowed(field.trim()), Some(next)),
                None => (Cow::Borrowed(rest.trim()), None),
            },
        };
        fields.push(field);
        left = next;
    }
    Ok(fields)
}

/// What stands before the closing quote, with doubled quotes as one, and what follows; none if it is not closed.
fn unquoted(text: &str) -> Option<(String, &str)> {
    let (mut field, mut rest) = (String::new(), text);
    loop {
        let (before, after) = rest.split_once('"')?;
        field.push_str(before);
        match after.strip_prefix('"') {
            Some(after) => {
                field.push('"');
                rest = after;
            }
            None => return Some((field.trim().to_owned(), after.trim_start())),
        }
    }
}

/// An address as C prints it.
fn address(text: &str) -> Option<u64> {
    if text == "(nil)" || text == "nullptr" {
        return Some(0);
    }
    match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

/// Lines that are not empty, counted.
struct Lines<R> {
    from: R,
    buffer: Vec<u8>,
    line: u64,
}

impl<R: BufRead> Lines<R> {
    fn next(&mut self) -> Result<Option<String>, LogError> {
        loop {
            self.buffer.clear();
            self.line += 1;
            let at = |problem| LogError { line: self.line, problem };
            let mut limited = std::io::Read::take(&mut self.from, LINE_LIMIT_BYTES);
            let read = limited.read_until(b'\n', &mut self.buffer);
            let read = read.map_err(|error| at(LogProblem::Unreadable(error.to_string())))?;
            if read == 0 {
                return Ok(None);
            }
            if read as u64 == LINE_LIMIT_BYTES && self.buffer.last() != Some(&b'\n') {
                return Err(at(LogProblem::NoTrace));
            }
            let Ok(text) = std::str::from_utf8(&self.buffer) else { return Err(at(LogProblem::NoTrace)) };
            let text = text.trim();
            if !text.is_empty() {
                return Ok(Some(text.to_owned()));
            }
        }
    }
}
