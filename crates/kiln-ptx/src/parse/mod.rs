//! The parser: text to [`PtxModule`](crate::PtxModule) in one pass.
//!
//! Recursive descent over one token of lookahead. Names are resolved while reading, because PTX declares before
//! use; only labels may come later and are patched when their function ends. Nothing recurses without a limit, and
//! no step looks back over what was read, so time is linear in the text whatever it contains.
//!
//! ```text
//! lexer ──> cursor ──> item ─┬─> header ──> declaration ──> initializer ──> expression
//!                            └─> statement ─┬─> operand ──> expression
//!                                           ├─> call
//!                                           └─> label
//! ```

mod arithmetic_words;
mod call;
mod conversion_rules;
mod cursor;
mod declaration;
mod expression;
mod form_rules;
mod header;
mod initializer;
mod instruction_types;
mod item;
mod label;
mod lexer;
mod literal;
mod memory_operands;
mod memory_rules;
mod operand;
mod operand_rules;
mod scope;
mod statement;
mod syntax;
mod syntax_table;
mod target_rules;
mod warp_rules;

use std::collections::HashMap;

use crate::error::{Cause, ParseError};
use crate::function::{PtxFunction, PtxFunctionId};
use crate::instruction_form::{Form, FormId};
use crate::module::{Item, PtxModule, PtxVersion, Section, Target};
use crate::module_index::Index;
use crate::name::Name;
use crate::opcode::Opcode;
use crate::position::Position;
use crate::source_line::SourceFile;
use crate::variable::{PtxVariable, VariableId};
use form_rules::{Dialect, broken_form};
use lexer::{Lexer, Token};
use scope::Scope;

/// The deepest nesting of blocks, expressions and initializers.
const MAX_NESTING: u32 = 64;

/// The longest text.
const MAX_TEXT_BYTES: u64 = 1 << 30;

/// Reads a module.
pub(crate) fn parse(text: &str) -> Result<PtxModule, ParseError> {
    if text.len() as u64 > MAX_TEXT_BYTES {
        let cause = Cause::Limit { what: "the length of the text in bytes", limit: MAX_TEXT_BYTES };
        return Err(ParseError::new(Position { line: 1, column: 1 }, cause));
    }
    let mut lexer = Lexer::new(text);
    let token = lexer.next()?;
    let mut parser = Parser {
        lexer,
        token,
        names: HashMap::new(),
        forms: Vec::new(),
        form_ids: HashMap::new(),
        broken_forms: Vec::new(),
        dialect: None,
        variables: Vec::new(),
        functions: Vec::new(),
        function_ids: HashMap::new(),
        items: Vec::new(),
        files: Vec::new(),
        sections: Vec::new(),
        scope: Scope::default(),
        padding_bytes: 0,
        knows_all_instructions: true,
    };
    let (version, target, address_bits) = parser.preamble()?;
    parser.knows_all_instructions = version <= Opcode::KNOWN_VERSION;
    parser.dialect = parser.knows_all_instructions.then(|| Dialect::of(version, &target));
    parser.all_items()?;
    Ok(parser.finish(version, target, address_bits))
}

/// The state of one parse.
struct Parser<'a> {
    lexer: Lexer<'a>,
    /// The token not yet consumed.
    token: Token<'a>,
    names: HashMap<&'a str, Name>,
    forms: Vec<Form>,
    form_ids: HashMap<Name, FormId>,
    /// What is wrong with each form, by its number.
    broken_forms: Vec<Option<String>>,
    /// `None` until the header is read, and for versions whose instructions are not all known: their forms are not judged.
    dialect: Option<Dialect>,
    variables: Vec<PtxVariable>,
    functions: Vec<PtxFunction>,
    function_ids: HashMap<&'a str, PtxFunctionId>,
    items: Vec<Item>,
    files: Vec<SourceFile>,
    sections: Vec<Section>,
    scope: Scope<'a>,
    /// Zeros that nested initializers have left out so far.
    padding_bytes: u64,
    /// Whether a word that is no known opcode is a mistake; a module of a newer PTX version may use opcodes of that version.
    knows_all_instructions: bool,
}

impl<'a> Parser<'a> {
    /// The shared name for a spelling.
    fn name(&mut self, text: &'a str) -> Name {
        self.names.entry(text).or_insert_with(|| Name::from(text)).clone()
    }

    /// The number of the form spelled `text`.
    fn form(&mut self, text: &str) -> FormId {
        if let Some(id) = self.form_ids.get(text) {
            return *id;
        }
        let form = Form::read(text);
        let id = FormId(self.forms.len() as u32);
        self.form_ids.insert(form.name(), id);
        self.broken_forms.push(self.dialect.and_then(|dialect| broken_form(&form, dialect)));
        self.forms.push(form);
        id
    }

    fn add_variable(&mut self, variable: PtxVariable) -> VariableId {
        self.variables.push(variable);
        VariableId(self.variables.len() as u32 - 1)
    }

    fn add_function(&mut self, function: PtxFunction) -> PtxFunctionId {
        self.functions.push(function);
        PtxFunctionId(self.functions.len() as u32 - 1)
    }

    fn finish(self, version: PtxVersion, target: Target, address_bits: u8) -> PtxModule {
        let index = Index::of(&self.functions, &self.variables);
        PtxModule {
            index,
            version,
            target,
            address_bits,
            files: self.files,
            sections: self.sections,
            forms: self.forms,
            variables: self.variables,
            functions: self.functions,
            items: self.items,
        }
    }
}
