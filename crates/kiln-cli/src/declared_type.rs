//! The types of a kernel's parameters, as its source declares them.
//!
//! The name of an `extern "C"` kernel has no types, and the types of its instructions tell only how it moves the memory: a `double*` may be copied as
//! `uint4`. So the declaration is looked up in the text of the file. What is not found there, or in two ways (`#ifdef`), is not known.

use std::collections::HashMap;

use crate::source_token::tokens;

/// The types of the parameters of the kernel `name`, such as `double const*`; none for a parameter of which the source does not tell it.
pub(crate) fn declared_types(source: &str, name: &str) -> Vec<Option<String>> {
    let tokens = tokens(source);
    let aliases = aliases(&tokens);
    let mut known: Option<Vec<Option<String>>> = None;
    for at in 0..tokens.len() {
        if tokens[at] != name || !is_kernel(&tokens[..at]) {
            continue;
        }
        let Some(parameters) = parameters(&tokens[at + 1..]) else { continue };
        let types: Vec<Option<String>> =
            parameters.iter().map(|parameter| pointer_type(parameter, &aliases)).collect();
        known = Some(match known {
            Some(other) if other.len() == types.len() => other
                .into_iter()
                .zip(types)
                .map(|(one, other)| one.filter(|one| Some(one) == other.as_ref()))
                .collect(),
            Some(_) => return Vec::new(),
            None => types,
        });
    }
    known.unwrap_or_default()
}

/// Whether the declaration that these tokens end in is one of a kernel.
fn is_kernel(before: &[String]) -> bool {
    let declaration = before.iter().rev().take_while(|token| !matches!(token.as_str(), ";" | "{" | "}"));
    declaration.into_iter().any(|token| token == "__global__")
}

/// The parameters in the parentheses that the tokens begin with.
fn parameters(tokens: &[String]) -> Option<Vec<&[String]>> {
    if tokens.first()? != "(" {
        return None;
    }
    let (mut depth, mut from, mut list) = (1_usize, 1, Vec::new());
    for (at, token) in tokens.iter().enumerate().skip(1) {
        match token.as_str() {
            "(" | "<" | "[" => depth += 1,
            ")" | ">" | "]" => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 || (depth == 1 && token == ",") {
            list.push(&tokens[from..at]);
            from = at + 1;
        }
        if depth == 0 {
            return Some(list);
        }
    }
    None
}

/// The type of a parameter that is a pointer, without qualifiers and its name.
fn pointer_type(parameter: &[String], aliases: &HashMap<&str, String>) -> Option<String> {
    let is_qualifier = |word: &str| {
        matches!(
            word,
            "const"
                | "volatile"
                | "struct"
                | "restrict"
                | "__restrict"
                | "__restrict__"
                | "__grid_constant__"
        )
    };
    let words: Vec<&str> = parameter
        .iter()
        .map(String::as_str)
        .take_while(|word| *word != "=")
        .filter(|word| !is_qualifier(word))
        .collect();
    let (base, stars) = match words.iter().position(|word| *word == "*") {
        Some(at) => (&words[..at], words[at..].iter().filter(|word| **word == "*").count()),
        // `float x[]` is a pointer, too.
        None => (words.split_at(words.iter().position(|word| *word == "[")?).0.split_last()?.1, 1),
    };
    let base = match base {
        [only] => aliases.get(only).cloned().unwrap_or_else(|| (*only).to_owned()),
        [] => return None,
        several => several.join(" "),
    };
    Some(format!("{base}{}", "*".repeat(stars)))
}

/// What `typedef double real;` and `using real = double;` name.
fn aliases(tokens: &[String]) -> HashMap<&str, String> {
    let mut aliases = HashMap::new();
    for (at, token) in tokens.iter().enumerate() {
        let rest = &tokens[at + 1..];
        let Some(end) = rest.iter().position(|token| token == ";") else { break };
        let pair = match (token.as_str(), &rest[..end]) {
            ("typedef", [words @ .., name]) => Some((name, words)),
            ("using", [name, equals, words @ ..]) if equals == "=" => Some((name, words)),
            _ => None,
        };
        let is_plain = |words: &[String]| {
            !words.is_empty()
                && words.iter().all(|word| word.chars().all(|c| c.is_alphanumeric() || c == '_'))
        };
        if let Some((name, words)) = pair.filter(|(_, words)| is_plain(words)) {
            let ty = words.join(" ");
            // Declared in two ways, it may be either.
            let is_other = aliases.get(name.as_str()).is_some_and(|known| *known != ty);
            aliases.insert(name.as_str(), if is_other { "?".to_owned() } else { ty });
        }
    }
    aliases
}

#[cfg(test)]
mod tests {
    use super::*;

    fn types(source: &str, name: &str) -> Vec<String> {
        declared_types(source, name).into_iter().map(|ty| ty.unwrap_or_default()).collect()
    }

    #[test]
    fn pointers_are_read_from_the_declaration_of_a_kernel() {
        let source = r#"
            // __global__ void k(int* commented);
            __device__ float k_(float x) { return k(x); }
            extern "C" __global__ void __launch_bounds__(256) k(
                const double* __restrict__ x, unsigned char *o, int n, float y[], Pair<int, float>* p, float** q, double const *const z) {}
            extern "C" { __global__ void other(const unsigned   long long* x, struct Point* y) { k(x); } }
        "#;
        assert_eq!(
            types(source, "k"),
            ["double*", "unsigned char*", "", "float*", "Pair < int , float >*", "float**", "double*"]
        );
        assert_eq!(types(source, "other"), ["unsigned long long*", "Point*"]);
        assert_eq!(types(source, "absent"), [] as [&str; 0]);
        assert_eq!(types("__global__ void none() {}", "none"), [""]);
    }

    #[test]
    fn aliases_are_followed_and_what_is_declared_in_two_ways_is_not_known() {
        let source =
            "typedef double real; using word = unsigned int; __global__ void k(real* x, const word* y);";
        assert_eq!(types(source, "k"), ["double*", "unsigned int*"]);
        let two = "#ifdef BAD\n__global__ void k(float* x, int* y) {}\n#else\n__global__ void k(double* x, int* y) {}\n#endif";
        assert_eq!(types(two, "k"), ["", "int*"]);
        let other =
            "#if A\ntypedef float real;\n#else\ntypedef double real;\n#endif\n__global__ void k(real* x) {}";
        assert_eq!(types(other, "k"), ["?*"]);
        assert!(types("__global__ void k(float* x); __global__ void k(float* x, int n);", "k").is_empty());
    }

    #[test]
    fn any_text_is_scanned_without_a_panic() {
        for source in [
            "k",
            "k(",
            "__global__ k(",
            "__global__ k(,",
            "__global__ k([)",
            "__global__ k(*)",
            "typedef;",
            "using = ;",
            "__global__ k())>",
        ] {
            declared_types(source, "k");
        }
    }
}
