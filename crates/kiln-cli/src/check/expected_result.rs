//! `--expect N=FILE`: what an argument holds when the launch is over.

use std::ffi::OsStr;
use std::path::PathBuf;

use super::array_difference::ArrayDifference;
use super::given_tolerance::GivenTolerance;
use crate::element_type::ElementType;
use crate::failure::Failure;
use crate::launch::{KernelFinding, Plan, ResultArray};
use crate::npy::Array;
use crate::plural::counted;

/// An expected array, as written on the command line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct ExpectSpec {
    argument: usize,
    file: PathBuf,
}

/// An expected array.
pub(super) struct ExpectedResult {
    argument: usize,
    file: PathBuf,
    array: Array,
}

const FORMS: &str = "write N=FILE.npy, where N is the number of an argument, counted from 0";

impl ExpectSpec {
    /// Reads a word of the command line.
    pub(super) fn of_word(word: &OsStr) -> Result<Self, String> {
        let text =
            word.to_str().ok_or_else(|| format!("`{}` is no text; {FORMS}", word.to_string_lossy()))?;
        let (argument, file) = text.split_once('=').ok_or_else(|| FORMS.to_owned())?;
        match (argument.trim().parse(), file) {
            (Ok(argument), file) if !file.is_empty() => Ok(Self { argument, file: file.into() }),
            _ => Err(FORMS.to_owned()),
        }
    }
}

/// A shape without the dimensions of one element, which move nothing.
fn without_ones(shape: &[u64]) -> Vec<u64> {
    shape.iter().copied().filter(|size| *size != 1).collect()
}

impl ExpectedResult {
    /// Reads the files. Each is of an argument that the kernel writes.
    pub(super) fn read(specs: &[ExpectSpec], plan: &Plan) -> Result<Vec<Self>, Failure> {
        let mut all: Vec<Self> = Vec::new();
        for ExpectSpec { argument, file } in specs {
            let refuse = |why: String, next: &str| {
                let given = format!("--expect {argument}={}: {why}", file.display());
                Err(Failure::usage(given).next(next.to_owned()))
            };
            if all.iter().any(|known| known.argument == *argument) {
                return refuse("two files are expected for this argument".to_owned(), "give one of them");
            }
            let Some(given) = plan.arguments.get(*argument) else {
                let count = plan.arguments.len() as u64;
                let verb = if count == 1 { "is" } else { "are" };
                let why = format!("there {verb} {}", counted(count, "argument"));
                return refuse(why, "arguments are counted from 0");
            };
            let arrays = given.arrays();
            let [written] = arrays.iter().filter(|array| array.is_output()).collect::<Vec<_>>()[..] else {
                let why = "this argument is not one array that the kernel writes".to_owned();
                return refuse(why, "out:, zeros:, uninit:, inout: and surf: arguments have results");
            };
            let array = Array::read(file).map_err(|error| Failure::file(file, error))?;
            if array.elements() != written.array.elements() {
                let [has, wanted] = [array.elements(), written.array.elements()];
                let why = format!("it has {}, and the argument has {wanted}", counted(has, "element"));
                return refuse(why, "save an array of that length");
            }
            // A result has the shape of the file it was read from, and no shape if the command made it.
            let [has, wanted] = [&array.shape, &written.array.shape].map(|shape| without_ones(shape));
            if has.len() > 1 && wanted.len() > 1 && has != wanted {
                let why = format!(
                    "its shape is {:?}, and that of the argument {:?}",
                    array.shape, written.array.shape
                );
                return refuse(why, "save it with that shape, or flat");
            }
            all.push(Self { argument: *argument, file: file.clone(), array });
        }
        Ok(all)
    }

    /// The array in the type of the argument, which is known once the arguments were compared with the kernel.
    pub(super) fn converted(mut self, results: &[ResultArray], cast: bool) -> Result<Self, Failure> {
        let Some(result) = self.result(results) else { return Ok(self) };
        let (given, wanted) = (self.array.element, result.array.element);
        let told = format!("--expect {}={}", self.argument, self.file.display());
        if given == wanted {
            return Ok(self);
        }
        // Numpy has no bf16.
        if (given, wanted) == (ElementType::U16, ElementType::Bf16) {
            self.array.element = wanted;
            return Ok(self);
        }
        if !cast {
            let message = format!("{told}: it has {given} elements, and the argument has {wanted}");
            let next = format!("convert it with a.astype(numpy.{}), or give --cast", wanted.numpy());
            return Err(Failure::usage(message).next(next));
        }
        self.array = self.array.cast(wanted).map_err(|error| Failure::usage(format!("{told}: {error}")))?;
        Ok(self)
    }

    fn result<'r>(&self, results: &'r [ResultArray]) -> Option<&'r ResultArray> {
        results.iter().find(|result| result.argument == self.argument)
    }

    /// What is wrong with the results of a launch; nothing after a fault, which has no results.
    pub(super) fn judge(&self, results: &[ResultArray], tolerance: GivenTolerance) -> Option<KernelFinding> {
        let found = &self.result(results)?.array;
        let ArrayDifference { element, values: [is, wanted], is_infinite, count } =
            ArrayDifference::between(found, &self.array, tolerance, 1.0)?;
        let others = match count - 1 {
            0 => String::new(),
            more => format!(", and {more} more of {}", counted(found.elements(), "element")),
        };
        let (argument, file) = (self.argument, self.file.display());
        let text = format!(
            "unexpected: element {element} of argument {argument} is {is}, and {file} has {wanted}{others}"
        );
        let is_rounded = found.element.is_float() || found.element.is_complex();
        let next = (is_rounded && !is_infinite).then(|| tolerance.advice());
        Some(KernelFinding::of_unexpected(text, (argument, found, element), next))
    }
}
