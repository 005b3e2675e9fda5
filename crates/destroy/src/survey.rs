//! What the cloud shows of a cluster.

use std::collections::BTreeSet;

use fleetwright_cloud::{Cloud, CloudError, Instance, Leftover, Other, PlacementGroup};

/// Everything that carries a cluster's owned tag.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Survey {
    /// The cluster's name in the cloud.
    pub cluster: String,
    /// Its instances, in all states.
    pub instances: Vec<Instance>,
    /// Its placement groups.
    pub groups: Vec<PlacementGroup>,
    /// Who is in them, whoever made it, terminated instances left out.
    pub members: Vec<Instance>,
    /// Its disks and hosts.
    pub leftovers: Vec<Leftover>,
    /// Everything else.
    pub others: Vec<Other>,
}

impl Survey {
    /// Looks at everything.
    pub async fn take(cloud: &dyn Cloud, cluster: &str) -> Result<Self, CloudError> {
        let mut survey = Self { cluster: cluster.to_owned(), ..Self::default() };
        survey.others = cloud.others(cluster).await?;
        survey.again(cloud).await
    }

    /// Looks again at what may change by our doing.
    pub(crate) async fn again(mut self, cloud: &dyn Cloud) -> Result<Self, CloudError> {
        // Groups before members, members before instances: what moves on in between shows as
        // further than it was, and never as gone.
        if let Some(port) = cloud.placement_groups() {
            self.groups = port.owned(&self.cluster).await?;
            let names: BTreeSet<String> = self.groups.iter().map(|it| it.name.clone()).collect();
            self.members = if names.is_empty() { Vec::new() } else { port.members(names).await? };
        }
        self.leftovers = cloud.leftovers(&self.cluster).await?;
        self.instances = cloud.inventory(&self.cluster).await?;
        Ok(self)
    }
}
