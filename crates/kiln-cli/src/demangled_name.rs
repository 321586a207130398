//! Names of C++ functions, from the mangled names that PTX has.

use cpp_demangle::{DemangleOptions, Symbol};

/// What C++ compilers put between the name of a kernel and the number of a parameter.
const PARAMETER_INFIX: &str = "_param_";

/// The C++ function that a mangled name stands for, with template arguments and without parameters; none for other names.
pub(crate) fn function_name(mangled: &str) -> Option<String> {
    demangle(mangled, &DemangleOptions::new().no_params().no_return_type())
}

/// The same with the types of the parameters, such as `saxpy(float, float const*)`.
pub(crate) fn signature(mangled: &str) -> Option<String> {
    demangle(mangled, &DemangleOptions::new().no_return_type())
}

/// The C++ types of the parameters that a mangled name tells; none for other names.
pub(crate) fn parameter_types(mangled: &str) -> Vec<String> {
    let Some(list) = signature(mangled).and_then(|signature| last_list(&signature)) else {
        return Vec::new();
    };
    let mut types = vec![String::new()];
    let mut depth = 0_usize;
    for c in list.chars() {
        match c {
            '<' | '(' | '[' => depth += 1,
            '>' | ')' | ']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        match (c, types.last_mut()) {
            (',', _) if depth == 0 => types.push(String::new()),
            (_, Some(last)) => last.push(c),
            _ => {}
        }
    }
    types.iter().map(|ty| ty.trim().to_owned()).collect()
}

/// What stands in the parentheses that a text ends with.
fn last_list(text: &str) -> Option<String> {
    let inner = text.strip_suffix(')')?;
    let mut depth = 1;
    for (at, c) in inner.char_indices().rev() {
        match c {
            ')' => depth += 1,
            '(' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Some(inner[at + 1..].to_owned());
        }
    }
    None
}

/// A name as its author wrote it, where that can be told.
pub(crate) fn readable(name: &str) -> String {
    function_name(name).unwrap_or_else(|| name.to_owned())
}

/// A text in which names of PTX that a C++ compiler made are those of the source.
pub(crate) fn with_readable_names(text: &str) -> String {
    let is_of_name = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    let mut rest = text;
    let mut named = String::with_capacity(text.len());
    while !rest.is_empty() {
        let begin = rest.find(is_of_name).unwrap_or(rest.len());
        let (between, word) = rest.split_at(begin);
        let (word, after) = word.split_at(word.find(|letter| !is_of_name(letter)).unwrap_or(word.len()));
        named.push_str(between);
        match word.starts_with("_Z") {
            true => named.push_str(&parameter(word).unwrap_or_else(|| readable(word))),
            false => named.push_str(word),
        }
        rest = after;
    }
    named
}

/// `parameter 0 of saxpy` for the name that a C++ compiler gives a parameter of a kernel, such as `_Z5saxpyfPf_param_0`.
fn parameter(word: &str) -> Option<String> {
    let (kernel, number) = word.rsplit_once(PARAMETER_INFIX)?;
    let is_number = !number.is_empty() && number.bytes().all(|digit| digit.is_ascii_digit());
    is_number.then(|| function_name(kernel)).flatten().map(|kernel| format!("parameter {number} of {kernel}"))
}

/// The name of a parameter without the name of its kernel, which C++ compilers put before it: `param_0` for `_Z5saxpyfPf_param_0`.
pub(crate) fn parameter_name<'n>(kernel: &str, name: &'n str) -> &'n str {
    let own = name.strip_prefix(kernel).filter(|rest| rest.starts_with(PARAMETER_INFIX));
    own.map_or(name, |rest| rest.trim_start_matches('_'))
}

fn demangle(mangled: &str, options: &DemangleOptions) -> Option<String> {
    if !mangled.starts_with("_Z") {
        return None;
    }
    Symbol::new(mangled).ok()?.demangle_with_options(options).ok().map(|name| without_tags(&name))
}

/// A name without the tags that tell apart what has one name in the source, such as `[abi:v1]`; numba puts two into each.
fn without_tags(name: &str) -> String {
    let mut parts = name.split("[abi:");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |name, rest| name + rest.split_once(']').map_or(rest, |(_, behind)| behind))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mangled_names_are_read_and_others_are_left_alone() {
        assert_eq!(function_name("_Z4axpyfPKfPfj").as_deref(), Some("axpy"));
        assert_eq!(
            signature("_Z4axpyfPKfPfj").as_deref(),
            Some("axpy(float, float const*, float*, unsigned int)")
        );
        assert_eq!(function_name("_ZN3lib5inner4axpyEf").as_deref(), Some("lib::inner::axpy"));
        assert_eq!(function_name("_Z5scaleIfEvPT_").as_deref(), Some("scale<float>"));
        let numba = "_ZN6cudapy8__main__4fillB2v1B8cw51cXTLE5ArrayIfLi1E1C7mutable7alignedE";
        assert_eq!(function_name(numba).as_deref(), Some("cudapy::__main__::fill"));
        for name in ["axpy", "_Z", "_Z99short", "_ZN", "_Z\u{e9}", "_Z18446744073709551615x"] {
            assert_eq!(function_name(name), None, "{name}");
        }
    }

    #[test]
    fn parameter_types_are_told_by_mangled_names() {
        assert_eq!(parameter_types("_Z4axpyfPKfPfj"), ["float", "float const*", "float*", "unsigned int"]);
        assert_eq!(parameter_types("_Z5scaleIfEvPT_"), ["float*"]);
        assert_eq!(parameter_types("axpy"), [] as [&str; 0]);
    }

    #[test]
    fn names_in_a_text_are_those_of_the_source() {
        assert_eq!(
            with_readable_names("`_Z4axpyfPKfPfj`: no _Zeta, a_Z4axpyf"),
            "`axpy`: no _Zeta, a_Z4axpyf"
        );
        assert_eq!(with_readable_names("é_Z5scaleIfEvPT_"), "éscale<float>");
        assert_eq!(
            with_readable_names("`_Z4axpyfPKfPfj_param_3`, _Z4add2P7__half2PKS__param_0, axpy_param_1"),
            "`parameter 3 of axpy`, parameter 0 of add2, axpy_param_1"
        );
        assert_eq!(parameter_name("_Z4axpyfPKfPfj", "_Z4axpyfPKfPfj_param_3"), "param_3");
        assert_eq!(parameter_name("k", "x"), "x");
    }
}
