//! The first node of a list as Slurm writes it, such as `gpu[07-09,12],login1`.

/// The first node; none if the text is no such list.
pub(crate) fn first_node(list: &str) -> Option<String> {
    let mut node = String::new();
    let mut rest = list.trim();
    // A name may have several brackets: `rack[1-2]node[03-04]`.
    loop {
        let end = rest.find(['[', ',']).unwrap_or(rest.len());
        let (text, tail) = rest.split_at(end);
        let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        if !text.chars().all(is_name) {
            return None;
        }
        node.push_str(text);
        let Some(inside) = tail.strip_prefix('[') else {
            return (!node.is_empty()).then_some(node);
        };
        let (numbers, after) = inside.split_once(']')?;
        node.push_str(first_number(numbers)?);
        rest = after;
    }
}

/// The first number of `07-09,12`, with its zeros.
fn first_number(numbers: &str) -> Option<&str> {
    let mut first = None;
    for range in numbers.split(',') {
        let (low, high) = range.split_once('-').unwrap_or((range, range));
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        if !is_number(low) || !is_number(high) {
            return None;
        }
        first = first.or(Some(low));
    }
    first
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_node_is_found() {
        for (list, first) in [
            ("login1", "login1"),
            ("a,b,c", "a"),
            ("gpu[07-09,12],login1", "gpu07"),
            ("gpu[12]", "gpu12"),
            ("rack[1-2]node[03-04]", "rack1node03"),
            ("node[1-3]-ib.cluster.example,x", "node1-ib.cluster.example"),
            (" n1 ", "n1"),
        ] {
            assert_eq!(first_node(list).as_deref(), Some(first), "{list}");
        }
    }

    #[test]
    fn what_is_no_list_is_refused() {
        for list in ["", ",a", "gpu[", "gpu[]", "gpu[1-]", "gpu[a]", "gpu[1,]", "a b", "gpu]1[", "g;reboot"] {
            assert_eq!(first_node(list), None, "{list}");
        }
    }
}
