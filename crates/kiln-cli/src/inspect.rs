//! `kiln inspect`: what the kernels or the program of a file take, read, write and need.

mod kernel_summary;
mod kernel_text;
mod program_summary;
mod program_text;

use clap::Args;
use kiln::DeviceRuntime;

use crate::code_file::CodeFile;
use crate::console::Console;
use crate::exit_code::Exit;
use crate::failure::Failure;
use crate::source_file::{SourceFile, SourceFlags};

use kernel_summary::Sheet;
use program_summary::ProgramSheet;

/// The flags of `kiln inspect`.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    #[command(flatten)]
    source: SourceFlags,
    /// Only this kernel; a template with its arguments, such as 'scale<float>', is compiled for them.
    #[arg(long, value_name = "NAME")]
    kernel: Option<String>,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

const EXAMPLES: &str = "Examples:
  kiln inspect saxpy.cu
  kiln inspect scale.cu --kernel 'scale<float>'
  kiln inspect saxpy.ptx --json | jq '.entries[].parameters'
  kiln inspect saxpy.kir --json | jq '.buffers[].access'

`access` says what the kernel does with the memory behind a pointer: reads, writes, both or \
     neither. These are promises: no path through the code does anything else. Where that is not \
     known it says `cannot tell`, and the instruction that is the reason is listed.

Exit codes: 0 done, 2 wrong usage or file, 3 refused (no such kernel, or a missing compiler), 4 \
     compile error.";

/// Runs the command.
pub(crate) fn run(arguments: &Arguments, console: &mut Console) -> Result<Exit, Failure> {
    let columns = console.columns();
    match CodeFile::read(&arguments.source)? {
        CodeFile::Kernels(source) => {
            let sheet = examine(&source, arguments.kernel.as_deref())?;
            match arguments.json {
                true => console.json(&sheet)?,
                false => console.line(kernel_text::render(&sheet, columns)),
            }
        }
        CodeFile::Program(file) => {
            let program = &file.program;
            if let Some(wanted) = arguments.kernel.as_ref().filter(|wanted| **wanted != program.name) {
                let message = format!("there is no program `{wanted}` in {}", file.path.display());
                return Err(Failure::refused(message).next(format!("it has `{}`", program.name)));
            }
            let sheet = ProgramSheet::of(&file.path.display().to_string(), program);
            match arguments.json {
                true => console.json(&sheet)?,
                false => console.line(program_text::render(&sheet, columns)),
            }
        }
    }
    Ok(Exit::Done)
}

fn examine(source: &SourceFile, wanted: Option<&str>) -> Result<Sheet, Failure> {
    // No GPU is needed; CUDA C is compiled for the architecture of the simulated device.
    let gpu = DeviceRuntime::simulated(0)?;
    let module = source.module(&gpu, wanted)?;
    let only = wanted.map(|wanted| source.names(&module).choose(Some(wanted))).transpose()?;
    let templates = source.templates();
    Ok(Sheet::of(&source.path().display().to_string(), module, only.as_deref(), &templates))
}
