"""boto3 drives every operation of the simulated AWS, faults and pages included."""

import base64
import unittest

import botocore.exceptions

import service_model
import simulator
from simulator import INSTALLED, client, code, control, settings, until

ZONE = "us-east-1a"


def launch(count=1, **more):
    parameters = {
        "ImageId": INSTALLED["images"]["x86_64"],
        "InstanceType": "m5.large",
        "MinCount": count,
        "MaxCount": count,
        "SubnetId": INSTALLED["subnets"][ZONE],
        "SecurityGroupIds": [INSTALLED["worker_group"]],
        **more,
    }
    return {key: value for key, value in parameters.items() if value is not None}


def tagged(kind, **tags):
    return {"ResourceType": kind, "Tags": [{"Key": k, "Value": v} for k, v in tags.items()]}


class Ec2(unittest.TestCase):
    ec2 = client("ec2")

    def run_instances(self, count=1, **more):
        answer = self.ec2.run_instances(**launch(count, **more))
        ids = [instance["InstanceId"] for instance in answer["Instances"]]
        self.addCleanup(self.ec2.terminate_instances, InstanceIds=ids)
        return answer["Instances"]

    def describe(self, ids):
        pages = self.ec2.get_paginator("describe_instances").paginate(InstanceIds=ids)
        return [i for p in pages for r in p["Reservations"] for i in r["Instances"]]

    def state(self, id):
        return self.describe([id])[0]["State"]["Name"]

    def test_a_launch_with_every_field(self):
        made = self.run_instances(
            2,
            ClientToken="every-field",
            KeyName=INSTALLED["key_name"],
            IamInstanceProfile={"Name": INSTALLED["worker_profile"]},
            UserData="hello",
            BlockDeviceMappings=[
                {
                    "DeviceName": "/dev/xvda",
                    "Ebs": {"VolumeSize": 120, "VolumeType": "gp3", "Encrypted": True, "Iops": 4000},
                },
                {
                    "DeviceName": "/dev/sdb",
                    "Ebs": {"VolumeSize": 10, "VolumeType": "io1", "Iops": 100},
                },
            ],
            TagSpecifications=[
                tagged("instance", Name="w", **{"kubernetes.io/cluster/demo": "owned"}),
                tagged("volume", Name="w"),
            ],
            MetadataOptions={"HttpTokens": "required", "HttpPutResponseHopLimit": 2},
            CpuOptions={"CoreCount": 1, "ThreadsPerCore": 1},
            Placement={"Tenancy": "dedicated"},
            Monitoring={"Enabled": True},
            EbsOptimized=True,
            PrivateDnsNameOptions={"HostnameType": "resource-name"},
        )
        self.assertEqual([i["AmiLaunchIndex"] for i in made], [0, 1])
        one = made[0]
        self.assertEqual(one["State"], {"Code": 0, "Name": "pending"})
        self.assertEqual(one["PrivateDnsName"], one["InstanceId"] + ".ec2.internal")
        self.assertEqual(one["MetadataOptions"]["HttpTokens"], "required")
        self.assertEqual(one["Placement"]["Tenancy"], "dedicated")
        self.assertEqual(one["SecurityGroups"][0]["GroupId"], INSTALLED["worker_group"])
        self.assertTrue(one["IamInstanceProfile"]["Arn"].endswith(INSTALLED["worker_profile"]))
        self.assertEqual(len(one["BlockDeviceMappings"]), 2)
        volumes = self.ec2.describe_volumes(
            Filters=[{"Name": "attachment.instance-id", "Values": [one["InstanceId"]]}]
        )["Volumes"]
        self.assertEqual(sorted(v["Size"] for v in volumes), [10, 120])
        self.assertTrue(all(v["Tags"] == [{"Key": "Name", "Value": "w"}] for v in volumes))

    def test_tokens(self):
        first = self.run_instances(ClientToken="tokens")
        again = self.ec2.run_instances(**launch(ClientToken="tokens"))["Instances"]
        self.assertEqual([i["InstanceId"] for i in again], [i["InstanceId"] for i in first])
        other = code(self.ec2.run_instances, **launch(2, ClientToken="tokens"))
        self.assertEqual(other, (400, "IdempotentParameterMismatch"))
        id = first[0]["InstanceId"]
        self.ec2.terminate_instances(InstanceIds=[id])
        until(lambda: self.state(id) == "terminated")
        gone = code(self.ec2.run_instances, **launch(ClientToken="tokens"))
        self.assertEqual(gone, (400, "IdempotentInstanceTerminated"))

    def test_life(self):
        id = self.run_instances()[0]["InstanceId"]
        self.ec2.get_waiter("instance_running").wait(
            InstanceIds=[id], WaiterConfig={"Delay": 1, "MaxAttempts": 20}
        )
        status = lambda: self.ec2.describe_instance_status(InstanceIds=[id])["InstanceStatuses"]
        until(lambda: status()[0]["InstanceStatus"]["Status"] == "ok")
        change = self.ec2.stop_instances(InstanceIds=[id])["StoppingInstances"][0]
        self.assertEqual(change["PreviousState"]["Name"], "running")
        self.assertEqual(change["CurrentState"]["Name"], "stopping")
        until(lambda: self.state(id) == "stopped")
        self.assertEqual(status(), [])
        everything = self.ec2.describe_instance_status(InstanceIds=[id], IncludeAllInstances=True)
        self.assertEqual(everything["InstanceStatuses"][0]["InstanceState"]["Name"], "stopped")
        self.ec2.start_instances(InstanceIds=[id])
        until(lambda: self.state(id) == "running")
        self.ec2.terminate_instances(InstanceIds=[id])
        until(lambda: self.state(id) == "terminated")
        gone = self.describe([id])[0]
        self.assertEqual(gone["StateReason"]["Code"], "Client.UserInitiatedShutdown")
        self.assertNotIn("PrivateIpAddress", gone)

    def test_pages(self):
        made = self.run_instances(12, TagSpecifications=[tagged("instance", pages="yes")])
        pages = self.ec2.get_paginator("describe_instances").paginate(
            Filters=[{"Name": "tag:pages", "Values": ["y*"]}], PaginationConfig={"PageSize": 5}
        )
        pages = [[i for r in p["Reservations"] for i in r["Instances"]] for p in pages]
        self.assertEqual([len(page) for page in pages], [5, 5, 2])
        seen = [i["InstanceId"] for page in pages for i in page]
        self.assertEqual(seen, [i["InstanceId"] for i in made])
        for name, size in [
            ("describe_instance_types", 30),
            ("describe_instance_type_offerings", 40),
            ("describe_subnets", 5),
            ("describe_security_groups", 5),
            ("describe_volumes", 5),
            ("describe_tags", 20),
        ]:
            pages = self.ec2.get_paginator(name).paginate(PaginationConfig={"PageSize": size})
            self.assertGreater(len(list(pages)), 1, name)
        self.assertEqual(
            code(self.ec2.describe_instances, MaxResults=4), (400, "InvalidParameterValue")
        )
        self.assertEqual(
            code(self.ec2.describe_instances, NextToken="x"), (400, "InvalidParameterValue")
        )

    def test_groups(self):
        self.ec2.create_placement_group(
            GroupName="spread",
            Strategy="spread",
            TagSpecifications=[tagged("placement-group", owner="test")],
        )
        made = self.ec2.create_placement_group(
            GroupName="partition", Strategy="partition", PartitionCount=3
        )["PlacementGroup"]
        self.assertEqual((made["State"], made["PartitionCount"]), ("available", 3))
        duplicate = code(self.ec2.create_placement_group, GroupName="spread", Strategy="cluster")
        self.assertEqual(duplicate, (400, "InvalidPlacementGroup.Duplicate"))
        found = self.ec2.describe_placement_groups(
            Filters=[{"Name": "tag:owner", "Values": ["test"]}]
        )["PlacementGroups"]
        self.assertEqual([g["GroupName"] for g in found], ["spread"])
        self.assertEqual(found[0]["SpreadLevel"], "rack")
        instances = self.run_instances(7, Placement={"GroupName": "spread"})
        with self.assertRaises(botocore.exceptions.ClientError) as raised:
            self.ec2.run_instances(**launch(Placement={"GroupName": "spread"}))
        error = raised.exception.response
        self.assertEqual(error["Error"]["Code"], "InsufficientInstanceCapacity")
        self.assertEqual(error["ResponseMetadata"]["HTTPStatusCode"], 500)
        self.assertIn("limit of instances in this spread placement group", error["Error"]["Message"])
        members = self.run_instances(3, Placement={"GroupName": "partition"})
        self.assertEqual([i["Placement"]["PartitionNumber"] for i in members], [1, 2, 3])
        chosen = self.run_instances(Placement={"GroupId": made["GroupId"], "PartitionNumber": 2})
        self.assertEqual(chosen[0]["Placement"]["PartitionNumber"], 2)
        in_use = code(self.ec2.delete_placement_group, GroupName="spread")
        self.assertEqual(in_use, (400, "InvalidPlacementGroup.InUse"))
        ids = [i["InstanceId"] for i in instances + members + chosen]
        self.ec2.terminate_instances(InstanceIds=ids)
        until(lambda: code(self.ec2.delete_placement_group, GroupName="spread") == (200, None))
        until(lambda: code(self.ec2.delete_placement_group, GroupName="partition") == (200, None))
        names = {"GroupNames": ["spread"]}
        gone = (400, "InvalidPlacementGroup.Unknown")
        until(lambda: code(self.ec2.describe_placement_groups, **names) == gone)

    def test_tags(self):
        one = self.run_instances()[0]
        id, volume = one["InstanceId"], one["BlockDeviceMappings"][0]["Ebs"]["VolumeId"]
        self.ec2.create_tags(Resources=[id, volume], Tags=[{"Key": "a b", "Value": "<é>&"}])
        tags = self.ec2.describe_tags(
            Filters=[{"Name": "resource-id", "Values": [id, volume]}, {"Name": "key", "Values": ["a*"]}]
        )["Tags"]
        self.assertEqual({t["ResourceType"] for t in tags}, {"instance", "volume"})
        self.assertEqual({t["Value"] for t in tags}, {"<é>&"})
        self.ec2.delete_tags(Resources=[id], Tags=[{"Key": "a b"}])
        self.assertNotIn("Tags", self.describe([id])[0])
        reserved = [{"Key": "aws:x", "Value": ""}]
        refused = code(self.ec2.create_tags, Resources=[id], Tags=reserved)
        self.assertEqual(refused, (400, "InvalidParameterValue"))
        many = [{"Key": str(n), "Value": ""} for n in range(51)]
        refused = code(self.ec2.create_tags, Resources=[id], Tags=many)
        self.assertEqual(refused, (400, "TagLimitExceeded"))

    def test_the_catalogue(self):
        images = self.ec2.describe_images(
            Filters=[{"Name": "architecture", "Values": ["x86_64"]}, {"Name": "name", "Values": ["rhcos-*"]}]
        )["Images"]
        newest = max(images, key=lambda image: image["CreationDate"])
        self.assertEqual(newest["ImageId"], INSTALLED["images"]["x86_64"])
        unknown = code(self.ec2.describe_images, ImageIds=["ami-00000000000000000"])
        self.assertEqual(unknown, (400, "InvalidAMIID.NotFound"))
        [gpu] = self.ec2.describe_instance_types(InstanceTypes=["g4dn.12xlarge"])["InstanceTypes"]
        self.assertEqual(gpu["GpuInfo"]["Gpus"][0]["Count"], 4)
        unknown = code(self.ec2.describe_instance_types, InstanceTypes=["m5.huge"])
        self.assertEqual(unknown, (400, "InvalidInstanceType"))
        [key] = self.ec2.describe_key_pairs(KeyNames=[INSTALLED["key_name"]])["KeyPairs"]
        self.assertEqual(key["KeyType"], "rsa")
        offered = self.ec2.describe_instance_type_offerings(
            LocationType="availability-zone",
            Filters=[{"Name": "instance-type", "Values": ["m5.large"]}],
        )["InstanceTypeOfferings"]
        self.assertEqual(len(offered), 3)

    def test_the_network(self):
        name = "demo-subnet-private-us-east-1b"
        [subnet] = self.ec2.describe_subnets(
            Filters=[
                {"Name": "tag:Name", "Values": [name]},
                {"Name": "availabilityZone", "Values": ["us-east-1b"]},
            ]
        )["Subnets"]
        self.assertEqual(subnet["SubnetId"], INSTALLED["subnets"]["us-east-1b"])
        groups = self.ec2.describe_security_groups(
            Filters=[{"Name": "tag:Name", "Values": ["demo-node", "demo-lb", "demo-worker-sg"]}]
        )["SecurityGroups"]
        self.assertEqual(len(groups), 3)
        [vpc] = self.ec2.describe_vpcs(VpcIds=[INSTALLED["vpc"]])["Vpcs"]
        [options] = self.ec2.describe_dhcp_options(DhcpOptionsIds=[vpc["DhcpOptionsId"]])["DhcpOptions"]
        names = {c["Key"]: [v["Value"] for v in c["Values"]] for c in options["DhcpConfigurations"]}
        self.assertEqual(names["domain-name"], ["ec2.internal"])
        zones = self.ec2.describe_availability_zones(
            Filters=[{"Name": "zone-type", "Values": ["availability-zone"]}]
        )["AvailabilityZones"]
        self.assertEqual([z["ZoneName"] for z in zones], ["us-east-1a", "us-east-1b", "us-east-1c"])
        self.assertEqual(self.ec2.describe_regions()["Regions"][0]["RegionName"], "us-east-1")
        unknown = code(self.ec2.describe_subnets, SubnetIds=["subnet-00000000000000000"])
        self.assertEqual(unknown, (400, "InvalidSubnetID.NotFound"))

    def test_volumes_that_stay(self):
        kept = [{"DeviceName": "/dev/sdb", "Ebs": {"VolumeSize": 3, "DeleteOnTermination": False}}]
        [one] = self.run_instances(BlockDeviceMappings=kept)
        volume = one["BlockDeviceMappings"][1]["Ebs"]["VolumeId"]
        self.assertEqual(code(self.ec2.delete_volume, VolumeId=volume), (400, "VolumeInUse"))
        self.ec2.terminate_instances(InstanceIds=[one["InstanceId"]])
        self.ec2.get_waiter("volume_available").wait(
            VolumeIds=[volume], WaiterConfig={"Delay": 1, "MaxAttempts": 20}
        )
        self.ec2.delete_volume(VolumeId=volume)
        gone = code(self.ec2.describe_volumes, VolumeIds=[volume])
        self.assertEqual(gone, (400, "InvalidVolume.NotFound"))

    def test_spot(self):
        spot = {
            "MarketType": "spot",
            "SpotOptions": {
                "SpotInstanceType": "one-time",
                "InstanceInterruptionBehavior": "terminate",
                "MaxPrice": "0.05",
            },
        }
        tags = [tagged("spot-instances-request", Name="s")]
        [one] = self.run_instances(InstanceMarketOptions=spot, TagSpecifications=tags)
        self.assertEqual(one["InstanceLifecycle"], "spot")
        request = one["SpotInstanceRequestId"]
        describe = lambda: self.ec2.describe_spot_instance_requests(
            SpotInstanceRequestIds=[request]
        )["SpotInstanceRequests"][0]
        self.assertEqual((describe()["State"], describe()["Tags"][0]["Value"]), ("active", "s"))
        with settings({"delays": {"spotNotice": 0.1}}):
            price = {"zone": ZONE, "instanceType": "m5.large", "price": "0.06"}
            control("POST", "spot-price", price)
            until(lambda: describe()["State"] == "closed")
        id = one["InstanceId"]
        until(lambda: self.state(id) in ("shutting-down", "terminated"))
        reason = self.describe([id])[0]["StateReason"]["Code"]
        self.assertEqual(reason, "Server.SpotInstanceTermination")
        refused = code(self.ec2.run_instances, **launch(InstanceMarketOptions=spot))
        self.assertEqual(refused, (400, "SpotMaxPriceTooLow"))
        control("POST", "spot-price", {**price, "price": "0.02"})
        [other] = self.run_instances(InstanceMarketOptions=spot)
        request = other["SpotInstanceRequestId"]
        self.ec2.cancel_spot_instance_requests(SpotInstanceRequestIds=[request])
        self.assertEqual(describe()["State"], "cancelled")

    def test_hosts(self):
        [host] = self.ec2.allocate_hosts(
            AvailabilityZone=ZONE,
            InstanceType="m5.large",
            Quantity=1,
            AutoPlacement="off",
            TagSpecifications=[tagged("dedicated-host", Name="h")],
        )["HostIds"]
        placement = {"Tenancy": "host", "HostId": host}
        [one] = self.run_instances(Placement=placement)
        [shown] = self.ec2.describe_hosts(Filter=[{"Name": "tag:Name", "Values": ["h"]}])["Hosts"]
        self.assertEqual(shown["Instances"][0]["InstanceId"], one["InstanceId"])
        answer = self.ec2.release_hosts(HostIds=[host])
        self.assertEqual(answer["Unsuccessful"][0]["ResourceId"], host)
        self.ec2.terminate_instances(InstanceIds=[one["InstanceId"]])
        until(lambda: self.ec2.release_hosts(HostIds=[host])["Successful"] == [host])

    def test_capacity_and_faults(self):
        limit = {"zone": ZONE, "instanceType": "c5.large", "limit": 2}
        control("POST", "capacity", limit)
        self.addCleanup(control, "DELETE", "capacity")
        refused = code(self.ec2.run_instances, **launch(3, InstanceType="c5.large"))
        self.assertEqual(refused, (500, "InsufficientInstanceCapacity"))
        some = self.run_instances(3, InstanceType="c5.large", MinCount=1)
        self.assertEqual(len(some), 2)

        error = {"code": "InternalError", "status": 500, "message": "oops"}
        control("POST", "faults", {"action": "DescribeVpcs", "effect": {"error": error}})
        self.assertEqual(code(self.ec2.describe_vpcs), (500, "InternalError"))
        control("POST", "faults", {"action": "DescribeVpcs", "effect": "throttle", "times": 2})
        self.assertEqual(code(self.ec2.describe_vpcs), (503, "RequestLimitExceeded"))
        patient = client("ec2", retries=3)
        self.assertEqual(len(patient.describe_vpcs()["Vpcs"]), 1)

        # The answer is lost: the instance is there, and the token finds it.
        control("POST", "faults", {"action": "RunInstances", "effect": {"lost": {"after": True}}})
        with self.assertRaises(botocore.exceptions.HTTPClientError):
            self.ec2.run_instances(**launch(ClientToken="lost"))
        found = self.ec2.describe_instances(Filters=[{"Name": "client-token", "Values": ["lost"]}])
        [one] = self.run_instances(ClientToken="lost")
        self.assertEqual(
            found["Reservations"][0]["Instances"][0]["InstanceId"], one["InstanceId"]
        )
        self.assertEqual(control("GET", "faults"), [])

    def test_readers_lag(self):
        with settings({"lag": {"actions": {"RunInstances": 1.0}}}):
            [one] = self.run_instances()
            ids = {"InstanceIds": [one["InstanceId"]]}
            self.assertEqual(
                code(self.ec2.describe_instances, **ids), (400, "InvalidInstanceID.NotFound")
            )
            until(lambda: code(self.ec2.describe_instances, **ids) == (200, None))

    def test_throttling(self):
        with settings({"throttling": {"on": True}}):
            answers = [code(self.ec2.describe_regions) for _ in range(60)]
        self.assertIn((503, "RequestLimitExceeded"), answers)

    def test_who_may_call(self):
        wrong = client("ec2", aws_secret_access_key="wrong")
        self.assertEqual(code(wrong.describe_vpcs), (401, "AuthFailure"))
        unknown = client("ec2", aws_access_key_id="AKIAUNKNOWN")
        self.assertEqual(code(unknown.describe_vpcs), (401, "AuthFailure"))
        dry = code(self.ec2.run_instances, **launch(DryRun=True))
        self.assertEqual(dry, (412, "DryRunOperation"))


class LoadBalancing(unittest.TestCase):
    def test_network_load_balancers(self):
        elb = client("elbv2")
        [balancer] = elb.describe_load_balancers(Names=["demo-int"])["LoadBalancers"]
        self.assertEqual((balancer["Type"], balancer["Scheme"]), ("network", "internal"))
        groups = elb.describe_target_groups(LoadBalancerArn=balancer["LoadBalancerArn"])
        arns = [group["TargetGroupArn"] for group in groups["TargetGroups"]]
        self.assertEqual(len(arns), 2)
        target = {"TargetGroupArn": arns[0], "Targets": [{"Id": "10.0.0.77"}]}
        elb.register_targets(**target)
        health = lambda: [
            t["TargetHealth"]["State"]
            for t in elb.describe_target_health(TargetGroupArn=arns[0])["TargetHealthDescriptions"]
        ]
        until(lambda: health() == ["healthy"])
        elb.deregister_targets(**target)
        until(lambda: health() == [])
        self.assertEqual(
            code(elb.describe_load_balancers, Names=["none"]), (400, "LoadBalancerNotFound")
        )
        pages = elb.get_paginator("describe_target_groups").paginate(PaginationConfig={"PageSize": 2})
        self.assertEqual([len(page["TargetGroups"]) for page in pages], [2, 1])

    def test_classic_load_balancers(self):
        elb, ec2 = client("elb"), client("ec2")
        name = "demo-classic"
        [shown] = elb.describe_load_balancers(LoadBalancerNames=[name])["LoadBalancerDescriptions"]
        self.assertEqual(shown["VPCId"], INSTALLED["vpc"])
        id = ec2.run_instances(**launch())["Instances"][0]["InstanceId"]
        self.addCleanup(ec2.terminate_instances, InstanceIds=[id])
        both = {"LoadBalancerName": name, "Instances": [{"InstanceId": id}]}
        left = elb.register_instances_with_load_balancer(**both)["Instances"]
        self.assertEqual(left, [{"InstanceId": id}])
        [state] = elb.describe_instance_health(LoadBalancerName=name)["InstanceStates"]
        self.assertEqual(state["State"], "InService")
        self.assertEqual(elb.deregister_instances_from_load_balancer(**both)["Instances"], [])


class Tokens(unittest.TestCase):
    def test_identities(self):
        sts = client("sts")
        self.assertEqual(sts.get_caller_identity()["Account"], "123456789012")
        token = ".".join([base64.urlsafe_b64encode(b"{}").decode()] * 3)
        role = {"RoleArn": "arn:aws:iam::123456789012:role/r", "RoleSessionName": "session"}
        web = sts.assume_role_with_web_identity(WebIdentityToken=token, **role)
        for answer in (web, sts.assume_role(**role)):
            credentials = answer["Credentials"]
            temporary = {
                "aws_access_key_id": credentials["AccessKeyId"],
                "aws_secret_access_key": credentials["SecretAccessKey"],
                "aws_session_token": credentials["SessionToken"],
            }
            arn = client("sts", **temporary).get_caller_identity()["Arn"]
            self.assertEqual(arn, "arn:aws:sts::123456789012:assumed-role/r/session")
            self.assertEqual(code(client("ec2", **temporary).describe_vpcs), (200, None))
        bad = {**role, "RoleArn": "arn:aws:iam::000000000000:role/r"}
        refused = code(sts.assume_role_with_web_identity, WebIdentityToken=token, **bad)
        self.assertEqual(refused, (403, "AccessDenied"))


class ZAfterwards(unittest.TestCase):
    """Runs last: unittest sorts classes by name."""

    def test_every_operation_was_driven(self):
        served = {(o["version"], o["action"]) for o in control("GET", "operations")}
        driven = {(c["version"], c["action"]) for c in control("GET", "calls") if c["status"] == 200}
        self.assertEqual(served - driven, set())

    def test_every_answer_is_as_described(self):
        served = {(o["version"], o["action"]) for o in control("GET", "operations")}
        self.assertEqual(served - simulator.CHECKED, set())
        self.assertEqual(sorted(set(simulator.PROBLEMS)), [])

    def test_every_request_is_as_described(self):
        problems = []
        # What was refused may have been wrong on purpose.
        for call in (call for call in control("GET", "calls") if call["status"] == 200):
            problems += service_model.request_problems(
                call["version"], call["action"], call["parameters"]
            )
        self.assertEqual(sorted(set(problems)), [])


if __name__ == "__main__":
    unittest.main()
