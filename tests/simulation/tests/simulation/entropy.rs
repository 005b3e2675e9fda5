//! Randomness of the operating system, replaced on the threads of a simulated world.
//!
//! Maps of the standard library, tokio's `select!` and others take keys from the operating system
//! once for each thread. A world runs on a thread of its own, and on it `getrandom` answers from
//! the world's seed: then a run replays exactly. Other threads get real randomness.

use std::{cell::Cell, io::Read, slice};

thread_local! {
    static STATE: Cell<u64> = const { Cell::new(0) };
}

/// From now on this thread's randomness comes from `seed`.
pub(crate) fn seed(seed: u64) {
    STATE.set(seed.wrapping_mul(2).wrapping_add(1));
}

/// One step of SplitMix64.
fn next(state: u64) -> (u64, u64) {
    let state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (state, mixed ^ (mixed >> 31))
}

/// Stands in for libc's function of this name.
#[expect(unsafe_code, reason = "the symbol that libraries call has this signature")]
#[unsafe(no_mangle)]
extern "C" fn getrandom(buffer: *mut u8, length: usize, _flags: u32) -> isize {
    if length == 0 {
        return 0;
    }
    // SAFETY: callers of getrandom(2) hand over a buffer of this length that they own.
    let bytes = unsafe { slice::from_raw_parts_mut(buffer, length) };
    let mut state = STATE.get();
    if state == 0 {
        let read = std::fs::File::open("/dev/urandom").and_then(|mut file| file.read_exact(bytes));
        return if read.is_ok() { length.cast_signed() } else { -1 };
    }
    for chunk in bytes.chunks_mut(8) {
        let (after, drawn) = next(state);
        state = after;
        chunk.copy_from_slice(&drawn.to_le_bytes()[..chunk.len()]);
    }
    STATE.set(state | 1);
    length.cast_signed()
}

#[test]
fn the_same_seed_gives_the_same_maps() {
    let hash = |with: u64| {
        let hashed = std::thread::spawn(move || {
            seed(with);
            let keys = std::hash::RandomState::new();
            std::hash::BuildHasher::hash_one(&keys, "something")
        });
        hashed.join().unwrap()
    };
    assert_eq!(hash(7), hash(7));
    assert_ne!(hash(7), hash(8));
}
