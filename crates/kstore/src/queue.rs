//! The thread that writes to a disk, and the queue before it.
//!
//! While a commit waits for the disk, further writes gather in the queue and become the next
//! batch: the slower the disk, the larger the batches. No timer, so a lone write waits for
//! nothing.

use std::{
    sync::mpsc::{Receiver, Sender, channel},
    thread::{self, JoinHandle},
};

use parking_lot::Mutex;
use tokio::sync::oneshot;

use crate::{
    object::Index,
    write::{Change, Write, WriteError},
    writer::{Outcome, Writer},
};

/// A batch ends with this many writes, so that the first is not kept waiting for too long.
const BATCH_WRITES: usize = 1024;
/// A batch ends with about this many bytes, which bounds the memory of a transaction.
const BATCH_BYTES: usize = 8 << 20;

/// What writes are answered with when the store is closed.
pub(crate) const CLOSED: &str = "the store is closed";

enum Job<M> {
    Write { write: Write, at: i64, answer: oneshot::Sender<Outcome<M>> },
    Forget { revision: u64, at: i64, answer: oneshot::Sender<Result<(), String>> },
}

pub(crate) struct Queue<I: Index> {
    /// Gone when the store is closed.
    jobs: Mutex<Option<Sender<Job<I::Meta>>>>,
    thread: Mutex<Option<(JoinHandle<()>, oneshot::Receiver<()>)>>,
}

impl<I: Index> Queue<I> {
    pub(crate) fn start(writer: Writer<I>) -> std::io::Result<Self> {
        let (sender, receiver) = channel();
        let (ended, end) = oneshot::channel();
        let thread = thread::Builder::new().name("store-writer".into()).spawn(move || {
            run(writer, &receiver);
            // Nobody may be waiting.
            let _ = ended.send(());
        })?;
        Ok(Self { jobs: Mutex::new(Some(sender)), thread: Mutex::new(Some((thread, end))) })
    }

    pub(crate) async fn write(&self, write: Write, at: i64) -> Outcome<I::Meta> {
        let (answer, answered) = oneshot::channel();
        self.send(Job::Write { write, at, answer });
        answered.await.unwrap_or_else(|_| Err(WriteError::Unavailable(CLOSED.into())))
    }

    pub(crate) async fn forget(&self, revision: u64, at: i64) -> Result<(), String> {
        let (answer, answered) = oneshot::channel();
        self.send(Job::Forget { revision, at, answer });
        answered.await.unwrap_or_else(|_| Err(CLOSED.into()))
    }

    /// Once the thread has ended, jobs and with them their answers are dropped.
    fn send(&self, job: Job<I::Meta>) {
        if let Some(jobs) = &*self.jobs.lock() {
            let _ = jobs.send(job);
        }
    }

    /// Takes no more jobs, and waits for those that were taken and for the file to be closed.
    pub(crate) async fn close(&self) {
        self.jobs.lock().take();
        let thread = self.thread.lock().take();
        if let Some((thread, end)) = thread {
            // An error means that the thread is gone already.
            let _ = end.await;
            join(thread);
        }
    }
}

impl<I: Index> Drop for Queue<I> {
    /// As [`Queue::close`], so that the file can be opened again as soon as the store is gone.
    fn drop(&mut self) {
        self.jobs.get_mut().take();
        if let Some((thread, _)) = self.thread.get_mut().take() {
            join(thread);
        }
    }
}

fn join(thread: JoinHandle<()>) {
    if thread.join().is_err() {
        tracing::error!("the writer of the store panicked");
    }
}

fn run<I: Index>(mut writer: Writer<I>, jobs: &Receiver<Job<I::Meta>>) {
    let mut next = jobs.recv().ok();
    while let Some(job) = next {
        next = match job {
            Job::Forget { revision, at, answer } => {
                let _ = answer.send(writer.forget(revision, at));
                None
            }
            Job::Write { write, at, answer } => batch(&mut writer, jobs, write, at, answer),
        }
        .or_else(|| jobs.recv().ok());
    }
}

/// Carries out a write with those that wait behind it. Returns a job that is not a write.
fn batch<I: Index>(
    writer: &mut Writer<I>,
    jobs: &Receiver<Job<I::Meta>>,
    first: Write,
    mut at: i64,
    answer: oneshot::Sender<Outcome<I::Meta>>,
) -> Option<Job<I::Meta>> {
    let mut bytes = size(&first);
    let mut writes = vec![first];
    let mut answers = vec![answer];
    let mut other = None;
    while writes.len() < BATCH_WRITES && bytes < BATCH_BYTES {
        match jobs.try_recv() {
            Ok(Job::Write { write, at: later, answer }) => {
                bytes += size(&write);
                at = at.max(later);
                writes.push(write);
                answers.push(answer);
            }
            Ok(job) => {
                other = Some(job);
                break;
            }
            Err(_) => break,
        }
    }
    for (answer, outcome) in answers.into_iter().zip(writer.write(writes, at)) {
        // Whoever asked may have given up; the write has happened all the same.
        let _ = answer.send(outcome);
    }
    other
}

fn size(write: &Write) -> usize {
    match &write.change {
        Change::Put(body) | Change::Delete { last: Some(body) } => {
            body.head.len() + body.tail.len()
        }
        Change::Delete { last: None } => 0,
    }
}
