//! Several PTX texts as one, as a linker joins them.
//!
//! The directives at the start are those of the first. What is `.weak` or `.common` and there already is left out; a name without linkage belongs to its text, and gets
//! another one where an earlier text has it, too.

use std::collections::BTreeSet;
use std::ops::Range;

/// A statement of a module: a variable, a function, or a directive.
struct Statement {
    at: Range<usize>,
    /// What it defines or declares.
    name: Option<Range<usize>>,
    linkage: Linkage,
    /// Whether it is one of a function and not of a kernel.
    is_function: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Linkage {
    Visible,
    Extern,
    /// `.weak` or `.common`: several definitions are one.
    Shared,
    /// Of its text alone.
    Local,
}

/// Joins texts.
pub(crate) fn join(texts: &[String]) -> String {
    let mut joined = String::new();
    let mut defined = BTreeSet::<String>::new();
    for (index, text) in texts.iter().enumerate() {
        let mut renamed = BTreeSet::new();
        let mut kept = String::new();
        let mut of_text = BTreeSet::new();
        for statement in statements(text) {
            let source = text.get(statement.at.clone()).unwrap_or_default();
            let name = statement.name.and_then(|name| text.get(name));
            let is_header = matches!(words(source).next(), Some(".version" | ".target" | ".address_size"));
            if index > 0 && is_header {
                continue;
            }
            if let Some(name) = name.filter(|_| statement.linkage != Linkage::Extern) {
                match statement.linkage {
                    Linkage::Shared if defined.contains(name) || of_text.contains(name) => continue,
                    Linkage::Local if defined.contains(name) => drop(renamed.insert(name)),
                    _ => drop(of_text.insert(name.to_owned())),
                }
            }
            kept.push_str(source);
        }
        joined.push_str(&with_other_names(&kept, &renamed, index));
        if !joined.ends_with('\n') {
            joined.push('\n');
        }
        defined.extend(of_text);
    }
    joined
}

/// A function that is not a kernel.
pub(crate) struct Function<'text> {
    pub(crate) name: &'text str,
    /// Whether its body is here.
    pub(crate) is_defined: bool,
}

/// The functions that a text declares or defines, in its order. One may be among them twice.
pub(crate) fn functions(text: &str) -> Vec<Function<'_>> {
    let function = |statement: Statement| {
        let name = text.get(statement.name.filter(|_| statement.is_function)?)?;
        Some(Function { name, is_defined: statement.linkage != Linkage::Extern })
    };
    statements(text).into_iter().filter_map(function).collect()
}

fn is_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | b'%')
}

/// The text with names that end in the number of the text.
fn with_other_names(text: &str, names: &BTreeSet<&str>, index: usize) -> String {
    if names.is_empty() {
        return text.to_owned();
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while !rest.is_empty() {
        let bytes = rest.as_bytes();
        let word = bytes.iter().take_while(|byte| is_name(**byte)).count();
        let other = bytes.iter().skip(word).take_while(|byte| !is_name(**byte)).count();
        let (name, after) = rest.split_at(word);
        out.push_str(name);
        if names.contains(name) {
            out.push_str(&format!("$of{index}"));
        }
        let (between, after) = after.split_at(other);
        out.push_str(between);
        rest = after;
    }
    out
}

/// The statements of a module, which together are its whole text.
fn statements(text: &str) -> Vec<Statement> {
    let bytes = text.as_bytes();
    let mut found = Vec::new();
    let (mut start, mut at, mut depth) = (0, 0, 0_usize);
    while let Some(byte) = bytes.get(at) {
        let rest = text.as_bytes().get(at..).unwrap_or_default();
        let skipped = match byte {
            b'/' if rest.starts_with(b"//") => rest.iter().position(|byte| *byte == b'\n'),
            b'/' if rest.starts_with(b"/*") => {
                rest.windows(2).skip(2).position(|pair| pair == b"*/").map(|at| at + 3)
            }
            b'"' => rest.iter().skip(1).position(|byte| *byte == b'"').map(|at| at + 1),
            _ => Some(0),
        };
        at += skipped.unwrap_or(rest.len());
        let source = text.get(start..at.min(text.len())).unwrap_or_default();
        let ends = match byte {
            b'{' | b'(' | b'[' => {
                depth += 1;
                false
            }
            b'}' | b')' | b']' => {
                depth = depth.saturating_sub(1);
                // A body ends a function; the braces of a variable's value come before a semicolon.
                *byte == b'}' && depth == 0 && !is_variable(source)
            }
            b';' => depth == 0,
            b'\n' => depth == 0 && is_line(source),
            _ => false,
        };
        at += 1;
        if ends {
            found.push(statement(text, start..at));
            start = at;
        }
    }
    if start < text.len() {
        found.push(statement(text, start..text.len()));
    }
    found
}

/// The words at the start of a statement, without comments.
fn words(source: &str) -> impl Iterator<Item = &str> {
    let lines = source.lines().map(|line| line.split("//").next().unwrap_or_default());
    lines.flat_map(str::split_whitespace)
}

/// Whether a statement ends with its line.
fn is_line(source: &str) -> bool {
    let first = words(source).next();
    matches!(first, Some(".version" | ".target" | ".address_size" | ".file" | ".loc"))
}

fn is_variable(source: &str) -> bool {
    !words(source)
        .take(8)
        .any(|word| matches!(word, ".func" | ".entry" | ".section") || word.starts_with(".func("))
}

fn statement(text: &str, at: Range<usize>) -> Statement {
    let source = text.get(at.clone()).unwrap_or_default();
    // A function that is declared and has no body is defined elsewhere, in the same text or in another one.
    let is_code = !is_variable(source);
    let is_function = is_code && !words(source).take(8).any(|word| word == ".entry");
    let linkage = match words(source).next() {
        _ if is_code && source.trim_end().ends_with(';') => Linkage::Extern,
        Some(".visible") => Linkage::Visible,
        Some(".extern") => Linkage::Extern,
        Some(".weak" | ".common") => Linkage::Shared,
        _ => Linkage::Local,
    };
    // Comments before the first word may have anything in them.
    let lead = words(source).next().map_or(0, |first| first.as_ptr().addr() - source.as_ptr().addr());
    let start = at.start + lead;
    let name = source.get(lead..).and_then(name);
    Statement { name: name.map(|name| start + name.start..start + name.end), at, linkage, is_function }
}

/// What a statement names.
fn name(source: &str) -> Option<Range<usize>> {
    let directive = |word: &str| source.find(word).map(|found| found + word.len());
    let span = |from: usize| {
        let rest = source.as_bytes().get(from..)?;
        let start = from + rest.iter().position(|byte| is_name(*byte))?;
        let length = source.as_bytes().get(start..)?.iter().take_while(|byte| is_name(**byte)).count();
        Some(start..start + length)
    };
    if is_line(source) || matches!(words(source).next(), None | Some(".section" | ".pragma" | ".alias")) {
        return None;
    }
    if !is_variable(source) {
        let after = directive(".entry").or_else(|| directive(".func"))?;
        // A result stands in parentheses before the name.
        let rest = source.get(after..)?;
        let begins = rest.trim_start().starts_with('(');
        return span(if begins { after + rest.find(')')? + 1 } else { after });
    }
    // The name of a variable is the last word before its length, its value or the end.
    let end = source.find(['[', '=', ';'])?;
    let head = source.get(..end)?.trim_end();
    let start = head.bytes().rposition(|byte| !is_name(byte))? + 1;
    (start < head.len()).then_some(start..head.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn joined(texts: &[&str]) -> String {
        join(&texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn later_texts_lose_their_headers() {
        let joined = joined(&[
            ".version 8.0\n.target sm_90\n.func a() {}",
            "//\n// Made by a compiler.\n//\n\n.version 7.0\n.address_size 64\n.func b() {}",
        ]);
        assert_eq!(joined, ".version 8.0\n.target sm_90\n.func a() {}\n.func b() {}\n");
    }

    #[test]
    fn a_weak_function_that_is_declared_first_keeps_its_definition() {
        let declared = ".weak .func (.param .b32 r) half\n(\n.param .b32 x\n)\n;\n";
        let defined = ".weak .func (.param .b32 r) half(\n.param .b32 x\n)\n{\n{ ret; }\n}\n";
        let text = format!("{declared}{defined}");
        let joined = joined(&[&text, &text]);
        assert_eq!(joined.matches("{ ret; }").count(), 1, "{joined}");
    }

    #[test]
    fn common_and_weak_definitions_are_there_once() {
        let text = ".common .global .align 8 .u64 env;\n.weak .func (.param .b32 r) half(.param .b32 x)\n{\n{ ret; }\n}\n";
        assert_eq!(joined(&[text, text]).matches("env").count(), 1);
        assert_eq!(joined(&[text, text]).matches("half").count(), 1);
        assert_eq!(joined(&[text]), text);
    }

    #[test]
    fn names_of_one_text_are_kept_apart() {
        let text = |body: &str| {
            format!(
                "// a ; in a comment {{\n.global .align 1 .b8 $str[3] = {{104, 105, 0}};\n.visible .func {body}()\n{{\nmov.u64 %rd1, $str;\n}}\n"
            )
        };
        let joined = join(&[text("one"), text("two")]);
        assert_eq!((joined.matches("$str$of1").count(), joined.matches("$str").count()), (2, 4), "{joined}");
        assert!(joined.contains(".func two()"), "{joined}");
    }

    #[test]
    fn any_text_is_read_to_its_end() {
        for text in [
            "",
            "{",
            "}",
            "\"",
            "/*",
            "//",
            ".func",
            ".func (",
            ".global .u32",
            ";;;",
            ".weak",
            "é;",
            ".common é[;",
        ] {
            assert_eq!(joined(&[text]).trim_end(), text.trim_end());
        }
    }
}
