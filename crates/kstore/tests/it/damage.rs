//! Files that cannot be opened are refused, with a message that helps, and are left alone.

use std::{fs, path::Path};

use fleetwright_clock::Random;
use fleetwright_kstore::{
    Expect, OpenError, Options,
    fake_disk::{FakeDisk, Faults},
};

use crate::support::{open, open_on, pod, put, run};

fn filled(path: &Path) {
    run(async {
        let store = open(path, Options::default()).unwrap();
        for n in 0..100 {
            put(&store, &pod("a", &n.to_string()), Expect::Absent, n).await.unwrap();
        }
        store.close().await;
    });
}

#[test]
fn a_store_is_opened_once_at_a_time() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(directory.path(), Options::default()).unwrap();
    let error = open(directory.path(), Options::default()).unwrap_err();
    assert!(matches!(error, OpenError::Locked { .. }), "{error:?}");
    let message = error.to_string();
    assert!(message.contains(&directory.path().display().to_string()), "{message}");
    assert!(message.contains("in use by another process"), "{message}");
    drop(store);
    open(directory.path(), Options::default()).unwrap();
}

#[test]
fn damaged_files_are_told_and_kept() {
    type Damage = fn(&mut Vec<u8>);
    let damages: [(&str, Damage); 6] = [
        ("empty", |bytes| bytes.clear()),
        ("short", |bytes| bytes.truncate(100)),
        ("half", |bytes| bytes.truncate(bytes.len() / 2)),
        ("garbage", |bytes| bytes.iter_mut().for_each(|byte| *byte = 0x5a)),
        ("zeroes", |bytes| bytes.fill(0)),
        ("other format", |bytes| *bytes = b"SQLite format 3\0".repeat(400)),
    ];
    for (name, damage) in damages {
        let directory = tempfile::tempdir().unwrap();
        filled(directory.path());
        let file = directory.path().join("objects.redb");
        let mut bytes = fs::read(&file).unwrap();
        damage(&mut bytes);
        fs::write(&file, &bytes).unwrap();
        let error = open(directory.path(), Options::default()).unwrap_err();
        let OpenError::Corrupt { path, .. } = &error else { panic!("{name}: {error:?}") };
        assert_eq!(*path, file.display().to_string());
        assert!(error.to_string().contains("restore it from a backup"), "{error}");
        assert_eq!(fs::read(&file).unwrap().len(), bytes.len(), "{name}: it was touched");
    }
}

/// Whatever bytes are flipped, opening never panics, and what opens is whole.
#[test]
fn flipped_bytes_never_panic() {
    let disk = FakeDisk::new();
    run(async {
        let store = open_on(&disk, Options::default()).unwrap();
        for n in 0..20 {
            put(&store, &pod("a", &n.to_string()), Expect::Absent, n).await.unwrap();
        }
        store.close().await;
    });
    let mut original = Vec::new();
    disk.damage(|bytes| original = bytes.clone());
    let random = Random::seeded(1);
    let (mut refused, mut opened) = (0, 0);
    for _ in 0..150 {
        disk.damage(|bytes| {
            *bytes = original.clone();
            // Most of the file is free space: aim at the beginning, and at pages in use.
            let range = if random.below(2) == 0 { 512 } else { bytes.len() as u64 };
            for _ in 0..=random.below(8) {
                let at = usize::try_from(random.below(range)).unwrap();
                bytes[at] ^= 1 << random.below(8);
            }
        });
        match open_on(&disk, Options::default()) {
            Ok(_) => opened += 1,
            Err(OpenError::Corrupt { .. } | OpenError::Format { .. }) => refused += 1,
            Err(error) => panic!("{error:?}"),
        }
    }
    assert!(refused > 0 && opened > 0, "{refused} refused, {opened} opened");
}

#[cfg(unix)]
#[test]
fn a_place_that_is_no_directory_is_told() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("file");
    fs::write(&file, "x").unwrap();
    let error = open(&file, Options::default()).unwrap_err();
    assert!(matches!(error, OpenError::Other { .. }), "{error:?}");
    assert!(error.to_string().contains("file"), "{error}");
    // A file system that nobody can write to, not even root.
    let error = open(Path::new("/proc/fleetwright"), Options::default()).unwrap_err();
    assert!(error.to_string().contains("/proc/fleetwright"), "{error}");
}

#[test]
fn leftovers_of_a_crash_do_no_harm() {
    let directory = tempfile::tempdir().unwrap();
    filled(directory.path());
    fs::write(directory.path().join("objects.redb.new"), "half a file").unwrap();
    let store = open(directory.path(), Options::default()).unwrap();
    assert_eq!(store.revision(), 101);
    assert!(!directory.path().join("objects.redb.new").exists());
}

#[test]
fn a_full_disk_is_told_and_tried_again() {
    let disk = FakeDisk::new();
    disk.set_faults(Faults { capacity: Some(0), ..Faults::default() });
    let error = open_on(&disk, Options::default()).unwrap_err();
    assert!(matches!(error, OpenError::NoSpace { .. }), "{error:?}");
    disk.set_faults(Faults::default());
    assert_eq!(open_on(&disk, Options::default()).unwrap().revision(), 1);
}

#[test]
fn another_format_is_told() {
    let directory = tempfile::tempdir().unwrap();
    filled(directory.path());
    let database = redb::Database::open(directory.path().join("objects.redb")).unwrap();
    let transaction = database.begin_write().unwrap();
    let table = redb::TableDefinition::<&str, u64>::new("meta");
    transaction.open_table(table).unwrap().insert("format", 99).unwrap();
    transaction.commit().unwrap();
    drop(database);
    let error = open(directory.path(), Options::default()).unwrap_err();
    assert!(matches!(error, OpenError::Format { found: 99, known: 1, .. }), "{error:?}");
}
