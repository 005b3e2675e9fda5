//! Columns of text, aligned.

/// Lines of cells under a heading. Columns without any text are left out; the last one is not
/// padded, so that no line ends in spaces.
pub(crate) fn aligned(heading: &[&str], rows: &[Vec<String>]) -> String {
    let used: Vec<usize> = (0..heading.len())
        .filter(|&column| {
            column == 0
                || rows.iter().any(|row| row.get(column).is_some_and(|cell| !cell.is_empty()))
        })
        .collect();
    let cell = |row: &[String], column: usize| row.get(column).cloned().unwrap_or_default();
    let heading: Vec<String> = heading.iter().map(ToString::to_string).collect();
    let lines: Vec<&[String]> =
        std::iter::once(heading.as_slice()).chain(rows.iter().map(Vec::as_slice)).collect();
    let width = |column: usize| {
        lines.iter().map(|row| cell(row, column).chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = used.iter().map(|&column| width(column)).collect();
    let mut text = String::new();
    for row in &lines {
        let mut line = String::new();
        for (&column, &width) in used.iter().zip(&widths) {
            let cell = cell(row, column);
            let padding = width.saturating_sub(cell.chars().count()) + 2;
            line.push_str(&cell);
            line.extend(std::iter::repeat_n(' ', padding));
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_columns_and_trailing_spaces_are_left_out() {
        let rows = [vec!["├─a".to_owned(), String::new(), "x".to_owned()], vec!["b".to_owned()]];
        assert_eq!(aligned(&["NAME", "NONE", "LAST"], &rows), "NAME  LAST\n├─a   x\nb\n");
    }
}
