//! What would outlive the instances of a cluster: volumes and dedicated hosts.

use fleetwright_cloud::{CloudError, ErrorClass, Leftover, LeftoverKind};

use crate::{
    cloud::{AwsCloud, filter, owned_filter},
    instance::tags,
    model::ec2::requests,
};

/// A volume that nothing is attached to.
const AVAILABLE: &str = "available";
const PAGE: i64 = 500;

impl AwsCloud {
    pub(crate) async fn read_leftovers(&self, cluster: &str) -> Result<Vec<Leftover>, CloudError> {
        let mut found = Vec::new();
        let mut request = requests::DescribeVolumesRequest {
            filters: vec![owned_filter(cluster)],
            max_results: Some(PAGE),
            ..Default::default()
        };
        loop {
            let page = self.client.call(&request).await?;
            found.extend(page.volumes.into_iter().filter_map(|volume| {
                Some(Leftover {
                    kind: LeftoverKind::Volume,
                    id: volume.volume_id?,
                    in_use: volume.state.as_deref() != Some(AVAILABLE),
                    tags: tags(&volume.tags),
                })
            }));
            match page.next_token {
                Some(token) => request.next_token = Some(token),
                None => break,
            }
        }
        let states = ["available", "under-assessment"].map(str::to_owned);
        let mut request = requests::DescribeHostsRequest {
            filter: vec![owned_filter(cluster), filter("state", &states)],
            max_results: Some(PAGE),
            ..Default::default()
        };
        loop {
            let page = self.client.call(&request).await?;
            found.extend(page.hosts.into_iter().filter_map(|host| {
                Some(Leftover {
                    kind: LeftoverKind::Host,
                    id: host.host_id?,
                    in_use: !host.instances.is_empty(),
                    tags: tags(&host.tags),
                })
            }));
            match page.next_token {
                Some(token) => request.next_token = Some(token),
                None => break,
            }
        }
        Ok(found)
    }

    pub(crate) async fn remove_leftover(&self, leftover: &Leftover) -> Result<(), CloudError> {
        let outcome = match leftover.kind {
            LeftoverKind::Volume => {
                let volume_id = Some(leftover.id.clone());
                self.client.call(&requests::DeleteVolumeRequest { volume_id }).await
            }
            LeftoverKind::Host => self.release_by_id(vec![leftover.id.clone()]).await,
        };
        match outcome {
            Err(error) if error.class == ErrorClass::NotFound => Ok(()),
            outcome => outcome,
        }
    }
}
