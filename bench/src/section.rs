//! The parts of the report: each benchmark writes its own and leaves the others as they are.

const TITLE: &str = "# Speed

Written by `cargo xtask bench`; do not edit. Each part says when and where it was measured:
`cargo xtask bench NAME` measures one of them again.
";

/// The report with a part put in its place, or at the end where there was none.
pub(crate) fn put(report: &str, name: &str, part: &str) -> String {
    let (begin, end) = (format!("<!-- begin {name} -->\n"), format!("<!-- end {name} -->\n"));
    let whole = format!("{begin}\n{}\n\n{end}", part.trim());
    let found = report.find(&begin).and_then(|from| {
        let to = from + report[from..].find(&end)? + end.len();
        Some((from, to))
    });
    match found {
        Some((from, to)) => format!("{}{whole}{}", &report[..from], &report[to..]),
        None if report.starts_with(TITLE) => format!("{report}\n{whole}"),
        None => format!("{TITLE}\n{whole}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_replaces_itself_and_nothing_else() {
        let report = put(&put("", "one", "first"), "two", "second");
        assert!(report.starts_with(TITLE));
        let again = put(&report, "one", "changed\n");
        assert_eq!(again, report.replace("first", "changed"));
        assert_eq!(put(&again, "one", "first"), report);
    }
}
