//! Makes what kubectl prints comparable.

use regex::Regex;

use crate::normalise::Text;

/// Replaces what differs from run to run in the output of commands.
#[derive(Debug)]
pub struct Printed {
    patterns: Vec<(Regex, &'static str)>,
    text: Text,
}

impl Default for Printed {
    fn default() -> Self {
        #[expect(clippy::unwrap_used, reason = "the patterns are constants, tested below")]
        let pattern = |text: &str| Regex::new(text).unwrap();
        let patterns = vec![
            // Dates of `kubectl describe` and of `diff`.
            (pattern(r"[A-Z][a-z]{2}, \d{2} [A-Z][a-z]{2} \d{4} [\d:]{8} [+-]\d{4}"), "<date>"),
            (pattern(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+ [+-]\d{4}"), "<date>"),
            (pattern(r"/tmp/(LIVE|MERGED)-\d+"), "<$1 folder>"),
            (pattern(r#"(resourceVersion"?: )"\d+""#), "$1<revision>"),
            (pattern(r"Resource Version:(\s+)\d+"), "Resource Version:$1<revision>"),
            (pattern(r"X509SHA256=[0-9a-f]{64}"), "X509SHA256=<digest>"),
            // Log lines of kubectl itself: `E1115 08:00:00.000000    1234 file.go:12] ...`.
            (pattern(r"(?m)^([EWI])\d{4} [\d:.]+\s+\d+ (\w+\.go):\d+\]"), "$1 $2]"),
            (pattern(r"\b(?:\d+[smhd])+\b"), "<age>"),
            // Columns are as wide as their widest cell, and ages have different widths.
            (pattern(r"(?m)(\S)[ \t]{2,}"), "$1   "),
            (pattern(r"(?m)[ \t]+$"), ""),
        ];
        Self { patterns, text: Text::default() }
    }
}

impl Printed {
    /// Takes in what the next command printed.
    pub fn normalise(&mut self, printed: &str) -> String {
        self.text.next_step();
        let mut result = self.text.normalise(printed);
        for (pattern, replacement) in &self.patterns {
            result = pattern.replace_all(&result, *replacement).into_owned();
        }
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_with_other_ages_are_equal() {
        let mut printed = Printed::default();
        let young = "NAME   DATA   AGE\na      1      0s\n";
        let old = "NAME   DATA   AGE\na      1      4m3s  \n";
        assert_eq!(printed.normalise(young), printed.normalise(old));
        assert_eq!(
            printed.normalise("Created:  Sun, 15 Nov 2026 08:00:00 +0000"),
            "Created:   <date>"
        );
        assert_eq!(
            printed.normalise("--- /tmp/LIVE-12/x\t2026-11-15 08:00:00.1 +0000"),
            "--- <LIVE folder>/x\t<date>"
        );
        assert_eq!(
            printed.normalise("    resourceVersion: \"12\""),
            "    resourceVersion: <revision>"
        );
    }
}
