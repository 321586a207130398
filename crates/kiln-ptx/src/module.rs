//! A whole PTX module.

use crate::call::Formal;
use crate::error::ParseError;
use crate::function::{PtxFunction, PtxFunctionId};
use crate::instruction_form::{Form, FormId};
use crate::linkage::Linkage;
use crate::module_index::Index;
use crate::name::Name;
use crate::source_line::SourceFile;
use crate::variable::{PtxVariable, VariableId};

/// A parsed module with all names resolved.
///
/// ```
/// let text = "
///     .version 9.0
///     .target sm_90
///     .address_size 64
///     .visible .entry fill(.param .u64 out, .param .u32 value) {
///         .reg .b32 %r<2>;
///         .reg .b64 %rd<2>;
///         ld.param.u64 %rd1, [out];
///         ld.param.u32 %r1, [value];
///         st.global.u32 [%rd1], %r1;
///         ret;
///     }";
/// let module = kiln_ptx::PtxModule::parse(text)?;
/// let fill = module.entry("fill").unwrap();
/// assert_eq!(fill.body.as_ref().unwrap().instructions().len(), 4);
/// # Ok::<(), kiln_ptx::ParseError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct PtxModule {
    /// `.version`.
    pub version: PtxVersion,
    /// `.target`.
    pub target: Target,
    /// `.address_size`: 32 or 64; 64 when it is not written, as `ptxas` has it.
    pub address_bits: u8,
    /// `.file` directives.
    pub files: Vec<SourceFile>,
    /// Debug sections.
    pub sections: Vec<Section>,
    pub(crate) forms: Vec<Form>,
    pub(crate) variables: Vec<PtxVariable>,
    pub(crate) functions: Vec<PtxFunction>,
    pub(crate) items: Vec<Item>,
    pub(crate) index: Index,
}

/// The PTX ISA version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PtxVersion {
    /// Before the dot.
    pub major: u32,
    /// Behind it.
    pub minor: u32,
}

/// The architecture a module is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// Such as `sm_90a`.
    pub architecture: Name,
    /// Other words of the directive, such as `debug`.
    pub options: Vec<Name>,
}

impl Target {
    /// The number in the architecture: 90 for `sm_90a`.
    pub fn sm(&self) -> Option<u32> {
        let digits = self.architecture.strip_prefix("sm_")?;
        let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
        digits.get(..end)?.parse().ok()
    }
}

/// A `.section` with its content as written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Section {
    /// Such as `.debug_info`.
    pub name: Name,
    /// Between the braces.
    pub content: Name,
}

/// One thing at module level, in text order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Item {
    /// A variable.
    Variable(VariableId),
    /// A function without its body.
    Declaration(Declaration),
    /// A function with its body.
    Definition(PtxFunctionId),
    /// `.alias alias, target;`
    Alias {
        /// The new name.
        alias: PtxFunctionId,
        /// What it stands for.
        target: PtxFunctionId,
    },
    /// `.file`: the index in [`PtxModule::files`].
    File(u32),
    /// `.section`: the index in [`PtxModule::sections`].
    Section(u32),
    /// `.pragma` with its strings.
    Pragma(Vec<Name>),
}

/// A function header without a body. Its formals are its own: a later definition may name them differently.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Declaration {
    /// The function declared.
    pub function: PtxFunctionId,
    /// Who may see it.
    pub linkage: Option<Linkage>,
    /// Results as declared here.
    pub returns: Vec<Formal>,
    /// Parameters as declared here.
    pub parameters: Vec<Formal>,
    /// `.noreturn`.
    pub noreturn: bool,
}

impl PtxModule {
    /// Reads PTX text.
    pub fn parse(text: &str) -> Result<Self, ParseError> {
        crate::parse::parse(text)
    }

    /// Opcode and modifiers by number. A number of another module may be out of range: `None`.
    pub fn form(&self, id: FormId) -> Option<&Form> {
        self.forms.get(id.index())
    }

    /// All distinct forms.
    pub fn forms(&self) -> &[Form] {
        &self.forms
    }

    /// All functions, entries among them, in order of first mention.
    pub fn functions(&self) -> &[PtxFunction] {
        &self.functions
    }

    /// A function by number.
    pub fn function(&self, id: PtxFunctionId) -> Option<&PtxFunction> {
        self.functions.get(id.index())
    }

    /// A function by name; names are unique in a module.
    pub fn find_function(&self, name: &str) -> Option<PtxFunctionId> {
        self.index.function(name)
    }

    /// The entries.
    pub fn entries(&self) -> impl Iterator<Item = &PtxFunction> {
        self.functions.iter().filter(|f| f.is_entry())
    }

    /// An entry by name.
    pub fn entry(&self, name: &str) -> Option<&PtxFunction> {
        self.find_function(name).and_then(|id| self.function(id)).filter(|function| function.is_entry())
    }

    /// The function an alias stands for; any other function stands for itself.
    pub fn resolve_alias(&self, id: PtxFunctionId) -> PtxFunctionId {
        self.function(id).and_then(|function| function.alias).unwrap_or(id)
    }

    /// All variables: of the module, parameters, and those inside functions.
    pub fn variables(&self) -> &[PtxVariable] {
        &self.variables
    }

    /// A variable by number.
    pub fn variable(&self, id: VariableId) -> Option<&PtxVariable> {
        self.variables.get(id.index())
    }

    /// The variables declared at module level.
    pub fn module_variables(&self) -> impl Iterator<Item = (VariableId, &PtxVariable)> {
        let numbered = self.variables.iter().enumerate();
        numbered.filter(|(_, v)| v.owner.is_none()).map(|(i, v)| (VariableId(i as u32), v))
    }

    /// The variables a formal names; register formals name none.
    pub fn formal_variable(&self, formal: Formal) -> Option<&PtxVariable> {
        match formal {
            Formal::Param(id) => self.variable(id),
            Formal::Register(_) => None,
        }
    }

    /// What stands at module level, in text order.
    pub fn items(&self) -> &[Item] {
        &self.items
    }

    /// The path of a source file by the number `.loc` uses.
    pub fn source_path(&self, file: u32) -> Option<&str> {
        self.files.iter().find(|f| f.number == file).map(|f| &*f.path)
    }
}
