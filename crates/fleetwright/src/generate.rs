//! `fleetwright generate`: files of the repository that are made from what the binary knows.

mod crd_reference;
mod roles;

use clap::{Args, ValueEnum};

#[derive(Args)]
pub(crate) struct GenerateArguments {
    /// Which file.
    file: File,
}

#[derive(Clone, Copy, ValueEnum)]
enum File {
    /// docs/crds.md: every field of every kind.
    CrdReference,
    /// deploy/crds.yaml: the definitions.
    Crds,
    /// deploy/rbac.yaml: ServiceAccounts, roles and bindings.
    Rbac,
}

/// Prints one file.
pub(crate) fn run(arguments: &GenerateArguments) -> anyhow::Result<()> {
    let text = match arguments.file {
        File::CrdReference => crd_reference::page(&crate::crds::documents()?),
        File::Crds => crate::crds::yaml(&crate::crds::documents()?)?,
        File::Rbac => roles::manifest()?,
    };
    crate::print_line(text.trim_end())
}
