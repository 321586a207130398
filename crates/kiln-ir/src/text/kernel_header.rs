//! The header of a kernel.

use super::error::TextError;
use super::lexer::{Kind, Token};
use super::parser::{Name, Parser};
use crate::declaration::{Buffer, BufferId, Extent, Role, ScalarId, ScalarParameter, Shared, SharedId};
use crate::operation::MemoryOperand;
use crate::scalar_type::Type;

impl<'t> Parser<'t> {
    /// `kernel name(parameters) block(x, y, z) over(buffer) flush`.
    pub(super) fn header(&mut self) -> Result<(), TextError> {
        self.word("kernel")?;
        let name = self.declared_name("the name of the kernel")?.text.to_owned();
        self.kernel.edit(|draft| draft.name = name);
        self.sign("(")?;
        // A buffer may be as long as one that is declared behind it, so names are looked up at the end.
        let mut likes = Vec::new();
        while !self.take_sign(")") {
            self.parameter(&mut likes)?;
            if !self.take_sign(",") {
                self.sign(")")?;
                break;
            }
        }
        for (id, other) in likes {
            let extent = Extent::Like(self.buffer(other)?);
            self.kernel.edit(|draft| {
                if let Some(buffer) = draft.buffers.get_mut(id) {
                    buffer.extent = extent;
                }
            });
        }
        self.launch()
    }

    fn launch(&mut self) -> Result<(), TextError> {
        if self.take_word("block") {
            self.sign("(")?;
            let mut block = [1; 3];
            for (at, count) in block.iter_mut().enumerate() {
                if at > 0 && !self.take_sign(",") {
                    break;
                }
                let token = self.token();
                *count = u32::try_from(self.count()?).map_err(|_| token.error("too many threads"))?;
            }
            self.sign(")")?;
            self.kernel.edit(|draft| draft.block = block);
        }
        if self.take_word("over") {
            self.sign("(")?;
            let token = self.any_word("the name of a buffer")?;
            let id = self.buffer(token)?;
            self.sign(")")?;
            self.kernel.edit(|draft| draft.over = Some(id));
        }
        if self.take_word("flush") {
            self.kernel.edit(|draft| draft.flush = true);
        }
        Ok(())
    }

    fn buffer(&self, token: Token<'t>) -> Result<BufferId, TextError> {
        match self.names.get(token.text) {
            Some(Name::MemoryOperand(MemoryOperand::Buffer(id))) => Ok(*id),
            _ => Err(token.error(format!("there is no buffer `{}`", token.text))),
        }
    }

    /// `in x: f32[like y] unchecked`, or `a: f32`.
    fn parameter(&mut self, likes: &mut Vec<(usize, Token<'t>)>) -> Result<(), TextError> {
        let token = self.token();
        let role = Role::from_word(token.text).filter(|_| token.kind == Kind::Word);
        if role.is_some() {
            self.advance();
        }
        let name = self.declared_name("the name of a parameter")?;
        self.sign(":")?;
        let ty = self.ty()?;
        let Some(role) = role else {
            let scalar = ScalarParameter { name: name.text.to_owned(), ty };
            let mut id = 0;
            self.kernel.edit(|draft| {
                id = draft.scalars.len();
                draft.scalars.push(scalar);
            });
            self.names.insert(name.text, Name::Scalar(ScalarId(id as u32), ty));
            return Ok(());
        };
        self.sign("[")?;
        let mut extent = Extent::Dynamic;
        let like = self.take_word("like").then(|| self.any_word("the name of a buffer")).transpose()?;
        if like.is_none() && self.token().text != "]" {
            extent = Extent::Static(self.count()?);
        }
        self.sign("]")?;
        let unchecked = self.take_word("unchecked");
        let buffer = Buffer { name: name.text.to_owned(), element: ty, role, extent, unchecked };
        let mut id = 0;
        self.kernel.edit(|draft| {
            id = draft.buffers.len();
            draft.buffers.push(buffer);
        });
        likes.extend(like.map(|other| (id, other)));
        self.names.insert(name.text, Name::MemoryOperand(MemoryOperand::Buffer(BufferId(id as u32))));
        Ok(())
    }

    /// `shared tile: f32[256] raw;`, any number of them.
    pub(super) fn shared(&mut self) -> Result<(), TextError> {
        while self.take_word("shared") {
            let name = self.declared_name("the name of shared memory")?;
            self.sign(":")?;
            let element = self.ty()?;
            self.sign("[")?;
            let count = (self.token().text != "]").then(|| self.count()).transpose()?;
            self.sign("]")?;
            let raw = self.take_word("raw");
            self.sign(";")?;
            let shared = Shared { name: name.text.to_owned(), element, count, raw };
            let mut id = 0;
            self.kernel.edit(|draft| {
                id = draft.shared.len();
                draft.shared.push(shared);
            });
            self.names.insert(name.text, Name::MemoryOperand(MemoryOperand::Shared(SharedId(id as u32))));
        }
        Ok(())
    }

    /// The name of a type.
    pub(super) fn ty(&mut self) -> Result<Type, TextError> {
        let token = self.any_word("a type")?;
        Type::from_word(token.text).ok_or_else(|| token.error(format!("`{}` is no type", token.text)))
    }
}
