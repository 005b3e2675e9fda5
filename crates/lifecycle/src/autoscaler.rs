//! What cluster-autoscaler reads on a set: its bounds, what its instances would be, and whether it
//! looks after the set at all.
//!
//! The autoscaler does this itself; we know it so that a mistake is told when it is written, and not
//! hours later by a set that does not grow.

use std::collections::BTreeMap;

use crate::quantity;

/// How few and how many Machines the autoscaler may leave a set with.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Bounds {
    /// The fewest.
    pub min: u32,
    /// The most; none at all means that the set is left alone.
    pub max: u32,
}

/// Bounds that the autoscaler cannot use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BoundsError {
    /// The fewest is not a number of Machines.
    #[error("invalid min annotation")]
    Min,
    /// The most is not a number of Machines, or less than the fewest.
    #[error("invalid max annotation")]
    Max,
}

/// Reads both bounds. One that is missing is 0.
pub fn bounds(min: Option<&str>, max: Option<&str>) -> Result<Bounds, BoundsError> {
    let read = |text: Option<&str>| match text {
        None => Some(0),
        // As Go reads it: a sign is allowed, a space is not.
        Some(text) => text.parse::<i32>().ok().and_then(|number| u32::try_from(number).ok()),
    };
    let min = read(min).ok_or(BoundsError::Min)?;
    let max = read(max).filter(|max| *max >= min).ok_or(BoundsError::Max)?;
    Ok(Bounds { min, max })
}

/// Why the autoscaler leaves a set alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeftAlone {
    /// It may have no Machine at all.
    NoRoom,
    /// It has none, and what one would be is not known.
    UnknownCapacity,
}

/// Whether the autoscaler looks after a set.
pub fn looked_after(bounds: Bounds, replicas: i64, capacity_known: bool) -> Result<(), LeftAlone> {
    if bounds.max == 0 {
        Err(LeftAlone::NoRoom)
    } else if replicas == 0 && !capacity_known {
        Err(LeftAlone::UnknownCapacity)
    } else {
        Ok(())
    }
}

/// Something that an instance of a set has, as its annotation says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Measure {
    /// Processors, in thousandths.
    Cpu,
    /// Memory or disk, in bytes.
    Bytes,
    /// Things that are counted.
    Count,
}

impl Measure {
    /// The amount that an annotation stands for: 0 when it is missing, none when it is none.
    pub fn read(self, text: Option<&str>) -> Option<i64> {
        let Some(text) = text else { return Some(0) };
        match self {
            Self::Cpu => quantity::milli(text),
            Self::Bytes => quantity::whole(text),
            Self::Count => text.parse().ok(),
        }
    }
}

/// Labels as an annotation has them, `a=b,c=d`; what is not one key and one value is left out.
pub fn labels(text: &str) -> BTreeMap<&str, &str> {
    let pairs = text.split(',').filter_map(|pair| pair.split_once('='));
    pairs.filter(|(key, value)| !key.is_empty() && !value.contains('=')).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_of_a_set() {
        let some = |min, max| Ok(Bounds { min, max });
        for (min, max, wanted) in [
            (None, None, some(0, 0)),
            (None, Some("3"), some(0, 3)),
            (Some("3"), Some("3"), some(3, 3)),
            (Some("3"), None, Err(BoundsError::Max)),
            (Some("-1"), Some("x"), Err(BoundsError::Min)),
            (Some("1"), Some("-1"), Err(BoundsError::Max)),
            (Some(""), Some("1"), Err(BoundsError::Min)),
            (Some("0"), Some(" 1"), Err(BoundsError::Max)),
            (Some("0"), Some("99999999999"), Err(BoundsError::Max)),
        ] {
            assert_eq!(bounds(min, max), wanted, "{min:?} {max:?}");
        }
    }

    #[test]
    fn sets_that_are_left_alone() {
        let room = Bounds { min: 0, max: 5 };
        assert_eq!(looked_after(Bounds::default(), 1, true), Err(LeftAlone::NoRoom));
        assert_eq!(looked_after(room, 0, false), Err(LeftAlone::UnknownCapacity));
        assert_eq!(looked_after(room, 1, false), Ok(()));
        assert_eq!(looked_after(room, 0, true), Ok(()));
    }

    #[test]
    fn what_instances_have() {
        assert_eq!(Measure::Cpu.read(Some("0.1")), Some(100));
        assert_eq!(Measure::Bytes.read(Some("1Ki")), Some(1024));
        assert_eq!(Measure::Count.read(Some("1Ki")), None);
        assert_eq!(Measure::Count.read(None), Some(0));
        assert_eq!(labels("a=b,bad,c=d=e,f="), BTreeMap::from([("a", "b"), ("f", "")]));
    }
}
