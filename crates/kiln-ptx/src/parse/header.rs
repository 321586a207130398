//! Parses headers of functions.

use super::Parser;
use super::cursor::{declared_twice, invalid};
use super::lexer::{Token, TokenKind};
use crate::call::Formal;
use crate::error::ParseError;
use crate::function::{FunctionKind, PtxFunction, PtxFunctionId};
use crate::launch_bounds::{LaunchBounds, OtherDirective};
use crate::linkage::Linkage;
use crate::module::{Declaration, Item};
use crate::position::Origin;
use crate::register::{RegisterId, Registers};

impl<'a> Parser<'a> {
    /// A function from `.entry` or `.func` on: a declaration or a definition.
    pub(super) fn function(&mut self, linkage: Option<Linkage>) -> Result<(), ParseError> {
        let kind = if self.is_directive("entry") { FunctionKind::Entry } else { FunctionKind::Device };
        self.bump()?;
        let mut attributes = Vec::new();
        while self.accept_directive("attribute")? {
            attributes.push(self.attribute()?);
        }
        // Results stand before the name, which decides the function's number; the number of a new function is
        // known already, and formals of a known one are given their owner below.
        let mut registers = Registers::default();
        let expected = PtxFunctionId(self.functions.len() as u32);
        let first_variable = self.variables.len();
        self.scope.open();
        let returns = if self.is_punct(b'(') { self.formals(expected, &mut registers)? } else { Vec::new() };
        let name = self.expect_word("the name of a function")?;
        let parameters =
            if self.is_punct(b'(') { self.formals(expected, &mut registers)? } else { Vec::new() };
        let (bounds, noreturn) = self.bounds()?;
        let function = PtxFunction {
            name: self.name(name.text),
            kind,
            linkage,
            returns,
            parameters,
            noreturn,
            bounds,
            attributes,
            registers,
            alias: None,
            body: None,
            origin: Origin::new(name.position),
        };
        if !self.is_punct(b'{') {
            self.expect(b';')?;
            self.scope.close();
            return self.declaration(function, &name, first_variable);
        }
        self.definition(function, &name, first_variable)
    }

    fn declaration(
        &mut self,
        function: PtxFunction,
        name: &Token<'a>,
        first_variable: usize,
    ) -> Result<(), ParseError> {
        let (linkage, noreturn) = (function.linkage, function.noreturn);
        let (returns, parameters) = (function.returns.clone(), function.parameters.clone());
        let id = self.bind_function(function, name)?;
        self.own_variables(first_variable, id);
        self.items.push(Item::Declaration(Declaration {
            function: id,
            linkage,
            returns,
            parameters,
            noreturn,
        }));
        Ok(())
    }

    /// A function with a body; the scope of its formals is open.
    fn definition(
        &mut self,
        function: PtxFunction,
        name: &Token<'a>,
        first_variable: usize,
    ) -> Result<(), ParseError> {
        let mut registers = function.registers.clone();
        let known = self.function_ids.get(name.text).and_then(|id| self.functions.get(id.index()));
        if known.is_some_and(|f| f.body.is_some()) {
            return Err(declared_twice(name));
        }
        let id = self.bind_function(function, name)?;
        self.own_variables(first_variable, id);
        let body = self.body(id, &mut registers)?;
        self.scope.close();
        if let Some(function) = self.functions.get_mut(id.index()) {
            function.registers = registers;
            function.body = Some(body);
        }
        self.items.push(Item::Definition(id));
        Ok(())
    }

    /// Gives `function` its number, replacing an earlier declaration but never a definition.
    fn bind_function(
        &mut self,
        function: PtxFunction,
        name: &Token<'a>,
    ) -> Result<PtxFunctionId, ParseError> {
        let Some(id) = self.function_ids.get(name.text).copied() else {
            let id = self.add_function(function);
            self.function_ids.insert(name.text, id);
            return if self.scope.declares_in_module(name.text) { Err(declared_twice(name)) } else { Ok(id) };
        };
        let Some(known) = self.functions.get_mut(id.index()) else { return Ok(id) };
        if known.kind != function.kind {
            return Err(invalid(name.position, "declared as `.entry` here and as `.func` there"));
        }
        // Registers are named by their places among the function's, of which there is one list.
        if registers_of(known) != registers_of(&function) {
            return Err(invalid(name.position, "declared with other registers here than there"));
        }
        if known.body.is_none() {
            *known = function;
        }
        Ok(id)
    }

    fn own_variables(&mut self, first: usize, owner: PtxFunctionId) {
        for variable in self.variables.get_mut(first..).unwrap_or(&mut []) {
            variable.owner = Some(owner);
        }
    }

    /// The directives between the parameters and the body.
    fn bounds(&mut self) -> Result<(LaunchBounds, bool), ParseError> {
        let (mut bounds, mut noreturn) = (LaunchBounds::default(), false);
        while let Some(word) = self.directive() {
            self.bump()?;
            match word {
                "maxntid" => bounds.max_threads = Some(self.dimensions()?),
                "reqntid" => bounds.required_threads = Some(self.dimensions()?),
                "minnctapersm" => bounds.min_blocks_per_multiprocessor = Some(self.small("the bound")?),
                "maxnctapersm" => bounds.max_blocks_per_multiprocessor = Some(self.small("the bound")?),
                "maxnreg" => bounds.max_registers = Some(self.small("the bound")?),
                "reqnctapercluster" => bounds.required_cluster = Some(self.dimensions()?),
                "maxclusterrank" => bounds.max_cluster_rank = Some(self.small("the bound")?),
                "explicitcluster" => bounds.explicit_cluster = true,
                "blocksareclusters" => bounds.blocks_are_clusters = true,
                "noreturn" => noreturn = true,
                "pragma" => bounds.pragmas.extend(self.texts("the text of a pragma")?),
                _ => bounds.other.push(self.other_directive(word)?),
            }
        }
        Ok((bounds, noreturn))
    }

    /// A directive that newer versions of PTX may have, behind its word: numbers separated by commas.
    pub(super) fn other_directive(&mut self, word: &'a str) -> Result<OtherDirective, ParseError> {
        let mut arguments = Vec::new();
        if self.token.kind == TokenKind::Number {
            arguments.push(self.integer()?);
            while self.accept(b',')? {
                arguments.push(self.integer()?);
            }
        }
        Ok(OtherDirective { name: self.name(word), arguments })
    }

    /// One to three numbers; the ones left out are 1.
    fn dimensions(&mut self) -> Result<[u32; 3], ParseError> {
        let mut dimensions = [1; 3];
        for (i, dimension) in dimensions.iter_mut().enumerate() {
            if i > 0 && !self.accept(b',')? {
                break;
            }
            *dimension = self.small("the bound")?;
        }
        Ok(dimensions)
    }
}

/// Which results and which parameters are registers, in order.
fn registers_of(function: &PtxFunction) -> [Vec<RegisterId>; 2] {
    let registers = |formals: &[Formal]| {
        formals
            .iter()
            .filter_map(|formal| if let Formal::Register(id) = formal { Some(*id) } else { None })
            .collect()
    };
    [registers(&function.returns), registers(&function.parameters)]
}
