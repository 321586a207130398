//! Runs what a line of the table shows, on the interpreter in both orders, folded, and as PTX for what lacks most and what has most.

use kiln_ir::{Program, PtxTarget, TextError, ThreadOrder, Type};

use crate::rig::compare::{same, words};
use crate::rig::{Launch, Left, interpret, simulate};

/// A program over `y`, which begins as zeros.
pub(crate) struct Case {
    pub(crate) ty: Type,
    pub(crate) blocks: u32,
    pub(crate) threads: u32,
    pub(crate) elements: u32,
    pub(crate) body: String,
}

impl Case {
    /// One thread that leaves something in `y[0]`.
    pub(crate) fn one(ty: Type, body: impl Into<String>) -> Self {
        Self { ty, blocks: 1, threads: 1, elements: 1, body: body.into() }
    }

    fn program(&self) -> Result<Program, TextError> {
        let Self { ty, threads, elements, body, .. } = self;
        Program::parse(&format!("kernel one(inout y: {ty}[{elements}]) block({threads}) {{ {body} }}"))
    }

    /// What is left, wherever it is run.
    pub(crate) fn left(&self) -> Result<Left, TextError> {
        let program = self.program()?;
        let bytes = self.elements as usize * self.ty.bytes() as usize;
        let launch = Launch {
            grid: [self.blocks, 1, 1],
            dynamic_shared_bytes: 0,
            scalars: Vec::new(),
            buffers: vec![vec![0; bytes]],
        };
        let meaning = interpret(&program, &launch, ThreadOrder::Ascending).0;
        let agree = |who: &str, left: &Left| {
            assert!(same(&program, &meaning, left), "{who}: {left:?}, not {meaning:?}\n{program}");
        };
        agree("the other order", &interpret(&program, &launch, ThreadOrder::Descending).0);
        agree("folded", &interpret(&program.simplified(), &launch, ThreadOrder::Ascending).0);
        for number in [70, 90] {
            let left = simulate(&program, &launch, PtxTarget::new(number).unwrap(), 0);
            agree(&format!("sm_{number}"), &left.unwrap_or_else(|what| panic!("{what}\n{program}")));
        }
        Ok(meaning)
    }
}

/// What is wrong with a line of the table.
pub(crate) fn check(line: &'static str) -> Result<(), String> {
    let (asked, expected) = line.split_once("=>").ok_or("it has no `=>`")?;
    let (shape, asked) = match asked.split_once(": ") {
        Some((shape, asked)) if shape.contains(" x ") => (shape, asked.trim()),
        _ => ("1 x 1", asked.trim()),
    };
    let (blocks, threads) = shape.split_once(" x ").ok_or("a shape is `blocks x threads`")?;
    let number = |text: &str| text.trim().parse::<u32>().map_err(|error| format!("{text}: {error}"));
    let (blocks, threads) = (number(blocks)?, number(threads)?);
    let expected = expected.trim();
    let (values, elements) = match expected.split_once(' ') {
        Some(("refused:" | "trap", _)) => (Vec::new(), blocks * threads),
        _ => (expected.split(' ').collect(), expected.split(' ').count() as u32),
    };
    let body = match asked.strip_prefix('{').and_then(|asked| asked.strip_suffix('}')) {
        Some(statements) => statements.to_owned(),
        // What is refused has no type that `y` could have.
        None if values.is_empty() => format!("let refused = {asked};"),
        None => format!("y[global.x] = {asked};"),
    };
    // Statements that are refused or trap say the type of `y` by what they store last.
    let ty = type_of(values.first().copied().unwrap_or(asked)).unwrap_or(Type::U32);
    let case = Case { ty, blocks, threads, elements, body };
    if let Some(reason) = expected.strip_prefix("refused: ") {
        return match case.left() {
            Err(error) if error.to_string().contains(reason) => Ok(()),
            Err(error) => Err(format!("refused because {error}")),
            Ok(left) => Err(format!("not refused, but {left:?}")),
        };
    }
    let left = case.left().map_err(|error| error.to_string())?;
    if let Some(trap) = expected.strip_prefix("trap ") {
        let (code, by) = trap.split_once(" by ").ok_or("a trap is `code by thread`")?;
        let trap = Left::Trap { code: number(code)?, thread: number(by)?, block: 0 };
        return if left == trap { Ok(()) } else { Err(format!("{left:?}")) };
    }
    let stores = (0..).zip(&values).map(|(at, value)| format!("y[{at}] = {value}; "));
    let wanted = Case { blocks: 1, threads: 1, body: stores.collect(), ..case };
    let program = wanted.program().map_err(|error| error.to_string())?;
    let wanted = wanted.left().map_err(|error| error.to_string())?;
    match (&left, same(&program, &left, &wanted)) {
        (_, true) => Ok(()),
        (Left::Buffers(left), false) => Err(format!("it is {}", words(ty, &left[0]))),
        (trap, false) => Err(format!("{trap:?}")),
    }
}

/// The type a value says it has: `true`, `7u8`, `f32#7fc00000`; of a text, the last one.
fn type_of(text: &str) -> Option<Type> {
    let word = |word: &str| {
        let named = |ty: &Type| word.ends_with(ty.word()) || word.starts_with(&format!("{ty}#"));
        match word {
            "true" | "false" => Some(Type::Bool),
            _ if !word.starts_with(|c: char| c.is_ascii_digit() || c == '-' || c == 'f' || c == 'b') => None,
            _ => Type::ALL.iter().copied().filter(named).max_by_key(|ty| ty.word().len()),
        }
    };
    text.split(|c: char| !c.is_ascii_alphanumeric() && !"#.-".contains(c)).filter_map(word).next_back()
}
