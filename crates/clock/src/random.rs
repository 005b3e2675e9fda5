//! Chance that can be replayed.

use std::{sync::Arc, time::Duration};

use parking_lot::Mutex;
use rand::{Rng, RngCore, SeedableRng, rngs::StdRng};
use uuid::{Builder, Uuid};

/// A seeded source of randomness. Clones share one stream; [`Random::fork`] starts a stream of
/// its own, so that adding a consumer does not reshuffle what the others draw.
#[derive(Clone, Debug)]
pub struct Random(Arc<Mutex<StdRng>>);

/// What Kubernetes builds generated names from: no vowels and no look-alikes, so that neither
/// words nor mistakes appear.
const NAME_ALPHABET: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";

impl Random {
    /// A stream that replays exactly from `seed`.
    pub fn seeded(seed: u64) -> Self {
        Self(Arc::new(Mutex::new(StdRng::seed_from_u64(seed))))
    }

    /// A stream seeded by the operating system.
    pub fn from_os() -> Self {
        Self(Arc::new(Mutex::new(StdRng::from_os_rng())))
    }

    /// A new stream, independent of this one from here on.
    #[must_use]
    pub fn fork(&self) -> Self {
        Self::seeded(self.0.lock().next_u64())
    }

    /// A random 64-bit number.
    pub fn u64(&self) -> u64 {
        self.0.lock().next_u64()
    }

    /// A number below `bound`, or 0 when `bound` is 0.
    pub fn below(&self, bound: u64) -> u64 {
        if bound == 0 { 0 } else { self.0.lock().random_range(0..bound) }
    }

    /// A version 4 UUID.
    pub fn uuid(&self) -> Uuid {
        let mut bytes = [0; 16];
        self.0.lock().fill_bytes(&mut bytes);
        Builder::from_random_bytes(bytes).into_uuid()
    }

    /// Fills `bytes`.
    pub fn fill(&self, bytes: &mut [u8]) {
        self.0.lock().fill_bytes(bytes);
    }

    /// A suffix for a generated name, drawn from the alphabet that Kubernetes uses.
    pub fn name_suffix(&self, length: usize) -> String {
        let mut rng = self.0.lock();
        (0..length)
            .map(|_| char::from(NAME_ALPHABET[rng.random_range(0..NAME_ALPHABET.len())]))
            .collect()
    }

    /// A number from 0 up to, but not including, 1.
    pub fn fraction(&self) -> f64 {
        self.0.lock().random()
    }

    /// `base` plus up to `fraction` of it.
    pub fn jitter(&self, base: Duration, fraction: f64) -> Duration {
        base + base.mul_f64(fraction * self.fraction())
    }
}
