//! Kernels of CUDA C that are templates.
//!
//! A template has no code until it is named with arguments, so the compiler's output does not show it. A look at the source finds
//! `template <...> __global__ void name(`, which is enough to say what can be given; the compiler decides what is right.

use std::fmt;

use crate::source_token::tokens;

/// A template of a kernel.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct TemplateKernel {
    /// With its namespaces.
    pub(crate) name: String,
    /// As declared, such as `typename T` and `int N`.
    parameters: Vec<String>,
}

impl TemplateKernel {
    /// The templates of a source, in order.
    pub(crate) fn find(source: &str) -> Vec<Self> {
        let tokens = tokens(source);
        let mut found = Vec::new();
        // Namespaces and the depth of braces they were opened at.
        let mut namespaces: Vec<(String, usize)> = Vec::new();
        let (mut depth, mut at) = (0_usize, 0);
        while let Some(token) = tokens.get(at) {
            match token.as_str() {
                "{" => depth += 1,
                "}" => {
                    depth = depth.saturating_sub(1);
                    namespaces.retain(|(_, opened)| *opened <= depth);
                }
                "namespace" => {
                    let rest = &tokens[at + 1..];
                    let end = rest.iter().position(|token| matches!(token.as_str(), "{" | ";" | "="));
                    // An alias and `using namespace` open nothing; an unnamed one adds no name.
                    if let Some(end) = end.filter(|end| *end > 0 && rest[*end] == "{") {
                        namespaces.push((rest[..end].concat(), depth + 1));
                    }
                }
                "template" => {
                    let scope: Vec<&str> = namespaces.iter().map(|(name, _)| name.as_str()).collect();
                    found.extend(Self::read(&tokens[at + 1..], &scope));
                    // Templates among the parameters declare nothing.
                    if let Some((_, rest)) = angle_list(&tokens[at + 1..]) {
                        at = tokens.len() - rest.len() - 1;
                    }
                }
                _ => {}
            }
            at += 1;
        }
        found
    }

    /// Reads what stands behind `template`, if it declares a kernel.
    fn read(tokens: &[String], scope: &[&str]) -> Option<Self> {
        let (parameters, rest) = angle_list(tokens)?;
        // An explicit instantiation or specialisation has no parameters and is in the PTX already.
        if parameters.is_empty() {
            return None;
        }
        let end = rest.iter().position(|token| matches!(token.as_str(), "{" | ";" | "}"))?;
        let head = &rest[..end];
        if !head.iter().any(|token| token == "__global__") {
            return None;
        }
        let name = declared_name(head)?;
        let name = scope.iter().copied().chain([name]).collect::<Vec<_>>().join("::");
        Some(Self { name, parameters })
    }

    /// The template with arguments that its parameters accept.
    pub(crate) fn example(&self) -> String {
        let arguments: Vec<&str> =
            self.parameters.iter().filter_map(|parameter| argument(parameter)).collect();
        format!("{}<{}>", self.name, arguments.join(", "))
    }
}

impl fmt::Display for TemplateKernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}<{}>", self.name, self.parameters.join(", "))
    }
}

/// An argument for a parameter; none for one that has a default.
fn argument(parameter: &str) -> Option<&'static str> {
    if parameter.contains('=') {
        return None;
    }
    let is_type = parameter.starts_with("typename") || parameter.starts_with("class");
    Some(match parameter {
        _ if is_type => "float",
        _ if parameter.starts_with("bool") => "true",
        _ => "256",
    })
}

/// The name before the parameters of a function: not that of an attribute such as `__launch_bounds__(256)`.
fn declared_name(head: &[String]) -> Option<&str> {
    let mut calls = head.windows(2).filter(|pair| pair[1] == "(").map(|pair| pair[0].as_str());
    let is_name = |word: &&str| {
        word.starts_with(|c: char| c.is_alphabetic() || c == '_')
            && !word.starts_with("__")
            && *word != "alignas"
    };
    calls.find(is_name)
}

/// The items between `<` and the `>` that closes it, and what follows.
fn angle_list(tokens: &[String]) -> Option<(Vec<String>, &[String])> {
    if tokens.first()? != "<" {
        return None;
    }
    let (mut depth, mut items, mut item) = (1_usize, Vec::new(), String::new());
    for (at, token) in tokens.iter().enumerate().skip(1) {
        match token.as_str() {
            "<" | "(" => depth += 1,
            ">" | ")" => depth -= 1,
            _ => {}
        }
        if depth == 0 || (depth == 1 && token == ",") {
            if !item.is_empty() {
                items.push(std::mem::take(&mut item));
            }
            if depth == 0 {
                return Some((items, &tokens[at + 1..]));
            }
            continue;
        }
        let joins = item.ends_with(|c: char| c.is_alphanumeric() || c == '_')
            && token.starts_with(|c: char| c.is_alphanumeric() || c == '_');
        if joins {
            item.push(' ');
        }
        item.push_str(token);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn templates_of_kernels_are_found_with_their_namespaces() {
        let source = r#"
            // template <typename T> __global__ void commented(T* x) {}
            #define MACRO template <typename T> __global__ void \
                defined(T* x)
            const char* text = "template <typename T> __global__ void quoted(T*)";
            template <typename T> __global__ void fill(T* y, T value) { y[0] = value; }
            namespace lib { namespace inner {
            using namespace std;
            template <class T, unsigned Block, int N = 4>
            __launch_bounds__(Block) __global__ void sum(const T* x) { if (x) { } }
            } template <bool Fast> static __global__ void go() {} }
            template <typename T> __device__ T helper(T x) { return x; }
            template <> __global__ void fill<int>(int* y, int value) {}
            template __global__ void fill<double>(double*, double);
            template <template <typename> class C, typename T> __global__ void nested(C<T> c);
            __global__ void plain(float* x) {}
        "#;
        let found = TemplateKernel::find(source);
        let shown: Vec<String> = found.iter().map(ToString::to_string).collect();
        assert_eq!(
            shown,
            [
                "fill<typename T>",
                "lib::inner::sum<class T, unsigned Block, int N=4>",
                "lib::go<bool Fast>",
                "nested<template<typename>class C, typename T>",
            ]
        );
        let examples: Vec<String> = found.iter().take(3).map(TemplateKernel::example).collect();
        assert_eq!(examples, ["fill<float>", "lib::inner::sum<float, 256>", "lib::go<true>"]);
    }

    #[test]
    fn any_text_is_scanned_without_a_panic() {
        for source in [
            "template",
            "template <",
            "template < >",
            "namespace",
            "\"open",
            "/* open",
            "#",
            "'",
            "template<a>b(;",
            "\u{e9}>",
        ] {
            TemplateKernel::find(source);
        }
    }
}
