//! Placement groups.

use std::collections::BTreeSet;

use fleetwright_cloud::{
    ErrorClass, GroupOrder, GroupState, Instance, PlacementGroup, PlacementGroups, PortFuture,
    Strategy,
};

use crate::{
    cloud::{AwsCloud, FILTER_VALUES, filter, owned_filter},
    instance::tags,
    launch::tag_specification,
    model::ec2::{requests, responses},
};

/// Every state in which a member still counts.
const NOT_TERMINATED: [&str; 5] = ["pending", "running", "shutting-down", "stopping", "stopped"];

impl PlacementGroups for AwsCloud {
    fn describe(&self, names: BTreeSet<String>) -> PortFuture<'_, Vec<PlacementGroup>> {
        Box::pin(async move {
            let mut groups = Vec::new();
            let names: Vec<String> = names.into_iter().collect();
            for names in names.chunks(FILTER_VALUES) {
                // A filter leaves out what does not exist; a list of names is refused for it.
                let request = requests::DescribePlacementGroupsRequest {
                    filters: vec![filter("group-name", names)],
                };
                let answer = self.client.call(&request).await?;
                groups.extend(answer.placement_groups.iter().filter_map(group));
            }
            Ok(groups)
        })
    }

    fn create(&self, order: GroupOrder) -> PortFuture<'_, PlacementGroup> {
        Box::pin(async move {
            let request = requests::CreatePlacementGroupRequest {
                group_name: Some(order.name.clone()),
                partition_count: order.partitions.map(i64::from),
                strategy: Some(order.strategy.as_str().to_owned()),
                tag_specifications: vec![tag_specification("placement-group", &order.tags)],
            };
            let made = self.client.call(&request).await?.placement_group;
            // It was made, whatever is said of it; what is not said is what was ordered.
            let ordered = PlacementGroup {
                name: order.name,
                id: String::new(),
                strategy: order.strategy,
                partitions: order.partitions,
                state: GroupState::Pending,
                tags: order.tags.into_iter().map(|tag| (tag.key, tag.value)).collect(),
            };
            Ok(made.as_ref().and_then(group).unwrap_or(ordered))
        })
    }

    fn delete<'a>(&'a self, name: &'a str) -> PortFuture<'a, ()> {
        Box::pin(async move {
            let request =
                requests::DeletePlacementGroupRequest { group_name: Some(name.to_owned()) };
            match self.client.call(&request).await {
                Err(error) if error.class == ErrorClass::NotFound => Ok(()),
                outcome => outcome,
            }
        })
    }

    fn owned<'a>(&'a self, cluster: &'a str) -> PortFuture<'a, Vec<PlacementGroup>> {
        Box::pin(async move {
            let request =
                requests::DescribePlacementGroupsRequest { filters: vec![owned_filter(cluster)] };
            let answer = self.client.call(&request).await?;
            Ok(answer.placement_groups.iter().filter_map(group).collect())
        })
    }

    fn members(&self, names: BTreeSet<String>) -> PortFuture<'_, Vec<Instance>> {
        Box::pin(async move {
            let names: Vec<String> = names.into_iter().collect();
            let mut members = Vec::new();
            for names in names.chunks(FILTER_VALUES) {
                let states = NOT_TERMINATED.map(str::to_owned);
                let filters = vec![
                    filter("placement-group-name", names),
                    filter("instance-state-name", &states),
                ];
                members.extend(self.read(filters).await?);
            }
            Ok(members)
        })
    }
}

fn group(shown: &responses::PlacementGroup) -> Option<PlacementGroup> {
    Some(PlacementGroup {
        name: shown.group_name.clone()?,
        id: shown.group_id.clone().unwrap_or_default(),
        strategy: strategy(shown.strategy.as_deref()?)?,
        partitions: shown.partition_count.and_then(|count| u32::try_from(count).ok()),
        state: match shown.state.as_deref()? {
            "available" => GroupState::Available,
            "deleting" => GroupState::Deleting,
            "deleted" => GroupState::Deleted,
            _ => GroupState::Pending,
        },
        tags: tags(&shown.tags),
    })
}

pub(crate) fn strategy(word: &str) -> Option<Strategy> {
    [Strategy::Cluster, Strategy::Spread, Strategy::Partition]
        .into_iter()
        .find(|strategy| strategy.as_str() == word)
}
