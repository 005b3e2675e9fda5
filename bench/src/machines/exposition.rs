//! Metrics as Prometheus reads them.

/// The sum of all samples of a name.
pub(crate) fn sum(text: &str, name: &str) -> f64 {
    let samples = text.lines().filter_map(|line| {
        let rest = line.strip_prefix(name)?;
        let value = match rest.strip_prefix('{') {
            Some(labelled) => labelled.rsplit_once('}')?.1,
            None => rest.strip_prefix(' ')?,
        };
        value.split_whitespace().next()?.parse::<f64>().ok()
    });
    samples.sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_of_a_name_and_no_longer_one() {
        let text = "# HELP a_total all of them\na_total 1\na_total{name=\"x\"} 2.5\n\
                    a_total{name=\"} 9\"} 3\na_total_more 100\n# EOF\n";
        assert!((sum(text, "a_total") - 6.5).abs() < 1e-9);
        assert!(sum(text, "b_total").abs() < 1e-9);
    }
}
