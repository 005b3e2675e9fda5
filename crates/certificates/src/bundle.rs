//! What a server that others must trust keeps, and when that is renewed.

use std::{collections::BTreeSet, fmt, net::IpAddr};

use fleetwright_clock::Clock;
use jiff::SignedDuration;

use crate::{
    Authority, CertificateError, Identity,
    authority::{remaining, split},
};

/// An authority is followed by a new one this long before its end. What it signs lives a year, so
/// nothing it signs outlives it, and everybody trusts the new one long before it signs anything.
const SUCCESSION: SignedDuration = SignedDuration::from_hours(24 * 400);

/// Whom a certificate is for: host names and addresses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Holder(pub BTreeSet<String>);

/// Authorities, and the certificate that clients are shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Bundle {
    /// The authorities to trust (PEM), the newest first.
    pub trusted: String,
    /// The key of the newest authority (PEM).
    pub authority_key: String,
    /// What clients are shown.
    pub serving: Identity,
}

impl fmt::Debug for Bundle {
    /// Keys are nobody's business.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { trusted, serving, .. } = self;
        f.debug_struct("Bundle")
            .field("trusted", trusted)
            .field("serving", serving)
            .finish_non_exhaustive()
    }
}

impl Bundle {
    /// A bundle of a new authority.
    pub fn generate(holder: &Holder, clock: &Clock) -> Result<Self, CertificateError> {
        let authority = Authority::generate(clock)?;
        let serving = sign(&authority, holder)?;
        let Identity { certificate, key } = authority.identity;
        Ok(Self { trusted: certificate, authority_key: key, serving })
    }

    /// What the bundle should be now; none when it is good as it is.
    ///
    /// One step at a time, so that whoever must trust a new authority does before it signs: first
    /// the authority gets its successor, and only a later look signs with it.
    pub fn renewed(
        &self,
        holder: &Holder,
        clock: &Clock,
    ) -> Result<Option<Self>, CertificateError> {
        let now = clock.now();
        let valid: Vec<&str> = split(&self.trusted)
            .filter(|certificate| remaining(certificate, now).is_positive())
            .collect();
        let Some(newest) = valid.first() else {
            return Self::generate(holder, clock).map(Some);
        };
        if remaining(newest, now) < SUCCESSION {
            let Identity { certificate, key } = Authority::generate(clock)?.identity;
            let trusted = format!("{certificate}{}", valid.concat());
            return Ok(Some(Self { trusted, authority_key: key, serving: self.serving.clone() }));
        }
        let names = self.serving.names();
        if self.serving.is_fresh(now) && holder.0.is_subset(&names) {
            return Ok(None);
        }
        let identity =
            Identity { certificate: (*newest).to_owned(), key: self.authority_key.clone() };
        // Several servers may share the bundle under different names: none loses its own.
        let holder = Holder(&holder.0 | &names);
        match sign(&Authority::load(identity, clock), &holder) {
            Ok(serving) => Ok(Some(Self { trusted: valid.concat(), serving, ..self.clone() })),
            // A key that does not fit: whoever wrote it has to be written over.
            Err(_) => Self::generate(&holder, clock).map(Some),
        }
    }
}

fn sign(authority: &Authority, holder: &Holder) -> Result<Identity, CertificateError> {
    let (addresses, names): (Vec<_>, Vec<_>) = holder
        .0
        .iter()
        .map(|name| name.parse::<IpAddr>().map_err(|_| name.as_str()))
        .partition(Result::is_ok);
    let addresses: Vec<IpAddr> = addresses.into_iter().filter_map(Result::ok).collect();
    let names: Vec<&str> = names.into_iter().filter_map(Result::err).collect();
    authority.server(&names, &addresses)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(time: &str) -> Clock {
        Clock::simulated(time.parse().expect("a time"))
    }

    fn holder(names: &[&str]) -> Holder {
        Holder(names.iter().map(|name| (*name).to_owned()).collect())
    }

    #[tokio::test(start_paused = true)]
    async fn a_bundle_is_renewed_before_its_end_and_keeps_its_authority() {
        let holder = holder(&["hooks.ns.svc", "127.0.0.1"]);
        let bundle = Bundle::generate(&holder, &at("2026-01-01T00:00:00Z")).expect("a bundle");
        assert_eq!(bundle.serving.names(), holder.0);
        for good in ["2026-01-01T00:00:00Z", "2026-11-20T00:00:00Z"] {
            assert_eq!(bundle.renewed(&holder, &at(good)).expect("a look"), None, "{good}");
        }
        let later = at("2026-12-10T00:00:00Z");
        let renewed = bundle.renewed(&holder, &later).expect("a look").expect("a new one");
        assert_eq!(renewed.trusted, bundle.trusted);
        assert_ne!(renewed.serving, bundle.serving);
        assert_eq!(renewed.renewed(&holder, &later).expect("a look"), None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_new_authority_is_trusted_before_it_signs() {
        let holder = holder(&["hooks.ns.svc"]);
        let bundle = Bundle::generate(&holder, &at("2026-01-01T00:00:00Z")).expect("a bundle");
        let late = at("2035-01-01T00:00:00Z");
        let followed = bundle.renewed(&holder, &late).expect("a look").expect("a successor");
        assert_eq!(split(&followed.trusted).count(), 2);
        assert!(followed.trusted.ends_with(&bundle.trusted));
        assert_eq!(followed.serving, bundle.serving, "nothing is shown that is not trusted yet");
        let signed = followed.renewed(&holder, &late).expect("a look").expect("a certificate");
        assert_eq!(signed.trusted, followed.trusted);
        assert_ne!(signed.serving, followed.serving);
        // The first authority is dropped when its time is over.
        let over = at("2036-06-01T00:00:00Z");
        let alone = signed.renewed(&holder, &over).expect("a look").expect("a certificate");
        assert_eq!(split(&alone.trusted).count(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn names_are_added_and_never_lost() {
        let clock = at("2026-01-01T00:00:00Z");
        let bundle = Bundle::generate(&holder(&["a"]), &clock).expect("a bundle");
        let both = bundle.renewed(&holder(&["b"]), &clock).expect("a look").expect("another");
        assert_eq!(both.serving.names(), holder(&["a", "b"]).0);
        assert_eq!(both.renewed(&holder(&["a"]), &clock).expect("a look"), None);
    }

    #[tokio::test(start_paused = true)]
    async fn what_cannot_be_used_is_made_anew() {
        let clock = at("2026-01-01T00:00:00Z");
        let good = Bundle::generate(&holder(&["a"]), &clock).expect("a bundle");
        let nothing = Identity { certificate: String::new(), key: String::new() };
        for broken in [
            Bundle { trusted: "nonsense".to_owned(), ..good.clone() },
            Bundle { authority_key: String::new(), serving: nothing.clone(), ..good.clone() },
            Bundle { serving: nothing, ..good.clone() },
        ] {
            let mended = broken.renewed(&holder(&["a"]), &clock).expect("a look").expect("another");
            assert_eq!(mended.renewed(&holder(&["a"]), &clock).expect("a look"), None);
        }
    }
}
