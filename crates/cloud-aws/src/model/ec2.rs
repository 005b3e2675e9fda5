// Written by `cargo xtask generate` from the public service model; do not edit.
// Selection: a442c0b0bf7ea49fac694ffcb643e50977569cbd264de1b02dbac52883de9021

//! Amazon Elastic Compute Cloud.

use super::{Kind, Operation, Service, operation, request, response};

/// The service.
pub const SERVICE: Service = Service {
    name: "ec2",
    endpoint: "ec2",
    version: "2016-11-15",
};

/// The operations that we call.
pub const OPERATIONS: &[&str] = &[
    "AllocateHosts",
    "CreatePlacementGroup",
    "CreateTags",
    "DeletePlacementGroup",
    "DeleteVolume",
    "DescribeAvailabilityZones",
    "DescribeDhcpOptions",
    "DescribeHosts",
    "DescribeImages",
    "DescribeInstanceTypes",
    "DescribeInstances",
    "DescribePlacementGroups",
    "DescribeSecurityGroups",
    "DescribeSubnets",
    "DescribeTags",
    "DescribeVolumes",
    "DescribeVpcs",
    "ReleaseHosts",
    "RunInstances",
    "TerminateInstances",
];

operation! { AllocateHosts, Kind::Repeatable, None, requests::AllocateHostsRequest => responses::AllocateHostsResult }

operation! { CreatePlacementGroup, Kind::Write, None, requests::CreatePlacementGroupRequest => responses::CreatePlacementGroupResult }

operation! { CreateTags, Kind::Repeatable, None, requests::CreateTagsRequest => () }

operation! { DeletePlacementGroup, Kind::Repeatable, None, requests::DeletePlacementGroupRequest => () }

operation! { DeleteVolume, Kind::Repeatable, None, requests::DeleteVolumeRequest => () }

operation! { DescribeAvailabilityZones, Kind::Read, None, requests::DescribeAvailabilityZonesRequest => responses::DescribeAvailabilityZonesResult }

operation! { DescribeDhcpOptions, Kind::Read, None, requests::DescribeDhcpOptionsRequest => responses::DescribeDhcpOptionsResult }

operation! { DescribeHosts, Kind::Read, None, requests::DescribeHostsRequest => responses::DescribeHostsResult }

operation! { DescribeImages, Kind::Read, None, requests::DescribeImagesRequest => responses::DescribeImagesResult }

operation! { DescribeInstanceTypes, Kind::Read, None, requests::DescribeInstanceTypesRequest => responses::DescribeInstanceTypesResult }

operation! { DescribeInstances, Kind::Read, None, requests::DescribeInstancesRequest => responses::DescribeInstancesResult }

operation! { DescribePlacementGroups, Kind::Read, None, requests::DescribePlacementGroupsRequest => responses::DescribePlacementGroupsResult }

operation! { DescribeSecurityGroups, Kind::Read, None, requests::DescribeSecurityGroupsRequest => responses::DescribeSecurityGroupsResult }

operation! { DescribeSubnets, Kind::Read, None, requests::DescribeSubnetsRequest => responses::DescribeSubnetsResult }

operation! { DescribeTags, Kind::Read, None, requests::DescribeTagsRequest => responses::DescribeTagsResult }

operation! { DescribeVolumes, Kind::Read, None, requests::DescribeVolumesRequest => responses::DescribeVolumesResult }

operation! { DescribeVpcs, Kind::Read, None, requests::DescribeVpcsRequest => responses::DescribeVpcsResult }

operation! { ReleaseHosts, Kind::Repeatable, None, requests::ReleaseHostsRequest => responses::ReleaseHostsResult }

operation! { RunInstances, Kind::Repeatable, None, requests::RunInstancesRequest => responses::Reservation }

operation! { TerminateInstances, Kind::Repeatable, None, requests::TerminateInstancesRequest => responses::TerminateInstancesResult }

/// What is sent.
pub mod requests {
    use super::request;

    request! {
        AllocateHostsRequest {
            auto_placement: Option<String> = "AutoPlacement",
            availability_zone: Option<String> = "AvailabilityZone",
            client_token: Option<String> = "ClientToken",
            instance_type: Option<String> = "InstanceType",
            quantity: Option<i64> = "Quantity",
            tag_specifications: Vec<TagSpecification> = "TagSpecification",
        }
    }

    request! {
        BlockDeviceMapping {
            device_name: Option<String> = "DeviceName",
            ebs: Option<EbsBlockDevice> = "Ebs",
        }
    }

    request! {
        CapacityReservationSpecification {
            capacity_reservation_target: Option<CapacityReservationTarget> = "CapacityReservationTarget",
        }
    }

    request! {
        CapacityReservationTarget {
            capacity_reservation_id: Option<String> = "CapacityReservationId",
        }
    }

    request! {
        CpuOptionsRequest {
            amd_sev_snp: Option<String> = "AmdSevSnp",
        }
    }

    request! {
        CreatePlacementGroupRequest {
            group_name: Option<String> = "GroupName",
            partition_count: Option<i64> = "PartitionCount",
            strategy: Option<String> = "Strategy",
            tag_specifications: Vec<TagSpecification> = "TagSpecification",
        }
    }

    request! {
        CreateTagsRequest {
            resources: Vec<String> = "ResourceId",
            tags: Vec<Tag> = "Tag",
        }
    }

    request! {
        DeletePlacementGroupRequest {
            group_name: Option<String> = "GroupName",
        }
    }

    request! {
        DeleteVolumeRequest {
            volume_id: Option<String> = "VolumeId",
        }
    }

    request! {
        DescribeAvailabilityZonesRequest {
            zone_names: Vec<String> = "ZoneName",
        }
    }

    request! {
        DescribeDhcpOptionsRequest {
            dhcp_options_ids: Vec<String> = "DhcpOptionsId",
        }
    }

    request! {
        DescribeHostsRequest {
            filter: Vec<Filter> = "Filter",
            max_results: Option<i64> = "MaxResults",
            next_token: Option<String> = "NextToken",
        }
    }

    request! {
        DescribeImagesRequest {
            filters: Vec<Filter> = "Filter",
            image_ids: Vec<String> = "ImageId",
        }
    }

    request! {
        DescribeInstanceTypesRequest {
            instance_types: Vec<String> = "InstanceType",
        }
    }

    request! {
        DescribeInstancesRequest {
            filters: Vec<Filter> = "Filter",
            instance_ids: Vec<String> = "InstanceId",
            max_results: Option<i64> = "MaxResults",
            next_token: Option<String> = "NextToken",
        }
    }

    request! {
        DescribePlacementGroupsRequest {
            filters: Vec<Filter> = "Filter",
        }
    }

    request! {
        DescribeSecurityGroupsRequest {
            filters: Vec<Filter> = "Filter",
            next_token: Option<String> = "NextToken",
        }
    }

    request! {
        DescribeSubnetsRequest {
            filters: Vec<Filter> = "Filter",
            subnet_ids: Vec<String> = "SubnetId",
        }
    }

    request! {
        DescribeTagsRequest {
            filters: Vec<Filter> = "Filter",
            max_results: Option<i64> = "MaxResults",
            next_token: Option<String> = "NextToken",
        }
    }

    request! {
        DescribeVolumesRequest {
            filters: Vec<Filter> = "Filter",
            max_results: Option<i64> = "MaxResults",
            next_token: Option<String> = "NextToken",
        }
    }

    request! {
        DescribeVpcsRequest {
            vpc_ids: Vec<String> = "VpcId",
        }
    }

    request! {
        EbsBlockDevice {
            delete_on_termination: Option<bool> = "DeleteOnTermination",
            encrypted: Option<bool> = "Encrypted",
            iops: Option<i64> = "Iops",
            kms_key_id: Option<String> = "KmsKeyId",
            throughput: Option<i64> = "Throughput",
            volume_size: Option<i64> = "VolumeSize",
            volume_type: Option<String> = "VolumeType",
        }
    }

    request! {
        Filter {
            name: Option<String> = "Name",
            values: Vec<String> = "Value",
        }
    }

    request! {
        IamInstanceProfileSpecification {
            arn: Option<String> = "Arn",
            name: Option<String> = "Name",
        }
    }

    request! {
        InstanceMarketOptionsRequest {
            market_type: Option<String> = "MarketType",
            spot_options: Option<SpotMarketOptions> = "SpotOptions",
        }
    }

    request! {
        InstanceMetadataOptionsRequest {
            http_protocol_ipv6: Option<String> = "HttpProtocolIpv6",
            http_tokens: Option<String> = "HttpTokens",
        }
    }

    request! {
        InstanceNetworkInterfaceSpecification {
            associate_carrier_ip_address: Option<bool> = "AssociateCarrierIpAddress",
            associate_public_ip_address: Option<bool> = "AssociatePublicIpAddress",
            device_index: Option<i64> = "DeviceIndex",
            groups: Vec<String> = "SecurityGroupId",
            interface_type: Option<String> = "InterfaceType",
            subnet_id: Option<String> = "SubnetId",
        }
    }

    request! {
        Placement {
            affinity: Option<String> = "Affinity",
            availability_zone: Option<String> = "AvailabilityZone",
            group_name: Option<String> = "GroupName",
            host_id: Option<String> = "HostId",
            partition_number: Option<i64> = "PartitionNumber",
            tenancy: Option<String> = "Tenancy",
        }
    }

    request! {
        PrivateDnsNameOptionsRequest {
            enable_resource_name_dns_aaaa_record: Option<bool> = "EnableResourceNameDnsAAAARecord",
            enable_resource_name_dns_a_record: Option<bool> = "EnableResourceNameDnsARecord",
            hostname_type: Option<String> = "HostnameType",
        }
    }

    request! {
        ReleaseHostsRequest {
            host_ids: Vec<String> = "HostId",
        }
    }

    request! {
        RunInstancesRequest {
            block_device_mappings: Vec<BlockDeviceMapping> = "BlockDeviceMapping",
            capacity_reservation_specification: Option<CapacityReservationSpecification> = "CapacityReservationSpecification",
            client_token: Option<String> = "ClientToken",
            cpu_options: Option<CpuOptionsRequest> = "CpuOptions",
            iam_instance_profile: Option<IamInstanceProfileSpecification> = "IamInstanceProfile",
            image_id: Option<String> = "ImageId",
            instance_market_options: Option<InstanceMarketOptionsRequest> = "InstanceMarketOptions",
            instance_type: Option<String> = "InstanceType",
            key_name: Option<String> = "KeyName",
            max_count: Option<i64> = "MaxCount",
            metadata_options: Option<InstanceMetadataOptionsRequest> = "MetadataOptions",
            min_count: Option<i64> = "MinCount",
            network_interfaces: Vec<InstanceNetworkInterfaceSpecification> = "NetworkInterface",
            placement: Option<Placement> = "Placement",
            private_dns_name_options: Option<PrivateDnsNameOptionsRequest> = "PrivateDnsNameOptions",
            tag_specifications: Vec<TagSpecification> = "TagSpecification",
            user_data: Option<String> = "UserData",
        }
    }

    request! {
        SpotMarketOptions {
            instance_interruption_behavior: Option<String> = "InstanceInterruptionBehavior",
            max_price: Option<String> = "MaxPrice",
            spot_instance_type: Option<String> = "SpotInstanceType",
        }
    }

    request! {
        Tag {
            key: Option<String> = "Key",
            value: Option<String> = "Value",
        }
    }

    request! {
        TagSpecification {
            resource_type: Option<String> = "ResourceType",
            tags: Vec<Tag> = "Tag",
        }
    }

    request! {
        TerminateInstancesRequest {
            instance_ids: Vec<String> = "InstanceId",
        }
    }
}

/// What is answered.
pub mod responses {
    use super::response;

    response! {
        AllocateHostsResult {
            host_ids: Vec<String> = "hostIdSet",
        }
    }

    response! {
        AttributeValue {
            value: Option<String> = "value",
        }
    }

    response! {
        AvailabilityZone {
            zone_type: Option<String> = "zoneType",
        }
    }

    response! {
        CreatePlacementGroupResult {
            placement_group: Option<PlacementGroup> = "placementGroup",
        }
    }

    response! {
        DescribeAvailabilityZonesResult {
            availability_zones: Vec<AvailabilityZone> = "availabilityZoneInfo",
        }
    }

    response! {
        DescribeDhcpOptionsResult {
            dhcp_options: Vec<DhcpOptions> = "dhcpOptionsSet",
        }
    }

    response! {
        DescribeHostsResult {
            hosts: Vec<Host> = "hostSet",
            next_token: Option<String> = "nextToken",
        }
    }

    response! {
        DescribeImagesResult {
            images: Vec<Image> = "imagesSet",
        }
    }

    response! {
        DescribeInstanceTypesResult {
            instance_types: Vec<InstanceTypeInfo> = "instanceTypeSet",
        }
    }

    response! {
        DescribeInstancesResult {
            next_token: Option<String> = "nextToken",
            reservations: Vec<Reservation> = "reservationSet",
        }
    }

    response! {
        DescribePlacementGroupsResult {
            placement_groups: Vec<PlacementGroup> = "placementGroupSet",
        }
    }

    response! {
        DescribeSecurityGroupsResult {
            next_token: Option<String> = "nextToken",
            security_groups: Vec<SecurityGroup> = "securityGroupInfo",
        }
    }

    response! {
        DescribeSubnetsResult {
            subnets: Vec<Subnet> = "subnetSet",
        }
    }

    response! {
        DescribeTagsResult {
            next_token: Option<String> = "nextToken",
            tags: Vec<TagDescription> = "tagSet",
        }
    }

    response! {
        DescribeVolumesResult {
            next_token: Option<String> = "nextToken",
            volumes: Vec<Volume> = "volumeSet",
        }
    }

    response! {
        DescribeVpcsResult {
            vpcs: Vec<Vpc> = "vpcSet",
        }
    }

    response! {
        DhcpConfiguration {
            key: Option<String> = "key",
            values: Vec<AttributeValue> = "valueSet",
        }
    }

    response! {
        DhcpOptions {
            dhcp_configurations: Vec<DhcpConfiguration> = "dhcpConfigurationSet",
        }
    }

    response! {
        EbsInstanceBlockDevice {
            volume_id: Option<String> = "volumeId",
        }
    }

    response! {
        GpuDeviceInfo {
            count: Option<i64> = "count",
            manufacturer: Option<String> = "manufacturer",
        }
    }

    response! {
        GpuInfo {
            gpus: Vec<GpuDeviceInfo> = "gpus",
        }
    }

    response! {
        Host {
            host_id: Option<String> = "hostId",
            instances: Vec<HostInstance> = "instances",
            state: Option<String> = "state",
            tags: Vec<Tag> = "tagSet",
        }
    }

    response! {
        HostInstance {
            instance_id: Option<String> = "instanceId",
        }
    }

    response! {
        Image {
            creation_date: Option<String> = "creationDate",
            image_id: Option<String> = "imageId",
            root_device_name: Option<String> = "rootDeviceName",
        }
    }

    response! {
        Instance {
            ami_launch_index: Option<i64> = "amiLaunchIndex",
            block_device_mappings: Vec<InstanceBlockDeviceMapping> = "blockDeviceMapping",
            client_token: Option<String> = "clientToken",
            instance_id: Option<String> = "instanceId",
            instance_lifecycle: Option<String> = "instanceLifecycle",
            instance_type: Option<String> = "instanceType",
            launch_time: Option<String> = "launchTime",
            network_interfaces: Vec<InstanceNetworkInterface> = "networkInterfaceSet",
            placement: Option<Placement> = "placement",
            private_dns_name: Option<String> = "privateDnsName",
            public_dns_name: Option<String> = "dnsName",
            public_ip_address: Option<String> = "ipAddress",
            state: Option<InstanceState> = "instanceState",
            state_reason: Option<StateReason> = "stateReason",
            tags: Vec<Tag> = "tagSet",
            vpc_id: Option<String> = "vpcId",
        }
    }

    response! {
        InstanceBlockDeviceMapping {
            ebs: Option<EbsInstanceBlockDevice> = "ebs",
        }
    }

    response! {
        InstanceIpv6Address {
            ipv6_address: Option<String> = "ipv6Address",
        }
    }

    response! {
        InstanceNetworkInterface {
            ipv6_addresses: Vec<InstanceIpv6Address> = "ipv6AddressesSet",
            private_ip_addresses: Vec<InstancePrivateIpAddress> = "privateIpAddressesSet",
            status: Option<String> = "status",
        }
    }

    response! {
        InstancePrivateIpAddress {
            private_ip_address: Option<String> = "privateIpAddress",
        }
    }

    response! {
        InstanceState {
            name: Option<String> = "name",
        }
    }

    response! {
        InstanceTypeInfo {
            gpu_info: Option<GpuInfo> = "gpuInfo",
            instance_type: Option<String> = "instanceType",
            memory_info: Option<MemoryInfo> = "memoryInfo",
            placement_group_info: Option<PlacementGroupInfo> = "placementGroupInfo",
            processor_info: Option<ProcessorInfo> = "processorInfo",
            v_cpu_info: Option<VCpuInfo> = "vCpuInfo",
        }
    }

    response! {
        MemoryInfo {
            size_in_mi_b: Option<i64> = "sizeInMiB",
        }
    }

    response! {
        Placement {
            affinity: Option<String> = "affinity",
            availability_zone: Option<String> = "availabilityZone",
            group_name: Option<String> = "groupName",
            host_id: Option<String> = "hostId",
            partition_number: Option<i64> = "partitionNumber",
            tenancy: Option<String> = "tenancy",
        }
    }

    response! {
        PlacementGroup {
            group_id: Option<String> = "groupId",
            group_name: Option<String> = "groupName",
            partition_count: Option<i64> = "partitionCount",
            state: Option<String> = "state",
            strategy: Option<String> = "strategy",
            tags: Vec<Tag> = "tagSet",
        }
    }

    response! {
        PlacementGroupInfo {
            supported_strategies: Vec<String> = "supportedStrategies",
        }
    }

    response! {
        ProcessorInfo {
            supported_architectures: Vec<String> = "supportedArchitectures",
        }
    }

    response! {
        ReleaseHostsResult {
            unsuccessful: Vec<UnsuccessfulItem> = "unsuccessful",
        }
    }

    response! {
        Reservation {
            instances: Vec<Instance> = "instancesSet",
        }
    }

    response! {
        SecurityGroup {
            group_id: Option<String> = "groupId",
        }
    }

    response! {
        StateReason {
            code: Option<String> = "code",
        }
    }

    response! {
        Subnet {
            availability_zone: Option<String> = "availabilityZone",
            subnet_id: Option<String> = "subnetId",
        }
    }

    response! {
        Tag {
            key: Option<String> = "key",
            value: Option<String> = "value",
        }
    }

    response! {
        TagDescription {
            key: Option<String> = "key",
            resource_id: Option<String> = "resourceId",
            resource_type: Option<String> = "resourceType",
            value: Option<String> = "value",
        }
    }

    response! { TerminateInstancesResult {} }

    response! {
        UnsuccessfulItem {
            error: Option<UnsuccessfulItemError> = "error",
            resource_id: Option<String> = "resourceId",
        }
    }

    response! {
        UnsuccessfulItemError {
            code: Option<String> = "code",
            message: Option<String> = "message",
        }
    }

    response! {
        VCpuInfo {
            default_v_cpus: Option<i64> = "defaultVCpus",
        }
    }

    response! {
        Volume {
            attachments: Vec<VolumeAttachment> = "attachmentSet",
            state: Option<String> = "status",
            tags: Vec<Tag> = "tagSet",
            volume_id: Option<String> = "volumeId",
        }
    }

    response! {
        VolumeAttachment {
            instance_id: Option<String> = "instanceId",
        }
    }

    response! {
        Vpc {
            dhcp_options_id: Option<String> = "dhcpOptionsId",
        }
    }
}
