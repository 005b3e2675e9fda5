//! Why a step could not be taken.

/// A request that failed. Whoever asked for it tries again later.
#[derive(Debug, thiserror::Error)]
#[error("could not {what} {object}")]
pub(crate) struct Failure {
    what: &'static str,
    object: String,
    #[source]
    source: kube::Error,
}

/// The outcome of requests.
pub(crate) trait Outcome<T> {
    /// Says what was attempted.
    fn trying(self, what: &'static str, object: impl ToString) -> Result<T, Failure>;

    /// `None` if the object is gone, or is another one under the same name: nothing is left to
    /// do for it.
    fn unless_gone(self) -> Result<Option<T>, kube::Error>;
}

impl<T> Outcome<T> for Result<T, kube::Error> {
    fn trying(self, what: &'static str, object: impl ToString) -> Result<T, Failure> {
        self.map_err(|source| Failure { what, object: object.to_string(), source })
    }

    fn unless_gone(self) -> Result<Option<T>, kube::Error> {
        match self {
            Ok(value) => Ok(Some(value)),
            Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// Whether the server says that an object of this name exists.
pub(crate) fn exists_already(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.reason == "AlreadyExists")
}
