//! What would outlive the instances of a cluster: volumes and dedicated hosts; and what else bears
//! its tag.

use std::collections::BTreeMap;

use fleetwright_cloud::{CloudError, ErrorClass, Leftover, LeftoverKind, Other, Tag};

use crate::{
    cloud::{AwsCloud, FILTER_VALUES, filter, owned_filter},
    instance::tags,
    model::ec2::{requests, responses},
};

/// A volume that nothing is attached to.
const AVAILABLE: &str = "available";
const PAGE: i64 = 500;
/// Tags in a page.
const TAGS: i64 = 1000;
/// What is read with all that is known of it: instances, placement groups and leftovers.
const KNOWN: [&str; 4] = ["instance", "volume", "placement-group", "dedicated-host"];

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
                let users = volume.attachments.into_iter();
                Some(Leftover {
                    kind: LeftoverKind::Volume,
                    id: volume.volume_id?,
                    in_use: volume.state.as_deref() != Some(AVAILABLE),
                    users: users.filter_map(|attached| attached.instance_id).collect(),
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
                    users: host.instances.into_iter().filter_map(|it| it.instance_id).collect(),
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

    pub(crate) async fn read_others(&self, cluster: &str) -> Result<Vec<Other>, CloudError> {
        let owned = Tag::owned_by(cluster);
        let mut found: BTreeMap<String, Other> = BTreeMap::new();
        let filters = vec![filter("key", &[owned.key]), filter("value", &[owned.value])];
        for tag in self.read_tags(filters).await? {
            let (Some(id), Some(kind)) = (tag.resource_id, tag.resource_type) else { continue };
            if !KNOWN.contains(&kind.as_str()) {
                found.insert(id.clone(), Other { kind, id, tags: BTreeMap::new() });
            }
        }
        let ids: Vec<String> = found.keys().cloned().collect();
        for ids in ids.chunks(FILTER_VALUES) {
            for tag in self.read_tags(vec![filter("resource-id", ids)]).await? {
                let other = tag.resource_id.and_then(|id| found.get_mut(&id));
                if let (Some(other), Some(key)) = (other, tag.key) {
                    other.tags.insert(key, tag.value.unwrap_or_default());
                }
            }
        }
        Ok(found.into_values().collect())
    }

    async fn read_tags(
        &self,
        filters: Vec<requests::Filter>,
    ) -> Result<Vec<responses::TagDescription>, CloudError> {
        let mut request = requests::DescribeTagsRequest {
            filters,
            max_results: Some(TAGS),
            ..Default::default()
        };
        let mut found = Vec::new();
        loop {
            let page = self.client.call(&request).await?;
            found.extend(page.tags);
            match page.next_token {
                Some(token) => request.next_token = Some(token),
                None => return Ok(found),
            }
        }
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
