//! Words for instructions that are not run.

use super::code_location::CodeSite;
use super::finding::ExecFindingKind;
use super::lowered_code::Why;
use crate::{PtxFunctionId, PtxModule};

/// Words for an instruction that is not run.
pub(crate) fn describe_step(site: &CodeSite, why: Why, module: &PtxModule) -> String {
    match why {
        Why::Instruction => format!("the instruction `{}`", site.instruction),
        Why::Operands => format!("the instruction `{}` with these operands", site.instruction),
        Why::Requires(requirement) => {
            format!("the instruction `{}`, which requires {requirement},", site.instruction)
        }
        Why::Fragment(line) => format!(
            "the instruction `{}`, of which a fragment is loaded as another one at PTX line {line},",
            site.instruction
        ),
        Why::Selector(most) => {
            format!("the instruction `{}`, with a sparsity selector above {most},", site.instruction)
        }
        Why::Undefined(id) => {
            let function = module.function(PtxFunctionId(id));
            format!("a call of `{}`, which the module only declares,", function.map_or("?", |f| &*f.name))
        }
    }
}

/// The finding at an instruction that is not run: the executor does not know it, or the PTX ISA does not allow it here.
pub(crate) fn refusal(site: &CodeSite, why: Why, module: &PtxModule) -> ExecFindingKind {
    let version = module.version;
    ExecFindingKind::BadOperand(match why {
        Why::Requires(requirement) => format!(
            "the instruction `{}` requires {requirement}; the module is PTX {}.{} for {}: raise `.version` or `.target`",
            site.instruction, version.major, version.minor, module.target.architecture
        ),
        Why::Fragment(line) => format!(
            "`{}` is given a fragment that was loaded at PTX line {line} as another matrix, shape, type or layout; \
             load it as this instruction names it",
            site.instruction
        ),
        Why::Selector(most) => format!(
            "the sparsity selector of `{}` must be from 0 to {most}: it names the threads that hold the metadata",
            site.instruction
        ),
        _ => return ExecFindingKind::Unsupported(describe_step(site, why, module)),
    })
}
