//! The printer: a [`PtxModule`](crate::PtxModule) back to PTX.
//!
//! What it prints parses to an equal module, and `ptxas` accepts it when it accepted the original. Blocks, labels
//! and declarations stand where they stood, because names mean what they mean only there; comments and layout are
//! gone.

mod body;
mod declaration;
mod initializer;
mod operand;

use std::fmt::{self, Formatter};

use crate::call::Formal;
use crate::function::{FunctionKind, PtxFunction};
use crate::launch_bounds::{LaunchBounds, OtherDirective};
use crate::linkage::Linkage;
use crate::module::{Item, PtxModule};
use crate::name::Name;
use crate::source_line::SourceFile;

impl fmt::Display for PtxModule {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(f, ".version {}.{}", self.version.major, self.version.minor)?;
        write!(f, ".target {}", self.target.architecture)?;
        for option in &self.target.options {
            write!(f, ", {option}")?;
        }
        writeln!(f, "\n.address_size {}\n", self.address_bits)?;
        self.items().iter().try_for_each(|item| print_item(self, item, f))
    }
}

fn print_item(module: &PtxModule, item: &Item, f: &mut Formatter<'_>) -> fmt::Result {
    match item {
        Item::Variable(id) => declaration::print_variable(module, *id, f),
        Item::Declaration(declared) => {
            let Some(function) = module.function(declared.function) else { return Ok(()) };
            let bounds = LaunchBounds::default();
            let header = Header {
                function,
                linkage: declared.linkage,
                returns: &declared.returns,
                parameters: &declared.parameters,
                noreturn: declared.noreturn,
                // The bounds belong to the definition if there is one.
                bounds: if function.body.is_none() { &function.bounds } else { &bounds },
            };
            header.print(module, f)?;
            writeln!(f, ";")
        }
        Item::Definition(id) => {
            let Some(function) = module.function(*id) else { return Ok(()) };
            Header::of(function).print(module, f)?;
            writeln!(f, "\n{{")?;
            body::print_body(module, function, f)?;
            writeln!(f, "}}\n")
        }
        Item::Alias { alias, target } => match (module.function(*alias), module.function(*target)) {
            (Some(alias), Some(target)) => writeln!(f, ".alias {}, {};", alias.name, target.name),
            _ => Ok(()),
        },
        Item::File(index) => module.files.get(*index as usize).map_or(Ok(()), |file| print_file(file, f)),
        Item::Section(index) => match module.sections.get(*index as usize) {
            Some(section) => writeln!(f, ".section {}\n{{{}}}", section.name, section.content),
            None => Ok(()),
        },
        Item::Pragma(texts) => print_pragma(texts, f),
    }
}

fn print_file(file: &SourceFile, f: &mut Formatter<'_>) -> fmt::Result {
    write!(f, ".file {} \"{}\"", file.number, file.path)?;
    if let Some((time, size)) = file.stamp {
        write!(f, ", {time}, {size}")?;
    }
    writeln!(f)
}

fn print_pragma(texts: &[Name], f: &mut Formatter<'_>) -> fmt::Result {
    f.write_str(".pragma ")?;
    separated(f, texts, |text, f| write!(f, "\"{text}\""))?;
    writeln!(f, ";")
}

/// Everything before the body or the semicolon.
struct Header<'a> {
    function: &'a PtxFunction,
    linkage: Option<Linkage>,
    returns: &'a [Formal],
    parameters: &'a [Formal],
    noreturn: bool,
    bounds: &'a LaunchBounds,
}

impl<'a> Header<'a> {
    fn of(function: &'a PtxFunction) -> Self {
        let PtxFunction { linkage, returns, parameters, noreturn, bounds, .. } = function;
        Self { function, linkage: *linkage, returns, parameters, noreturn: *noreturn, bounds }
    }

    fn print(&self, module: &PtxModule, f: &mut Formatter<'_>) -> fmt::Result {
        let function = self.function;
        if let Some(linkage) = self.linkage {
            write!(f, ".{linkage} ")?;
        }
        f.write_str(match function.kind {
            FunctionKind::Entry => ".entry ",
            FunctionKind::Device => ".func ",
        })?;
        for attribute in &function.attributes {
            write!(f, ".attribute({attribute}) ")?;
        }
        if !self.returns.is_empty() {
            f.write_str("(")?;
            separated(f, self.returns, |formal, f| declaration::print_formal(module, function, *formal, f))?;
            f.write_str(") ")?;
        }
        write!(f, "{}(", function.name)?;
        separated(f, self.parameters, |formal, f| declaration::print_formal(module, function, *formal, f))?;
        f.write_str(")")?;
        if self.noreturn {
            f.write_str(" .noreturn")?;
        }
        print_bounds(self.bounds, f)
    }
}

fn print_bounds(bounds: &LaunchBounds, f: &mut Formatter<'_>) -> fmt::Result {
    let threes = [
        ("maxntid", bounds.max_threads),
        ("reqntid", bounds.required_threads),
        ("reqnctapercluster", bounds.required_cluster),
    ];
    for (word, dimensions) in threes {
        if let Some([x, y, z]) = dimensions {
            write!(f, "\n.{word} {x}, {y}, {z}")?;
        }
    }
    let ones = [
        ("minnctapersm", bounds.min_blocks_per_multiprocessor),
        ("maxnctapersm", bounds.max_blocks_per_multiprocessor),
        ("maxnreg", bounds.max_registers),
        ("maxclusterrank", bounds.max_cluster_rank),
    ];
    for (word, value) in ones {
        if let Some(value) = value {
            write!(f, "\n.{word} {value}")?;
        }
    }
    for (word, there) in
        [("explicitcluster", bounds.explicit_cluster), ("blocksareclusters", bounds.blocks_are_clusters)]
    {
        if there {
            write!(f, "\n.{word}")?;
        }
    }
    for directive in &bounds.other {
        writeln!(f)?;
        print_other(directive, f)?;
    }
    for pragma in &bounds.pragmas {
        write!(f, "\n.pragma \"{pragma}\";")?;
    }
    Ok(())
}

fn print_other(directive: &OtherDirective, f: &mut Formatter<'_>) -> fmt::Result {
    write!(f, ".{} ", directive.name)?;
    separated(f, &directive.arguments, |argument, f| write!(f, "{argument}"))
}

/// Prints `items` with commas between them.
fn separated<T>(
    f: &mut Formatter<'_>,
    items: &[T],
    mut print: impl FnMut(&T, &mut Formatter<'_>) -> fmt::Result,
) -> fmt::Result {
    for (i, item) in items.iter().enumerate() {
        if i > 0 {
            f.write_str(", ")?;
        }
        print(item, f)?;
    }
    Ok(())
}
