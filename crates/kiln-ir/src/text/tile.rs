//! Tiles in the text form.
//!
//! `tile` is no reserved word: it begins a declaration only where another word follows.

use super::error::TextError;
use super::expression::Expression;
use super::lexer::Kind;
use super::parser::{Name, Parser};
use crate::declaration::{Tile, TileId};
use crate::operation::{MatrixLayout, MatrixOperand, Operand, TileOp};
use crate::program::Draft;
use crate::scalar_type::Type;
use crate::source_location::SourceLocation;
use crate::statement::StatementKind;

impl Parser<'_> {
    /// `tile sum: f32[16, 8];`, any number of them.
    pub(super) fn tiles(&mut self) -> Result<(), TextError> {
        let begins = |parser: &Self| {
            parser.token().text == "tile"
                && parser.tokens.get(parser.at + 1).is_some_and(|next| next.kind == Kind::Word)
        };
        while begins(self) {
            self.advance();
            let name = self.declared_name("the name of a tile")?;
            self.sign(":")?;
            let element = self.ty()?;
            self.sign("[")?;
            let rows = self.small_count()?;
            self.sign(",")?;
            let columns = self.small_count()?;
            self.sign("]")?;
            self.sign(";")?;
            let tile = Tile { name: name.text.to_owned(), element, rows, columns };
            let mut id = 0;
            self.kernel.edit(|draft| {
                id = draft.tiles.len();
                draft.tiles.push(tile);
            });
            self.names.insert(name.text, Name::Tile(TileId(id as u32), element));
        }
        Ok(())
    }

    fn small_count(&mut self) -> Result<u32, TextError> {
        let token = self.token();
        u32::try_from(self.count()?).map_err(|_| token.error("too large a count"))
    }

    /// `tile_fill(sum, 0.0);` and the others.
    pub(super) fn tile_statement(&mut self, location: SourceLocation) -> Result<(), TextError> {
        let word = self.advance().text;
        self.sign("(")?;
        let name = self.any_word("the name of a tile")?;
        let Some(Name::Tile(tile, element)) = self.names.get(name.text).copied() else {
            return Err(name.error(format!("there is no tile `{}`", name.text)));
        };
        self.sign(",")?;
        let op = match word {
            "tile_fill" => TileOp::Fill { tile, value: self.typed(element)? },
            "tile_load" => TileOp::Load { tile, from: self.matrix()? },
            "tile_store" => TileOp::Store { tile, to: self.matrix()? },
            _ => {
                let a = self.matrix()?;
                self.sign(",")?;
                let b = self.matrix()?;
                self.sign(",")?;
                TileOp::MultiplyAdd { tile, a, b, depth: self.small_count()? }
            }
        };
        self.sign(")")?;
        self.sign(";")?;
        self.kernel.push_at(StatementKind::Tile(op), location);
        Ok(())
    }

    /// `row_major x[start, stride]`.
    fn matrix(&mut self) -> Result<MatrixOperand, TextError> {
        let word = self.any_word("`row_major` or `column_major`")?;
        let layout = MatrixLayout::from_word(word.text)
            .ok_or_else(|| word.error("expected `row_major` or `column_major`"))?;
        let name = self.any_word("the name of memory")?;
        let Some(Name::MemoryOperand(memory)) = self.names.get(name.text).copied() else {
            return Err(name.error(format!("there is no memory `{}`", name.text)));
        };
        self.sign("[")?;
        let start = self.place()?;
        self.sign(",")?;
        let stride = self.place()?;
        self.sign("]")?;
        Ok(MatrixOperand { memory, start, stride, layout })
    }

    /// A start or a stride; a number without a type is a `u64`.
    fn place(&mut self) -> Result<Operand, TextError> {
        let token = self.token();
        self.deeper()?;
        let operand = match self.expression()? {
            Expression::Typed(operand, _) => operand,
            Expression::Untyped(number) => self.literal(token, number, Type::U64)?,
        };
        self.depth -= 1;
        Ok(operand)
    }
}

/// A statement whose operands have these texts.
pub(super) fn statement(draft: &Draft, op: &TileOp, texts: &[String]) -> String {
    let text = |at: usize| texts.get(at).map_or("", |text| text);
    let matrix = |at: usize, matrix: &MatrixOperand| {
        let name = draft.memory_name(matrix.memory);
        format!("{} {name}[{}, {}]", matrix.layout, text(2 * at), text(2 * at + 1))
    };
    let rest = match op {
        TileOp::Fill { .. } => text(0).to_owned(),
        TileOp::Load { from, .. } => matrix(0, from),
        TileOp::Store { to, .. } => matrix(0, to),
        TileOp::MultiplyAdd { a, b, depth, .. } => format!("{}, {}, {depth}", matrix(0, a), matrix(1, b)),
    };
    format!("{}({}, {rest});", op.word(), draft.tile_name(op.tile()))
}
