//! Reading a stack from text.
//!
//! There is no recursion: layers open one after the other, then comes the base, then everything closes. A text of a
//! million parentheses is an error and not a stack overflow.

use std::fmt;
use std::str::FromStr;

use super::Stack;
use super::layer::{StackBase, StackLayer};
use crate::byte_size::ByteSize;
use crate::heap::Spare;
use crate::layer::{FailPlan, GuardConfig, TraceConfig};
use crate::request::AllocationRequest;

/// A text that is no stack.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("at byte {at}: {problem}")]
pub struct StackError {
    /// Where, in bytes from the start.
    pub at: usize,
    /// What is wrong there.
    pub problem: StackProblem,
}

/// What is wrong with a text.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum StackProblem {
    /// A word that is neither a layer nor a base.
    UnknownWord(String),
    /// A base with something in parentheses, or a layer with nothing.
    Parenthesis {
        /// The word.
        word: String,
        /// Whether it is a layer, which has to be around something.
        is_layer: bool,
    },
    /// Something else should stand here.
    Expected(&'static str),
    /// Something stands after the end.
    LeftOver(String),
    /// A layer with more or fewer numbers than it takes.
    Numbers {
        /// The layer.
        layer: &'static str,
        /// What it takes.
        takes: &'static str,
    },
    /// A number that cannot be read, or cannot be meant.
    Number {
        /// The text.
        text: String,
        /// What was wanted.
        wanted: &'static str,
    },
    /// An option of the heap that was said already.
    Twice(&'static str),
    /// More layers than [`Stack::LAYERS_LIMIT`].
    TooManyLayers,
}

impl fmt::Display for StackProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownWord(word) => {
                let bases = StackBase::ALL.map(StackBase::name).join(", ");
                let layers = StackLayer::NAMES.join(", ");
                write!(f, "`{word}` is neither a base ({bases}) nor a layer ({layers})")
            }
            Self::Parenthesis { word, is_layer: true } => {
                write!(f, "`{word}` has to be around something; write `{word}(…, heap)`")
            }
            Self::Parenthesis { word, is_layer: false } => {
                write!(f, "`{word}` is a base and has nothing inside; take the parenthesis away")
            }
            Self::Expected(what) => write!(f, "{what} is missing here"),
            Self::LeftOver(text) => write!(f, "`{text}` stands after the end; take it away"),
            Self::Numbers { layer, takes } => write!(f, "`{layer}` takes {takes}"),
            Self::Number { text, wanted } => write!(f, "`{text}` is not {wanted}"),
            Self::Twice(option) => write!(f, "`{option}=` was said already; take one away"),
            Self::TooManyLayers => write!(f, "more than {} layers; take some away", Stack::LAYERS_LIMIT),
        }
    }
}

impl FromStr for Stack {
    type Err = StackError;

    fn from_str(text: &str) -> Result<Self, StackError> {
        let mut cursor = Cursor { text, at: 0 };
        let mut layers = Vec::new();
        let (base, options) = loop {
            let at = cursor.skip_blanks();
            let word = cursor.word()?;
            if let Some(base) = StackBase::from_name(word) {
                let options =
                    if base == StackBase::Heap { cursor.heap_options()? } else { HeapOptions::default() };
                if cursor.peek() == Some('(') {
                    let problem = StackProblem::Parenthesis { word: word.to_owned(), is_layer: false };
                    return Err(cursor.error(problem));
                }
                break (base, options);
            }
            if !StackLayer::NAMES.contains(&word) {
                return Err(StackError { at, problem: StackProblem::UnknownWord(word.to_owned()) });
            }
            if cursor.peek() != Some('(') {
                let problem = StackProblem::Parenthesis { word: word.to_owned(), is_layer: true };
                return Err(StackError { at, problem });
            }
            if layers.len() == Self::LAYERS_LIMIT {
                return Err(StackError { at, problem: StackProblem::TooManyLayers });
            }
            cursor.take('(');
            let numbers = cursor.numbers()?;
            layers.push(layer(word, at, &numbers)?);
        };
        for _ in &layers {
            cursor.skip_blanks();
            if !cursor.take(')') {
                return Err(cursor.error(StackProblem::Expected("`)`")));
            }
        }
        cursor.skip_blanks();
        if cursor.peek().is_some() {
            return Err(cursor.error(StackProblem::LeftOver(cursor.rest().trim_end().to_owned())));
        }
        Ok(Self { layers, base, spare: options.spare, mapping: options.mapping })
    }
}

/// A number as it was written, and where.
struct Written<'a> {
    text: &'a str,
    at: usize,
}

/// What was said about a heap.
#[derive(Default)]
struct HeapOptions {
    spare: Option<Spare>,
    mapping: Option<ByteSize>,
}

impl HeapOptions {
    const SPARE: &'static str = "spare";
    const MAPPING: &'static str = "mapping";
    const NAMES: [&'static str; 2] = [Self::SPARE, Self::MAPPING];

    /// Reads the value of an option that stands at `at`; each is said once.
    fn read(&mut self, name: &str, at: usize, written: &Written<'_>) -> Result<(), StackError> {
        let twice = if name == Self::SPARE {
            let wanted = "a percentage from 0% to 1000%, or two as in 9%..50%";
            let spare = written.text.parse().map_err(|_| written.bad(wanted))?;
            self.spare.replace(spare).map(|_| Self::SPARE)
        } else {
            self.mapping.replace(written.size()?).map(|_| Self::MAPPING)
        };
        twice.map_or(Ok(()), |option| Err(StackError { at, problem: StackProblem::Twice(option) }))
    }
}

struct Cursor<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Cursor<'a> {
    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or("")
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn skip_blanks(&mut self) -> usize {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start().len();
        self.at
    }

    fn take(&mut self, wanted: char) -> bool {
        let taken = self.peek() == Some(wanted);
        self.at += if taken { wanted.len_utf8() } else { 0 };
        taken
    }

    /// A word, with the blanks after it.
    fn word(&mut self) -> Result<&'a str, StackError> {
        let rest = self.rest();
        let len = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
        if len == 0 {
            return Err(self.error(StackProblem::Expected("a layer or a base")));
        }
        self.at += len;
        self.skip_blanks();
        Ok(&rest[..len])
    }

    /// Numbers, each with the comma after it, up to what is not a number.
    fn numbers(&mut self) -> Result<Vec<Written<'a>>, StackError> {
        const MOST: usize = 4;
        let mut numbers = Vec::new();
        loop {
            let at = self.skip_blanks();
            if !self.peek().is_some_and(|c| c.is_ascii_digit() || c == '-' || c == '+' || c == '.') {
                return Ok(numbers);
            }
            let rest = self.rest();
            let Some(len) = rest.find([',', '(', ')']).filter(|len| rest[*len..].starts_with(',')) else {
                self.at += rest.find([',', '(', ')']).unwrap_or(rest.len());
                return Err(self.error(StackProblem::Expected("`,` and a layer or a base")));
            };
            self.at += len + 1;
            if numbers.len() < MOST {
                numbers.push(Written { text: rest[..len].trim_end(), at });
            }
        }
    }

    /// `(spare=50%, mapping=1GiB)`, either or both, if that is what follows.
    fn heap_options(&mut self) -> Result<HeapOptions, StackError> {
        let start = self.at;
        let mut options = HeapOptions::default();
        let opened = self.take('(');
        self.skip_blanks();
        if !opened || !self.word().is_ok_and(|word| HeapOptions::NAMES.contains(&word)) {
            self.at = start;
            return Ok(options);
        }
        self.at = start;
        self.take('(');
        loop {
            let at = self.skip_blanks();
            let word = self.word()?;
            if !HeapOptions::NAMES.contains(&word) {
                return Err(StackError { at, problem: StackProblem::Expected("`spare=` or `mapping=`") });
            }
            if !self.take('=') {
                return Err(self.error(StackProblem::Expected("`=`, as in `heap(spare=50%)`,")));
            }
            let written = self.until_next()?;
            options.read(word, at, &written)?;
            if self.take(')') {
                self.skip_blanks();
                return Ok(options);
            }
            self.take(',');
        }
    }

    /// What is written before the next comma or parenthesis.
    fn until_next(&mut self) -> Result<Written<'a>, StackError> {
        let at = self.skip_blanks();
        let rest = self.rest();
        let Some(len) = rest.find([',', ')']) else {
            self.at = self.text.len();
            return Err(self.error(StackProblem::Expected("`)`")));
        };
        self.at += len;
        Ok(Written { text: rest[..len].trim_end(), at })
    }

    fn error(&self, problem: StackProblem) -> StackError {
        StackError { at: self.at, problem }
    }
}

impl Written<'_> {
    fn size(&self) -> Result<ByteSize, StackError> {
        self.text.parse().map_err(|_| self.bad("a size in B, KiB, MiB, GiB or TiB, such as `8GiB`"))
    }

    fn integer<T: FromStr>(&self) -> Result<T, StackError> {
        self.text.parse().map_err(|_| self.bad("a whole number in range"))
    }

    fn bad(&self, wanted: &'static str) -> StackError {
        StackError { at: self.at, problem: StackProblem::Number { text: self.text.to_owned(), wanted } }
    }
}

/// A layer with its numbers.
fn layer(word: &str, at: usize, numbers: &[Written<'_>]) -> Result<StackLayer, StackError> {
    let wrong = |layer, takes| Err(StackError { at, problem: StackProblem::Numbers { layer, takes } });
    match (word, numbers) {
        ("budget", [size]) => Ok(StackLayer::Budget(size.size()?)),
        ("budget", _) => wrong("budget", "one size, as in `budget(8GiB, heap)`"),
        ("limit", [size]) => Ok(StackLayer::Limit(size.size()?)),
        ("limit", _) => wrong("limit", "one size, as in `limit(8GiB, heap)`"),
        ("stats", []) => Ok(StackLayer::Statistics),
        ("stats", _) => wrong("stats", "no number, as in `stats(heap)`"),
        ("trace", []) => Ok(StackLayer::Trace(TraceConfig::default().records_per_thread)),
        ("trace", [records]) => Ok(StackLayer::Trace(trace_records(records)?)),
        ("trace", _) => wrong("trace", "at most the records of a thread, as in `trace(1000, heap)`"),
        ("guard", []) => Ok(StackLayer::Guard(GuardConfig::default())),
        ("guard", [zone, quarantine]) => Ok(StackLayer::Guard(GuardConfig {
            zone_bytes: zone.size()?.0,
            quarantine_bytes: quarantine.size()?.0,
        })),
        ("guard", _) => wrong("guard", "two sizes or none, as in `guard(256B, 64MiB, heap)`"),
        ("leaks", []) => Ok(StackLayer::Leaks(0)),
        ("leaks", [every]) => Ok(StackLayer::Leaks(every.integer()?)),
        ("leaks", _) => wrong("leaks", "at most one number, as in `leaks(100, heap)`"),
        ("align", [size]) => Ok(StackLayer::Align(alignment(size)?)),
        ("align", _) => wrong("align", "one size, as in `align(4KiB, heap)`"),
        ("retry", [rounds]) => Ok(StackLayer::Retry(rounds.integer()?)),
        ("retry", _) => wrong("retry", "one number, as in `retry(2, pool)`"),
        ("fail", [allocations]) => plan(allocations, None, None),
        ("fail", [allocations, frees]) => plan(allocations, Some(frees), None),
        ("fail", [allocations, frees, above]) => plan(allocations, Some(frees), Some(above)),
        (_, _) => wrong("fail", "one to three numbers, as in `fail(10, 0, 1MiB, heap)`"),
    }
}

fn plan(
    allocations: &Written<'_>,
    frees: Option<&Written<'_>>,
    above: Option<&Written<'_>>,
) -> Result<StackLayer, StackError> {
    Ok(StackLayer::Fail(FailPlan {
        every_allocation: allocations.integer()?,
        every_free: frees.map_or(Ok(0), Written::integer)?,
        above_bytes: above.map_or(Ok(0), |above| above.size().map(|size| size.0))?,
    }))
}

fn trace_records(records: &Written<'_>) -> Result<usize, StackError> {
    const RECORDS_LIMIT: usize = TraceConfig::RECORDS_LIMIT;
    let wanted = "a number of records from 1 to 67108864";
    match records.text.parse() {
        Ok(count @ 1..=RECORDS_LIMIT) => Ok(count),
        _ => Err(records.bad(wanted)),
    }
}

fn alignment(size: &Written<'_>) -> Result<ByteSize, StackError> {
    let align = size.size()?;
    if align.0.is_power_of_two() && align.0 <= AllocationRequest::MAX_ALIGN {
        return Ok(align);
    }
    Err(size.bad("a power of two up to 4GiB"))
}
