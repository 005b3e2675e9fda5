"""The simulated EC2 and moto give the same answers to the calls that both serve.

moto is no oracle: where it is known to differ from AWS, it is not asked.
"""

import os
import unittest

os.environ["MOTO_ENABLE_AMI_VALIDATION"] = "true"
os.environ["MOTO_EC2_ENABLE_INSTANCE_TYPE_VALIDATION"] = "true"
os.environ["MOTO_ENABLE_KEYPAIR_VALIDATION"] = "true"

import boto3
from moto import mock_aws

from simulator import INSTALLED, client, code, until

ZONE = "us-east-1a"


def same(keys, shape):
    """Only these keys of a structure."""
    return {key: shape.get(key) for key in keys}


class Agreement(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.ours = client("ec2")
        cls.mock = mock_aws()
        cls.mock.start()
        cls.addClassCleanup(cls.mock.stop)
        cls.moto = boto3.client(
            "ec2", "us-east-1", aws_access_key_id="x", aws_secret_access_key="x"
        )
        vpc = cls.moto.create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
        subnet = cls.moto.create_subnet(
            VpcId=vpc, CidrBlock="10.0.0.0/18", AvailabilityZone=ZONE
        )["Subnet"]["SubnetId"]
        group = cls.moto.create_security_group(
            GroupName="demo-node", Description="d", VpcId=vpc
        )["GroupId"]
        cls.moto.create_key_pair(KeyName=INSTALLED["key_name"])
        images = cls.moto.describe_images(
            Filters=[{"Name": "architecture", "Values": ["x86_64"]}, {"Name": "platform", "Values": [""]}]
        )["Images"] or cls.moto.describe_images()["Images"]
        image = next(i for i in images if i["Architecture"] == "x86_64")["ImageId"]
        cls.there = {"image": image, "subnet": subnet, "group": group, "vpc": vpc}
        cls.here = {
            "image": INSTALLED["images"]["x86_64"],
            "subnet": INSTALLED["subnets"][ZONE],
            "group": INSTALLED["worker_group"],
            "vpc": INSTALLED["vpc"],
        }

    def both(self, ask):
        """The same question to both: (ours, moto's)."""
        return ask(self.ours, self.here), ask(self.moto, self.there)

    def agree(self, ask):
        ours, moto = self.both(ask)
        self.assertEqual(ours, moto)

    def launch(self, ec2, names, count=1, **more):
        parameters = {
            "ImageId": names["image"],
            "InstanceType": "m5.large",
            "MinCount": count,
            "MaxCount": count,
            "SubnetId": names["subnet"],
            "SecurityGroupIds": [names["group"]],
            **more,
        }
        return ec2.run_instances(**parameters)

    def made(self, ec2, names, count=1, **more):
        instances = self.launch(ec2, names, count, **more)["Instances"]
        ids = [instance["InstanceId"] for instance in instances]
        self.addCleanup(ec2.terminate_instances, InstanceIds=ids)
        until(lambda: all(i["State"]["Name"] == "running" for i in self.shown(ec2, ids)))
        return ids

    def shown(self, ec2, ids):
        answer = ec2.describe_instances(InstanceIds=ids)
        return [i for r in answer["Reservations"] for i in r["Instances"]]

    def test_instance_types(self):
        types = self.ours.get_paginator("describe_instance_types").paginate()
        names = [t["InstanceType"] for page in types for t in page["InstanceTypes"]]
        keys = [
            "BareMetal",
            "BurstablePerformanceSupported",
            "CurrentGeneration",
            "DedicatedHostsSupported",
            "Hypervisor",
            "InstanceStorageSupported",
            "MemoryInfo",
            "PlacementGroupInfo",
            "SupportedRootDeviceTypes",
            "SupportedUsageClasses",
            "SupportedVirtualizationTypes",
        ]

        def ask(ec2, _):
            found = {}
            for start in range(0, len(names), 50):
                answer = ec2.describe_instance_types(InstanceTypes=names[start : start + 50])
                for t in answer["InstanceTypes"]:
                    network = t["NetworkInfo"]
                    gpus = t.get("GpuInfo", {}).get("Gpus", [])
                    found[t["InstanceType"]] = {
                        **same(keys, t),
                        **same(["DefaultVCpus", "DefaultCores", "DefaultThreadsPerCore"], t["VCpuInfo"]),
                        **same(["SupportedArchitectures", "Manufacturer"], t["ProcessorInfo"]),
                        **same(["MaximumNetworkInterfaces", "EfaSupported", "EfaInfo"], network),
                        "gpus": [same(["Name", "Manufacturer", "Count", "MemoryInfo"], g) for g in gpus],
                    }
            return found

        self.agree(ask)

    def test_a_launch(self):
        def ask(ec2, names):
            ids = self.made(
                ec2,
                names,
                3,
                ClientToken="moto",
                KeyName=INSTALLED["key_name"],
                UserData="hello",
                TagSpecifications=[
                    {"ResourceType": "instance", "Tags": [{"Key": "Name", "Value": "w"}]}
                ],
                MetadataOptions={"HttpTokens": "required"},
            )
            keys = [
                "AmiLaunchIndex",
                "Architecture",
                "ClientToken",
                "EbsOptimized",
                "Hypervisor",
                "InstanceType",
                "KeyName",
                "Monitoring",
                "RootDeviceType",
                "SourceDestCheck",
                "State",
                "StateTransitionReason",
                "Tags",
                "VirtualizationType",
            ]
            return [
                {
                    **same(keys, i),
                    "groups": [g["GroupName"] for g in i["SecurityGroups"]],
                    "zone": i["Placement"]["AvailabilityZone"],
                    "tenancy": i["Placement"]["Tenancy"],
                    "tokens": i["MetadataOptions"]["HttpTokens"],
                    "places": (i["SubnetId"] == names["subnet"], i["VpcId"] == names["vpc"]),
                    "address": i["PrivateIpAddress"].startswith("10.0."),
                    "name": i["PrivateDnsName"]
                    == f"ip-{i['PrivateIpAddress'].replace('.', '-')}.ec2.internal",
                    "interfaces": [
                        (n["Attachment"]["DeviceIndex"], n["Status"], n["PrivateIpAddress"] == i["PrivateIpAddress"])
                        for n in i["NetworkInterfaces"]
                    ],
                    "volumes": [v["Ebs"]["DeleteOnTermination"] for v in i["BlockDeviceMappings"]],
                }
                for i in self.shown(ec2, ids)
            ]

        self.agree(ask)

    def test_filters(self):
        def ask(ec2, names):
            ids = self.made(
                ec2,
                names,
                2,
                TagSpecifications=[
                    {"ResourceType": "instance", "Tags": [{"Key": "filters", "Value": "a-b"}]}
                ],
            )
            counts = {}
            for filters in [
                {"tag:filters": ["a-b"]},
                {"tag:filters": ["a*"]},
                {"tag:filters": ["x", "a?b"]},
                {"tag-key": ["filters"]},
                {"tag:filters": ["a-b"], "instance-state-name": ["running"]},
                {"tag:filters": ["a-b"], "instance-state-name": ["stopped"]},
                {"tag:filters": ["a-b"], "instance-type": ["m5.large"]},
                {"tag:filters": ["a-b"], "subnet-id": [names["subnet"]]},
                {"tag:filters": ["a-b"], "vpc-id": ["vpc-0"]},
                {"instance-id": ids[:1]},
            ]:
                asked = [{"Name": name, "Values": values} for name, values in filters.items()]
                answer = ec2.describe_instances(Filters=asked)
                found = [i for r in answer["Reservations"] for i in r["Instances"]]
                counts[str(sorted(filters))] = counts.get(str(sorted(filters)), []) + [len(found)]
            return counts

        self.agree(ask)

    def test_tags(self):
        def ask(ec2, names):
            [id] = self.made(ec2, names)
            ec2.create_tags(Resources=[id], Tags=[{"Key": k, "Value": "1"} for k in "abc"])
            ec2.create_tags(Resources=[id], Tags=[{"Key": "a", "Value": "2"}])
            ec2.delete_tags(Resources=[id], Tags=[{"Key": "b"}])
            listed = ec2.describe_tags(Filters=[{"Name": "resource-id", "Values": [id]}])["Tags"]
            instance = self.shown(ec2, [id])[0]["Tags"]
            key = lambda tag: tag["Key"]
            return (
                [same(["Key", "Value", "ResourceType"], t) for t in sorted(listed, key=key)],
                sorted(instance, key=key),
            )

        self.agree(ask)

    def test_changes_of_state(self):
        def ask(ec2, names):
            ids = self.made(ec2, names, 2)
            seen = []

            def note(changes):
                seen.append(
                    [(c["PreviousState"]["Name"], c["CurrentState"]["Name"]) for c in changes]
                )

            def settle(state):
                until(lambda: {i["State"]["Name"] for i in self.shown(ec2, ids)} == {state})

            note(ec2.stop_instances(InstanceIds=ids)["StoppingInstances"])
            settle("stopped")
            note(ec2.start_instances(InstanceIds=ids)["StartingInstances"])
            settle("running")
            note(ec2.terminate_instances(InstanceIds=ids)["TerminatingInstances"])
            settle("terminated")
            # Again is no error. What state moto then claims is not AWS's.
            ec2.terminate_instances(InstanceIds=ids)
            return seen

        self.agree(ask)

    def test_refusals(self):
        def ask(ec2, names):
            unknown = "i-00000000000000000"
            group = {"SecurityGroupIds": [names["group"]]}
            return {
                "image": code(lambda: self.launch(ec2, names, ImageId="ami-00000000000000000")),
                "subnet": code(lambda: self.launch(ec2, names, SubnetId="subnet-00000000000000000")),
                "key": code(lambda: self.launch(ec2, names, KeyName="none")),
                "dry run": code(lambda: self.launch(ec2, names, DryRun=True, **group)),
                "describe": code(ec2.describe_instances, InstanceIds=[unknown]),
                "terminate": code(ec2.terminate_instances, InstanceIds=[unknown]),
                "images": code(ec2.describe_images, ImageIds=["ami-00000000000000000"]),
                "subnets": code(ec2.describe_subnets, SubnetIds=["subnet-00000000000000000"]),
                "vpcs": code(ec2.describe_vpcs, VpcIds=["vpc-00000000000000000"]),
                "groups": code(
                    ec2.describe_security_groups, GroupIds=["sg-00000000000000000"]
                ),
                "volumes": code(ec2.describe_volumes, VolumeIds=["vol-00000000000000000"]),
                "volume": code(ec2.delete_volume, VolumeId="vol-00000000000000000"),
                "keys": code(ec2.describe_key_pairs, KeyNames=["none"]),
                "types": code(ec2.describe_instance_types, InstanceTypes=["m5.huge"]),
            }

        self.agree(ask)

    def test_describing_what_is_there(self):
        def ask(ec2, names):
            [subnet] = ec2.describe_subnets(SubnetIds=[names["subnet"]])["Subnets"]
            [vpc] = ec2.describe_vpcs(VpcIds=[names["vpc"]])["Vpcs"]
            [group] = ec2.describe_security_groups(GroupIds=[names["group"]])["SecurityGroups"]
            zones = ec2.describe_availability_zones(ZoneNames=[ZONE])["AvailabilityZones"]
            return (
                same(["AvailabilityZone", "CidrBlock", "State", "DefaultForAz"], subnet),
                same(["CidrBlock", "State", "IsDefault", "InstanceTenancy"], vpc),
                same(["GroupName"], group),
                [same(["ZoneName", "State", "RegionName", "ZoneType"], z) for z in zones],
            )

        self.agree(ask)


if __name__ == "__main__":
    unittest.main()
