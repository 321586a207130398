//! `kiln inspect`: what the kernels of a file take, do and need.

mod sheet;
mod text;

use clap::Args;
use kiln::DeviceRuntime;

use crate::console::{Console, complain};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::source_file::{SourceFile, SourceFlags};

use sheet::Sheet;

/// The flags of `kiln inspect`.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    #[command(flatten)]
    source: SourceFlags,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "Examples:
  kiln inspect saxpy.cu
  kiln inspect saxpy.ptx --json | jq '.entries[].parameters'

Access is what the kernel does through a pointer: reads, writes, both, neither, or `cannot tell`, with the instruction
that is the reason. Only `cannot tell` leaves anything open.";

/// Runs the command.
pub(crate) fn run(arguments: &Arguments, console: &mut Console) -> Exit {
    match examine(arguments) {
        Ok(sheet) if arguments.json => console.json("inspect", &sheet),
        Ok(sheet) => {
            console.line(text::render(&sheet));
            Exit::Done
        }
        Err(failure) => {
            complain(format_args!("kiln inspect: {}", failure.text));
            failure.exit
        }
    }
}

fn examine(arguments: &Arguments) -> Result<Sheet, Failure> {
    let source = SourceFile::read(&arguments.source)?;
    // Reading needs no GPU; the simulated device stands for a current one.
    let gpu = DeviceRuntime::simulated(0)?;
    let module = source.module(&gpu)?;
    Ok(Sheet::of(&source.path().display().to_string(), module))
}
