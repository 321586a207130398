//! Why a command failed.
//!
//! A failure is printed as one sentence for people, and as JSON under `--json`. Both say the same: what is wrong, where, and what to
//! do next.

use std::fmt::{self, Display};
use std::path::Path;

use kiln::code::CodeError;
use kiln::error::ErrorKind;
use kiln::probe::ProbeError;
use serde::Serialize;

use crate::demangled_name::with_readable_names;
use crate::exit_code::Exit;

/// What went wrong, and the exit code it ends the command with.
#[derive(Debug, Serialize)]
pub(crate) struct Failure {
    #[serde(skip)]
    pub(crate) exit: Exit,
    pub(crate) kind: FailureKind,
    pub(crate) message: String,
    pub(crate) place: Option<Box<Place>>,
    pub(crate) next_step: Option<String>,
    /// Every error of a compiler, if there are several; the message has the first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) errors: Vec<String>,
}

/// The kind of a failure, in one word that scripts may compare.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum FailureKind {
    /// The command line or the environment is wrong.
    Usage,
    /// A file cannot be read or written, or holds something else.
    File,
    /// Arguments, shapes or names that do not fit the kernel.
    Refused,
    /// A device, driver or compiler that is not there.
    Absent,
    /// Code that does not compile or load.
    Compile,
    /// Something failed that should work.
    Fault,
}

/// A place in a file.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub(crate) struct Place {
    pub(crate) file: String,
    /// Counted from 1.
    pub(crate) line: Option<u64>,
    /// Counted from 1.
    pub(crate) column: Option<u64>,
}

/// A failure as a separate document.
#[derive(Serialize)]
pub(crate) struct Report<'f> {
    error: &'f Failure,
    exit: u8,
}

impl Failure {
    fn new(exit: Exit, kind: FailureKind, message: impl Into<String>) -> Self {
        Self { exit, kind, message: message.into(), place: None, next_step: None, errors: Vec::new() }
    }

    /// The command line or the environment is wrong.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::new(Exit::Usage, FailureKind::Usage, message)
    }

    /// The request does not fit; nothing was run.
    pub(crate) fn refused(message: impl Into<String>) -> Self {
        Self::new(Exit::Absent, FailureKind::Refused, message)
    }

    /// Something failed that should work.
    pub(crate) fn fault(message: impl Into<String>) -> Self {
        Self::new(Exit::Fault, FailureKind::Fault, message)
    }

    /// A file that cannot be used.
    pub(crate) fn file(path: &Path, why: impl Display) -> Self {
        Self::new(Exit::Usage, FailureKind::File, why.to_string()).at(Place::in_file(path))
    }

    /// The standard output, or output files that cannot be written.
    pub(crate) fn output(why: impl Display) -> Self {
        Self::new(Exit::Usage, FailureKind::File, why.to_string())
    }

    /// Text that does not compile. `why` may begin with line and column, as `3:14: expected a name`.
    pub(crate) fn compile(path: &Path, why: impl Display) -> Self {
        let why = why.to_string();
        let (place, message) = Place::leading(path, &why);
        Self::new(Exit::Compile, FailureKind::Compile, message).at(place)
    }

    /// What the memory stack answered.
    pub(crate) fn of_memory(error: &kiln_mem::Error) -> Self {
        match error.refusal().is_some() || error.is_oom() {
            true => Self::refused(error.to_string()),
            false => Self::fault(error.to_string()),
        }
    }

    /// The same failure with its place.
    pub(crate) fn at(mut self, place: Place) -> Self {
        self.place = Some(Box::new(place));
        self
    }

    /// The same failure with what to do next.
    pub(crate) fn next(mut self, step: impl Into<String>) -> Self {
        self.next_step = Some(step.into());
        self
    }

    /// The failure as JSON prints it.
    pub(crate) fn report(&self) -> Report<'_> {
        Report { error: self, exit: self.exit.code() }
    }
}

impl Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(place) = self.place.as_ref().filter(|place| !self.message.starts_with(&place.file)) {
            write!(f, "{place}: ")?;
        }
        f.write_str(&self.message)?;
        if let Some(step) = &self.next_step {
            write!(f, "; {step}")?;
        }
        self.errors.iter().skip(1).try_for_each(|error| write!(f, "\n{error}"))
    }
}

impl Place {
    /// A file as a whole.
    pub(crate) fn in_file(path: &Path) -> Self {
        Self { file: path.display().to_string(), line: None, column: None }
    }

    /// A line of a file.
    pub(crate) fn in_line(path: &Path, line: u64) -> Self {
        Self { line: Some(line), ..Self::in_file(path) }
    }

    /// The place that a message begins with, and the rest of the message.
    fn leading<'m>(path: &Path, message: &'m str) -> (Self, &'m str) {
        let whole = Self::in_file(path);
        let Some((place, rest)) = message.split_once(": ") else { return (whole, message) };
        let numbers =
            place.split_once(':').and_then(|(line, column)| Some((line.parse().ok()?, column.parse().ok()?)));
        match numbers {
            Some((line, column)) => (Self { line: Some(line), column: Some(column), ..whole }, rest),
            None => (whole, message),
        }
    }

    /// The first place of an error that a compiler's log names, such as `saxpy.cu(3): error: ...` or `saxpy.cu:3:7: error: ...`.
    fn in_log(log: &str) -> Option<Self> {
        log.lines().find_map(|line| {
            let at = line.find(": error").or_else(|| line.find(": catastrophic"))?;
            let place = line[..at].trim();
            match place.strip_suffix(')') {
                Some(place) => {
                    let (file, line) = place.rsplit_once('(')?;
                    Some(Self { file: file.to_owned(), line: Some(line.parse().ok()?), column: None })
                }
                None => {
                    let (place, column) = place.rsplit_once(':')?;
                    let (file, line) = place.rsplit_once(':')?;
                    let (line, column) = (line.parse().ok()?, column.parse().ok()?);
                    Some(Self { file: file.to_owned(), line: Some(line), column: Some(column) })
                }
            }
        })
    }
}

impl Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        for number in [self.line, self.column].into_iter().flatten() {
            write!(f, ":{number}")?;
        }
        Ok(())
    }
}

impl From<kiln::Error> for Failure {
    fn from(error: kiln::Error) -> Self {
        let exit = Exit::from(&error);
        let kind = match exit {
            Exit::Usage if matches!(error.kind(), ErrorKind::Trace(_)) => FailureKind::File,
            Exit::Usage => FailureKind::Usage,
            Exit::Compile => FailureKind::Compile,
            Exit::Fault | Exit::Done | Exit::Program(_) => FailureKind::Fault,
            Exit::Absent => match error.kind() {
                ErrorKind::Code(_) | ErrorKind::Library(_) | ErrorKind::Probe(_) => FailureKind::Absent,
                _ => FailureKind::Refused,
            },
        };
        let mut failure = Self::new(exit, kind, error_text(&error));
        if kind == FailureKind::Compile {
            failure.place = Place::in_log(&failure.message).map(Box::new);
            failure.errors = compile_errors(&error);
        }
        let in_source = if kind == FailureKind::Compile { host_code(&failure.message) } else { None };
        if in_source == Some(HOST_HEADER) {
            failure.message = failure.message.replace(&format!("; {INCLUDE_HINT}"), "");
        }
        let step = next_step(&error)
            .or(in_source)
            .or_else(|| failure.message.contains(INCLUDE_HINT).then_some("-I FOLDER adds an include folder"));
        // An error that ends with its next step tells it once, and apart.
        let ended = step.and_then(|step| failure.message.strip_suffix(step)?.strip_suffix("; "));
        if let Some(message) = ended.map(str::to_owned) {
            failure.message = message;
        }
        failure.next_step = step.filter(|step| !failure.message.contains(*step)).map(str::to_owned);
        failure
    }
}

/// The errors of a compiler, if there are several.
fn compile_errors(error: &kiln::Error) -> Vec<String> {
    match error.kind() {
        ErrorKind::Code(CodeError::Nvrtc(error)) => match &error.compile_errors()[..] {
            [] | [_] => Vec::new(),
            errors => errors.iter().map(ToString::to_string).collect(),
        },
        _ => Vec::new(),
    }
}

/// What an error says, without the call of the driver that it came from, and with kernels named as in the source.
pub(crate) fn error_text(error: &kiln::Error) -> String {
    let text = format!("{error:#}");
    if matches!(error.kind(), ErrorKind::Probe(ProbeError::Absent(_))) {
        return text.replacen("no CUDA runtime available", "no usable CUDA driver or device", 1);
    }
    if matches!(error.kind(), ErrorKind::Code(_)) {
        return text;
    }
    let call = error.driver().map(|driver| format!("{}: ", driver.call()));
    with_readable_names(call.and_then(|call| text.strip_prefix(&call)).unwrap_or(&text))
}

/// How the compiler says that it did not find a header.
const INCLUDE_HINT: &str = "add its folder to the include folders, or give the header with the source";

/// Headers of the host's C and C++ library that device code has no use for, and that CUDA C often includes.
const HOST_HEADERS: [&str; 14] = [
    "iostream",
    "fstream",
    "sstream",
    "iomanip",
    "string",
    "vector",
    "map",
    "memory",
    "functional",
    "random",
    "chrono",
    "thread",
    "stdexcept",
    "unistd.h",
];

const HOST_HEADER: &str = "NVRTC compiles device code only, and this header is for code of the host: put the #include and host code behind \
                           `#ifndef __CUDACC_RTC__`, or into another file";
const HOST_FUNCTION: &str = "NVRTC compiles device code only: put main() and other host code behind `#ifndef __CUDACC_RTC__`, or into another file";

/// What to do about a source that has code for the host, by what the compiler says about it.
fn host_code(message: &str) -> Option<&'static str> {
    let header = message.split_once("open source file \"").and_then(|(_, rest)| rest.split_once('"'));
    if header.is_some_and(|(header, _)| HOST_HEADERS.contains(&header)) {
        return Some(HOST_HEADER);
    }
    message.contains("host functions are not allowed in JIT mode").then_some(HOST_FUNCTION)
}

/// What to do about an error of the device, the driver or the system.
pub(crate) fn next_step(error: &kiln::Error) -> Option<&'static str> {
    match error.kind() {
        ErrorKind::Probe(ProbeError::Absent(absence)) => Some(absence.next_step()),
        _ if error.is_oom() => Some("free memory on the device, or wait for the process that holds it"),
        _ if error.is_sticky() => {
            Some("start the process again; if the error stays, reset the device (nvidia-smi --gpu-reset)")
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_error_of_a_log_has_a_place() {
        let log =
            "k.cu could not be compiled:\nk.cu(1): warning: unused\nsrc/k.cu(12): error: identifier \"y\"\n";
        let place = Place::in_log(log).unwrap();
        assert_eq!((place.to_string().as_str(), place.line), ("src/k.cu:12", Some(12)));
        let place = Place::in_log("could not be compiled:\nsrc/k.cu:12:5: error: identifier \"y\"").unwrap();
        assert_eq!((place.to_string().as_str(), place.column), ("src/k.cu:12:5", Some(5)));
        assert_eq!(Place::in_log("no place (at all): error"), None);
    }

    #[test]
    fn a_failure_is_one_sentence_with_place_and_next_step() {
        let failure = Failure::compile(Path::new("a.ptx"), "3:7: unknown instruction").next("fix it");
        assert_eq!(failure.to_string(), "a.ptx:3:7: unknown instruction; fix it");
        assert_eq!(failure.place.map(|place| (place.line, place.column)), Some((Some(3), Some(7))));
        assert_eq!(Failure::usage("no such flag").to_string(), "no such flag");
        let whole = Failure::compile(Path::new("a.ptx"), "it is empty: no kernel");
        assert_eq!(whole.to_string(), "a.ptx: it is empty: no kernel");
    }
}
