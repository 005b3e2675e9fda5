//! The kubelet's credentials are rotated, and the handler follows.

use std::{
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
};

use fleetwright_apiserver::user::{AUTHENTICATED, UserInfo};
use fleetwright_node::{
    access::{Access, AccessError, Contents, Credentials},
    aws::AwsSettings,
};
use futures::future::{BoxFuture, FutureExt as _};
use kube::Client;
use serde_json::json;

use crate::yard::{NODE, Yard};

/// Credentials whose files say which of two clients they are for.
struct Rotating {
    old: Client,
    new: Client,
    generation: Arc<AtomicU32>,
    connected: Arc<AtomicU32>,
}

impl Credentials for Rotating {
    fn contents(&self) -> Contents {
        let generation = self.generation.load(Ordering::SeqCst);
        Contents::from([(
            PathBuf::from("kubelet-client-current.pem"),
            generation.to_le_bytes().to_vec(),
        )])
    }

    fn connect(&self) -> BoxFuture<'_, Result<Client, AccessError>> {
        self.connected.fetch_add(1, Ordering::SeqCst);
        let rotated = self.generation.load(Ordering::SeqCst) > 0;
        let client = if rotated { &self.new } else { &self.old };
        futures::future::ready(Ok(client.clone())).boxed()
    }
}

#[tokio::test(start_paused = true)]
async fn rotated_credentials_are_read_when_the_old_ones_are_refused() {
    let mut yard = Yard::without_handler(json!({})).await;
    let (generation, connected) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
    let credentials = Rotating {
        old: yard.client(UserInfo::new("system:node:gone", &["system:nodes", AUTHENTICATED])),
        new: yard.kubelet(NODE),
        generation: Arc::clone(&generation),
        connected: Arc::clone(&connected),
    };
    yard.start_with(AwsSettings::default(), Access::new(credentials), yard.clock.clone());
    yard.pass(300).await;
    assert_eq!(connected.load(Ordering::SeqCst), 1, "the same files, the same client");
    yard.interrupt();
    yard.pass(10).await;
    assert!(!yard.is_marked().await);
    generation.store(1, Ordering::SeqCst);
    yard.pass(61).await;
    assert!(yard.is_marked().await, "compared once a minute");
    assert_eq!(connected.load(Ordering::SeqCst), 2);
}

#[tokio::test(start_paused = true)]
async fn a_refusal_has_the_files_read_at_once() {
    let mut yard = Yard::without_handler(json!({})).await;
    let (generation, connected) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
    let credentials = Rotating {
        old: yard.kubelet(NODE),
        new: yard.kubelet(NODE),
        generation: Arc::clone(&generation),
        connected: Arc::clone(&connected),
    };
    yard.start_with(AwsSettings::default(), Access::new(credentials), yard.clock.clone());
    yard.pass(5).await;
    generation.store(1, Ordering::SeqCst);
    yard.interrupt();
    yard.door.refuse(1, 401);
    yard.pass(4).await;
    assert!(yard.is_marked().await);
    assert_eq!(connected.load(Ordering::SeqCst), 2);
}
