//! A disk in memory that can fill up, fail and lose power: for simulations and tests.
//!
//! It behaves as the worst of real ones. What was written but not synced may after a power
//! failure be there, be missing or be torn, in any combination. A sync that fails drops what it
//! should have written, while reads still show it.

use std::{
    collections::{BTreeMap, BTreeSet},
    io,
    sync::Arc,
};

use fleetwright_clock::Random;
use parking_lot::Mutex;
use redb::StorageBackend;

use crate::volume::Volume;

/// What a disk writes at once, whole.
const SECTOR: usize = 512;
/// What a file system allocates at once.
const BLOCK: u64 = 4096;

/// The disk. Clones are the same disk.
#[derive(Clone, Debug, Default)]
pub struct FakeDisk(Arc<Mutex<Contents>>);

#[derive(Debug, Default)]
struct Contents {
    files: BTreeMap<u64, FakeFile>,
    current: Option<u64>,
    fresh: Option<u64>,
    next: u64,
    faults: Faults,
    /// Counts calls that change something, of all files.
    operations: u64,
}

/// What is to go wrong.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Faults {
    /// How many bytes there is room for.
    pub capacity: Option<u64>,
    /// Every write and change of length fails.
    pub fail_writes: bool,
    /// Every sync fails.
    pub fail_syncs: bool,
    /// From this operation on (writes, changes of length and syncs are counted), everything
    /// fails, as if the power were gone.
    pub dead_from: Option<u64>,
}

#[derive(Debug, Default)]
struct FakeFile {
    /// What reads show.
    seen: Vec<u8>,
    /// What a power failure leaves for certain.
    durable: Vec<u8>,
    /// What was done since the last sync.
    unsynced: Vec<Change>,
    allocated: BTreeSet<u64>,
}

#[derive(Clone, Debug)]
enum Change {
    Length(usize),
    Data(usize, Vec<u8>),
}

impl Change {
    fn apply(&self, bytes: &mut Vec<u8>) {
        match self {
            Self::Length(length) => bytes.resize(*length, 0),
            Self::Data(offset, data) => {
                let end = offset + data.len();
                if bytes.len() < end {
                    bytes.resize(end, 0);
                }
                bytes[*offset..end].copy_from_slice(data);
            }
        }
    }
}

impl FakeDisk {
    /// An empty disk without faults.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets what goes wrong from here on.
    pub fn set_faults(&self, faults: Faults) {
        self.0.lock().faults = faults;
    }

    /// How many operations there have been, for [`Faults::dead_from`].
    pub fn operations(&self) -> u64 {
        self.0.lock().operations
    }

    /// Loses power and comes back without faults. Stores that were open on the disk must be
    /// dropped before.
    pub fn lose_power(&self, random: &Random) {
        let mut contents = self.0.lock();
        contents.faults = Faults::default();
        contents.fresh = None;
        for file in contents.files.values_mut() {
            for change in std::mem::take(&mut file.unsynced) {
                match change {
                    Change::Length(_) if random.below(2) == 0 => change.apply(&mut file.durable),
                    Change::Length(_) => {}
                    Change::Data(offset, data) => {
                        // Half of them are whole, the others torn or lost.
                        let fate = random.below(4);
                        for (at, sector) in data.chunks(SECTOR).enumerate() {
                            if fate < 2 || fate == 2 && random.below(2) == 0 {
                                let sector = Change::Data(offset + at * SECTOR, sector.to_vec());
                                sector.apply(&mut file.durable);
                            }
                        }
                    }
                }
            }
            file.seen = file.durable.clone();
        }
    }

    /// Changes the bytes of the current file, as a user or a bad disk might.
    pub fn damage(&self, how: impl FnOnce(&mut Vec<u8>)) {
        let mut contents = self.0.lock();
        let current = contents.current;
        if let Some(file) = current.and_then(|current| contents.files.get_mut(&current)) {
            how(&mut file.durable);
            file.seen = file.durable.clone();
            file.unsynced.clear();
        }
    }
}

impl Contents {
    /// Counts an operation, and fails it if it is to fail.
    fn operation(&mut self, fails: impl Fn(&Faults) -> bool) -> io::Result<()> {
        self.operations += 1;
        let dead = self.faults.dead_from.is_some_and(|from| self.operations > from);
        if dead || fails(&self.faults) { Err(fault()) } else { Ok(()) }
    }
}

fn fault() -> io::Error {
    io::Error::other("the fake disk failed, as it was told to")
}

impl Volume for FakeDisk {
    fn current(&self) -> io::Result<Option<Box<dyn StorageBackend>>> {
        let current = self.0.lock().current;
        Ok(current.map(|file| -> Box<dyn StorageBackend> {
            Box::new(Handle { disk: self.clone(), file })
        }))
    }

    fn fresh(&self) -> io::Result<Box<dyn StorageBackend>> {
        let mut contents = self.0.lock();
        contents.operation(|_| false)?;
        contents.next += 1;
        let file = contents.next;
        if let Some(old) = contents.fresh.replace(file) {
            contents.files.remove(&old);
        }
        contents.files.insert(file, FakeFile::default());
        Ok(Box::new(Handle { disk: self.clone(), file }))
    }

    fn replace(&self) -> io::Result<()> {
        let mut contents = self.0.lock();
        contents.operation(|faults| faults.fail_writes)?;
        let fresh = contents.fresh.take();
        let old = std::mem::replace(&mut contents.current, fresh);
        if let Some(old) = old {
            contents.files.remove(&old);
        }
        Ok(())
    }

    fn path(&self) -> String {
        "the fake disk".into()
    }
}

#[derive(Debug)]
struct Handle {
    disk: FakeDisk,
    file: u64,
}

impl Handle {
    fn with<T>(&self, act: impl FnOnce(&mut FakeFile) -> io::Result<T>) -> io::Result<T> {
        let mut contents = self.disk.0.lock();
        act(contents.files.get_mut(&self.file).ok_or(io::ErrorKind::NotFound)?)
    }

    fn change(&self, change: Change) -> io::Result<()> {
        self.disk.0.lock().operation(|faults| faults.fail_writes)?;
        self.make_room(&change)?;
        self.with(|file| {
            change.apply(&mut file.seen);
            file.unsynced.push(change);
            Ok(())
        })
    }

    fn make_room(&self, change: &Change) -> io::Result<()> {
        let mut contents = self.disk.0.lock();
        let taken: usize = contents.files.values().map(|file| file.allocated.len()).sum();
        let room = contents.faults.capacity.map(|bytes| bytes / BLOCK);
        let file = contents.files.get_mut(&self.file).ok_or(io::ErrorKind::NotFound)?;
        match change {
            Change::Length(length) => {
                file.allocated.split_off(&(*length as u64).div_ceil(BLOCK));
            }
            Change::Data(offset, data) => {
                let (start, end) = (*offset as u64, (offset + data.len()) as u64);
                let blocks: Vec<u64> = (start / BLOCK..end.div_ceil(BLOCK))
                    .filter(|block| !file.allocated.contains(block))
                    .collect();
                if room.is_some_and(|room| (taken + blocks.len()) as u64 > room) {
                    return Err(io::ErrorKind::StorageFull.into());
                }
                file.allocated.extend(blocks);
            }
        }
        Ok(())
    }
}

impl StorageBackend for Handle {
    fn len(&self) -> io::Result<u64> {
        self.with(|file| Ok(file.seen.len() as u64))
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.with(|file| {
            let start = usize::try_from(offset).unwrap_or(usize::MAX);
            let bytes = start.checked_add(out.len()).and_then(|end| file.seen.get(start..end));
            out.copy_from_slice(bytes.ok_or(io::ErrorKind::UnexpectedEof)?);
            Ok(())
        })
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.change(Change::Length(usize::try_from(len).map_err(io::Error::other)?))
    }

    fn sync_data(&self) -> io::Result<()> {
        let mut contents = self.disk.0.lock();
        // Without power nothing is synced, but nothing is dropped either.
        contents.operation(|_| false)?;
        let fails = contents.faults.fail_syncs;
        let file = contents.files.get_mut(&self.file).ok_or(io::ErrorKind::NotFound)?;
        let changes = std::mem::take(&mut file.unsynced);
        if fails {
            return Err(fault());
        }
        for change in changes {
            change.apply(&mut file.durable);
        }
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let offset = usize::try_from(offset).map_err(io::Error::other)?;
        self.change(Change::Data(offset, data.to_vec()))
    }
}
