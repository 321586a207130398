//! Programs as text.

use std::fmt;

use super::print_statement::Printer;
use crate::declaration::{Buffer, Extent};
use crate::program::{Draft, Program};

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", **self)
    }
}

impl fmt::Display for Draft {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let buffers = self.buffers.iter().map(|buffer| parameter(self, buffer));
        let scalars = self.scalars.iter().map(|scalar| format!("{}: {}", scalar.name, scalar.ty));
        let parameters: Vec<String> = buffers.chain(scalars).collect();
        write!(f, "kernel {}({})", self.name, parameters.join(", "))?;
        let [x, y, z] = self.block;
        match (y, z) {
            (1, 1) => write!(f, " block({x})")?,
            (_, 1) => write!(f, " block({x}, {y})")?,
            _ => write!(f, " block({x}, {y}, {z})")?,
        }
        if let Some(buffer) = self.over.and_then(|id| self.buffers.get(id.index())) {
            write!(f, " over({})", buffer.name)?;
        }
        if self.flush {
            f.write_str(" flush")?;
        }
        f.write_str(" {\n")?;
        for shared in &self.shared {
            let count = shared.count.map_or(String::new(), |count| count.to_string());
            let raw = if shared.raw { " raw" } else { "" };
            writeln!(f, "    shared {}: {}[{count}]{raw};", shared.name, shared.element)?;
        }
        for tile in &self.tiles {
            writeln!(f, "    tile {}: {}[{}, {}];", tile.name, tile.element, tile.rows, tile.columns)?;
        }
        let mut printer = Printer::new(self);
        printer.block(&self.body, 1);
        writeln!(f, "{}}}", printer.text())
    }
}

fn parameter(draft: &Draft, buffer: &Buffer) -> String {
    let extent = match buffer.extent {
        Extent::Dynamic => String::new(),
        Extent::Static(count) => count.to_string(),
        Extent::Like(id) => format!("like {}", draft.buffers.get(id.index()).map_or("", |other| &other.name)),
    };
    let unchecked = if buffer.unchecked { " unchecked" } else { "" };
    format!("{} {}: {}[{extent}]{unchecked}", buffer.role, buffer.name, buffer.element)
}
