//! Unified differences of texts, line for line as the real server prints them.
//!
//! The matching is that of Python's difflib, which the real server uses too: the longest common
//! block first, then what is left and right of it. A different algorithm could print a
//! different, equally right difference.

use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Lines of context around a change.
const CONTEXT: usize = 3;
/// From this many lines on, very common lines do not start a match.
const MANY_LINES: usize = 200;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Block {
    a: usize,
    b: usize,
    size: usize,
}

#[derive(Clone, Copy, Debug)]
struct Change {
    equal: bool,
    a: (usize, usize),
    b: (usize, usize),
}

/// The unified difference of two texts; empty if they are the same.
pub(super) fn diff(a: &str, b: &str) -> String {
    let (a, b): (Vec<&str>, Vec<&str>) = (a.split('\n').collect(), b.split('\n').collect());
    let mut out = String::new();
    for group in groups(changes(&blocks(&a, &b), a.len(), b.len())) {
        let (Some(first), Some(last)) = (group.first(), group.last()) else { continue };
        // Writing to a String cannot fail.
        let _ =
            writeln!(out, "@@ -{} +{} @@", range(first.a.0, last.a.1), range(first.b.0, last.b.1));
        for change in group {
            let old = a.get(change.a.0..change.a.1).unwrap_or_default();
            let new = b.get(change.b.0..change.b.1).unwrap_or_default();
            if change.equal {
                push(&mut out, ' ', old);
            } else {
                push(&mut out, '-', old);
                push(&mut out, '+', new);
            }
        }
    }
    out
}

fn push(out: &mut String, sign: char, lines: &[&str]) {
    for line in lines {
        out.push(sign);
        out.push_str(line);
        out.push('\n');
    }
}

fn range(start: usize, end: usize) -> String {
    match end - start {
        1 => format!("{}", start + 1),
        0 => format!("{start},0"),
        length => format!("{},{length}", start + 1),
    }
}

/// The common blocks in order, neighbours joined, with an empty one at the end.
fn blocks(a: &[&str], b: &[&str]) -> Vec<Block> {
    let mut places: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (i, line) in b.iter().enumerate() {
        places.entry(line).or_default().push(i);
    }
    if b.len() >= MANY_LINES {
        let limit = b.len() / 100 + 1;
        places.retain(|_, places| places.len() <= limit);
    }
    let mut found = Vec::new();
    let mut queue = vec![(0, a.len(), 0, b.len())];
    while let Some((a_low, a_high, b_low, b_high)) = queue.pop() {
        let block = longest(a, b, &places, (a_low, a_high), (b_low, b_high));
        if block.size == 0 {
            continue;
        }
        found.push(block);
        queue.push((a_low, block.a, b_low, block.b));
        queue.push((block.a + block.size, a_high, block.b + block.size, b_high));
    }
    found.sort_by_key(|block| (block.a, block.b));
    let mut joined: Vec<Block> = Vec::new();
    for block in found {
        match joined.last_mut() {
            Some(last) if last.a + last.size == block.a && last.b + last.size == block.b => {
                last.size += block.size;
            }
            _ => joined.push(block),
        }
    }
    joined.push(Block { a: a.len(), b: b.len(), size: 0 });
    joined
}

fn longest(
    a: &[&str],
    b: &[&str],
    places: &BTreeMap<&str, Vec<usize>>,
    (a_low, a_high): (usize, usize),
    (b_low, b_high): (usize, usize),
) -> Block {
    let mut best = Block { a: a_low, b: b_low, size: 0 };
    let mut lengths: BTreeMap<usize, usize> = BTreeMap::new();
    for (i, line) in a.iter().enumerate().take(a_high).skip(a_low) {
        let mut next = BTreeMap::new();
        for &j in places.get(line).map_or(&[][..], Vec::as_slice) {
            if j < b_low {
                continue;
            }
            if j >= b_high {
                break;
            }
            let before = j.checked_sub(1).and_then(|j| lengths.get(&j)).copied().unwrap_or(0);
            let size = before + 1;
            next.insert(j, size);
            if size > best.size {
                best = Block { a: i + 1 - size, b: j + 1 - size, size };
            }
        }
        lengths = next;
    }
    // Grow over lines that are too common to start a match.
    while best.a > a_low && best.b > b_low && a.get(best.a - 1) == b.get(best.b - 1) {
        best = Block { a: best.a - 1, b: best.b - 1, size: best.size + 1 };
    }
    while best.a + best.size < a_high
        && best.b + best.size < b_high
        && a.get(best.a + best.size) == b.get(best.b + best.size)
    {
        best.size += 1;
    }
    best
}

fn changes(blocks: &[Block], a_len: usize, b_len: usize) -> Vec<Change> {
    let mut changes = Vec::new();
    let (mut i, mut j) = (0, 0);
    for block in blocks {
        if i < block.a || j < block.b {
            changes.push(Change { equal: false, a: (i, block.a), b: (j, block.b) });
        }
        i = (block.a + block.size).min(a_len);
        j = (block.b + block.size).min(b_len);
        if block.size > 0 {
            changes.push(Change { equal: true, a: (block.a, i), b: (block.b, j) });
        }
    }
    changes
}

/// Splits the changes where more than twice the context is unchanged.
fn groups(mut changes: Vec<Change>) -> Vec<Vec<Change>> {
    if changes.iter().all(|change| change.equal) {
        return Vec::new();
    }
    if let Some(first) = changes.first_mut()
        && first.equal
    {
        first.a.0 = first.a.0.max(first.a.1.saturating_sub(CONTEXT));
        first.b.0 = first.b.0.max(first.b.1.saturating_sub(CONTEXT));
    }
    if let Some(last) = changes.last_mut()
        && last.equal
    {
        last.a.1 = last.a.1.min(last.a.0 + CONTEXT);
        last.b.1 = last.b.1.min(last.b.0 + CONTEXT);
    }
    let mut groups = Vec::new();
    let mut group = Vec::new();
    for mut change in changes {
        if change.equal && change.a.1 - change.a.0 > 2 * CONTEXT {
            let mut head = change;
            head.a.1 = head.a.0 + CONTEXT;
            head.b.1 = head.b.0 + CONTEXT;
            group.push(head);
            groups.push(std::mem::take(&mut group));
            change.a.0 = change.a.1 - CONTEXT;
            change.b.0 = change.b.1 - CONTEXT;
        }
        group.push(change);
    }
    if !(group.is_empty() || (group.len() == 1 && group.iter().all(|change| change.equal))) {
        groups.push(group);
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn far_changes_are_apart() {
        let lines: Vec<String> = (0..30).map(|i| i.to_string()).collect();
        let mut changed = lines.clone();
        changed[2] = "two".to_owned();
        changed.insert(25, "new".to_owned());
        assert_eq!(
            diff(&lines.join("\n"), &changed.join("\n")),
            "@@ -1,6 +1,6 @@\n 0\n 1\n-2\n+two\n 3\n 4\n 5\n@@ -23,6 +23,7 @@\n 22\n 23\n 24\n+new\n \
             25\n 26\n 27\n"
        );
        assert_eq!(diff("a\nb", "a\nb"), "");
    }
}
