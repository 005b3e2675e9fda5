//! Conditions, and how a new one replaces an old one.

use jiff::Timestamp;

/// What a condition says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Status {
    /// It holds.
    True,
    /// It does not.
    False,
    /// Nobody knows.
    Unknown,
}

impl Status {
    /// As the API writes it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::True => "True",
            Self::False => "False",
            Self::Unknown => "Unknown",
        }
    }

    /// Reads what the API writes; anything else is nobody's knowledge.
    pub fn parse(text: &str) -> Self {
        match text {
            "True" => Self::True,
            "False" => Self::False,
            _ => Self::Unknown,
        }
    }
}

/// Severity of a condition that is false and should not be.
pub const SEVERITY_ERROR: &str = "Error";
/// Severity of a condition that is false for now.
pub const SEVERITY_WARNING: &str = "Warning";
/// Severity of a condition that is false as it should be.
pub const SEVERITY_INFO: &str = "Info";

/// A condition of a Machine, MachineSet or MachineHealthCheck. The conditions of newer kinds have
/// no severity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    /// What it is about.
    pub kind: String,
    /// What it says.
    pub status: Status,
    /// How bad that is; empty when it holds.
    pub severity: String,
    /// Why, in one word.
    pub reason: String,
    /// Why, for people.
    pub message: String,
    /// Since when; none until it is set on an object.
    pub since: Option<Timestamp>,
}

impl Condition {
    /// A condition that holds.
    pub fn holds(kind: &str) -> Self {
        Self::new(kind, Status::True, "", "", "")
    }

    /// A condition that does not hold.
    pub fn fails(kind: &str, reason: &str, severity: &str, message: impl Into<String>) -> Self {
        Self::new(kind, Status::False, severity, reason, message)
    }

    /// A condition that nobody can tell.
    pub fn unknown(kind: &str, reason: &str, message: impl Into<String>) -> Self {
        Self::new(kind, Status::Unknown, "", reason, message)
    }

    fn new(
        kind: &str,
        status: Status,
        severity: &str,
        reason: &str,
        message: impl Into<String>,
    ) -> Self {
        Self {
            kind: kind.to_owned(),
            status,
            severity: severity.to_owned(),
            reason: reason.to_owned(),
            message: message.into(),
            since: None,
        }
    }

    /// The same with a message.
    #[must_use]
    pub fn with_message(mut self, message: impl Into<String>) -> Self {
        self.message = message.into();
        self
    }

    /// The same with a reason.
    #[must_use]
    pub fn with_reason(mut self, reason: &str) -> Self {
        reason.clone_into(&mut self.reason);
        self
    }
}

/// What makes a condition's time move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// Conditions of `machine.openshift.io/v1beta1`: any difference counts, and they are sorted by
    /// type.
    Sorted,
    /// Conditions of `metav1`: only the status counts, and they stay where they are.
    Metav1,
}

/// The condition of a kind.
pub fn get<'a>(conditions: &'a [Condition], kind: &str) -> Option<&'a Condition> {
    conditions.iter().find(|condition| condition.kind == kind)
}

/// Whether a condition is there and holds.
pub fn is_true(conditions: &[Condition], kind: &str) -> bool {
    get(conditions, kind).is_some_and(|condition| condition.status == Status::True)
}

/// Sets a condition at a time. Says whether anything changed.
pub fn set(
    conditions: &mut Vec<Condition>,
    mut wanted: Condition,
    now: Timestamp,
    style: Style,
) -> bool {
    let before = conditions.clone();
    let at = conditions.iter().position(|condition| condition.kind == wanted.kind);
    let known = at.map(|index| &conditions[index]);
    let moves = known.is_none_or(|known| match style {
        Style::Sorted => !same(known, &wanted),
        Style::Metav1 => known.status != wanted.status,
    });
    wanted.since = match known {
        Some(known) if !moves && known.since.is_some() => known.since,
        _ => Some(wanted.since.unwrap_or_else(|| whole_second(now))),
    };
    match at {
        Some(index) => conditions[index] = wanted,
        None => conditions.push(wanted),
    }
    if style == Style::Sorted {
        conditions.sort_by(|one, other| one.kind.cmp(&other.kind));
    }
    *conditions != before
}

/// Removes a condition. Says whether it was there.
pub fn remove(conditions: &mut Vec<Condition>, kind: &str) -> bool {
    let before = conditions.len();
    conditions.retain(|condition| condition.kind != kind);
    conditions.len() != before
}

/// Whether two conditions say the same; the time does not count.
pub fn same(one: &Condition, other: &Condition) -> bool {
    Condition { since: None, ..one.clone() } == Condition { since: None, ..other.clone() }
}

/// Whether two lists say the same, wherever their conditions stand; times do not count.
pub fn same_all(one: &[Condition], other: &[Condition]) -> bool {
    one.len() == other.len()
        && one
            .iter()
            .all(|condition| get(other, &condition.kind).is_some_and(|twin| same(condition, twin)))
}

/// The API keeps whole seconds, so a finer time would differ from what is read back.
pub fn whole_second(time: Timestamp) -> Timestamp {
    Timestamp::from_second(time.as_second()).unwrap_or(time)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_millisecond(second * 1000 + 250).unwrap()
    }

    fn time_of(conditions: &[Condition], kind: &str) -> i64 {
        get(conditions, kind).unwrap().since.unwrap().as_second()
    }

    #[test]
    fn any_difference_moves_the_time_of_a_sorted_condition() {
        let base = Condition::fails("Drained", "DrainError", SEVERITY_WARNING, "one");
        let others = [
            Condition { status: Status::Unknown, ..base.clone() },
            Condition { severity: SEVERITY_ERROR.to_owned(), ..base.clone() },
            base.clone().with_reason("Other"),
            base.clone().with_message("two"),
        ];
        for other in others {
            let mut conditions = Vec::new();
            assert!(set(&mut conditions, base.clone(), at(1), Style::Sorted));
            assert!(!set(&mut conditions, base.clone(), at(2), Style::Sorted));
            assert_eq!(time_of(&conditions, "Drained"), 1);
            assert!(set(&mut conditions, other, at(3), Style::Sorted));
            assert_eq!(time_of(&conditions, "Drained"), 3);
        }
    }

    #[test]
    fn only_the_status_moves_the_time_of_a_metav1_condition() {
        let mut conditions = Vec::new();
        let base = Condition::holds("Ready").with_reason("A");
        set(&mut conditions, base.clone(), at(1), Style::Metav1);
        assert!(set(&mut conditions, base.with_reason("B"), at(2), Style::Metav1));
        assert_eq!(time_of(&conditions, "Ready"), 1);
        set(&mut conditions, Condition::unknown("Ready", "B", ""), at(3), Style::Metav1);
        assert_eq!(time_of(&conditions, "Ready"), 3);
    }

    #[test]
    fn sorted_by_type_or_left_in_place() {
        for (style, wanted) in [(Style::Sorted, ["A", "B"]), (Style::Metav1, ["B", "A"])] {
            let mut conditions = Vec::new();
            set(&mut conditions, Condition::holds("B"), at(1), style);
            set(&mut conditions, Condition::holds("A"), at(1), style);
            let kinds: Vec<&str> = conditions.iter().map(|found| found.kind.as_str()).collect();
            assert_eq!(kinds, wanted);
        }
    }

    #[test]
    fn lists_are_the_same_whatever_their_order_and_times() {
        let mut one = Vec::new();
        set(&mut one, Condition::holds("B"), at(1), Style::Metav1);
        set(&mut one, Condition::holds("A"), at(1), Style::Metav1);
        let mut other = vec![Condition::holds("A"), Condition::holds("B")];
        assert!(same_all(&one, &other));
        other[0].reason = "Why".to_owned();
        assert!(!same_all(&one, &other));
        assert!(remove(&mut other, "A"));
        assert!(!remove(&mut other, "A"));
        assert!(!same_all(&one, &other));
    }
}
