//! Parses items at module level.

use super::Parser;
use super::cursor::{invalid, unknown_name};
use super::lexer::{Token, TokenKind};
use super::target_rules::broken_target;
use crate::error::ParseError;
use crate::function::PtxFunctionId;
use crate::linkage::Linkage;
use crate::module::{Item, PtxVersion, Section, Target};
use crate::name::Name;
use crate::opcode::Opcode;
use crate::source_line::SourceFile;

impl<'a> Parser<'a> {
    /// `.version`, `.target` and `.address_size`.
    pub(super) fn preamble(&mut self) -> Result<(PtxVersion, Target, u8), ParseError> {
        self.expect_directive("version")?;
        let version = self.version()?;
        self.expect_directive("target")?;
        let architecture = self.expect_word("an architecture such as sm_90")?;
        if version <= Opcode::KNOWN_VERSION
            && let Some(broken) = broken_target(architecture.text, version)
        {
            return Err(invalid(architecture.position, broken));
        }
        let architecture = self.name(architecture.text);
        let mut options = Vec::new();
        while self.accept(b',')? {
            let option = self.expect_word("an option of `.target`")?.text;
            options.push(self.name(option));
        }
        // Without the directive `ptxas` takes the width of its host, which is 64 bits wherever CUDA still runs.
        let mut address_bits = 64;
        if self.accept_directive("address_size")? {
            let position = self.position();
            address_bits = match self.plain_number("32 or 64")? {
                32 => 32,
                64 => 64,
                other => return Err(invalid(position, format!("an address has 32 or 64 bits, not {other}"))),
            };
        }
        Ok((version, Target { architecture, options }, address_bits))
    }

    fn version(&mut self) -> Result<PtxVersion, ParseError> {
        let parts = self.token.text.split_once('.').filter(|_| self.token.kind == TokenKind::Number);
        let parts = parts.and_then(|(a, b)| Some((a.parse().ok()?, b.parse().ok()?)));
        let Some((major, minor)) = parts else { return Err(self.unexpected("a version such as 9.0")) };
        self.bump()?;
        Ok(PtxVersion { major, minor })
    }

    /// Everything up to the end of the text.
    pub(super) fn all_items(&mut self) -> Result<(), ParseError> {
        while self.token.kind != TokenKind::End {
            // Inline assembly at file scope leaves stray semicolons.
            if !self.accept(b';')? {
                self.item()?;
            }
        }
        Ok(())
    }

    fn item(&mut self) -> Result<(), ParseError> {
        let linkage = self.linkage()?;
        match self.directive() {
            Some("entry" | "func") => self.function(linkage),
            Some("file") => self.file(),
            Some("section") => self.section(),
            Some("alias") => self.alias(),
            Some("pragma") => {
                self.bump()?;
                let texts = self.texts("the text of a pragma")?;
                self.items.push(Item::Pragma(texts));
                Ok(())
            }
            Some("global" | "const" | "shared" | "local" | "param" | "tex") => {
                let declared = self.variables(linkage, None)?;
                self.items.extend(declared.into_iter().map(Item::Variable));
                Ok(())
            }
            _ => Err(self.unexpected("a function, a variable or another directive of the module")),
        }
    }

    pub(super) fn linkage(&mut self) -> Result<Option<Linkage>, ParseError> {
        let linkage = self.directive().and_then(Linkage::from_keyword);
        if linkage.is_some() {
            self.bump()?;
        }
        Ok(linkage)
    }

    /// `.file 1 "kernel.cu", 1700000000, 4096`
    pub(super) fn file(&mut self) -> Result<(), ParseError> {
        self.bump()?;
        let number = self.plain_number("the number of a file")?;
        let path = self.expect_text("the path of a file")?;
        let mut stamp = None;
        if self.accept(b',')? {
            let time = self.plain_number("the time of a file")?;
            self.expect(b',')?;
            stamp = Some((time, self.plain_number("the size of a file")?));
        }
        let number = u32::try_from(number).unwrap_or(u32::MAX);
        self.items.push(Item::File(self.files.len() as u32));
        self.files.push(SourceFile { number, path, stamp });
        Ok(())
    }

    /// `.section .debug_info { ... }`: the content is kept as text.
    fn section(&mut self) -> Result<(), ParseError> {
        self.bump()?;
        if !matches!(self.token.kind, TokenKind::DotWord | TokenKind::Word) {
            return Err(self.unexpected("the name of a section"));
        }
        let name = self.bump()?.text;
        let name = self.name(name);
        if !self.is_punct(b'{') {
            return Err(self.unexpected("`{`"));
        }
        // The token after the brace has not been read yet: the content starts right behind it.
        let content = Name::from(self.lexer.raw_until_brace());
        self.bump()?;
        self.expect(b'}')?;
        self.items.push(Item::Section(self.sections.len() as u32));
        self.sections.push(Section { name, content });
        Ok(())
    }

    /// `.alias new, old;`
    fn alias(&mut self) -> Result<(), ParseError> {
        self.bump()?;
        let alias = self.expect_word("the name of a function")?;
        let alias = self.declared_function(&alias)?;
        self.expect(b',')?;
        let target = self.expect_word("the name of a function")?;
        let target = self.declared_function(&target)?;
        self.expect(b';')?;
        if let Some(function) = self.functions.get_mut(alias.index()) {
            function.alias = Some(target);
        }
        self.items.push(Item::Alias { alias, target });
        Ok(())
    }

    pub(super) fn declared_function(&self, name: &Token<'_>) -> Result<PtxFunctionId, ParseError> {
        self.function_ids.get(name.text).copied().ok_or_else(|| unknown_name(name, "function"))
    }
}
