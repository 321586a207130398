//! A program that computes one element of its result with each thread.
//!
//! A result may be one of the inputs. Then they are one buffer of the program, which a thread reads before it writes.

use kiln_runtime::{Element, GpuRef};

use super::element_number::ElementNumber;
use crate::Result;
use crate::prims::check::{Check, begin_together};
use crate::prims::plan::{Argument, Plan};

/// Threads of a block.
const THREADS: u32 = 256;

/// The name of the buffer of the result in programs.
const RESULT: &str = "result";

/// An input of a program: the name of its element, its type, and its bytes.
pub(super) struct Input {
    name: &'static str,
    of: &'static str,
    computed_in: &'static str,
    buffer: GpuRef<u8>,
}

impl Input {
    pub(super) fn new<T: ElementNumber>(name: &'static str, buffer: &GpuRef<T>) -> Result<Self> {
        Ok(Self { name, of: T::NAME, computed_in: T::COMPUTED_IN, buffer: buffer.cast()? })
    }

    /// An input that the expression takes in the type that is stored.
    pub(super) fn stored<T: ElementNumber>(name: &'static str, buffer: &GpuRef<T>) -> Result<Self> {
        Ok(Self { computed_in: T::NAME, ..Self::new(name, buffer)? })
    }
}

/// A program of elements: `value` is an expression of the inputs' names and the scalars'.
pub(super) struct ElementProgram<'a> {
    /// The name of what is computed.
    pub(super) name: &'a str,
    /// The type of `value`.
    pub(super) computed_in: &'static str,
    pub(super) value: &'a str,
    /// Names, types and values of scalars.
    pub(super) scalars: Vec<(&'static str, &'static str, Argument)>,
}

impl ElementProgram<'_> {
    /// Adds the launch to a plan.
    pub(super) fn plan<T: ElementNumber>(
        self,
        plan: &mut Plan<'_>,
        inputs: &[Input],
        result: &GpuRef<T>,
    ) -> Result<()> {
        if result.is_empty() {
            return Ok(());
        }
        let bytes = result.cast::<u8>()?;
        let is_result = |input: &Input| begin_together(&input.buffer, &bytes);
        // Which inputs are the result.
        let places: String = inputs.iter().map(|input| if is_result(input) { 'r' } else { 'o' }).collect();
        let types: String = inputs.iter().map(|input| format!("_{}", input.of)).collect();
        let name = format!("{}{types}_{}_{places}", self.name, T::NAME);
        let mut arguments = Vec::new();
        for input in inputs.iter().filter(|input| !is_result(input)) {
            arguments.push(Argument::Read(input.buffer.clone()));
            arguments.push(Argument::value(result.len() as u64));
        }
        arguments.push(match inputs.iter().any(is_result) {
            true => Argument::ReadWrite(bytes.clone()),
            false => Argument::Write(bytes.clone()),
        });
        arguments.push(Argument::value(result.len() as u64));
        let scalars: String = self.scalars.iter().map(|(name, of, _)| format!(", {name}: {of}")).collect();
        let text = || {
            let buffers: String = inputs
                .iter()
                .filter(|input| !is_result(input))
                .map(|input| format!("in {}_at: {}[], ", input.name, input.of))
                .collect();
            let loads: String = inputs
                .iter()
                .map(|input| {
                    let buffer =
                        if is_result(input) { RESULT.to_owned() } else { format!("{}_at", input.name) };
                    let loaded = format!("{buffer}[global.x]");
                    format!("let {} = {};\n", input.name, converted(&loaded, input.of, input.computed_in))
                })
                .collect();
            let value = converted(self.value, self.computed_in, T::NAME);
            format!(
                "kernel {name}({buffers}inout {RESULT}: {}[]{scalars}) block({THREADS}) {{\n{loads}{RESULT}[global.x] = {value};\n}}",
                T::NAME
            )
        };
        let blocks = (result.len() as u64).div_ceil(u64::from(THREADS));
        arguments.extend(self.scalars.into_iter().map(|(_, _, value)| value));
        plan.launch_program((&name, text), blocks, THREADS, arguments)
    }
}

/// An expression in another type.
fn converted(value: &str, from: &str, to: &str) -> String {
    if from == to { value.to_owned() } else { format!("{to}({value})") }
}

/// Refuses buffers of other lengths than the first input, and inputs that share a part of the memory of the result.
pub(super) fn check_inputs<T: Element>(
    check: Check,
    inputs: &[(&str, &GpuRef<T>)],
    (result_name, result): (&str, &GpuRef<T>),
) -> Result<()> {
    let Some((first, others)) = inputs.split_first() else { return Ok(()) };
    for other in others.iter().chain([&(result_name, result)]) {
        check.length_of(*other, *first)?;
    }
    for (name, input) in inputs {
        check.same_or_apart((name, input), (result_name, result))?;
    }
    Ok(())
}
