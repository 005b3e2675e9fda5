//! What becomes of an object, given how its owners are.

/// What a look at one owner found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OwnerState {
    /// It is there.
    Solid,
    /// There is no such object, or another one with its name.
    Absent,
    /// It is there, but waits for its dependents to go first.
    WaitsForDependents,
}

/// What there is below an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Family {
    /// Nothing.
    Childless,
    /// Dependents.
    Parent,
    /// Dependents, one of which waits for its own: it may be waiting for this object.
    PerhapsCircle,
}

/// How dependents are treated when an object is deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Propagation {
    Background,
    Foreground,
    Orphan,
}

impl Propagation {
    /// As it is written in `DeleteOptions`.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Background => "Background",
            Self::Foreground => "Foreground",
            Self::Orphan => "Orphan",
        }
    }
}

/// What is done about an object.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It stays as it is.
    Keep,
    /// It stays, without the references at these positions.
    Unlink(Vec<usize>),
    /// It goes.
    Delete {
        /// How.
        propagation: Propagation,
        /// Whether its references are made non-blocking first, to break a circle.
        unblock: bool,
    },
}

/// Decides, given the state of every owner in order. `otherwise` is how the object is deleted if
/// its owners do not say.
pub(super) fn decide(owners: &[OwnerState], family: Family, otherwise: Propagation) -> Verdict {
    if owners.is_empty() {
        return Verdict::Keep;
    }
    if owners.contains(&OwnerState::Solid) {
        // A reference to an owner that waits must go too, or that owner would wait for ever.
        let stale: Vec<usize> = (0..owners.len())
            .filter(|&at| owners.get(at).is_some_and(|state| *state != OwnerState::Solid))
            .collect();
        return if stale.is_empty() { Verdict::Keep } else { Verdict::Unlink(stale) };
    }
    if owners.contains(&OwnerState::WaitsForDependents) && family != Family::Childless {
        return Verdict::Delete {
            propagation: Propagation::Foreground,
            unblock: family == Family::PerhapsCircle,
        };
    }
    Verdict::Delete { propagation: otherwise, unblock: false }
}

#[cfg(test)]
mod tests {
    use super::{Family::*, OwnerState::*, Propagation::*, *};

    fn delete(propagation: Propagation) -> Verdict {
        Verdict::Delete { propagation, unblock: false }
    }

    #[test]
    fn owners_decide() {
        let table: &[(&[OwnerState], Family, Propagation, Verdict)] = &[
            (&[], Childless, Background, Verdict::Keep),
            (&[Solid], Childless, Background, Verdict::Keep),
            (&[Solid, Solid], Parent, Background, Verdict::Keep),
            (&[Absent], Childless, Background, delete(Background)),
            (&[Absent, Absent], Parent, Background, delete(Background)),
            (&[Absent], Parent, Orphan, delete(Orphan)),
            (&[Absent], Parent, Foreground, delete(Foreground)),
            (&[Absent, Solid], Childless, Background, Verdict::Unlink(vec![0])),
            (
                &[Solid, WaitsForDependents, Absent],
                Childless,
                Background,
                Verdict::Unlink(vec![1, 2]),
            ),
            (&[WaitsForDependents], Childless, Background, delete(Background)),
            (&[WaitsForDependents], Parent, Background, delete(Foreground)),
            (&[WaitsForDependents, Absent], Parent, Orphan, delete(Foreground)),
            (
                &[WaitsForDependents],
                PerhapsCircle,
                Background,
                Verdict::Delete { propagation: Foreground, unblock: true },
            ),
        ];
        for (owners, family, otherwise, verdict) in table {
            assert_eq!(decide(owners, *family, *otherwise), *verdict, "{owners:?} {family:?}");
        }
    }
}
