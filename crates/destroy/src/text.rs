//! Plans and outcomes, for people.

use std::fmt::Write as _;

use fleetwright_cloud::Tag;

use crate::plan::{Item, Kind, Plan, Untouched};

impl Plan {
    /// The plan of a cluster as people read it before they agree.
    pub fn describe(&self, cluster: &str) -> String {
        let mut text = String::new();
        let going: Vec<&Item> = self.going().collect();
        if going.is_empty() {
            text.push_str("There is nothing to remove.\n");
        } else {
            let _ = writeln!(text, "To be removed: {}", counts(going.iter().copied()));
            let rows = going
                .iter()
                .map(|it| [it.kind.to_string(), it.id.clone(), it.name.clone(), it.detail.clone()]);
            text.push_str(&table(rows));
        }
        text.push_str(&self.in_the_way());
        if !self.untouched.is_empty() {
            let Tag { key, value } = Tag::owned_by(cluster);
            let _ = writeln!(text, "\nLeft alone, although tagged {key}={value}:");
            let rows = self
                .untouched
                .iter()
                .map(|Untouched { kind, id, name }| [kind.clone(), id.clone(), name.clone()]);
            text.push_str(&table(rows));
        }
        text
    }

    /// What stays although it is ours, and why; empty when nothing does.
    pub fn in_the_way(&self) -> String {
        let blocked = self.blocked();
        if blocked.is_empty() {
            return String::new();
        }
        let rows = blocked.iter().map(|it| {
            [it.item.kind.to_string(), it.item.id.clone(), it.item.name.clone(), it.why.to_owned()]
        });
        format!("\nIn the way:\n{}", table(rows))
    }
}

/// `2 instances, 1 placement group`.
pub(crate) fn counts<'a>(items: impl IntoIterator<Item = &'a Item>) -> String {
    let items: Vec<Kind> = items.into_iter().map(|item| item.kind).collect();
    let counted = [Kind::Instance, Kind::Volume, Kind::Host, Kind::Group].map(|kind| {
        let count = items.iter().filter(|it| **it == kind).count();
        (count > 0).then(|| number(count, kind))
    });
    let counted: Vec<String> = counted.into_iter().flatten().collect();
    if counted.is_empty() { "nothing".to_owned() } else { counted.join(", ") }
}

/// `1 instance`, `2 instances`.
pub(crate) fn number(count: usize, kind: Kind) -> String {
    format!("{count} {kind}{}", if count == 1 { "" } else { "s" })
}

fn table<const N: usize>(rows: impl Iterator<Item = [String; N]>) -> String {
    let rows: Vec<[String; N]> = rows.collect();
    let width =
        |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..N).map(width).collect();
    let mut text = String::new();
    for row in &rows {
        let cells = row.iter().zip(&widths).filter(|(_, width)| **width > 0);
        let cells: Vec<String> = cells.map(|(cell, width)| format!("{cell:<width$}")).collect();
        let _ = writeln!(text, "  {}", cells.join("  ").trim_end());
    }
    text
}
