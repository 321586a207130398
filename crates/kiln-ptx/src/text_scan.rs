//! Searches PTX text without parsing it: whether a module declares variables.

/// Whether the text declares variables of a module that kernels or the host can write: `.global` or `.const` memory.
///
/// ```
/// assert!(kiln_ptx::declares_variables(".visible .global .align 4 .u32 counter;"));
/// assert!(!kiln_ptx::declares_variables("ld.global.u32 %r1, [%rd1];"));
/// ```
pub fn declares_variables(ptx: &str) -> bool {
    let mut before = "";
    ptx.split_ascii_whitespace().any(|word| {
        // A parameter says the same of what it points to.
        let declares = matches!(word, ".global" | ".const") && before != ".ptr";
        before = word;
        declares
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_told_from_accesses_and_parameters() {
        for text in [
            "ld.global.u32 %r1, [%rd1]; cvta.to.global.u64 %rd1, %rd0; st.global.u32 [%rd1], %r1;",
            ".param .u64 .ptr .global .align 1 from, .param .u64 .ptr .const to",
        ] {
            assert!(!declares_variables(text), "{text}");
        }
        for text in [".visible .global .align 4 .u32 counter;", "\n.const .f32 scale = 0f3F800000;"] {
            assert!(declares_variables(text), "{text}");
        }
    }
}
