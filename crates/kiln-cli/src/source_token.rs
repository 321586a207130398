//! The words and marks of CUDA C, as far as a look at declarations needs them.

/// Words and single marks of a source, without comments, strings and directives of the preprocessor.
pub(crate) fn tokens(source: &str) -> Vec<String> {
    let mut tokens = Vec::new();
    let mut rest = source;
    while let Some(c) = rest.chars().next() {
        let skipped = match c {
            _ if rest.starts_with("//") => rest.find('\n').unwrap_or(rest.len()),
            _ if rest.starts_with("/*") => rest.find("*/").map_or(rest.len(), |end| end + 2),
            '#' => end_of_directive(rest),
            '"' | '\'' => end_of_quote(rest, c),
            _ if c.is_alphanumeric() || c == '_' => {
                let end = rest.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(rest.len());
                tokens.push(rest[..end].to_owned());
                end
            }
            _ if rest.starts_with("::") => {
                tokens.push("::".to_owned());
                2
            }
            _ => {
                if !c.is_whitespace() {
                    tokens.push(c.to_string());
                }
                c.len_utf8()
            }
        };
        rest = &rest[skipped..];
    }
    tokens
}

/// A directive ends with its line, unless that ends with a backslash.
fn end_of_directive(text: &str) -> usize {
    let mut end = 0;
    for line in text.split_inclusive('\n') {
        end += line.len();
        if !line.trim_end().ends_with('\\') {
            break;
        }
    }
    end
}

fn end_of_quote(text: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '\n' => return at,
            _ if c == quote => return at + 1,
            _ => {}
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_strings_and_directives_are_left_out() {
        let source = "#define A \\\n int b;\n/* x */ lib::f(\"s; \\\" t\", 'c') // end\n*y";
        assert_eq!(tokens(source), ["lib", "::", "f", "(", ",", ")", "*", "y"]);
    }
}
