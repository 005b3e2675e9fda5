//! Sets of completion indexes as they are written in a Job's status: `1,3-5,7`.

use std::collections::BTreeSet;

pub(super) fn parse(text: &str) -> BTreeSet<i32> {
    let part = |part: &str| -> Option<std::ops::RangeInclusive<i32>> {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        Some(first.trim().parse().ok()?..=last.trim().parse().ok()?)
    };
    text.split(',').filter_map(part).flatten().collect()
}

pub(super) fn format(indexes: &BTreeSet<i32>) -> String {
    let mut ranges: Vec<(i32, i32)> = Vec::new();
    for index in indexes {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == *index => *last = *index,
            _ => ranges.push((*index, *index)),
        }
    }
    let show = |(first, last): &(i32, i32)| match last - first {
        0 => first.to_string(),
        1 => format!("{first},{last}"),
        _ => format!("{first}-{last}"),
    };
    ranges.iter().map(show).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_and_back() {
        for text in ["", "0", "0,1", "1,3-5,7", "0-9"] {
            assert_eq!(format(&parse(text)), text);
        }
        assert_eq!(parse("2-4"), BTreeSet::from([2, 3, 4]));
        assert_eq!(parse("nonsense,1"), BTreeSet::from([1]));
    }
}
