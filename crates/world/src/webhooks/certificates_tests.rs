//! The certificate is made once, shared, renewed in time, and somebody else's is only read.

use std::{fs, path::Path, time::Duration};

use fleetwright_apiserver::{
    embedded::{Embedded, Running},
    user::{MASTERS, UserInfo},
};
use fleetwright_certificates::{Bundle, Holder};
use fleetwright_clock::{Clock, Random};
use k8s_openapi::api::core::v1::Secret;
use kube::{
    Api,
    api::{DeleteParams, PostParams},
};
use tokio::{task::JoinSet, time::sleep};
use tokio_util::sync::CancellationToken;

use super::certificates::{Keeper, Place};
use crate::{
    client::in_process,
    seed::{self, SYSTEM_NAMESPACE},
};

const NAME: &str = "hooks";

fn holder() -> Holder {
    Holder(["hooks.svc".to_owned()].into())
}

fn at(time: &str) -> Clock {
    Clock::simulated(time.parse().unwrap())
}

fn now() -> Clock {
    at("2026-01-01T00:00:00Z")
}

fn put(folder: &Path, bundle: &Bundle) {
    fs::write(folder.join("tls.crt"), &bundle.serving.certificate).unwrap();
    fs::write(folder.join("tls.key"), &bundle.serving.key).unwrap();
    fs::write(folder.join("ca.crt"), &bundle.trusted).unwrap();
}

fn shown(folder: &Path) -> String {
    fs::read_to_string(folder.join("tls.crt")).unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_folder_of_ours_is_filled_kept_and_renewed() {
    let folder = tempfile::tempdir().unwrap();
    let inside = folder.path().join("deep");
    let open = async |clock| Keeper::open(Place::Folder(inside.clone()), holder(), clock).await;
    let first = open(now()).await.unwrap();
    let certificate = shown(&inside);
    let again = open(now()).await.unwrap();
    assert_eq!(*first.trusted().borrow(), *again.trusted().borrow());
    assert_eq!(shown(&inside), certificate);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        for file in fs::read_dir(&inside).unwrap() {
            assert_eq!(file.unwrap().metadata().unwrap().permissions().mode() & 0o777, 0o600);
        }
    }
    let later = open(at("2026-12-20T00:00:00Z")).await.unwrap();
    assert_eq!(*first.trusted().borrow(), *later.trusted().borrow());
    assert_ne!(shown(&inside), certificate, "it would have ended within the month");
}

#[tokio::test(start_paused = true)]
async fn a_folder_of_somebody_else_is_read_and_never_written() {
    let folder = tempfile::tempdir().unwrap();
    let old = Bundle::generate(&holder(), &at("2020-01-01T00:00:00Z")).unwrap();
    put(folder.path(), &old);
    let place = Place::Folder(folder.path().to_owned());
    let keeper = Keeper::open(place, holder(), now()).await.unwrap();
    let mut trusted = keeper.trusted();
    let stop = CancellationToken::new();
    let mut tasks = JoinSet::new();
    tasks.spawn(keeper.run(None, stop.clone()));
    sleep(Duration::from_hours(3)).await;
    assert_eq!(*trusted.borrow_and_update(), old.trusted);
    assert_eq!(shown(folder.path()), old.serving.certificate);

    let new = Bundle::generate(&holder(), &now()).unwrap();
    put(folder.path(), &new);
    trusted.changed().await.unwrap();
    assert_eq!(*trusted.borrow(), new.trusted);
    assert!(!folder.path().join("ca.key").exists());
    stop.cancel();
    while tasks.join_next().await.is_some() {}

    fs::write(folder.path().join("tls.key"), "nonsense").unwrap();
    let place = Place::Folder(folder.path().to_owned());
    let refused = Keeper::open(place, holder(), now()).await.err().unwrap().to_string();
    assert!(refused.contains("cannot use the certificate of the webhooks"), "{refused}");
}

async fn cluster() -> (Running, Api<Secret>) {
    let running = Embedded::in_memory(&now(), Random::seeded(1), |_| true).await.unwrap();
    let client = in_process(running.server(), UserInfo::new("us", &[MASTERS]), "default");
    seed::namespace(&client, SYSTEM_NAMESPACE).await.unwrap();
    (running, Api::namespaced(client, SYSTEM_NAMESPACE))
}

fn field(secret: &Secret, key: &str) -> String {
    String::from_utf8(secret.data.as_ref().unwrap()[key].0.clone()).unwrap()
}

#[tokio::test(start_paused = true)]
async fn replicas_share_a_secret_and_one_of_them_renews_it() {
    let (running, api) = cluster().await;
    let open = async |clock| {
        let place = Place::Secret { api: Box::new(api.clone()), name: NAME.to_owned() };
        Keeper::open(place, holder(), clock).await.unwrap()
    };
    let (first, second) = tokio::join!(open(now()), open(now()));
    assert_eq!(*first.trusted().borrow(), *second.trusted().borrow());
    let before = api.get(NAME).await.unwrap();
    assert_eq!(before.type_.as_deref(), Some("kubernetes.io/tls"));
    assert_eq!(field(&before, "ca.crt"), *first.trusted().borrow());

    let late = "2026-12-20T00:00:00Z";
    let (third, fourth) = tokio::join!(open(at(late)), open(at(late)));
    let after = api.get(NAME).await.unwrap();
    assert_eq!(field(&after, "ca.crt"), *third.trusted().borrow());
    assert_eq!(*third.trusted().borrow(), *fourth.trusted().borrow());
    assert_ne!(field(&after, "tls.crt"), field(&before, "tls.crt"));

    // One that is broken, or gone, is made anew.
    let mut broken = after.clone();
    broken.data.as_mut().unwrap().remove("tls.key");
    api.delete(NAME, &DeleteParams::default()).await.unwrap();
    broken.metadata.resource_version = None;
    broken.metadata.uid = None;
    broken.type_ = None;
    api.create(&PostParams::default(), &broken).await.unwrap();
    open(at(late)).await;
    let mended = api.get(NAME).await.unwrap();
    assert_ne!(field(&mended, "tls.crt"), field(&after, "tls.crt"));
    assert!(field(&mended, "tls.key").contains("PRIVATE KEY"));
    running.stop().await;
}
