//! Comma separated values, read strictly.

/// A line that is not comma separated values.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}{}", location(*.start_line, *.line, *.column), problem)]
pub struct CsvError {
    start_line: usize,
    line: usize,
    column: usize,
    problem: &'static str,
}

fn location(start: usize, line: usize, column: usize) -> String {
    if start == line {
        format!("parse error on line {line}, column {column}: ")
    } else {
        format!("record on line {start}; parse error on line {line}, column {column}: ")
    }
}

const BARE_QUOTE: &str = "bare \" in non-quoted field";
const WRONG_QUOTE: &str = "extraneous or missing \" in quoted-field";

/// The records of a text. Empty lines are skipped, fields in quotes may span lines.
pub(super) fn records(text: &str) -> Result<Vec<Vec<String>>, CsvError> {
    let mut lines = text.split_inclusive('\n').map(normal_end).enumerate();
    let mut records = Vec::new();
    while let Some((index, first)) = lines.next() {
        if first == "\n" || first.is_empty() {
            continue;
        }
        let start_line = index + 1;
        let mut line = start_line;
        let mut rest = first;
        let mut text_of_line = first;
        let mut fields = Vec::new();
        loop {
            let fail = |at: &str, within: &str, line, problem| CsvError {
                start_line,
                line,
                column: within.len() - at.len() + 1,
                problem,
            };
            let Some(quoted) = rest.strip_prefix('"') else {
                let (field, tail) = match rest.split_once(',') {
                    Some((field, tail)) => (field, Some(tail)),
                    None => (rest.trim_end_matches('\n'), None),
                };
                if let Some(at) = field.find('"') {
                    return Err(fail(&rest[at..], text_of_line, line, BARE_QUOTE));
                }
                fields.push(field.to_owned());
                match tail {
                    Some(tail) => rest = tail,
                    None => break,
                }
                continue;
            };
            let mut field = String::new();
            rest = quoted;
            let ends = loop {
                let Some((before, after)) = rest.split_once('"') else {
                    field.push_str(rest);
                    let Some((index, next)) = lines.next() else {
                        return Err(fail("", text_of_line, line, WRONG_QUOTE));
                    };
                    line = index + 1;
                    rest = next;
                    text_of_line = next;
                    continue;
                };
                field.push_str(before);
                if let Some(more) = after.strip_prefix('"') {
                    field.push('"');
                    rest = more;
                } else if let Some(more) = after.strip_prefix(',') {
                    rest = more;
                    break false;
                } else if after.is_empty() || after == "\n" {
                    break true;
                } else {
                    let at = &rest[before.len()..];
                    return Err(fail(at, text_of_line, line, WRONG_QUOTE));
                }
            };
            fields.push(field);
            if ends {
                break;
            }
        }
        records.push(fields);
    }
    Ok(records)
}

/// A carriage return before the end of a line does not count.
fn normal_end(line: &str) -> &str {
    if line.ends_with("\r\n") || line.ends_with('\r') {
        line.trim_end_matches('\n').trim_end_matches('\r')
    } else {
        line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_read() {
        let cases: [(&str, &[&[&str]]); 6] = [
            ("a,b,c\n", &[&["a", "b", "c"]]),
            ("a,b\r\n\n\nc", &[&["a", "b"], &["c"]]),
            ("a,\"b,c\"\n", &[&["a", "b,c"]]),
            ("\"a\"\"b\",\n", &[&["a\"b", ""]]),
            ("\"a\nb\",c\n", &[&["a\nb", "c"]]),
            ("a, b", &[&["a", " b"]]),
        ];
        for (text, expected) in cases {
            assert_eq!(records(text).unwrap(), expected, "{text:?}");
        }
    }

    #[test]
    fn bad_quotes_are_refused() {
        let cases = [
            ("a,b\"c\n", "parse error on line 1, column 4: bare \" in non-quoted field"),
            (
                "x\na,\"b\"c\n",
                "parse error on line 2, column 5: extraneous or missing \" in quoted-field",
            ),
            ("a,\"b", "parse error on line 1, column 5: extraneous or missing \" in quoted-field"),
        ];
        for (text, expected) in cases {
            assert_eq!(records(text).unwrap_err().to_string(), expected, "{text:?}");
        }
    }
}
