//! `kiln inspect`: what the kernels or the program of a file take, do and need.

mod program_sheet;
mod program_text;
mod sheet;
mod text;

use clap::Args;
use kiln::DeviceRuntime;

use crate::code_file::CodeFile;
use crate::console::{Console, complain};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::source_file::SourceFlags;

use program_sheet::ProgramSheet;
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
  kiln inspect saxpy.kir --json | jq '.buffers[].access'

Access is what the kernel does through a pointer: reads, writes, both, neither, or `cannot tell`, with the instruction
that is the reason. Only `cannot tell` leaves anything open.";

/// Runs the command.
pub(crate) fn run(arguments: &Arguments, console: &mut Console) -> Exit {
    match examine(arguments) {
        Ok(Examined::Kernels(sheet)) if arguments.json => console.json("inspect", &sheet),
        Ok(Examined::Program(sheet)) if arguments.json => console.json("inspect", &sheet),
        Ok(examined) => {
            console.line(match &examined {
                Examined::Kernels(sheet) => text::render(sheet),
                Examined::Program(sheet) => program_text::render(sheet),
            });
            Exit::Done
        }
        Err(failure) => {
            complain(format_args!("kiln inspect: {}", failure.text));
            failure.exit
        }
    }
}

/// What is in a file.
enum Examined {
    Kernels(Sheet),
    Program(ProgramSheet),
}

fn examine(arguments: &Arguments) -> Result<Examined, Failure> {
    let source = match CodeFile::read(&arguments.source)? {
        CodeFile::Kernels(source) => source,
        CodeFile::Program(file) => {
            let sheet = ProgramSheet::of(&file.path.display().to_string(), &file.program);
            return Ok(Examined::Program(sheet));
        }
    };
    // Reading needs no GPU; the simulated device stands for a current one.
    let gpu = DeviceRuntime::simulated(0)?;
    let module = source.module(&gpu)?;
    Ok(Examined::Kernels(Sheet::of(&source.path().display().to_string(), module)))
}
