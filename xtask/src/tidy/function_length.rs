//! Functions short enough to be read at once.

use super::finding::Finding;
use super::source_text::Masked;
use super::tree::Tree;
use crate::workspace::Package;

/// From the line of `fn` to the closing brace.
const FUNCTION_LINES: usize = 70;

/// Functions, tests included, are at most [`FUNCTION_LINES`] long.
pub(crate) fn length(tree: &Tree, _: &[Package]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree.ending(".rs") {
        for function in functions(&Masked::new(&file.text).code) {
            if function.lines > FUNCTION_LINES {
                let text = format!(
                    "`{}` has {} lines, more than {FUNCTION_LINES}; split it into named parts",
                    function.name, function.lines
                );
                findings.push(Finding::new(&file.path, function.line, text));
            }
        }
    }
    findings
}

struct Function {
    name: String,
    line: usize,
    lines: usize,
}

/// Every function with a body, in the order they begin, those inside of others too.
fn functions(code: &str) -> Vec<Function> {
    let words = code.match_indices("fn ").filter(|(at, _)| {
        !code.get(..*at).and_then(|before| before.chars().next_back()).is_some_and(is_word)
    });
    words.filter_map(|(at, word)| function(code, at, at + word.len())).collect()
}

fn function(code: &str, start: usize, name_start: usize) -> Option<Function> {
    let rest = code.get(name_start..)?;
    let name: String = rest.trim_start().chars().take_while(|c| is_word(*c)).collect();
    let length = body_end(rest)?;
    let line = line_breaks(code.get(..start)?) + 1;
    let lines = line_breaks(code.get(start..name_start + length)?) + 1;
    (!name.is_empty()).then_some(Function { name, line, lines })
}

/// The length of a function's text up to its closing brace; `None` for one without a body.
fn body_end(text: &str) -> Option<usize> {
    let (mut braces, mut others) = (0_usize, 0_usize);
    for (at, c) in text.char_indices() {
        match c {
            '(' | '[' => others += 1,
            ')' | ']' => others = others.saturating_sub(1),
            ';' if braces == 0 && others == 0 => return None,
            '{' => braces += 1,
            '}' if braces == 1 => return Some(at),
            '}' => braces = braces.checked_sub(1)?,
            _ => {}
        }
    }
    None
}

fn line_breaks(text: &str) -> usize {
    text.matches('\n').count()
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::finding::{NONE, lines};

    fn measure(code: &str) -> Vec<(String, usize, usize)> {
        functions(code).into_iter().map(|f| (f.name, f.line, f.lines)).collect()
    }

    #[test]
    fn bodies_are_measured_and_declarations_are_not() {
        let code = "trait T {\n    fn a(&self, x: [u8; 3]);\n    fn b() {\n        if x { y }\n    }\n}\n";
        assert_eq!(measure(code), [("b".to_owned(), 3, 3)]);
        assert_eq!(measure("type F = fn(u8) -> u8;\nlet often = 1;"), [] as [(String, usize, usize); 0]);
    }

    #[test]
    fn a_long_function_is_found_and_a_brace_in_a_text_does_not_matter() {
        let body = "    x();\n".repeat(FUNCTION_LINES - 3);
        let fits = format!("fn f() {{\n    g(\"}}\");\n{body}}}\n");
        let long = format!("\nfn f() {{\n    g('}}');\n    h();\n{body}}}\n");
        assert_eq!(lines(&length(&Tree::of(&[("a.rs", &fits)]), &[])), NONE);
        assert_eq!(lines(&length(&Tree::of(&[("a.rs", &long)]), &[])), [2]);
    }
}
