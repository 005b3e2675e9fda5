//! `fleetwright generate`: files of the repository that are made from what the binary knows.

mod crd_reference;

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
}

/// Prints one file.
pub(crate) fn run(arguments: &GenerateArguments) -> anyhow::Result<()> {
    let text = match arguments.file {
        File::CrdReference => crd_reference::page(&crate::crds::documents()?),
    };
    crate::print_line(text.trim_end())
}
